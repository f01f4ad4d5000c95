#!/usr/bin/env python3
"""Derives every polynomial of src/ember/codegen/math and prints coefficients.h; needs mpmath, takes a few minutes.

    scripts/math_coefficients.py > src/ember/codegen/math/coefficients.h

Each table is the weighted minimax polynomial of a function on an interval, found by Remez exchange at 60 digits, of the
lowest degree whose error stays under the bound of its type, then rounded coefficient by coefficient.
"""

import functools
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass

import mpmath as mp

mp.mp.dps = 60

LN2_HALF = mp.log(2) / 2 * mp.mpf("1.0001")
QUARTER_PI = mp.pi / 4 * mp.mpf("1.0001")
ATANH_TOP = (mp.sqrt(2) - 1) / (mp.sqrt(2) + 1) * mp.mpf("1.0001")


@dataclass
class Table:
    """`function` on [low, high], errors multiplied by `weight`, at most 2**-bits of each type (None: no such table)."""

    name: str
    why: str
    low: object
    high: object
    function: Callable
    weight: Callable
    bits_f32: float | None = 27
    bits_f64: float | None = 56
    start: int = 1


def even(function):
    """Lets a function of x be approximated in z = x * x."""
    return lambda z: function(mp.sqrt(z))


def square(x):
    return mp.mpf(x) ** 2


def erfcx(y):
    return mp.exp(y * y) * mp.erfc(y)


@functools.cache
def erfc_inverse(y):
    x = (1 - y) * mp.sqrt(mp.pi) / 2 if y > 0.3 else mp.sqrt(-mp.log(y))
    for _ in range(100):
        value = mp.erfc(x)
        step = mp.log(value / y) * value * mp.exp(x * x) * mp.sqrt(mp.pi) / 2
        x += step
        if abs(step) < abs(x) * mp.mpf(10) ** -50:
            break
    return x


def erfcx_table(top, **bits):
    def slow(u):
        y = 2.5 / (1 - u) - 1
        return erfcx(y) * (y + 1)

    return Table(
        "erfcx",
        "e^(y^2) erfc y = erfcx(u) / (y + 1), u = (y - 1.5) / (y + 1)",
        1 - 2.5 / mp.mpf(1.64),
        1 - 2.5 / mp.mpf(top + 1),
        slow,
        lambda u: 1 / slow(u),
        **bits,
    )


def erf_tail_table(top, **bits):
    return Table(
        "erf_tail",
        "log(erfc y) = erf_tail(y - 1)",
        0.89 - 1,
        top - 1,
        lambda v: mp.log(mp.erfc(v + 1)),
        lambda v: mp.erfc(v + 1) / mp.erf(v + 1),
        **bits,
    )


def erfinv_tail_table(name, low, top, center=0, **bits):
    def slope(v):
        s = 3.5 / (1 - v - center) - 2
        return erfc_inverse(mp.exp(-square(s))) / s

    return Table(
        name,
        f"erfcinv(e^-(s^2)) = s {name}((s - 1.5) / (s + 2) - {center})",
        1 - 3.5 / (mp.mpf(low) + 2) - center,
        1 - 3.5 / (mp.mpf(top) + 2) - center,
        slope,
        lambda v: 1 / slope(v),
        **bits,
    )


def gamma_far(z):
    x = 1 / mp.sqrt(z)
    return x * (mp.loggamma(x) - ((x - 0.5) * mp.log(x) - x + mp.log(2 * mp.pi) / 2))


def digamma_far(z):
    x = 1 / mp.sqrt(z)
    return (mp.log(x) - 1 / (2 * x) - mp.digamma(x)) / z


DIGAMMA_ROOT = mp.findroot(mp.digamma, 1.4616)

