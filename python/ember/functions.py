"""`ember.function`: PyTensor variables to a callable, without PyTensor's FunctionGraph, FunctionMaker and Function.

    x = pt.vector("x")
    fn = ember.function([x], pt.exp(x).sum())
    fn(np.arange(3.0))

The graph is walked where it is, nothing is cloned or rewritten, and a call whose arguments need no conversion costs
a fraction of a microsecond. The results are those of `pytensor.function(..., mode="EMBER")`.
"""

import warnings

from pytensor.compile.io import In, Out
from pytensor.compile.rebuild import UnusedInputError, rebuild_collect_shared
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.configdefaults import config
from pytensor.graph.basic import Constant, Variable

from . import _core
from .function_graph import Graph, checked_update
from .report import FunctionReport
from .translate import translate

__all__ = ["Function", "function"]


def function(
    inputs,
    outputs=None,
    updates=None,
    givens=None,
    name=None,
    *,
    no_default_updates=False,
    allow_input_downcast=None,
    on_unused_input=None,
):
    """Compiles PyTensor variables, or finds them compiled.

    inputs: variables, or `pytensor.In` for a name, strictness, downcasts or a default value (a shared variable or
    container). outputs: a variable, or a list of them; `pytensor.Out` is taken for its variable. updates: pairs of a
    shared variable and the variable that it becomes, all at once, after a call that succeeded. givens: pairs of a
    variable and what stands in for it. no_default_updates: True, or a list of shared variables whose default_update
    does not count. allow_input_downcast, on_unused_input: as in `pytensor.function`.

    A call gives an array, or a list of arrays; none of them shares memory with inputs, shared variables, or another.
    Shared variables are read from their containers at each call. Any number of threads may call at once; calls that
    update shared variables take turns.

    Raises what `pytensor.function` raises for wrong arguments, and UnsupportedOp for an Op that Ember neither
    translates nor can run through its `perform`.
    """
    ins = [_as_in(i, allow_input_downcast) for i in _listed(inputs)]
    _check_duplicates(ins)
    single = isinstance(outputs, Variable | Out)
    wanted = [] if outputs is None else [outputs] if single else list(outputs)
    wanted = [_as_variable(v) for v in wanted]
    pairs = _pairs(updates, "updates")
    variables = [i.variable for i in ins]
    in_updates = [(k, i.update) for k, i in enumerate(ins) if i.update is not None and i.value is not None]
    if givens:
        _check_givens(givens, variables)
        extended = wanted + [update for _, update in in_updates]
        _, extended, (_, replaced, _, _) = rebuild_collect_shared(
            extended, variables, replace=givens, updates=pairs, no_default_updates=no_default_updates
        )
        wanted, changed = extended[: len(wanted)], extended[len(wanted) :]
        in_updates = [(k, update) for (k, _), update in zip(in_updates, changed, strict=True)]
        pairs, no_default_updates = list(replaced.items()), True
    else:
        pairs = _checked_updates(pairs)
    graph = Graph(variables, wanted, pairs, in_updates, no_default_updates)
    _check_unused(graph, on_unused_input)
    return Function(graph, ins, single, name, translate(graph))


class Function(_core.Function):
    """What `ember.function` gives: `fn(*inputs, **inputs_by_name)`.

    ember: how the code came about (a FunctionReport). name: as given. inputs: the variables that a call gives.
    outputs: the variables that it returns. Pickles as its graph and the values of its shared variables, without
    code: whoever unpickles it finds the code in the cache.
    """

    def __init__(self, graph, ins, single, name, translated, together_with=None):
        cells = tuple(variable.container.storage for variable in graph.shared)
        containers = [_container(i.value) for i in ins]
        targets = graph.update_mapping.values()
        updated = tuple(containers[k].storage if k < graph.given else cells[k - graph.given] for k in targets)
        returned = -1 if single else graph.returned
        super().__init__(translated.plan, cells, updated, graph.given, returned, together_with)
        self.name = name
        self._graph, self._ins, self._single, self._translated = graph, ins, single, translated
        self._containers = containers

    # --- about it
    @property
    def ember(self):
        return FunctionReport(self._translated)

    @property
    def inputs(self):
        return list(self._graph.inputs[: self._graph.given])

    @property
    def outputs(self):
        return list(self._graph.outputs[: self._graph.returned])

    def get_shared(self):
        """The shared variables that a call reads or updates."""
        return list(self._graph.shared)

    def __repr__(self):
        return f"<ember.Function {self.name or 'without name'}: {self.ember!r}>"

    # --- calls that need conversion: called by the class in C
    def _inputs(self, arguments, keywords):
        ins = self._ins
        if len(arguments) > len(ins):
            raise TypeError(f"{self._title}: takes {len(ins)} inputs, {len(arguments)} were given")
        values = {}
        for position, value in enumerate(arguments):
            values[position] = self._filtered(position, value)
        for name, value in keywords.items():
            positions = [k for k, i in enumerate(ins) if i.name == name]
            if not positions:
                known = ", ".join(i.name for i in ins if i.name) or "none"
                raise TypeError(f"{self._title}: Unknown input: {name}. Inputs with a name: {known}")
            if len(positions) > 1:
                raise TypeError(f"{self._title}: Ambiguous name: {name} is the name of {len(positions)} inputs")
            if positions[0] in values:
                raise TypeError(f"{self._title}: Multiple values for input: {name}")
            values[positions[0]] = self._filtered(positions[0], value)
        return tuple(self._value(position, values) for position in range(len(ins)))

    def _filtered(self, position, value):
        i = self._ins[position]
        if i.implicit:
            raise TypeError(f"{self._title}: Tried to provide value for implicit input: {i.variable}")
        try:
            return i.variable.type.filter(value, strict=i.strict, allow_downcast=i.allow_downcast)
        except Exception as error:
            error.add_note(f"{self._title}: the argument at index {position}, for input {i.name or i.variable}")
            raise

    def _value(self, position, values):
        if position in values:
            return values[position]
        container = self._containers[position]
        if container is None:
            raise TypeError(f"{self._title}: Missing input: {self._ins[position].name or self._ins[position].variable}")
        return container.storage[0]

    @property
    def _title(self):
        return f"ember function {self.name!r}" if self.name else "ember function"

    # --- copies
    def copy(self, swap=None, delete_updates=False, name=None):
        """Another function over the same shared variables, and mostly over the same code.

        swap: pairs of a shared variable and the one that takes its place. delete_updates: the copy updates nothing.
        """
        graph, translated = self._graph, self._translated
        same = True
        if swap:
            swap = dict(swap)
            same = all(old.type == getattr(new, "type", None) for old, new in swap.items())
            graph = graph.swapped(swap)
        if delete_updates and graph.update_mapping:
            graph, same = graph.without_updates(), False
        if not same:
            translated = translate(graph)
        return Function(graph, self._ins, self._single, name or self.name, translated, self)

    def __copy__(self):
        return self.copy()

    def __reduce__(self):
        fields = ("name", "strict", "allow_downcast", "implicit", "value")
        ins = [{field: getattr(i, field) for field in fields} for i in self._ins]
        return _unpickle, (self._graph.flat(), ins, self._single, self.name)


