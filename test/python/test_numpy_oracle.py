"""NumPy and SciPy as the third witness, scalar ops: every map op of the table by the formula in its `numpy` column, for
each dtype of its domain, on special and random values; casts; and, by mpmath, how exact the reference evaluator is.

EMBER_ENGINES names the engines, separated by commas: interp (the default), compiled. What moves elements and what
reduces them is in test_numpy_oracle_tensors.py.
"""

import json
import math
import platform
import subprocess
import warnings

import mpmath
import numpy as np
import pytest
import scipy.special as sp
from oracle.batch import Batch, engines, has_code, needs_program, program, skip_without_code
from oracle.compare import Tolerance
from oracle.values import COMPLEX, FLOATS, INTS, NUMPY, operands, rounded

pytestmark = needs_program
warnings.filterwarnings("ignore", category=RuntimeWarning)

ENGINE = pytest.mark.parametrize("engine", engines())
DOMAINS = {
    "any": ["bool", *INTS, *FLOATS, *COMPLEX],
    "number": [*INTS, *FLOATS, *COMPLEX],
    "float": [*FLOATS, *COMPLEX],
    "int": INTS,
    "bits": ["bool", *INTS],
}
# Float ops that are rounded correctly, so NumPy gives the same bits.
EXACT_OPS = (
    "neg abs sign add sub mul div fmod max min clamp square reciprocal copysign eq ne lt le gt ge is_nan is_inf \
is_finite floor ceil trunc round round_away sqrt select".split()
)
# Ops whose zeros may have either sign: NumPy's vector instructions take one operand or the other, SciPy drops signs.
ANY_ZERO = "max min clamp erfinv erfcinv fma mod floor_div".split()
COMPLEX_OPS = "neg add sub mul div square reciprocal eq ne is_nan is_inf is_finite sqrt exp log sin cos tan sinh cosh \
tanh select".split()
# SciPy is a few ulps off, and more near the zeros of these.
LOOSE = {"lgamma": 64, "digamma": 128, "erfinv": 32, "erfcinv": 32, "pow": 16, "logaddexp": 16}


@pytest.fixture(scope="module")
def map_ops():
    """Rows of the map ops, by name."""
    run = subprocess.run([program(), "ops", "--json"], capture_output=True, check=True, encoding="utf-8")
    return {row["name"]: row for row in json.loads(run.stdout) if row["kind"] == "map"}


def integer_power(x, y):
    """As the table's summary says; NumPy refuses negative exponents."""
    power = np.power(x, np.maximum(y, np.zeros_like(y)))
    if y.dtype.kind == "u":
        return power
    ones = np.where(x == 1, 1, np.where(x == -1, np.where(y % 2 == 0, 1, -1), 0))
    return np.where(y < 0, ones, power).astype(x.dtype)


def integer_fmod(x, y):
    """np.fmod, which must not see the lowest value and -1."""
    return np.fmod(x, np.where(y == np.array(-1).astype(y.dtype), 1, y)) if y.dtype.kind == "i" else np.fmod(x, y)


def lgamma(x):
    """SciPy takes smaller numbers for 0, and gives -inf at -inf, where C and the limit from the left give inf."""
    near_zero = np.where(np.abs(x) < 1e-300, -np.log(np.abs(x)), sp.gammaln(x))
    return np.where(np.isneginf(x), np.inf, near_zero)


INTEGER_FORMULAS = {"pow": integer_power, "fmod": integer_fmod}
FLOAT_FORMULAS = {
    "lgamma": lgamma,
    "erfc": np.vectorize(math.erfc, otypes=[float]),  # SciPy loses digits for large arguments
    "erfcinv": lambda x: np.where((x > 0) & (x < 1e-300), sp.erfcinv(1e-300), sp.erfcinv(x)),  # SciPy: infinity
}


def formula_value(row, values):
    """The op's NumPy formula, but where that is known to be wrong."""
    formulas = INTEGER_FORMULAS if values[0].dtype.kind in "iu" else FLOAT_FORMULAS
    if row["name"] in formulas:
        with np.errstate(all="ignore"):
            return formulas[row["name"]](*values)
    with np.errstate(all="ignore"):
        return eval(row["numpy"], {"np": np, "sp": sp}, dict(zip("xyz", values)))


def wanted(row, dtype, values):
    """What the op must give: narrow floats are computed in f64 and rounded once."""
    if dtype in FLOATS:
        values = [value.astype(np.float64) if value.dtype.kind == "f" else value for value in values]
    elif dtype in COMPLEX:
        values = [value.astype(np.complex128) if value.dtype.kind == "c" else value for value in values]
    result = formula_value(row, values)
    return result if row["result"] == "bool" else rounded(result, dtype)


