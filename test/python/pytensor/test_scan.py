"""Scan against PyTensor's own Python code: kinds of states, buffers, loops that stop, gradients, errors."""

import time

import numpy as np
import pytest
from against_py import compare, raises, values

pytensor = pytest.importorskip("pytensor")
import pytensor.tensor as pt  # noqa: E402
from pytensor.compile.builders import OpFromGraph  # noqa: E402
from pytensor.scan.op import Scan  # noqa: E402
from pytensor.scan.utils import until  # noqa: E402

DTYPES = ["int8", "int64", "float32", "float64"]


def scan(*args, **kwargs):
    return pytensor.scan(*args, return_updates=False, **kwargs)


def numbers(*shape, seed=0):
    return values(shape, "float64", seed) / 8


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_state(dtype):
    x, h = pt.vector("x", dtype=dtype), pt.scalar("h", dtype=dtype)
    out = scan(lambda x, h: x + h, sequences=x, outputs_info=h)
    compare([x, h], [out, out[-1], out[::2]], [values((5,), dtype), np.asarray(1, dtype)])


@pytest.mark.parametrize("length", [0, 1, 2, 9])
def test_lengths(length):
    x, h = pt.matrix("x"), pt.vector("h")
    outs = scan(lambda x, h: [pt.tanh(x + h), (x * h).sum()], sequences=x, outputs_info=[h, None])
    function = pytensor.function([x, h], outs, mode="EMBER")
    a, b = numbers(length, 3), numbers(3, seed=1)
    states, sums = [], []
    for row in a:
        sums.append((row * b).sum())
        b = np.tanh(row + b)
        states.append(b)
    mine = function(a, numbers(3, seed=1))
    np.testing.assert_allclose(mine[0], np.reshape(states, (length, 3)))
    np.testing.assert_allclose(mine[1], sums)
    assert not function.ember.report()


@pytest.mark.parametrize("taps", [[-1], [-2, -1], [-3], [-3, -1], [-1, -12], [-20, -7, -2]])
@pytest.mark.parametrize("rows", [(), (2,)])
def test_taps(taps, rows):
    start = pt.tensor("start", dtype="float64", shape=(None,) * (1 + len(rows)))
    n = pt.iscalar("n")
    out = scan(lambda *h: sum(h) * 0.5 + 1, outputs_info={"initial": start, "taps": taps}, n_steps=n)
    first = numbers(-min(taps), *rows)
    compare([start, n], [out, out[-1]], [first, np.array(25, "int32")], [first, np.array(1, "int32")])


def test_taps_of_sequences():
    x = pt.vector("x")
    out = scan(lambda a, b, c: a - 2 * b + c, sequences={"input": x, "taps": [-1, 0, 2]})
    compare([x], out, [numbers(9)], [numbers(4)])


def test_backwards_with_two_sequences_of_different_lengths():
    x, y = pt.vector("x"), pt.matrix("y")
    out = scan(lambda x, y, h: h * 0.5 + x * y, sequences=[x, y], outputs_info=pt.zeros(3), go_backwards=True)
    compare([x, y], out, [numbers(5), numbers(7, 3)])


def test_what_does_not_change():
    w, h, n = pt.matrix("w"), pt.vector("h"), pt.scalar("n", dtype="int64")
    big = pt.constant(numbers(40, 40))
    out = scan(lambda h, w: pt.tanh(w @ h) + (big @ h) / 40, outputs_info=h, non_sequences=w, n_steps=n)
    compare([w, h, n], [out, out.shape], [numbers(40, 40), numbers(40), np.array(6)], rtol=1e-6)


@pytest.mark.parametrize("size", [4, 5, 6, 9, 12])
def test_buffers_of_any_length(size):
    """As rewrites leave them: shorter than the steps, or longer."""
    h, n = pt.vector("h"), pt.scalar("n", dtype="int64")
    made = scan(lambda a, b: a - b * 0.5 + 1, outputs_info={"initial": h, "taps": [-4, -1]}, n_steps=n)
    op = made.owner.inputs[0].owner.op
    assert isinstance(op, Scan)
    buffer = pt.vector("buffer")
    out = op(n, buffer)
    for steps in (1, 3, 5):
        compare([n, buffer], out, [np.array(steps), numbers(size)])
    compare([n, buffer], out, [np.array(0), numbers(size)])


@pytest.mark.parametrize("size", [1, 2, 5, 7])
def test_lengths_of_results_without_state(size):
    x = pt.vector("x")
    op = scan(lambda x: pt.exp(x), sequences=x).owner.op
    out = op(pt.constant(np.int64(5)), x, pt.constant(np.int64(size)))
    compare([x], out, [numbers(5)])


