// lgamma and digamma. Both go by the size of the argument: polynomials near 1 and 2, from there recurrences up to 8,
// Stirling's series beyond, and for negative arguments the reflection formulas.
#include "ember/codegen/math/logarithm.h"

namespace ember_math {

template <class T>
struct GammaConstants;
template <>
struct GammaConstants<float> {
    static constexpr float kHalfLog2Pi = 0x1.d67f1cp-1f;
    static constexpr float kDigammaRoot = 0x1.762d86p0f, kDigammaRootLow = 0x1.ab5f2p-27f;
};
template <>
struct GammaConstants<double> {
    static constexpr double kHalfLog2Pi = 0x1.d67f1c864beb5p-1;
    static constexpr double kDigammaRoot = 0x1.762d86356be3fp0, kDigammaRootLow = 0x1.b86a722197829p-54;
};

/// The distance of y >= 0 to the nearest integer.
template <class T>
EMBER_INLINE T from_nearest(T y) {
    T bounded = at_most(y, Format<T>::kIntegers);
    T shifted = bounded + Format<T>::kIntegers;
    return bounded - (shifted - Format<T>::kIntegers);
}

/// x(x - 1)...r for the r from [3/2, 5/2) that x from [5/2, 8) leads down to, x itself left out; else r is x, the
/// product 1.
template <class T>
struct Descent {
    T r, product;
};

template <class T>
EMBER_INLINE Descent<T> descend(T x) {
    Descent<T> d = {x, 1};
#pragma clang loop unroll(full)
    for (int i = 0; i < 6; ++i) {
        bool further = d.r >= T(2.5);
        T next = d.r - 1;
        d.r = select(further, next, d.r);
        d.product = select(further, d.product * next, d.product);
    }
    return d;
}

/// lgamma of x >= -1/4.
template <class T>
EMBER_INLINE T lgamma_right(T x) {
    bool far = x >= 8, small = x < T(0.75);
    Descent<T> d = descend(select(far, T(2), x));
    T r = select(small, x + 1, d.r);
    bool one = r < T(1.5);
    T t1 = select(small, x, r - 1), t2 = r - 2;
    T near =
        select(one, t1 * polynomial(t1, Coefficients<T>::lgamma_one), t2 * polynomial(t2, Coefficients<T>::lgamma_two));
    Double<T> logarithm = log_parts(select(far, x, select(small, absolute(x), d.product)));
    T inverse = 1 / x;
    T series = inverse * polynomial(inverse * inverse, Coefficients<T>::lgamma_far) +
               (GammaConstants<T>::kHalfLog2Pi - T(0.5));
    T factor = x - T(0.5);
    T stirling = factor * (logarithm.high - 1) + (factor * logarithm.low + series);
    return select(far, stirling,
                  select(small, near - logarithm.low - logarithm.high, near + logarithm.low + logarithm.high));
}

template <class T>
EMBER_INLINE T lgamma(T x) {
    bool reflected = x < T(-0.25);
    T y = absolute(x);
    T right = lgamma_right(select(reflected, y, x));
    T f = from_nearest(y);
    T sine = absolute(f) * polynomial(f * f, Coefficients<T>::sinpi);
    T left = log(Format<T>::kPi / (y * sine)) - right;
    T result = select(reflected, left, right);
    return select((y == kInfinity<T>) | ((x <= 0) & (f == 0)), kInfinity<T>, result);
}

/// digamma of x > 0.
template <class T>
EMBER_INLINE T digamma_right(T x) {
    bool far = x >= 8, small = x < 1;
    // digamma x = digamma r + numerator / denominator, the sum of 1 / (r + i)
    T r = select(far, T(1), x), numerator = 0, denominator = 1;
#pragma clang loop unroll(full)
    for (int i = 0; i < 6; ++i) {
        bool further = r >= 2;
        T next = r - 1;
        numerator = select(further, numerator * next + denominator, numerator);
        denominator = select(further, denominator * next, denominator);
        r = select(further, next, r);
    }
    numerator = select(small, T(-1), numerator);
    denominator = select(small, x, denominator);
    T t = select(small, x - T(0.5), r - T(1.5));
    T distance = t - (GammaConstants<T>::kDigammaRoot - T(1.5)) - GammaConstants<T>::kDigammaRootLow;
    T near = numerator / denominator + distance * polynomial(t, Coefficients<T>::digamma_near);
    T inverse = 1 / x;
    T square = inverse * inverse;
    T stirling = log(x) - (T(0.5) * inverse + square * polynomial(square, Coefficients<T>::digamma_far));
    return select(far, stirling, near);
}

template <class T>
EMBER_INLINE T digamma(T x) {
    bool reflected = x < 0;
    T y = absolute(x);
    T right = digamma_right(select(reflected, 1 + y, x));
    T f = from_nearest(y);
    T z = f * f;
    T cotangent = (1 + z * polynomial(z, Coefficients<T>::cotpi)) / f;  // pi cot(pi f)
    T result = select(reflected, select(f == 0, kNaN<T>, right + cotangent), right);
    return select(x == 0, with_sign_of(kInfinity<T>, -x), select(x == kInfinity<T>, x, result));
}

}  // namespace ember_math

EMBER_EXPORT_UNARY(lgamma, lgamma)
EMBER_EXPORT_UNARY(digamma, digamma)
