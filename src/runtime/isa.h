// Which instruction set the runtime's kernels use: the best of the host, unless a test or user asks for less.
// Tests: test/unit/runtime_test.cpp runs every kernel under every mask.
#pragma once

namespace ember::runtime {

/// Ordered: a later one includes the earlier ones. On anything but x86-64 only kBaseline exists.
enum class Isa : int {
    kBaseline = 0,  // x86-64 (SSE2) or the plain code of another machine (NEON on aarch64)
    kAvx2 = 1,      // AVX2, FMA, F16C
    kAvx512 = 2,    // AVX-512 F, BW, DQ, VL
    kAvx512Vnni = 3,
};

/// The best the processor and the operating system support.
Isa host_isa();

inline constexpr Isa kHighestIsa = Isa::kAvx512Vnni;

/// Kernels use min(host_isa(), highest) from the next call on. Not meant to change while kernels run.
void set_isa_mask(Isa highest);

/// What kernels use now.
Isa active_isa();

}  // namespace ember::runtime
