// Decoders of block-quantised rows and the products built on them. Included by kernels_<isa>.cpp only.
// A type is a struct that says how its blocks are laid out. Elements come in groups with one scale (and, for some
// types, one minimum): w = scale * values + minimum. Byte layouts, in order, with f16 numbers and low nibbles first:
//   q4_0  d, qs[16]                        32 elements, w = d*(q-8);  byte j holds elements j and j+16
//   q4_1  d, m, qs[16]                     32 elements, w = d*q + m
//   q5_0  d, qh[4], qs[16]                 32 elements, w = d*(q-16); bit j of qh is the fifth bit of element j
//   q5_1  d, m, qh[4], qs[16]              32 elements, w = d*q + m
//   q8_0  d, qs[32]                        32 elements, w = d*q, signed
//   q4_k  d, dmin, scales[12], qs[128]     8 groups of 32, w = d*sc*q - dmin*mn; 32 bytes hold groups 2i and 2i+1
//   q5_k  d, dmin, scales[12], qh[32], qs[128]      the same; bit g of qh[j] is the fifth bit of element j of group g
//   q6_k  ql[128], qh[64], scales[16], d   16 groups of 16, w = d*sc*(q-32); each 128 elements take 64 bytes of ql: the
//         quarters 0, 1 of 32 elements in the low nibbles, 2, 3 in the high ones; quarter i's upper bits are bits 2i of
//         qh
// scales[12] packs eight 6-bit pairs (sc, mn): unpack_pairs() is its definition.
// Source: the quantisation types of the GGUF specification. Tests: test/unit/runtime_test.cpp.
#pragma once

#include "runtime/half_bits.h"
#include "runtime/kernels.h"
#include "runtime/vec.h"

namespace ember::runtime {
namespace {

constexpr int kVecLanes = kLanes<float>;

EMBER_INLINE VecI32 load_bytes(const uint8_t* from) {
#if defined(__AVX512F__)
    return (VecI32)_mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#elif defined(__AVX2__)
    return (VecI32)_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
#else
    typedef uint8_t Bytes __attribute__((vector_size(kVecLanes)));
    Bytes bytes;
    __builtin_memcpy(&bytes, from, sizeof bytes);
    return __builtin_convertvector(bytes, VecI32);
#endif
}

EMBER_INLINE VecI32 load_signed_bytes(const uint8_t* from) {
#if defined(__AVX512F__)
    return (VecI32)_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#elif defined(__AVX2__)
    return (VecI32)_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)));
#else
    typedef int8_t Bytes __attribute__((vector_size(kVecLanes)));
    Bytes bytes;
    __builtin_memcpy(&bytes, from, sizeof bytes);
    return __builtin_convertvector(bytes, VecI32);
#endif
}

EMBER_INLINE VecF32 to_float(VecI32 v) {
    return __builtin_convertvector(v, VecF32);
}

EMBER_INLINE VecI32 lane_numbers() {
    constexpr int32_t kNumbers[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    VecI32 v;
    __builtin_memcpy(&v, kNumbers, sizeof v);
    return v;
}

/// The low nibbles minus `offset`; upper bits are ignored.
template <int offset>
EMBER_INLINE VecF32 nibbles(VecI32 q) {
#if defined(__AVX512F__)
    return (VecF32)_mm512_permutexvar_ps((__m512i)q, (__m512)to_float(lane_numbers() - offset));
#else
    return to_float((q & 15) - offset);
#endif
}

/// Nibbles with a fifth bit: bit i of `high` for lane i.
template <int offset>
EMBER_INLINE VecF32 nibbles(VecI32 q, uint32_t high) {
#if defined(__AVX512F__)
    const __m512 low = (__m512)nibbles<offset>(q);
    return (VecF32)_mm512_mask_add_ps(low, static_cast<__mmask16>(high), low, _mm512_set1_ps(16));
#else
    const VecI32 fifth = ((VecI32{} + static_cast<int32_t>(high)) >> lane_numbers()) & 1;
    return to_float(((q & 15) | (fifth << 4)) - offset);
#endif
}

EMBER_INLINE float read_f16(const uint8_t* from) {
    uint16_t bits;
    __builtin_memcpy(&bits, from, sizeof bits);
#if defined(__AVX2__)
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(bits)));
#else
    return half_bits::f16_to_f32(bits);
#endif
}

EMBER_INLINE uint32_t read_u32(const uint8_t* from) {
    uint32_t bits;
    __builtin_memcpy(&bits, from, sizeof bits);
    return bits;
}

