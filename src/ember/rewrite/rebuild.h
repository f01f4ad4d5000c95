// What passes share: running over all graphs of a module, regions included.
#pragma once

#include <functional>

#include "ember/ir/builder.h"

namespace ember::rewrite {

/// Makes each function anew. Functions are found by name in the module that the callback is given.
ir::Module rebuild_functions(ir::Module module,
                             const std::function<ir::Graph(const ir::Graph&, const ir::Module&)>& rebuild);

/// Copies a graph node by node through a builder; `rewrite` may give other values for a node's results, and nothing to
/// have it copied. Regions are rewritten in the same way, first.
using RewriteNode = std::function<std::vector<ir::ValueId>(ir::GraphBuilder& builder, const ir::NodeSpec& spec)>;
ir::Graph rebuild_graph(const ir::Graph& graph, const ir::Module& module, const RewriteNode& rewrite);

}  // namespace ember::rewrite
