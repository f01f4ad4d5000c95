// Kernels of products with packed weights (packed.h), for the vectors of vec.h. Included by kernels_<isa>.cpp only.
//   few   codes are decoded in registers, once for up to kFewAtOnce tokens: reading the weights is what takes time
//   many  two tiles are decoded to 16-bit numbers in the first-level cache and multiplied with all tokens
// Sums of a group are exact 32-bit integers (|code| <= 128, 32 activations of at most 2^15: below 2^27; q6_k's codes
// times their scales: 16 products below 2^27, at most 2^31 - 2^16); then f32, group by group in order of the columns.
// Tests: test/unit/packed_test.cpp, under every instruction set of the host.
#pragma once

#include "runtime/half_bits.h"
#include "runtime/kernels.h"
#include "runtime/packed_layout.h"
#include "runtime/vec.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace ember::runtime {
namespace {

typedef int16_t VecI16 __attribute__((vector_size(kVecBytes)));
typedef uint16_t VecU16 __attribute__((vector_size(kVecBytes)));

constexpr int kRowsOfVec = kLanes<float>;
constexpr int kVecsOfTile = 16 / kRowsOfVec;

template <class V>
EMBER_INLINE V load_vec(const void* from) {
    V v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
}

template <int... i, class F>
EMBER_INLINE void each_pair_of(F&& f) {
    (f.template operator()<i>(), ...);
}
template <class F>
EMBER_INLINE void each_pair(F&& f) {
    each_pair_of<0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>(f);
}

/// sum + the products of both 16-bit halves of each lane, added up.
EMBER_INLINE VecI32 add_products(VecI32 sum, VecI32 a, VecI32 b) {
#if defined(__AVX512VNNI__)
    return (VecI32)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#elif defined(__AVX512BW__)
    return sum + (VecI32)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    return sum + (VecI32)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    return sum + (VecI32)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    return sum + ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
#endif
}

EMBER_INLINE VecI32 broadcast_pair(const int16_t* pair) {
    int32_t bits;
    __builtin_memcpy(&bits, pair, sizeof bits);
    return VecI32{} + bits;
}

EMBER_INLINE VecF32 as_float(VecI32 v) {
    return __builtin_convertvector(v, VecF32);
}

EMBER_INLINE VecF32 load_halves(const uint8_t* from) {
#if defined(__AVX512F__)
    return (VecF32)_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
#elif defined(__AVX2__)
    return (VecF32)_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
#else
    VecF32 v;
    for (int i = 0; i < kRowsOfVec; ++i) {
        uint16_t bits;
        __builtin_memcpy(&bits, from + 2 * i, sizeof bits);
        v[i] = half_bits::f16_to_f32(bits);
    }
    return v;
#endif
}

template <class Byte>
EMBER_INLINE VecF32 load_small(const uint8_t* from) {
    typedef Byte Bytes __attribute__((vector_size(kRowsOfVec)));
    return as_float(__builtin_convertvector(load_vec<Bytes>(from), VecI32));
}

/// Bit `from` of each half in the place of bit `to`.
template <int from, int to>
EMBER_INLINE VecU16 moved_bit(VecU16 v) {
    constexpr uint16_t kBit = 1 << to;
    if constexpr (from < to) {
        return (v << (to - from)) & kBit;
    } else {
        return (v >> (from - to)) & kBit;
    }
}

/// The codes of pair p as 16-bit numbers, without the type's offset. codes: of the group, at the vector's rows.
template <int bits, int p>
EMBER_INLINE VecI32 pair_codes(const uint8_t* codes) {
    constexpr int c = p / 4, j = p % 4;
    if constexpr (bits == 8) {
        const auto v = load_vec<VecI16>(codes + (c + j % 2 * 4) * kPlaneBytes);
        return j < 2 ? (VecI32)((VecI16)((VecU16)v << 8) >> 8) : (VecI32)(v >> 8);
    } else {
        const auto v = load_vec<VecU16>(codes + c * kPlaneBytes);
        VecU16 code = j == 3 ? v >> 12 : (v >> (4 * j)) & 15;
        if constexpr (bits > 4) {
            code |= moved_bit<pair_bit(p), 4>(load_vec<VecU16>(codes + 4 * kPlaneBytes));
        }
        if constexpr (bits > 5) {
            code |= moved_bit<pair_bit(p), 5>(load_vec<VecU16>(codes + 5 * kPlaneBytes));
        }
        return (VecI32)code;
    }
}

/// Scales of a group's rows; q6_k: d of the even pairs (columns 0 to 15), d_odd of the odd ones.
struct RowScales {
    VecF32 d, m, d_odd;
};

template <QType type>
EMBER_INLINE RowScales row_scales(const uint8_t* scales, int64_t g, int first_row) {
    constexpr PackedScales kind = packed_layout(type).scales;
    RowScales s = {};
    if constexpr (kind == PackedScales::kUnit) {
        s.d = load_halves(scales + g * 32 + 2 * first_row);
    } else if constexpr (kind == PackedScales::kUnitMin) {
        s.d = load_halves(scales + g * 64 + 2 * first_row);
        s.m = load_halves(scales + g * 64 + 32 + 2 * first_row);
    } else if constexpr (kind == PackedScales::kPairs) {
        const uint8_t* block = scales + g / 8 * 320;
        const uint8_t* pair = block + 64 + g % 8 * 32 + first_row;
        s.d = load_halves(block + 2 * first_row) * load_small<uint8_t>(pair);
        s.m = -load_halves(block + 32 + 2 * first_row) * load_small<uint8_t>(pair + 16);
    } else {
        const uint8_t* block = scales + g / 8 * 288;
        const uint8_t* pair = block + 32 + g % 8 * 32 + first_row;
        const VecF32 unit = load_halves(block + 2 * first_row);
        s.d = unit * load_small<int8_t>(pair);
        s.d_odd = unit * load_small<int8_t>(pair + 16);
    }
    if constexpr (packed_layout(type).offset != 0 && kind == PackedScales::kUnit) {
        s.m = s.d * static_cast<float>(-packed_layout(type).offset);
    }
    return s;
}

// ---- few tokens ----

/// Up to six rows by two pointers and a stride: six pointers would not leave registers for anything else.
template <class T>
struct SixRows {
    const T* first;
    const T* fourth;
    int64_t stride;

