"""Translations of products: Dot and matmul (Blockwise of Dot), BatchedDot, and the Ops named after BLAS."""

from pytensor.tensor.blas import BatchedDot, Dot22, Dot22Scalar, Gemm, Gemv
from pytensor.tensor.math import Dot

from .blockwise import translates_batched
from .registry import translates


def dot(t, a, b, out):
    """The product of two vectors or matrices, as numpy.dot."""
    return t.one("dot_general", t.cast(a, out), t.cast(b, out), contract=[t.rank(a) - 1, max(t.rank(b) - 2, 0)])


@translates(Dot, Dot22)
def product(t, op, node, a, b):
    return dot(t, a, b, node.outputs[0].type.dtype)


@translates(Dot22Scalar)
def scaled_product(t, op, node, a, b, factor):
    return t.one("mul", dot(t, a, b, node.outputs[0].type.dtype), factor)


@translates(BatchedDot)
def batched_dot(t, op, node, a, b):
    if t.dim(a, 0) < 0 or t.dim(b, 0) < 0:
        equal = t.one("eq", t.length(a, 0), t.length(b, 0))
        a = t.check(a, equal, TypeError, "BatchedDot: the operands must have the same size in axis 0")
    out = node.outputs[0].type.dtype
    return t.one("dot_general", t.cast(a, out), t.cast(b, out), batch=[0, 0], contract=[2, 1])


@translates(Gemm)
def gemm(t, op, node, z, scale, x, y, keep):
    """keep*z + scale*(x @ y); a zero `keep` leaves no NaN of z."""
    return combine(t, node, z, scale, dot(t, x, y, node.outputs[0].type.dtype), keep)


@translates(Gemv)
def gemv(t, op, node, y, scale, a, x, keep):
    return combine(t, node, y, scale, dot(t, a, x, node.outputs[0].type.dtype), keep)


def combine(t, node, z, scale, value, keep):
    out = node.outputs[0].type.dtype
    value = t.one("mul", t.cast(scale, out), value)
    factor = t.cast(keep, out)
    kept = t.one("mul", factor, z)
    kept = t.one("select", t.one("eq", factor, t.const(0, out)), t.const(0, out), kept)
    return t.one("add", value, kept)


@translates_batched(Dot)
def matmul(t, op, node, a, b, batch):
    """Axes of length 1 that the other operand has longer are free axes of the product; then all are put in order."""
    out = node.outputs[0].type.dtype
    a, b = t.cast(a, out), t.cast(b, out)
    a_wide = [axis for axis in range(batch) if t.dim(a, axis) != 1]
    b_wide = [axis for axis in range(batch) if t.dim(b, axis) != 1]
    a_core, b_core = t.rank(a) - batch, t.rank(b) - batch
    a, b = without_ones(t, a, a_wide, batch), without_ones(t, b, b_wide, batch)
    shared = [axis for axis in a_wide if axis in b_wide]
    pairs = [place for axis in shared for place in (a_wide.index(axis), b_wide.index(axis))]
    contract = [t.rank(a) - 1, t.rank(b) - (2 if b_core == 2 else 1)]
    value = t.one("dot_general", a, b, batch=pairs, contract=contract)
    # Its axes: shared, those of a alone, the rest of a, those of b alone, the rest of b.
    order = [*shared, *(axis for axis in a_wide if axis not in shared), *["rows"] * (a_core - 1)]
    order += [*(axis for axis in b_wide if axis not in shared), *["columns"] * (b_core - 1)]
    wanted = [axis for axis in range(batch) if axis in order]
    wanted += [name for name in ("rows", "columns") if name in order]
    value = t.transpose(value, [order.index(name) for name in wanted])
    if len(wanted) == batch + a_core + b_core - 2:
        return value
    lengths = dict(zip(wanted, t.lengths(value), strict=True))
    one = t.const(1)
    full = [*range(batch), *["rows"] * (a_core - 1), *["columns"] * (b_core - 1)]
    return t.reshape(value, [lengths.get(name, one) for name in full])


def without_ones(t, value, kept, batch):
    """The value without the batch axes that are not kept; their length is 1."""
    if len(kept) == batch:
        return value
    lengths = t.lengths(value)
    return t.reshape(value, [lengths[axis] for axis in range(len(lengths)) if axis in kept or axis >= batch])
