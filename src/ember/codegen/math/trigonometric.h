// Argument reduction of the trigonometric functions, exact enough for every finite argument and without a branch:
// |x| = (quadrant + 4 n) pi/2 + r with |r| <= pi/4, r in two parts.
//
// Both types multiply by the digits of 2/pi that matter for the argument's exponent (Payne and Hanek): digits further
// up make multiples of 4, digits further down are below the precision of r. float has its digits in doubles, double in
// integers.
#pragma once

#include "ember/codegen/math/coefficients.h"
#include "ember/codegen/math/scalar.h"

namespace ember_math {

template <class T>
struct Reduced {
    Double<T> r;
    Bits<T> quadrant;
};

/// The entry of a table of 2/pi for y >= 0.
EMBER_INLINE double two_over_pi(double y, const double (&table)[4]) {
    double low = select(y < 0x1p50, table[0], table[1]);
    double high = select(y < 0x1p102, table[2], table[3]);
    return select(y < 0x1p76, low, high);
}

EMBER_INLINE Reduced<float> reduce_angle(float x) {
    double y = absolute(x);
    Double<double> product = two_product(y, two_over_pi(y, kTwoOverPiHigh));
    Nearest<double> n0 = nearest(product.high);
    double turns = (product.high - n0.value) + product.low;
    turns = y * two_over_pi(y, kTwoOverPiLow) + turns;
    Nearest<double> n1 = nearest(turns);
    double r = (turns - n1.value) * Format<double>::kHalfPiHigh;
    float high = static_cast<float>(r);
    return {{high, static_cast<float>(r - high)}, static_cast<u32>(n0.integer + n1.integer)};
}

template <class Integer>
EMBER_INLINE Integer load_unaligned(const unsigned char* bytes) {
    Integer value;
    __builtin_memcpy(&value, bytes, sizeof value);
    return value;
}

EMBER_INLINE u64 low_word(u64 x) {
    return x & 0xffff'ffffu;
}
EMBER_INLINE u64 high_word(u64 x) {
    return x >> 32;
}

/// |x| 2/pi modulo 4 as a fixed-point number of 128 bits, two of them before the point. For finite |x| >= 1/2.
struct Turns {
    u64 high, low;
};

EMBER_INLINE Turns turns_of(double x) {
    u64 bits = to_bits(absolute(x));
    u64 exponent = bits >> 52;
    exponent = select(exponent < 1022, u64(1022), exponent) + 5;
    // |x| = m 2^p with p a multiple of 8: the window of 192 bits of 2/pi starts at a byte.
    u64 m = ((bits & 0xf'ffff'ffff'ffff) | 0x10'0000'0000'0000) << (exponent & 7);
    const unsigned char* window = kTwoOverPiBytes + (256 - (exponent >> 3));
    u64 w01 = load_unaligned<u64>(window + 16), w23 = load_unaligned<u64>(window + 8),
        w45 = load_unaligned<u64>(window);
    u64 w0 = high_word(w01), w1 = low_word(w01), w2 = high_word(w23), w3 = low_word(w23);
    u64 w4 = high_word(w45), w5 = low_word(w45);
    u64 m0 = high_word(m), m1 = low_word(m);

    // Words of the product from the least significant one on; what overflows the first is a multiple of 4 turns.
    u64 m1w3 = m1 * w3, m1w2 = m1 * w2, m1w1 = m1 * w1, m0w4 = m0 * w4, m0w3 = m0 * w3, m0w2 = m0 * w2;
    u64 word3 = high_word(m1 * w4) + high_word(m0 * w5) + low_word(m1w3) + low_word(m0w4);
    u64 word2 = high_word(word3) + high_word(m1w3) + high_word(m0w4) + low_word(m1w2) + low_word(m0w3);
    u64 word1 = high_word(word2) + high_word(m1w2) + high_word(m0w3) + low_word(m1w1) + low_word(m0w2);
    u64 word0 = high_word(word1) + high_word(m1w1) + high_word(m0w2) + m1 * w0 + m0 * w1;
    return {word0 << 32 | low_word(word1), word2 << 32 | low_word(word3)};
}

EMBER_INLINE Reduced<double> reduce_angle(double x) {
    Turns turns = turns_of(x);
    u64 rounded = turns.high + (u64(1) << 61);
    u64 fraction = rounded & ((u64(1) << 62) - 1);  // of the distance to the nearest quadrant, more by half a quadrant
    double a = to_number<double>(high_word(fraction), 0x1p29) * 0x1p32;
    double b = to_number<double>(low_word(fraction));
    double c = to_number<double>(high_word(turns.low)) * 0x1p-32;
    double d = to_number<double>(low_word(turns.low)) * 0x1p-64;
    Double<double> leading = fast_two_sum(a, b);
    Double<double> distance = fast_two_sum(leading.high, leading.low + (c + d));

    constexpr double kUnit = 0x1p-62;
    constexpr double kHalfPi = Format<double>::kHalfPiHigh * kUnit;
    constexpr double kHalfPiUpper = 0x1.921fb5p0 * kUnit, kHalfPiRest = 0x1.110b4611a6263p-26 * kUnit;
    double upper = upper_half(distance.high);
    double product = upper * kHalfPiUpper;
    double rest = distance.high - upper + distance.low;
    Double<double> r = fast_two_sum(product, upper * kHalfPiRest + rest * kHalfPi);

    double y = absolute(x);
    bool small = y < 0.78;
    return {{select(small, y, r.high), select(small, 0.0, r.low)}, select(small, u64(0), rounded >> 62)};
}

/// sin and cos for |r| <= pi/4.
template <class T>
EMBER_INLINE T sin_of(Double<T> r) {
    T z = r.high * r.high;
    return r.high + (r.high * z * polynomial(z, Coefficients<T>::sin) + r.low * (1 - T(0.5) * z));
}

template <class T>
EMBER_INLINE T cos_of(Double<T> r) {
    T z = r.high * r.high;
    Double<T> leading = fast_two_sum(T(1), T(-0.5) * z);
    return leading.high + (z * z * polynomial(z, Coefficients<T>::cos) - r.high * r.low + leading.low);
}

/// x with its sign flipped where bit 1 of the quadrant is set.
template <class T>
EMBER_INLINE T flip_half_turn(T x, Bits<T> quadrant) {
    return from_bits<T>(to_bits(x) ^ ((quadrant & 2) << (8 * sizeof(T) - 2)));
}

}  // namespace ember_math
