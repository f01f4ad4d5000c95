"""Translations of convolutions over one and two axes, also of batches."""

from pytensor.tensor.signal.conv import AbstractConvolveNd

from .blockwise import translates_batched
from .registry import translates


@translates(AbstractConvolveNd)
def convolve_one(t, op, node, x, kernel, full):
    return convolve(t, op, node, x, kernel, full, batch=0)


@translates_batched(AbstractConvolveNd)
def convolve(t, op, node, x, kernel, full, batch):
    """result[p] = sum over k of kernel[k] * x[p + first - k], x being zero outside; first: 0, or where x covers all."""
    out = node.outputs[0].type.dtype
    x, kernel = t.cast(x, out), t.cast(kernel, out)
    axes = range(batch, batch + op.ndim)
    if t.rank(full):
        full = t.reshape(full, ())
    x = checked(t, x, kernel, full, axes)
    indices, places = [], []
    count = len(axes)
    for k, axis in enumerate(axes):
        size, span = t.length(x, axis), t.length(kernel, axis)
        margin = t.one("sub", span, t.const(1))
        shorter = t.one("min", size, span)
        first = t.one("select", full, t.const(0), t.one("sub", shorter, t.const(1)))
        positions = t.one("sub", t.one("add", size, margin), t.one("mul", first, t.const(2)))
        x = t.one("pad", x, t.const(0, out), margin, margin, axis=axis)
        begin = t.one("add", t.one("iota", positions, dtype="int64"), t.one("add", first, margin))
        ones = [t.const(1)] * (2 * count)
        begin = t.reshape(begin, [*ones[:k], positions, *ones[k + 1 :]])
        offset = t.reshape(t.one("iota", span, dtype="int64"), [*ones[: count + k], span, *ones[count + k + 1 :]])
        indices.append(t.one("sub", begin, offset))
        places.append(positions)
    windows = t.one("gather", x, *indices, axes=list(axes))
    lengths = t.lengths(kernel)
    spread = t.reshape(kernel, [*lengths[:batch], *[t.const(1)] * count, *lengths[batch:]])
    terms = t.one("mul", windows, spread)
    return t.one("reduce_sum", terms, axes=list(range(batch + count, batch + 2 * count)))


def checked(t, x, kernel, full, axes):
    """Nothing is convolved with nothing; without padding one operand covers the other along all axes."""
    one = t.const(1)
    covers, covered = t.const(True, "bool"), t.const(True, "bool")
    for axis in axes:
        size, span = t.length(x, axis), t.length(kernel, axis)
        if len(axes) == 1:
            some = t.one("ge", t.one("min", size, span), one)
            x = t.check(x, some, ValueError, "convolution: an operand is empty")
        covers = t.one("and", covers, t.one("ge", size, span))
        covered = t.one("and", covered, t.one("le", size, span))
    if len(axes) > 1:
        fits = t.one("or", full, t.one("or", covers, covered))
        message = "For 'valid' mode, one must be at least as large as the other in every dimension"
        x = t.check(x, fits, ValueError, message)
    return x
