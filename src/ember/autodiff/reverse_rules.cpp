// One reverse rule for every op outside of maps and control: how a cotangent of the result becomes those of the
// operands. Names in formulas: x the operand, r the result, g the result's cotangent.
#include <algorithm>
#include <array>

#include "ember/autodiff/reverse.h"
#include "ember/ir/attention.h"

namespace ember::autodiff {
namespace {

using ir::Attribute;
using ir::DType;
using ir::kNone;
using ir::Node;
using ir::Op;
using ir::Shape;
using Axes = std::vector<int64_t>;

Status map_rule(Reverse& sweep, const Node& node) {
    std::string_view column = info(node.op).derivative;
    if (column == "none") {
        return no_derivative(node);
    }
    if (ir::is_complex(sweep.graph.type(node.result()).dtype)) {
        return error(Code::kUnsupported,
                     "gradient: " + std::string(op_name(node.op)) + " of complex values has no derivative yet");
    }
    const std::vector<ir::Formula>& derivatives = ir::formulas(column);
    ir::FormulaVariables variables;
    variables['r'] = node.result();
    variables['g'] = sweep.cotangent(node.result());
    for (size_t k = 0; k < node.operands.size(); ++k) {
        variables[static_cast<char>('x' + k)] = node.operands[k];
    }
    DType dtype = sweep.graph.type(node.result()).dtype;
    for (size_t k = 0; k < node.operands.size(); ++k) {
        ValueId operand = node.operands[k];
        if (!sweep.wants(operand) || derivatives[k].is_number(0)) {
            continue;
        }
        ValueId part = build_formula(sweep.graph, derivatives[k], variables, dtype);
        sweep.add(operand, sum_to(sweep.graph, part, operand));
    }
    return {};
}

Status cast_rule(Reverse& sweep, const Node& node) {
    DType from = sweep.graph.type(node.operands[0]).dtype;
    ValueId g = sweep.cotangent(node.result());
    sweep.add(node.operands[0], sweep.graph.make(Op::k_cast, {g}, {{"dtype", from}}));
    return {};
}

Status pass_on(Reverse& sweep, const Node& node) {
    sweep.add(node.operands[0], sweep.cotangent(node.result()));
    return {};
}

// --- reductions and scans

/// A reduction's result or its cotangent, stretched over the operand again.
ValueId spread(Reverse& sweep, const Node& node, ValueId reduced) {
    ValueId x = node.operands[0];
    return broadcast_like(sweep.graph, keep_axes(sweep.graph, reduced, x, node.integers("axes")), x);
}

Status reduce_sum_rule(Reverse& sweep, const Node& node) {
    sweep.add(node.operands[0], spread(sweep, node, sweep.cotangent(node.result())));
    return {};
}

Status reduce_prod_rule(Reverse& sweep, const Node& node) {
    GraphBuilder& graph = sweep.graph;
    ValueId x = node.operands[0];
    ValueId zeros = apply(graph, "select(eq(x,0),1,0)", {{'x', x}});
    ValueId others = apply(graph, "select(eq(x,0),1,x)", {{'x', x}});
    ValueId count = graph.make(Op::k_reduce_sum, {zeros}, node.attributes);
    ValueId product = graph.make(Op::k_reduce_prod, {others}, node.attributes);
    sweep.add(x, apply(graph, kProductOfOthers,
                       {{'x', x},
                        {'g', spread(sweep, node, sweep.cotangent(node.result()))},
                        {'c', spread(sweep, node, count)},
                        {'p', spread(sweep, node, product)}}));
    return {};
}

/// Equal shares for all that are the extreme.
Status reduce_extreme_rule(Reverse& sweep, const Node& node) {
    GraphBuilder& graph = sweep.graph;
    ValueId x = node.operands[0];
    ValueId r = spread(sweep, node, node.result());
    ValueId chosen = graph.make(Op::k_eq, {x, r});
    ValueId ones = graph.make(Op::k_cast, {chosen}, {{"dtype", graph.type(x).dtype}});
    ValueId count = graph.make(Op::k_reduce_sum, {ones}, node.attributes);
    ValueId share = graph.make(Op::k_div, {sweep.cotangent(node.result()), count});
    sweep.add(x, apply(graph, "select(c,g,0)", {{'c', chosen}, {'g', spread(sweep, node, share)}}));
    return {};
}

ValueId sum_from_end(GraphBuilder& graph, ValueId value, const Node& scan) {
    Axes axes = {scan.integer("axis")};
    ValueId turned = graph.make(Op::k_reverse, {value}, {{"axes", axes}});
    ValueId sum = graph.make(Op::k_cumsum, {turned}, scan.attributes);
    return graph.make(Op::k_reverse, {sum}, {{"axes", axes}});
}

Status cumsum_rule(Reverse& sweep, const Node& node) {
    sweep.add(node.operands[0], sum_from_end(sweep.graph, sweep.cotangent(node.result()), node));
    return {};
}

/// Up to the first zero: the sum of g*r from here to the end, over x. At the first zero: the same sum with that zero
/// taken for 1. Behind it all products stay 0.
Status cumprod_rule(Reverse& sweep, const Node& node) {
    GraphBuilder& graph = sweep.graph;
    ValueId x = node.operands[0];
    ValueId g = sweep.cotangent(node.result());
    ValueId zeros = apply(graph, "select(eq(x,0),1,0)", {{'x', x}});
    ValueId count = graph.make(Op::k_cumsum, {zeros}, node.attributes);
    ValueId first = apply(graph, "and(eq(x,0),eq(c,1))", {{'x', x}, {'c', count}});
    ValueId filled = apply(graph, "select(f,1,x)", {{'f', first}, {'x', x}});
    ValueId without_zero = graph.make(Op::k_cumprod, {filled}, node.attributes);
    ValueId before = sum_from_end(graph, graph.make(Op::k_mul, {g, node.result()}), node);
    ValueId at_zero = sum_from_end(graph, graph.make(Op::k_mul, {g, without_zero}), node);
    sweep.add(x, apply(graph, "select(f,a,select(gt(c,0),0,b/select(eq(x,0),1,x)))",
                       {{'x', x}, {'f', first}, {'a', at_zero}, {'b', before}, {'c', count}}));
    return {};
}

// --- contraction

/// One operand's axes by what happens to them, as positions in it.
struct ContractedAxes {
    Axes batch;
    Axes contracted;
    Axes free;
};

ContractedAxes split_axes(const Node& dot, size_t side, int rank) {
    ContractedAxes axes;
    for (size_t i = side; i < dot.integers("batch").size(); i += 2) {
        axes.batch.push_back(dot.integers("batch")[i]);
    }
    for (size_t i = side; i < dot.integers("contract").size(); i += 2) {
        axes.contracted.push_back(dot.integers("contract")[i]);
    }
    auto is_used = [&](int64_t axis) {
        return std::count(axes.batch.begin(), axes.batch.end(), axis) +
                   std::count(axes.contracted.begin(), axes.contracted.end(), axis) >
               0;
    };
    for (int64_t axis = 0; axis < rank; ++axis) {
        if (!is_used(axis)) {
            axes.free.push_back(axis);
        }
    }
    return axes;
}

/// The cotangent of one operand: g and the other operand, contracted over the other one's free axes.
void dot_side(Reverse& sweep, const Node& node, size_t side) {
    GraphBuilder& graph = sweep.graph;
    ValueId mine = node.operands[side];
    ValueId other = node.operands[1 - side];
    if (!sweep.wants(mine)) {
        return;
    }
    if (ir::is_quantized(graph.type(other).dtype)) {
        other = graph.make(Op::k_cast, {other}, {{"dtype", graph.type(mine).dtype}});
    }
    ContractedAxes my = split_axes(node, side, graph.type(mine).rank());
    ContractedAxes its = split_axes(node, 1 - side, graph.type(other).rank());
    auto batches = static_cast<int64_t>(my.batch.size());
    auto my_free = static_cast<int64_t>(my.free.size());
    int64_t its_first = side == 0 ? batches + my_free : batches;  // where its free axes stand in g
    Axes batch;
    for (int64_t i = 0; i < batches; ++i) {
        batch.insert(batch.end(), {i, its.batch[static_cast<size_t>(i)]});
    }
    Axes contract;
    for (size_t i = 0; i < its.free.size(); ++i) {
        contract.insert(contract.end(), {its_first + static_cast<int64_t>(i), its.free[i]});
    }
    // axes of the result: batch, my free ones, its contracted ones in the order of its axes
    std::vector<Attribute> attributes = {{"contract", contract}};
    if (!batch.empty()) {
        attributes.push_back({"batch", batch});
    }
    ValueId g = sweep.cotangent(node.result());
    ValueId product = graph.make(Op::k_dot_general, {g, other}, std::move(attributes));
    Axes order = its.contracted;
    std::sort(order.begin(), order.end());
    Axes perm(my.batch.size() + my.free.size() + order.size());
    for (size_t i = 0; i < my.batch.size(); ++i) {
        perm[static_cast<size_t>(my.batch[i])] = static_cast<int64_t>(i);
    }
    for (size_t i = 0; i < my.free.size(); ++i) {
        perm[static_cast<size_t>(my.free[i])] = batches + static_cast<int64_t>(i);
    }
    for (size_t i = 0; i < my.contracted.size(); ++i) {
        auto at = std::find(order.begin(), order.end(), its.contracted[i]) - order.begin();
        perm[static_cast<size_t>(my.contracted[i])] = batches + my_free + at;
    }
    sweep.add(mine, std::is_sorted(perm.begin(), perm.end())
                        ? product
                        : graph.make(Op::k_transpose, {product}, {{"perm", perm}}));
}

Status dot_rule(Reverse& sweep, const Node& node) {
    if (ir::is_quantized(sweep.graph.type(node.operands[1]).dtype)) {
        check(!sweep.wants(node.operands[1]), "quantised values have no cotangent");
    }
    dot_side(sweep, node, 0);
    dot_side(sweep, node, 1);
    return {};
}

Status attention_rule(Reverse& sweep, const Node& node) {
    GraphBuilder& graph = sweep.graph;
    const std::vector<ValueId> operands = node.operands;
    DType dtype = graph.type(operands[0]).dtype;
    ir::AttentionParts parts = ir::attention_parts(graph, operands);
    ValueId g = ir::split_heads(graph, sweep.cotangent(node.result()), parts);
    auto dot = [&](ValueId x, ValueId y, Axes contract, Axes batch) {
        return graph.make(Op::k_dot_general, {x, y}, {{"contract", std::move(contract)}, {"batch", std::move(batch)}});
    };
    auto add = [&](size_t k, ValueId value) {
        DType own = graph.type(operands[k]).dtype;
        sweep.add(operands[k], own == dtype ? value : graph.make(Op::k_cast, {value}, {{"dtype", own}}));
    };
    ValueId of_scores = ir::softmax_change(graph, parts.weights, ir::score_of_values(graph, g, parts.values));
    if (sweep.wants(operands[0])) {
        add(0, ir::join_heads(graph, ir::weigh(graph, of_scores, parts.keys), operands[0]));
    }
    if (sweep.wants(operands[1])) {
        add(1, dot(of_scores, parts.grouped, {1, 0, 2, 2}, {0, 1}));
    }
    if (sweep.wants(operands[2])) {
        add(2, dot(parts.weights, g, {1, 1, 2, 2}, {0, 0}));
    }
    return {};
}

// --- views

Status transpose_rule(Reverse& sweep, const Node& node) {
    const Axes& perm = node.integers("perm");
    Axes back(perm.size());
    for (size_t i = 0; i < perm.size(); ++i) {
        back[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
    }
    ValueId g = sweep.cotangent(node.result());
    sweep.add(node.operands[0], sweep.graph.make(Op::k_transpose, {g}, {{"perm", back}}));
    return {};
}

Status reshape_rule(Reverse& sweep, const Node& node) {
    sweep.add(node.operands[0], reshape_like(sweep.graph, sweep.cotangent(node.result()), node.operands[0]));
    return {};
}

Status broadcast_rule(Reverse& sweep, const Node& node) {
    sweep.add(node.operands[0], sum_to(sweep.graph, sweep.cotangent(node.result()), node.operands[0]));
    return {};
}

Status reverse_axes_rule(Reverse& sweep, const Node& node) {
    ValueId g = sweep.cotangent(node.result());
    sweep.add(node.operands[0], sweep.graph.make(Op::k_reverse, {g}, node.attributes));
    return {};
}

/// A block's cotangent in a tensor of zeros of x's shape.
ValueId pad_to(Reverse& sweep, ValueId g, ValueId x, int64_t axis, ValueId start) {
    GraphBuilder& graph = sweep.graph;
    ValueId length = graph.dim_value(x, static_cast<int>(axis));
    ValueId size = graph.dim_value(g, static_cast<int>(axis));
    ValueId high = minus(graph, minus(graph, length, start), size);
    ValueId zero = graph.constant(graph.type(x).dtype, 0.0);
    return graph.make_node({Op::k_pad, {g, zero, start, high}, {{"axis", axis}}, {}, {graph.type(x)}}).at(0);
}

Status slice_rule(Reverse& sweep, const Node& node) {
    GraphBuilder& graph = sweep.graph;
    ValueId x = node.operands[0];
    ValueId start = node.operands[1];
    ValueId g = sweep.cotangent(node.result());
    int64_t axis = node.integer("axis");
    int64_t step = node.integer_or("step", 1);
    if (step == 1) {
        sweep.add(x, pad_to(sweep, g, x, axis, start));
        return {};
    }
    ValueId iota = graph.make(Op::k_iota, {node.operands[2]}, {{"dtype", DType::kI64}});
    ValueId index = apply(graph, "s+k*i", {{'s', start}, {'k', graph.constant_int(step)}, {'i', iota}});
    sweep.add(x, graph.make(Op::k_scatter, {zeros_like(graph, x), g, index},
                            {{"axes", Axes{axis}}, {"mode", std::string("add")}}));
    return {};
}

Status pad_rule(Reverse& sweep, const Node& node) {
    GraphBuilder& graph = sweep.graph;
    ValueId x = node.operands[0];
    ValueId value = node.operands[1];
    ValueId low = node.operands[2];
    ValueId g = sweep.cotangent(node.result());
    int64_t axis = node.integer("axis");
    ValueId length = graph.dim_value(x, static_cast<int>(axis));
    if (sweep.wants(x)) {
        sweep.add(x, slice(graph, g, axis, low, length));
    }
    if (sweep.wants(value)) {
        Axes all(static_cast<size_t>(graph.type(g).rank()));
        for (size_t i = 0; i < all.size(); ++i) {
            all[i] = static_cast<int64_t>(i);
        }
        ValueId before = slice(graph, g, axis, graph.constant_int(0), low);
        ValueId after = slice(graph, g, axis, plus(graph, low, length), node.operands[3]);
        sweep.add(value, graph.make(Op::k_reduce_sum, {before}, {{"axes", all}}));
        sweep.add(value, graph.make(Op::k_reduce_sum, {after}, {{"axes", all}}));
    }
    return {};
}

Status concat_rule(Reverse& sweep, const Node& node) {
    GraphBuilder& graph = sweep.graph;
    int64_t axis = node.integer("axis");
    ValueId start = graph.constant_int(0);
    for (ValueId operand : node.operands) {
        ValueId size = graph.dim_value(operand, static_cast<int>(axis));
        if (sweep.wants(operand)) {
            sweep.add(operand, slice(graph, sweep.cotangent(node.result()), axis, start, size));
        }
        start = plus(graph, start, size);
    }
    return {};
}

Status split_rule(Reverse& sweep, const Node& node) {
    std::vector<ValueId> pieces;
    for (uint32_t k = 0; k < node.result_count; ++k) {
        pieces.push_back(sweep.cotangent_or_zero(node.result(k)));
    }
    ir::NodeSpec spec{Op::k_concat, std::move(pieces), node.attributes, {}, {sweep.graph.type(node.operands[0])}};
    sweep.add(node.operands[0], sweep.graph.make_node(std::move(spec)).at(0));
    return {};
}

// --- indexing

std::vector<Attribute> with_mode(const Node& node, std::string mode) {
    std::vector<Attribute> attributes = {{"axes", node.integers("axes")}, {"mode", std::move(mode)}};
    if (node.find("bounds") != nullptr) {
        attributes.push_back({"bounds", std::string(node.string("bounds"))});
    }
    return attributes;
}

std::vector<Attribute> without_mode(const Node& node) {
    std::vector<Attribute> attributes = node.attributes;
    std::erase_if(attributes, [](const Attribute& attribute) { return attribute.name == "mode"; });
    return attributes;
}

Status gather_rule(Reverse& sweep, const Node& node) {
    GraphBuilder& graph = sweep.graph;
    std::vector<ValueId> operands = node.operands;
    operands.insert(operands.begin() + 1, sweep.cotangent(node.result()));
    operands[0] = zeros_like(graph, node.operands[0]);
    sweep.add(node.operands[0], graph.make(Op::k_scatter, std::move(operands), with_mode(node, "add")));
    return {};
}

Status take_along_rule(Reverse& sweep, const Node& node) {
    ValueId x = node.operands[0];
    sweep.add(x, scatter_along(sweep.graph, x, sweep.cotangent(node.result()), node.operands[1], node));
    return {};
}

/// The parts of a scatter that its rules are written with.
struct Scatter {
    Reverse& sweep;
    const Node& node;
    GraphBuilder& graph = sweep.graph;
    ValueId x = node.operands[0];
    ValueId updates = node.operands[1];
    ValueId g = sweep.cotangent(node.result());

    /// What stands in `from` where the updates go.
    ValueId gathered(ValueId from) {
        std::vector<ValueId> operands = node.operands;
        operands.erase(operands.begin() + 1);
        operands[0] = from;
        return graph.make(Op::k_gather, std::move(operands), without_mode(node));
    }
    ValueId scattered(ValueId into, ValueId what, const char* mode) {
        std::vector<ValueId> operands = node.operands;
        operands[0] = into;
        operands[1] = what;
        return graph.make(Op::k_scatter, std::move(operands), with_mode(node, mode));
    }
    void add_updates(ValueId part) { sweep.add(updates, sum_to(graph, part, updates)); }
    /// The updates, not stretched any more.
    ValueId full_updates() { return broadcast_like(graph, updates, gathered(x)); }
    ValueId zero() { return graph.constant(graph.type(x).dtype, 0.0); }
};

Status scatter_add_rule(Scatter s) {
    s.sweep.add(s.x, s.g);
    if (s.sweep.wants(s.updates)) {
        s.add_updates(s.gathered(s.g));
    }
    return {};
}

/// Of several updates of one element only the last one counts: each writes its number, and the one that reads its own
/// number again is it.
Status scatter_set_rule(Scatter s) {
    GraphBuilder& graph = s.graph;
    if (s.sweep.wants(s.x)) {
        s.sweep.add(s.x, s.scattered(s.g, zeros_like(graph, s.updates), "set"));
    }
    if (!s.sweep.wants(s.updates)) {
        return {};
    }
    ValueId window = s.gathered(s.g);
    ValueId count = graph.constant_int(1);
    for (ValueId length : lengths(graph, window)) {
        count = graph.make(Op::k_mul, {count, length});
    }
    ValueId numbers = graph.make(Op::k_iota, {count}, {{"dtype", DType::kI64}});
    numbers = reshape_like(graph, numbers, window);
    ValueId nowhere = broadcast_like(graph, graph.constant_int(-1), s.x);
    ValueId written = s.gathered(s.scattered(nowhere, numbers, "set"));
    s.add_updates(apply(graph, "select(eq(w,n),g,0)", {{'g', window}, {'w', written}, {'n', numbers}}));
    return {};
}

Status scatter_mul_rule(Scatter s) {
    GraphBuilder& graph = s.graph;
    ValueId updates = s.full_updates();
    auto zeros = [&](ValueId v) { return apply(graph, "select(eq(x,0),1,0)", {{'x', v}}); };
    auto others = [&](ValueId v) { return apply(graph, "select(eq(x,0),1,x)", {{'x', v}}); };
    ValueId count = s.scattered(zeros(s.x), zeros(updates), "add");
    ValueId product = s.scattered(others(s.x), others(updates), "mul");
    if (s.sweep.wants(s.x)) {
        s.sweep.add(s.x, apply(graph, kProductOfOthers, {{'x', s.x}, {'g', s.g}, {'c', count}, {'p', product}}));
    }
    if (s.sweep.wants(s.updates)) {
        s.add_updates(
            apply(graph, kProductOfOthers,
                  {{'x', updates}, {'g', s.gathered(s.g)}, {'c', s.gathered(count)}, {'p', s.gathered(product)}}));
    }
    return {};
}

/// Equal shares for all that are the extreme.
Status scatter_extreme_rule(Scatter s) {
    GraphBuilder& graph = s.graph;
    ValueId r = s.node.result();
    ValueId updates = s.full_updates();
    auto is_it = [&](ValueId v, ValueId result) {
        return graph.make(Op::k_cast, {graph.make(Op::k_eq, {v, result})}, {{"dtype", graph.type(v).dtype}});
    };
    ValueId count = s.scattered(is_it(s.x, r), is_it(updates, s.gathered(r)), "add");
    ValueId share = graph.make(Op::k_div, {s.g, count});
    if (s.sweep.wants(s.x)) {
        s.sweep.add(s.x, apply(graph, "select(eq(x,r),s,0)", {{'x', s.x}, {'r', r}, {'s', share}}));
    }
    if (s.sweep.wants(s.updates)) {
        s.add_updates(
            apply(graph, "select(eq(x,r),s,0)", {{'x', updates}, {'r', s.gathered(r)}, {'s', s.gathered(share)}}));
    }
    return {};
}

Status scatter_rule(Reverse& sweep, const Node& node) {
    std::string_view mode = node.string("mode");
    Scatter scatter{sweep, node};
    return mode == "add"   ? scatter_add_rule(scatter)
           : mode == "set" ? scatter_set_rule(scatter)
           : mode == "mul" ? scatter_mul_rule(scatter)
                           : scatter_extreme_rule(scatter);
}

Status update_slice_rule(Reverse& sweep, const Node& node) {
    GraphBuilder& graph = sweep.graph;
    ValueId g = sweep.cotangent(node.result());
    ValueId update = node.operands[1];
    if (sweep.wants(node.operands[0])) {
        std::vector<ValueId> operands = node.operands;
        operands[0] = g;
        operands[1] = zeros_like(graph, update);
        sweep.add(node.operands[0], graph.make(Op::k_update_slice, std::move(operands)));
    }
    if (sweep.wants(update)) {
        for (int axis = 0; axis < graph.type(update).rank(); ++axis) {
            ValueId start = node.operands[static_cast<size_t>(axis) + 2];
            g = slice(graph, g, axis, start, graph.dim_value(update, axis));
        }
        sweep.add(update, g);
    }
    return {};
}

struct Row {
    Op op;
    ReverseRule rule;
};
constexpr Row kRows[] = {
    {Op::k_cast, cast_rule},
    {Op::k_reduce_sum, reduce_sum_rule},
    {Op::k_reduce_prod, reduce_prod_rule},
    {Op::k_reduce_max, reduce_extreme_rule},
    {Op::k_reduce_min, reduce_extreme_rule},
    {Op::k_cumsum, cumsum_rule},
    {Op::k_cumprod, cumprod_rule},
    {Op::k_dot_general, dot_rule},
    {Op::k_attention, attention_rule},
    {Op::k_transpose, transpose_rule},
    {Op::k_reshape, reshape_rule},
    {Op::k_broadcast, broadcast_rule},
    {Op::k_slice, slice_rule},
    {Op::k_reverse, reverse_axes_rule},
    {Op::k_pad, pad_rule},
    {Op::k_concat, concat_rule},
    {Op::k_split, split_rule},
    {Op::k_gather, gather_rule},
    {Op::k_scatter, scatter_rule},
    {Op::k_take_along, take_along_rule},
    {Op::k_update_slice, update_slice_rule},
    {Op::k_sort, reverse_sort},
    {Op::k_topk, reverse_topk},
    {Op::k_unique, reverse_unique},
    {Op::k_bincount, reverse_bincount},
    {Op::k_if, reverse_if},
    {Op::k_loop, reverse_loop},
    {Op::k_call, reverse_call},
    {Op::k_assert, pass_on},
};

constexpr auto kRules = [] {
    std::array<ReverseRule, ir::kOpCount> rules{};
    for (int i = 0; i < ir::kOpCount; ++i) {
        rules[static_cast<size_t>(i)] = ir::kOps[i].kind == ir::OpKind::kMap ? map_rule : nullptr;
    }
    for (const Row& row : kRows) {
        rules[static_cast<size_t>(row.op)] = row.rule;
    }
    return rules;
}();

}  // namespace

ReverseRule reverse_rule(Op op) {
    return kRules[static_cast<size_t>(op)];
}

}  // namespace ember::autodiff
