// The pass stabilize: sums of exponentials, shifted by their maximum so that they cannot overflow.
//
//     log(sum(exp(x)))              becomes  log(sum(exp(x - m))) + m        m: the maximum, 0 where it is infinite
//     log(sum(exp(x)) * c)                   log(sum(exp(x - m))) + m + log(c)      c: a scalar; also for / c
//     exp(x) / sum(exp(x))                   exp(x - m) / sum(exp(x - m))
//     exp(x) * (g / sum(exp(x)))             exp(x - m) / sum(exp(x - m)) * g   as in the gradient of the first
//     log(exp(x) / sum(exp(x)))              (x - m) - log(sum(exp(x - m)))
//
// Sums may have their axes back as axes of length 1, or be stretched. What is shifted already stays as it is. Rules of
// single expressions (log1p, softplus, logaddexp, …) stand in rules.def. Tests: test/filetests/stabilize,
// test/unit/stabilize_test.cpp.
#include <algorithm>

#include "ember/ir/formula.h"
#include "ember/rewrite/passes.h"
#include "ember/rewrite/rebuild.h"

namespace ember::rewrite {
namespace {

using ir::Dim;
using ir::GraphBuilder;
using ir::kNone;
using ir::Node;
using ir::NodeSpec;
using ir::Op;
using ir::ValueId;
using Axes = std::vector<int64_t>;
using Values = std::vector<ValueId>;

/// sum(exp(x)) over axes.
struct SumOfExp {
    ValueId x;
    ValueId exp;
    Axes axes;
};

std::optional<Node> producer(const GraphBuilder& graph, ValueId value, Op op) {
    const Node* node = graph.graph().producer(value);
    return node != nullptr && node->op == op ? std::optional(*node) : std::nullopt;
}

ValueId without_views(const GraphBuilder& graph, ValueId value) {
    const Node* node = graph.graph().producer(value);
    while (node != nullptr && (node->op == Op::k_reshape || node->op == Op::k_broadcast)) {
        value = node->operands[0];
        node = graph.graph().producer(value);
    }
    return value;
}

std::optional<SumOfExp> match_sum(const GraphBuilder& graph, ValueId value) {
    auto sum = producer(graph, value, Op::k_reduce_sum);
    auto exp = sum ? producer(graph, sum->operands[0], Op::k_exp) : std::nullopt;
    if (!exp || sum->integers("axes").empty() || !ir::is_float(graph.type(value).dtype)) {
        return std::nullopt;
    }
    return SumOfExp{exp->operands[0], sum->operands[0], sum->integers("axes")};
}

/// Is `value` the sum with its axes back, of length 1 or stretched, where it meets x?
bool has_axes_back(const GraphBuilder& graph, ValueId value, const SumOfExp& sum) {
    if (auto stretched = producer(graph, value, Op::k_broadcast)) {
        return has_axes_back(graph, stretched->operands[0], sum);
    }
    const ir::Shape& x = graph.type(sum.x).shape;
    const ir::Shape& have = graph.type(value).shape;
    if (have.size() > x.size()) {
        return false;
    }
    for (size_t i = 0; i < x.size(); ++i) {
        bool gone = std::find(sum.axes.begin(), sum.axes.end(), static_cast<int64_t>(i)) != sum.axes.end();
        size_t extra = x.size() - have.size();
        Dim here = i < extra ? Dim(1) : have[i - extra];
        if (here != (gone ? Dim(1) : x[i])) {
            return false;
        }
    }
    return true;
}

/// sum(exp(x)) in the place where exp(x) is divided by it.
std::optional<SumOfExp> match_divisor(const GraphBuilder& graph, ValueId value, ValueId exp) {
    auto sum = match_sum(graph, without_views(graph, value));
    return sum && sum->exp == exp && has_axes_back(graph, value, *sum) ? sum : std::nullopt;
}

bool is_shifted(const GraphBuilder& graph, ValueId x) {
    auto difference = producer(graph, x, Op::k_sub);
    if (!difference) {
        return false;
    }
    ValueId shift = without_views(graph, difference->operands[1]);
    if (auto guarded = producer(graph, shift, Op::k_select)) {
        shift = without_views(graph, guarded->operands[1]);
    }
    return producer(graph, shift, Op::k_reduce_max).has_value();
}

ValueId keep_axes(GraphBuilder& graph, ValueId reduced, const SumOfExp& sum) {
    Values operands = {reduced};
    for (int axis = 0; axis < graph.type(sum.x).rank(); ++axis) {
        bool gone = std::find(sum.axes.begin(), sum.axes.end(), axis) != sum.axes.end();
        operands.push_back(gone ? graph.constant_int(1) : graph.dim_value(sum.x, axis));
    }
    return graph.make(Op::k_reshape, std::move(operands));
}

/// x - m and the sum of its exponentials.
struct Shifted {
    ValueId x;
    ValueId exp;
    ValueId sum;
    ValueId shift;  // m without the axes; kNone where x was shifted already
};

Shifted shift(GraphBuilder& graph, const SumOfExp& sum) {
    Shifted result{sum.x, sum.exp, kNone, kNone};
    if (!is_shifted(graph, sum.x)) {
        ValueId largest = graph.make(Op::k_reduce_max, {sum.x}, {{"axes", sum.axes}});
        ir::FormulaVariables variables;
        variables['m'] = largest;
        result.shift =
            build_formula(graph, ir::formulas("select(is_finite(m),m,0)")[0], variables, graph.type(largest).dtype);
        result.x = graph.make(Op::k_sub, {sum.x, keep_axes(graph, result.shift, sum)});
        result.exp = graph.make(Op::k_exp, {result.x});
    }
    result.sum = graph.make(Op::k_reduce_sum, {result.exp}, {{"axes", sum.axes}});
    return result;
}

/// log of a sum of exponentials, itself or with its axes back.
std::optional<ValueId> log_of_sum(GraphBuilder& graph, ValueId of) {
    auto reshaped = producer(graph, of, Op::k_reshape);
    auto sum = match_sum(graph, reshaped ? reshaped->operands[0] : of);
    if (!sum || is_shifted(graph, sum->x)) {
        return std::nullopt;
    }
    Shifted shifted = shift(graph, *sum);
    ValueId log = graph.make(Op::k_add, {graph.make(Op::k_log, {shifted.sum}), shifted.shift});
    if (!reshaped) {
        return log;
    }
    ir::TensorType type = graph.type(of);
    reshaped->operands[0] = log;
    return graph.make_node({Op::k_reshape, reshaped->operands, {}, {}, {type}}).at(0);
}

/// log of a mean of exponentials: a sum times or by a scalar.
std::optional<ValueId> log_of_mean(GraphBuilder& graph, ValueId of) {
    for (Op op : {Op::k_mul, Op::k_div}) {
        auto node = producer(graph, of, op);
        if (!node || !graph.type(node->operands[1]).is_scalar()) {
            continue;
        }
        if (auto log = log_of_sum(graph, node->operands[0])) {
            ValueId factor = graph.make(Op::k_log, {node->operands[1]});
            return graph.make(op == Op::k_mul ? Op::k_add : Op::k_sub, {*log, factor});
        }
    }
    return std::nullopt;
}

std::optional<ValueId> log_of_softmax(GraphBuilder& graph, ValueId of) {
    auto quotient = producer(graph, of, Op::k_div);
    auto sum = quotient ? match_divisor(graph, quotient->operands[1], quotient->operands[0]) : std::nullopt;
    if (!sum) {
        return std::nullopt;
    }
    Shifted shifted = shift(graph, *sum);
    ValueId log = keep_axes(graph, graph.make(Op::k_log, {shifted.sum}), *sum);
    return graph.make(Op::k_sub, {shifted.x, log});
}

Values replace_log(GraphBuilder& graph, const NodeSpec& spec) {
    for (auto rule : {log_of_sum, log_of_mean, log_of_softmax}) {
        if (auto log = rule(graph, spec.operands[0])) {
            return {*log};
        }
    }
    return {};
}

Values replace_div(GraphBuilder& graph, const NodeSpec& spec) {
    auto sum = match_divisor(graph, spec.operands[1], spec.operands[0]);
    if (!sum || is_shifted(graph, sum->x)) {
        return {};
    }
    Shifted shifted = shift(graph, *sum);
    return {graph.make(Op::k_div, {shifted.exp, keep_axes(graph, shifted.sum, *sum)})};
}

/// exp(x) * (g / sum), the quotient perhaps with its axes back.
Values replace_mul(GraphBuilder& graph, const NodeSpec& spec) {
    for (size_t side = 0; side < 2; ++side) {
        ValueId exp = spec.operands[side];
        ValueId factor = spec.operands[1 - side];
        auto quotient = producer(graph, without_views(graph, factor), Op::k_div);
        auto sum = quotient ? match_sum(graph, without_views(graph, quotient->operands[1])) : std::nullopt;
        if (!sum || sum->exp != exp || is_shifted(graph, sum->x) || !has_axes_back(graph, factor, *sum) ||
            graph.type(quotient->operands[1]).shape != graph.type(quotient->result()).shape) {
            continue;
        }
        Shifted shifted = shift(graph, *sum);
        ValueId softmax = graph.make(Op::k_div, {shifted.exp, keep_axes(graph, shifted.sum, *sum)});
        ValueId g = quotient->operands[0];
        if (graph.type(g).shape == graph.type(shifted.sum).shape) {
            g = keep_axes(graph, g, *sum);
        } else if (!graph.type(g).is_scalar()) {
            continue;
        }
        return {graph.make(Op::k_mul, {softmax, g})};
    }
    return {};
}

Values stabilize_node(GraphBuilder& graph, const NodeSpec& spec) {
    Values results = spec.op == Op::k_log   ? replace_log(graph, spec)
                     : spec.op == Op::k_div ? replace_div(graph, spec)
                     : spec.op == Op::k_mul ? replace_mul(graph, spec)
                                            : Values();
    bool same = results.empty() || graph.type(results[0]).shape == spec.stated[0].shape;
    return same ? results : Values();
}

}  // namespace

ir::Module stabilize(ir::Module module) {
    bool changed = false;
    module = rebuild_functions(std::move(module), [&](const ir::Graph& graph, const ir::Module& all) {
        return rebuild_graph(graph, all, [&](GraphBuilder& builder, const NodeSpec& spec) {
            Values results = stabilize_node(builder, spec);
            changed = changed || !results.empty();
            return results;
        });
    });
    return changed ? simplify(std::move(module)) : std::move(module);
}

}  // namespace ember::rewrite
