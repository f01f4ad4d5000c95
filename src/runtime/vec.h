// Vectors as wide as the instruction set that the including file is compiled for. Only for kernels_*.cpp: each of them
// is compiled with its own flags, so everything here has internal linkage and no standard template is used (the linker
// keeps one copy of a template's code, and it must not be one that an older processor cannot run).
// Tests: through the kernels, test/unit/runtime_test.cpp.
#pragma once

#include <stdint.h>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#if defined(__clang__)
#define EMBER_UNROLL _Pragma("clang loop unroll(full)")
#else
#define EMBER_UNROLL _Pragma("GCC unroll 64")
#endif
#define EMBER_INLINE [[gnu::always_inline]] inline

namespace ember::runtime {
namespace {

#if defined(__AVX512F__)
constexpr int kVecBytes = 64;
constexpr int kVecRegisters = 32;
#elif defined(__AVX2__)
constexpr int kVecBytes = 32;
constexpr int kVecRegisters = 16;
#elif defined(__aarch64__)
constexpr int kVecBytes = 16;
constexpr int kVecRegisters = 32;
#else
constexpr int kVecBytes = 16;
constexpr int kVecRegisters = 16;
#endif

template <class T>
constexpr int kLanes = kVecBytes / static_cast<int>(sizeof(T));

typedef float VecF32 __attribute__((vector_size(kVecBytes)));
typedef double VecF64 __attribute__((vector_size(kVecBytes)));
typedef int32_t VecI32 __attribute__((vector_size(kVecBytes)));
typedef uint32_t VecU32 __attribute__((vector_size(kVecBytes)));
typedef int64_t VecI64 __attribute__((vector_size(kVecBytes)));

template <class T>
struct VecOf;
template <>
struct VecOf<float> {
    using type = VecF32;
    using mask = VecI32;
};
template <>
struct VecOf<double> {
    using type = VecF64;
    using mask = VecI64;
};
template <class T>
using Vec = typename VecOf<T>::type;

template <class T>
EMBER_INLINE Vec<T> load(const T* from) {
    Vec<T> v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
}

template <class T>
EMBER_INLINE void store(T* to, Vec<T> v) {
    __builtin_memcpy(to, &v, sizeof v);
}

/// The first `count` lanes, 0 < count <= kLanes; the others are zero and their memory is not touched.
EMBER_INLINE VecF32 load_first(const float* from, int count) {
#if defined(__AVX512F__)
    return (VecF32)_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), from);
#else
    VecF32 v = {};
    __builtin_memcpy(&v, from, static_cast<unsigned>(count) * sizeof(float));
    return v;
#endif
}

EMBER_INLINE VecF64 load_first(const double* from, int count) {
#if defined(__AVX512F__)
    return (VecF64)_mm512_maskz_loadu_pd(static_cast<__mmask8>((1u << count) - 1), from);
#else
    VecF64 v = {};
    __builtin_memcpy(&v, from, static_cast<unsigned>(count) * sizeof(double));
    return v;
#endif
}

EMBER_INLINE void store_first(float* to, VecF32 v, int count) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1u << count) - 1), (__m512)v);
#else
    __builtin_memcpy(to, &v, static_cast<unsigned>(count) * sizeof(float));
#endif
}

EMBER_INLINE void store_first(double* to, VecF64 v, int count) {
#if defined(__AVX512F__)
    _mm512_mask_storeu_pd(to, static_cast<__mmask8>((1u << count) - 1), (__m512d)v);
#else
    __builtin_memcpy(to, &v, static_cast<unsigned>(count) * sizeof(double));
#endif
}

// One step of a transposing sum: bit `b` of the result's lane number says whose sum it holds (x: 0, y: 1), and lanes
// that differed in that bit have been added up.
template <class T, int b, int... i>
EMBER_INLINE Vec<T> fold_lanes(Vec<T> x, Vec<T> y) {
    return __builtin_shufflevector(x, y, ((i & b) ? kLanes<T> + i - b : i)...) +
           __builtin_shufflevector(x, y, ((i & b) ? kLanes<T> + i : i + b)...);
}

template <class T, int b>
EMBER_INLINE Vec<T> fold(Vec<T> x, Vec<T> y) {
    if constexpr (kLanes<T> == 16) {
        return fold_lanes<T, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>(x, y);
    } else if constexpr (kLanes<T> == 8) {
        return fold_lanes<T, b, 0, 1, 2, 3, 4, 5, 6, 7>(x, y);
    } else if constexpr (kLanes<T> == 4) {
        return fold_lanes<T, b, 0, 1, 2, 3>(x, y);
    } else {
        return fold_lanes<T, b, 0, 1>(x, y);
    }
}

/// v[0] becomes the vector whose lane i is the sum of the lanes of v[i], for kLanes vectors; v is used up.
template <class T, int b = 1>
EMBER_INLINE void sum_lanes(Vec<T>* v) {
    if constexpr (b < kLanes<T>) {
        EMBER_UNROLL
        for (int i = 0; i < kLanes<T> / b / 2; ++i) {
            v[i] = fold<T, b>(v[2 * i], v[2 * i + 1]);
        }
        sum_lanes<T, 2 * b>(v);
    }
}

/// sums[i] = the sum of the lanes of v[i].
template <class T, int count>
EMBER_INLINE void sum_lanes(const Vec<T>* v, T* sums) {
    EMBER_UNROLL
    for (int first = 0; first < count; first += kLanes<T>) {
        Vec<T> group[kLanes<T>] = {};
        EMBER_UNROLL
        for (int i = 0; i < kLanes<T>; ++i) {
            if (first + i < count) {
                group[i] = v[first + i];
            }
        }
        sum_lanes<T>(group);
        constexpr int rest = count % kLanes<T>;
        if (first + kLanes<T> <= count) {
            store(sums + first, group[0]);
        } else {
            store_first(sums + first, group[0], rest);
        }
    }
}

}  // namespace
}  // namespace ember::runtime
