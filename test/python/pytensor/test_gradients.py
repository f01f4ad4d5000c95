"""Gradients that are finite though what PyTensor builds for them is not: branches not taken, factors that underflow."""

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")
import ember.pytensor  # noqa: E402, F401  it registers the mode
import pytensor.tensor as pt  # noqa: E402

INF = np.inf


def close(inputs, outputs, arguments, expected):
    found = pytensor.function(inputs, outputs, mode="EMBER")(*arguments)
    for mine, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-12)


# --- a condition cuts off all terms of a sum, each in its own way
def square(a, m):
    return (a - m) ** 2


NESTS = {
    "two": lambda a, m: pt.switch(a > 0, square(a, m), -square(a, m)),
    "three": lambda a, m: pt.switch(a > 2, m, pt.switch(a > 0, square(a, m), 3 * square(a, m))),
    "functions": lambda a, m: pt.switch(a > 0, pt.exp(-square(a, m)), square(a, m) * pt.sin(square(a, m))),
}


@pytest.mark.parametrize("nest", NESTS)
def test_the_branch_that_is_taken_alone_has_a_slope(nest):
    a, m = pt.dvector("a"), pt.dscalar("m")
    inner = NESTS[nest]
    guarded = pytensor.grad(pt.switch(pt.isinf(a), m, inner(a, m)).sum(), m)
    usual = pytensor.grad(inner(a, m).sum(), m)
    values = np.array([3.0, 1.0, -0.5])
    expected = usual.eval({a: values, m: 0.5}, mode=pytensor.compile.mode.Mode("py", None))
    close([a, m], [guarded], [np.array([-INF, *values, INF]), 0.5], [2 + expected])


def test_views_between_the_branch_and_its_slope():
    a, m = pt.dvector("a"), pt.dscalar("m")
    rows = square(a, m)[:, None]
    y = pt.switch(pt.isinf(a)[:, None], m, pt.switch((a > 0)[:, None], rows, -rows))
    close([a, m], [pytensor.grad(y.sum(), m)], [np.array([-INF, 1.0, -0.5]), 0.5], [1 - 2 * 0.5 + 2 * -1.0])


# --- what is divided by and multiplied with again cancels, also where it is 0 or infinite
ETA = np.array([-800.0, 2.0, -40.0])
COUNTS = np.array([1.0, 3.0, 2.0])


def link(view, counts):
    """The log-likelihood of a log link whose mean underflows, and its slope."""
    eta = pt.dvector("eta")
    mean = view(pt.exp(eta))
    y = (counts * pt.log(mean) - mean).sum()
    return [eta], [y, pytensor.grad(y, eta)]


VIEWS = {
    "itself": lambda v: v,
    "column": lambda v: v[:, None],
    "row": lambda v: v[None],
    "matrix": lambda v: v.reshape((1, 3)),
    "reversed": lambda v: v[::-1],
}


@pytest.mark.parametrize("view", ["itself", "column", "row", "matrix"])
def test_a_log_link_that_underflows(view):
    counts = VIEWS[view](COUNTS)
    inputs, outputs = link(VIEWS[view], counts)
    close(inputs, outputs, [ETA], [np.sum(COUNTS * ETA - np.exp(ETA)), COUNTS - np.exp(ETA)])


def test_a_log_link_by_group():
    groups = np.array([0, 1, 1, 2])
    counts = np.array([1.0, 3.0, 2.0, 4.0])
    inputs, outputs = link(lambda v: v[groups], counts)
    slope = np.bincount(groups, counts) - np.bincount(groups) * np.exp(ETA)
    close(inputs, outputs, [ETA], [np.sum(counts * ETA[groups] - np.exp(ETA[groups])), slope])


def test_one_rate_for_all():
    eta = pt.dscalar("eta")
    y = (COUNTS * pt.log(pt.exp(eta)) - pt.exp(eta)).sum()
    close([eta], [y, pytensor.grad(y, eta)], [-800.0], [-4800.0, 6.0])


def test_a_divisor_that_stays():
    eta = pt.dvector("eta")
    close([eta], [(COUNTS / pt.exp(eta)).sum() * pt.exp(eta)], [ETA[1:2].repeat(3)], [np.full(3, 6.0)])


@pytest.mark.parametrize("view", VIEWS)
def test_functions_of_views(view):
    eta = pt.dvector("eta")
    shown = VIEWS[view]
    far = np.array([-800.0, 2.0, 900.0])
    outputs = [pt.log(shown(pt.exp(eta))), pt.log1p(-shown(pt.sigmoid(eta))), pt.log1p(shown(pt.exp(eta)))]
    expected = [far, -np.logaddexp(0, far), np.logaddexp(0, far)]
    close([eta], outputs, [far], [shown(values) for values in expected])


def test_exponentials_of_opposite_size():
    eta = pt.dvector("eta")
    far = np.array([-800.0, 2.0, 900.0])
    e, f = pt.exp(eta), pt.exp(eta + 1)
    outputs = [pt.log(e * f), pt.log(e / f), e / e, e * pt.exp(-eta)]
    close([eta], outputs, [far], [2 * far + 1, np.full(3, -1.0), np.ones(3), np.ones(3)])
