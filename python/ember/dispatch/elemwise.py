"""Translations of Elemwise and DimShuffle."""

from pytensor.tensor.elemwise import DimShuffle, Elemwise

from .registry import SCALAR_GRAPHS, translates
from .scalar import scalars


@translates(Elemwise)
def elemwise(t, op, node, *inputs):
    results = scalars(t, op.scalar_op, inputs, [v.type.dtype for v in node.outputs])
    if type(op.scalar_op) in SCALAR_GRAPHS and results is not NotImplemented:
        return [spread(t, value, inputs) for value in results]
    return results


def spread(t, value, inputs):
    """A result that does not depend on all inputs, in the shape of all."""
    rank = max((t.rank(i) for i in inputs), default=0)
    if not rank:
        return value
    lengths = []
    for axis in range(rank):
        wide = [i for i in inputs if t.dim(i, axis) != 1]
        lengths.append(t.length((wide or inputs)[0], axis))
    if t.rank(value) == rank and all(t.dim(value, a) == t.b.dim(value, a) != 1 for a in range(rank)):
        return value
    return t.broadcast(value, lengths)


@translates(DimShuffle)
def dim_shuffle(t, op, node, x):
    order = op.new_order
    kept = [axis for axis in order if axis != "x"]
    dropped = [axis for axis in range(t.rank(x)) if axis not in kept]
    for axis in dropped:
        if t.dim(x, axis) != 1:
            is_one = t.one("eq", t.length(x, axis), t.const(1))
            x = t.check(x, is_one, ValueError, f"cannot drop axis {axis}: its length is not 1")
    one = t.const(1)
    if dropped:
        x = t.reshape(x, [t.length(x, axis) for axis in range(t.rank(x)) if axis not in dropped])
        kept = [axis - sum(d < axis for d in dropped) for axis in kept]
    x = t.transpose(x, kept)
    if "x" not in order:
        return x
    lengths = iter(t.lengths(x))
    return t.reshape(x, [one if axis == "x" else next(lengths) for axis in order])
