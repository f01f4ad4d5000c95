// Products with block-quantised weights, straight from the layout that a GGUF file has them in.
// Activations stay f32 and every weight counts with its exact dequantised value: errors are those of f32 sums only.
// Invariants: results do not depend on the thread count; weights need no alignment.
// Format of the blocks: the GGML quantisation types of the GGUF specification; each is restated beside its decoder in
// quantized.cpp. Tests: test/unit/runtime_test.cpp.
#pragma once

#include <cstdint>

namespace ember::runtime {

/// Storage of a row of weights. The numbers are part of the interface with generated code.
enum class QType : int32_t {
    kF32 = 0,
    kF16 = 1,
    kBf16 = 2,
    kQ4_0 = 3,
    kQ4_1 = 4,
    kQ5_0 = 5,
    kQ5_1 = 6,
    kQ8_0 = 7,
    kQ4_K = 8,
    kQ5_K = 9,
    kQ6_K = 10,
};
inline constexpr int kQTypeCount = 11;

struct QTypeInfo {
    const char* name;  // "q4_0"
    int32_t block;     // elements a block
    int32_t bytes;     // bytes a block
};

inline constexpr QTypeInfo kQTypes[kQTypeCount] = {
    {"f32", 1, 4},    {"f16", 1, 2},    {"bf16", 1, 2},     {"q4_0", 32, 18},   {"q4_1", 32, 20},   {"q5_0", 32, 22},
    {"q5_1", 32, 24}, {"q8_0", 32, 34}, {"q4_k", 256, 144}, {"q5_k", 256, 176}, {"q6_k", 256, 210},
};

constexpr const QTypeInfo& qtype_info(QType type) {
    return kQTypes[static_cast<int32_t>(type)];
}

/// Bytes of a row of n elements; n must be a multiple of the block.
constexpr int64_t row_bytes(QType type, int64_t n) {
    return n / qtype_info(type).block * qtype_info(type).bytes;
}

/// y[m,n] = x[m,k]·w[n,k]ᵀ. Rows of x and y are contiguous and x_stride, y_stride elements apart; rows of w follow each
/// other without a gap, row_bytes(type, k) each; k is a multiple of the block. k = 0 gives zeros. Threaded over n.
void qmatmul(QType type, int64_t m, int64_t n, int64_t k, const float* x, int64_t x_stride, const void* w, float* y,
             int64_t y_stride);

/// The n elements that `row` stores, as f32; n is a multiple of the block. For embedding look-ups.
void dequantize_row(QType type, const void* row, float* to, int64_t n);

}  // namespace ember::runtime
