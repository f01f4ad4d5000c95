// What code is generated for: a level of an instruction set, by name. Known without LLVM, since it is part of every
// key. Tests: test/unit/driver_test.cpp.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "ember/support/result.h"

namespace ember {

struct Target {
    std::string triple;                 // LLVM's
    std::string cpu;                    // the level's name, LLVM's too
    std::vector<std::string> features;  // what code of this level may use, LLVM's names, sorted
    int vector_bits = 128;
};

/// `cpu`: "host" (the best level that `host_features`, sorted, covers) or a level: x86-64, x86-64-v2, x86-64-v3,
/// x86-64-v4 on x86-64; generic elsewhere.
Result<Target> make_target(const std::string& cpu, std::span<const std::string> host_features);

}  // namespace ember
