// Grouping: which nodes share a kernel. Groups are numbered in the order in which they run; a node joins the latest
// group that any operand needs, if it walks the same space in the same way, so that no cycle can arise.
#pragma once

#include <optional>
#include <vector>

#include "ember/ir/graph.h"

namespace ember::lower {

/// How a node's results come about.
enum class Role : uint8_t {
    kHost,     // rank-0, computed by the driver in a register
    kVirtual,  // an index map (views, gather) or a cheap expression, computed wherever it is read
    kGrouped,  // computed by the kernel of its group
    kOpaque,   // a step of its own
};

struct Group {
    bool opaque = false;
    ir::NodeId node = ir::kNone;  // of an opaque group
    ir::Shape space;
    bool split = false;            // have reductions fixed the column axes?
    std::vector<int> column_axes;  // axes of the space, ascending
    std::vector<ir::NodeId> members;

    std::vector<int> row_axes() const;
};

struct Grouping {
    std::vector<Role> role;  // by node
    std::vector<int> group;  // by node, -1 unless grouped or opaque
    std::vector<Group> groups;
    std::vector<bool> escapes;   // by value: is it read outside its group?
    std::vector<int> use_count;  // by value: reading nodes and outputs
    // By node: the last group that must have run for the lengths of its results to be known, -1 if none.
    std::vector<int> lengths_ready;

    bool is_host(const ir::Graph& graph, ir::ValueId value) const;
};

Grouping group_nodes(const ir::Graph& graph);

/// The parts that two equal-sized shapes have in common: axes [from_begin, from_end) hold the elements of
/// [to_begin, to_end). One segment of everything where lengths cannot be matched.
struct ReshapeSegment {
    size_t from_begin, from_end, to_begin, to_end;
};
std::vector<ReshapeSegment> match_reshape(const ir::Shape& from, const ir::Shape& to);

/// Simple instructions that one element of a map costs; transcendental ones count more.
int map_cost(ir::Op op);

}  // namespace ember::lower
