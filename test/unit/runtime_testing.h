// What tests of the runtime's kernels share: instruction sets, thread counts, random numbers and random quantised rows.
#pragma once

#include <cstddef>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "model/dequantize.h"
#include "runtime/half.h"
#include "runtime/isa.h"
#include "runtime/quantized.h"
#include "runtime/thread_pool.h"

namespace ember::runtime {

/// Runs `body` under every instruction set the host has, then goes back to the best.
template <class Body>
void for_each_isa(Body body) {
    for (int isa = 0; isa <= static_cast<int>(host_isa()); ++isa) {
        SCOPED_TRACE("isa " + std::to_string(isa));
        set_isa_mask(static_cast<Isa>(isa));
        body();
    }
    set_isa_mask(kHighestIsa);
}

struct ThreadCount {
    explicit ThreadCount(int n) { set_thread_count(n); }
    ~ThreadCount() { set_thread_count(0); }
};

inline std::mt19937 generator(1);

template <class T>
std::vector<T> random_values(int64_t n) {
    std::uniform_real_distribution<T> uniform(-1, 1);
    std::vector<T> values(static_cast<size_t>(n));
    for (T& value : values) {
        value = uniform(generator);
    }
    return values;
}

using model::TensorType;
inline constexpr TensorType kStoredAs[kQTypeCount] = {
    TensorType::kF32,  TensorType::kF16,  TensorType::kBF16, TensorType::kQ4_0, TensorType::kQ4_1, TensorType::kQ5_0,
    TensorType::kQ5_1, TensorType::kQ8_0, TensorType::kQ4_K, TensorType::kQ5_K, TensorType::kQ6_K};

/// Places of the f16 numbers of a block; its other bytes may be anything.
inline std::vector<int> f16_places(QType type) {
    switch (type) {
        case QType::kQ4_0:
        case QType::kQ5_0:
        case QType::kQ8_0:
            return {0};
        case QType::kQ4_1:
        case QType::kQ5_1:
        case QType::kQ4_K:
        case QType::kQ5_K:
            return {0, 2};
        case QType::kQ6_K:
            return {208};
        default:
            return {};
    }
}

/// Rows of weights around one in size, at an odd address, in an allocation of their own size.
struct Weights {
    Weights(QType type, int64_t rows, int64_t k)
        : type(type), k(k), bytes(static_cast<size_t>(rows * row_bytes(type, k) + 1)) {
        for (std::byte& byte : bytes) {
            byte = static_cast<std::byte>(generator());
        }
        const int64_t block_bytes = qtype_info(type).bytes;
        std::uniform_real_distribution<float> uniform(-0.1F, 0.1F);
        for (int64_t at = 0; at + block_bytes < static_cast<int64_t>(bytes.size()); at += block_bytes) {
            for (int place : f16_places(type)) {
                put(at + place, f32_to_f16(uniform(generator)));
            }
            if (type == QType::kF16) {
                put(at, f32_to_f16(uniform(generator)));
            } else if (type == QType::kBf16) {
                put(at, f32_to_bf16(uniform(generator)));
            } else if (type == QType::kF32) {
                put(at, uniform(generator));
            }
        }
    }

    template <class T>
    void put(int64_t at, T value) {
        std::memcpy(data() + at, &value, sizeof value);
    }
    std::byte* data() { return bytes.data() + 1; }

    std::vector<float> row(int64_t r) {
        std::vector<float> values(static_cast<size_t>(k));
        model::dequantize(kStoredAs[static_cast<int>(type)], data() + r * row_bytes(type, k), values);
        return values;
    }

    QType type;
    int64_t k;
    std::vector<std::byte> bytes;
};

inline std::vector<int64_t> lengths(QType type) {
    const int64_t block = qtype_info(type).block;
    return block == 1    ? std::vector<int64_t>{1, 7, 100, 2500}
           : block == 32 ? std::vector<int64_t>{32, 96, 576, 2080}
                         : std::vector<int64_t>{256, 768, 2304};
}

}  // namespace ember::runtime
