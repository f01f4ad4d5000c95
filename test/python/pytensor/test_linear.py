"""Products against PyTensor's Python code: Dot, matmul with batches, BatchedDot and the Ops named after BLAS."""

import numpy as np
import pytest
from against_py import compare, raises, values

pytensor = pytest.importorskip("pytensor")
import pytensor.tensor as pt  # noqa: E402
from pytensor.tensor.blas import BatchedDot, Dot22, Dot22Scalar, Gemm, Gemv  # noqa: E402

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shapes", [((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((3, 0), (0, 5))])
def test_dot(dtype, shapes):
    a, b = (pt.tensor(dtype=dtype, shape=(None,) * len(shape)) for shape in shapes)
    compare([a, b], pt.dot(a, b), [values(shapes[0], dtype), values(shapes[1], dtype, 1)], rtol=1e-5)


@pytest.mark.parametrize("pair", [("int8", "float64"), ("float32", "float64"), ("uint8", "int16"), ("bool", "int32")])
def test_dot_of_two_dtypes(pair):
    a, b = pt.matrix("a", dtype=pair[0]), pt.vector("b", dtype=pair[1])
    compare([a, b], pt.dot(a, b), [values((3, 4), pair[0]), values((4,), pair[1], 1)])


def test_lengths_that_do_not_match():
    a, b = pt.matrix("a"), pt.matrix("b")
    raises(ValueError, [a, b], pt.dot(a, b), values((2, 3), "float64"), values((2, 3), "float64"))
    c, d = pt.tensor3("c"), pt.tensor3("d")
    raises(ValueError, [c, d], c @ d, values((2, 2, 3), "float64"), values((3, 3, 2), "float64"))
    raises(ValueError, [c, d], c @ d, values((2, 2, 3), "float64"), values((1, 3, 2), "float64"))
    raises(TypeError, [c, d], BatchedDot()(c, d), values((2, 2, 3), "float64"), values((3, 3, 2), "float64"))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((7, 2, 3), (7, 3, 4)),
        ((1, 2, 3), (7, 3, 4)),
        ((7, 2, 3), (1, 3, 4)),
        ((5, 1, 2, 3), (1, 7, 3, 4)),
        ((5, 7, 2, 3), (1, 7, 3, 4)),
        ((5, 1, 2, 3), (5, 7, 3, 4)),
        ((1, 1, 2, 3), (1, 1, 3, 4)),
        ((6, 7, 2, 3), (3, 4)),
        ((2, 3), (6, 3, 4)),
        ((0, 2, 3), (0, 3, 4)),
        ((7, 2, 0), (7, 0, 4)),
        ((3,), (7, 3, 4)),
        ((7, 2, 3), (3,)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
def test_matmul(left, right, dtype):
    def variable(shape):
        return pt.tensor(dtype=dtype, shape=tuple(1 if n == 1 else None for n in shape))

    a, b = variable(left), variable(right)
    compare([a, b], pt.matmul(a, b), [values(left, dtype), values(right, dtype, 1)], rtol=1e-5)


def test_vecdot_and_kin():
    a, b = pt.matrix("a"), pt.matrix("b")
    arguments = [values((3, 4), "float64"), values((3, 4), "float64", 1)]
    compare([a, b], [pt.vecdot(a, b), pt.tensordot(a, b, axes=[[0, 1], [0, 1]]), pt.outer(a[0], b[0])], arguments)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_ops_named_after_blas(dtype):
    x, y, z = (pt.matrix(name, dtype=dtype) for name in "xyz")
    v, w = pt.vector("v", dtype=dtype), pt.vector("w", dtype=dtype)
    a, b = pt.scalar("a", dtype=dtype), pt.scalar("b", dtype=dtype)
    p, q, r = values((3, 4), dtype), values((4, 5), dtype, 1), values((3, 5), dtype, 2)
    number = np.asarray(1.5, dtype)
    compare([x, y], Dot22()(x, y), [p, q], rtol=1e-5)
    compare([x, y, a], Dot22Scalar()(x, y, a), [p, q, number], rtol=1e-5)
    gemm = Gemm(inplace=False)(z, a, x, y, b)
    blank = np.full((3, 5), np.nan, dtype)
    zero = np.asarray(0, dtype)
    compare([z, a, x, y, b], gemm, [r, number, p, q, number], [blank, number, p, q, zero], rtol=1e-5)
    gemv = Gemv(inplace=False)(v, a, x, w, b)
    compare([v, a, x, w, b], gemv, [r[:, 0].copy(), number, p, q[:, 0].copy(), number], rtol=1e-5)


def test_einsum_and_kron():
    a, b = pt.tensor3("a"), pt.matrix("b")
    arguments = [values((2, 3, 4), "float64"), values((4, 3), "float64", 1)]
    compare([a, b], [pt.einsum("ijk,kl->ijl", a, b), pt.einsum("ijk->kji", a)], arguments, rtol=1e-6)
    c = pt.matrix("c")
    compare([b, c], pt.linalg.kron(b, c), [arguments[1], values((2, 5), "float64")])


def test_gradient_of_a_product():
    a, b = pt.tensor3("a"), pt.tensor3("b", shape=(1, None, None))
    gradients = pytensor.grad(pt.sqr(a @ b).sum(), [a, b])
    compare([a, b], gradients, [values((5, 2, 3), "float64"), values((1, 3, 4), "float64", 1)], rtol=1e-6)
