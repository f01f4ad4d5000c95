"""Translation of Scan to a `loop`.

States are carried as the few rows that the steps still read; what becomes final is stacked, and the buffer that the Op
gives is put together after. So a step costs what its own values cost, however long the buffers are.
"""

from pytensor.graph.basic import Constant
from pytensor.scan.op import Scan
from pytensor.tensor.basic import AllocEmpty
from pytensor.tensor.math import add
from pytensor.tensor.shape import Shape, Shape_i
from pytensor.tensor.subtensor import IncSubtensor, Subtensor

from .region import loop
from .registry import translates

MAX_ROWS = 8  # that are carried one by one; more are carried as one tensor


@translates(Scan)
def scan(t, op, node, *inputs):
    inputs = list(inputs)
    info = op.info
    steps = checked_steps(t, op, node, inputs)
    inner = list(op.fgraph.inputs)
    states = states_of(t, op, node, inputs, inner, steps)
    if states is NotImplemented:
        return NotImplemented
    taken = [value for state in states for value in state.initial]
    untraced = [
        t.conform(value, variable)
        for value, variable in zip(op.outer_untraced_sit_sot(inputs), op.inner_untraced_sit_sot(inner), strict=True)
    ]
    sequences = list(zip(op.outer_seqs(inputs), op.inner_seqs(inner), strict=True))
    others = list(zip(op.outer_non_seqs(inputs), op.inner_non_seqs(inner), strict=True))
    tap_variables = inner[info.n_seqs :]

    def step(region, i, carried):
        values = region.values = {}
        for value, variable in sequences:
            values[variable] = region.conform(row(region, region.capture(value), i), variable)
        reads, writes = [], []
        rest = iter(carried)
        for state in states:
            params = [next(rest) for _ in state.initial]
            read, write = state.step(region, i, params)
            reads += read
            writes.append(write)
        for variable, value in zip(tap_variables, [*reads, *rest], strict=False):
            values[variable] = value
        for value, variable in others:
            values[variable] = region.conform(region.capture(value), variable)
        region.run(op.fgraph.toposort())
        outputs = [region.value(v) for v in op.fgraph.outputs]
        return results_of_step(region, info, states, writes, outputs)

    finals, stacked = loop(t, steps, taken + untraced, step, may_stop=info.as_while)
    return outputs_of(t, op, node, inputs, states, steps, finals, stacked)


def checked_steps(t, op, node, inputs):
    steps = t.integer(inputs[0])
    if not (t.known_integer(node.inputs[0]) or -1) >= 0:
        positive = t.one("ge", steps, t.const(0))
        steps = t.check(steps, positive, IndexError, "Scan was asked to run for negative number of steps")
    for k, value in enumerate(op.outer_seqs(inputs)):
        enough = t.one("le", steps, t.length(value, 0))
        message = f"Sequence {k} has fewer elements than the Scan's required number of steps"
        steps = t.check(steps, enough, ValueError, message)
    return steps


def row(region, tensor, position):
    return region.one("gather", tensor, position, axes=[0])


def as_row(t, value):
    """The value with a new first axis of length 1."""
    return t.reshape(value, [t.const(1), *t.lengths(value)])


def states_of(t, op, node, inputs, inner, steps):
    """The states that have a buffer, in the order of the Op's outputs."""
    info = op.info
    states = []
    groups = op.inner_mitmot_grouped(inner)
    for k, buffer in enumerate(op.outer_mitmot(inputs)):
        reads, writes = info.mit_mot_in_slices[k], info.mit_mot_out_slices[k]
        if min(reads) > 0 or min(writes) < min(reads):
            return NotImplemented
        states.append(Accumulated(t, with_row_type(t, buffer, groups[k][0]), reads, writes, steps))
    variables = op.outer_mitsot(node.inputs) + op.outer_sitsot(node.inputs)
    buffers = op.outer_mitsot(inputs) + op.outer_sitsot(inputs)
    taps = info.mit_sot_in_slices + info.sit_sot_in_slices
    groups = op.inner_mitsot_grouped(inner) + [[v] for v in op.inner_sitsot(inner)]
    for k, variable in enumerate(variables):
        fresh = fresh_buffer(node.inputs[0], variable, -min(taps[k]))
        buffer = buffers[k] if fresh is None else t.value(fresh)
        states.append(Recurrent(t, with_row_type(t, buffer, groups[k][0]), taps[k], fresh is not None))
    return states


