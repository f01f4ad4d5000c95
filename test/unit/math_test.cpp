// The math bitcode: every function of functions.def, inlined into loops for each instruction set, against the long
// double functions of the C library (double ones for float), and what its IR promises to the loop vectoriser.
//
// By environment: EMBER_MATH_SAMPLES is how many arguments of each kind are drawn (default 6000); EMBER_MATH_STRIDE
// sweeps each function of one float over every so many-th bit pattern, 1 over all; EMBER_MATH_REPORT names a file that
// the measured errors are appended to, the rows of docs/math-accuracy.md.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "math_loops.h"
#include "math_reference.h"

namespace {

enum Shape { kStraight, kBranching };

struct Function {
    const char* name;
    int arity;
    double low, high;
    double ulp_f32, ulp_f64;
    Shape shape;
};

constexpr Function kFunctions[] = {
#define EMBER_MATH(name, arity, low, high, ulp_f32, ulp_f64, shape) {#name, arity, low, high, ulp_f32, ulp_f64, shape},
#include "ember/codegen/math/functions.def"
};

template <class T>
using Wide = std::conditional_t<sizeof(T) == 4, double, long double>;
template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
template <class T>
constexpr const char* kTypeName = sizeof(T) == 4 ? "f32" : "f64";

struct Isa {
    const char* name;
    const MathLoops* loops;
};

/// The instruction sets of math_test.cmake that this processor has.
std::vector<Isa> isas() {
    std::vector<Isa> result = {{"base", math_loops_base}};
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        result.push_back({"avx2", math_loops_avx2});
    }
    if (__builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bf16")) {
        result.push_back({"avx512", math_loops_avx512});
    }
#endif
    return result;
}

template <class T>
auto loop_of(const Isa& isa, size_t function) {
    if constexpr (sizeof(T) == 4) {
        return isa.loops[function].f32;
    } else {
        return isa.loops[function].f64;
    }
}

/// The distance from `got` to `exact` in units of the last place that T has at `exact`, or at `least` if that is
/// larger. An overflow counts as the power of two that comes after the largest number; the wrong zero or a NaN too many
/// is infinitely far.
template <class T>
double ulp_error(T got, Wide<T> exact, Wide<T> least) {
    using Limits = std::numeric_limits<T>;
    if (std::isnan(exact) || std::isnan(got)) {
        return std::isnan(exact) == std::isnan(got) ? 0 : HUGE_VAL;
    }
    if (std::isinf(exact) || (std::isinf(got) && got == static_cast<T>(exact))) {
        return got == static_cast<T>(exact) ? 0 : HUGE_VAL;
    }
    if (got == 0 && exact == 0) {
        return std::signbit(got) == std::signbit(exact) ? 0 : HUGE_VAL;
    }
    Wide<T> scale = std::max(std::fabs(exact), least);
    int exponent = std::clamp(std::ilogb(scale) + 1, Limits::min_exponent, Limits::max_exponent);
    Wide<T> finite = std::isinf(got) ? std::copysign(std::ldexp(Wide<T>(1), Limits::max_exponent), Wide<T>(got)) : got;
    return static_cast<double>(std::ldexp(std::fabs(finite - exact), Limits::digits - exponent));
}

/// Arguments that hit the seams: zeros, infinities, NaN, subnormals, limits, integers, multiples of pi/2 and of
/// ln(2)/2, overflow thresholds, and the neighbours of all.
template <class T>
std::vector<T> special_arguments() {
    using Limits = std::numeric_limits<T>;
    std::vector<T> values = {0, Limits::infinity(), Limits::quiet_NaN(), Limits::max(), Limits::denorm_min()};
    std::vector<T> seams;
    for (int k = Limits::min_exponent - Limits::digits; k < Limits::max_exponent; ++k) {
        seams.push_back(std::ldexp(T(1), k));
    }
    for (int k = 1; k < 200; ++k) {
        seams.push_back(T(k) / 2);
        seams.push_back(static_cast<T>(k * 1.57079632679489661923132169163975144L));
        seams.push_back(static_cast<T>(k * 0.34657359027997265470861606072908828L));
    }
    for (double x :
         {86.64, 87.33,  88.02, 88.72, 89.41, 103.97, 708.39, 709.09, 709.78, 710.47, 745.13, 1.46163214496836,
          0.55,  0.5625, 0.625, 0.89,  1e22,  26.54,  9.1945, 5.8635}) {
        seams.push_back(static_cast<T>(x));
    }
    for (T x : seams) {
        values.insert(values.end(), {x, std::nextafter(x, T(0)), std::nextafter(x, Limits::infinity())});
    }
    for (size_t i = 0, n = values.size(); i < n; ++i) {
        values.push_back(-values[i]);
    }
    return values;
}

