// The ways to evaluate a module: the reference evaluator, and compiled code.
#pragma once

#include <vector>

#include "ember/interp/evaluate.h"

namespace ember::opt {

using Tensors = std::vector<interp::Tensor>;

Result<Tensors> evaluate_reference(const ir::Module& module, Tensors inputs);

/// Is there a compiled engine in this build?
bool has_compiled_engine();
/// Compiles the module, uncached, and calls it once. kUnsupported where there is no compiled engine.
Result<Tensors> evaluate_compiled(const ir::Module& module, Tensors inputs);

}  // namespace ember::opt
