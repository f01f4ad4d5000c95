// Drives the kernels: few tokens are multiplied with weights decoded in registers; for more, a panel of rows is decoded
// once into a cache-sized buffer and multiplied with all tokens, some at a time.
#include "runtime/quantized.h"

#include <algorithm>

#include "runtime/gemm.h"
#include "runtime/kernels.h"
#include "runtime/packed.h"
#include "runtime/scratch.h"
#include "runtime/thread_pool.h"

namespace ember::runtime {
namespace {

constexpr int64_t kSumGroup = 32;
// A range of rows worth handing to another thread, in multiplications.
constexpr int64_t kRangeMultiplications = 40'000;
// Decoded panel and tokens at a time: together about a first-level cache.
constexpr int64_t kPanelElements = 8192;
constexpr int64_t kPanelTokens = 6;
// The rows of a range are a multiple of this, so that vectors of results are full.
constexpr int64_t kRowUnit = 16;

struct Call {
    QType type;
    int64_t m, n, k;
    const float* x;
    int64_t x_stride;
    const uint8_t* w;
    float* y;
    int64_t y_stride;
};

template <class Body>
void for_rows(const Call& call, Body body) {
    const int64_t unit_work = kRowUnit * call.k * call.m;
    const int64_t units = (call.n + kRowUnit - 1) / kRowUnit;
    const int64_t grain = std::max<int64_t>(1, kRangeMultiplications / std::max<int64_t>(1, unit_work));
    parallel_for(units, grain, [&](int64_t begin, int64_t end) {
        const int64_t first = begin * kRowUnit;
        body(first, std::min(end * kRowUnit, call.n) - first);
    });
}

void sum_groups(const Call& call, float* sums, int64_t sums_stride) {
    for (int64_t t = 0; t < call.m; ++t) {
        const float* x = call.x + t * call.x_stride;
        for (int64_t g = 0; g < sums_stride; ++g) {
            float sum = 0;
            for (int64_t i = 0; i < kSumGroup; ++i) {
                sum += x[g * kSumGroup + i];
            }
            sums[t * sums_stride + g] = sum;
        }
    }
}

bool multiply_few_tokens(const QuantKernels& kernel, const Call& call) {
    static thread_local Scratch scratch;
    const int64_t groups = call.k / kSumGroup;
    const float* sums = nullptr;
    if (kernel.needs_sums) {
        float* place = scratch.reserve<float>(call.m * groups);
        if (place == nullptr) {
            return false;
        }
        sum_groups(call, place, groups);
        sums = place;
    }
    const int64_t bytes = row_bytes(call.type, call.k);
    for_rows(call, [&](int64_t first, int64_t rows) {
        kernel.few_tokens(call.m, rows, call.k, call.x, call.x_stride, sums, groups, call.w + first * bytes,
                          call.y + first, call.y_stride);
    });
    return true;
}

// Only for want of memory.
void multiply_plainly(const QuantKernels& kernel, const Call& call) {
    const QTypeInfo& info = qtype_info(call.type);
    const int64_t bytes = row_bytes(call.type, call.k);
    for (int64_t t = 0; t < call.m; ++t) {
        for (int64_t j = 0; j < call.n; ++j) {
            float sum = 0;
            for (int64_t block = 0; block < call.k / info.block; ++block) {
                float w[256];
                kernel.dequantize(call.w + j * bytes + block * info.bytes, w, info.block);
                for (int64_t i = 0; i < info.block; ++i) {
                    sum += w[i] * call.x[t * call.x_stride + block * info.block + i];
                }
            }
            call.y[t * call.y_stride + j] = sum;
        }
    }
}

void multiply_panels(const QuantKernels& kernel, const Call& call) {
    const GemmKernels<float>& gemm = kernels().f32;
    const int64_t bytes = row_bytes(call.type, call.k);
    const int64_t panel_rows = std::clamp<int64_t>(kPanelElements / call.k / 4 * 4, 4, kRowUnit);
    for_rows(call, [&](int64_t first, int64_t rows) {
        static thread_local Scratch scratch;
        float* panel = scratch.reserve<float>(panel_rows * call.k);
        if (panel == nullptr) {
            Call part = call;
            part.w += first * bytes;
            part.y += first;
            part.n = rows;
            return multiply_plainly(kernel, part);
        }
        for (int64_t r = first; r < first + rows; r += panel_rows) {
            const int64_t some = std::min(panel_rows, first + rows - r);
            for (int64_t i = 0; i < some; ++i) {
                kernel.dequantize(call.w + (r + i) * bytes, panel + i * call.k, call.k);
            }
            for (int64_t t = 0; t < call.m; t += kPanelTokens) {
                gemm.dot(std::min(kPanelTokens, call.m - t), some, call.k, call.x + t * call.x_stride, call.x_stride,
                         panel, call.k, call.y + t * call.y_stride + r, call.y_stride, 1);
            }
        }
    });
}

void multiply_f32(const Call& call) {
    GemmArgs args;
    args.m = call.m;
    args.n = call.n;
    args.k = call.k;
    args.a = call.x;
    args.a_m = call.x_stride;
    args.a_k = 1;
    args.b = call.w;
    args.b_k = 1;
    args.b_n = call.k;
    args.c = call.y;
    args.c_m = call.y_stride;
    args.c_n = 1;
    gemm_f32(args);
}

void fill_zero(const Call& call) {
    for (int64_t t = 0; t < call.m; ++t) {
        std::fill_n(call.y + t * call.y_stride, call.n, 0.0F);
    }
}

}  // namespace

void qmatmul(QType type, int64_t m, int64_t n, int64_t k, const float* x, int64_t x_stride, const void* w, float* y,
             int64_t y_stride) {
    const Call call = {type, m, n, k, x, x_stride, static_cast<const uint8_t*>(w), y, y_stride};
    if (m <= 0 || n <= 0) {
        return;
    }
    if (k <= 0) {
        return fill_zero(call);
    }
    if (type == QType::kF32 && reinterpret_cast<uintptr_t>(w) % alignof(float) == 0) {
        return multiply_f32(call);
    }
    if (multiply_packed(type, m, n, k, x, x_stride, w, y, y_stride)) {
        return;
    }
    const QuantKernels& kernel = kernels().quant[static_cast<int>(type)];
    if (m <= kFewTokens && kernel.few_tokens != nullptr && multiply_few_tokens(kernel, call)) {
        return;
    }
    multiply_panels(kernel, call);
}

void dequantize_row(QType type, const void* row, float* to, int64_t n) {
    kernels().quant[static_cast<int>(type)].dequantize(static_cast<const uint8_t*>(row), to, n);
}

}  // namespace ember::runtime