TABLES = [
    Table(
        "exp",
        "e^r = 1 + r + r^2 exp(r)",
        -LN2_HALF,
        LN2_HALF,
        lambda r: (mp.expm1(r) - r) / r**2,
        lambda r: r**2 / abs(mp.expm1(r)),
    ),
    Table("exp2", "2^r = 1 + r exp2(r)", -0.5001, 0.5001, lambda r: mp.expm1(r * mp.log(2)) / r, lambda r: r / 2**r),
    Table(
        "log",
        "log(1 + f) = f - f^2/2 + f^3 log(f)",
        mp.sqrt(0.5) - 1.0001,
        mp.sqrt(2) - 0.9999,
        lambda f: (mp.log1p(f) - f + f**2 / 2) / f**3,
        lambda f: f**3 / mp.log1p(f),
        bits_f64=None,
    ),
    Table(
        "sin",
        "sin r = r + r^3 sin(r^2)",
        0,
        square(QUARTER_PI),
        even(lambda r: (mp.sin(r) - r) / r**3),
        even(lambda r: r**3 / mp.sin(r)),
    ),
    Table(
        "cos",
        "cos r = 1 - r^2/2 + r^4 cos(r^2)",
        0,
        square(QUARTER_PI),
        even(lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4),
        even(lambda r: r**4 / mp.cos(r)),
    ),
    Table(
        "tan",
        "tan r = r + r^3 tan(r^2)",
        0,
        square(QUARTER_PI),
        even(lambda r: (mp.tan(r) - r) / r**3),
        even(lambda r: r**3 / mp.tan(r)),
    ),
    Table(
        "asin",
        "asin x = x + x^3 asin(x^2)",
        0,
        0.2501,
        even(lambda x: (mp.asin(x) - x) / x**3),
        even(lambda x: x**3 / mp.asin(x)),
    ),
    Table(
        "atan",
        "atan x = x + x^3 atan(x^2)",
        0,
        0.3165,
        even(lambda x: (mp.atan(x) - x) / x**3),
        even(lambda x: x**3 / mp.atan(x)),
    ),
    Table(
        "sinh",
        "sinh r = r + r^3 sinh(r^2)",
        0,
        square(LN2_HALF),
        even(lambda r: (mp.sinh(r) - r) / r**3),
        even(lambda r: r**3 / mp.sinh(r)),
    ),
    Table(
        "cosh",
        "cosh r = 1 + r^2 cosh(r^2)",
        0,
        square(LN2_HALF),
        even(lambda r: (mp.cosh(r) - 1) / r**2),
        even(lambda r: r**2 / mp.cosh(r)),
    ),
    Table(
        "tanh",
        "tanh x = x + x^3 tanh(x^2)",
        0,
        0.3137,
        even(lambda x: (mp.tanh(x) - x) / x**3),
        even(lambda x: x**3 / mp.tanh(x)),
    ),
    Table(
        "atanh",
        "atanh s = s + s^3 atanh(s^2)",
        0,
        square(ATANH_TOP),
        even(lambda s: (mp.atanh(s) - s) / s**3),
        even(lambda s: s**3 / mp.atanh(s)),
    ),
    Table(
        "long_log",
        "atanh s = s + s^3 (1/3 + s^2 long_log(s^2))",
        0,
        square(ATANH_TOP),
        even(lambda s: (mp.atanh(s) - s - s**3 / 3) / s**5),
        even(lambda s: s**5 / mp.atanh(s)),
        bits_f32=None,
        bits_f64=68,
    ),
    Table(
        "short_log2",
        "log2(1 + f) = f short_log2(f), for a power in float",
        mp.sqrt(0.5) - 1.0001,
        mp.sqrt(2) - 0.9999,
        lambda f: mp.log1p(f) / f / mp.log(2),
        lambda f: f / mp.log1p(f),
        bits_f32=None,
        bits_f64=37,
    ),
    Table(
        "short_exp2",
        "2^r = short_exp2(r), for a power in float",
        -0.5001,
        0.5001,
        lambda r: mp.mpf(2) ** r,
        lambda r: mp.mpf(2) ** -r,
        bits_f32=None,
        bits_f64=29,
    ),
    Table(
        "cbrt",
        "the first guess of the cube root of m",
        1,
        2,
        lambda m: mp.cbrt(m),
        lambda m: 1 / mp.cbrt(m),
        bits_f32=11,
        bits_f64=19,
    ),
    Table("erf", "erf x = x + x erf(x^2)", 0, 0.811, even(lambda x: mp.erf(x) / x - 1), even(lambda x: x / mp.erf(x))),
    erf_tail_table(4, bits_f64=None, start=6),
    erf_tail_table(6, bits_f32=None, start=15),
    erfcx_table(10.2, bits_f64=None, start=7),
    erfcx_table(27.4, bits_f32=None, start=18),
    Table(
        "erfinv",
        "erfinv x = x erfinv(x^2)",
        0,
        square(0.626),
        even(lambda x: erfc_inverse(1 - x) / x),
        even(lambda x: x / erfc_inverse(1 - x)),
        start=6,
    ),
    erfinv_tail_table("erfinv_tail", 0.98, 10.2, bits_f64=None, start=9),
    erfinv_tail_table("erfinv_tail", 0.98, 6.3, bits_f32=None, start=18),
    erfinv_tail_table("erfinv_far", 6.2, 27.4, 0.75, bits_f32=None, start=18),
    Table(
        "lgamma_one",
        "lgamma(1 + t) = t lgamma_one(t)",
        -0.2501,
        0.5001,
        lambda t: mp.loggamma(1 + t) / t,
        lambda t: t / mp.loggamma(1 + t),
        start=6,
    ),
    Table(
        "lgamma_two",
        "lgamma(2 + t) = t lgamma_two(t)",
        -0.5001,
        0.5001,
        lambda t: mp.loggamma(2 + t) / t,
        lambda t: t / mp.loggamma(2 + t),
        start=6,
    ),
    Table(
        "lgamma_far",
        "lgamma x = (x - 1/2) log x - x + log(2 pi)/2 + lgamma_far(1 / x^2) / x",
        0,
        square(0.1251),
        gamma_far,
        lambda z: mp.sqrt(z) / mp.loggamma(1 / mp.sqrt(z)),
    ),
    Table(
        "digamma_near",
        "digamma(3/2 + t) = (3/2 - root + t) digamma_near(t)",
        -0.5001,
        0.5001,
        lambda t: mp.digamma(t + 1.5) / (t + 1.5 - DIGAMMA_ROOT),
        lambda t: (t + 1.5 - DIGAMMA_ROOT) / mp.digamma(t + 1.5),
        start=6,
    ),
    Table(
        "digamma_far",
        "digamma x = log x - 1 / (2 x) - digamma_far(1 / x^2) / x^2",
        0,
        square(0.1251),
        digamma_far,
        lambda z: z / mp.digamma(1 / mp.sqrt(z)),
    ),
    Table(
        "sinpi", "sin(pi f) = f sinpi(f^2)", 0, 0.2501, even(lambda f: mp.sinpi(f) / f), even(lambda f: f / mp.sinpi(f))
    ),
    Table(
        "cotpi",
        "pi f cot(pi f) = 1 + f^2 cotpi(f^2)",
        0,
        0.2501,
        even(lambda f: (mp.pi * f * mp.cospi(f) / mp.sinpi(f) - 1) / f**2),
        even(lambda f: f**2),
        start=5,
    ),
]


