// 16-bit floats in plain integer arithmetic: what half.h promises, one value at a time, free of branches where a
// compiler can vectorise them. f16 is IEEE 754 binary16; bf16 the upper half of a binary32. Internal linkage:
// kernels_<isa>.cpp includes this too. Tests: test/unit/runtime_test.cpp.
#pragma once

#include <stdint.h>

namespace ember::runtime::half_bits {
namespace {

inline float from_bits(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

inline uint32_t to_bits(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline float f16_to_f32(uint16_t half) {
    const uint32_t sign = (half & 0x8000u) << 16;
    const uint32_t magnitude = half & 0x7fffu;
    // Moved to binary32's place the exponent is 112 too small; a product with 2^112 sets it right, subnormals too.
    uint32_t bits = to_bits(from_bits(magnitude << 13) * 0x1p112f);
    bits = magnitude >= 0x7c00u ? (magnitude << 13) | 0x7f800000u : bits;
    bits |= magnitude > 0x7c00u ? 0x400000u : 0u;
    return from_bits(bits | sign);
}

inline uint16_t f32_to_f16(float value) {
    const uint32_t bits = to_bits(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    // Normal results: move the exponent, add what rounds half to even, cut off; a carry may reach infinity, rightly.
    uint32_t half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
    // Subnormal results: a sum with 0.5 rounds at 2^-24, their unit.
    const uint32_t subnormal = to_bits(from_bits(magnitude) + 0.5f) - to_bits(0.5f);
    half = magnitude < 0x38800000u ? subnormal : half;
    half = magnitude >= 0x47800000u ? 0x7c00u : half;
    half = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : half;
    return static_cast<uint16_t>(half | sign);
}

inline float bf16_to_f32(uint16_t half) {
    return from_bits(static_cast<uint32_t>(half) << 16);
}

inline uint16_t f32_to_bf16(float value) {
    const uint32_t bits = to_bits(value);
    const uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded);
}

}  // namespace
}  // namespace ember::runtime::half_bits
