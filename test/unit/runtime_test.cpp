// The runtime's kernels under every instruction set of the host, against plain double-precision loops; and the thread
// pool. Operands are allocated exactly, so that the address sanitizer sees a kernel that reads or writes past them.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "model/dequantize.h"
#include "runtime/abi.h"
#include "runtime/gemm.h"
#include "runtime/half.h"
#include "runtime/isa.h"
#include "runtime/quantized.h"
#include "runtime/thread_pool.h"
#include "unit/runtime_testing.h"

namespace ember::runtime {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// ---- thread pool ----

/// How often each item was done, and that ranges keep the rules.
std::vector<int> count_visits(int64_t total, int64_t grain) {
    std::vector<std::atomic<int>> visits(static_cast<size_t>(total));
    std::atomic<bool> in_order{true};
    parallel_for(total, grain, [&](int64_t begin, int64_t end) {
        const bool whole = end - begin >= std::max<int64_t>(grain, 1) || end == total;
        if (begin % std::max<int64_t>(grain, 1) != 0 || !whole) {
            in_order = false;
        }
        for (int64_t i = begin; i < end; ++i) {
            ++visits[static_cast<size_t>(i)];
        }
    });
    EXPECT_TRUE(in_order) << total << " by " << grain;
    return {visits.begin(), visits.end()};
}

TEST(ThreadPool, DoesEveryItemOnce) {
    for (int threads = 1; threads <= 4; ++threads) {
        ThreadCount count(threads);
        for (int64_t total : {0, 1, 2, 7, 100, 1000}) {
            for (int64_t grain : {-1, 0, 1, 3, 64, 5000}) {
                EXPECT_EQ(count_visits(total, grain), std::vector<int>(static_cast<size_t>(total), 1));
            }
        }
    }
}

TEST(ThreadPool, HelpersTakePart) {
    ThreadCount count(2);
    std::atomic<int> inside{0};
    std::atomic<bool> met{false};
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    parallel_for(2, 1, [&](int64_t, int64_t) {
        ++inside;
        while (inside < 2 && std::chrono::steady_clock::now() < deadline) {
            std::this_thread::yield();
        }
        met = met || inside == 2;
    });
    EXPECT_TRUE(met);
}

TEST(ThreadPool, NestedCallsRunOnTheirOwnThread) {
    ThreadCount count(3);
    std::atomic<int> sum{0};
    std::atomic<bool> same_thread{true};
    parallel_for(20, 1, [&](int64_t begin, int64_t end) {
        const auto outer = std::this_thread::get_id();
        parallel_for((end - begin) * 10, 1, [&](int64_t b, int64_t e) {
            same_thread = same_thread && std::this_thread::get_id() == outer;
            sum += static_cast<int>(e - b);
        });
    });
    EXPECT_EQ(sum, 200);
    EXPECT_TRUE(same_thread);
}

TEST(ThreadPool, ServesSeveralCallersAtOnce) {
    ThreadCount count(3);
    std::vector<std::thread> callers;
    std::atomic<int> wrong{0};
    for (int c = 0; c < 4; ++c) {
        callers.emplace_back([&] {
            for (int round = 0; round < 200; ++round) {
                const std::vector<int> visits = count_visits(64, 2);
                wrong += visits != std::vector<int>(64, 1);
            }
        });
    }
    for (std::thread& caller : callers) {
        caller.join();
    }
    EXPECT_EQ(wrong, 0);
}

TEST(ThreadPool, FollowsChangesOfTheThreadCount) {
    for (int round = 0; round < 50; ++round) {
        ThreadCount count(1 + round % 5);
        EXPECT_EQ(thread_count(), 1 + round % 5);
        EXPECT_EQ(count_visits(50, 1), std::vector<int>(50, 1));
    }
    EXPECT_GE(thread_count(), 1);
    set_thread_count(100000);
    EXPECT_EQ(thread_count(), kMaxThreads);
    set_thread_count(0);
}

#if !defined(__SANITIZE_THREAD__)
TEST(ThreadPool, WorksInTheChildOfAFork) {
    ThreadCount count(3);
    ASSERT_EQ(count_visits(100, 1), std::vector<int>(100, 1));
    const pid_t child = fork();
    if (child == 0) {
        const bool right = count_visits(100, 1) == std::vector<int>(100, 1);
        _exit(right ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT_EQ(count_visits(100, 1), std::vector<int>(100, 1));
}
#endif

// ---- matrix product ----

enum class Layout { kRows, kColumns, kPadded, kReversed, kEverySecond, kOneRow, kOneElement };
constexpr std::array kInputLayouts = {Layout::kRows,        Layout::kColumns, Layout::kPadded,    Layout::kReversed,
                                      Layout::kEverySecond, Layout::kOneRow,  Layout::kOneElement};
constexpr std::array kOutputLayouts = {Layout::kRows, Layout::kColumns, Layout::kPadded, Layout::kReversed,
                                       Layout::kEverySecond};

/// `batch` matrices of rows × columns in one allocation, no larger than the layout needs.
template <class T>
struct Matrices {
    Matrices(int64_t batch, int64_t rows, int64_t columns, Layout layout) {
        int64_t size = rows * columns;
        row = columns;
        column = 1;
        switch (layout) {
            case Layout::kRows:
                break;
            case Layout::kColumns:
                row = 1;
                column = rows;
                break;
            case Layout::kPadded:
                row = columns + 3;
                size = std::max<int64_t>(0, rows - 1) * row + columns;
                break;
            case Layout::kReversed:
                row = -columns;
                column = -1;
                first = std::max<int64_t>(0, rows * columns - 1);
                break;
            case Layout::kEverySecond:
                row = 2 * columns;
                column = 2;
                size = std::max<int64_t>(0, 2 * rows * columns - 1);
                break;
            case Layout::kOneRow:
                row = 0;
                size = columns;
                break;
            case Layout::kOneElement:
                row = column = 0;
                size = 1;
                break;
        }
        stride = std::max<int64_t>(1, size);
        values = random_values<T>(std::max<int64_t>(1, stride * batch));
    }

    T* data() { return values.data() + first; }
    T& at(int64_t b, int64_t i, int64_t j) { return data()[b * stride + i * row + j * column]; }

    std::vector<T> values;
    int64_t row = 0, column = 0, first = 0, stride = 0;
};

template <class T>
struct Case {
    Case(int64_t batch, int64_t m, int64_t n, int64_t k, Layout la = Layout::kRows, Layout lb = Layout::kRows,
         Layout lc = Layout::kRows)
        : batch(batch), a(batch, m, k, la), b(batch, k, n, lb), c(batch, m, n, lc) {
        args.m = m;
        args.n = n;
        args.k = k;
        args.a_m = a.row;
        args.a_k = a.column;
        args.b_k = b.row;
        args.b_n = b.column;
        args.c_m = c.row;
        args.c_n = c.column;
        args.batch_rank = 1;
        args.batch[0] = batch;
        args.a_batch[0] = a.stride;
        args.b_batch[0] = b.stride;
        args.c_batch[0] = c.stride;
    }

    void run() {
        args.a = a.data();
        args.b = b.data();
        args.c = c.data();
        if constexpr (sizeof(T) == sizeof(float)) {
            ember_rt_gemm_f32(&args);
        } else {
            ember_rt_gemm_f64(&args);
        }
    }

    /// c is the product within what k roundings can do to it, or the same NaN or infinity.
    void expect_right() {
        const double rounding = static_cast<double>(args.k + 2) * std::numeric_limits<T>::epsilon() / 2;
        int wrong = 0;
        for (int64_t x = 0; x < batch; ++x) {
            for (int64_t i = 0; i < args.m; ++i) {
                for (int64_t j = 0; j < args.n; ++j) {
                    double sum = 0;
                    double magnitude = 0;
                    for (int64_t l = 0; l < args.k; ++l) {
                        const double product = static_cast<double>(a.at(x, i, l)) * static_cast<double>(b.at(x, l, j));
                        sum += product;
                        magnitude += std::abs(product);
                    }
                    const double got = c.at(x, i, j);
                    const bool right = std::isfinite(sum) ? std::abs(got - sum) <= rounding * magnitude + 1e-300
                                                          : (std::isnan(sum) ? std::isnan(got) : got == sum);
                    if (!right && wrong++ == 0) {
                        ADD_FAILURE() << "batch " << x << " element " << i << "," << j << " is " << got << ", not "
                                      << sum << " (m n k " << args.m << " " << args.n << " " << args.k << ")";
                    }
                }
            }
        }
        EXPECT_EQ(wrong, 0);
    }

    int64_t batch;
    Matrices<T> a, b, c;
    GemmArgs args;
};

template <class T>
class Gemm : public testing::Test {};
using GemmTypes = testing::Types<float, double>;
TYPED_TEST_SUITE(Gemm, GemmTypes);

TYPED_TEST(Gemm, EveryLayoutOfEveryOperand) {
    for_each_isa([] {
        for (const auto& [m, n, k] : {std::array<int64_t, 3>{3, 5, 4}, {17, 50, 19}, {21, 35, 70}}) {
            for (Layout la : kInputLayouts) {
                for (Layout lb : kInputLayouts) {
                    for (Layout lc : kOutputLayouts) {
                        SCOPED_TRACE(testing::Message() << "layouts " << static_cast<int>(la) << static_cast<int>(lb)
                                                        << static_cast<int>(lc));
                        Case<TypeParam> product(1, m, n, k, la, lb, lc);
                        product.run();
                        product.expect_right();
                    }
                }
            }
        }
    });
}

TYPED_TEST(Gemm, ShapesAroundTheTileSizes) {
    for_each_isa([] {
        for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17}) {
            for (int64_t n : {1, 2, 3, 7, 8, 15, 16, 17, 47, 48, 49, 130}) {
                for (int64_t k : {1, 2, 15, 16, 33}) {
                    for (Layout lb : {Layout::kRows, Layout::kColumns}) {
                        Case<TypeParam> product(1, m, n, k, Layout::kRows, lb);
                        product.run();
                        product.expect_right();
                    }
                }
            }
        }
    });
}

// Several passes over k, several packed blocks, long sums cut into slices.
TYPED_TEST(Gemm, LargeExtents) {
    for_each_isa([] {
        ThreadCount count(3);
        for (const auto& [m, n, k] : {std::array<int64_t, 3>{151, 170, 400},
                                      {1, 1500, 800},
                                      {1500, 1, 800},
                                      {9, 700, 900},
                                      {700, 9, 900},
                                      {40, 60, 1000},
                                      {3, 2, 40000},
                                      {1, 1, 100003}}) {
            for (Layout lb : {Layout::kRows, Layout::kColumns}) {
                Case<TypeParam> product(1, m, n, k, Layout::kPadded, lb);
                product.run();
                product.expect_right();
            }
        }
    });
}

TYPED_TEST(Gemm, EmptyExtents) {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{0, 3, 3}, {3, 0, 3}, {0, 0, 0}}) {
        Case<TypeParam> product(2, m, n, k);
        const auto before = product.c.values;
        product.run();
        EXPECT_EQ(product.c.values, before);
    }
    Case<TypeParam> no_sum(2, 3, 4, 0);
    no_sum.run();
    EXPECT_EQ(no_sum.c.values, std::vector<TypeParam>(24, 0));
    Case<TypeParam> no_batch(1, 3, 4, 5);
    no_batch.args.batch[0] = 0;
    const auto before = no_batch.c.values;
    no_batch.run();
    EXPECT_EQ(no_batch.c.values, before);
}

