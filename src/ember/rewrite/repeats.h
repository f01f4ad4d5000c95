// Finds equal sub-graphs that repeat: the layers of a deep model that was built flat. Used by outline_layers.
//
// Nodes with equal surroundings get equal hashes; the nodes of one hash are anchors, one an occurrence. From them the
// occurrences grow in step, a node of each at a time: upwards to operands, and down to users that are dead ends for the
// rest (gradients of weights, updates). A step is taken if the nodes are equal, distinct and of no occurrence yet, and
// if each occurrence stays convex: no path leaves it and comes back. An operand that is the same for all, or belongs to
// another occurrence, is a parameter; that is where one layer ends and the next one begins. Time is linear in the nodes
// taken; anchors are tried out on a few occurrences first.
// Tests: test/unit/outline_test.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "ember/ir/graph.h"

namespace ember::rewrite {

struct Repeats {
    size_t count = 0;               // occurrences
    std::vector<ir::NodeId> nodes;  // of position p and occurrence k: nodes[p * count + k]; users stand after operands

    size_t size() const { return count == 0 ? 0 : nodes.size() / count; }  // nodes of one occurrence
    ir::NodeId at(size_t position, size_t occurrence) const { return nodes[position * count + occurrence]; }
};

/// The repeats that save most nodes; empty where none is worth a function.
Repeats find_repeats(const ir::Graph& graph);

}  // namespace ember::rewrite
