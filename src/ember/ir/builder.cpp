// Building graphs with merging of equal nodes, and their canonical order: see builder.h.
#include "ember/ir/builder.h"

#include <algorithm>
#include <numeric>

namespace ember::ir {
namespace {

void mix(size_t& seed, size_t value) {
    seed = (seed ^ value) * 0x9e3779b97f4a7c15ULL + (seed >> 29);
}

size_t hash_value(const AttributeValue& value) {
    size_t seed = value.index();
    if (const auto* number = std::get_if<int64_t>(&value)) {
        mix(seed, static_cast<size_t>(*number));
    } else if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
        for (int64_t item : *list) {
            mix(seed, static_cast<size_t>(item));
        }
    } else if (const auto* text = std::get_if<std::string>(&value)) {
        mix(seed, std::hash<std::string>()(*text));
    } else if (const auto* dtype = std::get_if<DType>(&value)) {
        mix(seed, static_cast<size_t>(*dtype));
    } else {
        mix(seed, std::hash<std::string>()(std::get<Literal>(value).bytes));
    }
    return seed;
}

size_t hash_spec(const NodeSpec& spec) {
    auto seed = static_cast<size_t>(spec.op);
    for (ValueId operand : spec.operands) {
        mix(seed, operand);
    }
    for (const Attribute& attribute : spec.attributes) {
        mix(seed, hash_value(attribute.value));
    }
    return seed;
}

bool says_nothing(const Attribute& attribute) {
    const AttributeValue& value = attribute.value;
    return (attribute.name == "step" && value == AttributeValue(int64_t{1})) ||
           (attribute.name == "while" && value == AttributeValue(int64_t{0})) ||
           (attribute.name == "descending" && value == AttributeValue(int64_t{0})) ||
           (attribute.name == "side" && value == AttributeValue(std::string("left"))) ||
           (attribute.name == "batch" && value == AttributeValue(std::vector<int64_t>())) ||
           (attribute.name == "bounds" && value == AttributeValue(std::string("raise")));
}

/// Equal nodes have equal attributes, however they were given.
void normalize(Op op, std::vector<Attribute>& given) {
    std::erase_if(given, says_nothing);
    std::span<const AttributeInfo> rows = attributes(op);
    auto place = [&](const Attribute& attribute) {
        return std::find_if(rows.begin(), rows.end(), [&](const auto& row) { return row.name == attribute.name; });
    };
    std::stable_sort(given.begin(), given.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
}

bool may_merge(const NodeSpec& spec) {
    return spec.regions.empty() && spec.op != Op::k_host_call;
}

std::vector<ValueId> result_ids(const Node& node) {
    std::vector<ValueId> results(node.result_count);
    std::iota(results.begin(), results.end(), node.first_result);
    return results;
}

}  // namespace

void fail_types(const Diagnostic& diagnostic) {
    if (diagnostic.code == Code::kShape || diagnostic.code == Code::kType) {
        throw Contradiction(diagnostic.to_string());
    }
    unreachable(diagnostic.to_string());
}

GraphBuilder::GraphBuilder(std::string name, const Module* module) : module_(module) {
    graph_.name = std::move(name);
}

ValueId GraphBuilder::param(TensorType type, ParamKind kind) {
    auto id = static_cast<ValueId>(graph_.values.size());
    graph_.values.push_back({std::move(type), kNone, static_cast<uint32_t>(graph_.params.size())});
    graph_.params.push_back({id, kind});
    return id;
}

const Node* GraphBuilder::find_node(const NodeSpec& spec, size_t hash, Stated stated) const {
    auto found = known_.find(hash);
    if (!may_merge(spec) || found == known_.end()) {
        return nullptr;
    }
    auto agrees = [&](const Node& node) {
        for (uint32_t k = 0; k < spec.stated.size(); ++k) {
            if (k >= node.result_count || graph_.type(node.result(k)) != spec.stated[k]) {
                return false;
            }
        }
        return true;
    };
    for (NodeId id : found->second) {
        const Node& node = graph_.nodes[id];
        if (node.op == spec.op && node.operands == spec.operands && node.attributes == spec.attributes &&
            (stated == Stated::kIgnored || agrees(node))) {
            return &node;
        }
    }
    return nullptr;
}

std::vector<ValueId> GraphBuilder::find(NodeSpec spec) const {
    normalize(spec.op, spec.attributes);
    const Node* node = find_node(spec, hash_spec(spec), Stated::kIgnored);
    return node == nullptr ? std::vector<ValueId>() : result_ids(*node);
}

Result<std::vector<ValueId>> GraphBuilder::add(NodeSpec spec) {
    for (ValueId operand : spec.operands) {
        check(operand < graph_.values.size(), "operand of another graph");
    }
    normalize(spec.op, spec.attributes);
    size_t hash = hash_spec(spec);
    if (const Node* node = find_node(spec, hash, Stated::kMustAgree)) {
        return result_ids(*node);
    }
    EMBER_TRY(std::vector<TensorType> types, infer_types(graph_, spec, module_));
    auto id = static_cast<NodeId>(graph_.nodes.size());
    Node node{spec.op, std::move(spec.operands), std::move(spec.attributes)};
    node.regions = std::move(spec.regions);
    node.first_result = static_cast<ValueId>(graph_.values.size());
    node.result_count = static_cast<uint32_t>(types.size());
    for (uint32_t k = 0; k < types.size(); ++k) {
        graph_.values.push_back({std::move(types[k]), id, k});
    }
    known_[hash].push_back(id);
    graph_.nodes.push_back(std::move(node));
    return result_ids(graph_.nodes.back());
}

Result<ValueId> GraphBuilder::add_one(NodeSpec spec) {
    EMBER_TRY(std::vector<ValueId> results, add(std::move(spec)));
    check(results.size() == 1, "op with one result");
    return results[0];
}

std::vector<ValueId> GraphBuilder::make_node(NodeSpec spec) {
    auto results = add(std::move(spec));
    if (!results.ok()) {
        fail_types(results.error());
    }
    return std::move(results).value();
}

ValueId GraphBuilder::make(Op op, std::vector<ValueId> operands, std::vector<Attribute> attributes) {
    return make_node({op, std::move(operands), std::move(attributes)}).at(0);
}

ValueId GraphBuilder::constant(Literal literal) {
    return make(Op::k_const, {}, {{"value", std::move(literal)}});
}

ValueId GraphBuilder::dim_value(ValueId value, int axis) {
    Dim dim = type(value).shape.at(static_cast<size_t>(axis));
    if (dim.is_static()) {
        return constant_int(dim.size());
    }
    return make(Op::k_dim, {value}, {{"axis", static_cast<int64_t>(axis)}});
}

void copy_node(const Graph& from, const Node& node, GraphBuilder& builder, std::vector<ValueId>& map) {
    NodeSpec spec{node.op, {}, node.attributes, node.regions, {}};
    for (ValueId operand : node.operands) {
        spec.operands.push_back(map[operand]);
    }
    for (uint32_t k = 0; k < node.result_count; ++k) {
        spec.stated.push_back(from.type(node.result(k)));
    }
    std::vector<ValueId> results = builder.make_node(std::move(spec));
    for (uint32_t k = 0; k < node.result_count; ++k) {
        map[node.result(k)] = results[k];
    }
}

std::vector<NodeId> canonical_order(const Graph& graph) {
    std::vector<NodeId> order;
    order.reserve(graph.nodes.size());
    std::vector<bool> done(graph.nodes.size(), false);
    std::vector<std::pair<NodeId, size_t>> stack;
    for (const Output& output : graph.outputs) {
        NodeId root = graph.values[output.value].node;
        if (root != kNone && !done[root]) {
            stack.emplace_back(root, 0);
        }
        while (!stack.empty()) {
            auto& [id, next] = stack.back();
            const Node& node = graph.nodes[id];
            if (next < node.operands.size()) {
                NodeId operand = graph.values[node.operands[next++]].node;
                if (operand != kNone && !done[operand]) {
                    stack.emplace_back(operand, 0);
                }
                continue;
            }
            if (!done[id]) {
                done[id] = true;
                order.push_back(id);
            }
            stack.pop_back();
        }
    }
    return order;
}

Graph canonicalize_order(const Graph& graph) {
    Graph result;
    result.name = graph.name;
    result.values.reserve(graph.values.size());
    result.nodes.reserve(graph.nodes.size());
    std::vector<ValueId> map(graph.values.size(), kNone);
    for (const Param& param : graph.params) {
        map[param.value] = static_cast<ValueId>(result.values.size());
        result.params.push_back({map[param.value], param.kind});
        result.values.push_back(graph.values[param.value]);
    }
    for (NodeId id : canonical_order(graph)) {
        Node node = graph.nodes[id];
        for (ValueId& operand : node.operands) {
            operand = map[operand];
        }
        auto first = static_cast<ValueId>(result.values.size());
        for (uint32_t k = 0; k < node.result_count; ++k) {
            map[node.result(k)] = first + k;
            result.values.push_back({graph.type(node.result(k)), static_cast<NodeId>(result.nodes.size()), k});
        }
        node.first_result = first;
        for (std::shared_ptr<const Graph>& region : node.regions) {
            region = std::make_shared<Graph>(canonicalize_order(*region));
        }
        result.nodes.push_back(std::move(node));
    }
    for (const Output& output : graph.outputs) {
        result.outputs.push_back({map[output.value], output.updates});
    }
    return result;
}

}  // namespace ember::ir
