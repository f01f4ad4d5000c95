#include "ember/artifact/isa.h"

#include <algorithm>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace ember {
namespace {

#if defined(__x86_64__)

enum class Registers { kNone, kYmm, kZmm };  // what the operating system must save

struct Feature {
    const char* name;
    uint32_t leaf;
    uint32_t subleaf;
    int output;  // 0 eax, 1 ebx, 2 ecx, 3 edx
    int bit;
    Registers needs = Registers::kNone;
};

// Intel SDM volume 2, CPUID; AMD manual 24594, appendix E.
constexpr Feature kFeatures[] = {
    {"cmov", 1, 0, 3, 15},
    {"cx8", 1, 0, 3, 8},
    {"fxsr", 1, 0, 3, 24},
    {"mmx", 1, 0, 3, 23},
    {"sse", 1, 0, 3, 25},
    {"sse2", 1, 0, 3, 26},
    {"sse3", 1, 0, 2, 0},
    {"pclmul", 1, 0, 2, 1},
    {"ssse3", 1, 0, 2, 9},
    {"fma", 1, 0, 2, 12, Registers::kYmm},
    {"cx16", 1, 0, 2, 13},
    {"sse4.1", 1, 0, 2, 19},
    {"sse4.2", 1, 0, 2, 20},
    {"crc32", 1, 0, 2, 20},
    {"movbe", 1, 0, 2, 22},
    {"popcnt", 1, 0, 2, 23},
    {"aes", 1, 0, 2, 25},
    {"avx", 1, 0, 2, 28, Registers::kYmm},
    {"f16c", 1, 0, 2, 29, Registers::kYmm},
    {"bmi", 7, 0, 1, 3},
    {"avx2", 7, 0, 1, 5, Registers::kYmm},
    {"bmi2", 7, 0, 1, 8},
    {"avx512f", 7, 0, 1, 16, Registers::kZmm},
    {"evex512", 7, 0, 1, 16, Registers::kZmm},
    {"avx512dq", 7, 0, 1, 17, Registers::kZmm},
    {"adx", 7, 0, 1, 19},
    {"avx512ifma", 7, 0, 1, 21, Registers::kZmm},
    {"avx512cd", 7, 0, 1, 28, Registers::kZmm},
    {"sha", 7, 0, 1, 29},
    {"avx512bw", 7, 0, 1, 30, Registers::kZmm},
    {"avx512vl", 7, 0, 1, 31, Registers::kZmm},
    {"avx512vbmi", 7, 0, 2, 1, Registers::kZmm},
    {"avx512vbmi2", 7, 0, 2, 6, Registers::kZmm},
    {"gfni", 7, 0, 2, 8},
    {"vaes", 7, 0, 2, 9, Registers::kYmm},
    {"vpclmulqdq", 7, 0, 2, 10, Registers::kYmm},
    {"avx512vnni", 7, 0, 2, 11, Registers::kZmm},
    {"avx512bitalg", 7, 0, 2, 12, Registers::kZmm},
    {"avx512vpopcntdq", 7, 0, 2, 14, Registers::kZmm},
    {"avx512fp16", 7, 0, 3, 23, Registers::kZmm},
    {"avxvnni", 7, 1, 0, 4, Registers::kYmm},
    {"avx512bf16", 7, 1, 0, 5, Registers::kZmm},
    {"avxifma", 7, 1, 0, 23, Registers::kYmm},
    {"sahf", 0x80000001, 0, 2, 0},
    {"lzcnt", 0x80000001, 0, 2, 5},
    {"prfchw", 0x80000001, 0, 2, 8},
};

/// XCR0: bits 1-2 are xmm and ymm, bits 5-7 the mask registers and zmm.
Registers saved_registers() {
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) {
        return Registers::kNone;
    }
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    if ((low & 0xe6) == 0xe6) {
        return Registers::kZmm;
    }
    return (low & 0x6) == 0x6 ? Registers::kYmm : Registers::kNone;
}

bool has(const Feature& feature, Registers saved) {
    unsigned out[4] = {};
    if (feature.needs > saved) {
        return false;
    }
    // A subleaf is there only if subleaf 0 says that there are so many.
    if (feature.subleaf > 0 &&
        (!__get_cpuid_count(feature.leaf, 0, &out[0], &out[1], &out[2], &out[3]) || out[0] < feature.subleaf)) {
        return false;
    }
    return __get_cpuid_count(feature.leaf, feature.subleaf, &out[0], &out[1], &out[2], &out[3]) &&
           (out[feature.output] >> feature.bit & 1);
}

std::vector<std::string> read_features() {
    std::vector<std::string> names = {"64bit"};
    Registers saved = saved_registers();
    for (const Feature& feature : kFeatures) {
        if (has(feature, saved)) {
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
