"""NumPy as the third witness, ops on whole tensors: reductions, scans, contractions, views, indexing, control flow.

Each is checked by an explicit NumPy expression, with lengths as numbers and as symbols, for several dtypes and for zero
sizes. See test_numpy_oracle.py for the engines.
"""

import itertools

import numpy as np
import pytest
from oracle.batch import DTYPE_NAMES, Batch, engines, evaluate, failure, has_code, needs_program, skip_without_code
from oracle.compare import Tolerance

pytestmark = needs_program

ENGINE = pytest.mark.parametrize("engine", engines())
SYMBOLIC = pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
INTS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
MAIN = [np.float32, np.float64, np.int32, np.int64, np.bool_]
SHAPES = [(7,), (3, 4, 5), (2, 1, 6), (0, 4), (3, 0), (1, 1)]


def random_array(rng, dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    if dtype.kind == "c":
        return (rng.uniform(-2, 2, shape) + 1j * rng.uniform(-2, 2, shape)).astype(dtype)
    return rng.uniform(-2, 2, shape).astype(dtype)


def ints(values):
    """[1,2]"""
    return "[" + ",".join(map(str, values)) + "]"


def subsets(rank):
    return itertools.chain.from_iterable(itertools.combinations(range(rank), k) for k in range(rank + 1))


def wide(x):
    return x.astype(np.clongdouble if x.dtype.kind == "c" else np.longdouble) if x.dtype.kind in "fc" else x


# --- reductions


def reduced_sum(x, axes):
    if x.dtype == np.bool_:
        return np.any(x, axis=axes)
    return np.sum(wide(x), axis=axes, dtype=wide(x).dtype).astype(x.dtype)


def reduced_prod(x, axes):
    if x.dtype == np.bool_:
        return np.all(x, axis=axes)
    return np.prod(wide(x), axis=axes, dtype=wide(x).dtype).astype(x.dtype)


def extreme(dtype, highest):
    if dtype == np.bool_:
        return highest
    if dtype.kind == "f":
        return np.inf if highest else -np.inf
    return np.iinfo(dtype).max if highest else np.iinfo(dtype).min


def sum_error(x, axes, terms):
    """What a sum of so many rounded terms may be off: a few ulps of the sum of their sizes."""
    if x.dtype.kind not in "fc":
        return Tolerance()
    sizes = np.sum(np.abs(wide(x)), axis=axes).astype(np.longdouble)
    return Tolerance(ulps=2, absolute=np.finfo(x.dtype).eps * sizes * (2 + np.sqrt(terms)))


REDUCTIONS = {
    "reduce_sum": reduced_sum,
    "reduce_prod": reduced_prod,
    "reduce_max": lambda x, axes: np.max(x, axis=axes, initial=extreme(x.dtype, False)),
    "reduce_min": lambda x, axes: np.min(x, axis=axes, initial=extreme(x.dtype, True)),
    "reduce_and": lambda x, axes: np.bitwise_and.reduce(x, axis=axes) if axes else x,
    "reduce_or": lambda x, axes: np.bitwise_or.reduce(x, axis=axes) if axes else x,
    "reduce_xor": lambda x, axes: np.bitwise_xor.reduce(x, axis=axes) if axes else x,
}


@ENGINE
@SYMBOLIC
@pytest.mark.parametrize("dtype", [*MAIN, np.int8, np.uint16, np.uint64, np.float16, np.complex64, np.complex128])
def test_reductions(engine, symbolic, dtype):
    skip_without_code(engine, dtype)
    rng = np.random.default_rng(11)
    batch = Batch(symbolic)
    for shape in SHAPES:
        x = random_array(rng, dtype, shape)
        name = batch.param(x)
        for op, function in REDUCTIONS.items():
            bits = op in ("reduce_and", "reduce_or", "reduce_xor")
            if (bits and x.dtype.kind in "fc") or (x.dtype.kind == "c" and op in ("reduce_max", "reduce_min")):
                continue
            for axes in subsets(x.ndim):
                terms = int(np.prod([x.shape[axis] for axis in axes]))
                tolerance = sum_error(x, axes, terms) if op == "reduce_sum" else Tolerance()
                if op == "reduce_prod" and x.dtype.kind in "fc":
                    tolerance = Tolerance(ulps=2 + terms)
                result = batch.node(op, name, attributes=f"axes={ints(axes)}")
                want = np.asarray(function(x, axes), dtype=x.dtype)
                batch.expect(f"{op} {x.dtype}{shape} over {axes}", result, want, tolerance)
    batch.check(engine)


@ENGINE
def test_extremes_of_nan_and_ties(engine):
    batch = Batch()
    x = np.array([[1, 3, 3, np.nan], [np.nan, 5, np.nan, 7], [2, 2, 2, 2], [-np.inf, np.inf, np.inf, -np.inf]])
    for dtype in (np.float32, np.float64):
        y = x.astype(dtype)
        for axis in (0, 1):
            axes = ints([axis])
            batch.expect(f"max {axis}", batch.node("reduce_max", y, attributes=f"axes={axes}"), np.max(y, axis=axis))
            batch.expect(f"min {axis}", batch.node("reduce_min", y, attributes=f"axes={axes}"), np.min(y, axis=axis))
            most = batch.node("argmax", y, attributes=f"axis={axis}")
            least = batch.node("argmin", y, attributes=f"axis={axis}")
            batch.expect(f"argmax {axis}", most, np.argmax(y, axis=axis))
            batch.expect(f"argmin {axis}", least, np.argmin(y, axis=axis))
    batch.check(engine)


@ENGINE
@SYMBOLIC
@pytest.mark.parametrize("dtype", [*MAIN, np.int8, np.uint64, np.float16])
def test_arguments_of_extremes(engine, symbolic, dtype):
    skip_without_code(engine, dtype)
    rng = np.random.default_rng(12)
    batch = Batch(symbolic)
    for shape in [(7,), (3, 4, 5), (2, 1, 6), (0, 4), (40, 3)]:
        x = random_array(rng, dtype, shape)
        for axis in range(x.ndim):
            if shape[axis] > 0:
                most = batch.node("argmax", x, attributes=f"axis={axis}")
                least = batch.node("argmin", x, attributes=f"axis={axis}")
                batch.expect(f"argmax {shape} {axis}", most, np.argmax(x, axis=axis))
                batch.expect(f"argmin {shape} {axis}", least, np.argmin(x, axis=axis))
    batch.check(engine)


@ENGINE
@SYMBOLIC
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32, np.int64, np.uint8, np.complex128])
def test_scans(engine, symbolic, dtype):
    skip_without_code(engine, dtype)
    rng = np.random.default_rng(13)
    batch = Batch(symbolic)
    for shape in SHAPES:
        x = random_array(rng, dtype, shape)
        name = batch.param(x)
        for axis in range(x.ndim):
            terms = shape[axis]
            sizes = np.cumsum(np.abs(wide(x)), axis=axis).astype(np.longdouble)
            loose = x.dtype.kind in "fc"
            eps = np.finfo(x.dtype).eps if loose else 0
            total = np.cumsum(wide(x), axis=axis, dtype=wide(x).dtype).astype(x.dtype)
            product = np.cumprod(wide(x), axis=axis, dtype=wide(x).dtype).astype(x.dtype)
            sums = Tolerance(ulps=2, absolute=eps * sizes * (2 + np.sqrt(terms))) if loose else Tolerance()
            products = Tolerance(ulps=2 + terms) if loose else Tolerance()
            running = batch.node("cumsum", name, attributes=f"axis={axis}")
            batch.expect(f"cumsum {shape} {axis}", running, total, sums)
            running = batch.node("cumprod", name, attributes=f"axis={axis}")
            batch.expect(f"cumprod {shape} {axis}", running, product, products)
    batch.check(engine)


