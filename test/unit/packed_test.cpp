// Products with packed weights under every instruction set of the host, against double-precision sums over the
// dequantised rows; and which products find a packed matrix.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/packed.h"
#include "unit/runtime_testing.h"

namespace ember::runtime {
namespace {

class Packed : public testing::TestWithParam<int> {
protected:
    QType type() const { return static_cast<QType>(GetParam()); }
};

std::unique_ptr<PackedWeights> pack(Weights& weights, int64_t n) {
    const PlainWeights plain = {weights.type, n, weights.k, weights.data()};
    return PackedWeights::make({&plain, 1}, {});
}

/// The largest magnitude among the 32 columns around l.
double largest_of_group(const float* x, int64_t l) {
    double largest = 0;
    for (int64_t i = l / 32 * 32; i < l / 32 * 32 + 32; ++i) {
        largest = std::max(largest, std::abs(static_cast<double>(x[i])));
    }
    return largest;
}

/// Each product may be off by half a unit of its group's 16-bit numbers times the weight, and by f32 rounding.
void expect_product(QType type, int64_t m, int64_t n, int64_t k) {
    SCOPED_TRACE(testing::Message() << "m n k " << m << " " << n << " " << k);
    constexpr int64_t kGap = 5;
    Weights weights(type, n, k);
    auto packed = pack(weights, n);
    ASSERT_NE(packed, nullptr);
    std::vector<float> x = random_values<float>(m * (k + kGap) - kGap);
    for (int64_t l = 0; l < k; l += 7) {
        x[static_cast<size_t>(l)] *= 100;  // groups of different size
    }
    std::vector<float> y(static_cast<size_t>(m * (n + kGap)), 77);
    ASSERT_TRUE(multiply_packed(type, m, n, k, x.data(), k + kGap, weights.data(), y.data(), n + kGap));
    int wrong = 0;
    for (int64_t j = 0; j < n; ++j) {
        const std::vector<float> w = weights.row(j);
        for (int64_t t = 0; t < m; ++t) {
            const float* row = x.data() + t * (k + kGap);
            double sum = 0;
            double allowed = 1e-6;
            for (int64_t l = 0; l < k; ++l) {
                const double weight = w[static_cast<size_t>(l)];
                sum += weight * static_cast<double>(row[l]);
                allowed += std::abs(weight) * largest_of_group(row, l) * (0.5 / 32767 + 3e-6);
            }
            wrong += !(std::abs(y[static_cast<size_t>(t * (n + kGap) + j)] - sum) <= allowed);
        }
    }
    EXPECT_EQ(wrong, 0);
    for (int64_t t = 0; t < m; ++t) {
        for (int64_t gap = n; gap < n + kGap; ++gap) {
            EXPECT_EQ(y[static_cast<size_t>(t * (n + kGap) + gap)], 77);
        }
    }
}

TEST_P(Packed, ProductsAreThoseOfTheDequantizedWeights) {
    for_each_isa([&] {
        ThreadCount count(2);
        for (int64_t k : lengths(type())) {
            for (int64_t m : {1, 2, 9}) {
                expect_product(type(), m, 37, k);
            }
        }
        const int64_t k = lengths(type())[1];
        for (int64_t m = 1; m <= 17; ++m) {
            expect_product(type(), m, 37, k);
        }
        for (int64_t n : {1, 3, 15, 16, 17, 33, 64}) {
            expect_product(type(), 1, n, k);
            expect_product(type(), 5, n, k);
            expect_product(type(), 21, n, k);
        }
        expect_product(type(), 300, 20, lengths(type())[0]);
        expect_product(type(), 1, 700, lengths(type())[2]);
    });
}

// A weight of one in a single column shows that column's activation: no pair may be out of place.
TEST_P(Packed, EveryColumnMeetsItsActivation) {
    const int64_t k = lengths(type())[1];
    Weights weights(type(), 16, k);
    auto packed = pack(weights, 16);
    std::vector<std::vector<float>> rows;
    for (int64_t j = 0; j < 16; ++j) {
        rows.push_back(weights.row(j));
    }
    for_each_isa([&] {
        for (int64_t m : {1, 9}) {
            for (int64_t l = 0; l < k; ++l) {
                std::vector<float> x(static_cast<size_t>(m * k)), y(static_cast<size_t>(m * 16));
                x[static_cast<size_t>((m - 1) * k + l)] = 1;
                ASSERT_TRUE(multiply_packed(type(), m, 16, k, x.data(), k, weights.data(), y.data(), 16));
                for (int64_t j = 0; j < 16; ++j) {
                    const float w = rows[static_cast<size_t>(j)][static_cast<size_t>(l)];
                    ASSERT_NEAR(y[static_cast<size_t>((m - 1) * 16 + j)], w, 4e-6 * (1 + std::abs(w)) * 32) << l;
                }
            }
        }
    });
}

/// Largest codes, scales and activations at once: no sum may overflow.
TEST_P(Packed, ExtremesDoNotOverflow) {
    const int64_t k = lengths(type())[1];
    for (unsigned char fill : {0x00, 0x7f, 0x80, 0xff}) {
        Weights weights(type(), 16, k);
        std::fill(weights.bytes.begin(), weights.bytes.end(), static_cast<std::byte>(fill));
        const int64_t block = qtype_info(type()).bytes;
        for (int64_t at = 0; at + block < static_cast<int64_t>(weights.bytes.size()); at += block) {
            for (int place : f16_places(type())) {
                weights.put(at + place, f32_to_f16(1));
            }
        }
        auto packed = pack(weights, 16);
        const std::vector<float> w = weights.row(0);
        for_each_isa([&] {
            for (int64_t m : {1, 3, 4, 9}) {
                for (float sign : {1.0F, -1.0F}) {
                    std::vector<float> x(static_cast<size_t>(m * k), sign), y(static_cast<size_t>(m * 16));
                    double sum = 0;
                    double magnitude = 0;
                    for (float value : w) {
                        sum += static_cast<double>(sign * value);
                        magnitude += std::abs(static_cast<double>(value));
                    }
                    ASSERT_TRUE(multiply_packed(type(), m, 16, k, x.data(), k, weights.data(), y.data(), 16));
                    for (float value : y) {
                        ASSERT_NEAR(value, sum, 1e-5 * (magnitude + 1)) << "fill " << int{fill};
                    }
                }
            }
        });
    }
}

TEST_P(Packed, ResultsDoNotDependOnTheThreadCount) {
    const int64_t k = lengths(type())[2];
    constexpr int64_t kN = 301;
    Weights weights(type(), kN, k);
    auto packed = pack(weights, kN);
    for_each_isa([&] {
        for (int64_t m : {1, 4, 9, 270}) {
            const std::vector<float> x = random_values<float>(m * k);
            std::vector<float> alone(static_cast<size_t>(m * kN)), shared(alone.size());
            set_thread_count(1);
            ASSERT_TRUE(multiply_packed(type(), m, kN, k, x.data(), k, weights.data(), alone.data(), kN));
            for (int threads = 2; threads <= 4; ++threads) {
                set_thread_count(threads);
                ASSERT_TRUE(multiply_packed(type(), m, kN, k, x.data(), k, weights.data(), shared.data(), kN));
                EXPECT_EQ(shared, alone) << m << " with " << threads;
            }
        }
    });
    set_thread_count(0);
}

TEST_P(Packed, NanAndInfinityReachEveryRowThatMeetsThem) {
    const int64_t k = lengths(type())[1];
    Weights weights(type(), 20, k);
    auto packed = pack(weights, 20);
    for_each_isa([&] {
        for (float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
            for (int64_t m : {2, 9}) {
                std::vector<float> x = random_values<float>(m * k), y(static_cast<size_t>(m * 20));
                x[static_cast<size_t>(k - 1)] = bad;
                ASSERT_TRUE(multiply_packed(type(), m, 20, k, x.data(), k, weights.data(), y.data(), 20));
                for (size_t j = 0; j < y.size(); ++j) {
                    EXPECT_EQ(std::isfinite(y[j]), j >= 20) << j;
                }
            }
        }
    });
}

TEST_P(Packed, ZerosAndTinyActivationsGiveFiniteSums) {
    const int64_t k = lengths(type())[1];
    Weights weights(type(), 16, k);
    auto packed = pack(weights, 16);
    for_each_isa([&] {
        for (float value : {0.0F, -0.0F, 1e-38F, 1e-44F, 1e-31F}) {
            std::vector<float> x(static_cast<size_t>(k), value), y(16);
            ASSERT_TRUE(multiply_packed(type(), 1, 16, k, x.data(), k, weights.data(), y.data(), 16));
            for (float sum : y) {
                EXPECT_LT(std::abs(sum), 1e-22);
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Types, Packed, testing::Range(static_cast<int>(QType::kQ4_0), kQTypeCount),
                         [](const auto& info) { return std::string(qtype_info(static_cast<QType>(info.param)).name); });

TEST(PackedWeights, TypesOfOneElementABlockHaveNoPackedForm) {
    for (int type = 0; type < kQTypeCount; ++type) {
        EXPECT_EQ(can_pack(static_cast<QType>(type)), type >= static_cast<int>(QType::kQ4_0));
    }
}

TEST(PackedWeights, AreFoundByAddressTypeAndShapeWhileTheyLive) {
    constexpr int64_t kN = 16, kK = 64;
    Weights weights(QType::kQ4_1, kN, kK);
    std::vector<float> x = random_values<float>(kK), y(kN);
    const auto found = [&](QType type, int64_t n, int64_t k) {
        return multiply_packed(type, 1, n, k, x.data(), k, weights.data(), y.data(), n);
    };
    EXPECT_FALSE(found(QType::kQ4_1, kN, kK));
    auto packed = pack(weights, kN);
    EXPECT_TRUE(found(QType::kQ4_1, kN, kK));
    EXPECT_FALSE(found(QType::kQ4_0, kN, kK));
    EXPECT_FALSE(found(QType::kQ4_1, kN - 1, kK));
    EXPECT_FALSE(found(QType::kQ4_1, kN, kK / 2));
    auto again = pack(weights, kN);
    packed.reset();
    EXPECT_TRUE(found(QType::kQ4_1, kN, kK)) << "another packed form of the same data is still there";
    again.reset();
    EXPECT_FALSE(found(QType::kQ4_1, kN, kK));
}

TEST(PackedWeights, QuantizedProductsUseThem) {
    constexpr int64_t kN = 16, kK = 64;
    Weights weights(QType::kQ8_0, kN, kK);
    const std::vector<float> x = random_values<float>(kK);
    std::vector<float> before(kN), after(kN);
    auto packed = pack(weights, kN);
    qmatmul(QType::kQ8_0, 1, kN, kK, x.data(), kK, weights.data(), before.data(), kN);
    std::fill(weights.bytes.begin(), weights.bytes.end(), std::byte{0});  // the plain data is not read again
    qmatmul(QType::kQ8_0, 1, kN, kK, x.data(), kK, weights.data(), after.data(), kN);
    EXPECT_EQ(before, after);
    EXPECT_NE(after, std::vector<float>(kN, 0));
}

TEST(PackedWeights, OfNothing) {
    EXPECT_NE(PackedWeights::make({}, {}), nullptr);
    std::byte nothing{};
    const PlainWeights none[] = {{QType::kQ4_0, 0, 32, &nothing}, {QType::kQ4_0, 4, 0, &nothing}};
    size_t calls = 0;
    EXPECT_NE(PackedWeights::make(none, [&](size_t) { ++calls; }), nullptr);
}

}  // namespace
}  // namespace ember::runtime