def _unpickle(flat, ins, single, name):
    graph = Graph.of_flat(flat)
    ins = [In(variable, autoname=False, **fields) for variable, fields in zip(graph.inputs, ins, strict=False)]
    return Function(graph, ins, single, name, translate(graph))


# --- arguments of function()
def _listed(inputs):
    if not isinstance(inputs, list | tuple):
        raise TypeError("the inputs of a function are a list, even where there is one")
    return inputs


def _as_in(i, allow_downcast):
    if isinstance(i, In):
        found = i
    elif isinstance(i, Variable):
        found = In(i, allow_downcast=allow_downcast)
    else:
        raise TypeError(f"Unknown parameter type: {type(i)}")
    if isinstance(found.variable, Constant):
        raise TypeError(f"Constants not allowed in param list: {found.variable}")
    if isinstance(found.variable, SharedVariable):
        raise TypeError(
            f"Cannot use a shared variable ({found.variable}) as explicit input. Consider substituting a non-shared "
            "variable via the `givens` parameter"
        )
    return found


def _as_variable(output):
    variable = output.variable if isinstance(output, Out) else output
    if not isinstance(variable, Variable):
        raise TypeError(f"Outputs must be pytensor Variable or Out instances, not {output!r} of type {type(output)}")
    return variable


def _check_duplicates(ins):
    seen = {}
    for position, i in enumerate(ins):
        if i.variable in seen:
            raise UnusedInputError(
                f"Variable {i.variable} is used twice in inputs, at indices {seen[i.variable]} and {position}"
            )
        seen[i.variable] = position


def _pairs(updates, what):
    pairs = list(updates.items() if isinstance(updates, dict) else updates or ())
    if not all(isinstance(p, list | tuple) and len(p) == 2 and isinstance(p[0], Variable) for p in pairs):
        raise TypeError(f"The `{what}` parameter must be an ordered mapping or a list of pairs")
    return [tuple(p) for p in pairs]


def _check_givens(givens, inputs):
    inputs = set(inputs)
    for old, _ in _pairs(givens, "givens"):
        if old in inputs:
            raise RuntimeError(f"You are trying to replace variable '{old}' through `givens`, but it is an input")


def _checked_updates(pairs):
    seen = {}
    for variable, update in pairs:
        if not isinstance(variable, SharedVariable):
            raise TypeError("update target must be a SharedVariable", variable)
        if variable in seen:
            raise ValueError("this shared variable already has an update expression", (variable, seen[variable]))
        seen[variable] = checked_update(variable, update, allow_convert=True)
    return list(seen.items())


def _container(value):
    """The Container of a default value, or None."""
    return getattr(value, "container", value)


def _check_unused(graph, policy):
    policy = config.on_unused_input if policy is None else policy
    if policy not in ("raise", "warn", "ignore"):
        raise ValueError(f"on_unused_input is raise, warn or ignore, not {policy!r}")
    for position, variable in enumerate(graph.inputs[: graph.given]):
        if variable in graph.used or policy == "ignore":
            continue
        message = f"the graph does not use the input {variable} (at index {position})"
        if policy == "raise":
            raise UnusedInputError(f"{message}; on_unused_input='ignore' allows that")
        warnings.warn(message, stacklevel=3)
