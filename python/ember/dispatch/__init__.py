"""Translations of PyTensor Ops, a module for each family."""

from . import advanced, basic, control, elemwise, extra, linear, reduction, scalar, shape, sort, subtensor  # noqa: F401  they register
from .registry import translates, translates_scalar
from .translation import Program, Translation

__all__ = ["Program", "Translation", "translates", "translates_scalar"]
