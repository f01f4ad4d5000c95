// The ISA features of this host, read from the CPU without LLVM (a hit loads none), under LLVM's names.
// Tests: test/unit/artifact_test.cpp.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace ember {

/// Sorted. Only features whose registers the operating system saves too. Computed once.
const std::vector<std::string>& host_isa();

/// Both sorted.
bool isa_subset(std::span<const std::string> used, std::span<const std::string> host);

}  // namespace ember
