// fmod, and NumPy's mod and floor_divide, whose results take the sign of the divisor.
#include "ember/codegen/math/scalar.h"

namespace ember_math {

/// The integer significand and exponent of a finite y > 0: y = significand 2^exponent, up to a constant.
struct Parts {
    u64 significand;
    int exponent;
};

template <class T>
EMBER_INLINE Parts parts_of(T y) {
    constexpr int kMantissaBits = Format<T>::kMantissaBits;
    Bits<T> bits = to_bits(y);
    int exponent = static_cast<int>(bits >> kMantissaBits);
    u64 fraction = bits & ((Bits<T>(1) << kMantissaBits) - 1);
    return exponent == 0 ? Parts{fraction, 1} : Parts{fraction | u64(1) << kMantissaBits, exponent};
}

template <class T>
EMBER_INLINE T from_parts(u64 significand, int exponent) {
    constexpr int kMantissaBits = Format<T>::kMantissaBits;
    if (significand == 0)
        return 0;
    int shift = __builtin_clzll(significand) - (63 - kMantissaBits);
    shift = shift < exponent ? shift : exponent - 1;
    Bits<T> bits = static_cast<Bits<T>>(significand << shift);
    Bits<T> top = bits >> kMantissaBits;  // 0 for a subnormal number
    return from_bits<T>((bits & ((Bits<T>(1) << kMantissaBits) - 1)) | (top * Bits<T>(exponent - shift)) << kMantissaBits);
}

/// x - trunc(x / y) y, without error: long division by as many bits at once as an integer has left.
template <class T>
EMBER_INLINE T fmod(T x, T y) {
    T u = absolute(x), v = absolute(y);
    if (!(u < kInfinity<T>) || !(v > 0))
        return kNaN<T>;
    if (u < v)
        return x;
    Parts a = parts_of(u), b = parts_of(v);
    constexpr int kStep = 63 - Format<T>::kMantissaBits;
    u64 rest = a.significand % b.significand;
    for (int shift = a.exponent - b.exponent; shift > 0; shift -= kStep)
        rest = (rest << (shift < kStep ? shift : kStep)) % b.significand;
    return with_sign_of(from_parts<T>(rest, b.exponent), x);
}

/// NumPy's divmod.
template <class T>
struct QuotientAndRemainder {
    T quotient, remainder;
};

template <class T>
EMBER_INLINE QuotientAndRemainder<T> floor_divmod(T x, T y) {
    T remainder = fmod(x, y);
    T quotient = (x - remainder) / y;
    bool wrong_side = (remainder != 0) & ((y < 0) != (remainder < 0));
    T floored = round_down(select(wrong_side, quotient - 1, quotient));
    T nearest = select(wrong_side, quotient - 1, quotient) - floored > T(0.5) ? floored + 1 : floored;
    quotient = select(nearest == 0, with_sign_of(T(0), x / y), nearest);
    remainder = select(wrong_side, remainder + y, remainder);
    return {select(y == 0, x / y, quotient), select(remainder == 0, with_sign_of(T(0), y), remainder)};
}

template <class T>
EMBER_INLINE T mod(T x, T y) {
    return floor_divmod(x, y).remainder;
}

template <class T>
EMBER_INLINE T floor_div(T x, T y) {
    return floor_divmod(x, y).quotient;
}

}  // namespace ember_math

EMBER_EXPORT_BINARY(fmod, fmod)
EMBER_EXPORT_BINARY(mod, mod)
EMBER_EXPORT_BINARY(floor_div, floor_div)
