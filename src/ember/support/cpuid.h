// What the CPUID instruction says, on x86-64. Taken from glibc, which has asked at the start of the process: in a
// virtual machine each CPUID traps and costs 20 µs and more, and a hit has no time for dozens.
//
// Tests: test/unit/artifact_test.cpp.
#pragma once

#include <cstdint>

namespace ember {

/// The leaves that list features of the instruction set.
enum class CpuidLeaf {
    kBasic,     // 1
    kExtended,  // 7, subleaf 0
    kMore,      // 7, subleaf 1
    kAmd,       // 0x80000001
};

struct CpuidOutput {
    uint32_t registers[4] = {};  // eax, ebx, ecx, edx

    bool bit(int output, int number) const { return registers[output] >> number & 1; }
};

/// All zero where the CPU has no such leaf, or is not an x86.
CpuidOutput cpuid(CpuidLeaf leaf);

}  // namespace ember
