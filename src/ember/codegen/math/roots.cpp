// cbrt and hypot.
#include "ember/codegen/math/coefficients.h"
#include "ember/codegen/math/scalar.h"

namespace ember_math {

/// |x| = m 8^q with m from [1, 8). A guess of few digits has an exact cube; the cube root is the guess times a binomial
/// series in what the cube misses.
template <class T>
EMBER_INLINE T cbrt(T x) {
    constexpr int kMantissaBits = Format<T>::kMantissaBits;
    constexpr Bits<T> kBias = Format<T>::kBias, kThirds = (kBias + 2) / 3;  // 129 = 3 * 43, 1025 = 3 * 341 + 2
    constexpr Bits<T> kUp = kThirds * 3 - kBias;
    constexpr int kTinyThird = kMantissaBits / 3 + 1;  // subnormal numbers are scaled by 8^kTinyThird
    T y = absolute(x);
    bool tiny = y < Format<T>::kMin;
    Bits<T> bits = to_bits(y * select(tiny, power_of_two<T>(3 * kTinyThird), T(1)));
    Bits<T> exponent = (bits >> kMantissaBits) + kUp;
    Bits<T> third = exponent * 43691 >> 17;
    Bits<T> rest = exponent - 3 * third;
    T m = from_bits<T>((bits & ((Bits<T>(1) << kMantissaBits) - 1)) | to_bits(T(1)));
    T guess = polynomial(m, Coefficients<T>::cbrt);
    guess = guess * select(rest == 0, T(1), select(rest == 1, T(1.2599210498948732), T(1.5874010519681994)));
    m = m * select(rest == 0, T(1), select(rest == 1, T(2), T(4)));

    constexpr int kDropped = kMantissaBits + 1 - (kMantissaBits + 1) / 3;
    guess = from_bits<T>(to_bits(guess) >> kDropped << kDropped);
    T cube = guess * guess * guess;
    T d = (m - cube) / (3 * cube);
    T root = guess + guess * (d - d * d * (1 - d * (T(5) / 3 - T(10) / 3 * d)));
    T result = root * power_of_two<T>(third - kThirds) * select(tiny, power_of_two<T>(-kTinyThird), T(1));
    return select((x == 0) | !(y < kInfinity<T>), x, with_sign_of(result, x));
}

/// sqrt(x^2 + y^2); the squares of extreme numbers are scaled away from overflow and underflow.
template <class T>
EMBER_INLINE T hypot(T x, T y) {
    constexpr int kHuge = Format<T>::kBias / 2 - 1, kTiny = kHuge - Format<T>::kMantissaBits;
    T u = absolute(x), v = absolute(y);
    T larger = select(u > v, u, v), smaller = select(u > v, v, u);
    T factor = select(larger < power_of_two<T>(-kTiny), power_of_two<T>(kHuge + kTiny), T(1));
    T back = select(larger < power_of_two<T>(-kTiny), power_of_two<T>(-kHuge - kTiny), T(1));
    factor = select(larger > power_of_two<T>(kHuge), power_of_two<T>(-kHuge - 3), factor);
    back = select(larger > power_of_two<T>(kHuge), power_of_two<T>(kHuge + 3), back);
    T result = square_root(square(larger * factor) + square(smaller * factor)) * back;
    return select((u == kInfinity<T>) | (v == kInfinity<T>), kInfinity<T>, result);
}

}  // namespace ember_math

EMBER_EXPORT_UNARY(cbrt, cbrt)
EMBER_EXPORT_BINARY(hypot, hypot)