    EMBER_INLINE SixRows(const T* rows, int64_t stride) : first(rows), fourth(rows + 3 * stride), stride(stride) {}
    EMBER_INLINE const T* operator[](int t) const { return t < 3 ? first + t * stride : fourth + (t - 3) * stride; }
    EMBER_INLINE void advance(int64_t n) {
        first += n;
        fourth += n;
    }
};

constexpr int kFewAtOnce = kVecRegisters == 32 ? 4 : 2;
constexpr int64_t kPrefetchAhead = 8192;

template <QType type, int T>
EMBER_INLINE void add_group(const RowScales& w, const VecI32 (*sums)[4], const SixRows<GroupScale>& x, VecF32* acc) {
    constexpr PackedLayout layout = packed_layout(type);
    constexpr int kChains = T == 1 ? 4 : 2;
    EMBER_UNROLL
    for (int t = 0; t < T; ++t) {
        const GroupScale& scale = *x[t];
        VecI32 even = sums[t][0], odd = sums[t][1];
        if constexpr (kChains == 4) {
            even += sums[t][2];
            odd += sums[t][3];
        }
        if constexpr (layout.scales == PackedScales::kSixteens) {
            acc[t] += scale.d * (w.d * as_float(even) + w.d_odd * as_float(odd));
            acc[t] += w.d * (scale.sum_even * -32.0F) + w.d_odd * (scale.sum_odd * -32.0F);
        } else {
            acc[t] += w.d * (scale.d * as_float(even + odd));
            if constexpr (layout.scales != PackedScales::kUnit || layout.offset != 0) {
                acc[t] += w.m * scale.sum;
            }
        }
    }
}

/// A tile times T tokens from `token` on.
template <QType type, int T>
void tile_times_tokens(const PackedProduct& p, const uint8_t* tile, int64_t token, float* y, int rows) {
    constexpr PackedLayout layout = packed_layout(type);
    constexpr int kChains = T == 1 ? 4 : 2;
    constexpr int64_t kGroupBytes = layout.bits * kPlaneBytes;
    const int64_t groups = p.k / kGroup;
    const uint8_t* const codes_of_tile = tile + packed_codes_at(layout.scales, groups);
    for (int v = 0; v < kVecsOfTile && v * kRowsOfVec < rows; ++v) {
        const uint8_t* codes = codes_of_tile + v * kVecBytes;
        SixRows<int16_t> x(p.x + token * p.k, p.k);
        SixRows<GroupScale> x_scales(p.x_scales + token * groups, groups);
        VecF32 acc[T] = {};
        for (int64_t g = 0; g < groups; ++g, codes += kGroupBytes) {
            if (v == 0) {
                EMBER_UNROLL
                for (int64_t line = 0; line < kGroupBytes; line += 64) {
                    __builtin_prefetch(codes + kPrefetchAhead + line);
                }
            }
            VecI32 sums[T][4] = {};
            each_pair([&]<int i>() __attribute__((always_inline)) {
                const VecI32 w = pair_codes<layout.bits, i>(codes);
                EMBER_UNROLL
                for (int t = 0; t < T; ++t) {
                    VecI32& sum = sums[t][i % kChains];
                    sum = add_products(sum, w, broadcast_pair(x[t] + 2 * i));
                }
            });
            add_group<type, T>(row_scales<type>(tile, g, v * kRowsOfVec), sums, x_scales, acc);
            x.advance(kGroup);
            x_scales.advance(1);
        }
        const int left = rows - v * kRowsOfVec;
        EMBER_UNROLL
        for (int t = 0; t < T; ++t) {
            store_first(y + t * p.y_stride + v * kRowsOfVec, acc[t], left < kRowsOfVec ? left : kRowsOfVec);
        }
    }
}

template <QType type>
void packed_few(const PackedProduct& p, int64_t first_tile, int64_t tiles) {
    const int64_t tile_bytes = packed_tile_bytes(packed_layout(type), p.k / kGroup);
    for (int64_t i = first_tile; i < first_tile + tiles; ++i) {
        const uint8_t* tile = p.tiles + i * tile_bytes;
        const int rows = static_cast<int>(p.n - i * 16 < 16 ? p.n - i * 16 : 16);
        for (int64_t token = 0; token < p.m;) {
            float* y = p.y + token * p.y_stride + i * 16;
            const int64_t left = p.m - token;
            if (left >= 4 && kFewAtOnce >= 4) {
                tile_times_tokens<type, (kFewAtOnce >= 4) ? 4 : 1>(p, tile, token, y, rows);
                token += 4;
            } else if (left == 3 && kFewAtOnce >= 4) {
                tile_times_tokens<type, (kFewAtOnce >= 4) ? 3 : 1>(p, tile, token, y, rows);
                token += 3;
            } else if (left >= 2) {
                tile_times_tokens<type, 2>(p, tile, token, y, rows);
                token += 2;
            } else {
                tile_times_tokens<type, 1>(p, tile, token, y, rows);
                token += 1;
            }
        }
    }
}

// ---- many tokens ----

// Two tiles side by side, and as many groups of them as stay in a first-level cache of 32 KB.
constexpr int kPanelRows = 32;
constexpr int kPanelGroups = 12;
constexpr int kPanelTokens = kVecRegisters == 32 ? 6 : 2;

enum class PanelKind { kUnit, kUnitMin, kHalves };

template <QType type>
constexpr PanelKind kPanelKind = packed_layout(type).scales == PackedScales::kSixteens ? PanelKind::kHalves
                                 : packed_layout(type).scales == PackedScales::kUnit   ? PanelKind::kUnit
                                                                                       : PanelKind::kUnitMin;

struct Panel {
    alignas(64) int32_t pairs[kPanelGroups][kPairs][kPanelRows];  // two 16-bit codes each, less the offset
    alignas(64) float d[kPanelGroups][kPanelRows];
    alignas(64) float m[kPanelGroups][kPanelRows];
    int groups;
};

/// Groups [first, first + panel.groups) of a tile to the rows from `column` on. q6_k: codes become products with their
/// scales, and pairs with even j come first.
template <QType type>
void decode_tile(const uint8_t* tile, int64_t all_groups, int64_t first, int column, Panel& panel) {
    constexpr PackedLayout layout = packed_layout(type);
    const uint8_t* codes = tile + packed_codes_at(layout.scales, all_groups) + first * layout.bits * kPlaneBytes;
    for (int g = 0; g < panel.groups; ++g, codes += layout.bits * kPlaneBytes) {
        for (int v = 0; v < kVecsOfTile; ++v) {
            const int rows = v * kRowsOfVec;
            const auto put = [&]<int i>() __attribute__((always_inline)) {
                VecI16 w =
                    (VecI16)pair_codes<layout.bits, i>(codes + v * kVecBytes) - static_cast<int16_t>(layout.offset);
                if constexpr (layout.scales == PackedScales::kSixteens) {
                    typedef int8_t Bytes __attribute__((vector_size(kRowsOfVec)));
                    const uint8_t* scales = tile + (first + g) / 8 * 288 + 32 + (first + g) % 8 * 32 + i % 2 * 16;
                    const VecI32 scale = __builtin_convertvector(load_vec<Bytes>(scales + rows), VecI32);
                    w *= (VecI16)((scale & 0xffff) | (scale << 16));
                }
                __builtin_memcpy(&panel.pairs[g][i][column + rows], &w, sizeof w);
            };
            each_pair(put);
            if constexpr (layout.scales == PackedScales::kSixteens) {
                store(&panel.d[g][column + rows], load_halves(tile + (first + g) / 8 * 288 + 2 * rows));
            } else {
                const RowScales s = row_scales<type>(tile, first + g, rows);
                store(&panel.d[g][column + rows], s.d);
                store(&panel.m[g][column + rows], s.m);
            }
        }
    }
}

/// y (+)= two vectors of the panel's rows, from `column` on, times T tokens.
// Long because all its sums stay in registers from beginning to end.
template <PanelKind kind, int T>
void panel_times_tokens(const PackedProduct& p, const Panel& panel, int column, int64_t first_group, int64_t token,
                        float* y, int rows) {
    constexpr int kHalves = kind == PanelKind::kHalves ? 2 : 1;
    const int counts[2] = {rows < kRowsOfVec ? rows : kRowsOfVec,
                           rows < 2 * kRowsOfVec ? rows - kRowsOfVec : kRowsOfVec};
    const int64_t groups = p.k / kGroup;
    SixRows<int16_t> x(p.x + token * p.k + first_group * kGroup, p.k);
    SixRows<GroupScale> scales(p.x_scales + token * groups + first_group, groups);
    VecF32 acc[T][2];
    EMBER_UNROLL
    for (int t = 0; t < T; ++t) {
        EMBER_UNROLL
        for (int v = 0; v < 2; ++v) {
            acc[t][v] = first_group > 0 && counts[v] > 0 ? load_first(y + t * p.y_stride + v * kRowsOfVec, counts[v])
                                                         : VecF32{};
        }
    }
    const float* d = &panel.d[0][column];
    const float* m = &panel.m[0][column];
    for (int g = 0; g < panel.groups; ++g) {
        EMBER_UNROLL
        for (int half = 0; half < kHalves; ++half) {
            VecI32 sums[T][2] = {};
            const int32_t* w = &panel.pairs[g][half][column];
            const int32_t* const end = w + kPairs * kPanelRows;
            SixRows<int16_t> pair = x;
            pair.advance(2 * half);
            for (; w < end; w += kHalves * kPanelRows) {
                const auto w0 = load_vec<VecI32>(w);
                const auto w1 = load_vec<VecI32>(w + kRowsOfVec);
                EMBER_UNROLL
                for (int t = 0; t < T; ++t) {
                    const VecI32 both = broadcast_pair(pair[t]);
                    sums[t][0] = add_products(sums[t][0], w0, both);
                    sums[t][1] = add_products(sums[t][1], w1, both);
                }
                pair.advance(2 * kHalves);
            }
            const VecF32 d0 = load(d), d1 = load(d + kRowsOfVec);
            EMBER_UNROLL
            for (int t = 0; t < T; ++t) {
                const float scale = scales[t]->d;
                acc[t][0] += d0 * (scale * as_float(sums[t][0]));
                acc[t][1] += d1 * (scale * as_float(sums[t][1]));
            }
        }
        if constexpr (kind == PanelKind::kUnitMin) {
            const VecF32 m0 = load(m), m1 = load(m + kRowsOfVec);
            EMBER_UNROLL
            for (int t = 0; t < T; ++t) {
                const float sum = scales[t]->sum;
                acc[t][0] += m0 * sum;
                acc[t][1] += m1 * sum;
            }
        }
        x.advance(kGroup);
        scales.advance(1);
        d += kPanelRows;
        m += kPanelRows;
    }
    EMBER_UNROLL
    for (int t = 0; t < T; ++t) {
        EMBER_UNROLL
        for (int v = 0; v < 2; ++v) {
            if (counts[v] > 0) {
                store_first(y + t * p.y_stride + v * kRowsOfVec, acc[t][v], counts[v]);
            }
        }
    }
}

template <PanelKind kind>
void panel_times(const PackedProduct& p, const Panel& panel, int64_t first_group, int64_t begin, int64_t end, float* y,
                 int rows) {
    for (int column = 0; column < rows; column += 2 * kRowsOfVec) {
        const auto times = [&]<int T>(int64_t token) __attribute__((always_inline)) {
            panel_times_tokens<kind, T>(p, panel, column, first_group, token, y + token * p.y_stride + column,
                                        rows - column);
        };
        int64_t token = begin;
        for (; token + kPanelTokens <= end; token += kPanelTokens) {
            times.template operator()<kPanelTokens>(token);
        }
        if constexpr (kPanelTokens == 6) {
            if (token + 3 <= end) {
                times.template operator()<(kPanelTokens == 6) ? 3 : 1>(token);
                token += 3;
            }
        }
        for (; token < end; ++token) {
            times.template operator()<1>(token);
        }
    }
}

template <QType type>
void packed_many(const PackedProduct& p, int64_t first_tile, int64_t tiles, int64_t begin, int64_t end) {
    Panel panel;
    const int64_t groups = p.k / kGroup;
    const int64_t tile_bytes = packed_tile_bytes(packed_layout(type), groups);
    const int64_t passes = (groups + kPanelGroups - 1) / kPanelGroups;
    for (int64_t i = first_tile; i < first_tile + tiles; i += 2) {
        const int64_t left = p.n - i * 16;
        const int rows = static_cast<int>(left < kPanelRows ? left : kPanelRows);
        int64_t first = 0;
        for (int64_t pass = 0; pass < passes; ++pass, first += panel.groups) {
            panel.groups = static_cast<int>((groups - first + passes - pass - 1) / (passes - pass));
            for (int side = 0; side < 2 && side * 16 < rows; ++side) {
                decode_tile<type>(p.tiles + (i + side) * tile_bytes, groups, first, side * 16, panel);
            }
            panel_times<kPanelKind<type>>(p, panel, first, begin, end, p.y + i * 16, rows);
        }
    }
}

// ---- activations ----

constexpr int32_t kNotFinite = 0x7f800000, kTooSmall = 0x0d800000;  // infinity, 2^-100

/// d for a group whose largest magnitude has these bits; what to multiply its numbers with.
inline float set_scale(int32_t largest, GroupScale& scale) {
    float magnitude;
    __builtin_memcpy(&magnitude, &largest, sizeof magnitude);
    scale.d = largest >= kNotFinite ? __builtin_nanf("") : largest < kTooSmall ? 0.0F : magnitude / 32767.0F;
    return largest >= kNotFinite || largest < kTooSmall ? 0.0F : 32767.0F / magnitude;
}

EMBER_INLINE void sum_lanes_of(VecI32 v, int32_t& sum) {
#if defined(__AVX512F__)
    sum = _mm512_reduce_add_epi32((__m512i)v);
#else
    sum = 0;
    for (int i = 0; i < kRowsOfVec; ++i) {
        sum += v[i];
    }
#endif
}

/// 32 numbers in the order of their columns to the order of pairs.
EMBER_INLINE void store_pairs(const VecI32* columns, int16_t* q) {
#if defined(__AVX512F__)
    alignas(64) static constexpr int16_t kOrder[32] = {0, 2,  16, 18, 1, 3,  17, 19, 4,  6,  20, 22, 5,  7,  21, 23,
                                                       8, 10, 24, 26, 9, 11, 25, 27, 12, 14, 28, 30, 13, 15, 29, 31};
    const __m512i both = _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16((__m512i)columns[0])),
                                            _mm512_cvtepi32_epi16((__m512i)columns[1]), 1);
    _mm512_storeu_si512(q, _mm512_permutexvar_epi16(_mm512_load_si512(kOrder), both));
