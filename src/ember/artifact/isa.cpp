// ISA features from CPUID (x86-64) or the auxiliary vector (aarch64), as tables. See isa.h.
#include "ember/artifact/isa.h"

#include <algorithm>
#include <cstdint>

#include "ember/support/cpuid.h"

#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace ember {
namespace {

#if defined(__x86_64__)

enum class Registers { kNone, kYmm, kZmm };  // what the operating system must save

struct Feature {
    const char* name;
    CpuidLeaf leaf;
    int output;  // 0 eax, 1 ebx, 2 ecx, 3 edx
    int bit;
    Registers needs = Registers::kNone;
};

// Intel SDM volume 2, CPUID; AMD manual 24594, appendix E.
constexpr Feature kFeatures[] = {
    {"cmov", CpuidLeaf::kBasic, 3, 15},
    {"cx8", CpuidLeaf::kBasic, 3, 8},
    {"fxsr", CpuidLeaf::kBasic, 3, 24},
    {"mmx", CpuidLeaf::kBasic, 3, 23},
    {"sse", CpuidLeaf::kBasic, 3, 25},
    {"sse2", CpuidLeaf::kBasic, 3, 26},
    {"sse3", CpuidLeaf::kBasic, 2, 0},
    {"pclmul", CpuidLeaf::kBasic, 2, 1},
    {"ssse3", CpuidLeaf::kBasic, 2, 9},
    {"fma", CpuidLeaf::kBasic, 2, 12, Registers::kYmm},
    {"cx16", CpuidLeaf::kBasic, 2, 13},
    {"sse4.1", CpuidLeaf::kBasic, 2, 19},
    {"sse4.2", CpuidLeaf::kBasic, 2, 20},
    {"crc32", CpuidLeaf::kBasic, 2, 20},
    {"movbe", CpuidLeaf::kBasic, 2, 22},
    {"popcnt", CpuidLeaf::kBasic, 2, 23},
    {"aes", CpuidLeaf::kBasic, 2, 25},
    {"avx", CpuidLeaf::kBasic, 2, 28, Registers::kYmm},
    {"f16c", CpuidLeaf::kBasic, 2, 29, Registers::kYmm},
    {"bmi", CpuidLeaf::kExtended, 1, 3},
    {"avx2", CpuidLeaf::kExtended, 1, 5, Registers::kYmm},
    {"bmi2", CpuidLeaf::kExtended, 1, 8},
    {"avx512f", CpuidLeaf::kExtended, 1, 16, Registers::kZmm},
    {"evex512", CpuidLeaf::kExtended, 1, 16, Registers::kZmm},
    {"avx512dq", CpuidLeaf::kExtended, 1, 17, Registers::kZmm},
    {"adx", CpuidLeaf::kExtended, 1, 19},
    {"avx512ifma", CpuidLeaf::kExtended, 1, 21, Registers::kZmm},
    {"avx512cd", CpuidLeaf::kExtended, 1, 28, Registers::kZmm},
    {"sha", CpuidLeaf::kExtended, 1, 29},
    {"avx512bw", CpuidLeaf::kExtended, 1, 30, Registers::kZmm},
    {"avx512vl", CpuidLeaf::kExtended, 1, 31, Registers::kZmm},
    {"avx512vbmi", CpuidLeaf::kExtended, 2, 1, Registers::kZmm},
    {"avx512vbmi2", CpuidLeaf::kExtended, 2, 6, Registers::kZmm},
    {"gfni", CpuidLeaf::kExtended, 2, 8},
    {"vaes", CpuidLeaf::kExtended, 2, 9, Registers::kYmm},
    {"vpclmulqdq", CpuidLeaf::kExtended, 2, 10, Registers::kYmm},
    {"avx512vnni", CpuidLeaf::kExtended, 2, 11, Registers::kZmm},
    {"avx512bitalg", CpuidLeaf::kExtended, 2, 12, Registers::kZmm},
    {"avx512vpopcntdq", CpuidLeaf::kExtended, 2, 14, Registers::kZmm},
    {"avx512fp16", CpuidLeaf::kExtended, 3, 23, Registers::kZmm},
    {"avxvnni", CpuidLeaf::kMore, 0, 4, Registers::kYmm},
    {"avx512bf16", CpuidLeaf::kMore, 0, 5, Registers::kZmm},
    {"avxifma", CpuidLeaf::kMore, 0, 23, Registers::kYmm},
    {"sahf", CpuidLeaf::kAmd, 2, 0},
    {"lzcnt", CpuidLeaf::kAmd, 2, 5},
    {"prfchw", CpuidLeaf::kAmd, 2, 8},
};

/// XCR0: bits 1-2 are xmm and ymm, bits 5-7 the mask registers and zmm.
Registers saved_registers() {
    constexpr int kEcx = 2, kHasXgetbv = 27;
    if (!cpuid(CpuidLeaf::kBasic).bit(kEcx, kHasXgetbv)) {
        return Registers::kNone;
    }
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 0xe6) == 0xe6) {
        return Registers::kZmm;
    }
    return (low & 0x6) == 0x6 ? Registers::kYmm : Registers::kNone;
}

std::vector<std::string> read_features() {
    std::vector<std::string> names = {"64bit"};
    Registers saved = saved_registers();
    for (const Feature& feature : kFeatures) {
        if (feature.needs <= saved && cpuid(feature.leaf).bit(feature.output, feature.bit)) {
            names.emplace_back(feature.name);
        }
    }
    return names;
}

#elif defined(__aarch64__)

struct Feature {
    const char* name;
    unsigned long vector;  // AT_HWCAP or AT_HWCAP2
    int bit;
};

// Linux, arch/arm64/include/uapi/asm/hwcap.h.
constexpr Feature kFeatures[] = {
    {"fp-armv8", AT_HWCAP, 0}, {"neon", AT_HWCAP, 1},       {"aes", AT_HWCAP, 3},      {"sha2", AT_HWCAP, 6},
    {"crc", AT_HWCAP, 7},      {"lse", AT_HWCAP, 8},        {"fullfp16", AT_HWCAP, 9}, {"rdm", AT_HWCAP, 12},
    {"jsconv", AT_HWCAP, 13},  {"complxnum", AT_HWCAP, 14}, {"rcpc", AT_HWCAP, 15},    {"sha3", AT_HWCAP, 17},
    {"dotprod", AT_HWCAP, 20}, {"sve", AT_HWCAP, 22},       {"fp16fml", AT_HWCAP, 23}, {"sve2", AT_HWCAP2, 1},
    {"i8mm", AT_HWCAP2, 13},   {"bf16", AT_HWCAP2, 14},
};

std::vector<std::string> read_features() {
    std::vector<std::string> names;
    for (const Feature& feature : kFeatures) {
        if (getauxval(feature.vector) >> feature.bit & 1) {
            names.emplace_back(feature.name);
        }
    }
    return names;
}

#else

std::vector<std::string> read_features() {
    return {};
}

#endif

}  // namespace

const std::vector<std::string>& host_isa() {
    static const std::vector<std::string> kFeatureNames = [] {
        std::vector<std::string> names = read_features();
        std::ranges::sort(names);
        return names;
    }();
    return kFeatureNames;
}

bool isa_subset(std::span<const std::string> used, std::span<const std::string> host) {
    return std::ranges::includes(host, used);
}

}  // namespace ember