def tolerance_of(name, dtype, engine):
    lost = 16 if dtype == "bf16" else 0
    if dtype not in FLOATS + COMPLEX:
        return Tolerance()
    if dtype in FLOATS and name in EXACT_OPS:
        return Tolerance(zero_signs=name not in ANY_ZERO, lost_bits=lost)
    narrow = 1 if engine == "interp" else 4  # the evaluator computes narrow floats in wider ones
    ulps = LOOSE.get(name, 4) if dtype == "f64" else 8 if dtype in COMPLEX else narrow
    # Near a zero of these, results have the absolute error of the terms that cancel.
    cancels = name in ("lgamma", "digamma", "logaddexp") and dtype in FLOATS
    absolute = 18 * np.finfo(NUMPY[dtype]).eps if cancels else 0
    absolute = np.where(operands("f64", 1)[0] < 1e-300, 2, 0) if name == "erfcinv" and dtype == "f64" else absolute
    return Tolerance(ulps=ulps, absolute=absolute, zero_signs=name not in ANY_ZERO, lost_bits=lost)


def roundings_of_fma(dtype, values):
    """x*y + z with the product rounded to the dtype, and with one that has more range and digits than f64."""
    if dtype in COMPLEX:
        return []
    x, y, z = (value.astype(np.longdouble) for value in values)
    with np.errstate(all="ignore"):
        product = rounded((x * y).astype(np.float64), dtype)
        return [rounded((product + z).astype(np.float64), dtype), rounded((x * y + z).astype(np.float64), dtype)]


def select_operands(dtype):
    condition = operands("bool", 1)[0]
    return [condition, *operands(dtype, 2)]


def add_map_check(batch, row, dtype, engine):
    values = select_operands(dtype) if row["name"] == "select" else operands(dtype, row["min_arity"])
    want = wanted(row, dtype, values)
    if row["name"] == "fma":
        want = [want, *roundings_of_fma(dtype, values)]
    names = [batch.param(value) for value in values]
    if dtype == "bf16":  # no .npy file holds it
        casts = [
            name if value.dtype == np.bool_ else batch.node("cast", name, attributes="dtype=bf16")
            for name, value in zip(names, values)
        ]
        result = batch.node(row["name"], *casts)
        result = result if row["result"] == "bool" else batch.node("cast", result, attributes="dtype=f32")
    else:
        result = batch.node(row["name"], *names)
    batch.expect(f"{row['name']} {dtype}", result, want, tolerance_of(row["name"], dtype, engine))


@ENGINE
@pytest.mark.parametrize("dtype", ["bool", *INTS, *FLOATS, *COMPLEX])
def test_maps(engine, dtype, map_ops):
    skip_without_code(engine, dtype)
    batch = Batch()
    for row in map_ops.values():
        if dtype in DOMAINS[row["domain"]] and (dtype not in COMPLEX or row["name"] in COMPLEX_OPS):
            add_map_check(batch, row, dtype, engine)
    batch.check(engine)


@ENGINE
def test_maps_broadcast(engine):
    """Axes of static length 1 stretch, missing ones too; zero lengths stay."""
    batch = Batch()
    rng = np.random.default_rng(1)
    shapes = [(3, 4), (1, 4), (3, 1), (1, 1), (4,), (1,), ()]
    arrays = [rng.uniform(-2, 2, shape) for shape in shapes]
    for x in arrays:
        for y in arrays:
            batch.expect(f"add {x.shape} {y.shape}", batch.node("add", x, y), x + y)
            condition = x > 0
            chosen = batch.node("select", condition, y, x)
            batch.expect(f"select {x.shape} {y.shape}", chosen, np.where(condition, y, x))
    for shape in [(0,), (0, 4), (3, 0)]:
        x = np.zeros(shape)
        batch.expect(f"add {shape}", batch.node("add", x, np.float64(1)), x)
        batch.expect(f"lt {shape}", batch.node("lt", x, np.ones((*shape[:-1], 1))), x < 1)
    batch.check(engine)


# --- casts


def cast_values(source, target):
    """Values that NumPy converts the same way everywhere; on x86-64 also those beyond i32 and i64."""
    values = operands(source, 1)[0]
    floats = values.dtype.kind == "f"
    integer_target = target in INTS
    if not (floats and integer_target):
        return values
    info = np.iinfo(NUMPY[target])
    if target in ("i32", "i64") and platform.machine() == "x86_64":
        return values
    wide = values.astype(np.float64)
    return values[(wide > float(info.min) - 1) & (wide < float(info.max)) & np.isfinite(values)]


@ENGINE
@pytest.mark.parametrize("source", ["bool", *INTS, *FLOATS, *COMPLEX])
def test_casts(engine, source):
    skip_without_code(engine, source)
    batch = Batch()
    targets = COMPLEX if source in COMPLEX else ["bool", *INTS, *FLOATS]
    if source not in COMPLEX and has_code(engine, np.complex64):
        targets += COMPLEX
    for target in targets:
        values = cast_values(source, target)
        name = batch.param(values)
        if source == "bf16":
            name = batch.node("cast", name, attributes="dtype=bf16")
        result = batch.node("cast", name, attributes=f"dtype={target}")
        with np.errstate(all="ignore"):
            want = to_dtype(values, target)
        if target == "bf16":
            result = batch.node("cast", result, attributes="dtype=f32")
        batch.expect(f"cast {source} to {target}", result, want)
    batch.check(engine)


