"""Translations of Ops on shapes: Shape, Reshape, SpecifyShape, Alloc, MakeVector and their kin."""

from pytensor.compile.ops import DeepCopyOp, ViewOp
from pytensor.gradient import DisconnectedGrad, ZeroGrad
from pytensor.tensor.basic import Alloc, AllocEmpty, ARange, Eye, MakeVector, ScalarFromTensor, TensorFromScalar
from pytensor.tensor.reshape import JoinDims, SplitDims
from pytensor.tensor.shape import Reshape, Shape, Shape_i, SpecifyShape
from pytensor.tensor.variable import TensorConstant

from .broadcasting import broadcast
from .integers import integer
from .registry import translates
from .translation import is_tensor


@translates(Shape)
def shape(t, op, node, x):
    if not is_tensor(node.inputs[0]):
        return NotImplemented
    return t.vector(t.lengths(x))


@translates(Shape_i)
def shape_i(t, op, node, x):
    return t.length(x, op.i) if is_tensor(node.inputs[0]) else NotImplemented


@translates(MakeVector)
def make_vector(t, op, node, *scalars):
    return t.vector(scalars, op.dtype)


@translates(TensorFromScalar, ScalarFromTensor)
def same_value(t, op, node, x):
    return x


@translates(DeepCopyOp, ViewOp, ZeroGrad, DisconnectedGrad)
def same(t, op, node, x):
    # Every output gets memory of its own, so a copy asks for nothing more. Objects are copied by the Op itself.
    return x if is_tensor(node.inputs[0]) or isinstance(op, ViewOp) else NotImplemented


@translates(Reshape)
def reshape(t, op, node, x, lengths):
    parts = list(t.parts(lengths, op.ndim))
    known = node.inputs[1].data if isinstance(node.inputs[1], TensorConstant) else [None] * op.ndim
    static = node.outputs[0].type.shape
    parts = [t.const(s) if s is not None else p for s, p in zip(static, parts, strict=True)]
    if all(s is not None for s in static):
        return t.reshape(x, parts)
    # A length of -1 is what is left over; there may be one.
    left_over = [axis for axis in range(op.ndim) if parts[axis] not in t.natural]
    size = total(t, t.lengths(x))
    asked = list(parts)
    for axis in left_over:
        others = total(t, [asked[k] for k in range(op.ndim) if k != axis])
        rest = t.one("floor_div", size, t.one("max", others, t.const(1)))
        parts[axis] = rest if known[axis] == -1 else t.one("select", is_minus_one(t, asked[axis]), rest, asked[axis])
    if len(left_over) > 1:
        x = only_one_left_over(t, x, [asked[axis] for axis in left_over])
    return t.reshape(x, parts)


def is_minus_one(t, part):
    return t.one("eq", part, t.const(-1))


def only_one_left_over(t, x, parts):
    count = t.const(0)
    for part in parts:
        count = t.one("add", count, t.cast(is_minus_one(t, part), "int64"))
    return t.check(x, t.one("le", count, t.const(1)), ValueError, "can only specify one unknown dimension")


def total(t, lengths):
    product = t.const(1)
    natural = True
    for length in lengths:
        natural = natural and length in t.natural
        product = t.one("mul", product, length)
    if natural:
        t.natural.add(product)
    return product


@translates(JoinDims)
def join_dims(t, op, node, x):
    lengths = t.lengths(x)
    begin, end = op.start_axis, op.start_axis + op.n_axes
    return t.reshape(x, [*lengths[:begin], total(t, lengths[begin:end]), *lengths[end:]])


@translates(SplitDims)
def split_dims(t, op, node, x, into):
    count = t.rank(x)
    parts = t.parts(into, node.outputs[0].type.ndim - count + 1)
    lengths = t.lengths(x)
    return t.reshape(x, [*lengths[: op.axis], *parts, *lengths[op.axis + 1 :]])


@translates(SpecifyShape)
def specify_shape(t, op, node, x, *lengths):
    if not is_tensor(node.inputs[0]):
        return NotImplemented
    wanted = t.lengths(x)
    for axis, (variable, length) in enumerate(zip(node.inputs[1:], lengths, strict=True)):
        if is_tensor(variable):
            own, stated = wanted[axis], t.integer(length)
            fits = t.one("eq", own, stated)
            x = t.check(x, fits, AssertionError, f"SpecifyShape: dim {axis} of input has another shape than expected")
            wanted[axis] = stated
    return t.reshape(x, wanted) if t.rank(x) else x


@translates(Alloc)
def alloc(t, op, node, value, *lengths):
    numbers = [integer(t, v, length) for v, length in zip(node.inputs[1:], lengths, strict=True)]
    return broadcast(t, value, numbers, ALLOC_MESSAGE) if lengths else value


ALLOC_MESSAGE = (
    "could not broadcast input array to the shape that Alloc is asked for. Runtime broadcasting not allowed: a length "
    "of 1 is repeated only where the type states it. If broadcasting was intended, use `specify_broadcastable`"
)


@translates(AllocEmpty)
def alloc_empty(t, op, node, *lengths):
    zero = t.const(0, op.dtype)
    return t.broadcast(zero, [t.integer(length) for length in lengths]) if lengths else zero


@translates(ARange)
def arange(t, op, node, start, stop, step):
    out = op.dtype
    if out.startswith("complex"):
        return NotImplemented
    if all(not t.b.dtype(v).startswith("float") for v in (start, stop, step)):
        start, stop, step = (t.integer(v) for v in (start, stop, step))
        span = t.one("sub", stop, start)
        # Rounded up: -(-span // step); a step of 0 gives no elements.
        count = t.one("neg", t.one("floor_div", t.one("neg", span), step))
    else:
        first, last, each = (t.cast(t.reshape(v, ()), "float64") for v in (start, stop, step))
        count = t.cast(t.one("ceil", t.one("div", t.one("sub", last, first), each)), "int64")
        wide = "float64"
        start, step = t.cast(start, wide), t.cast(step, wide)
    count = t.one("max", count, t.const(0))
    steps = t.one("iota", count, dtype="int64")
    working = t.b.dtype(step)
    return t.cast(t.one("add", start, t.one("mul", t.cast(steps, working), step)), out)


@translates(Eye)
def eye(t, op, node, rows, columns, offset):
    one = t.const(1)
    n, m = t.integer(rows), t.integer(columns)
    i = t.reshape(t.one("iota", n, dtype="int64"), [n, one])
    j = t.one("iota", m, dtype="int64")
    return t.cast(t.one("eq", t.one("add", i, t.integer(offset)), j), op.dtype)
