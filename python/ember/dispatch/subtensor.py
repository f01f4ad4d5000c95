"""Translations of basic indexing: Subtensor and IncSubtensor."""

import numpy as np
from pytensor.tensor.subtensor import IncSubtensor, Subtensor

from .broadcasting import reshaped, stretch
from .integers import Integer, choose, integer, length
from .registry import translates


class Window:
    """The elements start + k*step, 0 <= k < size, of an axis. A size of 0 comes with any start from -1 on.

    full: the whole axis in order. dropped: the axis goes away, its size is 1.
    """

    def __init__(self, start, size, step, full=False, dropped=False):
        self.start = start
        self.size = size
        self.step = step
        self.full = full
        self.dropped = dropped

    def is_unit(self):
        """Are these neighbours, in either order?"""
        return self.step.known in (1, -1)

    def positions(self, t):
        """A vector of the indices."""
        steps = t.one("iota", self.size.value, dtype="int64")
        if self.step.known != 1:
            steps = t.one("mul", steps, self.step.value)
        return steps if self.start.known == 0 else t.one("add", steps, self.start.value)


def whole(t, n):
    return Window(Integer(t, 0), n, Integer(t, 1), full=True)


def clipped(bound, n, low, high):
    """A bound of a slice as Python reads it: a negative one counts from the end; held between two numbers."""
    if bound.known is not None:
        return bound.at_most(high) if bound.known >= 0 else (n + bound).at_least(low)
    if bound.natural:
        return bound.at_most(high)
    return choose(bound.compare("lt", 0), (n + bound).at_least(low), bound.at_most(high))


def bounds(t, n, start, stop, forward):
    """(first index, index to stop before) of a slice that walks an axis of length n in one direction."""
    low, high = (Integer(t, 0), n) if forward else (Integer(t, -1), n - 1)
    first, last = (low, high) if forward else (high, low)
    return (
        first if start is None else clipped(start, n, low, high),
        last if stop is None else clipped(stop, n, low, high),
    )


