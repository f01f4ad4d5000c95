"""Types of the package's public names; see docs/python.md."""

from . import cache as cache
from ._core import UnsupportedOp as UnsupportedOp
from .functions import Function as Function
from .functions import function as function
from .llm import LLM as LLM
from .llm import load_llm as load_llm

__version__: str
