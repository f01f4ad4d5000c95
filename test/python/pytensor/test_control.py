"""Ops with inner graphs that run once, branches and scalar loops, against PyTensor's Python code."""

import numpy as np
import pytest
from against_py import compare, raises, values

pytensor = pytest.importorskip("pytensor")
import pytensor.scalar as ps  # noqa: E402
import pytensor.tensor as pt  # noqa: E402
from pytensor.compile.builders import OpFromGraph  # noqa: E402
from pytensor.conditional import ifelse  # noqa: E402
from pytensor.raise_op import Assert  # noqa: E402
from pytensor.scalar.loop import ScalarLoop  # noqa: E402
from pytensor.tensor.elemwise import Elemwise  # noqa: E402


# --- inner graphs
def test_op_from_graph():
    x, y = pt.matrix("x"), pt.vector("y")
    inner = OpFromGraph([x, y], [x + y, (x * y).sum(axis=1)])
    outer = OpFromGraph([x, y], [inner(x, y)[1] * 2, inner(x + 1, y)[0]])
    compare([x, y], [*outer(x, y), *inner(x, y)], [values((3, 4), "float64"), values((4,), "float64", 1)], rtol=1e-6)


def test_the_same_inner_graph_with_a_large_constant():
    x = pt.vector("x")
    inner = OpFromGraph([x], [x + pt.constant(np.arange(100.0))])
    compare([x], inner(inner(x)), [np.ones(100)])


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_softmax_and_kin(axis, dtype):
    x = pt.matrix("x", dtype=dtype)
    outs = [pt.special.softmax(x, axis=axis), pt.special.log_softmax(x, axis=axis), pt.logsumexp(x, axis=axis)]
    compare([x], outs, [values((3, 5), dtype)], [values((1, 1), dtype)], rtol=1e-5)
    weighted = (outs[0] * x * x + outs[1] * x).sum() + outs[2].sum() * 3
    compare([x], pytensor.grad(weighted, x), [values((3, 5), dtype)], rtol=1e-4)


def test_xlogy():
    x, y = pt.vector("x"), pt.vector("y")
    compare([x, y], [pt.special.xlogy(x, y), pt.special.xlog1py(x, y)], [np.array([0.0, 1, 2]), np.array([0.0, 2, 3])])


# --- branches
CONDITIONS = [np.array(True), np.array(False)]


def calls(*arguments):
    return [[condition, *arguments] for condition in CONDITIONS]


def both_ways(inputs, outputs, expected, *arguments):
    """PyTensor's Python linker cannot run IfElse: what each way gives is stated."""
    function = pytensor.function(inputs, outputs, mode="EMBER")
    assert not function.ember.report()
    for condition, right in zip(CONDITIONS, expected(*arguments), strict=True):
        mine = function(condition, *arguments)
        for a, b in zip(mine, right, strict=True):
            assert a.shape == np.shape(b) and a.dtype == np.asarray(b).dtype
            np.testing.assert_allclose(a, b)


@pytest.fixture(name="c")
def condition():
    return pt.scalar("c", dtype="bool")


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float32", "float64"])
def test_branches_of_all_dtypes(c, dtype):
    x, y = pt.vector("x", dtype=dtype), pt.vector("y", dtype=dtype)
    a, b = values((3,), dtype), values((5,), dtype, 1)
    both_ways([c, x, y], [ifelse(c, x, y)], lambda a, b: [[a], [b]], a, b)


def test_only_one_branch_runs(c):
    x = pt.vector("x")
    out = ifelse(c, Assert("not this way")(x, pt.constant(False)) * 2, x + 1)
    function = pytensor.function([c, x], out, mode="EMBER")
    np.testing.assert_allclose(function(CONDITIONS[1], np.ones(3)), np.full(3, 2.0))
    with pytest.raises(AssertionError, match="not this way"):
        function(CONDITIONS[0], np.ones(3))


def test_what_both_need_is_shared(c):
    x = pt.vector("x")
    y = pt.exp(x)

    def right(a):
        e = np.exp(a)
        return [[e + 1, a, e], [e * 2, e, e]]

    both_ways([c, x], [*ifelse(c, [y + 1, x], [y * 2, y]), y], right, np.arange(4.0))


