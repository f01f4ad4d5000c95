// Lowering: a module of graphs becomes programs of steps over fused kernels, with a memory plan.
// Which values share a kernel is decided in group.cpp; a kernel's body is pulled from its stores in kernel_builder.cpp;
// steps and scalars are emitted in lower.cpp; plan_memory.cpp gives temporaries their slots.
// Tests: test/filetests/lower, and every `run` test.
#pragma once

#include "ember/ir/builder.h"
#include "ember/lower/program.h"
#include "ember/support/result.h"

namespace ember::lower {

/// The module must be verified and rewritten. kUnsupported names the op that has no lowering.
Result<LoweredModule> lower(const ir::Module& module);

/// Gives every temporary buffer of the program a slot of the workspace.
void plan_memory(Program& program);

}  // namespace ember::lower