/// The f16 numbers at the head of `count` blocks: d and, where there is one, m.
template <int bytes, bool has_min>
EMBER_INLINE void read_heads(const uint8_t* blocks, int count, float* d, float* m) {
    int i = 0;
#if defined(__AVX512F__)
    const __m512i offsets = (__m512i)(lane_numbers() * bytes);
    for (; i < count; i += 16) {
        const int some = count - i < 16 ? count - i : 16;
        const auto lanes = static_cast<__mmask16>((1u << some) - 1);
        const __m512i heads =
            _mm512_mask_i32gather_epi32(_mm512_setzero_si512(), lanes, offsets, blocks + int64_t{i} * bytes, 1);
        _mm512_storeu_ps(d + i, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(heads)));
        if constexpr (has_min) {
            _mm512_storeu_ps(m + i, _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(heads, 16))));
        }
    }
#endif
    for (; i < count; ++i) {
        d[i] = read_f16(blocks + int64_t{i} * bytes);
        if constexpr (has_min) {
            m[i] = read_f16(blocks + int64_t{i} * bytes + 2);
        }
    }
}

// Vector v of a group of 32 whose byte j holds elements j and j+16.
template <int v>
EMBER_INLINE VecI32 nibble_pairs(const uint8_t* qs) {
    constexpr int kFirst = v * kVecLanes;
    const VecI32 bytes = load_bytes(qs + kFirst % 16);
    return kFirst < 16 ? bytes : bytes >> 4;
}

template <int head, bool has_min, int offset>
struct FourBit {
    static constexpr int kBlock = 32, kBytes = head + 16, kGroup = 32;
    static constexpr bool kHasMin = has_min;

    static void scales(const uint8_t* blocks, int count, float* d, float* m) {
        read_heads<kBytes, has_min>(blocks, count, d, m);
    }
    template <int group, int v>
    EMBER_INLINE static VecF32 values(const uint8_t* block) {
        return nibbles<offset>(nibble_pairs<v>(block + head));
    }
};
using Q4_0 = FourBit<2, false, 8>;
using Q4_1 = FourBit<4, true, 0>;

template <int head, bool has_min, int offset>
struct FiveBit {
    static constexpr int kBlock = 32, kBytes = head + 20, kGroup = 32;
    static constexpr bool kHasMin = has_min;

    static void scales(const uint8_t* blocks, int count, float* d, float* m) {
        read_heads<kBytes, has_min>(blocks, count, d, m);
    }
    template <int group, int v>
    EMBER_INLINE static VecF32 values(const uint8_t* block) {
        return nibbles<offset>(nibble_pairs<v>(block + head + 4), read_u32(block + head) >> (v * kVecLanes));
    }
};
using Q5_0 = FiveBit<2, false, 16>;
using Q5_1 = FiveBit<4, true, 0>;

struct Q8_0 {
    static constexpr int kBlock = 32, kBytes = 34, kGroup = 32;
    static constexpr bool kHasMin = false;

    static void scales(const uint8_t* blocks, int count, float* d, float* m) {
        read_heads<kBytes, false>(blocks, count, d, m);
    }
    template <int group, int v>
    EMBER_INLINE static VecF32 values(const uint8_t* block) {
        return to_float(load_signed_bytes(block + 2 + v * kVecLanes));
    }
};

// Scale and minimum i are the low 6 bits of bytes i and i+4 for i < 4; for i >= 4 they are the low and the high nibble
// of byte i+4, with the top bits of bytes i-4 and i above them.
inline void unpack_pairs(const uint8_t* packed, int i, int& scale, int& minimum) {
    if (i < 4) {
        scale = packed[i] & 63;
        minimum = packed[i + 4] & 63;
    } else {
        scale = (packed[i + 4] & 15) | ((packed[i - 4] >> 6) << 4);
        minimum = (packed[i + 4] >> 4) | ((packed[i] >> 6) << 4);
    }
}

template <int bits>
struct PackedPairs {
    static constexpr int kHighBytes = bits == 5 ? 32 : 0;
    static constexpr int kBlock = 256, kBytes = 16 + kHighBytes + 128, kGroup = 32;
    static constexpr bool kHasMin = true;

