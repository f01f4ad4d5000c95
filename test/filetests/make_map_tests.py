"""Writes run/map_*.ember: every map op of the table on ordinary and special values, as NumPy and SciPy compute them.

    ember-opt ops --json | python test/filetests/make_map_tests.py src/ember/ir/ops.def test/filetests/run

Floats narrower than f64 are computed in f64 and rounded once. Run it after adding an op; commit what it writes.
"""

import json
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import scipy.special as sp

INF, NAN = float("inf"), float("nan")
NUMPY_DTYPES = {
    "bool": np.bool_,
    "u8": np.uint8,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
}
DOMAIN_DTYPES = {
    "any": ["f64", "f32", "i32", "bool"],
    "number": ["f64", "f32", "i64", "u8"],
    "float": ["f64", "f32", "f16"],
    "int": ["i32", "i64", "u8"],
    "bits": ["i32", "u8", "bool"],
}

# Operands by arity. Pairs of zeros of different signs are left out of max and min: either one is right.
FLOAT_OPERANDS = {
    1: [[0.0, -0.0, 1.0, -1.0, 0.5, -0.25, 2.5, -3.5, 7.0, 20.0, INF, -INF, NAN]],
    2: [
        [0.0, 1.0, -1.0, 2.5, -3.5, 7.0, -7.0, 1.0, INF, -INF, 1.0, NAN, 0.25],
        [2.0, 0.5, 0.5, -2.0, -2.0, 2.5, 2.5, INF, 2.0, 3.0, NAN, 1.0, -0.5],
    ],
    3: [
        [0.5, -2.0, 3.0, INF, -INF, NAN, 0.25],
        [-1.0, -1.0, -0.5, 0.0, -4.0, 0.0, 0.125],
        [1.0, 2.0, 0.75, 9.0, 4.0, 1.0, 0.5],
    ],
}
# What an op sees beside that: its own interesting places.
EXTRA = {
    "exp": [[709.0, -745.0, 88.7, -103.0]],
    "exp2": [[1023.5, -1074.0, 127.5]],
    "expm1": [[1e-10, -1e-10, 1e-5]],
    "log1p": [[1e-10, -1e-10, -0.999]],
    "log": [[1e-300, 1e300, 2.718281828459045]],
    "log2": [[8.0, 1e-300]],
    "log10": [[1000.0, 1e-5]],
    "sigmoid": [[40.0, -40.0, -750.0]],
    "softplus": [[40.0, -40.0, -750.0]],
    "log_sigmoid": [[40.0, -40.0, -750.0]],
    "sin": [[3.141592653589793, 100.0, 1e6]],
    "cos": [[1.5707963267948966, 100.0, 1e6]],
    "tan": [[0.7853981633974483, 100.0]],
    "sinh": [[1e-5, 80.0]],
    "cosh": [[1e-5, 80.0]],
    "tanh": [[1e-5, 0.1]],
    "asinh": [[1e-5, 1e10]],
    "acosh": [[1.0001, 1e10]],
    "atanh": [[1e-5, 0.999]],
    "asin": [[0.999, -0.1]],
    "acos": [[0.999, -0.1]],
    "erf": [[1e-5, 3.0, 5.9]],
    "erfc": [[3.0, 9.0, -3.0]],
    "erfinv": [[0.9, -0.99, 1e-8]],
    "erfcinv": [[1.9, 0.01, 2.0]],
    "lgamma": [[0.1, 10.5, 100.0, -2.5]],
    "digamma": [[0.1, 10.5, 100.0, -2.5, 1.4616]],
    "round": [[1.5, 2.5, -0.5, 0.49999999999999994]],
    "round_away": [[1.5, 2.5, -0.5, 0.49999999999999994]],
    "floor": [[1e300, -1e-300]],
    "hypot": [[3e200, 3.0], [4e200, 4.0]],
    "logaddexp": [[-INF, 1000.0, INF], [-INF, 1001.0, INF]],
    "pow": [[0.0, -8.0, 4.0, 0.0, -0.0, INF, 2.0], [0.0, 3.0, -0.5, -1.0, -3.0, 0.0, 0.5]],
    "div": [[1.0, -1.0, 0.0, 5.0], [0.0, 0.0, 0.0, -INF]],
    "floor_div": [[6.0, -6.0, 0.1], [3.0, 4.0, 0.01]],
    "atan2": [[0.0, -0.0, 0.0, 1.0], [1.0, 1.0, -1.0, 0.0]],
    "copysign": [[0.0, 3.0, INF], [-1.0, -0.0, -0.0]],
}
INT_OPERANDS = {
    1: [[0, 1, -1, 7, -7, "max", "min"]],
    2: [
        [0, 1, -1, 7, -7, 7, -7, "max", "min", 5, 6, 2, "max", "min"],
        [3, 5, 4, 2, 2, -2, -2, 2, 3, 0, 7, 3, 1, 1],
    ],
    3: [[0, 5, -5, 9], [1, 1, -3, 0], [3, 3, 3, 7]],
}
SHIFTS = [[1, 1, -8, 5, "max", "min", 3, 3, 3], [0, 3, 1, 2, 1, 1, 7, 64, 200]]
BOOL_OPERANDS = {
    1: [[False, True]],
    2: [[False, False, True, True], [False, True, False, True]],
    3: [[False, True, False, True], [False, False, True, True], [True, True, False, False]],
}


