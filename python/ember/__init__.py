"""Ember: tensor graphs compiled once and found again by any later process.

import ember.pytensor                            # mode="EMBER" for PyTensor and PyMC
fn = ember.function([x], y)                      # a PyTensor graph without PyTensor's own overhead
ember.cache.info()                               # the cache of compiled graphs
llm = ember.load_llm("model.gguf")               # a language model
"""

import importlib

from ._core import UnsupportedOp

__version__ = "0.1.0"
__all__ = ["LLM", "Function", "UnsupportedOp", "cache", "function", "load_llm"]

# What is imported when it is first used: PyTensor takes a second.
_LAZY = {"function": "functions", "Function": "functions", "load_llm": "llm", "LLM": "llm"}


def __getattr__(name):
    if name in _LAZY:
        value = getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
    elif name in ("cache", "pytensor"):
        value = importlib.import_module(f".{name}", __name__)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
