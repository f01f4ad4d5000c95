"""The graph of an `ember.function`: a walk from its outputs to its inputs, its copies, its pickled form."""

import itertools

from pytensor.compile.aliasing import alias_root
from pytensor.compile.ops import deep_copy_op
from pytensor.compile.sharedvalue import SharedVariable
from pytensor.graph.basic import Apply, Constant
from pytensor.graph.utils import MissingInputError

from .dispatch.translation import is_tensor


class Graph:
    """A function's graph as translate() takes it: inputs (those that are given, then shared variables), outputs
    (those that are returned, then updates), update_mapping from an output's position to its input's, nodes in order.
    """

    def __init__(self, given, returned, updates, in_updates, no_default_updates):
        self.given, self.returned = len(given), len(returned)
        self.nodes = []
        self.used = set()
        walk = _Walk(given, self)
        walk.to(returned)
        walk.to(update for _, update in in_updates)
        shared = dict(updates)
        pending = list(shared.values())
        seen = 0
        while True:
            walk.to(pending)
            for variable in shared:
                walk.leaf(variable)
            pending = []
            for variable in walk.shared[seen:]:
                if variable not in shared and _updates_by_default(variable, no_default_updates):
                    shared[variable] = checked_update(variable, variable.default_update, allow_convert=False)
                    pending.append(shared[variable])
            seen = len(walk.shared)
            if not pending:
                break
        self.inputs = [*given, *walk.shared]
        position = {variable: k for k, variable in enumerate(walk.shared, self.given)}
        self.update_mapping = {}
        self.outputs = [_own(variable, self.nodes) for variable in returned]
        for target, update in [*in_updates, *((position[v], u) for v, u in shared.items())]:
            self.update_mapping[len(self.outputs)] = target
            self.outputs.append(_own(update, self.nodes))

    def toposort(self):
        return self.nodes

    @property
    def shared(self):
        return self.inputs[self.given :]

    # --- copies
    def swapped(self, swap):
        """This graph with other shared variables of the same class of types."""
        for old, new in swap.items():
            if old not in self.shared:
                raise ValueError(f"swap: {old} is no shared variable of this function")
            if not isinstance(new, SharedVariable) or not old.type.in_same_class(new.type):
                raise TypeError(f"swap: {new} is no shared variable of the type of {old}, {old.type}")
        flat = self.flat()
        inputs = [swap.get(variable, variable) for variable in self.inputs]
        return Graph.of_flat(flat | {"leaves": [*inputs, *flat["leaves"][len(inputs) :]]})

    def without_updates(self):
        return Graph(self.inputs[: self.given], self.outputs[: self.returned], [], [], True)

    # --- pickles
    def flat(self):
        """This graph as lists of numbers: a pickle of it is not as deep as the graph."""
        number, leaves = {}, []

        def leaf(variable):
            number[variable] = len(leaves)
            leaves.append(variable if variable.owner is None else variable.type.make_variable(variable.name))

        for variable in self.inputs:
            leaf(variable)
        made = {variable for node in self.nodes for variable in node.outputs}
        for variable in itertools.chain.from_iterable(node.inputs for node in self.nodes):
            if variable not in number and variable not in made:
                leaf(variable)
        for variable in self.outputs:
            if variable not in number and variable not in made:
                leaf(variable)
        nodes = []
        for node in self.nodes:
            nodes.append((node.op, [number[v] for v in node.inputs], [(v.type, v.name) for v in node.outputs]))
            for variable in node.outputs:
                number[variable] = len(number)
        return {
            "given": self.given,
            "returned": self.returned,
            "inputs": len(self.inputs),
            "leaves": leaves,
            "nodes": nodes,
            "outputs": [number[v] for v in self.outputs],
            "update_mapping": self.update_mapping,
        }

    @classmethod
    def of_flat(cls, flat):
        """The graph of flat(), its nodes made anew."""
        graph = cls.__new__(cls)
        variables = list(flat["leaves"])
        graph.given, graph.returned, graph.update_mapping = flat["given"], flat["returned"], flat["update_mapping"]
        graph.nodes, graph.used = [], set()
        for op, inputs, outputs in flat["nodes"]:
            made = [kind.make_variable(name) for kind, name in outputs]
            graph.nodes.append(Apply(op, [variables[k] for k in inputs], made))
            variables += made
        graph.inputs = variables[: flat["inputs"]]
        graph.outputs = [variables[k] for k in flat["outputs"]]
        return graph


class _Walk:
    """Visits what variables depend on, operands first: fills graph.nodes and graph.used, finds shared variables."""

    def __init__(self, given, graph):
        self.shared = []
        self._given = set(given)
        self._graph = graph
        self._known = set()  # leaves
        self._done = set()  # nodes

    def leaf(self, variable):
        if variable in self._given:
            self._graph.used.add(variable)
        elif variable not in self._known:
            self._known.add(variable)
            if isinstance(variable, SharedVariable):
                self.shared.append(variable)
            elif not isinstance(variable, Constant):
                raise MissingInputError(f"the graph depends on {variable}, which is no input, nor has it a value")

    def to(self, variables):
        given, done, nodes = self._given, self._done, self._graph.nodes
        for root in variables:
            if root.owner is None or root in given:
                self.leaf(root)
                continue
            stack = [root.owner]
            while stack:
                node = stack[-1]
                if node in done:
                    stack.pop()
                    continue
                size = len(stack)
                for v in reversed(node.inputs):
                    owner = v.owner
                    if owner is not None and owner not in done and v not in given:
                        stack.append(owner)
                if len(stack) > size:
                    continue
                stack.pop()
                done.add(node)
                for v in node.inputs:
                    if v.owner is None or v in given:
                        self.leaf(v)
                nodes.append(node)


def checked_update(variable, update, allow_convert):
    try:
        return variable.type.filter_variable(update, allow_convert=allow_convert)
    except TypeError:
        raise TypeError(
            "An update must have the same type as the original shared variable "
            f"(shared_var={variable}, shared_var.type={variable.type}, update_val={update}, "
            f"update_val.type={getattr(update, 'type', None)})."
        ) from None


def _updates_by_default(variable, excluded):
    if variable.default_update is None or excluded is True:
        return False
    return excluded is False or variable not in excluded


def _own(variable, nodes):
    """The variable; a copy of it where its value is no tensor and may be that of an input or a constant."""
    if is_tensor(variable) or alias_root(variable).owner is not None:
        return variable
    copied = deep_copy_op(variable)
    nodes.append(copied.owner)
    return copied
