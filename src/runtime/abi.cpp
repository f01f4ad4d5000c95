// The C symbols of abi.h.
#include "runtime/abi.h"

#include "runtime/half.h"

namespace rt = ember::runtime;

extern "C" {

void ember_rt_parallel_for(rt::RangeFn fn, void* ctx, int64_t total, int64_t grain) {
    rt::parallel_for(fn, ctx, total, grain);
}

void ember_rt_gemm_f32(const rt::GemmArgs* args) {
    rt::gemm_f32(*args);
}
void ember_rt_gemm_f64(const rt::GemmArgs* args) {
    rt::gemm_f64(*args);
}

void ember_rt_qmatmul(int32_t type, int64_t m, int64_t n, int64_t k, const float* x, int64_t x_stride, const void* w,
                      float* y, int64_t y_stride) {
    rt::qmatmul(static_cast<rt::QType>(type), m, n, k, x, x_stride, w, y, y_stride);
}

void ember_rt_dequantize_row(int32_t type, const void* row, float* to, int64_t n) {
    rt::dequantize_row(static_cast<rt::QType>(type), row, to, n);
}

void ember_rt_f16_to_f32(const uint16_t* from, float* to, int64_t n) {
    rt::f16_to_f32(from, to, n);
}
void ember_rt_f32_to_f16(const float* from, uint16_t* to, int64_t n) {
    rt::f32_to_f16(from, to, n);
}
void ember_rt_bf16_to_f32(const uint16_t* from, float* to, int64_t n) {
    rt::bf16_to_f32(from, to, n);
}
void ember_rt_f32_to_bf16(const float* from, uint16_t* to, int64_t n) {
    rt::f32_to_bf16(from, to, n);
}

}  // extern "C"
