// Constants computed at compile time, by the reference evaluator. Tests: test/filetests/fold_constants.
#pragma once

#include <optional>

#include "ember/ir/builder.h"

namespace ember::rewrite {

/// The results of a node whose operands are all constants, if they fit into literals. Nothing where the op cannot be
/// computed now (an error there is the run's to report), or where a constant would be no gain: a broadcast stays one,
/// so that rules and kernels see the number.
std::optional<std::vector<ir::Literal>> fold(const ir::Graph& graph, const ir::NodeSpec& spec);

}  // namespace ember::rewrite