# --- contractions

# einsum, and the same as attributes of dot_general
CONTRACTIONS = [
    ("ij,jk->ik", "contract=[1,0]", (3, 4), (4, 5)),
    ("ij,kj->ik", "contract=[1,1]", (3, 4), (5, 4)),
    ("ji,jk->ik", "contract=[0,0]", (4, 3), (4, 5)),
    ("ij,j->i", "contract=[1,0]", (3, 4), (4,)),
    ("i,i->", "contract=[0,0]", (6,), (6,)),
    ("i,j->ij", "contract=[]", (3,), (4,)),
    (",->", "contract=[]", (), ()),
    ("bij,bjk->bik", "contract=[2,1], batch=[0,0]", (2, 3, 4), (2, 4, 5)),
    ("bhij,bhkj->bhik", "contract=[3,3], batch=[0,0,1,1]", (2, 2, 3, 4), (2, 2, 5, 4)),
    ("ibj,jbk->bik", "contract=[2,0], batch=[1,1]", (3, 2, 4), (4, 2, 5)),
    ("ijk,kjl->il", "contract=[1,1,2,0]", (3, 4, 5), (5, 4, 2)),
    ("bi,bi->b", "contract=[1,1], batch=[0,0]", (3, 4), (3, 4)),
    ("bi,bi->bi", "contract=[], batch=[0,0,1,1]", (3, 4), (3, 4)),
    ("ij,jk->ik", "contract=[1,0]", (3, 0), (0, 5)),
    ("ij,jk->ik", "contract=[1,0]", (0, 4), (4, 5)),
    ("ij,jk->ik", "contract=[1,0]", (1, 17), (17, 33)),
    ("ij,kj->ik", "contract=[1,1]", (65, 70), (33, 70)),
]


