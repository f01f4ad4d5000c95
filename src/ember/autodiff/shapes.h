// Small pieces of graph that the rules of this folder share: lengths, zeros, and moving between a shape and the one it
// was broadcast or reduced from.
#pragma once

#include <string_view>
#include <vector>

#include "ember/ir/builder.h"
#include "ember/ir/formula.h"

namespace ember::autodiff {

using ir::GraphBuilder;
using ir::ValueId;

/// The lengths of a value, i64 scalars.
std::vector<ValueId> lengths(GraphBuilder& graph, ValueId value);
/// a - b and a + b of i64 scalars, constants folded.
ValueId minus(GraphBuilder& graph, ValueId a, ValueId b);
ValueId plus(GraphBuilder& graph, ValueId a, ValueId b);

/// `number` in the dtype and shape of a value.
ValueId full_like(GraphBuilder& graph, ValueId value, double number);
inline ValueId zeros_like(GraphBuilder& graph, ValueId value) {
    return full_like(graph, value, 0);
}
/// Stretches a value to the shape of another one, aligned to the right.
ValueId broadcast_like(GraphBuilder& graph, ValueId value, ValueId like);
/// The value that a reduction of `whole` over `axes` gave, with its axes back, of length 1.
ValueId keep_axes(GraphBuilder& graph, ValueId reduced, ValueId whole, const std::vector<int64_t>& axes);
/// Sums a value over the axes that broadcasting from the shape of `like` stretched; gives that shape.
ValueId sum_to(GraphBuilder& graph, ValueId value, ValueId like);

ValueId slice(GraphBuilder& graph, ValueId value, int64_t axis, ValueId start, ValueId size);
/// Row `index` of the first axis, without that axis.
ValueId row(GraphBuilder& graph, ValueId stack, ValueId index);
ValueId reshape_like(GraphBuilder& graph, ValueId value, ValueId like);

/// A formula over named values: apply(graph, "x*y", {{'x', a}, {'y', b}}).
struct Named {
    char name;
    ValueId value;
};
ValueId apply(GraphBuilder& graph, std::string_view formula, std::initializer_list<Named> values);

/// Does the value have a derivative at all: is it a float?
inline bool is_real(const GraphBuilder& graph, ValueId value) {
    return ir::is_float(graph.type(value).dtype);
}

}  // namespace ember::autodiff
