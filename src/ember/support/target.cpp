// The levels of each architecture: see target.h.
#include "ember/support/target.h"

#include <algorithm>

namespace ember {
namespace {

#if defined(__x86_64__)
constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

// The levels of the x86-64 psABI, best first.
std::vector<Target> make_levels() {
    std::vector<std::string> v1{"cmov", "cx8", "fxsr", "mmx", "sse", "sse2"};
    std::vector<std::string> v2 = v1;
    v2.insert(v2.end(), {"cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"});
    std::vector<std::string> v3 = v2;
    v3.insert(v3.end(), {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"});
    std::vector<std::string> v4 = v3;
    v4.insert(v4.end(), {"avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"});
    return {{kTriple, "x86-64-v4", v4, 512},
            {kTriple, "x86-64-v3", v3, 256},
            {kTriple, "x86-64-v2", v2, 128},
            {kTriple, "x86-64", v1, 128}};
}
#else
constexpr const char* kTriple = "aarch64-unknown-linux-gnu";

std::vector<Target> make_levels() {
    return {{kTriple, "generic", {}, 128}};
}
#endif

}  // namespace

Result<Target> make_target(const std::string& cpu, std::span<const std::string> host_features) {
    static const std::vector<Target> kLevels = [] {
        std::vector<Target> levels = make_levels();
        for (Target& level : levels) {
            std::sort(level.features.begin(), level.features.end());
        }
        return levels;
    }();
    std::string known = "host";
    for (const Target& level : kLevels) {
        bool covered =
            std::includes(host_features.begin(), host_features.end(), level.features.begin(), level.features.end());
        if (cpu == level.cpu || (cpu == "host" && covered)) {
            return level;
        }
        known += ", " + level.cpu;
    }
    if (cpu == "host") {
        return kLevels.back();
    }
    return error(Code::kInvalidArgument, "unknown CPU '" + cpu + "': known are " + known);
}

}  // namespace ember
