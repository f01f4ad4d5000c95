// exp, exp2, expm1, sigmoid and the hyperbolic functions.
#include "ember/codegen/math/exponential.h"

namespace ember_math {

template <class T>
EMBER_INLINE T exp2(T x) {
    constexpr T kOverflow = Format<T>::kBias + 1;
    constexpr T kZero = -(Format<T>::kBias + Format<T>::kMantissaBits + 1);
    T bounded = select(x < kZero, T(0), at_most(x, kOverflow));
    Nearest<T> k = nearest(bounded);
    T r = bounded - k.value;
    return select(x < kZero, T(0), scale(1 + r * polynomial(r, Coefficients<T>::exp2), k.integer));
}

/// e^x - 1 = 2^k ((1 - 2^-k) + r + tail), the first sum without error.
template <class T>
EMBER_INLINE T expm1(T x) {
    constexpr T kMinusOne = T(-0.7) * (Format<T>::kMantissaBits + 4);
    T bounded = at_least(at_most(x, ExpLimits<T>::kOverflow), kMinusOne);
    ExpReduced<T> e = exp_reduce(bounded);
    T one = 1 - T(0.5) * power_of_two<T>(1 - e.k);
    Double<T> sum = fast_two_sum(one, e.r.high);
    T result = scale(sum.high + (sum.low + exp_tail(e.r)), e.k);
    return select(x == 0, x, result);
}

/// 1 / (1 + e^-x), through e^-|x|, which cannot overflow.
template <class T>
EMBER_INLINE T sigmoid(T x) {
    T e = exp(-absolute(x), -T(0));
    Double<T> sum = fast_two_sum(T(1), e);
    T quotient = select(x < 0, e, T(1)) / sum.high;
    return quotient - quotient * sum.low;
}

/// |x| = k ln 2 + r, sinh(k ln 2) = 2^k sinh_k, and so on: the addition theorems need no division and lose nothing.
template <class T>
struct HyperbolicParts {
    Bits<T> k;
    T r, sinh_tail, cosh_less_one;  // sinh r = r + sinh_tail
    T sinh_k;
    Double<T> cosh_k;
};

template <class T>
EMBER_INLINE HyperbolicParts<T> hyperbolic_parts(T x) {
    constexpr Bits<T> kLargest = Format<T>::kMantissaBits;  // beyond it 2^-2k is nothing beside 1
    ExpReduced<T> e = exp_reduce(at_most(absolute(x), ExpLimits<T>::kOverflow + 1));
    T r = e.r.high, square = r * r;
    T half_down = T(0.5) * power_of_two<T>(0 - 2 * select(e.k > kLargest, kLargest, e.k));
    return {e.k,
            r,
            square * r * polynomial(square, Coefficients<T>::sinh) + e.r.low,
            square * polynomial(square, Coefficients<T>::cosh),
            T(0.5) - half_down,
            fast_two_sum(T(0.5), half_down)};
}

template <class T>
EMBER_INLINE T sinh(T x) {
    HyperbolicParts<T> p = hyperbolic_parts(x);
    T leading = p.cosh_k.high * p.r;
    Double<T> sum = fast_two_sum(p.sinh_k, leading);
    T rest = p.sinh_k * p.cosh_less_one + (p.cosh_k.high * p.sinh_tail + sum.low);
    return with_sign_of(scale(sum.high + rest, p.k), x);
}

template <class T>
EMBER_INLINE T cosh(T x) {
    HyperbolicParts<T> p = hyperbolic_parts(x);
    T rest = p.cosh_k.high * p.cosh_less_one + (p.sinh_k * (p.r + p.sinh_tail) + p.cosh_k.low);
    return scale(p.cosh_k.high + rest, p.k);
}

/// A polynomial up to 0.55, 1 - 2 / (e^2x + 1) beyond.
template <class T>
EMBER_INLINE T tanh(T x) {
    constexpr T kOne = T(0.4) * (Format<T>::kMantissaBits + 3);  // from here on 1 is the nearest number
    T magnitude = absolute(x);
    T square = x * x;
    T small = square * magnitude * polynomial(square, Coefficients<T>::tanh) + magnitude;
    ExpReduced<T> e = exp_reduce(2 * at_most(magnitude, kOne));
    T power = (1 + (e.r.high + exp_tail(e.r))) * power_of_two<T>(e.k);
    T large = 1 - 2 / (power + 1);
    return with_sign_of(select(magnitude < T(0.55), small, large), x);
}

}  // namespace ember_math

EMBER_EXPORT_UNARY(exp, exp)
EMBER_EXPORT_UNARY(exp2, exp2)
EMBER_EXPORT_UNARY(expm1, expm1)
EMBER_EXPORT_UNARY(sigmoid, sigmoid)
EMBER_EXPORT_UNARY(sinh, sinh)
EMBER_EXPORT_UNARY(cosh, cosh)
EMBER_EXPORT_UNARY(tanh, tanh)