def integers(values, dtype):
    limits = np.iinfo(dtype)
    named = {"max": limits.max, "min": limits.min}
    plain = [named.get(value, value) if isinstance(value, str) else value for value in values]
    return np.array(plain, dtype=np.int64).astype(dtype) if dtype != np.int64 else np.array(plain, dtype=np.int64)


def operands(op, dtype):
    """One array an operand, all of one length."""
    arity = op["min_arity"]
    numpy_dtype = NUMPY_DTYPES[dtype]
    if op["name"] == "select":
        chosen = BOOL_OPERANDS[1][0] * 3
        rest = {"bool": BOOL_OPERANDS[2], "i32": INT_OPERANDS[2]}.get(dtype, FLOAT_OPERANDS[2])
        rest = [values[: len(chosen)] for values in rest]
        convert = integers if dtype == "i32" else np.array
        length = len(rest[0])
        return [np.array(chosen[:length]), *(convert(values, dtype=numpy_dtype) for values in rest)]
    if dtype == "bool":
        return [np.array(values) for values in BOOL_OPERANDS[arity]]
    if dtype[0] in "iu":
        rows = SHIFTS if op["name"].startswith("shift") else INT_OPERANDS[arity]
        if op["name"] == "pow":
            rows = [[0, 1, -1, 7, -7, 2, 0], [3, 5, 4, 2, 3, 7, 0]]
        return [integers(values, numpy_dtype) for values in rows]
    rows = [list(values) for values in FLOAT_OPERANDS[arity]]
    for values, extra in zip(rows, EXTRA.get(op["name"], [])):
        values += extra
    with np.errstate(all="ignore"):
        return [np.array(values, dtype=np.float64).astype(numpy_dtype) for values in rows]


def shifted(op, x, y, dtype):
    """NumPy leaves shifts out of range undefined; here they give 0, or the sign for shifts to the right."""
    bits = np.iinfo(dtype).bits
    inside = (y >= 0) & (y < bits)
    safe = np.where(inside, y, 0).astype(dtype)
    if op["name"] == "shift_left":
        return np.where(inside, np.left_shift(x, safe), 0).astype(dtype)
    return np.where(inside, np.right_shift(x, safe), np.where(x < 0, -1, 0).astype(dtype)).astype(dtype)


def corrected(name, x, result):
    """SciPy's signs of zero by accident, and its lgamma(-inf), which is infinity in C and in the limit of its poles."""
    if name == "erfinv":
        return np.where(x == 0, x, result)
    if name == "erfcinv":
        return np.where(x == 1, 0.0, result)
    if name == "lgamma":
        return np.where(x == -INF, INF, result)
    return result


def expected(op, values, dtype):
    numpy_dtype = NUMPY_DTYPES[dtype]
    if op["name"].startswith("shift"):
        return shifted(op, *values, numpy_dtype)
    if dtype[0] == "f":
        values = [value.astype(np.float64) if value.dtype != np.bool_ else value for value in values]
    names = dict(zip("xyz", values)) | {"np": np, "sp": sp}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        result = corrected(op["name"], values[0], np.asarray(eval(op["numpy"], names)))
        return result.astype(np.bool_ if op["result"] == "bool" else numpy_dtype)


def element(value):
    if isinstance(value, np.bool_):
        return "true" if value else "false"
    if isinstance(value, np.integer):
        return str(int(value))
    if np.isnan(value):
        return "nan"
    if np.isinf(value):
        return "inf" if value > 0 else "-inf"
    plain = 1e-4 <= abs(float(value)) < 1e16 or value == 0
    shortest = np.format_float_positional if plain else np.format_float_scientific
    return shortest(value, unique=True, trim="-")


def tensor(values):
    name = next(name for name, dtype in NUMPY_DTYPES.items() if dtype == values.dtype.type)
    return f"{name}[{len(values)}] [{', '.join(element(value) for value in values)}]"


def function(op, dtype):
    values = operands(op, dtype)
    names = [f"%{name}" for name in "xyz"[: len(values)]]
    dtypes = ["bool" if op["name"] == "select" and k == 0 else dtype for k in range(len(values))]
    params = ", ".join(f"{name}: {own}[n]" for name, own in zip(names, dtypes))
    lines = [f"func @{op['name']}_{dtype}({params}) {{", f"  %r = {op['name']}({', '.join(names)})", "  return %r", "}"]
    lines += [f"// input: {tensor(value)}" for value in values]
    lines += [f"// expect: {tensor(expected(op, values, dtype))}"]
    return "\n".join(lines) + "\n"


def groups(table):
    """{section: names of its map ops}, from the comments of the op table."""
    found, section = {}, None
    for line in Path(table).read_text().splitlines():
        if heading := re.match(r"// --- ([\w, ]+)", line):
            section = re.sub(r"\W+", "_", heading[1])
        elif row := re.match(r"EMBER_MAP\((\w+)", line):
            found.setdefault(section, []).append(row[1])
    return found


def main(table, folder):
    ops = {op["name"]: op for op in json.load(sys.stdin)}
    for section, names in groups(table).items():
        text = "// Made by make_map_tests.py: the values are NumPy's and SciPy's.\n"
        for name in names:
            for dtype in DOMAIN_DTYPES[ops[name]["domain"]]:
                text += "\n" + function(ops[name], dtype)
        (Path(folder) / f"map_{section}.ember").write_text(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
