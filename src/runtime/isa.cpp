// The best instruction set of host and mask: see isa.h.
#include "runtime/isa.h"

#include <algorithm>
#include <atomic>

namespace ember::runtime {
namespace {

Isa detect() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c")) {
        return Isa::kBaseline;
    }
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
        return __builtin_cpu_supports("avx512vnni") ? Isa::kAvx512Vnni : Isa::kAvx512;
    }
    return Isa::kAvx2;
#else
    return Isa::kBaseline;
#endif
}

std::atomic<Isa> mask{kHighestIsa};

}  // namespace

Isa host_isa() {
    static const Isa isa = detect();
    return isa;
}

void set_isa_mask(Isa highest) {
    mask.store(highest, std::memory_order_relaxed);
}

Isa active_isa() {
    return std::min(host_isa(), mask.load(std::memory_order_relaxed));
}

}  // namespace ember::runtime
