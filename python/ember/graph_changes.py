"""Changes of a graph that tags ask for and that change what it means; all other rewriting is the compiler's."""


def change_graph(fgraph, tags):
    """Applies what `tags` ask for. PyMC's parameter checks become -inf, or are removed, where it says so."""
    checks = "local_remove_check_parameter" in tags, "local_check_parameter_to_ninf_switch" in tags
    if any(checks):
        _change_parameter_checks(fgraph, remove=checks[0])


def _change_parameter_checks(fgraph, remove):
    import pytensor.tensor as pt
    from pymc.logprob.utils import CheckParameterValue

    for node in fgraph.toposort():
        if not isinstance(node.op, CheckParameterValue):
            continue
        value, *conditions = node.inputs
        if not remove:
            if not node.op.can_be_replaced_by_ninf:
                continue
            value = pt.switch(pt.all(conditions), value, -float("inf")).astype(node.outputs[0].dtype)
            if value.type != node.outputs[0].type:
                value = node.outputs[0].type.filter_variable(value)
        fgraph.replace(node.outputs[0], value, import_missing=True, reason="check of parameters")
