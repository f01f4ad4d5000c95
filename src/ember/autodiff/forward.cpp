// Forward mode: one walk over the graph, a tangent for every value that depends on a seed. Linear ops act on tangents
// as on values; the others have a rule below. Names in formulas: x the operand, r the result, t the tangent.
#include <algorithm>
#include <string>

#include "ember/autodiff/reverse.h"
#include "ember/ir/append.h"
#include "ember/ir/attention.h"

namespace ember::autodiff {
namespace {

using ir::Graph;
using ir::kNone;
using ir::Node;
using ir::Op;
using ir::Symbols;
using Values = std::vector<ValueId>;

/// Which nodes stand behind the given values.
std::vector<bool> needed_nodes(const Graph& graph, std::span<const ValueId> values) {
    std::vector<bool> needed(graph.nodes.size(), false);
    auto need = [&](ValueId value) {
        if (graph.values[value].node != kNone) {
            needed[graph.values[value].node] = true;
        }
    };
    std::for_each(values.begin(), values.end(), need);
    for (size_t id = needed.size(); id-- > 0;) {
        if (needed[id]) {
            std::for_each(graph.nodes[id].operands.begin(), graph.nodes[id].operands.end(), need);
        }
    }
    return needed;
}

class Forward {
public:
    explicit Forward(GraphBuilder& builder) : graph_(builder) {}

    Result<Values> run(std::span<const Seed> seeds, std::span<const ValueId> of) {
        size_t nodes = graph_.graph().nodes.size();
        tangents_.assign(graph_.graph().values.size(), kNone);
        std::vector<bool> active(tangents_.size(), false);
        for (const Seed& seed : seeds) {
            tangents_.at(seed.value) = seed.derivative;
            active[seed.value] = true;
        }
        spread_activity(graph_.graph(), active, std::vector<bool>(active.size(), false));
        std::vector<bool> needed = needed_nodes(graph_.graph(), of);
        for (size_t id = 0; id < nodes; ++id) {
            if (!needed[id]) {
                continue;
            }
            Node node = graph_.graph().nodes[id];
            bool depends = std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId v) { return has(v); });
            bool matters = false;
            for (uint32_t k = 0; k < node.result_count; ++k) {
                matters = matters || (active[node.result(k)] && tangents_[node.result(k)] == kNone);
            }
            if (depends && matters) {
                EMBER_CHECKED(differentiate(node));
            }
        }
        Values results;
        for (ValueId value : of) {
            results.push_back(has(value) ? tangents_[value] : zeros_like(graph_, value));
        }
        return results;
    }

private:
    bool has(ValueId value) const { return tangents_[value] != kNone; }
    ValueId tangent(ValueId value) { return has(value) ? tangents_[value] : zeros_like(graph_, value); }
    void set(const Node& node, ValueId tangent, uint32_t k = 0) {
        if (tangents_[node.result(k)] == kNone) {  // a seed stays
            tangents_[node.result(k)] = tangent;
        }
    }

    Status differentiate(const Node& node);
    Status map(const Node& node);
    /// The same op with tangents in place of the first `count` operands.
    Status linear(const Node& node, size_t count);
    Status dot(const Node& node);
    Status attention(const Node& node);
    Status reduce_prod(const Node& node);
    Status reduce_extreme(const Node& node);
    Status cumprod(const Node& node);
    /// Elements taken along an axis from where they stood.
    Status moved(const Node& node, ValueId positions);
    Status unique(const Node& node);
    Status bincount(const Node& node);
    Status if_op(const Node& node);
    Status loop(const Node& node);
    Status call(const Node& node);

    GraphBuilder& graph_;
    Values tangents_;
};

Status Forward::differentiate(const Node& node) {
    switch (node.op) {
        case Op::k_cast:
        case Op::k_reduce_sum:
        case Op::k_cumsum:
        case Op::k_transpose:
        case Op::k_reshape:
        case Op::k_broadcast:
        case Op::k_slice:
        case Op::k_reverse:
        case Op::k_split:
        case Op::k_gather:
        case Op::k_take_along:
        case Op::k_assert:
            return linear(node, 1);
        case Op::k_pad:
        case Op::k_update_slice:
            return linear(node, 2);
        case Op::k_concat:
            return linear(node, node.operands.size());
        case Op::k_scatter:
            return node.string("mode") == "add" || node.string("mode") == "set" ? linear(node, 2)
                                                                                : Status(no_derivative(node));
        case Op::k_dot_general:
            return dot(node);
        case Op::k_attention:
            return attention(node);
        case Op::k_reduce_prod:
            return reduce_prod(node);
        case Op::k_reduce_max:
        case Op::k_reduce_min:
            return reduce_extreme(node);
        case Op::k_cumprod:
            return cumprod(node);
        case Op::k_sort:
            return moved(node, graph_.make(Op::k_argsort, {node.operands[0]}, node.attributes));
        case Op::k_topk:
            return moved(node, node.result(1));
        case Op::k_unique:
            return unique(node);
        case Op::k_bincount:
            return bincount(node);
        case Op::k_if:
            return if_op(node);
        case Op::k_loop:
            return loop(node);
        case Op::k_call:
            return call(node);
        default:
            return ir::is_map(node.op) ? map(node) : Status(no_derivative(node));
    }
}

