// 16-bit floats, single values and arrays: see half.h.
#include "runtime/half.h"

#include "runtime/half_bits.h"
#include "runtime/kernels.h"

namespace ember::runtime {

float f16_to_f32(uint16_t bits) {
    return half_bits::f16_to_f32(bits);
}
uint16_t f32_to_f16(float value) {
    return half_bits::f32_to_f16(value);
}
float bf16_to_f32(uint16_t bits) {
    return half_bits::bf16_to_f32(bits);
}
uint16_t f32_to_bf16(float value) {
    return half_bits::f32_to_bf16(value);
}

void f16_to_f32(const uint16_t* from, float* to, int64_t n) {
    kernels().half.f16_to_f32(from, to, n);
}
void f32_to_f16(const float* from, uint16_t* to, int64_t n) {
    kernels().half.f32_to_f16(from, to, n);
}
void bf16_to_f32(const uint16_t* from, float* to, int64_t n) {
    kernels().half.bf16_to_f32(from, to, n);
}
void f32_to_bf16(const float* from, uint16_t* to, int64_t n) {
    kernels().half.f32_to_bf16(from, to, n);
}

}  // namespace ember::runtime
