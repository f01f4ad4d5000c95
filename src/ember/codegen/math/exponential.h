// The core of everything made of e^x: x = k ln 2 + r with |r| <= ln(2)/2, and e^r - 1 as a sum of two parts.
#pragma once

#include "ember/codegen/math/coefficients.h"
#include "ember/codegen/math/scalar.h"

namespace ember_math {

template <class T>
struct ExpLimits;
template <>
struct ExpLimits<float> {
    static constexpr float kZero = -104.5f, kOverflow = 89.0f;
};
template <>
struct ExpLimits<double> {
    static constexpr double kZero = -746.0, kOverflow = 710.0;
};

template <class T>
inline constexpr T kLog2E = static_cast<T>(0x1.71547652b82fep0);

/// x = k ln 2 + r.
template <class T>
struct ExpReduced {
    Bits<T> k;
    Double<T> r;
};

/// For |x| up to about ExpLimits; `low` is added to x.
template <class T>
EMBER_INLINE ExpReduced<T> exp_reduce(T x, T low = -T(0)) {
    Nearest<T> k = nearest_product(x, kLog2E<T>);
    T r_high = x - k.value * Format<T>::kLn2High;
    T r_low = k.value * -Format<T>::kLn2Low + low;
    return {k.integer, fast_two_sum(r_high, r_low)};
}

/// e^r - 1 - r.high
template <class T>
EMBER_INLINE T exp_tail(Double<T> r) {
    T square = r.high * r.high;
    return square * polynomial(r.high, Coefficients<T>::exp) + r.low;
}

/// Where e^x is 0, as it is for masked attention scores, 1 is computed and dropped: an underflow is slow on many
/// processors.
template <class T>
EMBER_INLINE T exp_bounded(T x) {
    return select(x < ExpLimits<T>::kZero, T(0), at_most(x, ExpLimits<T>::kOverflow));
}

template <class T>
EMBER_INLINE T zero_if_underflow(T x, T result) {
    return select(x < ExpLimits<T>::kZero, T(0), result);
}

/// For any x. The low part of r is worth an eighth of a unit in the last place here, and left out.
template <class T>
EMBER_INLINE T exp(T x) {
    T bounded = exp_bounded(x);
    Nearest<T> k = nearest_product(bounded, kLog2E<T>);
    T r = bounded - k.value * Format<T>::kLn2High;
    r = r - k.value * Format<T>::kLn2Low;
    return zero_if_underflow(x, scale(1 + (r + r * r * polynomial(r, Coefficients<T>::exp)), k.integer));
}

/// e^(x + low) for any x and a far smaller `low`.
template <class T>
EMBER_INLINE T exp(T x, T low) {
    ExpReduced<T> e = exp_reduce(exp_bounded(x), low);
    return zero_if_underflow(x, scale(1 + (e.r.high + exp_tail(e.r)), e.k));
}

}  // namespace ember_math