Status Forward::map(const Node& node) {
    std::string_view column = info(node.op).derivative;
    if (column == "none" || ir::is_complex(graph_.type(node.result()).dtype)) {
        return no_derivative(node);
    }
    const std::vector<ir::Formula>& derivatives = ir::formulas(column);
    ir::FormulaVariables variables;
    variables['r'] = node.result();
    for (size_t k = 0; k < node.operands.size(); ++k) {
        variables[static_cast<char>('x' + k)] = node.operands[k];
    }
    ValueId sum = kNone;
    for (size_t k = 0; k < node.operands.size(); ++k) {
        if (!has(node.operands[k]) || derivatives[k].is_number(0)) {
            continue;
        }
        variables['g'] = tangents_[node.operands[k]];
        ValueId part = build_formula(graph_, derivatives[k], variables, graph_.type(node.result()).dtype);
        sum = sum == kNone ? part : graph_.make(Op::k_add, {sum, part});
    }
    set(node, sum == kNone ? zeros_like(graph_, node.result()) : broadcast_like(graph_, sum, node.result()));
    return {};
}

Status Forward::attention(const Node& node) {
    const Values operands = node.operands;
    ir::AttentionParts parts = ir::attention_parts(graph_, operands);
    Values changed = operands;
    for (size_t k = 0; k < 3; ++k) {
        changed[k] = tangent(operands[k]);
    }
    ir::AttentionParts change = ir::attention_parts(graph_, changed);  // of it all but the weights
    ValueId scores = graph_.make(
        Op::k_add, {ir::score(graph_, change.grouped, parts.keys), ir::score(graph_, parts.grouped, change.keys)});
    ValueId weights = ir::softmax_change(graph_, parts.weights, scores);
    ValueId mixed = graph_.make(
        Op::k_add, {ir::weigh(graph_, weights, parts.values), ir::weigh(graph_, parts.weights, change.values)});
    set(node, ir::join_heads(graph_, mixed, operands[0]));
    return {};
}

Status Forward::linear(const Node& node, size_t count) {
    ir::NodeSpec spec{node.op, node.operands, node.attributes, {}, {}};
    for (size_t k = 0; k < count; ++k) {
        spec.operands[k] = tangent(node.operands[k]);
    }
    if (node.op == Op::k_assert) {
        spec.operands.resize(1);
    }
    for (uint32_t k = 0; k < node.result_count; ++k) {
        spec.stated.push_back(graph_.type(node.result(k)));
    }
    Values results = node.op == Op::k_assert ? spec.operands : graph_.make_node(std::move(spec));
    for (uint32_t k = 0; k < node.result_count; ++k) {
        set(node, results[k], k);
    }
    return {};
}

Status Forward::dot(const Node& node) {
    ValueId a = node.operands[0];
    ValueId b = node.operands[1];
    ValueId sum = kNone;
    if (has(a)) {
        sum = graph_.make(Op::k_dot_general, {tangents_[a], b}, node.attributes);
    }
    if (has(b)) {
        ValueId part = graph_.make(Op::k_dot_general, {a, tangents_[b]}, node.attributes);
        sum = sum == kNone ? part : graph_.make(Op::k_add, {sum, part});
    }
    set(node, sum);
    return {};
}

Status Forward::reduce_prod(const Node& node) {
    ValueId x = node.operands[0];
    const std::vector<int64_t>& axes = node.integers("axes");
    auto spread = [&](ValueId v) { return broadcast_like(graph_, keep_axes(graph_, v, x, axes), x); };
    ValueId zeros = apply(graph_, "select(eq(x,0),1,0)", {{'x', x}});
    ValueId others = apply(graph_, "select(eq(x,0),1,x)", {{'x', x}});
    ValueId count = graph_.make(Op::k_reduce_sum, {zeros}, node.attributes);
    ValueId product = graph_.make(Op::k_reduce_prod, {others}, node.attributes);
    ValueId parts =
        apply(graph_, kProductOfOthers, {{'x', x}, {'g', tangent(x)}, {'c', spread(count)}, {'p', spread(product)}});
    set(node, graph_.make(Op::k_reduce_sum, {parts}, node.attributes));
    return {};
}

