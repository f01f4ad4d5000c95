// A failed call leaves parameters as they were: whatever can fail stands before the first write into a parameter's
// memory. Tests: test/unit/in_place_test.cpp.
#pragma once

#include "ember/lower/program.h"

namespace ember::lower {

/// Orders the steps so that nothing fails after the first write into a parameter's memory, and notes in
/// Program::commit where that is. Checks move up and launches that update a parameter move down, as far as the data
/// allow; what still is written too early is written to memory of its own, and is no longer in place. Before
/// plan_memory(): lives change.
void protect_parameters(Program& program, const LoweredModule& module);

/// Moves checks that only need arguments to Program::preconditions.
void take_preconditions(Program& program);

/// Can this step end the call, apart from want of memory for its own buffers?
bool may_fail(const Step& step, const LoweredModule& module);

/// Does the step run other programs? How much workspace they take, if that is known: else -1.
bool calls(const Step& step);
ScalarId workspace_of(const Step& step);

/// Does the scalar follow from parameters that the program does not write?
bool is_given(const Program& program, ScalarId scalar);

}  // namespace ember::lower
