// The tables of single-threaded kernels, one per instruction set; gemm.cpp, quantized.cpp and packed.cpp drive them.
// kernels_<isa>.cpp and packed_<isa>.cpp define a table each from the same templates (gemm_kernels.h,
// quantized_kernels.h; packed_kernels.h).
// Tests: test/unit/runtime_test.cpp, under every instruction set of the host.
#pragma once

#include <stdint.h>

#include "runtime/isa.h"
#include "runtime/quantized.h"

namespace ember::runtime {

/// Sums run over l in order, one element at a time (vectors span the columns), except in `dot`.
template <class T>
struct GemmKernels {
    int32_t lanes;        // of a vector
    int32_t panel_rows;   // rows of A a packed panel holds
    int32_t panel_cols;   // columns of B a packed panel holds
    int32_t dot_columns;  // `dot` is fastest on multiples of this many columns

    /// Panels of panel_rows rows (panel_cols columns), the last one padded with zeros: element (i, l) of
    /// from[i*stride + l*stride_k] goes to panel i/P, place l*P + i%P. `to` has room for the padded panels and kLanes
    /// more.
    void (*pack_a)(int64_t count, int64_t k, const T* from, int64_t stride, int64_t stride_k, T* to);
    void (*pack_b)(int64_t count, int64_t k, const T* from, int64_t stride, int64_t stride_k, T* to);

    /// c (+)= a·b with both packed.
    void (*packed)(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c, int64_t c_m, int64_t c_n, bool add);

    /// c (+)= a·b with a packed and rows of b contiguous, b_k apart.
    void (*direct)(int64_t m, int64_t n, int64_t k, const T* a, const T* b, int64_t b_k, T* c, int64_t c_m, int64_t c_n,
                   bool add);

    /// c = a·bᵀ: rows of a (m of them, a_m apart) and of b (n, b_n apart) are contiguous. Every element is summed in
    /// `lanes` parts, whatever m and n are.
    void (*dot)(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_m, const T* b, int64_t b_n, T* c, int64_t c_m,
                int64_t c_n);
};

struct HalfKernels {
    void (*f16_to_f32)(const uint16_t* from, float* to, int64_t n);
    void (*f32_to_f16)(const float* from, uint16_t* to, int64_t n);
    void (*bf16_to_f32)(const uint16_t* from, float* to, int64_t n);
    void (*f32_to_bf16)(const float* from, uint16_t* to, int64_t n);
};

/// The most tokens that few_tokens() takes.
inline constexpr int64_t kFewTokens = 4;

/// Of one QType, in the layout of quantized.h.
struct QuantKernels {
    /// y[m,n] = x[m,k]·wᵀ for 1 <= m <= kFewTokens; sums[t*sums_stride + g] is the sum of elements [32g, 32g + 32) of
    /// x's row t, used where needs_sums. Null for the types with one element a block.
    void (*few_tokens)(int64_t m, int64_t n, int64_t k, const float* x, int64_t x_stride, const float* sums,
                       int64_t sums_stride, const uint8_t* w, float* y, int64_t y_stride);
    void (*dequantize)(const uint8_t* row, float* to, int64_t n);
    bool needs_sums;
};

/// Of 32 activations q: x = d*q, and d times the sum of q, of that of columns 0 to 15 and of 16 to 31.
struct GroupScale {
    float d, sum, sum_even, sum_odd;
};

/// y[m,n] = x·wᵀ with packed weights and activations that are 16-bit numbers, pairs in the order of packed.h.
struct PackedProduct {
    int64_t m, n, k;
    const uint8_t* tiles;
    const int16_t* x;            // [m, k]
    const GroupScale* x_scales;  // [m, k/32]
    float* y;
    int64_t y_stride;
};

struct PackedTypeKernels {
    void (*few)(const PackedProduct& p, int64_t first_tile, int64_t tiles);
    /// The tokens [begin, end) of it; first_tile is even.
    void (*many)(const PackedProduct& p, int64_t first_tile, int64_t tiles, int64_t begin, int64_t end);
};

struct PackedKernels {
    void (*quantize)(const float* x, int64_t k, int16_t* q, GroupScale* scales);
    PackedTypeKernels type[kQTypeCount];
};

/// What attention_kernels.h defines.
struct AttentionKernels {
    float (*exp_row)(float* s, int64_t n, int64_t room, float* most);
    void (*weighted_rows)(int64_t r, int64_t n, int64_t width, const float* p, int64_t p_stride, const float* rows,
                          float* o);
    void (*widen)(const uint16_t* from, float* to, int64_t n);
};

struct Kernels {
    GemmKernels<float> f32;
    GemmKernels<double> f64;
    HalfKernels half;
    QuantKernels quant[kQTypeCount];
    AttentionKernels attention;
};

extern const Kernels kKernelsBaseline;
#if defined(__x86_64__)
extern const Kernels kKernelsAvx2;
extern const Kernels kKernelsAvx512;
#endif

extern const PackedKernels kPackedBaseline;
#if defined(__x86_64__)
extern const PackedKernels kPackedAvx2;
extern const PackedKernels kPackedAvx512;
extern const PackedKernels kPackedVnni;
#endif

/// The table for active_isa().
inline const Kernels& kernels() {
#if defined(__x86_64__)
    switch (active_isa()) {
        case Isa::kAvx512Vnni:
        case Isa::kAvx512:
            return kKernelsAvx512;
        case Isa::kAvx2:
            return kKernelsAvx2;
        case Isa::kBaseline:
            break;
    }
#endif
    return kKernelsBaseline;
}

inline const PackedKernels& packed_kernels() {
#if defined(__x86_64__)
    switch (active_isa()) {
        case Isa::kAvx512Vnni:
            return kPackedVnni;
        case Isa::kAvx512:
            return kPackedAvx512;
        case Isa::kAvx2:
            return kPackedAvx2;
        case Isa::kBaseline:
            break;
    }
#endif
    return kPackedBaseline;
}

template <class T>
const GemmKernels<T>& gemm_kernels();
template <>
inline const GemmKernels<float>& gemm_kernels<float>() {
    return kernels().f32;
}
template <>
inline const GemmKernels<double>& gemm_kernels<double>() {
    return kernels().f64;
}

}  // namespace ember::runtime
