// What the rules of views and reductions share: reading specs and shapes.
#pragma once

#include <algorithm>

#include "ember/rewrite/simplifier.h"

namespace ember::rewrite {

using ir::Dim;
using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;
using ir::TensorType;
using Axes = std::vector<int64_t>;
using Values = std::vector<ValueId>;
using Replaced = std::optional<ValueId>;

/// The rules of reductions, scans, contractions and casts; nullptr: none.
ViewRule reduction_rule(ir::Op op);

/// A spec's attributes by name.
inline Node attributes_of(const NodeSpec& spec) {
    Node node{spec.op, {}, spec.attributes};
    return node;
}

inline const Shape& shape_of(const Simplifier& s, ValueId value) {
    return s.graph.type(value).shape;
}
inline Dim dim_of(const Simplifier& s, ValueId value, int64_t axis) {
    return shape_of(s, value).at(static_cast<size_t>(axis));
}

inline bool contains(const Axes& axes, int64_t axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

inline Values tail(const Values& operands) {
    return {operands.begin() + 1, operands.end()};
}
inline Values with_front(ValueId first, Values rest) {
    rest.insert(rest.begin(), first);
    return rest;
}

inline Replaced again(Simplifier& s, const NodeSpec& spec, Values operands, std::vector<ir::Attribute> attributes) {
    return s.add({spec.op, std::move(operands), std::move(attributes), {}, spec.stated}).at(0);
}

}  // namespace ember::rewrite
