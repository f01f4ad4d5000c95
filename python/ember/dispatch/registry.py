"""Which function translates which PyTensor Op, and which scalar Op.

A translation of an Op is `f(t, op, node, *inputs) -> value or list of values`: `t` is the Translation
(translation.py), inputs and results are numbers of values of `t.b`. It returns NotImplemented for a node that it
cannot translate; the node then goes through `host_call`.

A translation of a scalar Op is `f(t, op, args, out) -> value`: element by element, with broadcasting; `args` are values
of any dtypes, `out` is the dtype of the result.
"""

from collections.abc import Callable

OPS: dict[type, Callable] = {}
SCALARS: dict[type, Callable] = {}
SCALAR_GRAPHS: dict[type, Callable] = {}
_known: dict[type, Callable | None] = {}


def translates(*classes):
    """Decorator: this function translates Ops of these classes (and of classes derived from them)."""

    def register(function):
        for cls in classes:
            OPS[cls] = function
        _known.clear()
        return function

    return register


def translates_lazily(*classes):
    """Decorator: as `translates`, for f(t, op, node); `t.value` gives it those inputs that it asks for."""

    def register(function):
        function.is_lazy = True
        return translates(*classes)(function)

    return register


def translates_scalar(*classes):
    """Decorator: this function translates scalar Ops of these very classes."""

    def register(function):
        for cls in classes:
            SCALARS[cls] = function
        return function

    return register


def translates_scalar_graph(*classes):
    """Decorator: `f(t, op, args) -> list of values` translates these scalar Ops, of any number of results."""

    def register(function):
        for cls in classes:
            SCALAR_GRAPHS[cls] = function
        return function

    return register


def translation_of(op):
    """The function that translates `op`, or None."""
    cls = type(op)
    try:
        return _known[cls]
    except KeyError:
        if cls.__module__.startswith("pytensor.xtensor"):
            from . import xtensor  # noqa: F401  it registers; most programs never load PyTensor's named axes
        found = next((OPS[base] for base in cls.__mro__ if base in OPS), None)
        _known[cls] = found
        return found
