// The reverse sweep: from the seeds back over the nodes that lie between them and what is asked for, each node once.
#include "ember/autodiff/reverse.h"

#include <algorithm>

namespace ember::autodiff {

using ir::kNone;
using ir::Node;
using ir::NodeId;

namespace {

Status check_real(const GraphBuilder& graph, ValueId value, std::string_view what) {
    const ir::TensorType& type = graph.type(value);
    if (ir::is_float(type.dtype)) {
        return {};
    }
    return error(Code::kType, "gradient: " + std::string(what) + " must be a float tensor, not " + type.to_string());
}

}  // namespace

Status check_seeds(const GraphBuilder& graph, std::span<const Seed> seeds) {
    for (const Seed& seed : seeds) {
        EMBER_CHECKED(check_real(graph, seed.value, "what is differentiated"));
        const ir::TensorType& value = graph.type(seed.value);
        const ir::TensorType& derivative = graph.type(seed.derivative);
        if (value.dtype != derivative.dtype || value.rank() != derivative.rank()) {
            return error(Code::kType, "gradient: a derivative of type " + derivative.to_string() +
                                          " does not belong to a value of type " + value.to_string());
        }
    }
    return {};
}

Diagnostic no_derivative(const Node& node) {
    std::string name(op_name(node.op));
    if (node.op == ir::Op::k_host_call) {
        name += " " + std::string(node.string("id"));
    }
    return error(Code::kUnsupported, "gradient: " + name + " has no derivative");
}

void spread_activity(const ir::Graph& graph, std::vector<bool>& active, const std::vector<bool>& stops) {
    for (const Node& node : graph.nodes) {
        bool any = std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId id) { return active[id]; });
        for (uint32_t k = 0; k < node.result_count; ++k) {
            ValueId result = node.result(k);
            bool real = ir::is_float(graph.type(result).dtype) || ir::is_complex(graph.type(result).dtype);
            active[result] = active[result] || (any && real && !stops[result]);
        }
    }
}

ValueId Reverse::cotangent_or_zero(ValueId value) {
    ValueId known = cotangent(value);
    return known == kNone ? zeros_like(graph, value) : known;
}

void Reverse::add(ValueId value, ValueId contribution) {
    if (!wants(value)) {
        return;
    }
    ValueId& sum = cotangents_.at(value);
    if (sum == kNone) {
        sum = contribution;
        return;
    }
    auto both = graph.add_one({ir::Op::k_add, {sum, contribution}});
    if (both.ok()) {
        sum = both.value();
    } else if (failure_.ok()) {  // a symbol that the graph holds to be two numbers
        failure_ = both.error();
    }
}

Result<std::vector<ValueId>> Reverse::run(std::span<const Seed> seeds, std::span<const ValueId> wrt, At at) {
    size_t values = graph.graph().values.size();
    active_.assign(values, false);
    cotangents_.assign(values, kNone);
    std::vector<bool> stops(values, false);
    for (ValueId value : wrt) {
        active_.at(value) = true;
        stops.at(value) = at == At::kStopAtWrt;
    }
    spread_activity(graph.graph(), active_, stops);
    for (const Seed& seed : seeds) {
        add(seed.value, seed.derivative);
    }
    for (auto id = static_cast<NodeId>(graph.graph().nodes.size()); id-- > 0;) {
        const Node& node = graph.graph().nodes[id];
        bool reached = false;
        for (uint32_t k = 0; k < node.result_count; ++k) {
            reached = reached || (cotangent(node.result(k)) != kNone && !stops[node.result(k)]);
        }
        bool leads_on = std::any_of(node.operands.begin(), node.operands.end(), [&](ValueId v) { return wants(v); });
        if (!reached || !leads_on) {
            continue;
        }
        ReverseRule rule = reverse_rule(node.op);
        if (rule == nullptr) {
            return no_derivative(node);
        }
        EMBER_CHECKED(rule(*this, Node(node)));
        EMBER_CHECKED(failure_);
    }
    std::vector<ValueId> results;
    for (ValueId value : wrt) {
        results.push_back(cotangent_or_zero(value));
    }
    return results;
}

Result<std::vector<ValueId>> gradient(GraphBuilder& builder, ValueId cost, std::span<const ValueId> wrt) {
    EMBER_CHECKED(check_real(builder, cost, "the cost"));
    if (!builder.type(cost).is_scalar()) {
        return error(Code::kShape, "gradient: the cost must be a scalar, not " + builder.type(cost).to_string());
    }
    Seed seed{cost, builder.constant(builder.type(cost).dtype, 1.0)};
    return pull_back(builder, {&seed, 1}, wrt);
}

Result<std::vector<ValueId>> pull_back(GraphBuilder& builder, std::span<const Seed> cotangents,
                                       std::span<const ValueId> wrt) {
    EMBER_CHECKED(check_seeds(builder, cotangents));
    for (ValueId value : wrt) {
        EMBER_CHECKED(check_real(builder, value, "a variable"));
    }
    return Reverse(builder).run(cotangents, wrt, Reverse::At::kWholeGraph);
}

}  // namespace ember::autodiff