def with_row_type(t, buffer, variable):
    """A buffer whose rows have the lengths that the inner variable states."""
    lengths = t.lengths(buffer)
    stated = [None, *variable.type.shape]
    if all(length is None or t.dim(buffer, axis) >= 0 for axis, length in enumerate(stated)):
        return buffer
    known = [own if length is None else t.const(length) for own, length in zip(lengths, stated, strict=True)]
    return t.broadcast(buffer, known)


def fresh_buffer(steps, buffer, count):
    """The first rows of a buffer that was made as `empty(steps + count)[:count] <- rows`; None: it was not."""
    node = buffer.owner
    if node is None or not isinstance(node.op, IncSubtensor) or not node.op.set_instead_of_inc:
        return None
    empty, rows = node.inputs[:2]
    if empty.owner is None or not isinstance(empty.owner.op, AllocEmpty):
        return None
    index = node.op.idx_list
    if len(index) != 1 or not isinstance(index[0], slice) or index[0].start is not None or index[0].step is not None:
        return None
    if rows.type.ndim != buffer.type.ndim:
        return None
    size = empty.owner.inputs[0]
    if size.owner is None or size.owner.op != add or len(size.owner.inputs) != 2 or size.owner.inputs[0] is not steps:
        return None
    return rows if is_length_of(size.owner.inputs[1], rows, count) else None


def is_length_of(variable, rows, count):
    if isinstance(variable, Constant):
        return int(variable.data) == count
    node = variable.owner
    if node is None:
        return False
    if isinstance(node.op, Shape_i):
        return node.op.i == 0 and node.inputs[0] is rows
    is_item = isinstance(node.op, Subtensor) and isinstance(node.inputs[-1], Constant) and len(node.inputs) == 2
    if not is_item or int(node.inputs[-1].data) != 0 or isinstance(node.op.idx_list[0], slice):
        return False
    source = node.inputs[0].owner
    return source is not None and isinstance(source.op, Shape) and source.inputs[0] is rows


class Recurrent:
    """A state that each step reads at earlier positions and writes one further: mit-sot and sit-sot.

    initial: what is carried. fresh: is the buffer only its first rows, made for all steps?
    """

    def __init__(self, t, buffer, taps, fresh):
        self.buffer = buffer
        self.taps = taps
        self.fresh = fresh
        self.count = -min(taps)
        self.together = self.count > MAX_ROWS
        self.head = t.one("slice", buffer, t.const(0), t.const(self.count), axis=0)
        if t.dim(buffer, 0) == self.count:
            self.head = buffer
        if self.together:
            self.initial = [self.head]
        else:
            self.initial = [row(t, buffer, t.const(k)) for k in range(self.count)]

    def step(self, region, i, params):
        """The values at the taps, and a function that takes the new value: `-> (carried, to be stacked)`."""
        if not self.together:
            return [params[self.count + tap] for tap in self.taps], lambda new: ([*params[1:], new[0]], new)
        count = region.const(self.count)

        def place(offset):
            return region.one("mod", region.one("add", i, region.const(offset)), count)

        def write(new):
            zeros = [region.const(0)] * region.rank(new[0])
            return [region.one("update_slice", params[0], as_row(region, new[0]), place(0), *zeros)], new

        return [row(region, params[0], place(self.count + tap)) for tap in self.taps], write

    writes = 1

    def result(self, t, steps, stacked, finals):
        """The buffer after the steps."""
        full = t.one("concat", self.head, stacked[0], axis=0)
        if self.fresh:
            return full
        return cut(t, full, self.count, t.length(self.buffer, 0), steps, t.length(stacked[0], 0), self.buffer)


