// Conversions between f32 and the two 16-bit float types, for single values and arrays.
// f32 → f16 and bf16 round to nearest, ties to even; f16 keeps subnormals, overflows to infinity; NaN stays NaN (quiet,
// top payload bits kept). The scalar and the array forms agree bit for bit under every instruction set.
// Tests: test/unit/runtime_test.cpp (all 65536 patterns, and the neighbourhood of every rounding boundary).
#pragma once

#include <cstdint>

namespace ember::runtime {

float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);

/// `to` and `from` must not overlap; any alignment of their own type will do.
void f16_to_f32(const uint16_t* from, float* to, int64_t n);
void f32_to_f16(const float* from, uint16_t* to, int64_t n);
void bf16_to_f32(const uint16_t* from, float* to, int64_t n);
void f32_to_bf16(const float* from, uint16_t* to, int64_t n);

}  // namespace ember::runtime
