// Which rules of the table apply to a graph as it stands.
#pragma once

#include <set>
#include <string_view>

#include "ember/ir/graph.h"

namespace ember::opt {

/// Adds the names of all rules that match at some node, regions included.
void list_rules(const ir::Graph& graph, std::set<std::string_view>& used);

}  // namespace ember::opt
