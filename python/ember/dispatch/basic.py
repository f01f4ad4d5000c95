"""Translations of Ops that join, split and choose, of diagonals, and of checks and Ops that change nothing."""

from pytensor.assumptions.specify import SpecifyAssumptions
from pytensor.compile.ops import TypeCastingOp
from pytensor.raise_op import CheckAndRaise
from pytensor.tensor.basic import AllocDiag, Choose, ExtractDiag, Join, Nonzero, PermuteRowElements, Split
from pytensor.tensor.extra_ops import CpuContiguous, FillDiagonal, FillDiagonalOffset
from pytensor.tensor.pad import Pad

from .broadcasting import broadcast_together, reshaped, stretch
from .integers import Integer, length, lengths
from .registry import translates
from .translation import is_tensor


@translates(Join)
def join(t, op, node, *tensors):
    dtype = node.outputs[0].type.dtype
    parts = [t.known_parts(x) for x in tensors]
    if t.rank(tensors[0]) == 1 and dtype.startswith(("int", "uint")) and all(p is not None for p in parts):
        return t.vector([p for part in parts for p in part], dtype)
    tensors = [t.cast(x, dtype) for x in tensors]
    for axis in range(t.rank(tensors[0])):
        if axis != op.axis:
            tensors = equal_lengths(t, tensors, axis, op)
    return t.one("concat", *tensors, axis=op.axis) if len(tensors) > 1 else tensors[0]


def equal_lengths(t, tensors, axis, op):
    """The tensors, a check where the run may give their axis another length than is known from one of them."""
    found = [length(t, x, axis) for x in tensors]
    known = next((n for n in found if n.known is not None), found[0])
    message = f"Join: lengths differ along axis {axis}, which is not axis {op.axis} that is joined"
    return [
        x if n.same(known) or n.known is not None else t.check(x, n.compare("eq", known), ValueError, message)
        for x, n in zip(tensors, found, strict=True)
    ]


@translates(Split)
def split(t, op, node, x, sizes):
    count = op.len_splits
    stated = length(t, sizes, 0)
    if not stated.same(Integer(t, count)):
        fits = stated.compare("eq", count)
        sizes = t.check(sizes, fits, ValueError, "Length of splits is not equal to n_splits")
    stated = [variable.type.shape[op.axis] for variable in node.outputs]
    numbers = [
        Integer(t, value=part) if known is None else Integer(t, known)
        for part, known in zip(t.parts(sizes, count), stated, strict=True)
    ]
    if any(known is not None and known < 0 for known in stated):
        x = t.check(x, t.const(False, "bool"), ValueError, "Split sizes cannot be negative")
        return [take_none(t, x, op.axis) for _ in numbers]
    extent = length(t, x, op.axis)
    summed = Integer(t, 0)
    for number in numbers:
        summed = summed + number
    message = f"Split sizes do not sum to the length of axis {op.axis}"
    x = t.check(x, summed.compare("eq", extent), ValueError, message)
    for k, number in enumerate(numbers):
        if number.known is not None:
            continue
        checked = t.check(number.value, number.compare("ge", 0), ValueError, "Split sizes cannot be negative")
        numbers[k] = Integer(t, value=checked, natural=True)
    return t.b.node("split", [x, *(n.value for n in numbers)], {"axis": op.axis})


def take_none(t, x, axis):
    return t.one("slice", x, t.const(0), t.const(0), axis=axis)


# --- diagonals
def diagonal_bounds(rows, columns, offset):
    """(first row, first column, number of elements) of a diagonal."""
    up, down = max(offset, 0), max(-offset, 0)
    return down, up, (rows - down).at_most(columns - up).at_least(0)


@translates(ExtractDiag)
def extract_diag(t, op, node, x):
    first, second = op.axis1, op.axis2
    rows, columns = length(t, x, first), length(t, x, second)
    down, up, size = diagonal_bounds(rows, columns, op.offset)
    others = [axis for axis in range(t.rank(x)) if axis not in (first, second)]
    x = t.transpose(x, [*others, first, second])
    at = steps_from(t, size, (down, up))
    rank = len(others)
    return t.one("gather", x, *at, axes=[rank, rank + 1])


@translates(AllocDiag)
def alloc_diag(t, op, node, diagonal):
    last = t.rank(diagonal) - 1
    size = length(t, diagonal, last)
    side = (size + abs(op.offset)).value
    zeros = t.broadcast(t.const(0, t.b.dtype(diagonal)), [*t.lengths(diagonal)[:last], side, side])
    at = steps_from(t, size, (max(-op.offset, 0), max(op.offset, 0)))
    result = t.one("scatter", zeros, diagonal, *at, axes=[last, last + 1], mode="set")
    others = iter(range(last))
    perm = [{op.axis1: last, op.axis2: last + 1}.get(axis) for axis in range(last + 2)]
    return t.transpose(result, [next(others) if axis is None else axis for axis in perm])


