"""Translation of Ops on tensors with named axes: PyTensor's own lowering of one node, whose result is translated.

Such a tensor is an array like any other when it runs; its names are settled while the graph is built.
"""

from pytensor.compile.mode import optdb
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.fg import FunctionGraph
from pytensor.graph.rewriting.db import RewriteDatabaseQuery
from pytensor.tensor.type_other import SliceType
from pytensor.xtensor.basic import XOp

from .registry import translates_lazily

LOWERING = RewriteDatabaseQuery(include=["minimum_compile"])


def copied(node, inner):
    """The results of the same node on other inputs."""
    return Apply(node.op, [inner(v) for v in node.inputs], [v.type() for v in node.outputs]).outputs


@translates_lazily(XOp)
def lowered(t, op, node):
    taken = {}  # variable of the graph -> variable of the small graph

    def inner(variable):
        if isinstance(variable, Constant):
            return variable
        if variable not in taken:
            if isinstance(variable.type, SliceType) and variable.owner is not None:
                # The lowering looks into slices.
                return copied(variable.owner, inner)[list(variable.owner.outputs).index(variable)]
            taken[variable] = variable.type()
        return taken[variable]

    results = copied(node, inner)
    graph = FunctionGraph(list(taken.values()), results, clone=False)
    optdb["lower_xtensor"].query(LOWERING).rewrite(graph)
    if any(isinstance(n.op, XOp) for n in graph.apply_nodes):
        return NotImplemented
    return t.inline(graph, [t.value(variable) for variable in taken])