    static void scales(const uint8_t* blocks, int count, float* d, float* m) {
        for (; count > 0; --count, blocks += kBytes, d += 8, m += 8) {
            const float scale_unit = read_f16(blocks);
            const float min_unit = -read_f16(blocks + 2);
            for (int i = 0; i < 8; ++i) {
                int scale, minimum;
                unpack_pairs(blocks + 4, i, scale, minimum);
                d[i] = scale_unit * static_cast<float>(scale);
                m[i] = min_unit * static_cast<float>(minimum);
            }
        }
    }
    template <int group, int v>
    EMBER_INLINE static VecF32 values(const uint8_t* block) {
        const uint8_t* qs = block + 16 + kHighBytes;
        const VecI32 bytes = load_bytes(qs + group / 2 * 32 + v * kVecLanes);
        const VecI32 low = group % 2 == 0 ? bytes : bytes >> 4;
        if constexpr (bits == 4) {
            return nibbles<0>(low);
        } else {
            const VecI32 fifth = (load_bytes(block + 16 + v * kVecLanes) >> group) & 1;
            return to_float((low & 15) | (fifth << 4));
        }
    }
};
using Q4_K = PackedPairs<4>;
using Q5_K = PackedPairs<5>;

struct Q6_K {
    static constexpr int kBlock = 256, kBytes = 210, kGroup = 16;
    static constexpr bool kHasMin = false;

    static void scales(const uint8_t* blocks, int count, float* d, float*) {
        for (; count > 0; --count, blocks += kBytes, d += 16) {
            const float unit = read_f16(blocks + 208);
            for (int i = 0; i < 16; ++i) {
                d[i] = unit * static_cast<float>(static_cast<int8_t>(blocks[192 + i]));
            }
        }
    }
    template <int group, int v>
    EMBER_INLINE static VecF32 values(const uint8_t* block) {
        constexpr int kHalf = group / 8, kQuarter = group % 8 / 2, kFirst = group % 2 * 16 + v * kVecLanes;
        const VecI32 low = load_bytes(block + kHalf * 64 + kQuarter % 2 * 32 + kFirst) >> (kQuarter < 2 ? 0 : 4);
        const VecI32 high = load_bytes(block + 128 + kHalf * 32 + kFirst) >> (2 * kQuarter);
        return to_float(((low & 15) | ((high & 3) << 4)) - 32);
    }
};

// ---- products ----

template <int... i, class F>
EMBER_INLINE void unroll_indices(F&& f) {
    (f.template operator()<i>(), ...);
}

/// f.operator()<0>() ... <count - 1>().
template <int count, class F>
EMBER_INLINE void unroll(F&& f) {
    static_assert(count == 1 || count == 2 || count == 4 || count == 8 || count == 16);
    if constexpr (count == 1) {
        unroll_indices<0>(f);
    } else if constexpr (count == 2) {
        unroll_indices<0, 1>(f);
    } else if constexpr (count == 4) {
        unroll_indices<0, 1, 2, 3>(f);
    } else if constexpr (count == 8) {
        unroll_indices<0, 1, 2, 3, 4, 5, 6, 7>(f);
    } else {
        unroll_indices<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>(f);
    }
}

template <class Q>
constexpr int kGroupsPerBlock = Q::kBlock / Q::kGroup;
template <class Q>
constexpr int kVecsPerGroup = Q::kGroup / kVecLanes;

/// Scales are decoded for this many elements at a time, of at least two rows.
constexpr int kScaledElements = 8192;
constexpr int kPrefetchBytes = 2048;
// Rows and tokens that share what is loaded for one of them; narrow vectors need many per group, and get no more code.
constexpr int kRowsAtOnce = kVecLanes == 16 ? 2 : 1;
constexpr int kTokensAtOnce = kVecLanes == 16 ? 4 : kVecLanes == 8 ? 2 : 1;

template <class Q>
struct Scales {
    static constexpr int kCount = kScaledElements / Q::kGroup;
    alignas(kVecBytes) float d[kCount];
    alignas(kVecBytes) float m[Q::kHasMin ? kCount : 1];
};

struct Tokens {
    const float* x;
    int64_t x_stride;
    const float* sums;  // of each 32 elements of x
    int64_t sums_stride;
};

/// Elements [first, first + elements) of some rows, and their scales.
struct Stretch {
    int64_t first;
    int elements;
    const uint8_t* rows;  // where `first` is stored in the first row
    int64_t row_bytes;
    const float* d;  // by row and group
    const float* m;
};

