// What the functions of the math bitcode are measured against: the C library in a wider type, and for what it lacks,
// slow and simple formulas in that type.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

namespace reference {

template <class W>
inline constexpr W kPi = static_cast<W>(3.141592653589793238462643383279502884L);
template <class W>
inline constexpr W kInfinity = std::numeric_limits<W>::infinity();
template <class W>
inline constexpr W kNaN = std::numeric_limits<W>::quiet_NaN();

/// The recurrence up to 40, from there the asymptotic series; reflection for negative arguments.
template <class W>
W digamma(W x) {
    if (x == 0) {
        return std::copysign(kInfinity<W>, -x);
    }
    if (std::fabs(x) < W(1e-30)) {
        return -1 / x;
    }
    if (x < 0) {
        W from_integer = x - std::round(x);
        return from_integer == 0 ? kNaN<W> : digamma(-x) - 1 / x - kPi<W> / std::tan(kPi<W> * from_integer);
    }
    W sum = 0;
    for (; x < 40; ++x) {
        sum -= 1 / x;
    }
    W z = 1 / (x * x), series = 0;
    for (W b : {W(1) / 12, W(-691) / 32760, W(1) / 132, W(-1) / 240, W(1) / 252, W(-1) / 120, W(1) / 12}) {
        series = z * (series + b);
    }
    return sum + std::log(x) - 1 / (2 * x) - series;
}

template <class W>
W erfc_inverse(W y);

/// Newton's method.
template <class W>
W erf_inverse(W x) {
    if (!(std::fabs(x) <= 1) || x == 0) {
        return x == 0 ? x : kNaN<W>;
    }
    if (std::fabs(x) > W(0.5)) {
        return std::copysign(erfc_inverse(1 - std::fabs(x)), x);
    }
    W y = x * W(0.886), step;
    do {
        step = (std::erf(y) - x) / (2 / std::sqrt(kPi<W>) * std::exp(-y * y));
        y -= step;
    } while (std::fabs(step) > 2 * std::fabs(y) * std::numeric_limits<W>::epsilon());
    return y;
}

/// Newton's method on log erfc, whose slope is tame.
template <class W>
W erfc_inverse(W y) {
    if (!(y >= 0 && y <= 2)) {
        return kNaN<W>;
    }
    if (y == 0 || y > 1) {
        return y == 0 ? kInfinity<W> : -erfc_inverse(2 - y);
    }
    if (y >= W(0.5)) {
        return erf_inverse(1 - y);
    }
    W x = std::sqrt(-std::log(y)), step;
    int steps = 0;
    do {
        W value = std::erfc(x);
        step = y > W(0.25) ? value - y : std::log(value / y) * value;
        step *= -std::sqrt(kPi<W>) / 2 * std::exp(x * x);
        x -= step;
    } while (std::fabs(step) > 2 * std::fabs(x) * std::numeric_limits<W>::epsilon() && ++steps < 60);
    return x;
}

template <class W>
W softplus(W x) {
    return std::fmax(x, W(0)) + std::log1p(std::exp(-std::fabs(x)));
}

template <class W>
W logaddexp(W x, W y) {
    return x == y ? x + std::log(W(2)) : std::fmax(x, y) + std::log1p(std::exp(-std::fabs(x - y)));
}

/// NumPy's mod and floor_divide, in the type itself: they are defined by their own roundings.
template <class T>
T floor_mod(T x, T y) {
    T rest = std::fmod(x, y);
    if (rest == 0) {
        return std::copysign(T(0), y);
    }
    return (y < 0) != (rest < 0) ? rest + y : rest;
}

template <class T>
T floor_div(T x, T y) {
    T rest = std::fmod(x, y);
    T quotient = (x - rest) / y;
    if (rest != 0 && (y < 0) != (rest < 0)) {
        quotient -= 1;
    }
    if (y == 0 || quotient == 0) {
        return y == 0 ? x / y : std::copysign(T(0), x / y);
    }
    T floored = std::floor(quotient);
    return quotient - floored > T(0.5) ? floored + 1 : floored;
}

/// One function: `unary` or `wide` takes arguments of the wider type W, `narrow` of the type T that is tested.
template <class W, class T>
struct Function {
    std::string_view name;
    W (*unary)(W) = nullptr;
    W (*wide)(W, W) = nullptr;
    T (*narrow)(T, T) = nullptr;
};

template <class W, class T>
const Function<W, T> kFunctions[] = {
    {"exp", [](W x) { return std::exp(x); }},
    {"exp2", [](W x) { return std::exp2(x); }},
    {"expm1", [](W x) { return std::expm1(x); }},
    {"log", [](W x) { return std::log(x); }},
    {"log2", [](W x) { return std::log2(x); }},
    {"log10", [](W x) { return std::log10(x); }},
    {"log1p", [](W x) { return std::log1p(x); }},
    {"sin", [](W x) { return std::sin(x); }},
    {"cos", [](W x) { return std::cos(x); }},
    {"tan", [](W x) { return std::tan(x); }},
    {"asin", [](W x) { return std::asin(x); }},
    {"acos", [](W x) { return std::acos(x); }},
    {"atan", [](W x) { return std::atan(x); }},
    {"sinh", [](W x) { return std::sinh(x); }},
    {"cosh", [](W x) { return std::cosh(x); }},
    {"tanh", [](W x) { return std::tanh(x); }},
    {"asinh", [](W x) { return std::asinh(x); }},
    {"acosh", [](W x) { return std::acosh(x); }},
    {"atanh", [](W x) { return std::atanh(x); }},
    {"cbrt", [](W x) { return std::cbrt(x); }},
    {"erf", [](W x) { return std::erf(x); }},
    {"erfc", [](W x) { return std::erfc(x); }},
    {"erfinv", erf_inverse<W>},
    {"erfcinv", erfc_inverse<W>},
    {"sigmoid", [](W x) { return 1 / (1 + std::exp(-x)); }},
    {"softplus", softplus<W>},
    {"log_sigmoid", [](W x) { return -softplus(-x); }},
    {"lgamma", [](W x) { return std::lgamma(x); }},
    {"digamma", digamma<W>},
    {"pow", nullptr, [](W x, W y) { return std::pow(x, y); }},
    {"atan2", nullptr, [](W y, W x) { return std::atan2(y, x); }},
    {"hypot", nullptr, [](W x, W y) { return std::hypot(x, y); }},
    {"logaddexp", nullptr, [](W x, W y) { return std::isnan(x) || std::isnan(y) ? kNaN<W> : logaddexp(x, y); }},
    {"fmod", nullptr, nullptr, [](T x, T y) { return std::fmod(x, y); }},
    {"mod", nullptr, nullptr, floor_mod<T>},
    {"floor_div", nullptr, nullptr, floor_div<T>},
};

/// The exact result of a function, as well as W has it.
template <class W, class T>
W evaluate(const Function<W, T>& f, T x, T y) {
    if (f.unary != nullptr) {
        return std::isnan(x) ? kNaN<W> : f.unary(x);
    }
    return f.wide != nullptr ? f.wide(x, y) : W(f.narrow(x, y));
}

/// Where a result cancels (lgamma and digamma near roots, logaddexp near 0) the error is measured at this scale
/// instead.
template <class W>
W least_scale(std::string_view f, W x, W y) {
    if (f == "lgamma" || f == "digamma") {
        return std::fmax(W(1), std::fabs(x));
    }
    return f == "logaddexp" ? std::fmin(std::fmax(std::fabs(x), std::fabs(y)), W(1)) : 0;
}

}  // namespace reference