def steps_from(t, size, starts):
    """Vectors of consecutive numbers."""
    steps = t.one("iota", size.value, dtype="int64")
    return [t.one("add", steps, t.const(start)) if start else steps for start in starts]


@translates(Pad)
def inner_graph(t, op, node, *inputs):
    return t.inline(op.fgraph, inputs)


def index_along(t, numbers, axis, dtype="int64"):
    """The index of each element along an axis, as a tensor that broadcasts to a shape."""
    shape = [n.value if k == axis else t.const(1) for k, n in enumerate(numbers)]
    return t.reshape(t.one("iota", numbers[axis].value, dtype=dtype), shape)


@translates(FillDiagonal)
def fill_diagonal(t, op, node, x, value):
    shape = lengths(t, x)
    if len(shape) > 2:
        for other in shape[1:]:
            if not other.same(shape[0]):
                equal = other.compare("eq", shape[0])
                x = t.check(x, equal, ValueError, "All dimensions of input must be of equal length")
    first = index_along(t, shape, 0)
    on_diagonal = None
    for axis in range(1, len(shape)):
        same = t.one("eq", first, index_along(t, shape, axis))
        on_diagonal = same if on_diagonal is None else t.one("and", on_diagonal, same)
    return t.one("select", on_diagonal, t.cast(value, t.b.dtype(x)), x)


@translates(FillDiagonalOffset)
def fill_diagonal_offset(t, op, node, x, value, offset):
    shape = lengths(t, x)
    row = t.one("add", index_along(t, shape, 0), t.integer(offset))
    return t.one("select", t.one("eq", row, index_along(t, shape, 1)), t.cast(value, t.b.dtype(x)), x)


# --- choosing
@translates(Nonzero)
def nonzero(t, op, node, x):
    return t.b.node("nonzero", [x])


@translates(Choose)
def choose_elements(t, op, node, which, choices):
    if not is_tensor(node.inputs[1]):
        return NotImplemented
    count = length(t, choices, 0)
    which = t.cast(which, "int64")
    if op.mode == "raise":
        inside = t.one("and", t.one("ge", which, t.const(0)), t.one("lt", which, count.value))
        which = t.check(which, inside, ValueError, "invalid entry in choice array")
    elif op.mode == "clip":
        which = t.one("max", which, t.const(0))
    one_choice = t.reshape(t.one("gather", choices, t.const(0), axes=[0]), t.lengths(choices)[1:])
    (_, _), shape = broadcast_together(t, [which, one_choice], what="the choices and their numbers")
    which = stretch(t, which, shape, what="the choices and their numbers")
    # The axis of choices comes first, the others are aligned to the right.
    padding = [t.const(1)] * (len(shape) + 1 - t.rank(choices))
    choices = t.reshape(choices, [count.value, *padding, *t.lengths(choices)[1:]])
    choices = stretch(t, choices, [count, *shape], what="the choices and their numbers")
    which = reshaped(t, which, [Integer(t, 1), *shape])
    taken = t.one("take_along", choices, which, axis=0, bounds=op.mode)
    return reshaped(t, taken, shape)


@translates(PermuteRowElements)
def permute_row_elements(t, op, node, x, y):
    last = t.rank(x) - 1
    if (t.dim(x, last) == 1) != (t.dim(y, last) == 1):
        return NotImplemented
    shape = []
    for axis in range(last):
        own, other = length(t, x, axis), length(t, y, axis)
        shape.append(other if own.known == 1 else own)
    size = length(t, x, last)
    x = t.broadcast(x, [n.value for n in [*shape, size]])
    y = t.broadcast(y, [n.value for n in [*shape, size]])
    if not op.inverse:
        return t.one("take_along", x, y, axis=last)
    shape = [*shape, size]
    at = [t.broadcast(index_along(t, shape, axis), [n.value for n in shape]) for axis in range(last)]
    return t.one("scatter", x, x, *at, t.cast(y, "int64"), axes=list(range(last + 1)), mode="set")


# --- checks, and Ops that change nothing
@translates(CheckAndRaise)
def check_and_raise(t, op, node, value, *conditions):
    for condition in conditions:
        value = t.check(value, t.to_bool(condition), op.exc_type, op.msg)
    return value


@translates(CpuContiguous, SpecifyAssumptions, TypeCastingOp)
def unchanged(t, op, node, x, *rest):
    return x
