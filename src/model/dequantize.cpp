// The block layouts of GGUF's tensor types, and what a stored element means.
#include "model/dequantize.h"

#include <bit>
#include <cstring>

#include "ember/support/check.h"

namespace ember::model {

namespace {

// Each block struct is the stored layout, byte for byte; `d` and `m` are f16 scales and minima. Sub-blocks of the k
// types are 32 (q4_k, q5_k) or 16 (q6_k) elements. Source: the ggml quantisation formats that GGUF names.

struct BlockQ4_0 {
    uint16_t d;
    uint8_t quants[16];  // element i in the low half of byte i, i + 16 in the high half

    float at(int i) const;
};
struct BlockQ4_1 {
    uint16_t d, m;
    uint8_t quants[16];

    float at(int i) const;
};
struct BlockQ5_0 {
    uint16_t d;
    uint8_t fifth_bits[4];  // bit i of the little-endian word is the fifth bit of element i
    uint8_t quants[16];

    float at(int i) const;
};
struct BlockQ5_1 {
    uint16_t d, m;
    uint8_t fifth_bits[4];
    uint8_t quants[16];

    float at(int i) const;
};
struct BlockQ8_0 {
    uint16_t d;
    int8_t quants[32];

    float at(int i) const;
};
struct BlockQ4_K {
    uint16_t d, m;
    uint8_t scales[12];   // eight 6-bit scales and eight 6-bit minima
    uint8_t quants[128];  // 64 elements in 32 bytes: the first 32 in the low halves, the next 32 in the high halves

    float at(int i) const;
};
struct BlockQ5_K {
    uint16_t d, m;
    uint8_t scales[12];
    uint8_t fifth_bits[32];  // bit s of byte i is the fifth bit of element i of sub-block s
    uint8_t quants[128];

    float at(int i) const;
};
struct BlockQ6_K {
    uint8_t low[128];   // 128 elements in 64 bytes: the first 64 in the low halves, the next 64 in the high halves
    uint8_t high[64];   // 128 elements in 32 bytes: element i in bits 2 * (i / 32) of byte i % 32
    int8_t scales[16];  // of 16 elements each
    uint16_t d;

    float at(int i) const;
};

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20 && sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24);
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_K) == 144 && sizeof(BlockQ5_K) == 176 &&
              sizeof(BlockQ6_K) == 210);

/// Element i of 32 in 16 bytes.
int half_byte(const uint8_t* quants, int i) {
    return i < 16 ? quants[i] & 15 : quants[i - 16] >> 4;
}

int bit_of(const uint8_t* bits, int i) {
    return bits[i / 8] >> (i % 8) & 1;
}

float BlockQ4_0::at(int i) const {
    return float_from_f16(d) * static_cast<float>(half_byte(quants, i) - 8);
}

float BlockQ4_1::at(int i) const {
    return float_from_f16(d) * static_cast<float>(half_byte(quants, i)) + float_from_f16(m);
}

float BlockQ5_0::at(int i) const {
    int quant = half_byte(quants, i) | bit_of(fifth_bits, i) << 4;
    return float_from_f16(d) * static_cast<float>(quant - 16);
}

float BlockQ5_1::at(int i) const {
    int quant = half_byte(quants, i) | bit_of(fifth_bits, i) << 4;
    return float_from_f16(d) * static_cast<float>(quant) + float_from_f16(m);
}

float BlockQ8_0::at(int i) const {
    return float_from_f16(d) * static_cast<float>(quants[i]);
}

struct ScaleAndMinimum {
    int scale, minimum;
};

/// Sub-block s of 8: the first four are the low six bits of bytes s and s + 4; the others have their low four bits in
/// byte s + 4 (scale in the low half, minimum in the high half) and their high two on top of bytes s - 4 and s.
ScaleAndMinimum unpack_scales(const uint8_t* scales, int s) {
    if (s < 4) {
        return {scales[s] & 63, scales[s + 4] & 63};
    }
    return {(scales[s + 4] & 15) | (scales[s - 4] >> 6) << 4, (scales[s + 4] >> 4) | (scales[s] >> 6) << 4};
}

/// A q4_k or q5_k value.
float k_value(uint16_t d, uint16_t m, const uint8_t* scales, int sub_block, int quant) {
    ScaleAndMinimum packed = unpack_scales(scales, sub_block);
    float scale = float_from_f16(d) * static_cast<float>(packed.scale);
    float minimum = float_from_f16(m) * static_cast<float>(packed.minimum);
    return scale * static_cast<float>(quant) - minimum;
}

