// Derivatives of what moves elements by their order: each cotangent goes back to where its element stood.
#include <numeric>

#include "ember/autodiff/reverse.h"

namespace ember::autodiff {

using ir::Attribute;
using ir::DType;
using ir::Node;
using ir::Op;
using Axes = std::vector<int64_t>;

ValueId scatter_along(GraphBuilder& graph, ValueId x, ValueId updates, ValueId index, const Node& node) {
    int rank = graph.type(x).rank();
    std::vector<ValueId> operands = {zeros_like(graph, x), updates};
    Axes axes(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
    for (int axis = 0; axis < rank; ++axis) {
        if (axis == node.integer("axis")) {
            operands.push_back(index);
            continue;
        }
        ValueId length = graph.dim_value(index, axis);
        std::vector<ValueId> shape(static_cast<size_t>(rank) + 1, graph.constant_int(1));
        shape[0] = graph.make(Op::k_iota, {length}, {{"dtype", DType::kI64}});
        shape[static_cast<size_t>(axis) + 1] = length;
        operands.push_back(graph.make(Op::k_reshape, std::move(shape)));
    }
    std::vector<Attribute> attributes = {{"axes", axes}, {"mode", std::string("add")}};
    if (node.find("bounds") != nullptr) {
        attributes.push_back({"bounds", std::string(node.string("bounds"))});
    }
    return graph.make(Op::k_scatter, std::move(operands), std::move(attributes));
}

Status reverse_sort(Reverse& sweep, const Node& node) {
    ValueId x = node.operands[0];
    ValueId positions = sweep.graph.make(Op::k_argsort, {x}, node.attributes);
    sweep.add(x, scatter_along(sweep.graph, x, sweep.cotangent(node.result()), positions, node));
    return {};
}

Status reverse_topk(Reverse& sweep, const Node& node) {
    ValueId x = node.operands[0];
    sweep.add(x, scatter_along(sweep.graph, x, sweep.cotangent(node.result()), node.result(1), node));
    return {};
}

/// Of equal elements the first one is taken.
Status reverse_unique(Reverse& sweep, const Node& node) {
    GraphBuilder& graph = sweep.graph;
    ValueId x = node.operands[0];
    ValueId g = sweep.cotangent(node.result());
    ValueId first = node.result(1);
    if (node.find("axis") != nullptr) {
        sweep.add(x, graph.make(Op::k_scatter, {zeros_like(graph, x), g, first},
                                {{"axes", Axes{node.integer("axis")}}, {"mode", std::string("add")}}));
        return {};
    }
    ValueId count = graph.constant_int(1);
    for (ValueId length : lengths(graph, x)) {
        count = graph.make(Op::k_mul, {count, length});
    }
    ValueId flat = graph.make(Op::k_broadcast, {graph.constant(graph.type(x).dtype, 0.0), count});
    flat = graph.make(Op::k_scatter, {flat, g, first}, {{"axes", Axes{0}}, {"mode", std::string("add")}});
    sweep.add(x, reshape_like(graph, flat, x));
    return {};
}

Status reverse_bincount(Reverse& sweep, const Node& node) {
    ValueId g = sweep.cotangent(node.result());
    ValueId weights = node.operands[2];
    ir::NodeSpec gather{Op::k_gather, {g, node.operands[0]}, {{"axes", Axes{0}}}, {}, {sweep.graph.type(weights)}};
    sweep.add(weights, sweep.graph.make_node(std::move(gather)).at(0));
    return {};
}

}  // namespace ember::autodiff
