// The pass fold_constants: nodes whose operands are constants become constants, lengths that are known become numbers.
#include "ember/rewrite/fold.h"
#include "ember/rewrite/passes.h"
#include "ember/rewrite/rebuild.h"

namespace ember::rewrite {
namespace {

std::vector<ir::ValueId> fold_node(ir::GraphBuilder& builder, const ir::NodeSpec& spec) {
    if (spec.op == ir::Op::k_dim) {
        ir::Node node{spec.op, {}, spec.attributes};
        return {builder.dim_value(spec.operands[0], static_cast<int>(node.integer("axis")))};
    }
    std::vector<ir::ValueId> results;
    if (auto literals = fold(builder.graph(), spec)) {
        for (ir::Literal& literal : *literals) {
            results.push_back(builder.constant(std::move(literal)));
        }
    }
    return results;
}

}  // namespace

ir::Module fold_constants(ir::Module module) {
    return rebuild_functions(std::move(module), [](const ir::Graph& graph, const ir::Module& all) {
        return rebuild_graph(graph, all, fold_node);
    });
}

}  // namespace ember::rewrite
