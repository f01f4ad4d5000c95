// Attention under every instruction set of the host, against double-precision sums over all positions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/attention.h"
#include "unit/runtime_testing.h"

namespace ember::runtime {
namespace {

struct Case {
    int64_t tokens, heads, kv_heads, dim, value_dim, capacity, first;
};

/// Arrays of one call; keys and values are exact in f16.
struct Arrays {
    Arrays(const Case& c, KeyType type) : c(c), type(type) {
        q = random_values<float>(c.tokens * c.heads * c.dim);
        for (float& value : q) {
            value *= 3;  // scores that differ
        }
        keys = rounded(c.kv_heads * c.capacity * c.dim);
        values = rounded(c.kv_heads * c.capacity * c.value_dim);
        out.assign(static_cast<size_t>(c.tokens * c.heads * c.value_dim), 77);
    }

    static std::vector<float> rounded(int64_t n) {
        std::vector<float> values = random_values<float>(n);
        for (float& value : values) {
            value = f16_to_f32(f32_to_f16(value));
        }
        return values;
    }

    static std::vector<uint16_t> halves(const std::vector<float>& values) {
        std::vector<uint16_t> halves;
        for (float value : values) {
            halves.push_back(f32_to_f16(value));
        }
        return halves;
    }

    const std::vector<float>& run() {
        const std::vector<uint16_t> k = halves(keys), v = halves(values);
        const bool half = type == KeyType::kF16;
        const void* key_data = half ? static_cast<const void*>(k.data()) : keys.data();
        const void* value_data = half ? static_cast<const void*>(v.data()) : values.data();
        attention({type, c.tokens, c.heads, c.kv_heads, c.dim, c.value_dim, c.capacity, c.first, q.data(), key_data,
                   value_data, out.data()});
        return out;
    }

    std::vector<double> expected_row(int64_t t, int64_t h) const {
        const int64_t head = h / (c.heads / c.kv_heads);
        std::vector<double> weights;
        double most = -std::numeric_limits<double>::infinity();
        for (int64_t j = 0; j <= c.first + t; ++j) {
            double score = 0;
            for (int64_t i = 0; i < c.dim; ++i) {
                score += static_cast<double>(q[static_cast<size_t>((t * c.heads + h) * c.dim + i)]) *
                         static_cast<double>(keys[static_cast<size_t>((head * c.capacity + j) * c.dim + i)]);
            }
            weights.push_back(score);
            most = std::max(most, score);
        }
        double sum = 0;
        for (double& weight : weights) {
            weight = std::exp(weight - most);
            sum += weight;
        }
        std::vector<double> row(static_cast<size_t>(c.value_dim));
        for (size_t j = 0; j < weights.size(); ++j) {
            for (size_t i = 0; i < row.size(); ++i) {
                row[i] += weights[j] / sum *
                          static_cast<double>(values[(static_cast<size_t>(head * c.capacity) + j) * row.size() + i]);
            }
        }
        return row;
    }