def to_dtype(values, target):
    """NumPy's astype. It lacks bf16; integers and f64 reach that by way of f32, and here stay where that is exact."""
    if target != "bf16":
        return values.astype(NUMPY[target])
    if values.dtype.kind in "iu" or values.dtype == np.float64:
        return bfloat16_by_fractions(values)
    return rounded(values, "bf16")


def bfloat16_by_fractions(values):
    """Rounded once: integers by way of f32 as NumPy converts them to f16, f64 to the nearest of the 8-bit mantissas."""
    if values.dtype.kind in "iu":
        return rounded(values.astype(np.float32), "bf16")
    mantissa, exponent = np.frexp(values)
    digits = np.minimum(8, exponent + 133)  # fewer for subnormals
    with np.errstate(all="ignore"):
        near = np.ldexp(np.rint(np.ldexp(mantissa, digits)), exponent - digits)
        largest = np.float64(np.ldexp(2 - 2.0**-7, 127))
        near = np.where(np.abs(near) > largest, np.copysign(np.inf, near), near)
        return np.where(np.isfinite(values), near, values).astype(np.float32)


# --- exactness of the reference evaluator

PRECISE = {
    "rsqrt": (lambda x: 1 / mpmath.sqrt(x), (0.01, 1e10)),
    "cbrt": (lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)), (-1e3, 1e3)),
    "exp": (mpmath.exp, (-700, 700)),
    "exp2": (lambda x: mpmath.power(2, x), (-1000, 1000)),
    "expm1": (mpmath.expm1, (-5, 5)),
    "log": (mpmath.log, (0.001, 1e5)),
    "log2": (lambda x: mpmath.log(x) / mpmath.log(2), (0.001, 1e5)),
    "log10": (mpmath.log10, (0.001, 1e5)),
    "log1p": (mpmath.log1p, (-0.99, 10)),
    "sigmoid": (lambda x: 1 / (1 + mpmath.exp(-x)), (-100, 100)),
    "softplus": (lambda x: mpmath.log1p(mpmath.exp(x)), (-100, 100)),
    "log_sigmoid": (lambda x: -mpmath.log1p(mpmath.exp(-x)), (-100, 100)),
    "sin": (mpmath.sin, (-1e6, 1e6)),
    "cos": (mpmath.cos, (-1e6, 1e6)),
    "tan": (mpmath.tan, (-1e6, 1e6)),
    "asin": (mpmath.asin, (-1, 1)),
    "acos": (mpmath.acos, (-1, 1)),
    "atan": (mpmath.atan, (-100, 100)),
    "sinh": (mpmath.sinh, (-100, 100)),
    "cosh": (mpmath.cosh, (-100, 100)),
    "tanh": (mpmath.tanh, (-20, 20)),
    "asinh": (mpmath.asinh, (-100, 100)),
    "acosh": (mpmath.acosh, (1, 100)),
    "atanh": (mpmath.atanh, (-1, 1)),
    "erf": (mpmath.erf, (-6, 6)),
    "erfc": (mpmath.erfc, (-5, 26)),
    "erfinv": (mpmath.erfinv, (-1, 1)),
    "erfcinv": (lambda x: mpmath.findroot(lambda t: mpmath.erfc(t) - x, sp.erfcinv(float(x))), (0.001, 1.999)),
    "lgamma": (lambda x: mpmath.re(mpmath.loggamma(x)), (-20, 170)),
    "digamma": (mpmath.digamma, (-20, 100)),
}


def test_reference_is_exact(map_ops):
    """Transcendental f64 results are those of 50 digits, rounded: never more than 0.51 ulp off."""
    batch = Batch()
    rng = np.random.default_rng(3)
    wants = {}
    with mpmath.workdps(50):
        for name, (function, (low, high)) in PRECISE.items():
            x = rng.uniform(low, high, 40)
            exact = [function(mpmath.mpf(float(value))) for value in x]
            nearest = np.array([float(value) for value in exact])
            # How far the nearest f64 is from the exact value, in ulps: ties may go either way.
            off = np.array([float(abs(value - mpmath.mpf(float(near)))) for value, near in zip(exact, nearest)])
            tie = off / np.spacing(np.abs(nearest)) > 0.49
            wants[name] = int(tie.sum())
            batch.expect(name, batch.node(name, x), nearest, Tolerance(absolute=np.spacing(np.abs(nearest)) * tie))
    assert max(wants.values()) < 10
    assert set(PRECISE) <= set(map_ops)
    batch.check("interp")
