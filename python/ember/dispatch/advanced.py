"""Translations of advanced indexing: AdvancedSubtensor and AdvancedIncSubtensor.

A boolean mask counts as the index vectors that `nonzero` gives. Index tensors are broadcast together; their axes stand
where the first of them stood, or in front where a slice lies between two of them, as in NumPy.
"""

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.tensor.subtensor import AdvancedIncSubtensor, AdvancedSubtensor

from .broadcasting import broadcast, broadcast_together
from .integers import integer, length
from .registry import translates
from .subtensor import (
    added,
    runs,
    slice_parts,
    sum_dtype,
    take_elements,
    take_slice,
    whole,
    window_of_slice,
)


class Indexing:
    """An index into a tensor: axes: those of index tensors, ascending. indices: the tensors, of one rank. lengths: what
    these are broadcast to. rest: a Window for each other axis. consecutive: does the result have the index's axes where
    the tensor had `axes`?
    """

    def __init__(self, t, axes, indices, rest):
        self.axes = axes
        self.rest = rest
        self.indices, self.lengths = indices, []
        if indices:
            self.indices, self.lengths = broadcast_together(t, indices, IndexError, "the index tensors")
        self.consecutive = len(runs(axes)) <= 1 or not self.lengths

    def result_axes(self):
        """The result's axes: None for one of the index's, else the tensor's axis."""
        mine = [None] * len(self.lengths)
        if not self.consecutive or not self.axes:
            return mine + list(self.rest)
        first = self.axes[0]
        return [a for a in self.rest if a < first] + mine + [a for a in self.rest if a > first]

    def result_shape(self):
        own = iter(self.lengths)
        return [next(own) if axis is None else self.rest[axis].size for axis in self.result_axes()]


def vectors_of_mask(t, x, axis, variable, mask):
    """The indices of a mask's true elements, one vector an axis; the mask has the lengths of x from `axis` on."""
    message = "the boolean index does not match the indexed tensor: lengths differ along axis {}"
    for k in range(t.rank(mask)):
        own, other = length(t, mask, k), length(t, x, axis + k)
        if not own.same(other):
            mask = t.check(mask, own.compare("eq", other), IndexError, message.format(axis + k))
    if isinstance(variable, Constant) and all(length(t, x, axis + k).known is not None for k in range(t.rank(mask))):
        if variable.type.shape == tuple(t.dim(x, axis + k) for k in range(t.rank(mask))):
            return [t.array(vector) for vector in np.nonzero(variable.data)]
    return t.b.node("nonzero", [mask])


def indexing(t, op, x, variables, values):
    """The Indexing of an Op with an idx_list; None where there is none."""
    flat = list(zip(variables, values, strict=True))
    axes, indices, rest = [], [], {}
    axis = 0
    for entry in op.idx_list:
        if isinstance(entry, slice):
            rest[axis] = window_of_slice(t, length(t, x, axis), *slice_parts(t, entry, flat))
            axis += 1
            continue
        variable, value = flat[entry]
        found = [value]
        if t.b.dtype(value) == "bool":
            if t.rank(value) == 0:
                return None
            found = vectors_of_mask(t, x, axis, variable, value)
        elif t.rank(value) == 0:
            found = [integer(t, variable, value).value]
        axes += range(axis, axis + len(found))
        indices += found
        axis += len(found)
    for other in range(axis, t.rank(x)):
        rest[other] = whole(t, length(t, x, other))
    return Indexing(t, axes, indices, rest)


def take(t, x, index):
    """x[index]."""
    for axis, window in index.rest.items():
        x = take_slice(t, x, axis, window)
    if not index.axes:
        return x
    if not index.lengths:
        return take_elements(t, x, dict(zip(index.axes, index.indices, strict=True)))
    axes = index.axes
    if not index.consecutive:
        x = t.transpose(x, [*axes, *index.rest])
        axes = list(range(len(axes)))
    return t.one("gather", x, *index.indices, axes=axes)


def put(t, x, index, update, mode):
    """`x` with the elements of x[index] set or added to; update: of x's dtype and the shape of x[index]."""
    windows = [axis for axis, window in index.rest.items() if not window.full]
    if not index.axes and not windows:
        return update if mode == "set" else t.one("add", x, update)
    if index.axes and not windows and len(runs(index.axes)) == 1:
        return t.one("scatter", x, update, *index.indices, axes=index.axes, mode=mode)
    # Axes that are indexed come first: those of index tensors, then those of slices, whose elements are numbered.
    perm = [*index.axes, *windows, *(axis for axis in index.rest if axis not in windows)]
    order = index.result_axes()
    own = [k for k, axis in enumerate(order) if axis is None]
    update = t.transpose(update, own + [order.index(axis) for axis in perm if axis in order])
    one = t.const(1)
    more = len(windows)
    positions = [t.reshape(i, [*t.lengths(i), *[one] * more]) for i in index.indices]
    for k, axis in enumerate(windows):
        window = index.rest[axis]
        shape = [one] * (len(own) + k) + [window.size.value] + [one] * (more - k - 1)
        positions.append(t.reshape(window.positions(t), shape))
    axes = list(range(len(positions)))
    result = t.one("scatter", t.transpose(x, perm), update, *positions, axes=axes, mode=mode)
    return t.transpose(result, [perm.index(axis) for axis in range(len(perm))])


@translates(AdvancedSubtensor)
def advanced_subtensor(t, op, node, x, *indices):
    index = indexing(t, op, x, node.inputs[1:], indices)
    return NotImplemented if index is None else take(t, x, index)


# PyTensor refuses lengths that turn out to be 1 for one vector of indices only; but the gradient of the value is wrong
# for whatever else repeats it, too.
INC_MESSAGE = (
    "Runtime broadcasting not allowed. AdvancedIncSubtensor was asked to put a value (y) into a part of another shape, "
    "and a length of 1 is repeated only where the type states it. If broadcasting was intended, use "
    "`specify_broadcastable` on the relevant dimension(s)"
)


@translates(AdvancedIncSubtensor)
def advanced_inc_subtensor(t, op, node, x, y, *indices):
    dtype = t.b.dtype(x)
    index = indexing(t, op, x, node.inputs[2:], indices)
    working = dtype if op.set_instead_of_inc else sum_dtype(dtype, t.b.dtype(y))
    if index is None or working is None:
        return NotImplemented
    shape = index.result_shape()
    if t.rank(y) > len(shape):
        return NotImplemented
    y = broadcast(t, y, shape, INC_MESSAGE)
    if op.set_instead_of_inc or not op.ignore_duplicates:
        return put(t, x, index, t.cast(y, dtype), "set" if op.set_instead_of_inc else "add")
    return put(t, x, index, added(t, take(t, x, index), y, working), "set")