/// acc[r][t] += a vector whose lanes add up to row r times token t, without the minima.
template <class Q, int R, int T>
EMBER_INLINE void add_scaled(const Stretch& part, const Tokens& tokens, VecF32 (&acc)[R][T]) {
    const uint8_t* rows = part.rows;
    const float* x = tokens.x + part.first;
    const float* d = part.d;
    const int groups = part.elements / Q::kGroup;
    for (const float* const end = d + groups; d < end; d += kGroupsPerBlock<Q>) {
        unroll<kGroupsPerBlock<Q>>([&]<int group>() __attribute__((always_inline)) {
            VecF32 sums[R][T];
            unroll<kVecsPerGroup<Q>>([&]<int v>() __attribute__((always_inline)) {
                EMBER_UNROLL
                for (int r = 0; r < R; ++r) {
                    const VecF32 w = Q::template values<group, v>(rows + r * part.row_bytes);
                    EMBER_UNROLL
                    for (int t = 0; t < T; ++t) {
                        const VecF32 product = w * load(x + t * tokens.x_stride + group * Q::kGroup + v * kVecLanes);
                        sums[r][t] = v == 0 ? product : sums[r][t] + product;
                    }
                }
            });
            EMBER_UNROLL
            for (int r = 0; r < R; ++r) {
                EMBER_UNROLL
                for (int t = 0; t < T; ++t) {
                    acc[r][t] += d[r * groups + group] * sums[r][t];
                }
            }
        });
        EMBER_UNROLL
        for (int r = 0; r < R; ++r) {
            __builtin_prefetch(rows + r * part.row_bytes + kPrefetchBytes);
        }
        rows += Q::kBytes;
        x += Q::kBlock;
    }
}

/// acc[r][t] += a vector whose lanes add up to what the minima of row r make with token t.
template <class Q, int R, int T>
EMBER_INLINE void add_minima(const Stretch& part, const Tokens& tokens, VecF32 (&acc)[R][T]) {
    const int groups = part.elements / Q::kGroup;
    const float* x_sums = tokens.sums + part.first / Q::kGroup;
    for (int g = 0; g < groups; g += kVecLanes) {
        const int some = groups - g < kVecLanes ? groups - g : kVecLanes;
        EMBER_UNROLL
        for (int r = 0; r < R; ++r) {
            const VecF32 minima = load_first(part.m + r * groups + g, some);
            EMBER_UNROLL
            for (int t = 0; t < T; ++t) {
                acc[r][t] += minima * load_first(x_sums + t * tokens.sums_stride + g, some);
            }
        }
    }
}

template <class Q, int R, int T>
EMBER_INLINE void add_rows(const Stretch& part, const Tokens& tokens, VecF32 (*sums)[kVecLanes], int row) {
    VecF32 acc[R][T];
    EMBER_UNROLL
    for (int r = 0; r < R; ++r) {
        EMBER_UNROLL
        for (int t = 0; t < T; ++t) {
            acc[r][t] = sums[t][row + r];
        }
    }
    add_scaled<Q, R, T>(part, tokens, acc);
    if constexpr (Q::kHasMin) {
        add_minima<Q, R, T>(part, tokens, acc);
    }
    EMBER_UNROLL
    for (int r = 0; r < R; ++r) {
        EMBER_UNROLL
        for (int t = 0; t < T; ++t) {
            sums[t][row + r] = acc[r][t];
        }
    }
}

/// The stretch times the tokens for up to kVecLanes rows; sums[t][r] as in add_rows.
template <class Q, int T>
EMBER_INLINE void add_stretch(Stretch part, bool whole_rows, int rows, const Tokens& tokens,
                              VecF32 (*sums)[kVecLanes]) {
    Scales<Q> scales;
    const int blocks = part.elements / Q::kBlock;
    const int groups = part.elements / Q::kGroup;
    const int rows_at_once = kScaledElements / part.elements / 2 * 2;
    for (int row = 0; row < rows; row += rows_at_once) {
        const int some = rows - row < rows_at_once ? rows - row : rows_at_once;
        for (int r = 0; r < some; r += whole_rows ? some : 1) {  // whole rows follow each other
            Q::scales(part.rows + r * part.row_bytes, whole_rows ? some * blocks : blocks, scales.d + r * groups,
                      scales.m + (Q::kHasMin ? r * groups : 0));
        }
        part.d = scales.d;
        part.m = scales.m;
        int r = 0;
        for (; r + kRowsAtOnce <= some; r += kRowsAtOnce) {
            add_rows<Q, kRowsAtOnce, T>(part, tokens, sums, row + r);
            part.rows += kRowsAtOnce * part.row_bytes;
            part.d += kRowsAtOnce * groups;
            part.m = Q::kHasMin ? part.m + kRowsAtOnce * groups : nullptr;
        }
        if (r < some) {
            add_rows<Q, 1, T>(part, tokens, sums, row + r);
            part.rows += part.row_bytes;
        }
    }
}

