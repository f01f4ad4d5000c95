// fmod, and NumPy's mod and floor_divide, whose results take the sign of the divisor.
#include "ember/codegen/math/scalar.h"

namespace ember_math {

/// x - trunc(x / y) y, without error. Long division in double, 28 bits of the quotient at a time and each digit rounded
/// to nearest: its product with the 24 bits of y is exact. Ten digits cover every quotient of two floats; no branch.
EMBER_INLINE float fmod(float x, float y) {
    double divisor = absolute(y);
    double inverse = 1 / divisor;
    double rest = absolute(x) * 0x1p-252;
#pragma clang loop unroll(full)
    for (int i = 0; i < 10; ++i) {
        double scaled = i == 0 ? rest : rest * 0x1p28;
        double digit = nearest(scaled * inverse).value;
        rest = scaled - digit * divisor;
    }
    rest = select(rest < 0, rest + divisor, rest);
    float result = select(divisor == kInfinity<double>, x, with_sign_of(static_cast<float>(rest), x));
    return select((divisor > 0) & (absolute(x) < kInfinity<float>), result, kNaN<float>);
}

/// y = significand 2^(exponent - 1075) for finite y > 0.
struct Parts {
    u64 significand;
    int exponent;
};

constexpr u64 kFraction = (u64(1) << 52) - 1;

EMBER_INLINE Parts parts_of(double y) {
    u64 bits = to_bits(y);
    int exponent = static_cast<int>(bits >> 52);
    return exponent == 0 ? Parts{bits, 1} : Parts{(bits & kFraction) | (kFraction + 1), exponent};
}

EMBER_INLINE double from_parts(Parts parts) {
    if (parts.significand == 0) {
        return 0;
    }
    int shift = __builtin_clzll(parts.significand) - 11;
    if (shift >= parts.exponent) {
        return from_bits<double>(parts.significand << (parts.exponent - 1));  // subnormal
    }
    return from_bits<double>((parts.significand << shift & kFraction) | static_cast<u64>(parts.exponent - shift) << 52);
}

/// The same in integers, 11 bits of the quotient at a time, as many as 64 bits have left.
EMBER_INLINE double fmod(double x, double y) {
    double dividend = absolute(x), divisor = absolute(y);
    if (!(dividend < kInfinity<double>) || !(divisor > 0)) {
        return kNaN<double>;
    }
    if (dividend < divisor) {
        return x;
    }
    Parts a = parts_of(dividend), b = parts_of(divisor);
    u64 rest = a.significand % b.significand;
    for (int shift = a.exponent - b.exponent; shift > 0 && rest != 0; shift -= 11) {
        rest = (rest << (shift < 11 ? shift : 11)) % b.significand;
    }
    return with_sign_of(from_parts({rest, b.exponent}), x);
}

/// NumPy's divmod: the quotient is rounded from (x - remainder) / y, a zero of either takes the sign it has by rule.
template <class T>
struct FloorDivision {
    T quotient, remainder;
};

template <class T>
EMBER_INLINE FloorDivision<T> floor_division(T x, T y) {
    T remainder = fmod(x, y);
    T quotient = (x - remainder) / y;
    bool wrong_side = (remainder != 0) & ((y < 0) != (remainder < 0));
    remainder = select(wrong_side, remainder + y, remainder);
    quotient = select(wrong_side, quotient - 1, quotient);
    T floored = round_down(quotient);
    floored = select(quotient - floored > T(0.5), floored + 1, floored);
    floored = select(quotient == 0, with_sign_of(T(0), x / y), floored);
    return {select(y == 0, x / y, floored), select(remainder == 0, with_sign_of(T(0), y), remainder)};
}

template <class T>
EMBER_INLINE T mod(T x, T y) {
    return floor_division(x, y).remainder;
}

template <class T>
EMBER_INLINE T floor_div(T x, T y) {
    return floor_division(x, y).quotient;
}

}  // namespace ember_math

EMBER_EXPORT_BINARY(fmod, fmod)
EMBER_EXPORT_BINARY(mod, mod)
EMBER_EXPORT_BINARY(floor_div, floor_div)
