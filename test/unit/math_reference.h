// What the functions of the math bitcode are measured against: the C library in a wider type, and for what it lacks,
// slow and simple formulas in that type.
#pragma once

#include <cmath>
#include <limits>
#include <string_view>

namespace reference {

template <class W>
inline constexpr W kPi = static_cast<W>(3.141592653589793238462643383279502884L);
template <class W>
inline constexpr W kNaN = std::numeric_limits<W>::quiet_NaN();

template <class W>
W digamma(W x) {
    if (x == 0)
        return std::copysign(std::numeric_limits<W>::infinity(), -x);
    if (std::fabs(x) < W(1e-30))
        return -1 / x;
    if (x < 0) {
        if (x == std::floor(x))
            return kNaN<W>;
        return digamma(-x) - 1 / x - kPi<W> / std::tan(kPi<W> * (x - std::round(x)));
    }
    W sum = 0;
    for (; x < 40; ++x)
        sum -= 1 / x;
    W z = 1 / (x * x);
    W series = z * (W(1) / 12 - z * (W(1) / 120 - z * (W(1) / 252 - z * (W(1) / 240 - z * (W(1) / 132 - z * (W(691) / 32760 - z / 12))))));
    return sum + std::log(x) - 1 / (2 * x) - series;
}

template <class W>
W erfc_inverse(W y);

template <class W>
W erf_inverse(W x) {
    if (!(std::fabs(x) <= 1))
        return kNaN<W>;
    if (std::fabs(x) > W(0.5))
        return std::copysign(erfc_inverse(1 - std::fabs(x)), x);
    W y = x * W(0.886);
    for (int i = 0; i < 60 && y != 0; ++i) {
        W step = (std::erf(y) - x) / (2 / std::sqrt(kPi<W>) * std::exp(-y * y));
        y -= step;
        if (std::fabs(step) <= std::fabs(y) * std::numeric_limits<W>::epsilon())
            break;
    }
    return x == 0 ? x : y;
}

/// Newton's method, where y is small on log erfc, whose slope is tame.
template <class W>
W erfc_inverse(W y) {
    if (!(y >= 0 && y <= 2))
        return kNaN<W>;
    if (y == 0 || y == 2)
        return y == 0 ? std::numeric_limits<W>::infinity() : -std::numeric_limits<W>::infinity();
    if (y > 1)
        return -erfc_inverse(2 - y);
    if (y >= W(0.5))
        return erf_inverse(1 - y);
    W x = std::sqrt(std::max(W(0.1), -std::log(y * std::sqrt(kPi<W>) * std::sqrt(-std::log(y)))));
    for (int i = 0; i < 60; ++i) {
        W value = std::erfc(x), slope = -2 / std::sqrt(kPi<W>) * std::exp(-x * x);
        W step = y > W(0.25) ? (value - y) / slope : std::log(value / y) * value / slope;
        x -= step;
        if (std::fabs(step) <= std::fabs(x) * std::numeric_limits<W>::epsilon())
            break;
    }
    return x;
}

/// NumPy's divmod, in the type itself: it is defined by its own roundings.
template <class T>
T floor_mod(T x, T y) {
    T rest = std::fmod(x, y);
    if (rest != 0)
        return (y < 0) != (rest < 0) ? rest + y : rest;
    return std::copysign(T(0), y);
}

template <class T>
T floor_div(T x, T y) {
    if (y == 0)
        return x / y;
    T rest = std::fmod(x, y);
    T quotient = (x - rest) / y;
    if (rest != 0 && (y < 0) != (rest < 0))
        quotient -= 1;
    if (quotient == 0)
        return std::copysign(T(0), x / y);
    T floored = std::floor(quotient);
    return quotient - floored > T(0.5) ? floored + 1 : floored;
}

template <class W>
W softplus(W x) {
    return std::fmax(x, W(0)) + std::log1p(std::exp(-std::fabs(x)));
}

template <class W>
W logaddexp(W x, W y) {
    if (x == y)
        return x + std::log(W(2));
    return std::fmax(x, y) + std::log1p(std::exp(-std::fabs(x - y)));
}

/// The result that W has for f(x) or f(x, y), x and y of type T.
template <class W, class T>
W evaluate(std::string_view f, T x_narrow, T y_narrow) {
    W x = x_narrow, y = y_narrow;
    if (std::isnan(x))
        return f == "pow" && y == 0 ? 1 : f == "hypot" && std::isinf(y) ? std::numeric_limits<W>::infinity() : x;
    if (f == "exp") return std::exp(x);
    if (f == "exp2") return std::exp2(x);
    if (f == "expm1") return std::expm1(x);
    if (f == "log") return std::log(x);
    if (f == "log2") return std::log2(x);
    if (f == "log10") return std::log10(x);
    if (f == "log1p") return std::log1p(x);
    if (f == "sin") return std::sin(x);
    if (f == "cos") return std::cos(x);
    if (f == "tan") return std::tan(x);
    if (f == "asin") return std::asin(x);
    if (f == "acos") return std::acos(x);
    if (f == "atan") return std::atan(x);
    if (f == "sinh") return std::sinh(x);
    if (f == "cosh") return std::cosh(x);
    if (f == "tanh") return std::tanh(x);
    if (f == "asinh") return std::asinh(x);
    if (f == "acosh") return std::acosh(x);
    if (f == "atanh") return std::atanh(x);
    if (f == "cbrt") return std::cbrt(x);
    if (f == "erf") return std::erf(x);
    if (f == "erfc") return std::erfc(x);
    if (f == "erfinv") return erf_inverse(x);
    if (f == "erfcinv") return erfc_inverse(x);
    if (f == "sigmoid") return 1 / (1 + std::exp(-x));
    if (f == "softplus") return softplus(x);
    if (f == "log_sigmoid") return -softplus(-x);
    if (f == "lgamma") return std::lgamma(x);
    if (f == "digamma") return digamma(x);
    if (f == "pow") return std::pow(x, y);
    if (f == "atan2") return std::atan2(x, y);
    if (f == "hypot") return std::hypot(x, y);
    if (std::isnan(y)) return y;
    if (f == "fmod") return std::fmod(x_narrow, y_narrow);
    if (f == "mod") return floor_mod(x_narrow, y_narrow);
    if (f == "floor_div") return floor_div(x_narrow, y_narrow);
    if (f == "logaddexp") return logaddexp(x, y);
    return kNaN<W>;
}

/// Where a result cancels (lgamma and digamma near roots, logaddexp near 0) the error is measured at this scale instead.
template <class W>
W least_scale(std::string_view f, W x, W y) {
    if (f == "lgamma" || f == "digamma")
        return std::fmax(W(1), std::fabs(x));
    if (f == "logaddexp")
        return std::fmin(std::fmax(std::fabs(x), std::fabs(y)), W(1));
    return 0;
}

}  // namespace reference