template <class Q, int T>
void rows_times_tokens(int64_t n, int64_t k, const Tokens& tokens, const uint8_t* w, float* y, int64_t y_stride) {
    constexpr int64_t kLongest = kScaledElements / 2;
    const int64_t row_bytes = k / Q::kBlock * Q::kBytes;
    for (; n > 0; n -= kVecLanes, y += kVecLanes, w += kVecLanes * row_bytes) {
        const int rows = static_cast<int>(n < kVecLanes ? n : kVecLanes);
        VecF32 sums[T][kVecLanes] = {};
        for (int64_t first = 0; first < k; first += kLongest) {
            const int elements = static_cast<int>(k - first < kLongest ? k - first : kLongest);
            const Stretch part = {first, elements, w + first / Q::kBlock * Q::kBytes, row_bytes, nullptr, nullptr};
            add_stretch<Q, T>(part, k <= kLongest, rows, tokens, sums);
        }
        EMBER_UNROLL
        for (int t = 0; t < T; ++t) {
            sum_lanes<float>(sums[t]);
            store_first(y + t * y_stride, sums[t][0], rows);
        }
    }
}

template <class Q>
void few_tokens(int64_t m, int64_t n, int64_t k, const float* x, int64_t x_stride, const float* sums,
                int64_t sums_stride, const uint8_t* w, float* y, int64_t y_stride) {
    for (; m > 0; m -= kTokensAtOnce) {
        const Tokens tokens = {x, x_stride, sums, sums_stride};
        if (m == 1) {
            rows_times_tokens<Q, 1>(n, k, tokens, w, y, y_stride);
        } else if (kTokensAtOnce < 4 || m == 2) {
            rows_times_tokens<Q, (kTokensAtOnce >= 2) ? 2 : 1>(n, k, tokens, w, y, y_stride);
        } else if (m == 3) {
            rows_times_tokens<Q, (kTokensAtOnce >= 4) ? 3 : 1>(n, k, tokens, w, y, y_stride);
        } else {
            rows_times_tokens<Q, kTokensAtOnce>(n, k, tokens, w, y, y_stride);
        }
        x += kTokensAtOnce * x_stride;
        sums = Q::kHasMin ? sums + kTokensAtOnce * sums_stride : nullptr;
        y += kTokensAtOnce * y_stride;
    }
}

template <class Q>
void dequantize(const uint8_t* row, float* to, int64_t n) {
    Scales<Q> scales;
    for (; n > 0; n -= kScaledElements) {
        const int blocks = static_cast<int>((n < kScaledElements ? n : kScaledElements) / Q::kBlock);
        Q::scales(row, blocks, scales.d, scales.m);
        for (int i = 0; i < blocks; ++i) {
            unroll<kGroupsPerBlock<Q>>([&]<int group>() __attribute__((always_inline)) {
                const int g = i * kGroupsPerBlock<Q> + group;
                unroll<kVecsPerGroup<Q>>([&]<int v>() __attribute__((always_inline)) {
                    VecF32 w = scales.d[g] * Q::template values<group, v>(row);
                    if constexpr (Q::kHasMin) {
                        w += scales.m[g];
                    }
                    store(to + group * Q::kGroup + v * kVecLanes, w);
                });
            });
            row += Q::kBytes;
            to += Q::kBlock;
        }
    }
}

inline void dequantize_f32(const uint8_t* row, float* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        __builtin_memcpy(to + i, row + i * 4, sizeof(float));
    }
}

template <float (*convert)(uint16_t)>
void dequantize_16_bit(const uint8_t* row, float* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        uint16_t bits;
        __builtin_memcpy(&bits, row + 2 * i, sizeof bits);
        to[i] = convert(bits);
    }
}

inline void dequantize_f16(const uint8_t* row, float* to, int64_t n) {
    int64_t i = 0;
#if defined(__AVX2__)
    for (; i + 8 <= n; i += 8) {
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + 2 * i))));
    }
#endif
    dequantize_16_bit<half_bits::f16_to_f32>(row + 2 * i, to + i, n - i);
}

template <class Q>
constexpr QuantKernels make_quant_kernels() {
    return {few_tokens<Q>, dequantize<Q>, Q::kHasMin};
}

// In the order of QType.
#define EMBER_QUANT_KERNELS                                          \
    {                                                                \
        {nullptr, dequantize_f32, false},                            \
        {nullptr, dequantize_f16, false},                            \
        {nullptr, dequantize_16_bit<half_bits::bf16_to_f32>, false}, \
        make_quant_kernels<Q4_0>(),                                  \
        make_quant_kernels<Q4_1>(),                                  \
        make_quant_kernels<Q5_0>(),                                  \
        make_quant_kernels<Q5_1>(),                                  \
        make_quant_kernels<Q8_0>(),                                  \
        make_quant_kernels<Q4_K>(),                                  \
        make_quant_kernels<Q5_K>(),                                  \
        make_quant_kernels<Q6_K>(),                                  \
    }

}  // namespace
}  // namespace ember::runtime
