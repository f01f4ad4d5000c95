// CPUID by way of glibc, or by the instruction on older ones. See cpuid.h.
#include "ember/support/cpuid.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if __has_include(<sys/platform/x86.h>)
#if defined(__clang__)
#define _Bool bool  // the header is written for C
#endif
#include <sys/platform/x86.h>
#define EMBER_HAS_GLIBC_CPUID 1
#endif
#endif

namespace ember {

#if defined(EMBER_HAS_GLIBC_CPUID)

CpuidOutput cpuid(CpuidLeaf leaf) {
    static constexpr unsigned kIndices[] = {CPUID_INDEX_1, CPUID_INDEX_7, CPUID_INDEX_7_ECX_1, CPUID_INDEX_80000001};
    const cpuid_feature* found = __x86_get_cpuid_feature_leaf(kIndices[static_cast<unsigned>(leaf)]);
    CpuidOutput output;
    for (int i = 0; i < 4; ++i) {
        output.registers[i] = found->cpuid_array[i];
    }
    return output;
}

#elif defined(__x86_64__)

CpuidOutput cpuid(CpuidLeaf leaf) {
    static constexpr unsigned kLeaves[][2] = {{1, 0}, {7, 0}, {7, 1}, {0x80000001, 0}};
    auto [number, subleaf] = kLeaves[static_cast<unsigned>(leaf)];
    CpuidOutput output;
    auto* r = output.registers;
    // Subleaf 0 says in eax how many there are.
    bool is_there = subleaf == 0 || (__get_cpuid_count(number, 0, &r[0], &r[1], &r[2], &r[3]) && r[0] >= subleaf);
    if (!is_there || !__get_cpuid_count(number, subleaf, &r[0], &r[1], &r[2], &r[3])) {
        output = {};
    }
    return output;
}

#else

CpuidOutput cpuid(CpuidLeaf) {
    return {};
}

#endif

}  // namespace ember
