// Code generation: a lowered module becomes an ELF shared object for a target. The only folder that knows LLVM.
// One LLVM module a compile: each distinct kernel is a function of it, each program a driver function.
// Invariants: equal lowered modules and targets give equal bytes; the object imports nothing but memcpy and its kin.
// Tests: test/unit/codegen_test.cpp, and every `run` file test.
#pragma once

#include <string>
#include <vector>

#include "ember/lower/program.h"
#include "ember/support/result.h"
#include "ember/support/target.h"

namespace ember::codegen {

enum class Emit { kObject, kLlvm, kAssembly };

struct Compiled {
    std::string object;  // the shared object, or the text asked for
    int llvm_modules = 0;
    int kernels = 0;
};

Result<Compiled> compile(const lower::LoweredModule& module, const Target& target, Emit emit = Emit::kObject);

/// "19.1.7".
std::string llvm_version();

}  // namespace ember::codegen
