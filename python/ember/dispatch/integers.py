"""Integers of a graph: int64 scalars that are numbers as long as they are known, so that shapes stay simple."""

from pytensor.graph.basic import Constant
from pytensor.tensor.basic import ScalarFromTensor, TensorFromScalar


class Integer:
    """A number, or an int64 scalar of a graph and a number added to it: `base + offset`.

    natural: surely not negative. Two of them are the same where their bases and offsets are.
    """

    __slots__ = ("_value", "base", "natural", "offset", "t")

    def __init__(self, t, known=0, value=None, natural=False):
        self.t = t
        self.base = value
        self.offset = known
        self._value = value if known == 0 else None
        self.natural = natural if value is not None else known >= 0

    @property
    def known(self):
        """The number, or None."""
        return self.offset if self.base is None else None

    @property
    def value(self):
        """The scalar in the graph."""
        if self._value is None:
            offset = self.t.const(self.offset)
            self._value = offset if self.base is None else self.t.one("add", self.base, offset)
        if self.natural:
            self.t.natural.add(self._value)
        return self._value

    def same(self, other):
        """Are the two surely equal?"""
        return self.base == other.base and self.offset == other.offset

    def _moved(self, by):
        natural = self.natural and by >= 0
        return Integer(self.t, self.offset + by, self.base, natural)

    def _combined(self, name, other, natural=False):
        return Integer(self.t, value=self.t.one(name, self.value, other.value), natural=natural)

    def __add__(self, other):
        other = self._of(other)
        if other.base is None:
            return self._moved(other.offset)
        if self.base is None:
            return other._moved(self.offset)
        return self._combined("add", other, self.natural and other.natural)

    def __sub__(self, other):
        other = self._of(other)
        if other.base is None:
            return self._moved(-other.offset)
        if other.base == self.base:
            return Integer(self.t, self.offset - other.offset)
        return self._combined("sub", other)

    def __mul__(self, other):
        other = self._of(other)
        if self.known is not None and other.known is not None:
            return Integer(self.t, self.known * other.known)
        if self.known == 1:
            return other
        return self if other.known == 1 else self._combined("mul", other, self.natural and other.natural)

    def __floordiv__(self, other):
        other = self._of(other)
        if self.known is not None and other.known:
            return Integer(self.t, self.known // other.known)
        return self if other.known == 1 else self._combined("floor_div", other, self.natural and other.natural)

    def __neg__(self):
        return Integer(self.t, 0) - self

    def at_least(self, other):
        other = self._of(other)
        if self.known is not None and other.known is not None:
            return Integer(self.t, max(self.known, other.known))
        if self.same(other) or (self.natural and other.known is not None and other.known <= 0):
            return self
        return self._combined("max", other, self.natural or other.natural)

    def at_most(self, other):
        other = self._of(other)
        if self.known is not None and other.known is not None:
            return Integer(self.t, min(self.known, other.known))
        if self.same(other) or (self.known == 0 and other.natural):
            return self
        return self._combined("min", other, self.natural and other.natural)

    def compare(self, name, other):
        """A bool scalar."""
        return self.t.one(name, self.value, self._of(other).value)

    def _of(self, other):
        return Integer(self.t, other) if isinstance(other, int) else other


def choose(condition, yes, no):
    """`yes` where a bool scalar holds, else `no`."""
    if yes.same(no):
        return yes
    value = yes.t.one("select", condition, yes.value, no.value)
    return Integer(yes.t, value=value, natural=yes.natural and no.natural)


def length(t, x, axis):
    """The length of an axis."""
    static = t.dim(x, axis)
    if static >= 0:
        return Integer(t, static)
    return Integer(t, value=t.length(x, axis), natural=True)


def lengths(t, x):
    return [length(t, x, axis) for axis in range(t.rank(x))]


def integer(t, variable, value):
    """The Integer that a variable of rank 0, or of one element, holds."""
    while variable.owner is not None and isinstance(variable.owner.op, ScalarFromTensor | TensorFromScalar):
        variable = variable.owner.inputs[0]
    if isinstance(variable, Constant):
        return Integer(t, t.known_integer(variable))
    return Integer(t, value=t.integer(value))


def total(t, numbers):
    """Their product."""
    product = Integer(t, 1)
    for number in numbers:
        product = product * number
    return product
