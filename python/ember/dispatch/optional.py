"""Which ops the compiler that is installed has."""

import functools

from .. import _core


@functools.cache
def has_op(name):
    """Is this op in the compiler's table?"""
    try:
        _core.Builder("probe").node(name, [])
    except ValueError as error:
        return f"no op '{name}'" not in str(error)
    return True
