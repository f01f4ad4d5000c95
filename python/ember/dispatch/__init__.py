"""Translations of PyTensor Ops, a module for each family."""

from . import (  # noqa: F401  they register
    advanced,
    basic,
    blockwise,
    control,
    convolution,
    elemwise,
    extra,
    linear,
    reduction,
    scalar,
    scalar_loop,
    scan,
    shape,
    sort,
    subtensor,
)
from .registry import translates, translates_scalar
from .translation import Program, Translation

__all__ = ["Program", "Translation", "translates", "translates_scalar"]
