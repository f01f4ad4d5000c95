// pow: e^(y log |x|), with the logarithm good to more digits than its type has.
#include "ember/codegen/math/exponential.h"
#include "ember/codegen/math/logarithm.h"

namespace ember_math {

/// log of a positive x to 68 bits. With s = f / (2 + f): log(1 + f) = 2 s + 2 s^3 (1/3 + s^2 (...)), the quotient, s^3
/// and the first coefficient in two parts.
EMBER_INLINE Double<double> long_log(double x) {
    LogReduced<double> l = log_reduce_any(x);
    Double<double> divisor = fast_two_sum(2.0, l.f);
    double inverse = 1 / divisor.high;
    double s = l.f * inverse;
    Double<double> product = two_product(s, divisor.high);
    double missing = l.f - product.high;
    double s_low = (missing - product.low - s * divisor.low) * inverse;

    Double<double> square = two_product(s, s);
    square.low = square.low + 2 * s * s_low;
    double z = square.high;
    constexpr double kThird = 0x1.5555555555555p-2, kThirdLow = 0x1.5555555555555p-56;
    Double<double> factor = fast_two_sum(kThird, z * polynomial(z, Coefficients<double>::long_log));
    factor.low = factor.low + kThirdLow;
    Double<double> cubic = two_product(square.high, factor.high);
    cubic.low = cubic.low + square.high * factor.low + square.low * factor.high;
    Double<double> tail = two_product(s, cubic.high);
    tail.low = tail.low + s * cubic.low + s_low * cubic.high;

    // k ln 2 + 2 s + 2 tail
    Double<double> octaves = fast_two_sum(l.k * Format<double>::kLn2High, 2 * s);
    Double<double> sum = fast_two_sum(octaves.high, 2 * tail.high);
    double low = sum.low + octaves.low + 2 * (s_low + tail.low) + l.k * Format<double>::kLn2Low;
    return fast_two_sum(sum.high, low);
}

EMBER_INLINE double magnitude_of_power(double x, double y) {
    Double<double> log_x = long_log(x);
    // A y beyond these bounds gives 0, 1 or infinity like the bounds themselves, and no product overflows.
    double factor = at_least(at_most(y, 0x1p68), -0x1p68);
    factor = select(absolute(factor) < 0x1p-70, 0.0, factor);
    Double<double> product = two_product(factor, log_x.high);
    double low = product.low + factor * log_x.low;
    Double<double> exponent = fast_two_sum(product.high, low);
    bool bounded = absolute(exponent.high) < 800;
    return exp(exponent.high, select(bounded, exponent.low, 0.0));
}

/// In double: 24 digits of the logarithm would not do, and two floats cost more.
EMBER_INLINE float magnitude_of_power(float x, float y) {
    LogReduced<double> l = log_reduce(static_cast<double>(x));
    double f = l.f;
    double log2_x = l.k + f * polynomial(f, Coefficients<double>::short_log2);
    double exponent = at_least(at_most(y * log2_x, 200.0), -200.0);
    Nearest<double> k = nearest(exponent);
    double r = exponent - k.value;
    return static_cast<float>(polynomial(r, Coefficients<double>::short_exp2) * power_of_two<double>(k.integer));
}

template <class T>
EMBER_INLINE bool is_integer(T x) {
    return round_down(x) == x;
}

template <class T>
EMBER_INLINE T pow(T x, T y) {
    T base = absolute(x);
    bool whole = is_integer(y);
    bool odd = whole & !is_integer(T(0.5) * y);
    T result = magnitude_of_power(base, y);
    bool extreme = (base == 0) | (base == kInfinity<T>);
    T extreme_result = select((base == 0) == (y < 0), kInfinity<T>, T(0));
    result = select(extreme, extreme_result, result);
    result = select((x < 0) & !whole & !extreme, kNaN<T>, result);
    result = select(odd, times_sign_of(result, x), result);
    result = select((x != x) | (y != y), kNaN<T>, result);
    result = select((base == 1) & (absolute(y) == kInfinity<T>), T(1), result);
    return select((y == 0) | (x == 1), T(1), result);
}

}  // namespace ember_math

EMBER_EXPORT_BINARY(pow, pow)
