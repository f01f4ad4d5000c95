"""Translations of Ops of pytensor.tensor.extra_ops: repeated, distinct and sorted elements, windows, flat indices."""

import numpy as np
from pytensor.tensor.extra_ops import Bartlett, RavelMultiIndex, Repeat, SearchsortedOp, Unique, UnravelIndex

from .broadcasting import broadcast_together, stretch
from .integers import Integer, integer, length, lengths, total
from .registry import translates


@translates(Repeat)
def repeat(t, op, node, x, repeats):
    axis = op.axis
    n = length(t, x, axis)
    parts = t.known_parts(repeats)
    if parts is not None and len(parts) == 1:
        return repeat_evenly(t, x, axis, n, integer_part(t, node.inputs[1], parts[0]))
    repeats = stretch(t, t.cast(repeats, "int64"), [n], what="repeats and the axis that is repeated")
    not_negative = t.one("ge", repeats, t.const(0))
    repeats = t.check(repeats, not_negative, ValueError, "repeats may not contain negative values.")
    # Element k of the result is that of x whose number is how many elements end at k or before.
    ends = t.one("cumsum", repeats, axis=0)
    size = t.one("reduce_sum", repeats, axes=[0])
    marks = t.broadcast(t.const(0), [t.one("add", size, t.const(1))])
    marks = t.one("scatter", marks, t.broadcast(t.const(1), [n.value]), ends, axes=[0], mode="add")
    source = t.one("slice", t.one("cumsum", marks, axis=0), t.const(0), size, axis=0)
    return t.one("gather", x, source, axes=[axis])


def integer_part(t, variable, part):
    data = getattr(variable, "data", None)
    return Integer(t, value=part) if data is None else Integer(t, int(data[0]))


def repeat_evenly(t, x, axis, n, times):
    """Every element of an axis as often."""
    if times.known is None or times.known < 0:
        not_negative = times.compare("ge", 0)
        message = "repeats may not contain negative values."
        times = Integer(t, value=t.check(times.value, not_negative, ValueError, message), natural=True)
    shape = lengths(t, x)
    before, after = shape[:axis], shape[axis + 1 :]
    x = t.reshape(x, [s.value for s in (*before, n, Integer(t, 1), *after)])
    x = t.broadcast(x, [s.value for s in (*before, n, times, *after)])
    return t.reshape(x, [s.value for s in (*before, n * times, *after)])


@translates(Bartlett)
def bartlett(t, op, node, count):
    m = integer(t, node.inputs[0], count).at_least(0)
    steps = t.one("iota", m.value, dtype="float64")
    last = t.cast((m - 1).value, "float64")
    # Twice the distance from the middle, as a part of the whole; a window of one element is 1.
    two, one = t.const(2.0, "float64"), t.const(1.0, "float64")
    distance = t.one("sub", t.one("mul", steps, two), last)
    width = t.one("max", last, one)
    return t.one("sub", one, t.one("div", t.one("abs", distance), width))


@translates(SearchsortedOp)
def searchsorted(t, op, node, x, values, *sorter):
    common = np.result_type(t.b.dtype(x), t.b.dtype(values)).name
    return t.one("searchsorted", t.cast(x, common), t.cast(values, common), *sorter, side=op.side)


@translates(Unique)
def unique(t, op, node, x):
    axis = op.axis
    if t.rank(x) == 0:
        x = t.reshape(x, [t.const(1)])
    if axis is None:
        found = t.b.node("unique", [x])
    else:
        found = t.b.node("unique", [x], {"axis": axis})
    values, first, inverse, counts = found
    if t.rank(inverse) != 1:
        inverse = t.reshape(inverse, [total(t, lengths(t, inverse)).value])
    wanted = [values]
    for flag, value in ((op.return_index, first), (op.return_inverse, inverse), (op.return_counts, counts)):
        if flag:
            wanted.append(value)
    return wanted


# --- flat indices
def strides(numbers, order):
    """How far apart neighbours along each axis are in a flat order."""
    axes = range(len(numbers))
    return [total(numbers[0].t, numbers[a + 1 :] if order == "C" else numbers[:a]) for a in axes]


def axis_lengths(t, variable, value, count):
    data = getattr(variable, "data", None)
    if data is not None:
        return [Integer(t, int(n)) for n in data]
    return [Integer(t, value=part) for part in t.parts(value, count)]


@translates(UnravelIndex)
def unravel_index(t, op, node, index, dims):
    numbers = axis_lengths(t, node.inputs[1], dims, len(node.outputs))
    if not numbers:
        return NotImplemented
    index = t.cast(index, "int64")
    inside = t.one("and", t.one("ge", index, t.const(0)), t.one("lt", index, total(t, numbers).value))
    index = t.check(index, inside, ValueError, "index is out of bounds for the shape")
    results = []
    for number, stride in zip(numbers, strides(numbers, op.order), strict=True):
        quotient = index if stride.known == 1 else t.one("floor_div", index, stride.value)
        results.append(t.one("mod", quotient, number.value))
    return results


@translates(RavelMultiIndex)
def ravel_multi_index(t, op, node, *inputs):
    *indices, dims = inputs
    if dims_mismatch(t, dims, len(indices)):
        return NotImplemented
    numbers = axis_lengths(t, node.inputs[-1], dims, len(indices))
    indices, _ = broadcast_together(t, [t.cast(i, "int64") for i in indices], what="the indices")
    result = None
    for index, number, stride in zip(indices, numbers, strides(numbers, op.order), strict=True):
        last = (number - 1).value
        if op.mode == "raise":
            inside = t.one("and", t.one("ge", index, t.const(0)), t.one("le", index, last))
            index = t.check(index, inside, ValueError, "invalid entry in coordinates array")
        elif op.mode == "wrap":
            index = t.one("mod", index, number.value)
        else:
            index = t.one("min", t.one("max", index, t.const(0)), last)
        part = index if stride.known == 1 else t.one("mul", index, stride.value)
        result = part if result is None else t.one("add", result, part)
    return result


def dims_mismatch(t, dims, count):
    """May the vector of lengths have another length than there are indices?"""
    return t.dim(dims, 0) != count
