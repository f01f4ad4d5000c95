"""Translation of Blockwise: an Op on the last axes of its operands, for all positions along the first ones.

Batch axes are equally long, or statically of length 1. A core Op has a translation of its own for batches
(`translates_batched`), or runs in a loop over the positions; one that is not translated leaves the whole to the host.
"""

from pytensor.graph.traversal import io_toposort
from pytensor.tensor.blockwise import Blockwise

from .region import UntranslatedError, loop
from .registry import translates

BATCHED = {}


def translates_batched(*classes):
    """Decorator: `f(t, core_op, node, *inputs, batch) -> value or values` translates a Blockwise of these core Ops.

    batch: the number of batch axes, which each input has; those that are not statically 1 are equally long.
    """

    def register(function):
        for cls in classes:
            BATCHED[cls] = function
        return function

    return register


@translates(Blockwise)
def blockwise(t, op, node, *inputs):
    batch = op.batch_ndim(node)
    wide = [axis for axis in range(batch) if any(t.dim(value, axis) != 1 for value in inputs)]
    inputs = [equally_long(t, value, inputs, wide) for value in inputs]
    if not wide:
        return without_batch(t, op, node, inputs, batch)
    translate = next((BATCHED[base] for base in type(op.core_op).__mro__ if base in BATCHED), None)
    if translate is not None:
        results = translate(t, op.core_op, node, *inputs, batch=batch)
        if results is not NotImplemented:
            return results
    try:
        return one_by_one(t, op, node, inputs, batch, wide)
    except UntranslatedError:
        return NotImplemented


def equally_long(t, value, inputs, wide):
    """The input, if its batch axes are as long as those of the first input that has them not statically 1."""
    for axis in wide:
        first = next(v for v in inputs if t.dim(v, axis) != 1)
        mine = t.dim(value, axis)
        if mine != 1 and mine != t.dim(first, axis):
            equal = t.one("eq", t.length(value, axis), t.length(first, axis))
            message = (
                f"Runtime broadcasting not allowed. Batch axis {axis} has different lengths, and none is statically 1"
            )
            value = t.check(value, equal, ValueError, message)
    return value


def without_batch(t, op, node, inputs, batch):
    """All batch axes have length 1: the core Op, once."""
    core = [t.reshape(value, t.lengths(value)[batch:]) if batch else value for value in inputs]
    results = core_values(t, op, node, core)
    one = t.const(1)
    return [t.reshape(value, [one] * batch + t.lengths(value)) if batch else value for value in results]


def core_values(t, op, node, inputs):
    """The results of the core Op on values without batch axes."""
    core_node, variables = op._create_dummy_core_node(node.inputs, return_dummy_inputs=True)
    outer, deferred, current = t.values, t.deferred, t.node
    t.values = dict(zip(variables, inputs, strict=True))
    try:
        t.run(io_toposort(variables, core_node.outputs))
        return [t.value(v) for v in core_node.outputs]
    finally:
        t.values, t.deferred, t.node = outer, deferred, current


def one_by_one(t, op, node, inputs, batch, wide):
    """A loop over all positions, row-major; results are stacked."""
    lengths = []
    one = t.const(1)
    for axis in range(batch):
        source = next((v for v in inputs if t.dim(v, axis) != 1), None)
        lengths.append(one if source is None else t.length(source, axis))
    count = one
    for axis in wide:
        count = t.one("mul", count, lengths[axis])
    flat = []
    for value in inputs:
        core = t.lengths(value)[batch:]
        is_single = all(t.dim(value, axis) == 1 for axis in range(batch))
        if is_single:
            flat.append((t.reshape(value, core), False))
            continue
        if any(t.dim(value, axis) == 1 for axis in wide):
            value = t.broadcast(value, [*lengths, *core])
        flat.append((value if batch == 1 else t.reshape(value, [count, *core]), True))

    def step(region, i, carried):
        pieces = []
        for value, is_batched in flat:
            piece = region.capture(value)
            pieces.append(region.one("gather", piece, i, axes=[0]) if is_batched else piece)
        return [], core_values(region, op, node, pieces)

    _, stacked = loop(t, count, [], step, may_call_host=False)
    if batch == 1:
        return stacked
    return [t.reshape(value, [*lengths, *t.lengths(value)[1:]]) for value in stacked]
