"""From a PyTensor graph to Ember's: the walk over the nodes, constants, values that are no tensors, host calls.

Nothing is optimised here. Constants of at most 64 bytes are part of the graph; larger ones become bound parameters, so
graphs that differ in data share one compiled artifact. Values of types that are no tensors (generators, slices, sparse
matrices, None) travel as int64 numbers of objects in a table of the call.
"""

import numpy as np
from pytensor.graph.basic import Constant
from pytensor.graph.op import Op
from pytensor.scalar.basic import ScalarType
from pytensor.tensor.type import TensorType

from .. import _core
from .lazy import deferred_nodes
from .registry import translation_of

MAX_LITERAL_BYTES = 64
INPUT, SHARED, BOUND = 0, 1, 2
DTYPES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128".split()
)


def is_tensor(variable):
    """Does this variable's value travel as a tensor? If not, as a handle."""
    kind = variable.type
    cls = type(kind)
    if cls is not TensorType and cls is not ScalarType and not is_dense(kind):
        return False
    return kind.dtype in DTYPES


def is_dense(kind):
    """Is this a type of arrays or scalars, named axes or not? Types of sparse matrices are derived from TensorType."""
    if isinstance(kind, TensorType | ScalarType):
        return not hasattr(kind, "format")
    return type(kind).__module__ == "pytensor.xtensor.type" and hasattr(kind, "dims")


def type_of(variable):
    """(dtype, shape) of a variable in the graph; None where a length is not known."""
    if not is_tensor(variable):
        return "int64", ()
    kind = variable.type
    return kind.dtype, () if isinstance(kind, ScalarType) else kind.shape


class Program:
    """What a whole function collects while it is translated: constants, objects, exceptions, host functions."""

    def __init__(self):
        self.constants = []  # arrays of the bound parameters
        self.objects = []  # constants that are no arrays
        self.exceptions = []  # (class, node) of asserts, by number
        self.host = {}  # id -> (function, which inputs are handles, which outputs are)
        self.host_nodes = {}  # id -> node
        self._number_of = {}  # Constant -> number in `constants`

    def number_of_constant(self, constant):
        number = self._number_of.get(constant)
        if number is None:
            number = self._number_of[constant] = len(self.constants)
            self.constants.append(np.require(constant.data, constant.type.dtype, ["C", "A"]).view(np.ndarray))
        return number


