// erf, erfc and their inverses.
#include "ember/codegen/math/exponential.h"
#include "ember/codegen/math/logarithm.h"

namespace ember_math {

/// Where erf and erfc change from a polynomial to what is made of the exponential function.
template <class T>
inline constexpr T kErfSeam = T(0.89);

template <class T>
struct ErfTail;
template <>
struct ErfTail<float> {
    static constexpr float kCenter = 2, kOne = 4;  // from kOne on, erf is 1
};
template <>
struct ErfTail<double> {
    static constexpr double kCenter = 3, kOne = 6;
};

/// A polynomial, or 1 - e^(another polynomial).
template <class T>
EMBER_INLINE T erf(T x) {
    T y = absolute(x);
    T near = x + x * polynomial(x * x, Coefficients<T>::erf);
    T v = at_most(y, ErfTail<T>::kOne) - ErfTail<T>::kCenter;
    ExpReduced<T> e = exp_reduce(polynomial(v, Coefficients<T>::erf_tail));
    T power = (1 + (e.r.high + exp_tail(e.r))) * power_of_two<T>(e.k);
    return select(y < kErfSeam<T>, near, with_sign_of(1 - power, x));
}

/// erfc y for y from the seam on: e^(-y^2) times a slow function of y.
template <class T>
EMBER_INLINE T erfc_tail(T y) {
    constexpr T kZero = sizeof(T) == 4 ? T(10.1) : T(27.3);
    y = at_most(y, kZero);
    Double<T> exponent = two_product(-y, y);
    ExpReduced<T> e = exp_reduce(exponent.high, exponent.low);
    T u = (y - 3) / (y + 2);
    T slow = T(0.2) * (1 - u) * polynomial(u, Coefficients<T>::erfcx);
    return scale(slow + slow * (e.r.high + exp_tail(e.r)), e.k);
}

template <class T>
EMBER_INLINE T erfc(T x) {
    Double<T> leading = two_sum(T(1), -x);
    T near = leading.high + (leading.low - x * polynomial(x * x, Coefficients<T>::erf));
    T tail = erfc_tail(absolute(x));
    return select(absolute(x) < kErfSeam<T>, near, select(x < 0, 2 - tail, tail));
}

/// erfcinv y for y from (0, 3/8]: a function of sqrt(-log y) that is nearly linear.
EMBER_INLINE float erfc_inverse_tail(float y) {
    float s = square_root(-log(y));
    return (s + 2) * polynomial((s - 3) / (s + 2), Coefficients<float>::erfinv_tail);
}

EMBER_INLINE double erfc_inverse_tail(double y) {
    double s = square_root(-log(y));
    double u = (s - 3) / (s + 2);
    double near = polynomial(u, Coefficients<double>::erfinv_tail), far = polynomial(u, Coefficients<double>::erfinv_far);
    return (s + 2) * select(s < 6.25, near, far);
}

template <class T>
EMBER_INLINE T erfinv(T x) {
    T y = absolute(x);
    T near = x * polynomial(x * x, Coefficients<T>::erfinv);
    T tail = with_sign_of(erfc_inverse_tail(1 - y), x);
    T result = select(y <= T(0.625), near, tail);
    result = select(y == 1, with_sign_of(kInfinity<T>, x), result);
    return select(y > 1, kNaN<T>, result);
}

template <class T>
EMBER_INLINE T erfcinv(T y) {
    T x = 1 - y;
    bool right = y > 1;
    T near = x * polynomial(x * x, Coefficients<T>::erfinv);
    T tail = erfc_inverse_tail(select(right, 2 - y, y));
    T result = select(absolute(x) <= T(0.625), near, select(right, -tail, tail));
    result = select(y == 0, kInfinity<T>, select(y == 2, -kInfinity<T>, result));
    return select((y < 0) | (y > 2), kNaN<T>, result);
}

}  // namespace ember_math

EMBER_EXPORT_UNARY(erf, erf)
EMBER_EXPORT_UNARY(erfc, erfc)
EMBER_EXPORT_UNARY(erfinv, erfinv)
EMBER_EXPORT_UNARY(erfcinv, erfcinv)
