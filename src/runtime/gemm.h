// Matrix product C = A·B with arbitrary strides, batched, threaded, for f32 and f64.
// Own packed and unpacked kernels, chosen by shape and layout at run time; no BLAS underneath.
// Invariants: an element of C is summed by one thread in an order that depends on the shape, the strides and the
// instruction set only, so results do not depend on the thread count. NaN and infinities propagate as in the plain
// triple loop; products may be contracted (FMA) and sums reassociated.
// Tests: test/unit/runtime_test.cpp.
#pragma once

#include <cstdint>

namespace ember::runtime {

inline constexpr int kMaxBatchRank = 8;

/// One batched product: for every batch index, c[i,j] = sum over l of a[i,l] * b[l,j], for i < m, j < n, l < k.
/// All strides count elements and may be zero or negative (those of c must give each element its own place); the
/// pointers are those of index zero. Elements must be aligned to their size. k = 0 gives zeros; m, n or a batch extent
/// of 0 does nothing. C must not overlap A or B. Plain data with this exact layout: generated code fills it in.
struct GemmArgs {
    int64_t m = 0, n = 0, k = 0;
    int64_t a_m = 0, a_k = 0;
    int64_t b_k = 0, b_n = 0;
    int64_t c_m = 0, c_n = 0;
    int32_t batch_rank = 0;  // 0..kMaxBatchRank; the arrays below have this many used places, outermost first
    int64_t batch[kMaxBatchRank] = {};
    int64_t a_batch[kMaxBatchRank] = {};
    int64_t b_batch[kMaxBatchRank] = {};
    int64_t c_batch[kMaxBatchRank] = {};
    const void* a = nullptr;
    const void* b = nullptr;
    void* c = nullptr;
};

void gemm_f32(const GemmArgs& args);
void gemm_f64(const GemmArgs& args);

}  // namespace ember::runtime
