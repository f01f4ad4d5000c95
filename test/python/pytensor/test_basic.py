"""Ops that join, split, choose, repeat and check, diagonals and flat indices, against PyTensor's Python code."""

import numpy as np
import pytest
from against_py import compare, functions, raises, values

pytensor = pytest.importorskip("pytensor")
import pytensor.tensor as pt  # noqa: E402
from pytensor.raise_op import Assert, CheckAndRaise  # noqa: E402
from pytensor.tensor.basic import Choose, PermuteRowElements, Split  # noqa: E402
from pytensor.tensor.extra_ops import CpuContiguous, bartlett, fill_diagonal, fill_diagonal_offset  # noqa: E402

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"]


# --- join and split
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_join(dtype, axis):
    x, y = pt.matrix("x", dtype=dtype), pt.matrix("y", dtype=dtype)
    a = values((3, 4), dtype)
    for count in (0, 1, 2):
        b = values((count, 4) if axis == 0 else (3, count), dtype, 1)
        compare([x, y], [pt.join(axis, x, y), pt.join(axis, y, x, y)], [a, b])


def test_join_of_dtypes():
    x, y, z = pt.fvector("x"), pt.vector("y", dtype="int16"), pt.vector("z", dtype="bool")
    outputs = [pt.join(0, x, y, z), pt.join(0, y, z), pt.join(0, z)]
    compare([x, y, z], outputs, [values(3, "float32"), values(2, "int16"), values(4, "bool")])


def test_join_of_static_and_unknown_lengths():
    x, y = pt.tensor("x", dtype="float64", shape=(None, 3)), pt.tensor("y", dtype="float64", shape=(2, None))
    compare([x, y], pt.join(0, x, y), [values((4, 3), "float64"), values((2, 3), "float64")])
    raises(ValueError, [x, y], pt.join(0, x, y), values((4, 3), "float64"), values((2, 5), "float64"))


def test_join_of_lengths():
    x, k = pt.matrix("x"), pt.lscalar("k")
    shape = pt.join(0, x.shape, pt.stack([k, k + 1]), [2])
    compiled = compare([x, k], [shape, shape[3], shape[::-1][1:3], pt.zeros(shape)], [values((3, 2), "float64"), 2])
    assert "gather" not in compiled.ember.text()


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", ["int64", "int8", "uint8"])
def test_split(axis, dtype):
    x, sizes = pt.matrix("x"), pt.vector("sizes", dtype=dtype)
    parts = Split(3, axis)(x, sizes)
    data = values((6, 6), "float64")
    calls = [[data, np.array(n, dtype)] for n in ([1, 2, 3], [0, 6, 0], [2, 2, 2], [1, 1, 1], [2, 5, 1], [6, 0])]
    compare([x, sizes], parts, *calls)


def test_split_into_negative_sizes():
    x, sizes = pt.vector("x"), pt.lvector("sizes")
    raises(ValueError, [x, sizes], Split(3, 0)(x, sizes), values(4, "float64"), np.array([5, -2, 1]))


def test_split_of_nothing_and_into_constants():
    x = pt.matrix("x")
    compare([x], Split(2, 0)(x, [0, 0]), [values((0, 3), "float64")])
    compare([x], [2 * p for p in Split(3, 1)(x, [1, 0, 2])], [values((2, 3), "float64")])


# --- diagonals
@pytest.mark.parametrize("offset", [0, 1, -1, 2, -3, 9, -9])
def test_diagonals(offset):
    x, v = pt.matrix("x"), pt.vector("v")
    for shape in ((4, 4), (3, 5), (5, 2), (0, 3), (1, 1)):
        fixed = pt.tensor("x", dtype="float64", shape=shape)
        compare([x], pt.diagonal(x, offset), [values(shape, "float64")])
        compare([fixed], pt.diagonal(fixed, offset), [values(shape, "float64")])
    compare([v], pt.diag(v, offset), [values(3, "float64")], [values(0, "float64")], [values(1, "float64")])


@pytest.mark.parametrize("axes", [(0, 1), (1, 2), (0, 2), (2, 0), (-1, -2)])
def test_diagonals_of_blocks(axes):
    x = pt.tensor3("x", dtype="float32")
    y = pt.matrix("y", dtype="int32")
    compare([x], [pt.diagonal(x, 1, *axes), pt.diagonal(x, -1, *axes)], [values((3, 4, 5), "float32")])
    outputs = [pt.basic.alloc_diag(y, offset=k, axis1=axes[0], axis2=axes[1]) for k in (-1, 0, 2)]
    compare([y], outputs, [values((3, 4), "int32")])


