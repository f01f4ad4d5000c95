// What attention needs besides matrix products, for the vectors of vec.h. Included by kernels_<isa>.cpp only.
// Tests: test/unit/attention_test.cpp, under every instruction set of the host.
#pragma once

#include "runtime/half_bits.h"
#include "runtime/kernels.h"
#include "runtime/vec.h"

namespace ember::runtime {
namespace {

/// e^x for x <= 0, to about two units in the last place; 0 below -87.
EMBER_INLINE VecF32 exp_of_negative(VecF32 x) {
    constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: a sum with it has units of 1
    const VecF32 rounded = x * 1.44269504F + kRound;
    const VecF32 n = rounded - kRound;
    const VecF32 r = (x - n * 0.693145752F) - n * 1.42860677e-6F;  // ln 2 in two parts
    VecF32 p = VecF32{} + 1.38888889e-3F;
    p = p * r + 8.33333333e-3F;
    p = p * r + 4.16666667e-2F;
    p = p * r + 0.166666667F;
    p = p * r + 0.5F;
    p = p * r + 1.0F;
    p = p * r + 1.0F;
    const VecI32 exponent = ((VecI32)rounded - 0x4b400000) << 23;
    const VecF32 e = (VecF32)((VecI32)p + exponent);
    const VecF32 zero = {};
    const VecF32 finite = x < -87.0F ? zero : e;
    return x == x ? finite : x;
}

/// s[i] = e^(s[i] - *most) for i < n, where *most is the largest of them; 0 for the rest up to `room`. The sum of them.
inline float exp_row(float* s, int64_t n, int64_t room, float* most) {
    constexpr int64_t kLanesOfRow = kLanes<float>;
    VecF32 largest = VecF32{} - __builtin_inff();
    int64_t i = 0;
    for (; i + kLanesOfRow <= n; i += kLanesOfRow) {
        const VecF32 v = load(s + i);
        largest = v > largest ? v : largest;
    }
    float highest = -__builtin_inff();
    for (int lane = 0; lane < kLanesOfRow; ++lane) {
        highest = largest[lane] > highest ? largest[lane] : highest;
    }
    for (; i < n; ++i) {
        highest = s[i] > highest ? s[i] : highest;
    }
    *most = highest;
    for (i = n; i < room; ++i) {
        s[i] = -__builtin_inff();
    }
    VecF32 sum = {};
    for (i = 0; i < room; i += kLanesOfRow) {  // room is a multiple of any vector's length
        VecF32 e = exp_of_negative(load(s + i) - highest);
        if (i + kLanesOfRow > n) {
            for (int lane = 0; lane < kLanesOfRow; ++lane) {
                e[lane] = i + lane < n ? e[lane] : 0.0F;
            }
        }
        store(s + i, e);
        sum += e;
    }
    float total = 0;
    for (int lane = 0; lane < kLanesOfRow; ++lane) {
        total += sum[lane];
    }
    return total;
}

template <int R, int V>
EMBER_INLINE void add_weighted(int64_t n, const float* p, int64_t p_stride, const float* rows, int64_t row_stride,
                               float* o, int64_t o_stride) {
    VecF32 acc[R][V];
    EMBER_UNROLL
    for (int r = 0; r < R; ++r) {
        EMBER_UNROLL
        for (int v = 0; v < V; ++v) {
            acc[r][v] = load(o + r * o_stride + v * kLanes<float>);
        }
    }
    for (int64_t j = 0; j < n; ++j) {
        EMBER_UNROLL
        for (int v = 0; v < V; ++v) {
            const VecF32 row = load(rows + j * row_stride + v * kLanes<float>);
            EMBER_UNROLL
            for (int r = 0; r < R; ++r) {
                acc[r][v] += p[r * p_stride + j] * row;
            }
        }
    }
    EMBER_UNROLL
    for (int r = 0; r < R; ++r) {
        EMBER_UNROLL
        for (int v = 0; v < V; ++v) {
            store(o + r * o_stride + v * kLanes<float>, acc[r][v]);
        }
    }
}

template <int R>
EMBER_INLINE void add_weighted_rows(int64_t n, int64_t width, const float* p, int64_t p_stride, const float* rows,
                                    float* o) {
    constexpr int64_t kWide = 4 * kLanes<float>;
    int64_t c = 0;
    for (; c + kWide <= width; c += kWide) {
        add_weighted<R, 4>(n, p, p_stride, rows + c, width, o + c, width);
    }
    for (; c + kLanes<float> <= width; c += kLanes<float>) {
        add_weighted<R, 1>(n, p, p_stride, rows + c, width, o + c, width);
    }
    for (; c < width; ++c) {
        for (int r = 0; r < R; ++r) {
            for (int64_t j = 0; j < n; ++j) {
                o[r * width + c] += p[r * p_stride + j] * rows[j * width + c];
            }
        }
    }
}

/// o[r, :] += the sum over j < n of p[r, j] * rows[j, :].
inline void weighted_rows(int64_t r, int64_t n, int64_t width, const float* p, int64_t p_stride, const float* rows,
                          float* o) {
    for (; r >= 3; r -= 3, p += 3 * p_stride, o += 3 * width) {
        add_weighted_rows<3>(n, width, p, p_stride, rows, o);
    }
    if (r == 2) {
        add_weighted_rows<2>(n, width, p, p_stride, rows, o);
    } else if (r == 1) {
        add_weighted_rows<1>(n, width, p, p_stride, rows, o);
    }
}

/// f16 to f32, and what follows later is fetched: keys and values come from memory once.
inline void widen(const uint16_t* from, float* to, int64_t n) {
    constexpr int64_t kAhead = 4096 / sizeof(uint16_t);
    constexpr int64_t kLine = 64 / sizeof(uint16_t);
    int64_t i = 0;
    for (; i + kLine <= n; i += kLine) {
        __builtin_prefetch(from + i + kAhead);
        EMBER_UNROLL
        for (int64_t v = 0; v < kLine; v += kLanes<float>) {
#if defined(__AVX512F__)
            store(to + i + v, (VecF32)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)(from + i + v))));
#elif defined(__AVX2__)
            store(to + i + v, (VecF32)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)(from + i + v))));
#else
            for (int64_t lane = 0; lane < kLanes<float>; ++lane) {
                to[i + v + lane] = half_bits::f16_to_f32(from[i + v + lane]);
            }
#endif
        }
    }
    for (; i < n; ++i) {
        to[i] = half_bits::f16_to_f32(from[i]);
    }
}

constexpr AttentionKernels kAttentionKernels = {exp_row, weighted_rows, widen};

}  // namespace
}  // namespace ember::runtime
