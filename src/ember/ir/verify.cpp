// The verifier: checks a finished graph node by node with the rules of infer.cpp.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "ember/ir/builder.h"

namespace ember::ir {
namespace {

Diagnostic at_node(const Graph& graph, const Node& node, const std::string& what) {
    return error(Code::kVerify, "@" + graph.name + ", node " + std::to_string(&node - graph.nodes.data()) + " (" +
                                    std::string(op_name(node.op)) + "): " + what);
}

bool has_state(const Graph& region) {
    auto is_state = [](const Param& param) { return param.kind != ParamKind::kInput; };
    auto is_update = [](const Output& output) { return output.updates != kNone; };
    return std::any_of(region.params.begin(), region.params.end(), is_state) ||
           std::any_of(region.outputs.begin(), region.outputs.end(), is_update);
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
        if (node.result(k) >= graph.values.size()) {
            return at_node(graph, node, "result out of range");
        }
        const Value& value = graph.values[node.result(k)];
        if (value.node != id || value.index != k) {
            return at_node(graph, node, "result table is broken");
        }
        spec.stated.push_back(value.type);
    }
    for (const auto& region : node.regions) {
        if (has_state(*region)) {
            return at_node(graph, node, "a region has plain parameters and no updates");
        }
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

bool fills_blocks(const TensorType& type) {
    return !type.is_scalar() &&
           (type.shape.back().is_symbol() || type.shape.back().size() % info(type.dtype).block_elements == 0);
}

void list_callees(const Graph& graph, std::vector<std::string_view>& callees) {
    for (const Node& node : graph.nodes) {
        if (node.op == Op::k_call) {
            callees.push_back(node.string("callee"));
        }
        for (const auto& region : node.regions) {
            list_callees(*region, callees);
        }
    }
}

/// Calls end: no function calls itself, and chains of calls are short enough for any stack.
class CallChecker {
public:
    explicit CallChecker(const Module& module) : module_(module) {
        for (const Graph& function : module.functions) {
            by_name_.emplace(function.name, &function);
        }
    }

    Status check_all() {
        for (const Graph& function : module_.functions) {
            EMBER_CHECKED(visit(function, 1));
        }
        return {};
    }

private:
    static constexpr int kMaxDepth = 64;

    Status visit(const Graph& function, int depth) {
        auto [place, is_new] = height_.emplace(&function, kOpen);
        if (!is_new && place->second == kOpen) {
            return error(Code::kVerify, "@" + function.name + " calls itself");
        }
        if (depth + std::max(place->second, 0) > kMaxDepth) {
            return error(Code::kVerify, "@" + function.name + ": calls nest deeper than " + std::to_string(kMaxDepth));
        }
        if (!is_new) {
            return {};
        }
        std::vector<std::string_view> callees;
        list_callees(function, callees);
        int height = 0;
        for (std::string_view callee : callees) {
            auto next = by_name_.find(callee);
            if (next == by_name_.end()) {
                return error(Code::kVerify,
                             "@" + function.name + " calls @" + std::string(callee) + ", which is not there");
            }
            EMBER_CHECKED(visit(*next->second, depth + 1));
            height = std::max(height, height_.at(next->second) + 1);
        }
        height_.at(&function) = height;
        return {};
    }

    static constexpr int kOpen = -1;  // its calls are being followed
    const Module& module_;
    std::unordered_map<std::string_view, const Graph*> by_name_;
    std::unordered_map<const Graph*, int> height_;  // calls below it
};

}  // namespace

Status verify(const Graph& graph, const Module* module) {
    for (uint32_t i = 0; i < graph.params.size(); ++i) {
        ValueId value = graph.params[i].value;
        if (value >= graph.values.size() || graph.values[value].node != kNone || graph.values[value].index != i) {
            return error(Code::kVerify, "@" + graph.name + ": parameter table is broken");
        }
        const TensorType& type = graph.type(value);
        if (is_quantized(type.dtype) && !fills_blocks(type)) {
            return error(Code::kVerify, "@" + graph.name + ": the last axis of " + type.to_string() +
                                            " must be a multiple of " +
                                            std::to_string(info(type.dtype).block_elements));
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
    if (module.functions.empty()) {
        return error(Code::kVerify, "a module needs a function");
    }
    return CallChecker(module).check_all();
}

}  // namespace ember::ir