TYPED_TEST(Gemm, NanAndInfinityStayWhereTheyBelong) {
    for_each_isa([] {
        for (const auto& [m, n, k] : {std::array<int64_t, 3>{3, 50, 40}, {20, 50, 40}, {60, 70, 300}}) {
            for (Layout lb : {Layout::kRows, Layout::kColumns}) {
                Case<TypeParam> product(1, m, n, k, Layout::kRows, lb);
                product.a.at(0, 1, 2) = kNan;
                product.a.at(0, 2, 3) = kInf;
                product.b.at(0, k - 1, n - 1) = -kInf;
                product.b.at(0, 3, 4) = 0;  // infinity times zero
                product.run();
                product.expect_right();
            }
        }
    });
}

TYPED_TEST(Gemm, BatchesOfEveryKind) {
    for_each_isa([] {
        ThreadCount count(2);
        for (const auto& [m, n, k] : {std::array<int64_t, 3>{4, 6, 5}, {1, 40, 30}, {33, 40, 50}}) {
            Case<TypeParam> product(7, m, n, k);
            product.run();
            product.expect_right();
            for (Matrices<TypeParam>* shared : {&product.a, &product.b}) {  // one matrix for all
                Case<TypeParam> same(7, m, n, k);
                Matrices<TypeParam>& operand = shared == &product.a ? same.a : same.b;
                (shared == &product.a ? same.args.a_batch : same.args.b_batch)[0] = 0;
                operand.stride = 0;
                same.run();
                same.expect_right();
            }
        }
    });
}

