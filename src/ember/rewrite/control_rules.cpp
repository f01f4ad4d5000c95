// Control flow whose way is known at compile time, and asserts whose conditions hold.
#include <algorithm>

#include "ember/rewrite/simplifier.h"

namespace ember::rewrite {
namespace {

using ir::Op;
using Values = std::vector<ValueId>;
using Replaced = std::optional<Values>;

/// The value of a bool constant, all of whose elements are equal.
std::optional<bool> truth(const Simplifier& s, ValueId value) {
    const ir::Literal* literal = splat(s.graph.graph(), value);
    return literal == nullptr ? std::nullopt : std::optional(literal_as_int(*literal) != 0);
}

Replaced replace_if(Simplifier& s, const NodeSpec& spec) {
    std::optional<bool> condition = truth(s, spec.operands[0]);
    if (!condition) {
        return std::nullopt;
    }
    return s.append(*spec.regions[*condition ? 0 : 1], {spec.operands.begin() + 1, spec.operands.end()});
}

/// No step, or one.
Replaced replace_loop(Simplifier& s, const NodeSpec& spec) {
    const ir::Graph& body = *spec.regions[0];
    ir::Node node{spec.op, {}, spec.attributes};
    auto carried = static_cast<size_t>(node.integer("carried"));
    size_t last = node.integer_or("while", 0) != 0 ? 1 : 0;
    std::optional<int64_t> trips = s.number(spec.operands[0]);
    if (trips == 0 && body.outputs.size() == carried + last) {
        auto first = spec.operands.begin() + 1;
        return Values(first, first + static_cast<std::ptrdiff_t>(carried));
    }
    if (trips != 1) {
        return std::nullopt;
    }
    Values arguments = spec.operands;
    arguments[0] = s.graph.constant_int(0);
    Values results = s.append(body, arguments);
    results.resize(results.size() - last);
    for (size_t k = carried; k < results.size(); ++k) {
        Values operands = {results[k], s.graph.constant_int(1)};
        for (int axis = 0; axis < s.graph.type(results[k]).rank(); ++axis) {
            operands.push_back(s.length(results[k], axis));
        }
        results[k] = s.make(Op::k_reshape, std::move(operands));
    }
    return results;
}

Replaced replace_assert(Simplifier& s, NodeSpec& spec) {
    Values open = {spec.operands[0]};
    std::copy_if(spec.operands.begin() + 1, spec.operands.end(), std::back_inserter(open),
                 [&](ValueId condition) { return truth(s, condition) != true; });
    if (open.size() == 1) {
        return open;
    }
    spec.operands = std::move(open);
    return std::nullopt;
}

}  // namespace

std::optional<Values> replace_control(Simplifier& simplifier, NodeSpec& spec) {
    switch (spec.op) {
        case Op::k_if:
            return replace_if(simplifier, spec);
        case Op::k_loop:
            return replace_loop(simplifier, spec);
        case Op::k_assert:
            return replace_assert(simplifier, spec);
        default:
            return std::nullopt;
    }
}

}  // namespace ember::rewrite
