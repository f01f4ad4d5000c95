// Scalar ops: one table a wide type, one row an op. A float op stands in `kExact` where double arithmetic, rounded
// again for the narrower types, gives the correctly rounded result; the others are computed in long double.
#include <cmath>
#include <span>

#include "ember/interp/call.h"
#include "ember/interp/layout.h"
#include "ember/interp/number.h"
#include "ember/interp/scalar_math.h"

namespace ember::interp {
namespace {

using ir::Op;

/// The scalar function of an op; operands that the op does not have are 0.
template <class W>
struct Row {
    Op op;
    W (*apply)(W x, W y, W z);
};
template <class W>
struct TestRow {
    Op op;
    bool (*apply)(W x, W y);
};

/// Quotient rounded down, as NumPy defines it by way of the exact remainder.
double floor_quotient(double x, double y) {
    if (y == 0) {
        return x / y;
    }
    double remainder = std::fmod(x, y);
    double quotient = (x - remainder) / y;
    if (remainder != 0 && (y < 0) != (remainder < 0)) {
        quotient -= 1;
    }
    if (quotient == 0) {
        return std::copysign(0.0, x / y);
    }
    double down = std::floor(quotient);
    return quotient - down > 0.5 ? down + 1 : down;
}

double floor_remainder(double x, double y) {
    double remainder = std::fmod(x, y);
    if (remainder == 0) {
        return std::copysign(0.0, y);
    }
    return (y < 0) != (remainder < 0) ? remainder + y : remainder;
}

constexpr Row<double> kExact[] = {
    {Op::k_neg, [](double x, double, double) { return -x; }},
    {Op::k_abs, [](double x, double, double) { return std::abs(x); }},
    {Op::k_sign, [](double x, double, double) { return x > 0    ? 1
                                                       : x < 0  ? -1
                                                       : x == 0 ? 0
                                                                : x; }},
    {Op::k_add, [](double x, double y, double) { return x + y; }},
    {Op::k_sub, [](double x, double y, double) { return x - y; }},
    {Op::k_mul, [](double x, double y, double) { return x * y; }},
    {Op::k_div, [](double x, double y, double) { return x / y; }},
    {Op::k_floor_div, [](double x, double y, double) { return floor_quotient(x, y); }},
    {Op::k_mod, [](double x, double y, double) { return floor_remainder(x, y); }},
    {Op::k_fmod, [](double x, double y, double) { return std::fmod(x, y); }},
    {Op::k_max, [](double x, double y, double) { return larger(x, y); }},
    {Op::k_min, [](double x, double y, double) { return smaller(x, y); }},
    {Op::k_clamp, [](double x, double y, double z) { return smaller(larger(x, y), z); }},
    {Op::k_square, [](double x, double, double) { return x * x; }},
    {Op::k_reciprocal, [](double x, double, double) { return 1 / x; }},
    {Op::k_fma, [](double x, double y, double z) { return std::fma(x, y, z); }},
    {Op::k_copysign, [](double x, double y, double) { return std::copysign(x, y); }},
    {Op::k_floor, [](double x, double, double) { return std::floor(x); }},
    {Op::k_ceil, [](double x, double, double) { return std::ceil(x); }},
    {Op::k_trunc, [](double x, double, double) { return std::trunc(x); }},
    {Op::k_round, [](double x, double, double) { return std::nearbyint(x); }},
    {Op::k_round_away, [](double x, double, double) { return std::round(x); }},
    {Op::k_sqrt, [](double x, double, double) { return std::sqrt(x); }},
};

using Wide = long double;
constexpr Row<Wide> kWide[] = {
    {Op::k_pow, [](Wide x, Wide y, Wide) { return std::pow(x, y); }},
    {Op::k_hypot, [](Wide x, Wide y, Wide) { return std::hypot(x, y); }},
    {Op::k_rsqrt, [](Wide x, Wide, Wide) { return 1 / std::sqrt(x); }},
    {Op::k_cbrt, [](Wide x, Wide, Wide) { return std::cbrt(x); }},
    {Op::k_exp, [](Wide x, Wide, Wide) { return std::exp(x); }},
    {Op::k_exp2, [](Wide x, Wide, Wide) { return std::exp2(x); }},
    {Op::k_expm1, [](Wide x, Wide, Wide) { return std::expm1(x); }},
    {Op::k_log, [](Wide x, Wide, Wide) { return std::log(x); }},
    {Op::k_log2, [](Wide x, Wide, Wide) { return std::log2(x); }},
    {Op::k_log10, [](Wide x, Wide, Wide) { return std::log10(x); }},
    {Op::k_log1p, [](Wide x, Wide, Wide) { return std::log1p(x); }},
    {Op::k_logaddexp, [](Wide x, Wide y, Wide) { return logaddexp(x, y); }},
    {Op::k_sigmoid, [](Wide x, Wide, Wide) { return sigmoid(x); }},
    {Op::k_softplus, [](Wide x, Wide, Wide) { return softplus(x); }},
    {Op::k_log_sigmoid, [](Wide x, Wide, Wide) { return -softplus(-x); }},
    {Op::k_sin, [](Wide x, Wide, Wide) { return std::sin(x); }},
    {Op::k_cos, [](Wide x, Wide, Wide) { return std::cos(x); }},
    {Op::k_tan, [](Wide x, Wide, Wide) { return std::tan(x); }},
    {Op::k_asin, [](Wide x, Wide, Wide) { return std::asin(x); }},
    {Op::k_acos, [](Wide x, Wide, Wide) { return std::acos(x); }},
    {Op::k_atan, [](Wide x, Wide, Wide) { return std::atan(x); }},
    {Op::k_atan2, [](Wide x, Wide y, Wide) { return std::atan2(x, y); }},
    {Op::k_sinh, [](Wide x, Wide, Wide) { return std::sinh(x); }},
    {Op::k_cosh, [](Wide x, Wide, Wide) { return std::cosh(x); }},
    {Op::k_tanh, [](Wide x, Wide, Wide) { return std::tanh(x); }},
    {Op::k_asinh, [](Wide x, Wide, Wide) { return std::asinh(x); }},
    {Op::k_acosh, [](Wide x, Wide, Wide) { return std::acosh(x); }},
    {Op::k_atanh, [](Wide x, Wide, Wide) { return std::atanh(x); }},
    {Op::k_erf, [](Wide x, Wide, Wide) { return std::erf(x); }},
    {Op::k_erfc, [](Wide x, Wide, Wide) { return std::erfc(x); }},
    {Op::k_erfinv, [](Wide x, Wide, Wide) { return erfinv(x); }},
    {Op::k_erfcinv, [](Wide x, Wide, Wide) { return erfcinv(x); }},
    {Op::k_lgamma, [](Wide x, Wide, Wide) { return std::lgamma(x); }},
    {Op::k_digamma, [](Wide x, Wide, Wide) { return digamma(x); }},
};

constexpr Row<Complex> kComplex[] = {
    {Op::k_neg, [](Complex x, Complex, Complex) { return -x; }},
    {Op::k_abs, [](Complex x, Complex, Complex) { return Complex(std::abs(x)); }},
    {Op::k_add, [](Complex x, Complex y, Complex) { return x + y; }},
    {Op::k_sub, [](Complex x, Complex y, Complex) { return x - y; }},
    {Op::k_mul, [](Complex x, Complex y, Complex) { return x * y; }},
    {Op::k_div, [](Complex x, Complex y, Complex) { return x / y; }},
    {Op::k_square, [](Complex x, Complex, Complex) { return x * x; }},
    {Op::k_reciprocal, [](Complex x, Complex, Complex) { return 1.0L / x; }},
    {Op::k_fma, [](Complex x, Complex y, Complex z) { return x * y + z; }},
    {Op::k_pow, [](Complex x, Complex y, Complex) { return std::pow(x, y); }},
    {Op::k_sqrt, [](Complex x, Complex, Complex) { return std::sqrt(x); }},
    {Op::k_rsqrt, [](Complex x, Complex, Complex) { return 1.0L / std::sqrt(x); }},
    {Op::k_exp, [](Complex x, Complex, Complex) { return std::exp(x); }},
    {Op::k_log, [](Complex x, Complex, Complex) { return std::log(x); }},
    {Op::k_log10, [](Complex x, Complex, Complex) { return std::log10(x); }},
    {Op::k_sin, [](Complex x, Complex, Complex) { return std::sin(x); }},
    {Op::k_cos, [](Complex x, Complex, Complex) { return std::cos(x); }},
    {Op::k_tan, [](Complex x, Complex, Complex) { return std::tan(x); }},
    {Op::k_asin, [](Complex x, Complex, Complex) { return std::asin(x); }},
    {Op::k_acos, [](Complex x, Complex, Complex) { return std::acos(x); }},
    {Op::k_atan, [](Complex x, Complex, Complex) { return std::atan(x); }},
    {Op::k_sinh, [](Complex x, Complex, Complex) { return std::sinh(x); }},
    {Op::k_cosh, [](Complex x, Complex, Complex) { return std::cosh(x); }},
    {Op::k_tanh, [](Complex x, Complex, Complex) { return std::tanh(x); }},
    {Op::k_asinh, [](Complex x, Complex, Complex) { return std::asinh(x); }},
    {Op::k_acosh, [](Complex x, Complex, Complex) { return std::acosh(x); }},
    {Op::k_atanh, [](Complex x, Complex, Complex) { return std::atanh(x); }},
};

constexpr TestRow<Complex> kComplexTests[] = {
    {Op::k_eq, [](Complex x, Complex y) { return x == y; }},
    {Op::k_ne, [](Complex x, Complex y) { return x != y; }},
    {Op::k_is_nan, [](Complex x, Complex) { return std::isnan(x.real()) || std::isnan(x.imag()); }},
    {Op::k_is_inf, [](Complex x, Complex) { return std::isinf(x.real()) || std::isinf(x.imag()); }},
    {Op::k_is_finite, [](Complex x, Complex) { return std::isfinite(x.real()) && std::isfinite(x.imag()); }},
};

template <class W>
constexpr TestRow<W> kComparisons[] = {
    {Op::k_eq, [](W x, W y) { return x == y; }}, {Op::k_ne, [](W x, W y) { return x != y; }},
    {Op::k_lt, [](W x, W y) { return x < y; }},  {Op::k_le, [](W x, W y) { return x <= y; }},
    {Op::k_gt, [](W x, W y) { return x > y; }},  {Op::k_ge, [](W x, W y) { return x >= y; }},
};

constexpr TestRow<Wide> kFloatTests[] = {
    {Op::k_is_nan, [](Wide x, Wide) { return std::isnan(x); }},
    {Op::k_is_inf, [](Wide x, Wide) { return std::isinf(x); }},
    {Op::k_is_finite, [](Wide x, Wide) { return std::isfinite(x); }},
};

template <class I>
bool negative(I x) {
    return std::is_signed_v<I> && static_cast<int64_t>(x) < 0;
}

template <class I>
I negated(I x) {
    return static_cast<I>(uint64_t{0} - static_cast<uint64_t>(x));
}

/// x / y and x % y, rounded toward zero; the lowest value by -1 wraps.
template <class I>
I quotient(I x, I y) {
    if (y == 0) {
        return 0;
    }
    return negative(y) && y == static_cast<I>(-1) ? negated(x) : x / y;
}
template <class I>
I remainder(I x, I y) {
    return y == 0 || (negative(y) && y == static_cast<I>(-1)) ? 0 : x % y;
}

/// Do quotient and remainder have to move down, as the signs differ?
template <class I>
bool rounds_down(I x, I y) {
    return remainder(x, y) != 0 && negative(x) != negative(y);
}

template <class I>
I power(I x, I y) {
    if (negative(y)) {
        return x == 1 ? 1 : x == static_cast<I>(-1) ? (y % 2 == 0 ? 1 : x) : 0;
    }
    I result = 1;
    for (; y != 0; y /= 2) {
        result = y % 2 != 0 ? wrapping_mul(result, x) : result;
        x = wrapping_mul(x, x);
    }
    return result;
}

/// Of u64 and of negative counts alike: is y outside 0..bits-1?
template <class I>
bool outside(I y, I bits) {
    return static_cast<uint64_t>(y) >= static_cast<uint64_t>(bits);
}

/// z is the number of bits of the dtype where the op has two operands.
template <class I>
constexpr Row<I> kIntegers[] = {
    {Op::k_neg, [](I x, I, I) { return negated(x); }},
    {Op::k_abs, [](I x, I, I) { return negative(x) ? negated(x) : x; }},
    {Op::k_sign, [](I x, I, I) { return static_cast<I>(negative(x) ? -1
                                                       : x != 0    ? 1
                                                                   : 0); }},
    {Op::k_add, [](I x, I y, I) { return wrapping_add(x, y); }},
    {Op::k_sub, [](I x, I y, I) { return wrapping_add(x, negated(y)); }},
    {Op::k_mul, [](I x, I y, I) { return wrapping_mul(x, y); }},
    {Op::k_floor_div, [](I x, I y, I) { return wrapping_add(quotient(x, y), static_cast<I>(-rounds_down(x, y))); }},
    {Op::k_mod, [](I x, I y, I) { return wrapping_add(remainder(x, y), rounds_down(x, y) ? y : I{0}); }},
    {Op::k_fmod, [](I x, I y, I) { return remainder(x, y); }},
    {Op::k_pow, [](I x, I y, I) { return power(x, y); }},
    {Op::k_max, [](I x, I y, I) { return larger(x, y); }},
    {Op::k_min, [](I x, I y, I) { return smaller(x, y); }},
    {Op::k_clamp, [](I x, I y, I z) { return smaller(larger(x, y), z); }},
    {Op::k_square, [](I x, I, I) { return wrapping_mul(x, x); }},
    {Op::k_and, [](I x, I y, I) { return x & y; }},
    {Op::k_or, [](I x, I y, I) { return x | y; }},
    {Op::k_xor, [](I x, I y, I) { return x ^ y; }},
    {Op::k_not, [](I x, I, I) { return ~x; }},
    {Op::k_shift_left,
     [](I x, I y, I bits) { return outside(y, bits) ? I{0} : static_cast<I>(static_cast<uint64_t>(x) << y); }},
    {Op::k_shift_right,
     [](I x, I y, I bits) { return !outside(y, bits) ? static_cast<I>(x >> y) : static_cast<I>(-negative(x)); }},
};

/// Elements of the operands, at most three, at their broadcast places.
template <class W>
struct Operands {
    std::vector<W> values[3];
    const Broadcast& places;