// Rank 3 with a transposed, a reversed and a repeated dimension, against products one by one.
TYPED_TEST(Gemm, BatchOfHighRank) {
    using T = TypeParam;
    constexpr int64_t kM = 3, kN = 4, kK = 5;
    std::vector<T> a = random_values<T>(2 * 3 * kM * kK), b = random_values<T>(2 * kK * kN), c(24 * kM * kN, -1);
    GemmArgs args;
    args.m = kM, args.n = kN, args.k = kK;
    args.a_m = kK, args.a_k = 1, args.b_k = kN, args.b_n = 1, args.c_m = kN, args.c_n = 1;
    args.batch_rank = 4;
    const int64_t extent[] = {2, 1, 3, 4};
    const int64_t a_batch[] = {kM * kK, 999, 2 * kM * kK, 0};
    const int64_t b_batch[] = {-kK * kN, 999, 0, 0};
    const int64_t c_batch[] = {12 * kM * kN, 999, 4 * kM * kN, kM * kN};
    std::copy_n(extent, 4, args.batch);
    std::copy_n(a_batch, 4, args.a_batch);
    std::copy_n(b_batch, 4, args.b_batch);
    std::copy_n(c_batch, 4, args.c_batch);
    args.a = a.data(), args.b = b.data() + kK * kN, args.c = c.data();
    const auto run = [](const GemmArgs& g) { sizeof(T) == 4 ? gemm_f32(g) : gemm_f64(g); };
    run(args);
    for (int64_t index = 0; index < 24; ++index) {
        const int64_t x = index / 12, y = index / 4 % 3;
        std::vector<T> expected(kM * kN);
        GemmArgs one = args;
        one.batch_rank = 0;
        one.a = a.data() + x * a_batch[0] + y * a_batch[2];
        one.b = b.data() + kK * kN + x * b_batch[0];
        one.c = expected.data();
        run(one);
        const std::vector<T> got(c.begin() + index * kM * kN, c.begin() + (index + 1) * kM * kN);
        EXPECT_EQ(got, expected) << index;
    }
}

