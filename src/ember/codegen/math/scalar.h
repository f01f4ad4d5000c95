// What every function of the math bitcode is made of: bit patterns, selects, polynomials, error-free sums and products.
//
// The functions are written once for float and double. They are straight-line code, so that a loop which inlines them
// vectorises: both sides of a choice are computed first and `select` picks one; conversions between integers and
// floating point go through bit patterns, which every vector unit has. `a * b + c` in one expression may be fused (see
// cmake/ember_bitcode.cmake); where a product must be rounded on its own, it is a statement of its own.
// Tests: test/unit/math_test.cpp.
#pragma once

#define EMBER_INLINE static inline __attribute__((always_inline))
#define EMBER_EXPORT extern "C" __attribute__((always_inline))

/// Defines ember_<name>_f32 and ember_<name>_f64 from the template ember_math::<function>.
#define EMBER_EXPORT_UNARY(name, function)             \
    EMBER_EXPORT float ember_##name##_f32(float x) {   \
        return ember_math::function(x);                \
    }                                                  \
    EMBER_EXPORT double ember_##name##_f64(double x) { \
        return ember_math::function(x);                \
    }

#define EMBER_EXPORT_BINARY(name, function)                      \
    EMBER_EXPORT float ember_##name##_f32(float x, float y) {    \
        return ember_math::function(x, y);                       \
    }                                                            \
    EMBER_EXPORT double ember_##name##_f64(double x, double y) { \
        return ember_math::function(x, y);                       \
    }

/// Whether the target has FMA: 0, unless who links the bitcode gives it another initial value (see bitcode.h).
extern "C" const unsigned char ember_math_fma;

