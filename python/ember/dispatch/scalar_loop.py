"""Translation of ScalarLoop: a scalar graph that is repeated, element by element, each element as often as it says."""

from pytensor.scalar.loop import ScalarLoop

from .elemwise import spread
from .region import UntranslatedError, loop
from .registry import translates_scalar_graph
from .scalar import inner_scalars


@translates_scalar_graph(ScalarLoop)
def scalar_loop(t, op, args):
    """All elements step together, until the last one is done; those that are done before keep what they have."""
    steps = t.cast(args[0], "int64")
    count = len(op.outputs) - op.is_while
    if any(t.b.dtype(value).startswith("complex") for value in args):
        return NotImplemented
    states = [spread(t, value, args) for value in args[1 : 1 + count]]
    constants = args[1 + count :]
    if not op.is_while:
        fits = t.one("ge", steps, t.const(0))
        steps = t.check(steps, fits, ValueError, "ScalarLoop does not have a termination condition.")
    most = steps
    if t.rank(steps):
        # The largest number of steps, also where there is no element at all.
        most = t.one("max", t.one("reduce_max", steps, axes=list(range(t.rank(steps)))), t.const(0))
    most = t.one("max", most, t.const(0))
    done = [spread(t, t.const(False, "bool"), args)] if op.is_while else []

    def step(region, i, carried):
        mine = list(carried[:count])
        runs = region.one("lt", i, region.capture(steps))
        if op.is_while:
            runs = region.one("and", runs, region.one("not", carried[count]))
        results = inner_scalars(region, op.fgraph, [*mine, *(region.capture(value) for value in constants)])
        if results is NotImplemented:
            raise UntranslatedError
        following = [region.one("select", runs, new, old) for new, old in zip(results[:count], mine, strict=True)]
        if not op.is_while:
            return following, []
        stops = region.one("or", carried[count], region.one("and", runs, region.to_bool(results[count])))
        running = region.one("and", region.one("not", stops), region.one("lt", i, region.capture(steps)))
        rank = region.rank(running)
        go_on = region.one("reduce_or", running, axes=list(range(rank))) if rank else running
        return [*following, stops], [], go_on

    try:
        return loop(t, most, [*states, *done], step, may_stop=op.is_while)[0]
    except UntranslatedError:
        return NotImplemented