TYPED_TEST(Gemm, ResultsDoNotDependOnTheThreadCount) {
    for_each_isa([] {
        for (const auto& [m, n, k] :
             {std::array<int64_t, 3>{1, 3000, 200}, {8, 500, 300}, {150, 300, 420}, {500, 5, 200}, {5, 4, 70000}}) {
            for (Layout lb : {Layout::kRows, Layout::kColumns}) {
                Case<TypeParam> product(1, m, n, k, Layout::kRows, lb);
                set_thread_count(1);
                product.run();
                const auto alone = product.c.values;
                for (int threads = 2; threads <= 4; ++threads) {
                    set_thread_count(threads);
                    product.run();
                    EXPECT_EQ(product.c.values, alone) << m << " " << n << " " << k << " with " << threads;
                }
            }
        }
    });
    set_thread_count(0);
}

// ---- 16-bit floats ----

/// The nearest f16 by search over all of them; ties to the even pattern.
class NearestHalf {
public:
    NearestHalf() {
        for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
            values_.push_back(std::ldexp(static_cast<double>((bits & 0x3ff) | (bits < 0x400 ? 0 : 0x400)),
                                         std::max(1, static_cast<int>(bits >> 10)) - 25));
        }
        values_.push_back(65536.0);  // where infinity rounds from
    }
    double value(uint32_t bits) const { return values_[bits]; }
    uint16_t nearest(double magnitude) const {
        const auto above = std::lower_bound(values_.begin(), values_.end(), magnitude);
        if (above == values_.end()) {
            return 0x7c00;
        }
        const auto bits = static_cast<uint16_t>(above - values_.begin());
        if (bits == 0 || *above == magnitude) {
            return bits;
        }
        const double to_above = *above - magnitude;
        const double to_below = magnitude - values_[bits - 1];
        return to_above < to_below || (to_above == to_below && bits % 2 == 0) ? bits : bits - 1;
    }

private:
    std::vector<double> values_;
};

