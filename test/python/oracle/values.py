"""Operands for scalar ops: special values, all pairs of them, and random ones of several kinds."""

import numpy as np

INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
FLOATS = ["f16", "bf16", "f32", "f64"]
COMPLEX = ["c64", "c128"]
NUMPY = {
    "bool": np.bool_,
    **{name: np.dtype(f"{name[0]}{int(name[1:]) // 8}").type for name in INTS},
    "f16": np.float16,
    "bf16": np.float32,  # what its values are held in here
    "f32": np.float32,
    "f64": np.float64,
    "c64": np.complex64,
    "c128": np.complex128,
}
COUNT = 900


def to_bfloat16(values):
    """Floats rounded to bf16, as f32."""
    with np.errstate(over="ignore"):
        single = np.asarray(values, dtype=np.float32)
    bits = single.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return np.where(np.isfinite(single), rounded, single)


def rounded(values, dtype):
    """f64 or c128 values rounded to a dtype."""
    with np.errstate(over="ignore"):
        return to_bfloat16(values) if dtype == "bf16" else np.asarray(values).astype(NUMPY[dtype])


def special_floats(dtype):
    finfo = np.finfo(NUMPY[dtype])
    largest = 3.3895313892515355e38 if dtype == "bf16" else finfo.max
    tiny = 1e-40 if dtype == "bf16" else finfo.smallest_subnormal
    values = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, np.pi, largest, -largest, finfo.tiny, tiny, -tiny, np.nan]
    return rounded(np.array([*values, np.inf, -np.inf], dtype=np.float64), dtype)


def special_ints(dtype):
    info = np.iinfo(NUMPY[dtype])
    values = [info.min, info.min + 1, info.max - 1, info.max, 0, 1, 2, 7, 63, 64]
    values += [-1, -2, -7, -64] if info.min < 0 else []
    return np.array([value for value in values if info.min <= value <= info.max], dtype=NUMPY[dtype])


def random_floats(rng, dtype, count):
    """A quarter each: (-1, 1), (-10, 10), (0, 200), any exponent."""
    quarter = count // 4 + 1
    low, high = {"f16": (-14, 15), "f64": (-1000, 1000)}.get(dtype, (-120, 120))
    any_exponent = np.ldexp(rng.uniform(-2, 2, quarter), rng.integers(low, high, quarter))
    parts = [rng.uniform(-1, 1, quarter), rng.uniform(-10, 10, quarter), rng.uniform(0, 200, quarter), any_exponent]
    return rounded(rng.permutation(np.concatenate(parts))[:count], dtype)


def random_ints(rng, dtype, count):
    """Half small ones, half any."""
    info = np.iinfo(NUMPY[dtype])
    small = rng.integers(max(info.min, -9), 10, count, dtype=NUMPY[dtype])
    anything = rng.integers(info.min, info.max, count, dtype=NUMPY[dtype], endpoint=True)
    return np.where(rng.random(count) < 0.5, small, anything)


def operands(dtype, arity, seed=0):
    """Operands for an op of this arity: all pairs of special values first, then random ones."""
    rng = np.random.default_rng([seed, arity])
    if dtype == "bool":
        return [rng.random(COUNT) < 0.5 for _ in range(arity)]
    if dtype in COMPLEX:
        parts = rng.uniform(-3, 3, (arity, COUNT)) + 1j * rng.uniform(-3, 3, (arity, COUNT))
        return list(parts.astype(NUMPY[dtype]))
    special = special_floats(dtype) if dtype in FLOATS else special_ints(dtype)
    draw = random_floats if dtype in FLOATS else random_ints
    first, second = (part.ravel() for part in np.meshgrid(special, special))
    heads = [first, second, rng.choice(special, first.size)][:arity]
    return [np.concatenate([head, draw(rng, dtype, COUNT - head.size)]) for head in heads]
