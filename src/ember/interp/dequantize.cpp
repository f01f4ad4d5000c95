// Block-quantised storage to f32. The block definitions are those of the GGUF format: per block one or two f16 scales,
// packed small integers, and for the k-types packed scales of sub-blocks. Each value is computed in double and rounded
// once; all intermediate products fit in double, so this is the exact value rounded.
#include <cstring>

#include "ember/interp/layout.h"
#include "ember/interp/tensor.h"
#include "ember/ir/literal.h"
#include "ember/support/check.h"

namespace ember::interp {
namespace {

using Bytes = const uint8_t*;

double half(Bytes at) {
    return ir::f16_value(static_cast<uint16_t>(at[0] | at[1] << 8));
}

/// Element j of 32 packed nibbles: the low halves come first.
int nibble(Bytes quants, int j) {
    return j < 16 ? quants[j] & 15 : quants[j - 16] >> 4;
}

int bit(Bytes bits, int j) {
    return bits[j / 8] >> (j % 8) & 1;
}

double q4_0(Bytes block, int j) {
    return half(block) * (nibble(block + 2, j) - 8);
}
double q4_1(Bytes block, int j) {
    return half(block) * nibble(block + 4, j) + half(block + 2);
}
double q5_0(Bytes block, int j) {
    return half(block) * ((nibble(block + 6, j) | bit(block + 2, j) << 4) - 16);
}
double q5_1(Bytes block, int j) {
    return half(block) * (nibble(block + 8, j) | bit(block + 4, j) << 4) + half(block + 2);
}
double q8_0(Bytes block, int j) {
    return half(block) * static_cast<int8_t>(block[2 + j]);
}

/// Scale and minimum of sub-block k of 8, six bits each, packed in 12 bytes: the first four of both stand in the low
/// six bits of bytes 0..3 and 4..7; of the last four the low four bits in bytes 8..11, the high two on top of bytes
/// 0..7.
int k_scale(Bytes packed, int k) {
    return k < 4 ? packed[k] & 63 : (packed[k + 4] & 15) | packed[k - 4] >> 6 << 4;
}
int k_minimum(Bytes packed, int k) {
    return k < 4 ? packed[k + 4] & 63 : packed[k + 4] >> 4 | packed[k] >> 6 << 4;
}

/// Quants of 256 elements: 64 share 32 bytes, the first 32 the low nibbles, the others the high ones.
int k_nibble(Bytes quants, int j) {
    int byte = quants[j / 64 * 32 + j % 32];
    return j % 64 < 32 ? byte & 15 : byte >> 4;
}

double k_value(Bytes block, int j, int quant) {
    int k = j / 32;
    return half(block) * k_scale(block + 4, k) * quant - half(block + 2) * k_minimum(block + 4, k);
}
double q4_k(Bytes block, int j) {
    return k_value(block, j, k_nibble(block + 16, j));
}
double q5_k(Bytes block, int j) {
    int high = block[16 + j % 32] >> (j / 32) & 1;
    return k_value(block, j, k_nibble(block + 48, j) | high << 4);
}
double q6_k(Bytes block, int j) {
    int half_of = j / 128;
    int k = j % 128;
    int byte = block[half_of * 64 + k % 64];
    int low = k < 64 ? byte & 15 : byte >> 4;
    int high = block[128 + half_of * 32 + k % 32] >> (k / 32 * 2) & 3;
    int scale = static_cast<int8_t>(block[192 + j / 16]);
    return half(block + 208) * scale * ((low | high << 4) - 32);
}

double (*element_of(ir::DType dtype))(Bytes, int) {
    switch (dtype) {
        case ir::DType::kQ4_0:
            return q4_0;
        case ir::DType::kQ4_1:
            return q4_1;
        case ir::DType::kQ5_0:
            return q5_0;
        case ir::DType::kQ5_1:
            return q5_1;
        case ir::DType::kQ8_0:
            return q8_0;
        case ir::DType::kQ4_K:
            return q4_k;
        case ir::DType::kQ5_K:
            return q5_k;
        case ir::DType::kQ6_K:
            return q6_k;
        default:
            unreachable("dequantize of an element type");
    }
}

}  // namespace

Tensor dequantize(const Tensor& tensor) {
    const ir::DTypeInfo& row = ir::info(tensor.dtype);
    auto element = element_of(tensor.dtype);
    auto blocks = reinterpret_cast<Bytes>(tensor.bytes.data());
    Tensor result = zeros(ir::DType::kF32, tensor.shape);
    for (int64_t i = 0; i < result.elements(); ++i) {
        auto value = static_cast<float>(
            element(blocks + i / row.block_elements * row.block_bytes, static_cast<int>(i % row.block_elements)));
        std::memcpy(result.bytes.data() + static_cast<size_t>(i) * sizeof value, &value, sizeof value);
    }
    return result;
}

}  // namespace ember::interp