TEST(Half, EveryF16BecomesItsValue) {
    const NearestHalf reference;
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        const float got = f16_to_f32(static_cast<uint16_t>(bits));
        const uint32_t magnitude = bits & 0x7fff;
        if (magnitude > 0x7c00) {
            EXPECT_TRUE(std::isnan(got));
        } else {
            EXPECT_EQ(std::abs(got), magnitude == 0x7c00 ? kInf : reference.value(magnitude)) << bits;
            EXPECT_EQ(std::signbit(got), bits >> 15 == 1);
        }
    }
}

std::vector<float> rounding_cases() {
    const NearestHalf reference;
    std::vector<float> cases = {0.0F, -0.0F, kInf, -kInf, kNan, 1e-30F, 1e30F, 65519.996F, 65520.0F};
    for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
        const auto value = static_cast<float>(reference.value(bits));
        const auto middle = static_cast<float>((reference.value(bits) + reference.value(bits + 1)) / 2);
        for (float x : {value, middle}) {
            cases.insert(cases.end(), {x, std::nextafter(x, 1e9F), std::nextafter(x, -1e9F), -x});
        }
    }
    return cases;
}

TEST(Half, F32RoundsToTheNearestF16) {
    const NearestHalf reference;
    for (float x : rounding_cases()) {
        const uint16_t got = f32_to_f16(x);
        if (std::isnan(x)) {
            EXPECT_GT(got & 0x7fff, 0x7c00);
        } else {
            EXPECT_EQ(got, reference.nearest(std::abs(x)) | (std::signbit(x) ? 0x8000 : 0)) << x;
        }
    }
}

TEST(Half, F32RoundsToTheNearestBf16) {
    EXPECT_EQ(f32_to_bf16(1.0F), 0x3f80);
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808000U)), 0x3f80);  // tie, even below
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f818000U)), 0x3f82);  // tie, even above
    EXPECT_EQ(f32_to_bf16(std::bit_cast<float>(0x3f808001U)), 0x3f81);
    EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7f80);
    EXPECT_EQ(f32_to_bf16(-kInf), 0xff80);
    EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(kNan))));
    EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001U)))));
    EXPECT_EQ(bf16_to_f32(0xc040), -3.0F);
}

TEST(Half, ArraysAgreeWithSingleValues) {
    std::vector<float> floats = rounding_cases();
    floats.push_back(std::bit_cast<float>(0x7f800001U));
    floats.push_back(std::bit_cast<float>(0xffc12345U));
    std::vector<uint16_t> halves(0x10000);
    std::iota(halves.begin(), halves.end(), uint16_t{0});
    for_each_isa([&] {
        std::vector<uint16_t> to_f16(floats.size()), to_bf16(floats.size());
        f32_to_f16(floats.data(), to_f16.data(), static_cast<int64_t>(floats.size()));
        f32_to_bf16(floats.data(), to_bf16.data(), static_cast<int64_t>(floats.size()));
        for (size_t i = 0; i < floats.size(); ++i) {
            ASSERT_EQ(to_f16[i], f32_to_f16(floats[i])) << floats[i];
            ASSERT_EQ(to_bf16[i], f32_to_bf16(floats[i])) << floats[i];
        }
        std::vector<float> of_f16(halves.size()), of_bf16(halves.size());
        f16_to_f32(halves.data(), of_f16.data(), static_cast<int64_t>(halves.size()));
        bf16_to_f32(halves.data(), of_bf16.data(), static_cast<int64_t>(halves.size()));
        for (size_t i = 0; i < halves.size(); ++i) {
            ASSERT_EQ(std::bit_cast<uint32_t>(of_f16[i]), std::bit_cast<uint32_t>(f16_to_f32(halves[i]))) << i;
            ASSERT_EQ(std::bit_cast<uint32_t>(of_bf16[i]), std::bit_cast<uint32_t>(bf16_to_f32(halves[i]))) << i;
        }
    });
}

// ---- quantised weights ----

class Quantized : public testing::TestWithParam<int> {
protected:
    QType type() const { return static_cast<QType>(GetParam()); }
};

TEST_P(Quantized, RowsAreDequantizedExactly) {
    for_each_isa([&] {
        for (int64_t k : lengths(type())) {
            Weights weights(type(), 2, k);
            std::vector<float> got(static_cast<size_t>(k));
            dequantize_row(type(), weights.data() + row_bytes(type(), k), got.data(), k);
            EXPECT_EQ(got, weights.row(1)) << k;
        }
    });
}