def contracted(formula, a, b):
    if a.dtype == np.bool_:
        return np.einsum(formula, a.astype(np.int64), b.astype(np.int64)) != 0
    return np.einsum(formula, wide(a), wide(b)).astype(a.dtype)


@ENGINE
@SYMBOLIC
@pytest.mark.parametrize("dtype", [*MAIN, np.int8, np.uint64, np.float16, np.complex64, np.complex128])
def test_contractions(engine, symbolic, dtype):
    skip_without_code(engine, dtype)
    rng = np.random.default_rng(14)
    batch = Batch(symbolic)
    for formula, attributes, left, right in CONTRACTIONS:
        a, b = random_array(rng, dtype, left), random_array(rng, dtype, right)
        tolerance = Tolerance()
        if a.dtype.kind in "fc":
            terms = max(1, a.size * b.size // max(1, np.einsum(formula, abs(a), abs(b)).size))
            sizes = np.einsum(formula, np.abs(wide(a)), np.abs(wide(b))).astype(np.longdouble)
            tolerance = Tolerance(ulps=2, absolute=np.finfo(dtype).eps * sizes * (2 + np.sqrt(terms)))
        result = batch.node("dot_general", a, b, attributes=attributes)
        batch.expect(f"{formula} {left} {right}", result, contracted(formula, a, b), tolerance)
    batch.check(engine)


# --- views


@ENGINE
@SYMBOLIC
@pytest.mark.parametrize("dtype", [*MAIN, np.int16, np.complex128])
def test_views(engine, symbolic, dtype):
    skip_without_code(engine, dtype)
    rng = np.random.default_rng(15)
    batch = Batch(symbolic)
    for shape in [(7,), (2, 3), (3, 4, 5), (2, 1, 3, 2), (0, 4), (3, 0), ()]:
        x = random_array(rng, dtype, shape)
        name = batch.param(x)
        for perm in itertools.permutations(range(x.ndim)):
            result = batch.node("transpose", name, attributes=f"perm={ints(perm)}")
            batch.expect(f"transpose {shape} {perm}", result, np.transpose(x, perm))
        for axes in subsets(x.ndim):
            result = batch.node("reverse", name, attributes=f"axes={ints(axes)}")
            batch.expect(f"reverse {shape} {axes}", result, np.flip(x, axes))
        for axis in range(x.ndim):
            add_pieces(batch, rng, name, x, axis)
    batch.check(engine)


def add_pieces(batch, rng, name, x, axis):
    """concat, pad and split along an axis; lengths are constants in one case and parameters in another."""
    label = f"{x.dtype}{x.shape} axis {axis}"
    low, high = (int(n) for n in rng.integers(0, 4, 2))
    widths = [(low, high) if k == axis else (0, 0) for k in range(x.ndim)]
    value = random_array(rng, x.dtype, ())
    for make in (batch.number, lambda n: batch.param(np.int64(n))):
        result = batch.node("pad", name, value, make(low), make(high), attributes=f"axis={axis}")
        batch.expect(f"pad {label}", result, np.pad(x, widths, constant_values=value))
        cut = int(rng.integers(0, x.shape[axis] + 1))
        sizes = [make(cut), make(0), make(x.shape[axis] - cut)]
        parts = batch.nodes("split", name, *sizes, attributes=f"axis={axis}", count=3)
        for part, want in zip(parts, np.split(x, [cut, cut], axis=axis)):
            batch.expect(f"split {label} at {cut}", part, want)
    other = random_array(rng, x.dtype, tuple(2 if k == axis else n for k, n in enumerate(x.shape)))
    result = batch.node("concat", name, other, name, attributes=f"axis={axis}")
    batch.expect(f"concat {label}", result, np.concatenate([x, other, x], axis=axis))
    batch.expect(f"concat one {label}", batch.node("concat", name, attributes=f"axis={axis}"), x)


@ENGINE
@SYMBOLIC
def test_slices(engine, symbolic):
    batch = Batch(symbolic)
    x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
    name = batch.param(x)
    cases = [(2, 1, 3, 1), (2, 0, 3, 2), (2, 4, 5, -1), (1, 3, 2, -3), (0, 0, 0, 1), (0, 2, 1, 7), (1, 1, 0, -1)]
    for axis, start, size, step in cases:
        index = [slice(None)] * 3
        index[axis] = [start + k * step for k in range(size)]
        want = x[tuple(index)].reshape([size if k == axis else n for k, n in enumerate(x.shape)])
        for make in (batch.number, lambda n: batch.param(np.int64(n))):
            result = batch.node("slice", name, make(start), make(size), attributes=f"axis={axis}, step={step}")
            batch.expect(f"slice axis {axis} from {start}, {size} by {step}", result, want)
    for start in itertools.product((0, 1), (0, 2), (0, 1, 3)):
        update = -np.ones((2, 2, 2), dtype=np.float32)
        want = x.copy()
        want[tuple(slice(s, s + 2) for s in start)] = update
        result = batch.node("update_slice", name, update, *(batch.param(np.int64(s)) for s in start))
        batch.expect(f"update_slice at {start}", result, want)
    batch.check(engine)


@ENGINE
@SYMBOLIC
def test_reshapes_and_broadcasts(engine, symbolic):
    batch = Batch(symbolic)
    x = np.arange(12, dtype=np.int64).reshape(3, 4)
    for make in (batch.number, lambda n: batch.param(np.int64(n))):
        for shape in [(12,), (2, 6), (4, 3), (1, 12, 1), (2, 3, 2)]:
            result = batch.node("reshape", x, *map(make, shape))
            batch.expect(f"reshape {shape}", result, x.reshape(shape))
        batch.expect("reshape nothing", batch.node("reshape", np.zeros((0, 3)), make(5), make(0)), np.zeros((5, 0)))
        batch.expect("reshape one", batch.node("reshape", np.float64([[2]])), np.float64(2))
        for source in (np.float32(3), np.arange(4.0), np.arange(3.0).reshape(3, 1), np.ones((1, 1, 4))):
            want = np.broadcast_to(source, (2, 3, 4))
            result = batch.node("broadcast", source, make(2), make(3), make(4))
            batch.expect(f"broadcast {source.shape}", result, np.ascontiguousarray(want))
        batch.expect(
            "broadcast to nothing",
            batch.node("broadcast", np.float32(3), make(0), make(2)),
            np.zeros((0, 2), np.float32),
        )
        for dtype in [*INTS, np.float16, np.float32, np.float64]:
            for size in (0, 1, 100):
                result = batch.node("iota", make(size), attributes=f"dtype={DTYPE_NAMES[np.dtype(dtype)]}")
                batch.expect(f"iota {size} {np.dtype(dtype)}", result, np.arange(size).astype(dtype))
    for axis in (0, 1):
        batch.expect(f"dim {axis}", batch.node("dim", x, attributes=f"axis={axis}"), np.int64(x.shape[axis]))
    batch.check(engine)


# --- indexing


def indices_for(rng, length, shape, bounds, dtype=np.int64):
    low, high = (-length, length) if bounds == "raise" else (-3 * length, 3 * length)
    low = low if np.dtype(dtype).kind == "i" else 0
    return rng.integers(low, max(high, low + 1), shape).astype(dtype)


@ENGINE
@SYMBOLIC
@pytest.mark.parametrize("bounds", ["raise", "wrap", "clip"])
def test_gathers(engine, symbolic, bounds):
    rng = np.random.default_rng(16)
    batch = Batch(symbolic)
    for dtype in [*MAIN, np.uint8] + [np.complex64] * has_code(engine, np.complex64):
        x = random_array(rng, dtype, (3, 4, 5))
        name = batch.param(x)
        index_shapes = [(), (6,), (2, 3), (0,)]
        for axis, index_shape, index_dtype in itertools.product(range(3), index_shapes, [np.int64, np.uint8]):
            index = indices_for(rng, x.shape[axis], index_shape, bounds, index_dtype)
            result = batch.node("gather", name, index, attributes=f'axes=[{axis}], bounds="{bounds}"')
            want = np.take(x, index.astype(np.int64), axis=axis, mode=bounds)
            batch.expect(f"gather {x.dtype} {axis} {index_shape} {np.dtype(index_dtype)}", result, want)
        for first in (0, 1):
            pair = [indices_for(rng, x.shape[first + k], (2, 3), bounds) for k in range(2)]
            inside = [resolved(i, x.shape[first + k], bounds) for k, i in enumerate(pair)]
            result = batch.node("gather", name, *pair, attributes=f'axes=[{first},{first + 1}], bounds="{bounds}"')
            want = x[tuple(inside)] if first == 0 else x[:, inside[0], inside[1]]
            batch.expect(f"gather {x.dtype} at {first}, {first + 1}", result, want)
        for axis in range(3):
            shape = tuple(6 if k == axis else n for k, n in enumerate(x.shape))
            index = indices_for(rng, x.shape[axis], shape, bounds)
            result = batch.node("take_along", name, index, attributes=f'axis={axis}, bounds="{bounds}"')
            want = np.take_along_axis(x, resolved(index, x.shape[axis], bounds), axis)
            batch.expect(f"take_along {x.dtype} {axis}", result, want)
    batch.check(engine)


def resolved(index, length, bounds):
    if bounds == "clip":
        return np.clip(index, 0, length - 1)
    return np.mod(index, length)


COMBINE = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


@ENGINE
@SYMBOLIC
@pytest.mark.parametrize("mode", ["set", *COMBINE])
def test_scatters(engine, symbolic, mode):
    rng = np.random.default_rng(17)
    batch = Batch(symbolic)
    for dtype, bounds in itertools.product([*MAIN, np.int8], ["raise", "wrap", "clip"]):
        for axis, count in itertools.product(range(2), (0, 1, 9)):
            x = random_array(rng, dtype, (4, 5))
            index = indices_for(rng, x.shape[axis], (count,), bounds)
            shape = tuple(count if k == axis else n for k, n in enumerate(x.shape))
            updates = random_array(rng, dtype, shape)
            want = wide(x).copy()
            rows, row_updates = np.moveaxis(want, axis, 0), np.moveaxis(wide(updates), axis, 0)
            for at, update in zip(resolved(index, x.shape[axis], bounds), row_updates):
                rows[at] = update if mode == "set" else COMBINE[mode](rows[at], update)
            loose = mode in ("add", "mul") and x.dtype.kind == "f"
            tolerance = Tolerance(ulps=4, absolute=np.finfo(dtype).eps * 40) if loose else Tolerance()
            attributes = f'axes=[{axis}], mode="{mode}", bounds="{bounds}"'
            result = batch.node("scatter", x, updates, index, attributes=attributes)
            batch.expect(f"scatter {mode} {x.dtype} {axis} {count} {bounds}", result, want.astype(dtype), tolerance)
    x = np.zeros((3, 4))
    rows, columns = np.array([0, 2, 0]), np.array([1, -1, 1])
    if mode == "add":
        np.add.at(x, (rows, columns), [1, 2, 4])
        result = batch.node(
            "scatter", np.zeros((3, 4)), np.array([1.0, 2, 4]), rows, columns, attributes='axes=[0,1], mode="add"'
        )
        batch.expect("scatter at pairs", result, x)
    batch.check(engine)


# --- control


@ENGINE
@pytest.mark.parametrize("steps", [0, 1, 5])
def test_loop(engine, steps):
    """Running products as carried values, and every step stacked."""
    text = """func @main(%n: i64[], %x: f64[k], %r: f64[k]) {
  %last, %all, %i = loop(%n, %x, %r) {carried=1} do (%i: i64[], %c: f64[k], %m: f64[k]) {
    %p = mul(%c, %m)
    %s = reduce_sum(%p) {axes=[0]}
    return %p, %s, %i
  }
  return %last, %all, %i
}
"""
    x, ratio = np.array([1.0, 2.0, 4.0]), np.array([2.0, 0.5, -1.0])
    last, sums, counted = evaluate(text, [np.int64(steps), x, ratio], engine)
    states = [x * ratio ** (k + 1) for k in range(steps)]
    np.testing.assert_array_equal(last, states[-1] if states else x)
    np.testing.assert_array_equal(sums, np.array([state.sum() for state in states]))
    np.testing.assert_array_equal(counted, np.arange(steps))


@ENGINE
@pytest.mark.parametrize("limit, steps", [(3.0, 2), (100.0, 6), (-1.0, 1)])
def test_while(engine, limit, steps):
    """The step whose condition turns false is kept; stacked values are cut to the steps run."""
    text = """func @main(%n: i64[], %x: f64[], %limit: f64[]) {
  %last, %all = loop(%n, %x, %limit) {carried=1, while=1} do (%i: i64[], %c: f64[], %limit: f64[]) {
    %next = add(%c, %c)
    %go = lt(%next, %limit)
    return %next, %next, %go
  }
  return %last, %all
}
"""
    last, every = evaluate(text, [np.int64(6), np.float64(1), np.float64(limit)], engine)
    np.testing.assert_array_equal(every, 2.0 ** np.arange(1, steps + 1))
    np.testing.assert_array_equal(last, 2.0**steps)


@ENGINE
@pytest.mark.parametrize("condition", [False, True])
def test_if_and_call(engine, condition):
    text = """func @main(%c: bool[], %x: f32[n]) {
  %y = if(%c, %x) then (%x: f32[n]) {
    %y = neg(%x)
    return %y
  } else (%x: f32[n]) {
    %y = exp(%x)
    return %y
  }
  %z = call(%y) {callee="twice"} : f32[n]
  return %z
}
func @twice(%x: f32[k]) {
  %y = add(%x, %x)
  return %y
}
"""
    x = np.array([0.5, -1, 2], dtype=np.float32)
    (z,) = evaluate(text, [np.bool_(condition), x], engine)
    np.testing.assert_allclose(z, 2 * (-x if condition else np.exp(x)), rtol=1e-6)


# --- errors of a run

ERRORS = [
    ("%r = gather(%x, %i) {axes=[0]}", [np.zeros(3), np.array([1, 3])], ["gather", "index 3", "axis 0", "length 3"]),
    ("%r = gather(%x, %i) {axes=[0]}", [np.zeros(3), np.array([-4])], ["gather", "index -4", "length 3"]),
    ("%r = gather(%x, %i) {axes=[0]}", [np.zeros(0), np.array([0])], ["gather", "index 0", "length 0"]),
    ('%r = gather(%x, %i) {axes=[0], bounds="wrap"}', [np.zeros(0), np.array([0])], ["gather", "length 0"]),
    ("%r = take_along(%x, %i) {axis=0}", [np.zeros(3), np.array([0, 3])], ["take_along", "index 3"]),
    ('%r = scatter(%x, %x, %i) {axes=[0], mode="add"}', [np.zeros(2), np.array([0, 2])], ["scatter", "index 2"]),
    ("%r = add(%x, %i)", [np.zeros(3), np.zeros(4)], ["add", "3", "4"]),
    ("%r = reshape(%x, %i)", [np.zeros(6), np.int64(5)], ["reshape", "6", "5"]),
    ("%r = reshape(%x, %i)", [np.zeros(6), np.int64(-6)], ["reshape", "-6"]),
    ("%r = broadcast(%x, %i)", [np.zeros(6), np.int64(5)], ["broadcast", "6", "5"]),
    ("%r = slice(%x, %i, %i) {axis=0}", [np.zeros(5), np.int64(3)], ["slice", "3"]),
    ("%r = slice(%x, %i, %i) {axis=0}", [np.zeros(5), np.int64(-1)], ["slice", "-1"]),
    ("%r, %s = split(%x, %i, %i) {axis=0}", [np.zeros(5), np.int64(2)], ["split", "5"]),
    ("%r = iota(%i) {dtype=f32}\n  %s = neg(%x)", [np.zeros(5), np.int64(-1)], ["iota", "-1"]),
    ("%r = update_slice(%x, %x, %i)", [np.zeros(5), np.int64(1)], ["update_slice", "1"]),
    ("%r = argmax(%x) {axis=0}\n  %s = neg(%i)", [np.zeros(0), np.int64(1)], ["argmax"]),
    ("%r = dot_general(%x, %i) {contract=[0,0]}", [np.zeros(2), np.zeros(3)], ["dot_general", "2", "3"]),
    ('%c = lt(%x, %i)\n  %r = assert(%x, %c) {message="x is below i"}', [np.ones(2), np.ones(2)], ["x is below i"]),
]


@ENGINE
@pytest.mark.parametrize("body, arrays, words", ERRORS, ids=[body.split(" {")[0].strip() for body, _, _ in ERRORS])
def test_errors(engine, body, arrays, words):
    """Wrong lengths and indices end the run with a message that names op and numbers."""
    types = [f"{DTYPE_NAMES[array.dtype]}[{name if array.ndim else ''}]" for name, array in zip("nm", arrays)]
    outputs = "%r, %s" if "%s" in body else "%r"
    text = f"func @main(%x: {types[0]}, %i: {types[1]}) {{\n  {body}\n  return {outputs}\n}}\n"
    message = failure(text, arrays, engine)
    for word in words:
        assert word in message, message


@ENGINE
def test_symbols_must_agree(engine):
    message = failure(
        "func @main(%x: f64[n], %y: f64[n]) { %z = add(%x, %y) return %z }", [np.zeros(2), np.zeros(3)], engine
    )
    assert "2" in message and "3" in message
