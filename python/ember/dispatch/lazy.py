"""Which nodes are needed by one branch of an IfElse only. They become part of the branch: it may never run."""

from pytensor.conditional import IfElse


def deferred_nodes(nodes):
    """By node: (the IfElse, its branch) to which alone it belongs, the outermost one. nodes: in topological order.

    Nodes that are needed by two branches that have none in common are nobody's.
    """
    if not any(isinstance(node.op, IfElse) for node in nodes):
        return {}
    here = set(nodes)
    owners = {}  # node -> places it is needed at
    tags = {}
    for node in reversed(nodes):
        places = owners.pop(node, None)
        tag = common_place(places, tags) if places else None
        if tag is not None:
            tags[node] = tag
        for position, variable in enumerate(node.inputs):
            if variable.owner in here:
                owners.setdefault(variable.owner, []).append(place_of(node, position, tag))
    return tags


def place_of(node, position, tag):
    """Where an input of a node is needed; None: in any case."""
    if not isinstance(node.op, IfElse) or position == 0:
        return tag
    return node, position <= node.op.n_outs


def common_place(places, tags):
    """The innermost branch that all places are in."""
    first, *others = places
    chain = path(first, tags)
    for place in others:
        mine = path(place, tags)
        chain = [a for a, b in zip(chain, mine, strict=False) if a == b]
    return chain[-1] if chain else None


def path(place, tags):
    """The branches around a place, the outermost first."""
    chain = []
    while place is not None:
        chain.append(place)
        place = tags.get(place[0])
    return chain[::-1]
