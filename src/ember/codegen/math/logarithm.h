// The core of everything made of log x: x = 2^k (1 + f) with 1 + f from [sqrt(1/2), sqrt(2)), and log(1 + f).
#pragma once

#include "ember/codegen/math/coefficients.h"
#include "ember/codegen/math/scalar.h"

namespace ember_math {

/// x = 2^k (1 + f), for normal positive x; `k_bits` is k + kBias.
template <class T>
struct LogReduced {
    T k, f;
    Bits<T> k_bits;
};

template <class T>
EMBER_INLINE LogReduced<T> log_reduce(T x, T exponent_shift = 0) {
    constexpr int kMantissaBits = Format<T>::kMantissaBits;
    const Bits<T> kSqrtHalf = to_bits(static_cast<T>(0x1.6a09e667f3bcdp-1));
    Bits<T> shifted = to_bits(x) + (to_bits(T(1)) - kSqrtHalf);
    Bits<T> k_bits = shifted >> kMantissaBits;
    T significand = from_bits<T>((shifted & ((Bits<T>(1) << kMantissaBits) - 1)) + kSqrtHalf);
    return {to_number(k_bits, static_cast<T>(Format<T>::kBias)) + exponent_shift, significand - 1, k_bits};
}

/// Any positive x, subnormal ones included.
template <class T>
EMBER_INLINE LogReduced<T> log_reduce_any(T x) {
    constexpr int kShift = Format<T>::kMantissaBits + 2;
    bool tiny = x < Format<T>::kMin;
    T normal = x * select(tiny, power_of_two<T>(kShift), T(1));
    return log_reduce(normal, select(tiny, T(-kShift), T(0)));
}

/// log(1 + f) - f
EMBER_INLINE float log_tail(float f) {
    float square = f * f;
    return square * (f * polynomial(f, Coefficients<float>::log) - 0.5f);
}

/// With s = f / (2 + f): log(1 + f) = 2 atanh s and 2 s = f - s f, so the tail is s (2 s^2 atanh(s^2) - f). Taking
/// f^2/2 out keeps the error small, for s f = f^2/2 - s f^2/2.
EMBER_INLINE double log_tail(double f) {
    double s = f / (2 + f);
    double z = s * s;
    double half_square = 0.5 * f * f;
    return s * (half_square + 2 * z * polynomial(z, Coefficients<double>::atanh)) - half_square;
}

/// log(2^k (1 + f + low)), for a `low` of no more than a unit in the last place of f.
template <class T>
EMBER_INLINE T log_sum(T k, T f, T low = -T(0)) {
    T tail = k * Format<T>::kLn2Low + (log_tail(f) + low);
    return k * Format<T>::kLn2High + (f + tail);
}

/// log x in two parts, for positive finite x.
template <class T>
EMBER_INLINE Double<T> log_parts(T x) {
    LogReduced<T> l = log_reduce_any(x);
    T tail = l.k * Format<T>::kLn2Low + log_tail(l.f);
    Double<T> sum = fast_two_sum(l.k * Format<T>::kLn2High, l.f);
    return fast_two_sum(sum.high, sum.low + tail);
}

/// What log x, log2 x and log10 x are outside of the positive numbers.
template <class T>
EMBER_INLINE T log_special(T x, T result) {
    result = select(x == kInfinity<T>, x, result);
    result = select(x == 0, -kInfinity<T>, result);
    return select(!(x >= 0), kNaN<T>, result);
}

template <class T>
EMBER_INLINE T log(T x) {
    LogReduced<T> l = log_reduce_any(x);
    return log_special(x, log_sum(l.k, l.f));
}

/// log(2^shift (1 + x + low)) for x >= 0 or a zero shift. 1 + x is rounded to u, and what was lost is added to the
/// reduced argument: where k is 0 this makes it x again.
template <class T>
EMBER_INLINE T log1p(T x, T low = -T(0), T shift = -T(0)) {
    Double<T> u = two_sum(T(1), x);
    LogReduced<T> l = log_reduce(u.high);
    // Half of 2^(1 - k), which is 0 rather than no number at all for the largest k.
    T back = T(0.5) * from_bits<T>((2 * Bits<T>(Format<T>::kBias) + 1 - l.k_bits) << Format<T>::kMantissaBits);
    Double<T> f = fast_two_sum(l.f, (u.low + low) * back);
    T result = log_sum(l.k + shift, f.high, f.low);
    result = select(x == kInfinity<T>, x, result);
    result = select(x == -1, -kInfinity<T>, result);
    return select(!(x >= -1), kNaN<T>, result);
}

}  // namespace ember_math
