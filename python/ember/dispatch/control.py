"""Translations of Ops with inner graphs that run once: OpFromGraph and all its kin, and of IfElse."""

from pytensor.compile.builders import OpFromGraph
from pytensor.conditional import IfElse, LazyIfElse

from .region import choose
from .registry import translates, translates_lazily


@translates(OpFromGraph)
def inner_graph(t, op, node, *inputs):
    return t.inline(op.fgraph, inputs)


@translates_lazily(IfElse)
def if_else(t, op, node):
    """Only what the chosen branch needs runs, where it is needed by nothing else."""
    condition = truth(t, t.value(node.inputs[0]))
    branches = node.inputs[1 : 1 + op.n_outs], node.inputs[1 + op.n_outs :]

    def maker(variables):
        return lambda region: [region.value(v) for v in variables]

    return choose(t, condition, [maker(v) for v in branches], [(node, True), (node, False)])


@translates(LazyIfElse)
def lazy_if_else(t, op, node, condition, *inputs):
    def maker(branch):
        return lambda region: region.inline(branch.fgraph, [region.capture(value) for value in inputs])

    return choose(t, truth(t, condition), [maker(op.true_branch), maker(op.false_branch)])


def truth(t, condition):
    return t.to_bool(t.reshape(condition, ()) if t.rank(condition) else condition)
