"""Blockwise and convolutions against PyTensor's Python code."""

import numpy as np
import pytest
from against_py import compare, raises, values

pytensor = pytest.importorskip("pytensor")
import pytensor.tensor as pt  # noqa: E402
from pytensor.compile.builders import OpFromGraph  # noqa: E402
from pytensor.tensor.blockwise import Blockwise  # noqa: E402
from pytensor.tensor.extra_ops import CumOp  # noqa: E402
from pytensor.tensor.signal import convolve1d, convolve2d  # noqa: E402
from pytensor.tensor.sort import SortOp  # noqa: E402


# --- Blockwise
def weighted():
    a, b = pt.vector("a"), pt.matrix("b")
    return OpFromGraph([a, b], [pt.tanh(b @ a), (a * 2)[::-1], a.sum() + b.sum()])


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((), ()),
        ((4,), (4,)),
        ((1,), (4,)),
        ((4,), (1,)),
        ((2, 3), (2, 3)),
        ((2, 1), (1, 3)),
        ((1, 1), (1, 1)),
        ((0,), (0,)),
        ((3,), ()),
    ],
)
def test_any_core(left, right):
    def variable(shape, core):
        return pt.tensor(dtype="float64", shape=(*(1 if n == 1 else None for n in shape), *[None] * core))

    a, b = variable(left, 1), variable(right, 2)
    outs = Blockwise(weighted(), signature="(n),(m,n)->(m),(n),()")(a, b)
    x, y = values((*left, 3), "float64"), values((*right, 2, 3), "float64", 1)
    if 0 in left:
        # PyTensor has no result here.
        function = pytensor.function([a, b], outs, mode="EMBER")
        assert [out.shape for out in function(x, y)] == [(0, 2), (0, 3), (0,)]
    else:
        compare([a, b], outs, [x, y], rtol=1e-6)


def test_batches_that_differ():
    a, b = pt.matrix("a"), pt.tensor3("b")
    outs = Blockwise(weighted(), signature="(n),(m,n)->(m),(n),()")(a, b)
    raises(ValueError, [a, b], outs, values((2, 3), "float64"), values((3, 2, 3), "float64"))
    raises(ValueError, [a, b], outs, values((1, 3), "float64"), values((3, 2, 3), "float64"))


@pytest.mark.parametrize("op", [CumOp(axis=0, mode="add"), SortOp("quicksort", 0)])
def test_simple_cores(op):
    x = pt.tensor3("x")
    compare([x], Blockwise(op, signature="(n)->(n)")(x), [values((2, 3, 4), "float64")])


def test_lengths_that_only_the_core_knows():
    x, n = pt.matrix("x"), pt.scalar("n", dtype="int64")
    a, k = pt.vector("a"), pt.scalar("k", dtype="int64")
    op = OpFromGraph([a, k], [pt.concatenate([a, pt.arange(k).astype("float64")])])
    out = Blockwise(op, signature="(n),()->(m)")(x, n)
    compare([x, n], out, [values((2, 3), "float64"), np.array(4)])


def test_cores_that_are_not_translated_run_as_a_whole():
    x = pt.tensor3("x")

    class Twice(pytensor.graph.op.Op):
        gufunc_signature = "(n)->(n)"

        def make_node(self, x):
            return pytensor.graph.basic.Apply(self, [x], [x.type()])

        def perform(self, node, inputs, outputs):
            outputs[0][0] = inputs[0] * 2

    compare([x], Blockwise(Twice())(x), [values((2, 3, 4), "float64")], host=["Blockwise"])


# --- convolutions
@pytest.mark.parametrize("mode", ["full", "valid", "same"])
@pytest.mark.parametrize("lengths", [(7, 3), (3, 7), (4, 4), (1, 1), (5, 1)])
@pytest.mark.parametrize("dtype", ["int16", "float32", "float64"])
def test_convolve1d(mode, lengths, dtype):
    x, kernel = pt.vector("x", dtype=dtype), pt.vector("kernel", dtype=dtype)
    arguments = [values((n,), dtype, n) for n in lengths]
    compare([x, kernel], convolve1d(x, kernel, mode=mode), arguments, rtol=1e-5)


def test_convolve1d_of_batches_and_its_gradient():
    x, kernel = pt.matrix("x"), pt.vector("kernel")
    arguments = [values((3, 8), "float64"), values((3,), "float64", 1)]
    for mode in ("full", "valid", "same"):
        out = convolve1d(x, kernel, mode=mode)
        compare([x, kernel], [out, *pytensor.grad(pt.sqr(out).sum(), [x, kernel])], arguments, rtol=1e-6)


def test_convolve1d_of_nothing():
    x, kernel = pt.vector("x"), pt.vector("kernel")
    raises(ValueError, [x, kernel], convolve1d(x, kernel), np.zeros(0), np.ones(3))
    raises(ValueError, [x, kernel], convolve1d(x, kernel), np.ones(3), np.zeros(0))


@pytest.mark.parametrize("mode", ["full", "valid", "same"])
@pytest.mark.parametrize("shapes", [((5, 6), (2, 3)), ((2, 3), (5, 6)), ((4, 4), (4, 1)), ((3, 5, 6), (3, 2, 2))])
def test_convolve2d(mode, shapes):
    x, kernel = (pt.tensor(dtype="float64", shape=(None,) * len(shape)) for shape in shapes)
    arguments = [values(shape, "float64", k) for k, shape in enumerate(shapes)]
    compare([x, kernel], convolve2d(x, kernel, mode=mode, method="direct"), arguments, rtol=1e-6)


def test_convolve2d_where_none_covers_the_other():
    x, kernel = pt.matrix("x"), pt.matrix("kernel")
    out = convolve2d(x, kernel, mode="valid", method="direct")
    raises(ValueError, [x, kernel], out, np.ones((2, 5)), np.ones((3, 3)))
