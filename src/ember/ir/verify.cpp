// The verifier: checks a finished graph node by node with the rules of infer.cpp.
#include <set>

#include "ember/ir/builder.h"

namespace ember::ir {
namespace {

Diagnostic at_node(const Graph& graph, const Node& node, const std::string& what) {
    return error(Code::kVerify, "@" + graph.name + ", node " + std::to_string(&node - graph.nodes.data()) + " (" +
                                    std::string(op_name(node.op)) + "): " + what);
}

Status verify_node(const Graph& graph, NodeId id, const Module* module) {
    const Node& node = graph.nodes[id];
    for (ValueId operand : node.operands) {
        if (operand >= graph.values.size()) {
            return at_node(graph, node, "operand out of range");
        }
        NodeId from = graph.values[operand].node;
        if (from != kNone && from >= id) {
            return at_node(graph, node, "operand stands after its user");
        }
    }
    NodeSpec spec{node.op, node.operands, node.attributes, node.regions, {}};
    for (uint32_t k = 0; k < node.result_count; ++k) {
        const Value& value = graph.values.at(node.result(k));
        if (value.node != id || value.index != k) {
            return at_node(graph, node, "result table is broken");
        }
        spec.stated.push_back(value.type);
    }
    for (const auto& region : node.regions) {
        EMBER_CHECKED(verify(*region, module));
    }
    auto types = infer_types(graph, spec, module);
    if (!types.ok()) {
        return at_node(graph, node, types.error().message);
    }
    for (uint32_t k = 0; k < node.result_count; ++k) {
        if (types.value()[k] != spec.stated[k]) {
            return at_node(graph, node,
                           "gives " + types.value()[k].to_string() + ", typed " + spec.stated[k].to_string());
        }
    }
    return {};
}

Status verify_outputs(const Graph& graph) {
    std::set<uint32_t> updated;
    for (const Output& output : graph.outputs) {
        if (output.value >= graph.values.size()) {
            return error(Code::kVerify, "@" + graph.name + ": output out of range");
        }
        if (output.updates == kNone) {
            continue;
        }
        if (output.updates >= graph.params.size() || graph.params[output.updates].kind != ParamKind::kShared) {
            return error(Code::kVerify, "@" + graph.name + ": an update must name a shared parameter");
        }
        if (!updated.insert(output.updates).second) {
            return error(Code::kVerify, "@" + graph.name + ": a shared parameter is updated twice");
        }
        const TensorType& to = graph.type(graph.params[output.updates].value);
        const TensorType& from = graph.type(output.value);
        if (to.dtype != from.dtype || to.rank() != from.rank()) {
            return error(Code::kVerify, "@" + graph.name + ": a parameter of type " + to.to_string() +
                                            " cannot be updated with " + from.to_string());
        }
    }
    return {};
}

}  // namespace

Status verify(const Graph& graph, const Module* module) {
    for (uint32_t i = 0; i < graph.params.size(); ++i) {
        ValueId value = graph.params[i].value;
        if (value >= graph.values.size() || graph.values[value].node != kNone || graph.values[value].index != i) {
            return error(Code::kVerify, "@" + graph.name + ": parameter table is broken");
        }
    }
    for (NodeId id = 0; id < graph.nodes.size(); ++id) {
        EMBER_CHECKED(verify_node(graph, id, module));
    }
    return verify_outputs(graph);
}

Status verify(const Module& module) {
    std::set<std::string_view> names;
    for (const Graph& function : module.functions) {
        if (!names.insert(function.name).second) {
            return error(Code::kVerify, "two functions are named @" + function.name);
        }
        EMBER_CHECKED(verify(function, &module));
    }
    return module.functions.empty() ? Status(error(Code::kVerify, "a module needs a function")) : Status();
}

}  // namespace ember::ir
