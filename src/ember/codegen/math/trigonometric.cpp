// sin, cos, tan and their inverses.
#include "ember/codegen/math/trigonometric.h"

namespace ember_math {

template <class T>
EMBER_INLINE T no_number_unless_finite(T x, T result) {
    return select(absolute(x) < kInfinity<T>, result, kNaN<T>);
}

template <class T>
EMBER_INLINE T sin(T x) {
    Reduced<T> a = reduce_angle(x);
    T value = select((a.quadrant & 1) != 0, cos_of(a.r), sin_of(a.r));
    return no_number_unless_finite(x, times_sign_of(flip_half_turn(value, a.quadrant), x));
}

template <class T>
EMBER_INLINE T cos(T x) {
    Reduced<T> a = reduce_angle(x);
    T value = select((a.quadrant & 1) != 0, sin_of(a.r), cos_of(a.r));
    return no_number_unless_finite(x, flip_half_turn(value, a.quadrant + 1));
}

/// tan r, or -1 / tan r in the odd quadrants, where the rounding errors of tan r are carried along.
template <class T>
EMBER_INLINE T tan(T x) {
    Reduced<T> a = reduce_angle(x);
    T r = a.r.high, z = r * r;
    T tail = r * z * polynomial(z, Coefficients<T>::tan) + a.r.low * (1 + z);
    Double<T> tangent = fast_two_sum(r, tail);
    T inverse = -1 / tangent.high;
    Double<T> product = two_product(inverse, tangent.high);
    T error = product.high + 1;
    error = error + product.low + inverse * tangent.low;
    T cotangent = select(tangent.high == 0, inverse, inverse + inverse * error);
    T value = select((a.quadrant & 1) != 0, cotangent, tangent.high);
    return no_number_unless_finite(x, times_sign_of(value, x));
}

/// For |x| <= 1/2 asin x is a polynomial; beyond, asin x = pi/2 - 2 asin(sqrt((1 - x) / 2)).
template <class T>
struct AsinParts {
    bool outer;
    T root, tail;  // asin |x| = root + tail, or pi/2 - 2 (root + tail)
};

template <class T>
EMBER_INLINE AsinParts<T> asin_parts(T x) {
    T y = absolute(x);
    bool outer = y > T(0.5);
    T z = select(outer, T(0.5) - T(0.5) * y, y * y);
    T root = select(outer, square_root(z), y);
    return {outer, root, root * z * polynomial(z, Coefficients<T>::asin)};
}

template <class T>
EMBER_INLINE T asin(T x) {
    AsinParts<T> p = asin_parts(x);
    Double<T> leading = fast_two_sum(Format<T>::kHalfPiHigh, -2 * p.root);
    T outer = leading.high + (leading.low + (Format<T>::kHalfPiLow - 2 * p.tail));
    return times_sign_of(select(p.outer, outer, p.root + p.tail), x);
}

template <class T>
EMBER_INLINE T acos(T x) {
    AsinParts<T> p = asin_parts(x);
    bool negative = x < 0;
    // pi/2 - x - tail, 2 root + 2 tail, or pi - 2 root - 2 tail
    T factor = select(p.outer, T(2), T(1));
    T start = select(p.outer, select(negative, 2 * Format<T>::kHalfPiHigh, T(0)), Format<T>::kHalfPiHigh);
    T start_low = select(p.outer, select(negative, 2 * Format<T>::kHalfPiLow, T(0)), Format<T>::kHalfPiLow);
    factor = select(negative == p.outer, -factor, factor);
    Double<T> leading = fast_two_sum(start, factor * p.root);
    return leading.high + (leading.low + (start_low + factor * p.tail));
}

/// atan(y / x), with x and y >= 0 and not both zero or infinite; pi less that where `left`.
template <class T>
EMBER_INLINE T atan_quotient(T y, T x, bool left) {
    constexpr T kHigh = Format<T>::kHalfPiHigh, kLow = Format<T>::kHalfPiLow;
    bool low = y < T(0.5625) * x, middle = y < 2 * x;
    T numerator = select(low, y, select(middle, y - x, -x));
    T denominator = select(low, x, select(middle, y + x, y));
    T quarters = select(low, T(0), select(middle, T(0.5), T(1)));  // of a turn
    quarters = select(left, 2 - quarters, quarters);
    T t = numerator / denominator;
    t = select(left, -t, t);
    T z = t * t;
    // Three eighths of a turn is the only multiple that is rounded.
    constexpr T kLost = static_cast<T>(1.5 * static_cast<double>(kHigh) - static_cast<double>(T(1.5) * kHigh));
    T start_low = quarters * kLow + select(left & middle & !low, kLost, T(0));
    Double<T> leading = fast_two_sum(quarters * kHigh, t);
    return leading.high + (t * z * polynomial(z, Coefficients<T>::atan) + start_low + leading.low);
}

template <class T>
EMBER_INLINE T atan(T x) {
    return times_sign_of(atan_quotient(absolute(x), T(1), false), x);
}

template <class T>
EMBER_INLINE T atan2(T y, T x) {
    T v = absolute(y), u = absolute(x);
    bool both_infinite = u == kInfinity<T> && v == kInfinity<T>;
    T factor = select((u > Format<T>::kMax / 4) | (v > Format<T>::kMax / 4), T(0.25), T(1));
    u = select(both_infinite | ((u == 0) & (v == 0)), T(1), u * factor);
    v = select(both_infinite, T(1), v * factor);
    bool left = (to_bits(x) & Format<T>::kSign) != 0;
    T angle = atan_quotient(v, u, left);
    return times_sign_of(select((x != x) | (y != y), kNaN<T>, angle), y);
}

}  // namespace ember_math

EMBER_EXPORT_UNARY(sin, sin)
EMBER_EXPORT_UNARY(cos, cos)
EMBER_EXPORT_UNARY(tan, tan)
EMBER_EXPORT_UNARY(asin, asin)
EMBER_EXPORT_UNARY(acos, acos)
EMBER_EXPORT_UNARY(atan, atan)
EMBER_EXPORT_BINARY(atan2, atan2)