def solve(table, degree, nodes):
    """The polynomial whose weighted error alternates with equal size over the nodes, and that size."""
    size = degree + 2
    matrix, right = mp.matrix(size, size), mp.matrix(size, 1)
    for row, x in enumerate(nodes):
        for column in range(degree + 1):
            matrix[row, column] = x**column * table.weight(x)
        matrix[row, degree + 1] = (-1) ** row
        right[row] = table.function(x) * table.weight(x)
    solution = mp.lu_solve(matrix, right)
    return list(solution[: degree + 1]), abs(solution[degree + 1])


def remez(table, degree):
    """The minimax polynomial of this degree and its largest weighted error."""
    low, high = mp.mpf(table.low), mp.mpf(table.high)
    middle, half = (low + high) / 2, (high - low) / 2
    count = 24 * (degree + 2) + 1  # not symmetric about the middle, where a weight may vanish
    grid = [middle - half * mp.cos(mp.pi * (k + mp.mpf("0.37")) / count) for k in range(count)]
    exact = [(x, table.function(x), table.weight(x)) for x in grid]
    nodes = [middle - half * mp.cos(mp.pi * (k + mp.mpf("0.43")) / (degree + 2)) for k in range(degree + 2)]
    for _ in range(12):
        coefficients, size = solve(table, degree, nodes)
        errors = [(mp.polyval(coefficients[::-1], x) - f) * w for x, f, w in exact]
        largest = max(abs(e) for e in errors)
        if largest <= size * mp.mpf("1.02"):
            break
        extrema = alternating_extrema(grid, errors, degree + 2)
        if extrema is None:
            break
        nodes = extrema
    return coefficients, largest


