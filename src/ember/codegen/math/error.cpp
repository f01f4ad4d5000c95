// erf, erfc and their inverses.
#include "ember/codegen/math/exponential.h"
#include "ember/codegen/math/logarithm.h"

namespace ember_math {

/// Where erf and erfc change from a polynomial to what is made of the exponential function.
template <class T>
inline constexpr T kErfSeam = T(0.89);
template <class T>
inline constexpr T kErfcSeam = T(0.65);

/// From here on erf is 1.
template <class T>
inline constexpr T kErfOne = sizeof(T) == 4 ? 4 : 6;

/// A polynomial, or 1 - e^(another polynomial).
template <class T>
EMBER_INLINE T erf(T x) {
    T y = absolute(x);
    T near = x + x * polynomial(x * x, Coefficients<T>::erf);
    ExpReduced<T> e = exp_reduce(polynomial(at_most(y, kErfOne<T>) - 1, Coefficients<T>::erf_tail));
    T power = (1 + (e.r.high + exp_tail(e.r))) * power_of_two<T>(e.k);
    return select(y < kErfSeam<T>, near, with_sign_of(1 - power, x));
}

/// erfc y for y from kErfcSeam on: e^(-y^2) times a slow function of y. Where it is 0, something else is computed: an
/// underflow is slow.
template <class T>
EMBER_INLINE T erfc_tail(T y) {
    bool zero = y > (sizeof(T) == 4 ? T(10.1) : T(27.3));
    y = select(zero, T(1), y);
    Double<T> exponent = two_product(-y, y);
    ExpReduced<T> e = exp_reduce(exponent.high, exponent.low);
    T power = e.r.high + exp_tail(e.r);

    Double<T> t = reciprocal(two_sum(y, T(1)));
    T u = (1 - T(2.5) * t.high) - T(2.5) * t.low;
    Double<T> factor = polynomial_parts(u, Coefficients<T>::erfcx);
    Double<T> slow = two_product(factor.high, t.high);
    T slow_low = slow.low + (factor.high * t.low + factor.low * t.high);
    return select(zero, T(0), scale(slow.high + (slow.high * power + slow_low * (1 + power)), e.k));
}

template <class T>
EMBER_INLINE T erfc(T x) {
    Double<T> leading = two_sum(T(1), -x);
    T near = leading.high + (leading.low - x * polynomial(x * x, Coefficients<T>::erf));
    T tail = erfc_tail(absolute(x));
    return select(absolute(x) < kErfcSeam<T>, near, select(x < 0, 2 - tail, tail));
}

/// erfcinv(e^-(s^2)) / s
EMBER_INLINE Double<float> erfc_inverse_slope(float, float u) {
    return polynomial_parts(u, Coefficients<float>::erfinv_tail);
}

EMBER_INLINE Double<double> erfc_inverse_slope(double s, double u) {
    Double<double> near = polynomial_parts(u, Coefficients<double>::erfinv_tail);
    Double<double> far = polynomial_parts(u - 0.75, Coefficients<double>::erfinv_far);
    return {select(s < 6.25, near.high, far.high), select(s < 6.25, near.low, far.low)};
}

/// erfcinv y for y from (0, 3/8]: nearly sqrt(-log y).
template <class T>
EMBER_INLINE T erfc_inverse_tail(T y) {
    Double<T> logarithm = log_parts(y);
    Double<T> s = square_root(Double<T>{-logarithm.high, -logarithm.low});
    Double<T> slope = erfc_inverse_slope(s.high, (s.high - T(1.5) + s.low) / (s.high + 2));
    return s.high * slope.high + (s.high * slope.low + s.low * slope.high);
}

template <class T>
EMBER_INLINE T erfinv(T x) {
    T y = absolute(x);
    T near = x * polynomial(x * x, Coefficients<T>::erfinv);
    T tail = with_sign_of(erfc_inverse_tail(1 - y), x);
    T result = select(y <= T(0.625), near, tail);
    result = select(y == 1, with_sign_of(kInfinity<T>, x), result);
    return select(y <= 1, result, kNaN<T>);
}

template <class T>
EMBER_INLINE T erfcinv(T y) {
    // 1 - y is rounded for y < 1/2, where the slope of erfinv is about 1.2.
    Double<T> x = fast_two_sum(T(1), -y);
    bool right = y > 1;
    T near = x.high * polynomial(x.high * x.high, Coefficients<T>::erfinv) + T(1.2) * x.low;
    T tail = erfc_inverse_tail(select(right, 2 - y, y));
    T result = select(absolute(x.high) <= T(0.625), near, select(right, -tail, tail));
    result = select(y == 0, kInfinity<T>, select(y == 2, -kInfinity<T>, result));
    return select((y >= 0) & (y <= 2), result, kNaN<T>);
}

}  // namespace ember_math

EMBER_EXPORT_UNARY(erf, erf)
EMBER_EXPORT_UNARY(erfc, erfc)
EMBER_EXPORT_UNARY(erfinv, erfinv)
EMBER_EXPORT_UNARY(erfcinv, erfcinv)
