// The state of one reverse sweep, as the rules see it: which values matter, and the cotangents gathered so far.
#pragma once

#include <span>
#include <vector>

#include "ember/autodiff/grad.h"
#include "ember/autodiff/shapes.h"

namespace ember::autodiff {

class Reverse {
public:
    explicit Reverse(GraphBuilder& builder) : graph(builder) {}

    GraphBuilder& graph;

    /// Does a cotangent of this value lead anywhere?
    bool wants(ValueId value) const { return value < active_.size() && active_[value]; }
    /// What was gathered for a value so far; kNone: nothing.
    ValueId cotangent(ValueId value) const { return value < cotangents_.size() ? cotangents_[value] : ir::kNone; }
    ValueId cotangent_or_zero(ValueId value);
    /// Adds to a value's cotangent, if it is wanted. The contribution has the value's shape.
    void add(ValueId value, ValueId contribution);

    enum class At { kWholeGraph, kStopAtWrt };
    Result<std::vector<ValueId>> run(std::span<const Seed> seeds, std::span<const ValueId> wrt, At at);

private:
    std::vector<bool> active_;
    std::vector<ValueId> cotangents_;
    Status failure_;
};

/// Which values are floats that depend on active ones. `active` has a flag for every value, set for the sources.
void spread_activity(const ir::Graph& graph, std::vector<bool>& active, const std::vector<bool>& stops);

/// Which of a loop's carried values and invariants have a derivative, seen from inside: a flag for each operand but the
/// first one, given those of the operands.
std::vector<bool> loop_activity(const ir::Node& loop, std::vector<bool> active);

/// Gives the operands' cotangents for those of the results. The node is a copy: the graph grows meanwhile.
using ReverseRule = Status (*)(Reverse& sweep, const ir::Node& node);
/// nullptr: the op has no derivative.
ReverseRule reverse_rule(ir::Op op);

/// `updates` added to zeros of the shape of `x` at `index` along the node's axis, as its `bounds` says, if it has any:
/// a scatter over all axes, with an iota for each axis but that one.
ValueId scatter_along(GraphBuilder& graph, ValueId x, ValueId updates, ValueId index, const ir::Node& node);
Status reverse_sort(Reverse& sweep, const ir::Node& node);
Status reverse_topk(Reverse& sweep, const ir::Node& node);
Status reverse_unique(Reverse& sweep, const ir::Node& node);
Status reverse_bincount(Reverse& sweep, const ir::Node& node);

Status reverse_if(Reverse& sweep, const ir::Node& node);
Status reverse_loop(Reverse& sweep, const ir::Node& node);
Status reverse_call(Reverse& sweep, const ir::Node& node);

/// Floats, and derivatives of their values' dtype and rank?
Status check_seeds(const GraphBuilder& graph, std::span<const Seed> seeds);

/// The product of the others, for any number of zeros: c counts the zeros, p is the product of the rest.
inline constexpr std::string_view kProductOfOthers =
    "g*select(eq(x,0),select(eq(c,1),p,0),select(eq(c,0),p/select(eq(x,0),1,x),0))";

Diagnostic no_derivative(const ir::Node& node);

}  // namespace ember::autodiff
