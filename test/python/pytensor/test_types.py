"""Values of types that are no plain tensors: named axes, sparse matrices, scalars."""

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")
import ember.pytensor  # noqa: E402  it registers the mode
import pytensor.scalar as ps  # noqa: E402
import pytensor.tensor as pt  # noqa: E402
import pytensor.xtensor as px  # noqa: E402
from pytensor.xtensor import xtensor  # noqa: E402

import ember  # noqa: E402

ROWS, COLUMNS = np.arange(6.0).reshape(2, 3), np.array([1.0, 10.0, 100.0])


def named():
    return xtensor("x", dims=("a", "b")), xtensor("y", dims=("b",))


@pytest.mark.parametrize("door", [ember.function, lambda i, o: pytensor.function(i, o, mode="EMBER")])
def test_named_axes(door):
    x, y = named()
    outputs = [x + y, x.sum("a"), px.dot(x, y), x.transpose("b", "a") * y, x.isel(b=slice(1, None)), x[1]]
    found = door([x, y], outputs)(ROWS, COLUMNS)
    expected = [ROWS + COLUMNS, ROWS.sum(0), ROWS @ COLUMNS, (ROWS * COLUMNS).T, ROWS[:, 1:], ROWS[1]]
    for mine, right in zip(found, expected, strict=True):
        assert type(mine) is np.ndarray
        np.testing.assert_array_equal(mine, right)


def test_named_axes_in_an_inner_graph():
    x, y = named()
    inner = pytensor.compile.builders.OpFromGraph([x, y], [(x * y).sum("b")])
    function = pytensor.function([x, y], inner(x, y), mode="EMBER")
    np.testing.assert_array_equal(function(ROWS, COLUMNS), ROWS @ COLUMNS)
    assert not function.ember.report()


def test_a_shared_variable_with_named_axes():
    x, _ = named()
    state = px.type.xtensor_shared(ROWS.copy(), dims=("a", "b"), name="state")
    function = pytensor.function([x], state.sum("a"), updates={state: state + x}, mode="EMBER")
    np.testing.assert_array_equal(function(ROWS), ROWS.sum(0))
    np.testing.assert_array_equal(state.get_value(), 2 * ROWS)


def test_sparse_matrices():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    from pytensor import sparse

    x, v = sparse.csr_matrix("x", dtype="float64"), pt.dvector("v")
    outputs = [sparse.structured_dot(x, v[:, None])[:, 0] + 1, x * 2]
    function = pytensor.function([x, v], outputs, mode="EMBER")
    dense, twice = function(scipy_sparse.csr_matrix(ROWS), COLUMNS)
    np.testing.assert_array_equal(dense, ROWS @ COLUMNS + 1)
    assert scipy_sparse.issparse(twice)
    np.testing.assert_array_equal(twice.toarray(), 2 * ROWS)


def test_scalars_come_back_as_scalars():
    a, n = ps.float64("a"), ps.int32("n")
    product, total = pytensor.function([a, n], [a * n, n + n], mode="EMBER")(1.5, np.int32(4))
    assert isinstance(product, np.float64) and product == 6.0
    assert isinstance(total, np.int32) and total == 8