int k_half_byte(const uint8_t* quants, int i) {
    uint8_t byte = quants[i / 64 * 32 + i % 32];
    return i % 64 < 32 ? byte & 15 : byte >> 4;
}

float BlockQ4_K::at(int i) const {
    return k_value(d, m, scales, i / 32, k_half_byte(quants, i));
}

float BlockQ5_K::at(int i) const {
    int quant = k_half_byte(quants, i) | (fifth_bits[i % 32] >> (i / 32) & 1) << 4;
    return k_value(d, m, scales, i / 32, quant);
}

float BlockQ6_K::at(int i) const {
    int half = i / 128, r = i % 128;
    uint8_t low_byte = low[half * 64 + r % 64];
    int four = r < 64 ? low_byte & 15 : low_byte >> 4;
    int two = high[half * 32 + r % 32] >> (r / 32 * 2) & 3;
    float scale = float_from_f16(d) * static_cast<float>(scales[i / 16]);
    return scale * static_cast<float>((four | two << 4) - 32);
}

template <class Block, int kElements>
void dequantize_blocks(const std::byte* blocks, std::span<float> out) {
    for (size_t start = 0; start < out.size(); start += kElements, blocks += sizeof(Block)) {
        Block block;
        std::memcpy(&block, blocks, sizeof block);
        for (int i = 0; i < kElements; ++i) {
            out[start + static_cast<size_t>(i)] = block.at(i);
        }
    }
}

template <float (*convert)(uint16_t)>
void widen(const std::byte* data, std::span<float> out) {
    for (float& value : out) {
        uint16_t bits;
        std::memcpy(&bits, data, sizeof bits);
        value = convert(bits);
        data += sizeof bits;
    }
}

}  // namespace

float float_from_bf16(uint16_t bits) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

float float_from_f16(uint16_t bits) {
    uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    uint32_t exponent = bits >> 10 & 31, fraction = bits & 0x3ff;
    if (exponent == 0) {  // zero and subnormals: fraction * 2^-24, exact in f32
        float magnitude = static_cast<float>(fraction) * 0x1p-24f;
        return std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) | sign);
    }
    uint32_t wide_exponent = exponent == 31 ? 255 : exponent + 112;
    return std::bit_cast<float>(sign | wide_exponent << 23 | fraction << 13);
}

void dequantize(TensorType type, const std::byte* blocks, std::span<float> out) {
    check(out.size() % tensor_type_info(type).block_elements == 0, "whole blocks");
    switch (type) {
        case TensorType::kF32:
            std::memcpy(out.data(), blocks, out.size_bytes());
            return;
        case TensorType::kF16:
            return widen<float_from_f16>(blocks, out);
        case TensorType::kBF16:
            return widen<float_from_bf16>(blocks, out);
        case TensorType::kQ4_0:
            return dequantize_blocks<BlockQ4_0, 32>(blocks, out);
        case TensorType::kQ4_1:
            return dequantize_blocks<BlockQ4_1, 32>(blocks, out);
        case TensorType::kQ5_0:
            return dequantize_blocks<BlockQ5_0, 32>(blocks, out);
        case TensorType::kQ5_1:
            return dequantize_blocks<BlockQ5_1, 32>(blocks, out);
        case TensorType::kQ8_0:
            return dequantize_blocks<BlockQ8_0, 32>(blocks, out);
        case TensorType::kQ4_K:
            return dequantize_blocks<BlockQ4_K, 256>(blocks, out);
        case TensorType::kQ5_K:
            return dequantize_blocks<BlockQ5_K, 256>(blocks, out);
        case TensorType::kQ6_K:
            return dequantize_blocks<BlockQ6_K, 256>(blocks, out);
    }
    unreachable("tensor type");
}

void dequantize_row(const GgufTensor& tensor, int64_t row, std::span<float> out) {
    const TensorTypeInfo& info = tensor_type_info(tensor.type);
    check(out.size() == static_cast<size_t>(tensor.dims[0]), "a row of dims[0] elements");
    check(row >= 0 && row < tensor.elements() / tensor.dims[0], "row in range");
    uint64_t row_bytes = out.size() / info.block_elements * info.block_bytes;
    dequantize(tensor.type, tensor.data + static_cast<uint64_t>(row) * row_bytes, out);
}

std::vector<float> dequantize(const GgufTensor& tensor) {
    std::vector<float> out(static_cast<size_t>(tensor.elements()));
    dequantize(tensor.type, tensor.data, out);
    return out;
}

}  // namespace ember::model