Status Forward::reduce_extreme(const Node& node) {
    ValueId x = node.operands[0];
    ValueId r = keep_axes(graph_, node.result(), x, node.integers("axes"));
    ValueId chosen = graph_.make(Op::k_eq, {x, r});
    ValueId ones = graph_.make(Op::k_cast, {chosen}, {{"dtype", graph_.type(x).dtype}});
    ValueId parts = apply(graph_, "select(c,t,0)", {{'t', tangent(x)}, {'c', chosen}});
    ValueId count = graph_.make(Op::k_reduce_sum, {ones}, node.attributes);
    ValueId sum = graph_.make(Op::k_reduce_sum, {parts}, node.attributes);
    set(node, graph_.make(Op::k_div, {sum, count}));
    return {};
}

/// Up to the first zero: r times the sum of t/x so far. From there on: the tangent at that zero times the product of
/// the others.
Status Forward::cumprod(const Node& node) {
    ValueId x = node.operands[0];
    auto scan = [&](Op op, ValueId v) { return graph_.make(op, {v}, node.attributes); };
    ValueId t = tangent(x);
    ValueId count = scan(Op::k_cumsum, apply(graph_, "select(eq(x,0),1,0)", {{'x', x}}));
    ValueId first = apply(graph_, "and(eq(x,0),eq(c,1))", {{'x', x}, {'c', count}});
    ValueId filled = scan(Op::k_cumprod, apply(graph_, "select(f,1,x)", {{'x', x}, {'f', first}}));
    ValueId at_zero = scan(Op::k_cumsum, apply(graph_, "select(f,t,0)", {{'t', t}, {'f', first}}));
    ValueId ratios = scan(Op::k_cumsum, apply(graph_, "t/select(eq(x,0),1,x)", {{'t', t}, {'x', x}}));
    set(node, apply(graph_, "select(eq(c,0),r*s,a*f)",
                    {{'r', node.result()}, {'c', count}, {'s', ratios}, {'a', at_zero}, {'f', filled}}));
    return {};
}

Status Forward::moved(const Node& node, ValueId positions) {
    ir::NodeSpec spec{
        Op::k_take_along, {tangent(node.operands[0]), positions}, {{"axis", node.integer("axis")}}, {}, {}};
    spec.stated = {graph_.type(node.result())};
    set(node, graph_.make_node(std::move(spec)).at(0));
    return {};
}

Status Forward::unique(const Node& node) {
    ValueId t = tangent(node.operands[0]);
    if (node.find("axis") == nullptr) {
        ValueId count = graph_.constant_int(1);
        for (ValueId length : lengths(graph_, t)) {
            count = graph_.make(Op::k_mul, {count, length});
        }
        t = graph_.make(Op::k_reshape, {t, count});
    }
    std::vector<int64_t> axes = {node.integer_or("axis", 0)};
    set(node, graph_.make(Op::k_gather, {t, node.result(1)}, {{"axes", axes}}));
    return {};
}

/// Linear in its weights, and no results more.
Status Forward::bincount(const Node& node) {
    ValueId bins = graph_.dim_value(node.result(), 0);
    ir::NodeSpec spec{Op::k_bincount, {node.operands[0], bins, tangent(node.operands[2])}, {}, {}, {}};
    spec.stated = {graph_.type(node.result())};
    set(node, graph_.make_node(std::move(spec)).at(0));
    return {};
}

/// A region that also gives tangents: parameters are those of `body`, then a tangent for each of `seeded`.
Result<Values> append_with_tangents(GraphBuilder& region, const GraphBuilder& outer, const Graph& body,
                                    const std::vector<size_t>& seeded, const Values& tangents, Values& outputs,
                                    const std::vector<bool>& wanted) {
    Values params;
    for (const ir::Param& param : body.params) {
        params.push_back(region.param(body.type(param.value)));
    }
    std::vector<Seed> seeds;
    for (size_t i = 0; i < seeded.size(); ++i) {
        seeds.push_back({params[seeded[i]], region.param(outer.type(tangents[i]))});
    }
    outputs = append_graph(region, body, params, Symbols::kKeep);
    Values of;
    for (size_t k = 0; k < outputs.size(); ++k) {
        if (wanted[k]) {
            of.push_back(outputs[k]);
        }
    }
    return push_forward(region, seeds, of);
}