/// Of four kinds: uniform in [low, high]; close to low; close to high or to 0; any bit pattern.
template <class T>
T random_argument(const Function& f, size_t kind, std::mt19937_64& random) {
    std::uniform_real_distribution<double> uniform(f.low, f.high), exponent(-40, 5);
    switch (kind % 4) {
        case 0:
            return static_cast<T>(uniform(random));
        case 1:
            return static_cast<T>(f.low + std::exp2(exponent(random)));
        case 2:
            return static_cast<T>((random() % 2 == 0 ? f.high : 0) - std::exp2(exponent(random)));
        default:
            return std::bit_cast<T>(static_cast<Bits<T>>(random()));
    }
}

template <class T>
struct Arguments {
    std::vector<T> x, y;

    void add(T new_x, T new_y) {
        x.push_back(new_x);
        y.push_back(new_y);
    }
};

/// Uniform in the interval of functions.def.
template <class T>
Arguments<T> usual_arguments(const Function& f, size_t count) {
    std::mt19937_64 random(1);
    Arguments<T> a;
    for (size_t i = 0; i < count; ++i) {
        T x = random_argument<T>(f, 0, random);
        a.add(x, random_argument<T>(f, 0, random));
    }
    return a;
}

template <class T>
Arguments<T> hard_arguments(const Function& f, size_t count) {
    std::mt19937_64 random(2);
    Arguments<T> a;
    std::vector<T> special = special_arguments<T>();
    for (size_t i = 0; i < (f.arity == 2 ? 20 : 1) * special.size(); ++i) {
        T x = special[f.arity == 2 ? random() % special.size() : i];
        a.add(x, special[random() % (i % 2 == 0 ? 12 : special.size())]);
    }
    for (size_t i = 0; i < 3 * count; ++i) {
        T x = random_argument<T>(f, i % 3 + 1, random);
        a.add(x, random_argument<T>(f, i % 5 == 0 ? 0 : i % 3 + 1, random));
    }
    return a;
}

struct Worst {
    double ulp = 0;
    std::string where = "everywhere";
};

template <class T>
std::string describe(const Function& f, T x, T y, T got, Wide<T> exact) {
    std::ostringstream text;
    text.precision(std::numeric_limits<T>::max_digits10);
    text << f.name << "(" << x;
    if (f.arity == 2) {
        text << ", " << y;
    }
    text << ") = " << got << ", exactly " << exact;
    return text.str();
}

template <class T>
class Measurement {
public:
    explicit Measurement(size_t index) : index_(index) {
        for (const auto& candidate : reference::kFunctions<Wide<T>, T>) {
            if (candidate.name == kFunctions[index].name) {
                reference_ = &candidate;
            }
        }
        EXPECT_NE(reference_, nullptr) << "no reference for " << kFunctions[index].name;
    }

    /// The largest error over the arguments, under all instruction sets.
    Worst worst(const Arguments<T>& a) const {
        std::vector<Wide<T>> exact(a.x.size());
        for (size_t i = 0; i < exact.size(); ++i) {
            exact[i] = reference::evaluate(*reference_, a.x[i], a.y[i]);
        }
        Worst result;
        for (const Isa& isa : isas()) {
            measure(isa, a, exact, result);
        }
        return result;
    }

private:
    void measure(const Isa& isa, const Arguments<T>& a, const std::vector<Wide<T>>& exact, Worst& result) const {
        const Function& f = kFunctions[index_];
        std::vector<T> got(a.x.size());
        loop_of<T>(isa, index_)(a.x.data(), a.y.data(), got.data(), got.size());
        for (size_t i = 0; i < got.size(); ++i) {
            double ulp = ulp_error<T>(got[i], exact[i], reference::least_scale<Wide<T>>(f.name, a.x[i], a.y[i]));
            if (ulp > result.ulp) {
                result = {ulp, std::string(isa.name) + ": " + describe(f, a.x[i], a.y[i], got[i], exact[i])};
            }
        }
    }

    size_t index_;
    const reference::Function<Wide<T>, T>* reference_ = nullptr;
};

size_t setting(const char* name, size_t otherwise) {
    const char* text = std::getenv(name);
    return text != nullptr ? std::strtoull(text, nullptr, 10) : otherwise;
}

/// Every `stride`-th bit pattern.
Worst sweep(size_t function, size_t stride) {
    Measurement<float> measurement(function);
    Worst result;
    constexpr uint64_t kEnd = uint64_t(1) << 32;
    for (uint64_t bits = 0; bits < kEnd;) {
        Arguments<float> a;
        for (; bits < kEnd && a.x.size() < 1 << 16; bits += stride) {
            a.add(std::bit_cast<float>(static_cast<uint32_t>(bits)), 0);
        }
        Worst worst = measurement.worst(a);
        result = worst.ulp > result.ulp ? worst : result;
    }
    return result;
}