void expect_product(QType type, int64_t m, int64_t n, int64_t k) {
    SCOPED_TRACE(testing::Message() << "m n k " << m << " " << n << " " << k);
    constexpr int64_t kGap = 5;
    Weights weights(type, n, k);
    const std::vector<float> x = random_values<float>(m * (k + kGap) - kGap);
    std::vector<float> y(static_cast<size_t>(m * (n + kGap)), 77);
    ember_rt_qmatmul(static_cast<int32_t>(type), m, n, k, x.data(), k + kGap, weights.data(), y.data(), n + kGap);
    int wrong = 0;
    for (int64_t j = 0; j < n; ++j) {
        const std::vector<float> w = weights.row(j);
        for (int64_t t = 0; t < m; ++t) {
            double sum = 0;
            double magnitude = 0;
            for (int64_t l = 0; l < k; ++l) {
                const double product = static_cast<double>(w[static_cast<size_t>(l)]) *
                                       static_cast<double>(x[static_cast<size_t>(t * (k + kGap) + l)]);
                sum += product;
                magnitude += std::abs(product);
            }
            wrong += !(std::abs(y[static_cast<size_t>(t * (n + kGap) + j)] - sum) <= 3e-6 * (magnitude + 1));
        }
    }
    EXPECT_EQ(wrong, 0);
    for (int64_t t = 0; t < m; ++t) {
        for (int64_t gap = n; gap < n + kGap; ++gap) {
            EXPECT_EQ(y[static_cast<size_t>(t * (n + kGap) + gap)], 77);
        }
    }
}

TEST_P(Quantized, ProductsAreThoseOfTheDequantizedWeights) {
    for_each_isa([&] {
        ThreadCount count(2);
        for (int64_t k : lengths(type())) {
            for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 13, 33}) {
                expect_product(type(), m, 37, k);
            }
            expect_product(type(), 1, 1, k);
            expect_product(type(), 9, 3, k);
        }
        expect_product(type(), 1, 700, lengths(type())[2]);
    });
}

TEST_P(Quantized, EmptyExtents) {
    std::vector<float> y = {1, 2, 3, 4};
    qmatmul(type(), 2, 2, 0, nullptr, 0, nullptr, y.data(), 2);
    EXPECT_EQ(y, std::vector<float>(4, 0));
    qmatmul(type(), 0, 2, 256, nullptr, 0, nullptr, y.data(), 2);
    qmatmul(type(), 2, 0, 256, nullptr, 0, nullptr, y.data(), 2);
    dequantize_row(type(), nullptr, nullptr, 0);
}

TEST_P(Quantized, ResultsDoNotDependOnTheThreadCount) {
    const int64_t k = lengths(type())[2];
    constexpr int64_t kN = 301;
    Weights weights(type(), kN, k);
    for_each_isa([&] {
        for (int64_t m : {1, 4, 9}) {
            const std::vector<float> x = random_values<float>(m * k);
            std::vector<float> alone(static_cast<size_t>(m * kN)), shared(alone.size());
            set_thread_count(1);
            qmatmul(type(), m, kN, k, x.data(), k, weights.data(), alone.data(), kN);
            for (int threads = 2; threads <= 4; ++threads) {
                set_thread_count(threads);
                qmatmul(type(), m, kN, k, x.data(), k, weights.data(), shared.data(), kN);
                EXPECT_EQ(shared, alone) << m << " with " << threads;
            }
        }
    });
    set_thread_count(0);
}

TEST_P(Quantized, NanAndInfinityReachEveryRowThatMeetsThem) {
    const int64_t k = lengths(type())[1];
    Weights weights(type(), 20, k);
    for_each_isa([&] {
        for (int64_t m : {2, 6}) {
            std::vector<float> x = random_values<float>(m * k), y(static_cast<size_t>(m * 20));
            x[0] = kNan;
            qmatmul(type(), m, 20, k, x.data(), k, weights.data(), y.data(), 20);
            for (size_t j = 0; j < y.size(); ++j) {
                EXPECT_EQ(std::isnan(y[j]), j < 20);
            }
        }
    });
}

INSTANTIATE_TEST_SUITE_P(Types, Quantized, testing::Range(0, kQTypeCount),
                         [](const auto& info) { return std::string(qtype_info(static_cast<QType>(info.param)).name); });

}  // namespace
}  // namespace ember::runtime