    Operands(const Call& call, const Broadcast& broadcast) : places(broadcast) {
        for (size_t k = 0; k < call.operands.size(); ++k) {
            values[k] = widen<W>(call.operand(k));
        }
    }
    W at(size_t k, size_t i, W missing) const {
        return k < places.sources.size() ? values[k][static_cast<size_t>(places.sources[k][i])] : missing;
    }
};

/// Results of `rows`, if the op stands there.
template <class W, size_t n>
std::optional<Tensor> apply(const Call& call, const Broadcast& places, const Row<W> (&rows)[n]) {
    for (const Row<W>& row : rows) {
        if (row.op != call.node.op) {
            continue;
        }
        Operands<W> operands(call, places);
        std::vector<W> result(static_cast<size_t>(product(places.lengths)));
        ir::DType dtype = call.operand(0).dtype;
        auto bits = static_cast<W>(ir::info(dtype).block_bytes * 8);
        for (size_t i = 0; i < result.size(); ++i) {
            result[i] = row.apply(operands.at(0, i, W{}), operands.at(1, i, W{}), operands.at(2, i, bits));
        }
        return narrow(dtype, places.lengths, result);
    }
    return std::nullopt;
}

template <class W, size_t n>
std::optional<Tensor> apply(const Call& call, const Broadcast& places, const TestRow<W> (&rows)[n]) {
    for (const TestRow<W>& row : rows) {
        if (row.op != call.node.op) {
            continue;
        }
        Operands<W> operands(call, places);
        std::vector<uint64_t> result(static_cast<size_t>(product(places.lengths)));
        for (size_t i = 0; i < result.size(); ++i) {
            result[i] = row.apply(operands.at(0, i, W{}), operands.at(1, i, W{})) ? 1 : 0;
        }
        return narrow(ir::DType::kBool, places.lengths, result);
    }
    return std::nullopt;
}

std::optional<Tensor> apply_not_to_bool(const Call& call) {
    if (call.node.op != Op::k_not || !ir::is_bool(call.operand(0).dtype)) {
        return std::nullopt;
    }
    Tensor result = call.operand(0);
    for (char& byte : result.bytes) {
        byte = byte == 0 ? 1 : 0;
    }
    return result;
}

std::optional<Tensor> apply_by_dtype(const Call& call, const Broadcast& places) {
    auto first_of = [&](const auto&... tables) {
        std::optional<Tensor> result = apply_not_to_bool(call);
        ((result = result.has_value() ? std::move(result) : apply(call, places, tables)), ...);
        return result;
    };
    switch (ir::kind(call.operand(0).dtype)) {
        case ir::DTypeKind::kBool:
        case ir::DTypeKind::kUint:
            return first_of(kIntegers<uint64_t>, kComparisons<uint64_t>);
        case ir::DTypeKind::kInt:
            return first_of(kIntegers<int64_t>, kComparisons<int64_t>);
        case ir::DTypeKind::kFloat:
            return first_of(kExact, kWide, kComparisons<double>, kFloatTests);
        case ir::DTypeKind::kComplex:
            return first_of(kComplex, kComplexTests);
        default:
            return std::nullopt;
    }
}

/// Moves elements without looking at them, so NaNs keep their bits.
Tensor select(const Call& call, const Broadcast& places) {
    const Tensor& yes = call.operand(1);
    Tensor result = zeros(yes.dtype, places.lengths);
    auto size = static_cast<size_t>(ir::element_bytes(yes.dtype));
    for (size_t i = 0; i < places.sources[0].size(); ++i) {
        size_t k = call.operand(0).at_int(places.sources[0][i]) != 0 ? 1 : 2;
        std::memcpy(result.bytes.data() + i * size,
                    call.operand(k).bytes.data() + static_cast<size_t>(places.sources[k][i]) * size, size);
    }
    return result;
}

}  // namespace

Result<Results> evaluate_map(const Call& call) {
    std::vector<size_t> all;
    for (size_t k = 0; k < call.operands.size(); ++k) {
        all.push_back(k);
    }
    EMBER_TRY(Broadcast places, broadcast_operands(call, all));
    EMBER_CHECKED(call.admit(call.operands.back()->dtype, places.lengths));
    if (call.node.op == Op::k_select) {
        return Results{select(call, places)};
    }
    std::optional<Tensor> result = apply_by_dtype(call, places);
    if (!result.has_value()) {
        return call.unsupported();
    }
    return Results{std::move(*result)};
}

}  // namespace ember::interp
