// Accessors of nodes and graphs: see graph.h.
#include "ember/ir/graph.h"

#include "ember/support/check.h"

namespace ember::ir {

const AttributeValue* Node::find(std::string_view name) const {
    for (const Attribute& attribute : attributes) {
        if (attribute.name == name) {
            return &attribute.value;
        }
    }
    return nullptr;
}

int64_t Node::integer(std::string_view name) const {
    const AttributeValue* value = find(name);
    check(value != nullptr && std::holds_alternative<int64_t>(*value), "missing integer attribute");
    return std::get<int64_t>(*value);
}

int64_t Node::integer_or(std::string_view name, int64_t fallback) const {
    return find(name) == nullptr ? fallback : integer(name);
}

const std::vector<int64_t>& Node::integers(std::string_view name) const {
    static const std::vector<int64_t> kEmpty;
    const AttributeValue* value = find(name);
    return value == nullptr ? kEmpty : std::get<std::vector<int64_t>>(*value);
}

std::string_view Node::string(std::string_view name) const {
    const AttributeValue* value = find(name);
    check(value != nullptr, "missing string attribute");
    return std::get<std::string>(*value);
}

std::string_view Node::string_or(std::string_view name, std::string_view fallback) const {
    return find(name) == nullptr ? fallback : string(name);
}

const Node* Graph::producer(ValueId id) const {
    NodeId node = values[id].node;
    return node == kNone ? nullptr : &nodes[node];
}

const Literal* Graph::literal(ValueId id) const {
    const Node* node = producer(id);
    return node != nullptr && node->op == Op::k_const ? &node->literal() : nullptr;
}

const Graph* Module::find(std::string_view name) const {
    for (const Graph& function : functions) {
        if (function.name == name) {
            return &function;
        }
    }
    return nullptr;
}

}  // namespace ember::ir
