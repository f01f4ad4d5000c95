"""Regions of `if` and `loop`: graphs of their own that take what they read of the enclosing graph as parameters.

The compiler must know each result's lengths before it runs a region: they are static, or lengths of a parameter. Where
a translation gives others, they are computed first, by the same region in an `if` that gives only them, and the region
then gets a tensor of these lengths as a parameter.
"""

from pytensor.graph.basic import Constant

from .translation import Translation


class UntranslatedError(Exception):
    """A node of a region that may not call the host has no translation."""


class Region(Translation):
    """A region under construction. tag: which branch of which node it is, if the nodes of it are among its parent's."""

    def __init__(self, parent, name="body", may_call_host=True, tag=None):
        super().__init__(parent.program, parent, name)
        self.node = parent.node
        self.deferred = parent.deferred if tag is not None else {}
        self.tag = tag
        self.may_call_host = may_call_host and getattr(parent, "may_call_host", True)
        self._taken = {}  # outer value -> parameter
        self._outer = {}  # and the other way round
        self._symbols = set()  # lengths of parameters

    def parameter(self, dtype, shape):
        self._symbols.update(shape)
        return self.b.param(dtype, shape)

    def capture(self, outer):
        known = self._taken.get(outer)
        if known is None:
            known = self._taken[outer] = super().capture(outer)
            self._outer[known] = outer
            self._symbols.update(self.parent.b.type(outer)[1])
        return known

    def value(self, variable):
        known = self.values.get(variable)
        if known is not None:
            return known
        if isinstance(variable, Constant) or self.tag is None or self.deferred.get(variable.owner) == self.tag:
            return super().value(variable)
        known = self.values[variable] = self.capture(self.parent.value(variable))
        return known

    def known_parts(self, vector):
        known = super().known_parts(vector)
        if known is None and vector in self._outer:
            outer = self.parent.known_parts(self._outer[vector])
            if outer is not None:
                known = self._parts[vector] = [self.capture(part) for part in outer]
        return known

    def parts(self, vector, count):
        known = self.known_parts(vector)
        return super().parts(vector, count) if known is None else known

    def host_call(self, node, inputs):
        if not self.may_call_host:
            raise UntranslatedError
        return super().host_call(node, inputs)

    def unknown_axes(self, value):
        """The axes of a value whose lengths only this region knows."""
        shape = self.b.type(value)[1]
        return [axis for axis, length in enumerate(shape) if length < 0 and length not in self._symbols]

    def like(self, value, lengths):
        """A value with these lengths, which it must have: the lengths are known outside."""
        return self.broadcast(value, lengths) if lengths else value

    def finish(self, outputs):
        for value in outputs:
            self.b.output(value)
        return self.b.finish()


def choose(t, condition, makers, tags=(None, None)):
    """The results of one of two functions `f(region) -> values`; only the chosen one runs."""
    regions, results = two_regions(t, makers, tags)
    unknown = unknown_of_branches(regions, results)
    if unknown:
        for k, region in enumerate(regions):
            results[k] = [region.length(results[k][output], axis) for output, axis in unknown]
        lengths = make_if(t, condition, regions, results)
        carriers = carry(t, unknown, lengths)

        def stated(make):
            def make_stated(region):
                return [with_lengths(region, carriers, k, value) for k, value in enumerate(make(region))]

            return make_stated

        regions, results = two_regions(t, [stated(make) for make in makers], tags)
    return make_if(t, condition, regions, results)


def two_regions(t, makers, tags):
    regions, results = [], []
    for name, make, tag in zip(("then", "else"), makers, tags, strict=True):
        region = Region(t, name, tag=tag)
        for outer in regions[0].captured if regions else ():
            region.capture(outer)
        results.append(list(make(region)))
        regions.append(region)
    # Both take the same operands in the same order.
    for outer in list(regions[1].captured):
        regions[0].capture(outer)
    return regions, results


def make_if(t, condition, regions, results):
    graphs = [region.finish(values) for region, values in zip(regions, results, strict=True)]
    return t.b.node("if", [condition, *regions[0].captured], None, graphs)


def unknown_of_branches(regions, results):
    """(output, axis) of lengths that a branch gives and that are no parameter's."""
    found = set()
    for region, values in zip(regions, results, strict=True):
        found.update((k, axis) for k, value in enumerate(values) for axis in region.unknown_axes(value))
    return sorted(found)


def carry(t, unknown, lengths):
    """By output: its axes of lengths that are computed before, and a tensor that has them."""
    carriers = {}
    for output in sorted({output for output, _ in unknown}):
        mine = [(axis, length) for (k, axis), length in zip(unknown, lengths, strict=True) if k == output]
        carrier = t.broadcast(t.const(False, "bool"), [length for _, length in mine])
        carriers[output] = [axis for axis, _ in mine], carrier
    return carriers


def with_lengths(region, carriers, output, value):
    if output not in carriers:
        return value
    axes, carrier = carriers[output]
    carrier = region.capture(carrier)
    lengths = region.lengths(value)
    for place, axis in enumerate(axes):
        lengths[axis] = region.length(carrier, place)
    return region.like(value, lengths)


def loop(t, trips, carried, make, may_stop=False, may_call_host=True):
    """A loop: the last carried values, and the stacked ones.

    make: `f(region, i, carried) -> (next carried, values to stack[, go on])`.
    """
    region, results = loop_region(t, carried, make, {}, may_call_host)
    stacked = results[1]
    unknown = [(k, axis) for k, value in enumerate(stacked) for axis in region.unknown_axes(value)]
    if unknown:
        carriers = carry(t, unknown, lengths_of_first_step(t, trips, carried, make, unknown))
        region, results = loop_region(t, carried, make, carriers, may_call_host)
    attributes = {"carried": len(carried)}
    if may_stop:
        attributes["while"] = 1
    graph = region.finish([value for part in results[:2] for value in part] + list(results[2:]))
    values = t.b.node("loop", [trips, *carried, *region.captured], attributes, [graph])
    return values[: len(carried)], values[len(carried) :]


def loop_region(t, carried, make, carriers, may_call_host):
    region = Region(t, "body", may_call_host)
    index = region.parameter("int64", ())
    params = [region.parameter(*t.b.type(value)) for value in carried]
    following, stacked, *go_on = make(region, index, params)
    following = [same_shape(region, value, param) for value, param in zip(following, params, strict=True)]
    stacked = [with_lengths(region, carriers, k, value) for k, value in enumerate(stacked)]
    return region, [following, stacked, *go_on]


def same_shape(region, value, param):
    """The next value of a carried one: a state keeps its shape."""
    if region.b.type(value)[1] == region.b.type(param)[1]:
        return value
    return region.like(value, region.lengths(param))


def lengths_of_first_step(t, trips, carried, make, unknown):
    """The lengths of what the first step would stack; zeros where there is none."""

    def first(region):
        results = make(region, region.const(0), [region.capture(value) for value in carried])
        return [region.length(results[1][k], axis) for k, axis in unknown]

    def none(region):
        return [region.const(0)] * len(unknown)

    return choose(t, t.one("gt", trips, t.const(0)), [first, none])