def alternating_extrema(grid, errors, count):
    """The largest error of each run of one sign, the `count` neighbouring runs with the largest ones."""
    best = []
    for x, e in zip(grid, errors):
        if best and (e > 0) == (best[-1][1] > 0):
            if abs(e) > abs(best[-1][1]):
                best[-1] = (x, e)
        else:
            best.append((x, e))
    while len(best) > count:
        best.pop(0 if abs(best[0][1]) < abs(best[-1][1]) else -1)
    return [x for x, _ in best] if len(best) == count else None


def fit(table, bits):
    for degree in range(table.start, 40):
        coefficients, error = remez(table, degree)
        if error < mp.mpf(2) ** -bits:
            return coefficients, error
    raise ValueError(f"{table.name}: no polynomial is close enough")


def literal(value, type_name):
    if type_name == "float":
        return mp.nstr(value, 10, strip_zeros=False, min_fixed=-3, max_fixed=3) + "f"
    return mp.nstr(value, 19, strip_zeros=False, min_fixed=-3, max_fixed=3)


def print_type(type_name):
    print(f"template <>\nstruct Coefficients<{type_name}> {{")
    for table in TABLES:
        bits = table.bits_f32 if type_name == "float" else table.bits_f64
        if bits is None:
            continue
        coefficients, error = fit(table, bits)
        print(f"{table.name} {type_name}: {len(coefficients)} terms, 2^{float(mp.log(error, 2)):.1f}", file=sys.stderr)
        print(f"    // {table.why}: error 2^{float(mp.log(error, 2)):.1f}")
        body = ", ".join(literal(c, type_name) for c in coefficients)
        text = f"static constexpr {type_name} {table.name}[] = {{{body}}};"
        print(textwrap.fill(text, 118, initial_indent=" " * 4, subsequent_indent=" " * 8))
    print("};\n")


def print_array(declaration, values):
    text = f"static constexpr {declaration} = {{{', '.join(values)}}};"
    print(textwrap.fill(text, 120, subsequent_indent=" " * 4))


def print_two_over_pi():
    """Tables of trigonometric.h: the digits of 2/pi that an argument's exponent leaves of interest."""
    mp.mp.prec = 1400
    print("// 58 zero bits and 1158 bits of 2/pi, the last byte first.")
    digits = int(mp.floor(mp.ldexp(2 / mp.pi, 1158)))
    print_array("unsigned char kTwoOverPiBytes[152]", [str(b) for b in digits.to_bytes(152, "little")])
    print("// For |x| from 2^E on, E = 0, 50, 76, 102: 2/pi less what makes multiples of 4, in two parts.")
    rests = [mp.ldexp(mp.frac(mp.ldexp(2 / mp.pi, -top)), top) for top in (0, -25, -51, -77)]
    print_array("double kTwoOverPiHigh[4]", [float(rest).hex() for rest in rests])
    print_array("double kTwoOverPiLow[4]", [float(rest - mp.mpf(float(rest))).hex() for rest in rests])


def main():
    print("// Polynomials of the math functions, constant term first. Generated by scripts/math_coefficients.py.")
    print("#pragma once\n\nnamespace ember_math {\n")
    print("template <class T>\nstruct Coefficients;\n")
    print("// clang-format off")
    print_type("float")
    print_type("double")
    print_two_over_pi()
    print("// clang-format on\n\n}  // namespace ember_math")


if __name__ == "__main__":
    main()
