"""NumPy as the third witness, sorting and searching: sort, argsort, topk, searchsorted, nonzero, unique, bincount.

See test_numpy_oracle.py for the engines, test_numpy_oracle_tensors.py for the other ops on whole tensors.
"""

import numpy as np
import pytest
from oracle.batch import Batch, engines, needs_program
from oracle.compare import Tolerance

pytestmark = needs_program

ENGINE = pytest.mark.parametrize("engine", engines())
SYMBOLIC = pytest.mark.parametrize("symbolic", [False, True], ids=["static", "symbolic"])
INTS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
FLOATS = [np.float16, np.float32, np.float64]
DTYPES = pytest.mark.parametrize("dtype", [np.bool_, *INTS, *FLOATS])
SHAPES = [(7,), (3, 4, 5), (2, 1, 6), (0, 4), (3, 0), (1, 1), (300, 3), (3, 1100), (2, 70, 9)]


def few_values(rng, dtype, shape):
    """Elements with many ties; floats with NaN, infinities and both zeros among them."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind == "f":
        values = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 2.5, 1e-4, -7.0]
        return rng.choice(np.array(values, dtype=dtype), shape)
    info = np.iinfo(dtype)
    return rng.choice(np.array([info.min, info.max, 0, 1, 2, 3, 5], dtype=dtype), shape)


def any_values(rng, dtype, shape):
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind == "f":
        return (rng.standard_normal(shape) * 10.0 ** rng.integers(-3, 4, shape)).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)


def descending_order(x, axis):
    """Positions of a stable sort that has the largest first, NaN before all."""
    last = x.shape[axis] - 1
    turned = np.argsort(np.flip(x, axis), axis=axis, kind="stable")
    return np.flip(last - turned, axis)


@ENGINE
@SYMBOLIC
@DTYPES
def test_sorting(engine, symbolic, dtype):
    rng = np.random.default_rng(31)
    batch = Batch(symbolic)
    for shape in SHAPES:
        for draw in (few_values, any_values):
            x = draw(rng, dtype, shape)
            name = batch.param(x)
            for axis in range(x.ndim):
                order = np.argsort(x, axis=axis, kind="stable")
                back = descending_order(x, axis)
                label = f"{x.dtype}{shape} along {axis}"
                up, down = f"axis={axis}", f"axis={axis}, descending=1"
                batch.expect(f"sort {label}", batch.node("sort", name, attributes=up), np.sort(x, axis, kind="stable"))
                batch.expect(f"argsort {label}", batch.node("argsort", name, attributes=up), order)
                sorted_down = np.take_along_axis(x, back, axis)
                batch.expect(f"sort down {label}", batch.node("sort", name, attributes=down), sorted_down)
                batch.expect(f"argsort down {label}", batch.node("argsort", name, attributes=down), back)
    batch.check(engine)


@ENGINE
@SYMBOLIC
@DTYPES
def test_largest(engine, symbolic, dtype):
    rng = np.random.default_rng(32)
    batch = Batch(symbolic)
    for shape in [(7,), (3, 4, 5), (0, 4), (300, 3), (3, 1100)]:
        x = few_values(rng, dtype, shape)
        name = batch.param(x)
        for axis in range(x.ndim):
            for k in sorted({0, 1, min(3, shape[axis]), shape[axis]} & set(range(shape[axis] + 1))):
                count = batch.param(np.int64(k)) if symbolic else batch.number(k)
                values, positions = batch.nodes("topk", name, count, attributes=f"axis={axis}", count=2)
                order = np.take(descending_order(x, axis), np.arange(k), axis)
                label = f"{k} largest of {x.dtype}{shape} along {axis}"
                batch.expect(label, values, np.take_along_axis(x, order, axis))
                batch.expect(f"positions, {label}", positions, order)
    batch.check(engine)


@ENGINE
@SYMBOLIC
@DTYPES
def test_searching(engine, symbolic, dtype):
    rng = np.random.default_rng(33)
    batch = Batch(symbolic)
    for length in (0, 1, 2, 7, 500):
        for draw in (few_values, any_values):
            table = np.sort(draw(rng, dtype, length))
            mixed = rng.permutation(table)
            sorter = np.argsort(mixed, kind="stable").astype(rng.choice([np.int32, np.int64]))
            for shape in [(), (9,), (3, 4), (0,), (2, 1500)]:
                values = np.concatenate([draw(rng, dtype, 100), table])
                values = rng.choice(values, shape)
                for side in ("left", "right"):
                    want = np.searchsorted(table, values, side=side)
                    attributes = f'side="{side}"'
                    label = f"{side} of {values.dtype}{shape} in {length}"
                    batch.expect(label, batch.node("searchsorted", table, values, attributes=attributes), want)
                    found = batch.node("searchsorted", mixed, values, sorter, attributes=attributes)
                    batch.expect(f"{label} by a sorter", found, np.searchsorted(mixed, values, side, sorter))
    batch.check(engine)


@ENGINE
@SYMBOLIC
@DTYPES
def test_what_is_not_zero(engine, symbolic, dtype):
    rng = np.random.default_rng(34)
    batch = Batch(symbolic)
    for shape in [(9,), (3, 4), (2, 3, 5), (0,), (3, 0), (0, 2, 1), (1,), (400, 3)]:
        x = few_values(rng, dtype, shape)
        for k, (index, name) in enumerate(zip(np.nonzero(x), batch.nodes("nonzero", x, count=x.ndim))):
            batch.expect(f"axis {k} of nonzero {x.dtype}{shape}", name, index)
    batch.check(engine)


@ENGINE
@SYMBOLIC
@DTYPES
def test_distinct(engine, symbolic, dtype):
    rng = np.random.default_rng(35)
    batch = Batch(symbolic)
    for shape in [(), (9,), (3, 4), (2, 3, 5), (0,), (3, 0), (700,)]:
        x = few_values(rng, dtype, shape)
        values, *others = np.unique(x, return_index=True, return_inverse=True, return_counts=True)
        names = batch.nodes("unique", x, count=4)
        label = f"unique {x.dtype}{shape}"
        # NumPy leaves open which of two equal zeros stays; here the first one does.
        batch.expect(f"values of {label}", names[0], x.ravel()[others[0]])
        for part, name, want in zip(("index", "inverse", "counts"), names[1:], others):
            batch.expect(f"{part} of {label}", name, want.reshape(x.shape) if part == "inverse" else want)
        assert np.array_equal(values, x.ravel()[others[0]], equal_nan=x.dtype.kind == "f")
    batch.check(engine)


@ENGINE
@SYMBOLIC
@pytest.mark.parametrize("dtype", [np.bool_, np.int32, np.uint8, np.float32, np.float64])
def test_distinct_slices(engine, symbolic, dtype):
    rng = np.random.default_rng(36)
    batch = Batch(symbolic)
    for shape in [(9,), (8, 2), (2, 3, 5), (0, 3), (3, 0), (200, 2)]:
        x = np.where(rng.random(shape) < 0.7, np.ones(shape, dtype), few_values(rng, dtype, shape))
        for axis in range(x.ndim):
            _, *others = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=axis)
            names = batch.nodes("unique", x, attributes=f"axis={axis}", count=4)
            label = f"unique {x.dtype}{shape} along {axis}"
            batch.expect(f"values of {label}", names[0], np.take(x, others[0], axis))
            for part, name, want in zip(("index", "inverse", "counts"), names[1:], others):
                batch.expect(f"{part} of {label}", name, want.reshape(-1))
    batch.check(engine)


@ENGINE
@SYMBOLIC
@pytest.mark.parametrize("dtype", INTS)
def test_counting(engine, symbolic, dtype):
    rng = np.random.default_rng(37)
    batch = Batch(symbolic)
    for length in (0, 1, 5, 3000):
        x = rng.integers(0, 100, length, dtype=dtype)
        weights = rng.standard_normal(length)
        for least in (0, 3, 150):
            number = batch.param(np.int64(least)) if symbolic else batch.number(least)
            numpy_x = x.astype(np.int64)
            label = f"{length} of {x.dtype}, at least {least}"
            batch.expect(f"counts of {label}", batch.node("bincount", x, number), np.bincount(numpy_x, None, least))
            sums = np.bincount(numpy_x, weights, least).astype(np.float64)  # NumPy forgets the weights of nothing
            near = Tolerance(absolute=1e-12)
            batch.expect(f"sums of {label}", batch.node("bincount", x, number, weights), sums, near)
    batch.check(engine)