# --- loops that stop
@pytest.mark.parametrize("limit", [0.0, 5.0, 1e9])
def test_until(limit):
    h, most = pt.scalar("h"), pt.scalar("most")

    def step(h, most):
        return [h * 2, h + 1], until(h * 2 > most)

    outs = scan(step, outputs_info=[h, None], non_sequences=most, n_steps=12)
    compare([h, most], [*outs, outs[0][-1]], [np.array(1.0), np.array(limit)])


def test_gradient_of_a_loop_that_stops():
    h = pt.scalar("h")
    out = scan(lambda h: (h * 2, until(h > 10)), outputs_info=h, n_steps=50)
    compare([h], pytensor.grad(out[-1], h), [np.array(1.0)])


# --- gradients
@pytest.mark.parametrize("truncate", [-1, 3])
def test_gradients(truncate):
    x, h, w = pt.matrix("x"), pt.vector("h"), pt.matrix("w")
    out = scan(
        lambda x, h, w: pt.tanh(x + h @ w), sequences=x, outputs_info=h, non_sequences=w, truncate_gradient=truncate
    )
    gradients = pytensor.grad(pt.sqr(out).sum(), [x, h, w])
    compare([x, h, w], gradients, [numbers(6, 3), numbers(3, seed=1), numbers(3, 3, seed=2)], rtol=1e-6)


@pytest.mark.parametrize("taps", [[-2, -1], [-1, -11]])
def test_gradients_of_taps(taps):
    start = pt.vector("start")
    out = scan(lambda a, b: pt.sin(a) * b, outputs_info={"initial": start, "taps": taps}, n_steps=7)
    compare([start], pytensor.grad(out.sum(), start), [numbers(-min(taps)) + 0.5], rtol=1e-6)


# --- scans in scans and in inner graphs
def test_nested():
    x = pt.matrix("x")

    def outer(row, total):
        inner = scan(lambda v, h: pt.tanh(v + h), sequences=row, outputs_info=total)
        return inner[-1]

    out = scan(outer, sequences=x, outputs_info=pt.constant(np.float64(0.5)))
    compare([x], out, [numbers(4, 5)], rtol=1e-6)


def test_in_an_inner_graph():
    x = pt.vector("x")
    start = pt.constant(np.float64(1))
    op = OpFromGraph([x], [scan(lambda a, h: a * h + 1, sequences=x, outputs_info=start)])
    compare([x], op(op(x)), [numbers(5)], rtol=1e-6)


def test_lengths_that_only_a_step_knows():
    x, n = pt.vector("x"), pt.scalar("n", dtype="int64")
    out = scan(lambda a, n: pt.arange(n) * a, sequences=x, non_sequences=n)
    compare([x, n], out, [numbers(5), np.array(3)], [numbers(1), np.array(0)])


# --- random states
def test_a_generator_as_state():
    rng = pytensor.shared(np.random.default_rng(3))

    def step(rng):
        following, draw = pt.random.normal(rng=rng).owner.outputs
        return following, draw

    following, draws = scan(step, outputs_info=[rng, None], n_steps=5)
    function = pytensor.function([], draws, updates={rng: following}, mode="EMBER")
    right = np.random.default_rng(3)
    np.testing.assert_allclose(function(), right.normal(size=5))
    np.testing.assert_allclose(function(), right.normal(size=5))


# --- errors
def test_errors():
    x, h, n = pt.vector("x"), pt.scalar("h"), pt.scalar("n", dtype="int64")
    out = scan(lambda h: h + 1, outputs_info=h, n_steps=n)
    raises(IndexError, [h, n], out, np.array(0.0), np.array(-1))
    op = scan(lambda x: x + 1, sequences=x).owner.op
    raises(ValueError, [x], op(pt.constant(np.int64(5)), x, pt.constant(np.int64(5))), numbers(3))
    v = pt.vector("v")
    grown = scan(lambda v: pt.concatenate([v, v]), outputs_info=v, n_steps=3)
    raises(ValueError, [v], grown, numbers(2))


def test_a_long_loop_is_compiled():
    x, h = pt.vector("x"), pt.scalar("h")
    out = scan(lambda a, h: pt.tanh(a + 0.5 * h), sequences=x, outputs_info=h)[-1]
    function = pytensor.function([x, h], out, mode="EMBER")
    assert not function.ember.report()
    a = numbers(100_000)
    function(a, 0.0)
    begin = time.perf_counter()
    function(a, 0.0)
    assert time.perf_counter() - begin < 0.25  # Python needs longer for each of the steps' calls alone
