"""Broadcasting as NumPy does it, where a length that only the run knows may turn out to be 1."""

from .integers import Integer, choose, length


def to_rank(t, value, rank):
    """With axes of length 1 in front."""
    missing = rank - t.rank(value)
    return t.reshape(value, [t.const(1)] * missing + t.lengths(value)) if missing else value


def reshaped(t, value, numbers):
    return t.reshape(value, [n.value for n in numbers])


def broadcast(t, value, numbers, message):
    """`value` in a shape; a ValueError where a length that is not known to be 1 is another one."""
    missing = len(numbers) - t.rank(value)
    fits = missing == 0
    for axis in range(t.rank(value)):
        own, wanted = length(t, value, axis), numbers[axis + missing]
        if own.same(wanted):
            continue
        fits = False
        if own.known != 1:
            value = t.check(value, own.compare("eq", wanted), ValueError, message)
    return value if fits else t.broadcast(value, [n.value for n in numbers])


def stretch_axis(t, value, axis, wanted, exception, message):
    """An axis whose length is unknown, 1 or `wanted`, in that length."""
    own = length(t, value, axis)
    if own.known is not None or own.same(wanted) or wanted.known == 1:
        return value
    fits = t.one("or", own.compare("eq", wanted), own.compare("eq", 1))
    value = t.check(value, fits, exception, message)
    return t.one("gather", value, t.one("iota", wanted.value, dtype="int64"), axes=[axis], bounds="clip")


def stretch(t, value, numbers, exception=ValueError, what="operands"):
    """`value` in a shape, axes of any length 1 repeated."""
    missing = len(numbers) - t.rank(value)
    message = f"{what} could not be broadcast together"
    fits = missing == 0
    for axis in range(t.rank(value)):
        own, wanted = length(t, value, axis), numbers[axis + missing]
        fits = fits and (own.same(wanted) or (own.known is None and wanted.known != 1))
        value = stretch_axis(t, value, axis, wanted, exception, message)
    return value if fits else t.broadcast(value, [n.value for n in numbers])


def common_length(t, values, axis):
    """The length that an axis of all these values is stretched to."""
    found = None
    for value in values:
        own = length(t, value, axis)
        if own.known == 1 or (found is not None and own.same(found)):
            continue
        if found is None or own.known is not None:
            found = own
        elif found.known is None:
            found = choose(found.compare("eq", 1), own, found)
    return Integer(t, 1) if found is None else found


def broadcast_together(t, values, exception=ValueError, what="operands"):
    """(values of one rank whose lengths agree but for axes known to have length 1, their common shape)."""
    rank = max(t.rank(value) for value in values)
    values = [to_rank(t, value, rank) for value in values]
    shape = [common_length(t, values, axis) for axis in range(rank)]
    message = f"{what} could not be broadcast together"
    for axis, wanted in enumerate(shape):
        values = [stretch_axis(t, value, axis, wanted, exception, message) for value in values]
    return values, shape