class Accumulated:
    """A state whose steps read and write any positions near the current one, over what was there before: mit-mot."""

    def __init__(self, t, buffer, reads, writes, steps):
        self.buffer = buffer
        self.reads = reads
        self.writes_at = writes
        self.writes = len(writes)
        self.low = min(*reads, *writes)
        self.count = max(*reads, *writes) - self.low
        self.together = self.count > MAX_ROWS
        if self.together:
            self.initial = [buffer]
        else:
            self.initial = [row(t, buffer, t.const(k)) for k in range(self.count)]

    def step(self, region, i, params):
        if self.together:
            return self.step_in_buffer(region, i, params[0])
        window = list(params)
        last = self.low + self.count
        if last in self.reads or last not in self.writes_at:
            place = region.one("add", i, region.const(self.count))
            window.append(row(region, region.capture(self.buffer), place))
        else:
            window.append(None)

        def write(new):
            following = list(window)
            for tap, value in zip(self.writes_at, new, strict=True):
                following[tap - self.low] = value
            return following[1:], following[:1]

        return [window[tap - self.low] for tap in self.reads], write

    def step_in_buffer(self, region, i, buffer):
        def place(tap):
            return region.one("add", i, region.const(tap - self.low))

        def write(new):
            value = buffer
            for tap, piece in zip(self.writes_at, new, strict=True):
                zeros = [region.const(0)] * region.rank(piece)
                value = region.one("update_slice", value, as_row(region, piece), place(tap), *zeros)
            return [value], []

        return [row(region, buffer, place(tap)) for tap in self.reads], write

    def result(self, t, steps, stacked, finals):
        if self.together:
            return finals[0]
        pieces = [stacked[0], *(as_row(t, value) for value in finals)]
        done = t.one("add", t.length(stacked[0], 0), t.const(self.count))
        rest = t.one("sub", t.length(self.buffer, 0), done)
        pieces.append(t.one("slice", self.buffer, done, rest, axis=0))
        return t.one("concat", *pieces, axis=0)


def results_of_step(region, info, states, writes, outputs):
    """What a step carries on, stacks, and whether it goes on."""
    carried, stacked = [], []
    rest = iter(outputs)
    for state, write in zip(states, writes, strict=True):
        following, final = write([next(rest) for _ in range(state.writes)])
        carried += following
        stacked += final
    stacked += [next(rest) for _ in range(info.n_nit_sot)]
    carried += [next(rest) for _ in range(info.n_untraced_sit_sot)]
    if not info.as_while:
        return carried, stacked
    return carried, stacked, region.one("not", region.to_bool(next(rest)))


def outputs_of(t, op, node, inputs, states, steps, finals, stacked):
    finals, stacked = list(finals), list(stacked)
    results = []
    for state in states:
        mine = [finals.pop(0) for _ in state.initial]
        pieces = [] if isinstance(state, Accumulated) and state.together else [stacked.pop(0)]
        results.append(state.result(t, steps, pieces, mine))
    lengths = zip(op.outer_nitsot(node.inputs), op.outer_nitsot(inputs), strict=True)
    for value, (variable, length) in zip(stacked, lengths, strict=True):
        if variable is not node.inputs[0] and not equal_constants(variable, node.inputs[0]):
            value = cut(t, value, 0, t.integer(length), steps, t.length(value, 0), None)
        results.append(value)
    return results + finals


def equal_constants(a, b):
    return isinstance(a, Constant) and isinstance(b, Constant) and int(a.data) == int(b.data)


def cut(t, rows, count, size, steps, done, before):
    """The buffer of `size` rows after `done` of `steps` steps, of which `rows` are first `count` and then the new ones.

    A shorter buffer keeps the last rows. What is beyond the rows is zero, without the rows of steps that did not run.
    before: the buffer as it was, which it still is where no step was asked for.
    """
    zero = t.const(0)
    total = t.one("add", done, t.const(count))
    longer = t.one("gt", size, total)
    missing = t.one("sub", steps, done)
    kept = t.one("select", longer, t.one("max", t.one("sub", size, missing), zero), size)
    start = t.one("max", t.one("sub", total, size), zero)
    taken = t.one("min", t.one("sub", total, start), kept)
    value = t.one("slice", rows, start, taken, axis=0)
    more = t.one("sub", kept, taken)
    blank = t.const(0, t.b.dtype(rows))
    if before is None:
        return t.one("pad", value, blank, zero, more, axis=0)
    tail = t.one("slice", before, t.one("sub", size, more), more, axis=0)
    tail = t.one("select", t.one("eq", steps, zero), tail, blank)
    return t.one("concat", value, tail, axis=0)