Status Forward::if_op(const Node& node) {
    std::vector<size_t> seeded;
    Values tangents;
    for (size_t k = 1; k < node.operands.size(); ++k) {
        if (has(node.operands[k])) {
            seeded.push_back(k - 1);
            tangents.push_back(tangents_[node.operands[k]]);
        }
    }
    std::vector<bool> wanted;
    for (uint32_t k = 0; k < node.result_count; ++k) {
        wanted.push_back(is_real(graph_, node.result(k)));
    }
    ir::NodeSpec spec{Op::k_if, node.operands, {}, {}, {}};
    spec.operands.insert(spec.operands.end(), tangents.begin(), tangents.end());
    for (const auto& branch : node.regions) {
        GraphBuilder region(branch->name, graph_.module());
        Values outputs;
        EMBER_TRY(Values results, append_with_tangents(region, graph_, *branch, seeded, tangents, outputs, wanted));
        for (ValueId result : results) {
            region.output(result);
        }
        spec.regions.push_back(std::make_shared<const Graph>(region.take()));
    }
    Values results = graph_.make_node(std::move(spec));
    size_t next = 0;
    for (uint32_t k = 0; k < node.result_count; ++k) {
        if (wanted[k]) {
            set(node, results[next++], k);
        }
    }
    return {};
}

/// One loop that carries values and tangents. Its operands: n, carried, their tangents, invariants, their tangents.
Status Forward::loop(const Node& node) {
    const Graph& body = *node.regions[0];
    auto carried = static_cast<size_t>(node.integer("carried"));
    size_t last = node.integer_or("while", 0) != 0 ? 1 : 0;
    std::vector<bool> operands;
    for (size_t k = 1; k < node.operands.size(); ++k) {
        operands.push_back(has(node.operands[k]));
    }
    std::vector<bool> active = loop_activity(node, operands);

    GraphBuilder region(body.name, graph_.module());
    Values arguments = {region.param({ir::DType::kI64, {}})};
    Values outer = {node.operands[0]};
    std::vector<Seed> seeds;
    int64_t now_carried = 0;
    auto bring_in = [&](size_t from, size_t to) {
        for (size_t k = from; k < to; ++k) {
            arguments.push_back(region.param(body.type(body.params[k + 1].value)));
            outer.push_back(node.operands[k + 1]);
        }
        for (size_t k = from; k < to; ++k) {
            if (active[k]) {
                outer.push_back(tangent(node.operands[k + 1]));
                seeds.push_back({arguments[k + 1], region.param(body.type(body.params[k + 1].value))});
            }
        }
    };
    bring_in(0, carried);
    now_carried = static_cast<int64_t>(outer.size()) - 1;
    bring_in(carried, operands.size());

    Values outputs = append_graph(region, body, arguments, Symbols::kKeep);
    std::vector<uint32_t> differentiated;  // results that have a tangent, in order
    Values of;
    for (size_t k = 0; k < outputs.size() - last; ++k) {
        if (k < carried ? active[k] : is_real(region, outputs[k])) {
            differentiated.push_back(static_cast<uint32_t>(k));
            of.push_back(outputs[k]);
        }
    }
    EMBER_TRY(Values tangents, push_forward(region, seeds, of));
    for (size_t k = 0; k < carried; ++k) {
        region.output(outputs[k]);
    }
    for (ValueId value : tangents) {
        region.output(value);
    }
    if (last == 1) {
        region.output(outputs.back());
    }
    std::vector<ir::Attribute> attributes = node.attributes;
    attributes[0].value = now_carried;
    auto shared = std::make_shared<const Graph>(region.take());
    Values results = graph_.make_node({Op::k_loop, std::move(outer), std::move(attributes), {shared}, {}});
    for (size_t i = 0; i < differentiated.size(); ++i) {
        set(node, results[carried + i], differentiated[i]);
    }
    return {};
}

Status Forward::call(const Node& node) {
    const Graph* callee = graph_.module() == nullptr ? nullptr : graph_.module()->find(node.string("callee"));
    if (callee == nullptr) {
        return no_derivative(node);
    }
    Values outputs = append_graph(graph_, *callee, node.operands, Symbols::kFresh);
    std::vector<Seed> seeds;
    for (ValueId operand : node.operands) {
        if (has(operand)) {
            seeds.push_back({operand, tangents_[operand]});
        }
    }
    EMBER_TRY(Values results, push_forward(graph_, seeds, outputs));
    for (uint32_t k = 0; k < node.result_count; ++k) {
        set(node, results[k], k);
    }
    return {};
}

}  // namespace

Result<Values> push_forward(GraphBuilder& builder, std::span<const Seed> tangents, std::span<const ValueId> of) {
    EMBER_CHECKED(check_seeds(builder, tangents));
    return Forward(builder).run(tangents, of);
}

}  // namespace ember::autodiff