class Translation:
    """One graph under construction: a function, or a region of a loop or a branch.

    b: the `_core.Builder`. values: what each Variable became. captured: of a region, the enclosing graph's values that
    it takes as parameters after its own; of a function, the numbers of the constants it takes.
    """

    def __init__(self, program, parent=None, name="main"):
        self.b = _core.Builder(name)
        self.program = program
        self.parent = parent
        self.values = {}
        self.captured = []
        self.deferred = {}  # nodes that only a branch of an IfElse needs
        self.node = None  # the node being translated
        self._bound = {}  # number of a constant -> value
        self._literals = {}
        self.natural = set()  # int64 scalars that are surely not negative
        self._parts = {}  # value of an int vector -> the scalars it is made of

    # --- values
    def value(self, variable):
        """The value of a variable; constants are made where they are first read."""
        known = self.values.get(variable)
        if known is not None:
            return known
        if variable.owner in self.deferred:
            self.demand(variable)
            return self.values[variable]
        if not isinstance(variable, Constant):
            raise RuntimeError(f"{variable} is used before it is made")
        value = self.values[variable] = self._constant(variable)
        return value

    def _constant(self, constant):
        data = constant.data
        if not is_tensor(constant):
            self.program.objects.append(data)
            return self.b.integer(-len(self.program.objects))
        array = np.asarray(data, dtype=constant.type.dtype)
        if array.nbytes <= MAX_LITERAL_BYTES:
            return self.literal(array)
        return self.bound(self.program.number_of_constant(constant))

    def literal(self, array):
        """A constant of at most 64 bytes."""
        array = np.asarray(array)
        raw = array.tobytes()
        key = (array.dtype.char, array.shape, raw)
        value = self._literals.get(key)
        if value is None:
            value = self._literals[key] = self.b.constant(array.dtype.name, array.shape, raw)
            if array.ndim == 1 and array.dtype.kind in "iu":
                self._parts[value] = [self.b.integer(int(x)) for x in array]
        return value

    def array(self, array):
        """A constant of any size."""
        array = np.ascontiguousarray(array)
        if array.nbytes <= MAX_LITERAL_BYTES:
            return self.literal(array)
        self.program.constants.append(array)
        return self.bound(len(self.program.constants) - 1)

    def bound(self, number):
        """The bound parameter that takes this constant of the program."""
        value = self._bound.get(number)
        if value is None:
            array = self.program.constants[number]
            if self.parent is None:
                value = self.b.param(array.dtype.name, array.shape, BOUND)
                self.captured.append(number)
            else:
                value = self.capture(self.parent.bound(number))
            self._bound[number] = value
        return value

    def capture(self, outer):
        """A parameter of this region for a value of the enclosing graph."""
        dtype, shape = self.parent.b.type(outer)
        self.captured.append(outer)
        return self.b.param(dtype, shape)

    def const(self, number, dtype="int64"):
        """A scalar constant."""
        if dtype != "int64":
            return self.literal(np.asarray(number, dtype=dtype))
        value = self.b.integer(number)
        if number >= 0:
            self.natural.add(value)
        return value

    # --- nodes
    def one(self, op, *operands, **attributes):
        """The only result of a node of Ember's op table."""
        return self.b.one(op, operands, attributes or None)

    def cast(self, value, dtype):
        return value if self.b.dtype(value) == dtype else self.b.one("cast", (value,), {"dtype": dtype})

    def to_bool(self, value):
        """Is it not zero?"""
        return self.cast(value, "bool")

    def rank(self, value):
        return self.b.rank(value)

    def dim(self, value, axis):
        """A static length, or a negative number that stands for an unknown one."""
        return self.b.dim(value, axis)

    def length(self, value, axis):
        """The length of an axis, an int64 scalar."""
        length = self.b.length(value, axis)
        self.natural.add(length)
        return length

    def lengths(self, value):
        return [self.length(value, axis) for axis in range(self.b.rank(value))]

    def reshape(self, value, lengths):
        return self.b.one("reshape", (value, *lengths))

    def broadcast(self, value, lengths):
        return self.b.one("broadcast", (value, *lengths))

    def transpose(self, value, perm):
        perm = list(perm)
        return value if perm == sorted(perm) else self.b.one("transpose", (value,), {"perm": perm})

    def integer(self, value):
        """An int64 scalar from an integer value of rank 0, or of one element."""
        if self.b.rank(value):
            value = self.reshape(value, ())
        return self.cast(value, "int64")

    def known_integer(self, variable):
        """The int that a constant variable holds, or None."""
        if isinstance(variable, Constant) and variable.data is not None:
            return int(np.asarray(variable.data).reshape(()))
        return None

    # --- vectors of lengths
    def vector(self, scalars, dtype="int64"):
        """A vector of scalars; one of integers remembers what it is made of."""
        if not scalars:
            return self.literal(np.empty(0, dtype=dtype))
        one = self.const(1)
        value = self.one("concat", *(self.reshape(self.cast(s, dtype), (one,)) for s in scalars), axis=0)
        if dtype.startswith(("int", "uint")):
            self._parts[value] = [self.cast(s, "int64") for s in scalars]
        return value

    def parts(self, vector, count):
        """The elements of an integer vector as int64 scalars."""
        known = self._parts.get(vector)
        if known is not None:
            return known
        parts = [self.cast(self.one("gather", vector, self.const(k), axes=[0]), "int64") for k in range(count)]
        self._parts[vector] = parts
        return parts

    def known_parts(self, vector):
        return self._parts.get(vector)

    # --- checks
    def check(self, value, condition, exception, message):
        """`value`, or an exception where a bool condition does not hold everywhere."""
        number = len(self.program.exceptions)
        self.program.exceptions.append((exception, self.node))
        return self.b.one("assert", (value, condition), {"message": f"{number}:{message}"})

    def conform(self, value, variable):
        """`value` with the static lengths that the variable's type states, checked when it runs."""
        shape = getattr(variable.type, "shape", ())
        wrong = [axis for axis, length in enumerate(shape) if length is not None and self.b.dim(value, axis) < 0]
        if not wrong:
            return value
        lengths = self.lengths(value)
        for axis in wrong:
            lengths[axis] = self.const(shape[axis])
        return self.reshape(value, lengths)

    # --- graphs
    def run(self, nodes):
        """Translates nodes, in an order in which operands come first, but for those that only a branch needs."""
        self.deferred = deferred_nodes(nodes)
        self._translate(node for node in nodes if node not in self.deferred)

    def demand(self, variable):
        """Translates the deferred node of a variable, and what it needs of the same branch."""
        tag = self.deferred[variable.owner]
        order, seen, stack = [], set(), [(variable.owner, False)]
        while stack:
            node, is_ready = stack.pop()
            if is_ready:
                order.append(node)
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                mine = (v.owner for v in node.inputs if self.deferred.get(v.owner) == tag and v not in self.values)
                stack += [(owner, False) for owner in mine]
        self._translate(order)

    def _translate(self, nodes):
        values = self.values
        for node in nodes:
            self.node = node
            translate = translation_of(node.op)
            if getattr(translate, "is_lazy", False):
                inputs, results = None, translate(self, node.op, node)
            else:
                inputs = [self.value(v) for v in node.inputs]
                results = NotImplemented if translate is None else translate(self, node.op, node, *inputs)
            if results is NotImplemented:
                results = self.host_call(node, inputs)
            elif isinstance(results, int):
                results = (results,)
            for variable, result in zip(node.outputs, results, strict=True):
                values[variable] = self.conform(result, variable) if is_tensor(variable) else result

    def inline(self, fgraph, inputs):
        """The outputs of an inner graph on these values, its nodes as nodes of this graph."""
        outer, node, deferred = self.values, self.node, self.deferred
        self.values = dict(zip(fgraph.inputs, inputs, strict=True))
        try:
            self.run(fgraph.toposort())
            return [self.value(v) for v in fgraph.outputs]
        finally:
            self.values, self.node, self.deferred = outer, node, deferred

    def host_call(self, node, inputs):
        """The node through its Op's own `perform`."""
        identity = f"{type(node.op).__name__}.{len(self.program.host)}"
        self.program.host[identity] = (
            host_function(node),
            tuple(not is_tensor(v) for v in node.inputs),
            tuple(not is_tensor(v) for v in node.outputs),
        )
        self.program.host_nodes[identity] = node
        stated = [type_of(v) for v in node.outputs]
        return self.b.node("host_call", inputs, {"id": identity}, None, stated)


def host_function(node):
    """`f(*inputs) -> list of outputs` by the Op's `perform`."""
    op = node.op
    if getattr(type(op), "perform", Op.perform) is Op.perform:
        raise _core.UnsupportedOp(f"{op}: Ember does not translate it, and it has no perform")
    op.prepare_node(node, None, None, "py")
    dtypes = [v.type.dtype if is_tensor(v) else None for v in node.outputs]

    def call(*inputs):
        storage = [[None] for _ in dtypes]
        op.perform(node, list(inputs), storage)
        return [
            cell[0] if dtype is None else np.asarray(cell[0], dtype=dtype)
            for cell, dtype in zip(storage, dtypes, strict=True)
        ]

    return call