namespace ember_math {

using u32 = unsigned int;
using u64 = unsigned long long;

/// What the algorithms need to know of a floating-point type.
template <class T>
struct Format;

template <>
struct Format<float> {
    using Bits = u32;
    static constexpr int kMantissaBits = 23;
    static constexpr int kBias = 127;
    static constexpr Bits kSign = 0x8000'0000u;
    static constexpr Bits kUpperHalf = 0xffff'f000u;  // keeps 12 bits of 24
    static constexpr float kIntegers = 0x1p23f;       // from here on every value is an integer
    static constexpr float kMin = 0x1p-126f;          // smallest normal number
    static constexpr float kMax = 0x1.fffffep127f;
    // ln 2 and log10 2: `High` times any exponent is exact.
    static constexpr float kLn2High = 0x1.62e4p-1f, kLn2Low = 0x1.7f7d1cp-20f;
    static constexpr float kPi = 0x1.921fb6p1f;
    static constexpr float kHalfPiHigh = 0x1.921fb6p0f, kHalfPiLow = -0x1.777a5cp-25f;
};

template <>
struct Format<double> {
    using Bits = u64;
    static constexpr int kMantissaBits = 52;
    static constexpr int kBias = 1023;
    static constexpr Bits kSign = 0x8000'0000'0000'0000u;
    static constexpr Bits kUpperHalf = 0xffff'ffff'f800'0000u;  // keeps 26 bits of 53
    static constexpr double kIntegers = 0x1p52;
    static constexpr double kMin = 0x1p-1022;
    static constexpr double kMax = 0x1.fffffffffffffp1023;
    static constexpr double kLn2High = 0x1.62e42fefa38p-1, kLn2Low = 0x1.ef35793c7673p-45;
    static constexpr double kPi = 0x1.921fb54442d18p1;
    static constexpr double kHalfPiHigh = 0x1.921fb54442d18p0, kHalfPiLow = 0x1.1a62633145c07p-54;
};

template <class T>
using Bits = typename Format<T>::Bits;

template <class T>
inline constexpr T kInfinity = static_cast<T>(__builtin_inff());
template <class T>
inline constexpr T kNaN = static_cast<T>(__builtin_nanf(""));

template <class T>
EMBER_INLINE constexpr Bits<T> to_bits(T x) {
    return __builtin_bit_cast(Bits<T>, x);
}

template <class T>
EMBER_INLINE constexpr T from_bits(Bits<T> bits) {
    return __builtin_bit_cast(T, bits);
}

/// Both values are computed, one is taken.
template <class T>
EMBER_INLINE T select(bool condition, T yes, T no) {
    return condition ? yes : no;
}

template <class T>
EMBER_INLINE T absolute(T x) {
    return from_bits<T>(to_bits(x) & ~Format<T>::kSign);
}

template <class T>
EMBER_INLINE T with_sign_of(T magnitude, T sign) {
    return from_bits<T>((to_bits(magnitude) & ~Format<T>::kSign) | (to_bits(sign) & Format<T>::kSign));
}

/// x with its sign flipped where `sign` is negative.
template <class T>
EMBER_INLINE T times_sign_of(T x, T sign) {
    return from_bits<T>(to_bits(x) ^ (to_bits(sign) & Format<T>::kSign));
}

template <class T>
EMBER_INLINE T square(T x) {
    return x * x;
}

/// The smaller of x and a bound; NaN stays.
template <class T>
EMBER_INLINE T at_most(T x, T bound) {
    return x > bound ? bound : x;
}

template <class T>
EMBER_INLINE T at_least(T x, T bound) {
    return x < bound ? bound : x;
}

EMBER_INLINE float square_root(float x) {
    return __builtin_sqrtf(x);
}
EMBER_INLINE double square_root(double x) {
    return __builtin_sqrt(x);
}
EMBER_INLINE float round_down(float x) {
    return __builtin_floorf(x);
}
EMBER_INLINE double round_down(double x) {
    return __builtin_floor(x);
}

/// c[kFirst] + c[kFirst + kStep] x + c[kFirst + 2 kStep] x^2 + ...
template <int kFirst, int kStep, class T, int N>
EMBER_INLINE T horner(T x, const T (&c)[N]) {
    if constexpr (kFirst + kStep >= N) {
        return c[kFirst];
    } else {
        return horner<kFirst + kStep, kStep>(x, c) * x + c[kFirst];
    }
}

/// c[kFirst] + c[kFirst + 1] x + c[kFirst + 2] x^2 + ... Long ones are two half as long: a processor works on both at
/// once.
template <int kFirst = 0, class T, int N>
EMBER_INLINE T polynomial(T x, const T (&c)[N]) {
    if constexpr (N - kFirst <= 12) {
        return horner<kFirst, 1>(x, c);
    } else {
        T z = x * x;
        return horner<kFirst + 1, 2>(z, c) * x + horner<kFirst, 2>(z, c);
    }
}

/// The nearest integer, as a number and in the low bits of an integer; |x| < 2^(kMantissaBits - 2).
template <class T>
struct Nearest {
    T value;
    Bits<T> integer;
};

template <class T>
inline constexpr T kShifter = Format<T>::kIntegers + Format<T>::kIntegers / 2;

/// The nearest integer of x * factor.
template <class T>
EMBER_INLINE Nearest<T> nearest_product(T x, T factor) {
    T shifted = x * factor + kShifter<T>;
    return {shifted - kShifter<T>, to_bits(shifted) - to_bits(kShifter<T>)};
}

template <class T>
EMBER_INLINE Nearest<T> nearest(T x) {
    T shifted = x + kShifter<T>;
    return {shifted - kShifter<T>, to_bits(shifted) - to_bits(kShifter<T>)};
}

/// An integer in [0, 2^kMantissaBits) as a number, less `bias`.
template <class T>
EMBER_INLINE T to_number(Bits<T> integer, T bias = 0) {
    return from_bits<T>(to_bits(Format<T>::kIntegers) | integer) - (Format<T>::kIntegers + bias);
}

/// 2^k for an exponent of normal numbers.
template <class T>
EMBER_INLINE constexpr T power_of_two(Bits<T> k) {
    return from_bits<T>((k + Format<T>::kBias) << Format<T>::kMantissaBits);
}

/// x * 2^k, rounded once, for |k| below twice the range of exponents: by two powers, either of which exists.
template <class T>
EMBER_INLINE T scale(T x, Bits<T> k) {
    Bits<T> biased = k + 2 * Format<T>::kBias;
    Bits<T> half = biased >> 1;
    return x * from_bits<T>(half << Format<T>::kMantissaBits) *
           from_bits<T>((biased - half) << Format<T>::kMantissaBits);
}

/// A number in two parts, the second at most about a unit in the last place of the first.
template <class T>
struct Double {
    T high, low;
};

/// a + b without error; |a| >= |b| or a = 0.
template <class T>
EMBER_INLINE Double<T> fast_two_sum(T a, T b) {
    T sum = a + b;
    T kept = sum - a;
    return {sum, b - kept};
}

/// A polynomial whose first coefficient outweighs the others, with the rounding error of the last sum.
template <class T, int N>
EMBER_INLINE Double<T> polynomial_parts(T x, const T (&c)[N]) {
    return fast_two_sum(c[0], x * polynomial<1>(x, c));
}

/// a + b without error.
template <class T>
EMBER_INLINE Double<T> two_sum(T a, T b) {
    T sum = a + b;
    T b_kept = sum - a;
    T a_kept = sum - b_kept;
    T a_lost = a - a_kept;
    T b_lost = b - b_kept;
    return {sum, a_lost + b_lost};
}

/// The upper half of the significant digits: the product of two such numbers is exact.
template <class T>
EMBER_INLINE T upper_half(T x) {
    return from_bits<T>(to_bits(x) & Format<T>::kUpperHalf);
}

EMBER_INLINE float fused_multiply_add(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
EMBER_INLINE double fused_multiply_add(double a, double b, double c) {
    return __builtin_fma(a, b, c);
}

/// a * b, the low part good to a few units in its last place at least. One of the two ways is left when the code
/// generator has set ember_math_fma.
template <class T>
EMBER_INLINE Double<T> two_product(T a, T b) {
    T product = a * b;
    T fused_low = fused_multiply_add(a, b, -product);
    T a_high = upper_half(a), b_high = upper_half(b);
    T a_low = a - a_high, b_low = b - b_high;
    T low = a_high * b_high - product;
    low = a_high * b_low + low;
    low = a_low * b_high + low;
    return {product, select(ember_math_fma != 0, fused_low, a_low * b_low + low)};
}

/// 1 / d
template <class T>
EMBER_INLINE Double<T> reciprocal(Double<T> d) {
    T quotient = 1 / d.high;
    Double<T> one = two_product(quotient, d.high);
    T missing = 1 - one.high;
    missing = missing - one.low - quotient * d.low;
    return {quotient, quotient * missing};
}

template <class T>
EMBER_INLINE Double<T> square_root(Double<T> x) {
    T root = square_root(x.high);
    Double<T> whole = two_product(root, root);
    T missing = x.high - whole.high;
    missing = missing - whole.low + x.low;
    return {root, select(root == 0, T(0), missing / (2 * root))};
}

}  // namespace ember_math