def test_fill_diagonal():
    x, y, v, k = pt.matrix("x"), pt.tensor3("y"), pt.scalar("v"), pt.lscalar("k")
    calls = [[values(shape, "float64"), 7.0] for shape in ((3, 3), (2, 4), (5, 2), (0, 2), (1, 1))]
    compare([x, v], fill_diagonal(x, v), *calls)
    for offset in (-2, -1, 0, 1):
        compare([x, v, k], fill_diagonal_offset(x, v, k), *([*c, offset] for c in calls[:3]))
    compare([y, v], fill_diagonal(y, v), [values((3, 3, 3), "float64"), 7.0])
    raises(ValueError, [y, v], fill_diagonal(y, v), values((3, 2, 3), "float64"), 7.0)


def test_triangles():
    x = pt.matrix("x")
    outputs = [pt.tril(x), pt.triu(x, 1), pt.tril(x, -1), pt.tri(3, 4, 1), *pt.tril_indices(3), *pt.triu_indices(3, 1)]
    compare([x], outputs, [values((3, 4), "float64")])


# --- choosing
@pytest.mark.parametrize("dtype", DTYPES)
def test_nonzero(dtype):
    x, v = pt.matrix("x", dtype=dtype), pt.vector("v", dtype=dtype)
    compare([x, v], [*x.nonzero(), *v.nonzero()], [values((4, 5), dtype), values(7, dtype)])
    compare([x, v], [*x.nonzero(), *v.nonzero()], [np.zeros((0, 5), dtype), np.zeros(3, dtype)])


@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_choose(mode):
    a, c, wide = pt.lvector("a"), pt.tensor3("c"), pt.lmatrix("wide")
    choices = values((3, 2, 4), "float64")
    outputs = [Choose(mode)(a, c), Choose(mode)(wide, c)]
    inside, outside = np.array([0, 2, 1, 2]), np.array([-1, 5, -7, 3])
    grid = np.array([[1, 0, 2, 1]])
    compare([a, wide, c], outputs, *([which, grid, choices] for which in (inside, outside)))
    flat = pt.matrix("flat")
    compare([wide, flat], Choose(mode)(wide, flat), [np.array([inside, inside[::-1]]), values((3, 4), "float64")])


@pytest.mark.parametrize("inverse", [False, True])
def test_permute_row_elements(inverse):
    op = PermuteRowElements(inverse)
    x, p, v, q = pt.matrix("x"), pt.lmatrix("p"), pt.vector("v"), pt.lvector("q")
    rows, data = np.array([[2, 0, 1], [0, 1, 2]]), values((2, 3), "float64")
    outputs = [op(x, p), op(x, q), op(v, p), op(v, q)]
    compare([x, p, v, q], outputs, [data, rows, data[0], rows[0]])


def test_repeat():
    x, r, k = pt.matrix("x"), pt.lvector("r"), pt.lscalar("k")
    data = values((3, 4), "float64")
    for axis, counts in ((0, ([1, 0, 2], [0, 0, 0], [2], [0])), (1, ([1, 0, 2, 3], [3]))):
        op = pt.extra_ops.Repeat(axis)
        compare([x, r], op(x, r), *([data, np.array(c)] for c in counts))
    compare([x, k], [pt.repeat(x, k, axis=1), pt.repeat(x, k)], [data, 0], [data, 1], [data, 3])
    compare([x], pt.repeat(x, [1, 0, 2], axis=0), [data])
    op = pt.extra_ops.Repeat(0)
    raises(ValueError, [x, r], op(x, r), data, np.array([1, 2]))
    raises(ValueError, [x, r], op(x, r), data, np.array([1, -1, 2]))


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16"])
def test_bartlett(dtype):
    m = pt.scalar("m", dtype=dtype)
    counts = (0, 1, 2, 3, 8, 9) if dtype.startswith("u") else (-3, 0, 1, 2, 3, 8, 9)
    compare([m], bartlett(m), *([np.array(n, dtype)] for n in counts), rtol=1e-14)


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("dtypes", ["float64 float64", "int32 float32", "int64 int8", "float32 int64"])
def test_searchsorted(side, dtypes):
    mine, other = dtypes.split()
    x, v, s = pt.vector("x", dtype=mine), pt.matrix("v", dtype=other), pt.lvector("s")
    shuffled, wanted = values(9, mine), values((3, 4), other, 1)
    order = np.argsort(shuffled)
    compare([x, v], pt.searchsorted(x, v, side=side), [np.sort(shuffled), wanted], [shuffled[:0], wanted])
    compare([x, v, s], pt.searchsorted(x, v, side=side, sorter=s), [shuffled, wanted, order])
    raises(ValueError, [x, v, s], pt.searchsorted(x, v, side=side, sorter=s), shuffled, wanted, order[1:])


