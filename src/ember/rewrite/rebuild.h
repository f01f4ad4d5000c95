// What passes share: running over all graphs of a module, regions included.
#pragma once

#include <functional>
#include <unordered_map>
#include <unordered_set>

#include "ember/ir/append.h"
#include "ember/ir/builder.h"

namespace ember::rewrite {

/// Symbols of an old graph that turn out to equal others of the new one, or numbers: types that the old graph states
/// further on say the new ones.
class SymbolRenames {
public:
    /// The symbols of this type exist in the new graph.
    void keep(const ir::TensorType& type);
    void apply(std::vector<ir::TensorType>& stated) const;
    /// `found` stand for results that had the stated types.
    void learn(const ir::GraphBuilder& builder, const std::vector<ir::TensorType>& stated,
               const std::vector<ir::ValueId>& found);

private:
    std::unordered_set<int64_t> kept_;
    ir::SymbolMap renamed_;
};

/// How often a graph and its regions call each function.
using CallCounts = std::unordered_map<std::string_view, size_t>;
void count_calls(const ir::Graph& graph, CallCounts& calls);
/// Without the functions that the entry does not reach.
ir::Module drop_uncalled(ir::Module module);

/// Makes each function anew, but for those that cannot but fail (ir::Contradiction): they stay. Functions are found by
/// name in the module that the callback is given.
ir::Module rebuild_functions(ir::Module module,
                             const std::function<ir::Graph(const ir::Graph&, const ir::Module&)>& rebuild);

/// Copies a graph node by node through a builder; `rewrite` may give other values for a node's results, and nothing to
/// have it copied. Regions are rewritten in the same way, first.
using RewriteNode = std::function<std::vector<ir::ValueId>(ir::GraphBuilder& builder, const ir::NodeSpec& spec)>;
ir::Graph rebuild_graph(const ir::Graph& graph, const ir::Module& module, const RewriteNode& rewrite);

}  // namespace ember::rewrite
