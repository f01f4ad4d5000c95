// Accuracy of the math bitcode: every function of functions.def, inlined into loops for each instruction set, against the
// long double functions of the C library (double ones for float). EMBER_MATH_SAMPLES sets how many arguments of each kind
// are drawn (default 20000), EMBER_MATH_REPORT a file for the table in docs/math-accuracy.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "math_loops.h"
#include "math_reference.h"

namespace {

struct Function {
    const char* name;
    int arity;
    double low, high;
    double ulp_f32, ulp_f64;
};

constexpr Function kFunctions[] = {
#define EMBER_MATH(name, arity, low, high, ulp_f32, ulp_f64, shape) {#name, arity, low, high, ulp_f32, ulp_f64},
#include "ember/codegen/math/functions.def"
};
constexpr size_t kFunctionCount = std::size(kFunctions);

struct Isa {
    const char* name;
    const MathLoops* loops;
};

std::vector<Isa> isas() {
    std::vector<Isa> result = {{"base", math_loops_base}};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        result.push_back({"avx2", math_loops_avx2});
    if (__builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512fp16"))
        result.push_back({"avx512", math_loops_avx512});
#endif
    return result;
}

template <class T>
auto loop_of(const Isa& isa, size_t function) {
    if constexpr (sizeof(T) == 4)
        return isa.loops[function].f32;
    else
        return isa.loops[function].f64;
}

template <class T>
using Wide = std::conditional_t<sizeof(T) == 4, double, long double>;

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

/// The distance from `got` to `exact` in units of the last place that T has at `exact`, or at `least` if that is larger.
template <class T>
double ulp_error(T got, Wide<T> exact, Wide<T> least) {
    T rounded = static_cast<T>(exact);
    if (std::isnan(exact) || std::isnan(got))
        return std::isnan(exact) == std::isnan(got) ? 0 : HUGE_VAL;
    if (got == rounded && (got != 0 || std::signbit(got) == std::signbit(exact)))
        return std::isinf(got) ? 0 : 0 + static_cast<double>(std::fabs(got - exact) / std::numeric_limits<Wide<T>>::max());
    if (got == 0 && exact == 0)
        return HUGE_VAL;  // the wrong zero
    constexpr int kDigits = std::numeric_limits<T>::digits, kLowest = std::numeric_limits<T>::min_exponent;
    Wide<T> scale = std::max(std::fabs(exact), least);
    int exponent = scale == 0 || std::isinf(scale) ? kLowest : std::max(std::ilogb(scale) + 1, kLowest);
    constexpr Wide<T> kMax = std::numeric_limits<T>::max();
    Wide<T> bounded = std::isinf(got) ? std::copysign(kMax + std::ldexp(Wide<T>(1), std::numeric_limits<T>::max_exponent - kDigits), got) : Wide<T>(got);
    if (std::isinf(exact))
        return HUGE_VAL;
    return static_cast<double>(std::ldexp(std::fabs(bounded - exact), kDigits - exponent));
}

size_t sample_count() {
    const char* text = std::getenv("EMBER_MATH_SAMPLES");
    return text ? std::strtoull(text, nullptr, 10) : 20000;
}

/// Arguments that hit the seams: zeros, infinities, NaN, subnormals, limits, integers, multiples of pi/2, and their neighbours.
template <class T>
std::vector<T> special_arguments() {
    using Limits = std::numeric_limits<T>;
    std::vector<T> values = {0, Limits::infinity(), Limits::quiet_NaN(), Limits::max(), Limits::min(), Limits::denorm_min()};
    std::vector<T> around;
    for (int k = Limits::min_exponent - Limits::digits; k <= Limits::max_exponent - 1; ++k)
        around.push_back(std::ldexp(T(1), k));
    for (int k = 1; k < 200; ++k) {
        around.push_back(T(k) / 2);
        around.push_back(static_cast<T>(k * 1.57079632679489661923132169163975144L));
        around.push_back(static_cast<T>(k * 0.34657359027997265470861606072908828L));
    }
    for (T x : {86.64, 87.33, 88.02, 88.72, 89.41, 103.97, 708.39, 709.09, 709.78, 710.47, 745.13, 0.9999, 1.4616321449683623, 0.55, 0.5625, 1e22, 26.54, 9.1945, 5.8635})
        around.push_back(x);
    for (T x : around)
        for (T y : {x, std::nextafter(x, T(0)), std::nextafter(x, Limits::infinity())})
            values.push_back(y);
    for (size_t i = 0, n = values.size(); i < n; ++i)
        values.push_back(-values[i]);
    return values;
}

/// Uniform in [low, high]; around both ends; and any bit pattern.
template <class T>
T random_argument(const Function& f, size_t kind, std::mt19937_64& random) {
    std::uniform_real_distribution<double> uniform(f.low, f.high);
    std::uniform_real_distribution<double> magnitude(-40, 5);
    switch (kind % 4) {
        case 0: return static_cast<T>(uniform(random));
        case 1: return static_cast<T>(f.low + std::exp2(magnitude(random)));
        case 2: return static_cast<T>((random() & 1 ? f.high : 0) - std::exp2(magnitude(random)));
        default: return std::bit_cast<T>(static_cast<Bits<T>>(random()));
    }
}

template <class T>
struct Arguments {
    std::vector<T> x, y;
};

template <class T>
Arguments<T> make_arguments(const Function& f, size_t count, uint64_t seed) {
    std::mt19937_64 random(seed);
    Arguments<T> a;
    std::vector<T> special = special_arguments<T>();
    for (T x : special) {
        a.x.push_back(x);
        a.y.push_back(special[random() % special.size()]);
    }
    for (size_t i = 0; f.arity == 2 && i < 20 * special.size(); ++i) {
        a.x.push_back(special[random() % special.size()]);
        a.y.push_back(special[random() % (i % 2 ? 12 : special.size())]);
    }
    for (size_t i = 0; i < 4 * count; ++i) {
        a.x.push_back(random_argument<T>(f, i, random));
        a.y.push_back(random_argument<T>(f, i % 16 == 3 ? 0 : i, random));
    }
    return a;
}

struct Worst {
    double ulp = 0;
    std::string where;
};

template <class T>
Worst measure(size_t index, const Isa& isa, const Arguments<T>& a, const std::vector<Wide<T>>& exact) {
    const Function& f = kFunctions[index];
    std::vector<T> got(a.x.size());
    loop_of<T>(isa, index)(a.x.data(), a.y.data(), got.data(), got.size());
    Worst worst;
    for (size_t i = 0; i < got.size(); ++i) {
        double ulp = ulp_error<T>(got[i], exact[i], reference::least_scale(f.name, Wide<T>(a.x[i]), Wide<T>(a.y[i])));
        if (ulp <= worst.ulp)
            continue;
        char text[200];
        std::snprintf(text, sizeof text, "%s(%.17g%s%s) = %.17g, exactly %.20Lg", f.name, double(a.x[i]), f.arity == 2 ? ", " : "",
                      f.arity == 2 ? std::to_string(0).c_str() : "", double(got[i]), static_cast<long double>(exact[i]));
        if (f.arity == 2)
            std::snprintf(text, sizeof text, "%s(%.17g, %.17g) = %.17g, exactly %.20Lg", f.name, double(a.x[i]), double(a.y[i]),
                          double(got[i]), static_cast<long double>(exact[i]));
        worst = {ulp, text};
    }
    return worst;
}

template <class T>
std::vector<Wide<T>> exact_results(const Function& f, const Arguments<T>& a) {
    std::vector<Wide<T>> exact(a.x.size());
    for (size_t i = 0; i < exact.size(); ++i)
        exact[i] = reference::evaluate<Wide<T>, T>(f.name, a.x[i], a.y[i]);
    return exact;
}

class MathTest : public testing::TestWithParam<size_t> {
protected:
    template <class T>
    void check_accuracy(double allowed) {
        const Function& f = kFunctions[GetParam()];
        Arguments<T> a = make_arguments<T>(f, sample_count(), GetParam() + 1);
        std::vector<Wide<T>> exact = exact_results<T>(f, a);
        for (const Isa& isa : isas()) {
            Worst worst = measure<T>(GetParam(), isa, a, exact);
            std::printf("%-12s %s %-7s %8.3f ulp  %s\n", f.name, sizeof(T) == 4 ? "f32" : "f64", isa.name, worst.ulp, worst.where.c_str());
            EXPECT_LE(worst.ulp, allowed) << isa.name << ": " << worst.where;
        }
    }

    /// The vector body of a loop and its scalar remainder agree bit for bit.
    template <class T>
    void check_one_value() {
        const Function& f = kFunctions[GetParam()];
        Arguments<T> a = make_arguments<T>(f, 500, 99);
        std::vector<T> together(a.x.size());
        for (const Isa& isa : isas()) {
            auto loop = loop_of<T>(isa, GetParam());
            loop(a.x.data(), a.y.data(), together.data(), together.size());
            for (size_t i = 0; i < together.size(); ++i) {
                T alone;
                loop(&a.x[i], &a.y[i], &alone, 1);
                if (std::isnan(alone) && std::isnan(together[i]))
                    continue;
                ASSERT_EQ(std::bit_cast<Bits<T>>(alone), std::bit_cast<Bits<T>>(together[i])) << isa.name << " " << f.name << "(" << a.x[i] << ")";
            }
        }
    }
};

TEST_P(MathTest, f32IsAccurate) { check_accuracy<float>(kFunctions[GetParam()].ulp_f32); }
TEST_P(MathTest, f64IsAccurate) { check_accuracy<double>(kFunctions[GetParam()].ulp_f64); }
TEST_P(MathTest, f32IsTheSameInVectors) { check_one_value<float>(); }
TEST_P(MathTest, f64IsTheSameInVectors) { check_one_value<double>(); }

INSTANTIATE_TEST_SUITE_P(Functions, MathTest, testing::Range(size_t(0), kFunctionCount),
                         [](const auto& info) { return std::string(kFunctions[info.param].name); });

}  // namespace
