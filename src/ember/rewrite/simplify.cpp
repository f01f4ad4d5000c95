// The pass simplify: the rule table and the rules of views, walked over every graph until nothing changes.
#include "ember/rewrite/passes.h"
#include "ember/rewrite/rebuild.h"
#include "ember/rewrite/simplifier.h"

namespace ember::rewrite {

ir::Module simplify(ir::Module module) {
    constexpr int kMaxRounds = 4;  // the first one does nearly everything
    return rebuild_functions(std::move(module), [](const ir::Graph& graph, const ir::Module& all) {
        Simplified result = simplify_graph(graph, &all, RuleSet::all());
        for (int round = 1; round < kMaxRounds && result.applied > 0; ++round) {
            result = simplify_graph(canonicalize_order(result.graph), &all, RuleSet::all());
        }
        return canonicalize_order(result.graph);
    });
}

}  // namespace ember::rewrite