class MathTest : public testing::TestWithParam<size_t> {
protected:
    template <class T>
    void check_accuracy(double allowed) {
        const Function& f = kFunctions[GetParam()];
        size_t count = setting("EMBER_MATH_SAMPLES", 6000);
        Measurement<T> measurement(GetParam());
        Worst usual = measurement.worst(usual_arguments<T>(f, count));
        Worst hard = measurement.worst(hard_arguments<T>(f, count));
        if (size_t stride = setting("EMBER_MATH_STRIDE", 0); sizeof(T) == 4 && f.arity == 1 && stride != 0) {
            Worst swept = sweep(GetParam(), stride);
            hard = swept.ulp > hard.ulp ? swept : hard;
        }
        EXPECT_LE(usual.ulp, allowed) << usual.where;
        EXPECT_LE(hard.ulp, allowed) << hard.where;
        if (const char* path = std::getenv("EMBER_MATH_REPORT")) {
            char row[400];
            std::snprintf(row, sizeof row, "| %s | %s | %.2f | %.2f | %.1f | %s |\n", f.name, kTypeName<T>, usual.ulp,
                          hard.ulp, allowed, (hard.ulp > usual.ulp ? hard : usual).where.c_str());
            std::ofstream(path, std::ios::app) << row;
        }
    }

    /// The vector body of a loop and its scalar remainder give the same bits.
    template <class T>
    void check_vectors() {
        const Function& f = kFunctions[GetParam()];
        Arguments<T> a = hard_arguments<T>(f, 200);
        std::vector<T> together(a.x.size());
        for (const Isa& isa : isas()) {
            auto loop = loop_of<T>(isa, GetParam());
            loop(a.x.data(), a.y.data(), together.data(), together.size());
            for (size_t i = 0; i < together.size(); ++i) {
                T alone;
                loop(&a.x[i], &a.y[i], &alone, 1);
                bool both_nan = std::isnan(alone) && std::isnan(together[i]);
                ASSERT_TRUE(both_nan || std::bit_cast<Bits<T>>(alone) == std::bit_cast<Bits<T>>(together[i]))
                    << isa.name << ": " << describe<T>(f, a.x[i], a.y[i], together[i], alone);
            }
        }
    }
};

TEST_P(MathTest, f32IsAccurate) {
    check_accuracy<float>(kFunctions[GetParam()].ulp_f32);
}
TEST_P(MathTest, f64IsAccurate) {
    check_accuracy<double>(kFunctions[GetParam()].ulp_f64);
}
TEST_P(MathTest, VectorsAndScalarsAgree) {
    check_vectors<float>();
    check_vectors<double>();
}

INSTANTIATE_TEST_SUITE_P(Functions, MathTest, testing::Range(size_t(0), std::size(kFunctions)),
                         [](const auto& info) { return std::string(kFunctions[info.param].name); });

/// The lines of a function in textual IR, from `define` to the closing brace.
std::string body_in_ir(const std::string& symbol) {
    for (const auto& entry : std::filesystem::directory_iterator(EMBER_MATH_IR_DIR)) {
        std::ostringstream text;
        text << std::ifstream(entry.path()).rdbuf();
        std::string module = text.str();
        size_t found = entry.path().extension() == ".ll" ? module.find("@" + symbol + "(") : std::string::npos;
        size_t start = found == std::string::npos ? found : module.rfind('\n', found) + 1;
        if (start != std::string::npos && module.compare(start, 7, "define ") == 0) {
            return module.substr(start, module.find("\n}\n", start) - start);
        }
    }
    return "";
}

/// What keeps a loop from being vectorised: control flow, calls of anything but intrinsics.
std::string obstacle(const std::string& body) {
    std::istringstream lines(body);
    for (std::string line; std::getline(lines, line);) {
        bool call = line.find(" call ") != std::string::npos && line.find("@llvm.") == std::string::npos;
        if (call || line.find("  br ") == 0 || line.find("  switch ") == 0) {
            return line;
        }
    }
    return "";
}

TEST(MathBitcode, StraightFunctionsNeitherBranchNorCall) {
    for (const Function& f : kFunctions) {
        for (const char* type : {"f32", "f64"}) {
            std::string symbol = std::string("ember_") + f.name + "_" + type;
            std::string body = body_in_ir(symbol);
            EXPECT_FALSE(body.empty()) << symbol << " is not defined";
            if (f.shape == kStraight || type == std::string("f32")) {
                EXPECT_EQ(obstacle(body), "") << symbol;
            }
        }
    }
}

TEST(MathBitcode, BelongsToNoTarget) {
    for (const auto& entry : std::filesystem::directory_iterator(EMBER_MATH_IR_DIR)) {
        if (entry.path().extension() != ".ll") {
            continue;
        }
        std::ostringstream text;
        text << std::ifstream(entry.path()).rdbuf();
        for (const char* word :
             {"target triple", "target datalayout", "target-cpu", "target-features", "source_filename"}) {
            EXPECT_EQ(text.str().find(word), std::string::npos) << entry.path() << " has a " << word;
        }
    }
}

}  // namespace
