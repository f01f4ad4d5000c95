// The C symbols that compiled artifacts import from libember: names and layouts that a stored artifact relies on.
// Each is one call of the C++ function of the same name, see there. Tests: test/unit/runtime_test.cpp.
#pragma once

#include "runtime/gemm.h"
#include "runtime/quantized.h"
#include "runtime/thread_pool.h"

extern "C" {

void ember_rt_parallel_for(ember::runtime::RangeFn fn, void* ctx, int64_t total, int64_t grain);
void ember_rt_gemm_f32(const ember::runtime::GemmArgs* args);
void ember_rt_gemm_f64(const ember::runtime::GemmArgs* args);
/// `type` is a QType.
void ember_rt_qmatmul(int32_t type, int64_t m, int64_t n, int64_t k, const float* x, int64_t x_stride, const void* w,
                      float* y, int64_t y_stride);
void ember_rt_dequantize_row(int32_t type, const void* row, float* to, int64_t n);
void ember_rt_f16_to_f32(const uint16_t* from, float* to, int64_t n);
void ember_rt_f32_to_f16(const float* from, uint16_t* to, int64_t n);
void ember_rt_bf16_to_f32(const uint16_t* from, float* to, int64_t n);
void ember_rt_f32_to_bf16(const float* from, uint16_t* to, int64_t n);

}  // extern "C"