@pytest.mark.parametrize("dtype", DTYPES)
def test_unique(dtype):
    x, v = pt.matrix("x", dtype=dtype), pt.vector("v", dtype=dtype)
    data = values((5, 3), dtype)
    data[3] = data[0]
    everything = {"return_index": True, "return_inverse": True, "return_counts": True}
    outputs = [pt.unique(v), *pt.unique(x, **everything), *pt.unique(v, return_counts=True)]
    if dtype != "bool":
        outputs += [*pt.unique(x, axis=0, **everything), *pt.unique(x, axis=1, return_inverse=True)]
    compare([x, v], outputs, [data, data[:, 0]])


@pytest.mark.parametrize("order", ["C", "F"])
def test_unravel_index(order):
    i, dims = pt.lmatrix("i"), pt.lvector("dims")
    inside = np.arange(24).reshape(4, 6)
    fixed = pt.unravel_index(i, (2, 3, 4), order=order)
    given = pt.unravel_index(i, pt.specify_shape(dims, (3,)), order=order)
    compare([i, dims], [*fixed, *given], [inside, np.array([2, 3, 4])])
    for bad in (-1, 24):
        raises(ValueError, [i], list(fixed), np.array([[0, bad]]))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("mode", ["raise", "wrap", "clip"])
def test_ravel_multi_index(mode, order):
    i, j, s = pt.lvector("i"), pt.ivector("j"), pt.tensor("s", dtype="int16", shape=(1,))
    flat = pt.ravel_multi_index((i, j, s), (4, 3, 5), mode=mode, order=order)
    good = [np.array([0, 3, 1]), np.array([2, 0, 1], "int32"), np.array([4], "int16")]
    bad = [np.array([0, -1, 5]), np.array([3, -4, 1], "int32"), np.array([7], "int16")]
    compare([i, j, s], flat, good, bad)


# --- checks, and Ops that change nothing
class OddError(Exception):
    """An exception class that Ember knows nothing of."""


def test_checks():
    x = pt.vector("x")
    for make, kind in (
        (Assert("sum is 'small'\n{}: 1"), AssertionError),
        (CheckAndRaise(OddError, 'a "quoted" \\ message'), OddError),
        (CheckAndRaise(ValueError, ""), ValueError),
    ):
        checked = make(x, x.sum() < 3, pt.all(x > 0))
        for function in functions([x], checked * 2):
            np.testing.assert_array_equal(function([1.0, 1.0]), [2.0, 2.0])
            for bad in ([3.0, 1.0], [-1.0, 1.0]):
                with pytest.raises(kind) as caught:
                    function(bad)
                assert str(caught.value).split("\nApply node")[0] == make.msg
                assert type(caught.value) is kind


def test_parameters_of_distributions():
    pymc = pytest.importorskip("pymc")
    sigma = pt.scalar("sigma")
    logp = pymc.logp(pymc.Normal.dist(0.0, sigma), 1.0)
    compare([sigma], logp, [2.0])
    raises(pymc.logprob.utils.ParameterValueError, [sigma], logp, -1.0, match="sigma > 0")


def test_print(capsys):
    x = pt.vector("x")
    from pytensor.printing import Print

    compiled, _ = functions([x], Print("shown", attrs=("shape",))(x) + 1)
    np.testing.assert_array_equal(compiled([1.0, 2.0]), [2.0, 3.0])
    assert "shown" in capsys.readouterr().out


@pytest.mark.parametrize("mode", ["constant", "edge", "linear_ramp", "maximum", "mean", "wrap", "reflect", "symmetric"])
def test_pad(mode):
    x = pt.matrix("x")
    options = {"constant": {"constant_values": 2.0}, "linear_ramp": {"end_values": 1.0}}.get(mode, {})
    padded = pt.pad(x, ((1, 2), (0, 3)), mode=mode, **options)
    compare([x], padded, [values((3, 4), "float64")], rtol=1e-12)


def test_views():
    x = pt.matrix("x")
    outputs = [
        CpuContiguous()(x.T),
        pytensor.gradient.grad_scale(x, 2.0),
        pytensor.gradient.grad_clip(x, -1, 1),
        pytensor.gradient.zero_grad(x),
    ]
    compare([x], [2 * o for o in outputs], [values((3, 4), "float64")])


def test_join_of_lengths_that_differ():
    known, unknown = pt.tensor("x", dtype="float64", shape=(1, None)), pt.matrix("y", dtype="float64")
    one, two = values((1, 3), "float64"), values((2, 3), "float64")
    for tensors in ((known, unknown), (unknown, known), (unknown, unknown + 1)):
        compare([known, unknown], pt.join(1, *tensors), [one, one])
    raises(ValueError, [known, unknown], pt.join(1, known, unknown), one, two)
    raises(ValueError, [known, unknown], pt.join(1, unknown, known), one, two)


def test_split_into_a_negative_constant():
    x = pt.vector("x")
    raises(ValueError, [x], Split(2, 0)(x, [5, -1]), values(4, "float64"))
    raises(ValueError, [x], Split(2, 0)(x, [1, 2]), values(4, "float64"))
