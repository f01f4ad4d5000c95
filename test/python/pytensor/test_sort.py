"""Sorting against PyTensor's Python code."""

import numpy as np
import pytest
from against_py import compare, values

pytensor = pytest.importorskip("pytensor")
import pytensor.tensor as pt  # noqa: E402

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("kind", ["quicksort", "stable"])
def test_sort(dtype, axis, kind):
    x = pt.matrix("x", dtype=dtype)
    outs = [pt.sort(x, axis, kind=kind), pt.argsort(x, axis, kind="stable")]
    compare([x], outs, *([values(shape, dtype)] for shape in [(3, 7), (0, 3), (2, 0), (1, 1), (20, 40)]))


def test_nan_is_last():
    x = pt.vector("x")
    outs = [pt.sort(x), pt.argsort(x, kind="stable")]
    compare([x], outs, [np.array([1, np.nan, -np.inf, np.nan, np.inf, -1])])


def test_gradient():
    x = pt.matrix("x")
    gradient = pytensor.grad((pt.sort(x, axis=0) * pt.arange(3)).sum(), x)
    compare([x], gradient, [np.array([[3.0, 1, 2], [0, 5, 4], [1, 9, -1]])])


def test_complex_numbers():
    x = pt.vector("x", dtype="complex128")
    compare([x], pt.sort(x), [np.array([1 + 2j, 1 - 1j, -3])], host=["SortOp"])
