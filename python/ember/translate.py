"""A whole FunctionGraph: its translation, the executable, and the plan by which it is called."""

import contextlib
import gc
from collections import Counter

from pytensor.scalar.basic import ScalarType

from . import _core
from .dispatch.translation import INPUT, SHARED, Program, Translation, is_tensor, type_of


class Translated:
    """plan: what is called. executable: the compiled code. host_ops: names of Ops that run through `perform`."""

    def __init__(self, program, graph, plan, executable):
        self.program = program
        self.plan = plan
        self.executable = executable
        self.host_ops = Counter(str(node.op) for node in program.host_nodes.values())
        self._graph = graph

    def module(self):
        module = _core.Module()
        module.add(self._graph)
        return module


def shared_inputs(fgraph):
    """The positions of inputs that hold state which an output updates, by the output's position."""
    return dict(getattr(fgraph, "update_mapping", None) or {})


@contextlib.contextmanager
def collector_paused():
    """No garbage collection meanwhile: what building a graph allocates stays, and each collection would walk it."""
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@collector_paused()
def translate(fgraph):
    """Translates and compiles a FunctionGraph. Updates may take over the memory of the shared variables they update.

    Raises UnsupportedOp for an Op that is neither translated nor has a `perform`.
    """
    program = Program()
    t = Translation(program)
    updates = shared_inputs(fgraph)
    for variable in fgraph.inputs:
        dtype, shape = type_of(variable)
        is_state = is_tensor(variable) and hasattr(variable, "container")
        t.values[variable] = t.b.param(dtype, shape, SHARED if is_state else INPUT)
    t.run(fgraph.toposort())
    for position, variable in enumerate(fgraph.outputs):
        target = updates.get(position)
        is_state = target is not None and is_tensor(variable) and hasattr(fgraph.inputs[target], "container")
        t.b.output(t.value(variable), target if is_state else None)
    graph = t.b.finish()
    module = _core.Module()
    module.add(graph)
    executable = module.compile()
    plan = _core.plan(
        executable,
        fixed=[program.constants[number] for number in t.captured],
        objects=program.objects,
        object_inputs=flags(fgraph.inputs),
        object_outputs=flags(fgraph.outputs),
        scalar_outputs=[isinstance(v.type, ScalarType) for v in fgraph.outputs],
        exceptions=[exception for exception, _ in program.exceptions],
        host=program.host,
        labels=[str(variable) for variable in fgraph.inputs],
    )
    return Translated(program, graph, plan, executable)


def flags(variables):
    """Which values travel as handles; [] where none does."""
    objects = [not is_tensor(variable) for variable in variables]
    return objects if any(objects) else []
