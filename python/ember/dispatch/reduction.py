"""Translations of reductions, argmax and running sums."""

import pytensor.scalar.basic as ps
from pytensor.tensor.elemwise import CAReduce
from pytensor.tensor.extra_ops import CumOp
from pytensor.tensor.math import Argmax, MulWithoutZeros

from .registry import translates
from .shape import total

REDUCTIONS = {
    ps.Add: "reduce_sum",
    ps.Mul: "reduce_prod",
    MulWithoutZeros: "reduce_prod",
    ps.Maximum: "reduce_max",
    ps.Minimum: "reduce_min",
    ps.AND: "reduce_and",
    ps.OR: "reduce_or",
    ps.XOR: "reduce_xor",
}


@translates(CAReduce)
def reduce(t, op, node, x, *more):
    name = REDUCTIONS.get(type(op.scalar_op))
    out = node.outputs[0].type.dtype
    inner = getattr(op, "acc_dtype", None) or out
    if name is None or more or "complex" in out + inner + t.b.dtype(x):
        return NotImplemented
    axes = list(range(t.rank(x))) if op.axis is None else sorted(axis % t.rank(x) for axis in op.axis)
    if inner == "bool" or (isinstance(op.scalar_op, ps.AND | ps.OR) and out == "bool"):
        # Numbers as truth values first; maximum and minimum of truth values are or and and.
        inner = "bool"
        name = {
            "reduce_max": "reduce_or",
            "reduce_min": "reduce_and",
            "reduce_sum": "reduce_or",
            "reduce_prod": "reduce_and",
        }.get(name, name)
    if isinstance(op.scalar_op, ps.Maximum | ps.Minimum) and not getattr(op, "initial", False):
        x = need_elements(t, x, axes)
    x = t.cast(x, inner)
    if isinstance(op.scalar_op, MulWithoutZeros):
        x = t.one("select", t.one("eq", x, t.const(0, inner)), t.const(1, inner), x)
    value = t.one(name, x, axes=axes) if axes else x
    return t.cast(value, out)


def need_elements(t, x, axes):
    """`x`, or ValueError where one of the axes is empty though the result has elements."""
    for axis in axes:
        if t.dim(x, axis) <= 0:
            some = t.one("gt", t.length(x, axis), t.const(0))
            for other in range(t.rank(x)):
                if other not in axes and t.dim(x, other) <= 0:
                    none = t.one("eq", t.length(x, other), t.const(0))
                    some = t.one("or", some, none)
            x = t.check(x, some, ValueError, "zero-size array to reduction operation which has no identity")
    return x


@translates(Argmax)
def argmax(t, op, node, x):
    rank = t.rank(x)
    axes = list(range(rank)) if op.axis is None else sorted(axis % rank for axis in op.axis)
    if t.b.dtype(x).startswith("complex"):
        return NotImplemented
    kept = [axis for axis in range(rank) if axis not in axes]
    x = need_elements(t, x, axes)
    if len(axes) != 1:
        x = t.transpose(x, kept + axes)
        lengths = t.lengths(x)
        x = t.reshape(x, [*lengths[: len(kept)], total(t, lengths[len(kept) :])])
        axes = [len(kept)]
    return t.cast(t.one("argmax", x, axis=axes[0]), node.outputs[0].type.dtype)


@translates(CumOp)
def running(t, op, node, x):
    out = node.outputs[0].type.dtype
    if out.startswith("complex"):
        return NotImplemented
    x, axis = t.cast(x, out), op.axis
    if axis is None:
        x, axis = t.reshape(x, [total(t, t.lengths(x))]), 0
    return t.one("cumsum" if op.mode == "add" else "cumprod", x, axis=axis % t.rank(x))