def test_an_output_that_also_a_branch_needs(c):
    x = pt.vector("x")
    y = pt.exp(x) + 1
    both_ways(
        [c, x],
        [ifelse(c, y * 2, x), y],
        lambda a: [[(np.exp(a) + 1) * 2, np.exp(a) + 1], [a, np.exp(a) + 1]],
        np.arange(4.0),
    )


def test_lengths_that_only_a_branch_knows(c):
    x, n = pt.vector("x"), pt.scalar("n", dtype="int64")
    out = ifelse(c, pt.concatenate([x, x, pt.arange(n).astype("float64")]), x[1:])
    both_ways(
        [c, x, n],
        [out * 2],
        lambda a, n: [[np.concatenate([a, a, np.arange(n)]) * 2], [a[1:] * 2]],
        np.arange(4.0),
        np.array(3),
    )


def test_branches_in_branches(c):
    d = pt.scalar("d", dtype="bool")
    x = pt.vector("x")
    inner = ifelse(d, pt.sin(x), Assert("never")(x, pt.constant(False)))
    function = pytensor.function([c, d, x], ifelse(c, inner + pt.cos(x), inner * 3), mode="EMBER")
    a = np.arange(3.0)
    np.testing.assert_allclose(function(True, True, a), np.sin(a) + np.cos(a))
    np.testing.assert_allclose(function(False, True, a), np.sin(a) * 3)
    with pytest.raises(AssertionError, match="never"):
        function(True, False, a)
    function = pytensor.function([c, d, x], ifelse(c, inner, x * 3), mode="EMBER")
    np.testing.assert_allclose(function(False, False, a), a * 3)


def test_large_constants_in_branches(c):
    x = pt.vector("x")
    one, other = pt.constant(np.arange(50.0)), pt.constant(np.arange(50.0) ** 2)
    both_ways(
        [c, x],
        [ifelse(c, x + one, x * other + one)],
        lambda a: [[a + np.arange(50.0)], [a * np.arange(50.0) ** 2 + np.arange(50.0)]],
        np.ones(50),
    )


def test_generators_of_branches(c):
    rng = pytensor.shared(np.random.default_rng(1))
    x = pt.vector("x")
    _, draw = pt.random.normal(rng=rng, size=(3,)).owner.outputs
    function = pytensor.function([c, x], ifelse(c, draw, x), mode="EMBER")
    np.testing.assert_allclose(function(False, np.ones(3)), np.ones(3))
    np.testing.assert_allclose(function(True, np.ones(3)), np.random.default_rng(1).normal(size=3))


def test_gradient_of_a_branch(c):
    x = pt.vector("x")
    gradient = pytensor.grad(ifelse(c, pt.sqr(x), pt.exp(x)).sum(), x)
    both_ways([c, x], [gradient], lambda a: [[2 * a], [np.exp(a)]], np.arange(4.0))


# --- scalar loops
def test_scalar_loop():
    n, x, k = ps.int64("n"), ps.float64("x"), ps.float64("k")
    op = ScalarLoop(init=[x], update=[x * k + 1], constant=[k])
    count, start = pt.vector("count", dtype="int64"), pt.matrix("start")
    factor = pt.scalar("factor")
    out = Elemwise(op)(count, start, factor)
    arguments = [np.array([0, 3, 1, 7]), values((2, 4), "float64"), np.array(0.5)]
    compare([count, start, factor], out, arguments)
    raises(ValueError, [count, start, factor], out, np.array([0, -3, 1, 7]), *arguments[1:])
    scalar_out = op(n, x, k)
    assert scalar_out.type.dtype == "float64"


def test_scalar_loop_until():
    x, k = ps.float64("x"), ps.float64("k")
    op = ScalarLoop(init=[x], update=[x * k + 1], constant=[k], until=ps.gt(x, 3.0))
    count, start, factor = pt.vector("count", dtype="int64"), pt.vector("start"), pt.vector("factor")
    outs = Elemwise(op)(count, start, factor)
    arguments = [np.array([0, 30, 1, 7]), np.array([5.0, 0, 1, 9]), np.array([1.0, 2, 3, 0.5])]
    compare([count, start, factor], outs, arguments, [np.zeros(0, "int64"), np.zeros(0), np.zeros(0)])