def window_of_slice(t, n, start, stop, step):
    """The Window of a slice whose parts are Integers or None."""
    step = Integer(t, 1) if step is None else step
    if step.known == 0:
        n = Integer(t, value=t.check(n.value, t.const(False, "bool"), ValueError, "slice step cannot be zero"))
    elif step.known is None:
        not_zero = step.compare("ne", 0)
        step = Integer(t, value=t.check(step.value, not_zero, ValueError, "slice step cannot be zero"))
    if step.known is not None:
        first, last = bounds(t, n, start, stop, step.known >= 0)
    else:
        is_forward = step.compare("gt", 0)
        forward, backward = bounds(t, n, start, stop, True), bounds(t, n, start, stop, False)
        first, last = (choose(is_forward, a, b) for a, b in zip(forward, backward, strict=True))
    if step.known == 1:
        size = last - first
    elif step.known == -1:
        size = first - last
    else:
        size = -((first - last) // step)
    # From one end in single steps, the size is a difference of a number and one that it bounds.
    if step.known in (1, -1) and (start is None or stop is None):
        size.natural = True
    size = size.at_least(0)
    full = step.known == 1 and first.known == 0 and size.same(n)
    return Window(first, size, step, full)


def window_of_index(t, n, index, axis):
    """The Window of one element."""
    message = f"index is out of bounds for axis {axis}"
    if index.known is not None and n.known is not None:
        at = Integer(t, index.known + n.known if index.known < 0 else index.known)
        if not 0 <= at.known < n.known:
            at = Integer(t, value=t.check(at.value, t.const(False, "bool"), IndexError, message))
    else:
        at = clipped_index(index, n)
        inside = t.one("and", at.compare("ge", 0), at.compare("lt", n))
        at = Integer(t, value=t.check(at.value, inside, IndexError, message), natural=True)
    return Window(at, Integer(t, 1), Integer(t, 1), dropped=True)


def clipped_index(index, n):
    """An index counted from the start."""
    if index.known is not None:
        return index if index.known >= 0 else n + index
    return choose(index.compare("lt", 0), n + index, index)


def slice_parts(t, entry, flat):
    """Start, stop and step of a slice in an Op's idx_list; flat: pairs of a variable and its value."""
    return [None if k is None else integer(t, *flat[k]) for k in (entry.start, entry.stop, entry.step)]


def windows(t, x, idx_list, flat):
    """A Window for each axis."""
    result = []
    for axis in range(t.rank(x)):
        n = length(t, x, axis)
        if axis >= len(idx_list):
            result.append(whole(t, n))
        elif isinstance(idx_list[axis], slice):
            result.append(window_of_slice(t, n, *slice_parts(t, idx_list[axis], flat)))
        else:
            result.append(window_of_index(t, n, integer(t, *flat[idx_list[axis]]), axis))
    return result


def take_slice(t, x, axis, window):
    """The elements of a Window of one axis."""
    if window.full:
        return x
    if window.step.known is None:
        return t.one("gather", x, window.positions(t), axes=[axis])
    if window.step.known == -1 and window.size.same(length(t, x, axis)):
        return t.one("reverse", x, axes=[axis])
    start = window.start.at_least(0)
    step = window.step.known or 1
    return t.one("slice", x, start.value, window.size.value, axis=axis, step=step)


def without_axes(t, x, axes):
    """Without axes of length 1."""
    if not axes:
        return x
    return t.reshape(x, [t.length(x, axis) for axis in range(t.rank(x)) if axis not in axes])


def runs(axes):
    """Ascending numbers as lists of consecutive ones."""
    groups = []
    for axis in axes:
        if groups and groups[-1][-1] == axis - 1:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return groups


def take_elements(t, x, indices):
    """Indexed by scalars; indices: a dict of values by axis."""
    for group in reversed(runs(sorted(indices))):
        x = t.one("gather", x, *(indices[axis] for axis in group), axes=group)
    return x


def elements_of_vector(t, op, node, x, flat):
    """An index into a vector that is made of scalars, without the vector; None where it is no such vector or index."""
    parts = t.known_parts(x) if t.rank(x) == 1 else None
    if parts is None or len(op.idx_list) != 1:
        return None
    entry, dtype = op.idx_list[0], t.b.dtype(x)
    if isinstance(entry, slice):
        numbers = [None if p is None else p.known for p in slice_parts(t, entry, flat)]
        given = [k for k in (entry.start, entry.stop, entry.step) if k is not None]
        if sum(n is not None for n in numbers) != len(given) or numbers[2] == 0:
            return None
        return t.vector(parts[slice(*numbers)], dtype)
    at = integer(t, *flat[entry]).known
    if at is None or not -len(parts) <= at < len(parts):
        return None
    return t.cast(parts[at], dtype)


@translates(Subtensor)
def subtensor(t, op, node, x, *indices):
    flat = list(zip(node.inputs[1:], indices, strict=True))
    found = elements_of_vector(t, op, node, x, flat)
    if found is not None:
        return found
    elements, dropped = {}, []
    for axis, entry in enumerate(op.idx_list):
        n = length(t, x, axis)
        if isinstance(entry, slice):
            x = take_slice(t, x, axis, window_of_slice(t, n, *slice_parts(t, entry, flat)))
            continue
        index = integer(t, *flat[entry])
        if index.known is not None and n.known is not None and -n.known <= index.known < n.known:
            x = take_slice(t, x, axis, window_of_index(t, n, index, axis))
            dropped.append(axis)
        else:
            elements[axis] = index.value
    x = take_elements(t, x, elements)
    return without_axes(t, x, [axis - sum(e < axis for e in elements) for axis in dropped])


def sum_dtype(x_dtype, y_dtype):
    """What x += y is computed in; None where NumPy does not put the sum back into x."""
    common = np.result_type(x_dtype, y_dtype)
    return common.name if np.can_cast(common, x_dtype, "same_kind") else None


def added(t, x, y, dtype):
    return t.cast(t.one("add", t.cast(x, dtype), t.cast(y, dtype)), t.b.dtype(x))


def read_windows(t, x, all_windows):
    """The elements of Windows of all axes; axes that a Window drops stay with length 1."""
    for axis, window in enumerate(all_windows):
        x = take_slice(t, x, axis, window)
    return x


def write_windows(t, x, update, all_windows):
    """`x` with the elements of the Windows replaced; update: of x's rank and dtype."""
    if all(w.full for w in all_windows):
        return update
    if all(w.is_unit() for w in all_windows):
        backward = [axis for axis, w in enumerate(all_windows) if w.step.known == -1]
        if backward:
            update = t.one("reverse", update, axes=backward)
        starts = [w.start - w.size + 1 if w.step.known == -1 else w.start for w in all_windows]
        return t.one("update_slice", x, update, *(s.value for s in starts))
    chosen = [axis for axis, w in enumerate(all_windows) if not w.full]
    axes = list(range(chosen[0], chosen[-1] + 1))
    one = t.const(1)
    positions = []
    for axis in axes:
        window = all_windows[axis]
        shape = [window.size.value if other == axis else one for other in axes]
        positions.append(t.reshape(window.start.value if window.dropped else window.positions(t), shape))
    return t.one("scatter", x, update, *positions, axes=axes, mode="set")


@translates(IncSubtensor)
def inc_subtensor(t, op, node, x, y, *indices):
    dtype = t.b.dtype(x)
    working = dtype if op.set_instead_of_inc else sum_dtype(dtype, t.b.dtype(y))
    all_windows = windows(t, x, op.idx_list, list(zip(node.inputs[2:], indices, strict=True)))
    kept = [w.size for w in all_windows if not w.dropped]
    if working is None or t.rank(y) > len(kept):
        return NotImplemented
    y = stretch(t, y, kept, what="the value and the indexed part of the tensor")
    y = reshaped(t, y, [w.size for w in all_windows]) if len(kept) < len(all_windows) else y
    if op.set_instead_of_inc:
        update = t.cast(y, dtype)
    else:
        update = added(t, read_windows(t, x, all_windows), y, working)
    return write_windows(t, x, update, all_windows)