#else
    int32_t plain[kGroup];
    __builtin_memcpy(plain, columns, sizeof plain);
    for (int p = 0; p < kPairs; ++p) {
        q[2 * p] = static_cast<int16_t>(plain[pair_column(p)]);
        q[2 * p + 1] = static_cast<int16_t>(plain[pair_column(p) + 2]);
    }
#endif
}

/// q[32g + 2p], q[32g + 2p + 1] = pair p of group g, in units of its scale.
inline void quantize_activations(const float* x, int64_t k, int16_t* q, GroupScale* scales) {
    constexpr int kVecs = kGroup / kRowsOfVec;
    constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: a sum with it has units of 1
    for (int64_t g = 0; g < k / kGroup; ++g, x += kGroup, q += kGroup) {
        VecF32 v[kVecs];
        VecI32 most = {};
        EMBER_UNROLL
        for (int i = 0; i < kVecs; ++i) {
            v[i] = load(x + i * kRowsOfVec);
            const VecI32 magnitude = (VecI32)v[i] & 0x7fffffff;
            most = magnitude > most ? magnitude : most;
        }
        int32_t largest = 0;
#if defined(__AVX512F__)
        largest = _mm512_reduce_max_epi32((__m512i)most);
#else
        for (int i = 0; i < kRowsOfVec; ++i) {
            largest = most[i] > largest ? most[i] : largest;
        }
#endif
        GroupScale& scale = scales[g];
        const float inverse = set_scale(largest, scale);
        if (largest >= kNotFinite) {
            EMBER_UNROLL
            for (int i = 0; i < kVecs; ++i) {
                v[i] = VecF32{};
            }
        }
        VecI32 rounded[kVecs];
        VecI32 even = {}, odd = {};
        EMBER_UNROLL
        for (int i = 0; i < kVecs; ++i) {
            rounded[i] = (VecI32)(v[i] * inverse + kRound) - 0x4b400000;
            (i < kVecs / 2 ? even : odd) += rounded[i];
        }
        int32_t sums[2];
        store_pairs(rounded, q);
        sum_lanes_of(even, sums[0]);
        sum_lanes_of(odd, sums[1]);
        scale.sum = scale.d * static_cast<float>(sums[0] + sums[1]);
        scale.sum_even = scale.d * static_cast<float>(sums[0]);
        scale.sum_odd = scale.d * static_cast<float>(sums[1]);
    }
}

template <QType type>
constexpr PackedTypeKernels make_packed_kernels() {
    return {packed_few<type>, packed_many<type>};
}

// By QType.
constexpr PackedKernels kPackedKernels = {
    quantize_activations,
    {
        {nullptr, nullptr},
        {nullptr, nullptr},
        {nullptr, nullptr},
        make_packed_kernels<QType::kQ4_0>(),
        make_packed_kernels<QType::kQ4_1>(),
        make_packed_kernels<QType::kQ5_0>(),
        make_packed_kernels<QType::kQ5_1>(),
        make_packed_kernels<QType::kQ8_0>(),
        make_packed_kernels<QType::kQ4_K>(),
        make_packed_kernels<QType::kQ5_K>(),
        make_packed_kernels<QType::kQ6_K>(),
    },
};

}  // namespace
}  // namespace ember::runtime
