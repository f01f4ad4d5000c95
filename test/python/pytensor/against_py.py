"""Runs one graph in mode EMBER and by the Ops' own Python code, and compares values, dtypes, shapes and errors."""

import numpy as np
import pytest

pytensor = pytest.importorskip("pytensor")

import ember.pytensor  # noqa: E402, F401  it registers the mode

PY = pytensor.compile.mode.Mode("py", None)


def functions(inputs, outputs):
    options = {"on_unused_input": "ignore"}
    return (
        pytensor.function(inputs, outputs, mode="EMBER", **options),
        pytensor.function(inputs, outputs, mode=PY, **options),
    )


def compare(inputs, outputs, *calls, rtol=1e-7, host=()):
    """Each of `calls` is a list of arguments. host: names of Ops that may run through their own Python code."""
    outputs = list(outputs) if isinstance(outputs, list | tuple) else [outputs]
    compiled, reference = functions(inputs, outputs)
    assert {name.split("{")[0] for name in compiled.ember.report()} <= {*host}, compiled.ember.report()
    for arguments in calls:
        try:
            expected = reference(*arguments)
        except Exception as error:
            with pytest.raises(type(error)):
                compiled(*arguments)
            continue
        for mine, right in zip(compiled(*arguments), expected, strict=True):
            assert mine.dtype == right.dtype and mine.shape == right.shape
            np.testing.assert_allclose(mine, right, rtol=rtol, equal_nan=True)
    return compiled


def raises(kind, inputs, outputs, *arguments, match=None):
    """Both modes raise an exception of this class."""
    for function in functions(inputs, outputs):
        with pytest.raises(kind, match=match):
            function(*arguments)


def values(shape, dtype, seed=0):
    """Small numbers of a dtype, of both signs where there are any."""
    numbers = np.random.default_rng(seed).integers(-9, 10, size=shape)
    if dtype == "bool":
        return numbers > 0
    if dtype.startswith("uint"):
        numbers = np.abs(numbers)
    return (numbers / 2 if dtype.startswith("float") else numbers).astype(dtype)
