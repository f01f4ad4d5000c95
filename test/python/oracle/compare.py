"""Comparison of arrays in units in the last place."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Tolerance:
    """How far a result may be from what is wanted: `ulps` of the wanted value, or `absolute`, whichever is more."""

    ulps: float = 0
    absolute: object = 0.0  # a number or an array
    zero_signs: bool = True  # must 0 and -0 differ?
    lost_bits: int = 0  # bits of the mantissa that the dtype has fewer than the array: 16 for bf16 in f32


EXACT = Tolerance()


def spacing(values, lost_bits=0):
    """The distance to the next number of the dtype, at infinity and NaN that of the largest one."""
    below_largest = np.nextafter(np.finfo(values.dtype).max, values.dtype.type(0))
    sizes = np.fmin(np.abs(values), below_largest)
    return np.spacing(sizes).astype(np.longdouble) * 2.0**lost_bits


def wrong_floats(got, want, tolerance):
    """Which elements are wrong."""
    wide_got, wide_want = got.astype(np.longdouble), want.astype(np.longdouble)
    largest = np.longdouble(np.finfo(want.dtype).max)
    step = spacing(want, tolerance.lost_bits)
    # Infinity counts as the number after the largest one, so results that just overflow are near those that do not.
    if tolerance.ulps > 0:
        wide_got = np.clip(wide_got, -largest - step, largest + step)
        wide_want = np.clip(wide_want, -largest - step, largest + step)
    distance = np.abs(wide_got - wide_want)
    allowed = np.maximum(tolerance.ulps * step, np.asarray(tolerance.absolute, dtype=np.longdouble))
    near = (wide_got == wide_want) | (distance <= allowed)
    if tolerance.zero_signs:
        near &= (got != 0) | (want != 0) | (np.signbit(got) == np.signbit(want))
    return ~np.where(np.isnan(want) | np.isnan(got), np.isnan(want) & np.isnan(got), near)


def wrong_complex(got, want, tolerance):
    """Which elements are wrong: the distance counts, in ulps of the wanted size; any NaN equals any NaN."""
    sizes = np.abs(want)
    distance = np.abs(got.astype(np.clongdouble) - want.astype(np.clongdouble))
    allowed = np.maximum(tolerance.ulps * spacing(sizes), np.asarray(tolerance.absolute, dtype=np.longdouble))
    near = (got == want) | (distance <= allowed)
    return ~np.where(np.isnan(want) | np.isnan(got), np.isnan(want) & np.isnan(got), near)


def wrong_elements(got, want, tolerance):
    with np.errstate(all="ignore"):
        if want.dtype.kind == "f":
            return wrong_floats(got, want, tolerance)
        if want.dtype.kind == "c":
            return wrong_complex(got, want, tolerance)
        return got != want


def difference(got, wants, tolerance=EXACT):
    """None where each element agrees with one of the arrays; else a line that says how it does not, and the first index
    (None: it is the dtype or the shape)."""
    want = wants[0]
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}", None
    wrong = np.logical_and.reduce([wrong_elements(got, one, tolerance) for one in wants])
    if not wrong.any():
        return None
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {wrong.size} wrong; at {list(index)}: {got[index]!r}, not {want[index]!r}", index
