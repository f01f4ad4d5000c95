"""Translations of sort and argsort. All kinds are stable here; NaN is the largest number, as in NumPy."""

from pytensor.tensor.sort import ArgSortOp, SortOp

from .blockwise import translates_batched
from .registry import translates


@translates(SortOp, ArgSortOp)
def sort(t, op, node, x):
    return sorted_along(t, op, x, 0)


@translates_batched(SortOp, ArgSortOp)
def sort_batches(t, op, node, x, batch):
    return sorted_along(t, op, x, batch)


def sorted_along(t, op, x, batch):
    name = "sort" if isinstance(op, SortOp) else "argsort"
    if t.b.dtype(x).startswith("complex"):
        return NotImplemented
    return t.one(name, x, axis=op.axis + batch)