    Case c;
    KeyType type;
    std::vector<float> q, keys, values, out;
};

void expect_right(const Case& c, KeyType type) {
    SCOPED_TRACE(testing::Message() << c.tokens << " tokens, heads " << c.heads << "/" << c.kv_heads << ", " << c.dim
                                    << "/" << c.value_dim << ", first " << c.first);
    Arrays arrays(c, type);
    const std::vector<float>& out = arrays.run();
    int wrong = 0;
    for (int64_t t = 0; t < c.tokens; ++t) {
        for (int64_t h = 0; h < c.heads; ++h) {
            const std::vector<double> row = arrays.expected_row(t, h);
            for (size_t i = 0; i < row.size(); ++i) {
                wrong += !(std::abs(out[static_cast<size_t>(t * c.heads + h) * row.size() + i] - row[i]) <=
                           2e-5);  // scores are up to 50
            }
        }
    }
    EXPECT_EQ(wrong, 0);
}

constexpr Case kCases[] = {
    {1, 9, 3, 64, 64, 100, 0},     {1, 9, 3, 64, 64, 100, 99},    {1, 9, 3, 64, 64, 600, 511},
    {1, 9, 3, 64, 64, 1100, 1024}, {1, 4, 4, 128, 128, 300, 290}, {1, 8, 1, 80, 80, 257, 256},
    {2, 6, 3, 64, 64, 300, 255},   {3, 9, 3, 64, 64, 300, 254},   {5, 2, 1, 7, 5, 40, 20},
    {17, 9, 3, 64, 64, 17, 0},     {70, 9, 3, 64, 64, 400, 200},  {33, 2, 2, 96, 48, 700, 600},
    {130, 3, 1, 16, 16, 130, 0},   {9, 64, 1, 32, 32, 12, 3},     {4, 1, 1, 1, 1, 9, 5},
    {20, 4, 2, 65, 33, 530, 500},
};

TEST(Attention, IsThatOfAllPositions) {
    for_each_isa([&] {
        for (int threads : {1, 2}) {
            ThreadCount count(threads);
            for (const Case& c : kCases) {
                for (KeyType type : {KeyType::kF32, KeyType::kF16}) {
                    expect_right(c, type);
                }
            }
        }
    });
}

TEST(Attention, OfNothing) {
    for (const Case& c : {Case{0, 9, 3, 64, 64, 10, 0}, Case{2, 0, 1, 64, 64, 10, 0}, Case{2, 2, 1, 64, 0, 10, 0}}) {
        Arrays arrays(c, KeyType::kF32);
        EXPECT_TRUE(arrays.run().empty());
    }
    expect_right({3, 2, 1, 0, 4, 8, 2}, KeyType::kF32);  // no score differs from another: means
}

TEST(Attention, ResultsDoNotDependOnTheThreadCount) {
    for_each_isa([&] {
        for (const Case& c : kCases) {
            Arrays arrays(c, KeyType::kF16);
            set_thread_count(1);
            const std::vector<float> alone = arrays.run();
            for (int threads = 2; threads <= 4; ++threads) {
                set_thread_count(threads);
                EXPECT_EQ(arrays.run(), alone) << threads;
            }
        }
    });
    set_thread_count(0);
}

TEST(Attention, LargeScoresDoNotOverflow) {
    Arrays arrays({3, 2, 1, 16, 16, 300, 290}, KeyType::kF32);
    for (float& value : arrays.q) {
        value *= 1e4F;
    }
    for_each_isa([&] {
        for (float value : arrays.run()) {
            EXPECT_TRUE(std::abs(value) <= 1);
        }
    });
}

TEST(Attention, NanReachesTheRowsThatSeeIt) {
    for_each_isa([&] {
        for (int64_t tokens : {2, 30}) {
            Arrays arrays({tokens, 2, 1, 16, 16, 400, 300}, KeyType::kF32);
            arrays.keys[static_cast<size_t>(301 * 16)] = std::numeric_limits<float>::quiet_NaN();
            const std::vector<float>& out = arrays.run();
            for (size_t i = 0; i < out.size(); ++i) {
                EXPECT_EQ(std::isnan(out[i]), i >= 32) << i;  // position 301 is seen by all tokens but the first
            }
        }
    });
}

// Positions that no token sees are not read: they may hold anything.
TEST(Attention, UnseenPositionsDoNotCount) {
    for_each_isa([&] {
        for (int64_t tokens : {1, 30}) {
            Arrays arrays({tokens, 2, 1, 16, 16, 100, 20}, KeyType::kF32);
            const std::vector<float> before = arrays.run();
            const auto end = static_cast<std::ptrdiff_t>((20 + tokens) * 16);
            std::fill(arrays.keys.begin() + end, arrays.keys.end(), std::numeric_limits<float>::quiet_NaN());
            std::fill(arrays.values.begin() + end, arrays.values.end(), std::numeric_limits<float>::quiet_NaN());
            EXPECT_EQ(arrays.run(), before);
        }
    });
}

}  // namespace
}  // namespace ember::runtime
