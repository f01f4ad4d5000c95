// Scalar functions in long double: stable forms, Newton for the inverses, the asymptotic series of digamma.
#include "ember/interp/scalar_math.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace ember::interp {
namespace {

constexpr long double kNaN = std::numeric_limits<long double>::quiet_NaN();
constexpr long double kInfinity = std::numeric_limits<long double>::infinity();
constexpr long double kPi = std::numbers::pi_v<long double>;
constexpr long double kTwoOverSqrtPi = 2 * std::numbers::inv_sqrtpi_v<long double>;

/// Inverse of erfc for 0 < y <= 1: Newton's iteration on log(erfc(t)), which is concave and nearly quadratic.
long double erfcinv_upper(long double y) {
    long double target = std::log(y);
    long double t = std::sqrt(std::fmax(-target, 0.0L));
    for (int step = 0; step < 100; ++step) {
        long double value = std::erfc(t);
        long double slope = -kTwoOverSqrtPi * std::exp(-t * t) / value;
        long double change = (std::log(value) - target) / slope;
        t = std::fmax(t - change, 0.0L);
        if (std::abs(change) <= 1e-18L * t) {
            break;
        }
    }
    return t;
}

/// Inverse of erf near 0, where erfc has no digits left: Newton's iteration on erf(t) - x.
long double erfinv_small(long double x) {
    long double t = x / kTwoOverSqrtPi;
    for (int step = 0; step < 20; ++step) {
        long double change = (std::erf(t) - x) / (kTwoOverSqrtPi * std::exp(-t * t));
        t -= change;
        if (std::abs(change) <= 1e-19L * std::abs(t)) {
            break;
        }
    }
    return t;
}

}  // namespace

long double sigmoid(long double x) {
    long double e = std::exp(-std::abs(x));
    return (x < 0 ? e : 1) / (1 + e);
}

long double softplus(long double x) {
    return std::isnan(x) ? x : std::fmax(x, 0.0L) + std::log1p(std::exp(-std::abs(x)));
}

long double logaddexp(long double x, long double y) {
    if (x == y) {
        return x + std::numbers::ln2_v<long double>;
    }
    long double difference = x - y;
    if (std::isnan(difference)) {
        return difference;
    }
    return std::fmax(x, y) + std::log1p(std::exp(-std::abs(difference)));
}

long double erfinv(long double x) {
    long double size = std::abs(x);
    if (!(size < 1)) {
        return size == 1 ? std::copysign(kInfinity, x) : kNaN;
    }
    if (size < 0.5L) {
        return x == 0 ? x : erfinv_small(x);
    }
    return std::copysign(erfcinv_upper(1 - size), x);
}

long double erfcinv(long double x) {
    if (!(x > 0 && x < 2)) {
        return x == 0 ? kInfinity : x == 2 ? -kInfinity : kNaN;
    }
    if (x > 0.5L && x < 1.5L) {
        return x == 1 ? 0 : erfinv_small(1 - x);
    }
    return x < 1 ? erfcinv_upper(x) : -erfcinv_upper(2 - x);
}

long double digamma(long double x) {
    if (x == 0) {
        return std::copysign(kInfinity, -x);
    }
    if (x < 0) {
        long double rest = x - std::nearbyint(x);
        return rest == 0 ? kNaN : digamma(1 - x) - kPi / std::tan(kPi * rest);
    }
    if (std::isinf(x) || std::isnan(x)) {
        return x;
    }
    long double shift = 0;
    while (x < 40) {
        shift += 1 / x;
        x += 1;
    }
    // Bernoulli numbers B(2k) / 2k of the asymptotic series.
    constexpr long double kTerms[] = {1.0L / 12,  -1.0L / 120,     1.0L / 252, -1.0L / 240,
                                      1.0L / 132, -691.0L / 32760, 1.0L / 12,  -3617.0L / 8160};
    long double inverse = 1 / (x * x);
    long double power = inverse;
    long double series = 0;
    for (long double term : kTerms) {
        series += term * power;
        power *= inverse;
    }
    return std::log(x) - 0.5L / x - series - shift;
}

}  // namespace ember::interp
