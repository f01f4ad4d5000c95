// Array conversions of 16-bit floats. Included by kernels_<isa>.cpp only. Tests: test/unit/runtime_test.cpp.
#pragma once

#include "runtime/half_bits.h"
#include "runtime/kernels.h"
#include "runtime/vec.h"

namespace ember::runtime {
namespace {

inline void f16_to_f32_array(const uint16_t* from, float* to, int64_t n) {
    int64_t i = 0;
#if defined(__AVX2__)
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
    }
#endif
    for (; i < n; ++i) {
        to[i] = half_bits::f16_to_f32(from[i]);
    }
}

inline void f32_to_f16_array(const float* from, uint16_t* to, int64_t n) {
    int64_t i = 0;
#if defined(__AVX2__)
    for (; i + 8 <= n; i += 8) {
        _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    }
#endif
    for (; i < n; ++i) {
        to[i] = half_bits::f32_to_f16(from[i]);
    }
}

inline void bf16_to_f32_array(const uint16_t* from, float* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        to[i] = half_bits::bf16_to_f32(from[i]);
    }
}

inline void f32_to_bf16_array(const float* from, uint16_t* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        to[i] = half_bits::f32_to_bf16(from[i]);
    }
}

constexpr HalfKernels kHalfKernels = {f16_to_f32_array, f32_to_f16_array, bf16_to_f32_array, f32_to_bf16_array};

}  // namespace
}  // namespace ember::runtime
