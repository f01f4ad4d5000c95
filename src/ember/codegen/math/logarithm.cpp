// log, log2, log10, log1p, what is made of log1p, and the inverse hyperbolic functions.
#include "ember/codegen/math/logarithm.h"

#include "ember/codegen/math/exponential.h"

namespace ember_math {

/// 1 / log(base) and log(2) / log(base) in two parts. The first has half the digits of its type, or as many as leave
/// room for an exponent: the products with it are exact.
template <class T>
struct Base {
    T per_nat_high, per_nat_low, per_octave_high, per_octave_low;
};

template <class T>
struct Bases;
template <>
struct Bases<float> {
    static constexpr Base<float> kTwo = {0x1.714p0f, 0x1.47652cp-12f, 1, 0};
    static constexpr Base<float> kTen = {0x1.bcap-2f, 0x1.7b1526p-14f, 0x1.344p-2f, 0x1.3509f8p-18f};
};
template <>
struct Bases<double> {
    static constexpr Base<double> kTwo = {0x1.715476p0, 0x1.4ae0bf85ddf44p-26, 1, 0};
    static constexpr Base<double> kTen = {0x1.bcb7b1p-2, 0x1.49b9438ca9aaep-28, 0x1.34413509f78p-2,
                                          0x1.fef311f12b358p-46};
};

template <class T>
EMBER_INLINE T log_to_base(T x, Base<T> base) {
    LogReduced<T> l = log_reduce_any(x);
    T tail = log_tail(l.f);
    T high = upper_half(l.f + tail);
    T low = (l.f - high) + tail;
    T octaves = l.k * base.per_octave_high;
    T product = high * base.per_nat_high;
    Double<T> sum = two_sum(octaves, product);
    T rest = high * base.per_nat_low + l.k * base.per_octave_low;
    rest = low * (base.per_nat_high + base.per_nat_low) + rest;
    return log_special(x, sum.high + (sum.low + rest));
}

template <class T>
EMBER_INLINE T log2(T x) {
    return log_to_base(x, Bases<T>::kTwo);
}

template <class T>
EMBER_INLINE T log10(T x) {
    return log_to_base(x, Bases<T>::kTen);
}

template <class T>
EMBER_INLINE T log1p_signed(T x) {
    return select(x == 0, x, log1p(x));
}

template <class T>
EMBER_INLINE T softplus(T x) {
    T bend = log1p(exp(-absolute(x)));
    return at_least(x, T(0)) + bend;
}

template <class T>
EMBER_INLINE T log_sigmoid(T x) {
    return -softplus(-x);
}

/// log(e^x + e^y)
template <class T>
EMBER_INLINE T logaddexp(T x, T y) {
    T larger = select(x > y, x, y), smaller = select(x > y, y, x);
    T distance = select(x == y, T(0), larger - smaller);
    return larger + log1p(exp(-distance));
}

/// log(x + sqrt(x^2 + 1)) = log1p(x + x^2 / (1 + sqrt(x^2 + 1))); log(2 x) where x^2 + 1 is x^2.
template <class T>
EMBER_INLINE T asinh(T x) {
    T y = absolute(x);
    bool large = y > Format<T>::kIntegers;
    T bounded = select(large, T(1), y);
    T square = bounded * bounded;
    Double<T> sum = fast_two_sum(bounded, square / (1 + square_root(1 + square)));
    T result = log1p(select(large, y, sum.high), select(large, T(0), sum.low), select(large, T(1), T(0)));
    return with_sign_of(result, x);
}

/// log(x + sqrt(x^2 - 1)) = log1p(t + sqrt(t (t + 2))) with t = x - 1.
template <class T>
EMBER_INLINE T acosh(T x) {
    bool large = x > Format<T>::kIntegers;
    T t = select(large, T(1), x) - 1;
    Double<T> t_plus_2 = two_sum(t, T(2));
    Double<T> product = two_product(t, t_plus_2.high);
    Double<T> root = square_root(Double<T>{product.high, product.low + t * t_plus_2.low});
    Double<T> sum = two_sum(root.high, t);
    T result = log1p(select(large, x, sum.high), select(large, T(0), sum.low + root.low), select(large, T(1), T(0)));
    return select(x < 1, kNaN<T>, result);
}

/// log1p(2 x / (1 - x)) / 2, the quotient in two parts.
template <class T>
EMBER_INLINE T atanh(T x) {
    T y = absolute(x);
    Double<T> factor = reciprocal(fast_two_sum(T(1), -y));
    Double<T> quotient = two_product(2 * y, factor.high);
    T result = T(0.5) * log1p(quotient.high, quotient.low + 2 * y * factor.low);
    result = select(y == 1, kInfinity<T>, result);
    return with_sign_of(select(y > 1, kNaN<T>, result), x);
}

}  // namespace ember_math

EMBER_EXPORT_UNARY(log, log)
EMBER_EXPORT_UNARY(log2, log2)
EMBER_EXPORT_UNARY(log10, log10)
EMBER_EXPORT_UNARY(log1p, log1p_signed)
EMBER_EXPORT_UNARY(softplus, softplus)
EMBER_EXPORT_UNARY(log_sigmoid, log_sigmoid)
EMBER_EXPORT_UNARY(asinh, asinh)
EMBER_EXPORT_UNARY(acosh, acosh)
EMBER_EXPORT_UNARY(atanh, atanh)
EMBER_EXPORT_BINARY(logaddexp, logaddexp)
