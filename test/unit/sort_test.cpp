// The runtime's sorting and searching against plain comparisons: every element type, ties, zeros of both signs, NaN,
// rows on both sides of the length from which radix sorting is used, strided rows, several threads.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/element.h"
#include "runtime/functions.h"
#include "runtime/thread_pool.h"

namespace ember::runtime {
namespace {

constexpr int kTypes = static_cast<int>(ElementType::kF64) + 1;

EmberSlot number(int64_t value) {
    EmberSlot slot;
    slot.number = value;
    return slot;
}
EmberSlot pointer(const void* value) {
    EmberSlot slot;
    slot.pointer = const_cast<void*>(value);
    return slot;
}

int64_t call(std::string_view name, const std::vector<EmberSlot>& arguments) {
    return artifact_runtime()->call(function_number(name), arguments.data());
}

template <class T>
std::vector<T> random_elements(size_t count, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<T> elements(count);
    for (T& x : elements) {
        uint64_t bits = random();
        if constexpr (std::is_same_v<T, Bool>) {
            bits &= 1;
        } else if (random() % 3 == 0) {
            bits = random() % 2 == 0 ? 0 : uint64_t{1} << (8 * sizeof(T) - 1);  // ties, and zeros of both signs
        }
        std::memcpy(&x, &bits, sizeof x);
    }
    return elements;
}

template <class T>
bool same_bits(const T& a, const T& b) {
    return std::memcmp(&a, &b, sizeof a) == 0;
}

/// The order by definition, from values as numbers.
template <class T>
long double value_of(T x) {
    if constexpr (std::is_same_v<T, Bool>) {
        return x.byte;
    } else if constexpr (std::is_same_v<T, F16>) {
        int exponent = (x.bits >> 10) & 31;
        long double fraction = x.bits & 1023;
        long double size = exponent == 31  ? (fraction == 0 ? INFINITY : NAN)
                           : exponent == 0 ? std::ldexp(fraction, -24)
                                           : std::ldexp(fraction + 1024, exponent - 25);
        return (x.bits & 0x8000) != 0 ? -size : size;
    } else if constexpr (std::is_same_v<T, BF16>) {
        return std::bit_cast<float>(static_cast<uint32_t>(x.bits) << 16);
    } else {
        return x;
    }
}

template <class T>
bool comes_before(T a, T b) {
    long double x = value_of(a);
    long double y = value_of(b);
    return std::isnan(y) ? !std::isnan(x) : x < y;
}

template <class T>
std::vector<int64_t> order_of(const std::vector<T>& row, bool descending) {
    std::vector<int64_t> order(row.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
        T a = row[static_cast<size_t>(i)];
        T b = row[static_cast<size_t>(j)];
        return descending ? comes_before(b, a) : comes_before(a, b);
    });
    return order;
}

struct Shape {
    int64_t outer, length, inner, kept;
};

template <class T>
void check_sort(int type, Shape s, bool descending) {
    SCOPED_TRACE("type " + std::to_string(type) + " length " + std::to_string(s.length) + " inner " +
                 std::to_string(s.inner) + " kept " + std::to_string(s.kept));
    auto x = random_elements<T>(static_cast<size_t>(s.outer * s.length * s.inner), 17 + static_cast<uint64_t>(type));
    size_t results = static_cast<size_t>(s.outer * s.kept * s.inner);
    std::vector<T> values(results);
    std::vector<T> alone(results);
    std::vector<int64_t> positions(results);
    auto run = [&](void* to_values, void* to_positions) {
        return call("sort_rows", {number(type), number(descending), number(s.outer), number(s.length), number(s.inner),
                                  number(s.kept), pointer(x.data()), pointer(to_values), pointer(to_positions)});
    };
    ASSERT_EQ(run(values.data(), positions.data()), 0);
    if (s.kept == s.length) {
        ASSERT_EQ(run(alone.data(), nullptr), 0);
    }
    for (int64_t o = 0; o < s.outer; ++o) {
        for (int64_t c = 0; c < s.inner; ++c) {
            std::vector<T> row;
            for (int64_t i = 0; i < s.length; ++i) {
                row.push_back(x[static_cast<size_t>((o * s.length + i) * s.inner + c)]);
            }
            std::vector<int64_t> order = order_of(row, descending);
            for (int64_t i = 0; i < s.kept; ++i) {
                auto at = static_cast<size_t>((o * s.kept + i) * s.inner + c);
                ASSERT_EQ(positions[at], order[static_cast<size_t>(i)]) << i;
                T want = row[static_cast<size_t>(positions[at])];
                ASSERT_TRUE(same_bits(values[at], want)) << i;
                ASSERT_TRUE(s.kept != s.length || same_bits(alone[at], want)) << i;
            }
        }
    }
}

TEST(Sort, EveryTypeAndLength) {
    const Shape shapes[] = {{1, 0, 3, 0},     {3, 1, 2, 1},       {2, 5, 1, 5},       {2, 63, 4, 63},
                            {2, 130, 1, 130}, {1, 1100, 1, 1100}, {2, 1100, 3, 1100}, {1, 300, 70, 300},
                            {1, 4000, 1, 10}, {2, 90, 5, 60}};
    for (int type = 0; type < kTypes; ++type) {
        with_element(type, [&]<class T>(T) {
            for (Shape shape : shapes) {
                check_sort<T>(type, shape, false);
                check_sort<T>(type, shape, true);
            }
        });
    }
}

TEST(Sort, SeveralThreads) {
    set_thread_count(3);
    check_sort<double>(static_cast<int>(ElementType::kF64), {50, 900, 2, 900}, false);
    check_sort<int16_t>(static_cast<int>(ElementType::kI16), {2, 900, 130, 900}, true);
    check_sort<float>(static_cast<int>(ElementType::kF32), {1, 150000, 1, 150000}, false);
    check_sort<double>(static_cast<int>(ElementType::kF64), {1, 140001, 2, 140001}, true);
    check_sort<int8_t>(static_cast<int>(ElementType::kI8), {3, 140001, 1, 140001}, false);
    set_thread_count(0);
}

TEST(Sort, KeysGiveElementsBack) {
    for (int type = 0; type < kTypes; ++type) {
        with_element(type, [&]<class T>(T) {
            for (T x : random_elements<T>(2000, 3)) {
                T back = from_key<T>(key_of(x));
                EXPECT_TRUE(std::isnan(value_of(x)) ? std::isnan(value_of(back)) : value_of(x) == value_of(back));
            }
        });
    }
}

TEST(Search, EveryTypeAndLength) {
    for (int type = 0; type < kTypes; ++type) {
        with_element(type, [&]<class T>(T) {
            for (size_t length : {0, 1, 2, 3, 100, 1000}) {
                std::vector<T> sorted = random_elements<T>(length, 5);
                std::stable_sort(sorted.begin(), sorted.end(), comes_before<T>);
                std::vector<T> values = random_elements<T>(3000, 6);
                values.insert(values.end(), sorted.begin(), sorted.end());
                std::vector<int64_t> found(values.size());
                for (bool right : {false, true}) {
                    ASSERT_EQ(
                        call("search_sorted", {number(type), number(right), number(static_cast<int64_t>(length)),
                                               pointer(sorted.data()), number(static_cast<int64_t>(values.size())),
                                               pointer(values.data()), pointer(found.data())}),
                        0);
                    for (size_t i = 0; i < values.size(); ++i) {
                        auto at = right ? std::upper_bound(sorted.begin(), sorted.end(), values[i], comes_before<T>)
                                        : std::lower_bound(sorted.begin(), sorted.end(), values[i], comes_before<T>);
                        ASSERT_EQ(found[i], at - sorted.begin());
                    }
                }
            }
        });
    }
}

TEST(Functions, AreFoundByName) {
    for (size_t i = 0; i < std::size(kFunctionNames); ++i) {
        EXPECT_EQ(function_number(kFunctionNames[i]), static_cast<int32_t>(i));
    }
    EXPECT_EQ(function_number("none"), -1);
}

TEST(Bincount, NegativeAndHugeNumbers) {
    const std::vector<int64_t> negative = {3, -1};
    const std::vector<uint64_t> huge = {3, UINT64_MAX};
    auto length = [&](ElementType type, const void* x) {
        return call("bincount_length", {number(static_cast<int64_t>(type)), number(2), pointer(x), number(1)});
    };
    EXPECT_EQ(length(ElementType::kI64, negative.data()), -2);
    EXPECT_GT(length(ElementType::kU64, huge.data()), int64_t{1} << 50);
}

}  // namespace
}  // namespace ember::runtime
