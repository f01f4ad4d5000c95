// Pieces of graph for the derivative rules; see shapes.h.
#include "ember/autodiff/shapes.h"

#include <algorithm>

namespace ember::autodiff {

using ir::Dim;
using ir::Op;
using ir::TensorType;

std::vector<ValueId> lengths(GraphBuilder& graph, ValueId value) {
    std::vector<ValueId> result;
    for (int axis = 0; axis < graph.type(value).rank(); ++axis) {
        result.push_back(graph.dim_value(value, axis));
    }
    return result;
}

ValueId minus(GraphBuilder& graph, ValueId a, ValueId b) {
    const ir::Literal* right = graph.graph().literal(b);
    if (right != nullptr && literal_as_int(*right) == 0) {
        return a;
    }
    const ir::Literal* left = graph.graph().literal(a);
    if (left != nullptr && right != nullptr) {
        return graph.constant_int(literal_as_int(*left) - literal_as_int(*right));
    }
    return graph.make(Op::k_sub, {a, b});
}

ValueId plus(GraphBuilder& graph, ValueId a, ValueId b) {
    const ir::Literal* left = graph.graph().literal(a);
    const ir::Literal* right = graph.graph().literal(b);
    if (left != nullptr && literal_as_int(*left) == 0) {
        return b;
    }
    if (left != nullptr && right != nullptr) {
        return graph.constant_int(literal_as_int(*left) + literal_as_int(*right));
    }
    return graph.make(Op::k_add, {a, b});
}

ValueId full_like(GraphBuilder& graph, ValueId value, double number) {
    return broadcast_like(graph, graph.constant(graph.type(value).dtype, number), value);
}

ValueId broadcast_like(GraphBuilder& graph, ValueId value, ValueId like) {
    if (graph.type(value).shape == graph.type(like).shape) {
        return value;
    }
    std::vector<ValueId> operands = lengths(graph, like);
    operands.insert(operands.begin(), value);
    return graph.make(Op::k_broadcast, std::move(operands));
}

ValueId keep_axes(GraphBuilder& graph, ValueId reduced, ValueId whole, const std::vector<int64_t>& axes) {
    std::vector<ValueId> operands = {reduced};
    for (int axis = 0; axis < graph.type(whole).rank(); ++axis) {
        bool gone = std::find(axes.begin(), axes.end(), axis) != axes.end();
        operands.push_back(gone ? graph.constant_int(1) : graph.dim_value(whole, axis));
    }
    return graph.make(Op::k_reshape, std::move(operands));
}

ValueId sum_to(GraphBuilder& graph, ValueId value, ValueId like) {
    const ir::Shape from = graph.type(value).shape;
    const ir::Shape to = graph.type(like).shape;
    check(from.size() >= to.size(), "a derivative has at least the rank of its operand");
    size_t extra = from.size() - to.size();
    std::vector<int64_t> axes;
    bool ones = false;
    for (size_t i = 0; i < from.size(); ++i) {
        bool stretched = i >= extra && to[i - extra] == Dim(1) && from[i] != Dim(1);
        if (i < extra || stretched) {
            axes.push_back(static_cast<int64_t>(i));
        }
        ones = ones || stretched;
    }
    if (axes.empty()) {
        return value;
    }
    ValueId sum = graph.make(Op::k_reduce_sum, {value}, {{"axes", axes}});
    return ones ? reshape_like(graph, sum, like) : sum;
}

ValueId slice(GraphBuilder& graph, ValueId value, int64_t axis, ValueId start, ValueId size) {
    return graph.make(Op::k_slice, {value, start, size}, {{"axis", axis}});
}

ValueId row(GraphBuilder& graph, ValueId stack, ValueId index) {
    ValueId one = slice(graph, stack, 0, index, graph.constant_int(1));
    std::vector<ValueId> operands = lengths(graph, stack);
    operands[0] = one;
    return graph.make(Op::k_reshape, std::move(operands));
}

ValueId reshape_like(GraphBuilder& graph, ValueId value, ValueId like) {
    std::vector<ValueId> operands = lengths(graph, like);
    operands.insert(operands.begin(), value);
    return graph.make(Op::k_reshape, std::move(operands));
}

ValueId apply(GraphBuilder& graph, std::string_view formula, std::initializer_list<Named> values) {
    ir::FormulaVariables variables;
    for (const Named& named : values) {
        variables[named.name] = named.value;
    }
    ir::DType dtype = graph.type(values.begin()->value).dtype;
    return ir::build_formula(graph, ir::formulas(formula)[0], variables, dtype);
}

}  // namespace ember::autodiff
