"""Ember: tensor graphs compiled once and found again by any later process.

import ember.pytensor                            # mode="EMBER" for PyTensor and PyMC
"""

from ._core import UnsupportedOp

__all__ = ["UnsupportedOp"]
