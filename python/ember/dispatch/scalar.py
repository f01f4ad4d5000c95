"""Translations of scalar Ops, which Elemwise, reductions and inner scalar graphs share.

Operands come in any dtype; what is computed in is the result's dtype, but for comparisons and predicates.
"""

import numpy as np
import pytensor.scalar.basic as ps
import pytensor.scalar.math as psm

from .registry import SCALAR_GRAPHS, SCALARS, translates, translates_scalar, translates_scalar_graph

FLOATS = ("float16", "float32", "float64")


def scalar(t, op, args, out):
    """The result of a scalar Op on values, element by element; NotImplemented if it has no translation."""
    translate = SCALARS.get(type(op))
    if translate is None or out.startswith("complex") or any(t.b.dtype(a).startswith("complex") for a in args):
        return NotImplemented
    return translate(t, op, args, out)


def _direct(name, *classes):
    """Operands in the result's dtype, one op."""

    def translate(t, op, args, out):
        return t.b.one(name, [t.cast(a, out) for a in args])

    translates_scalar(*classes)(translate)


for _name, _class in {
    "sub": ps.Sub,
    "div": ps.TrueDiv,
    "floor_div": ps.IntDiv,
    "mod": ps.Mod,
    "pow": ps.Pow,
    "abs": ps.Abs,
    "neg": ps.Neg,
    "reciprocal": ps.Reciprocal,
    "square": ps.Sqr,
    "sqrt": ps.Sqrt,
    "exp": ps.Exp,
    "exp2": ps.Exp2,
    "expm1": ps.Expm1,
    "log": ps.Log,
    "log2": ps.Log2,
    "log10": ps.Log10,
    "log1p": ps.Log1p,
    "sin": ps.Sin,
    "cos": ps.Cos,
    "tan": ps.Tan,
    "asin": ps.ArcSin,
    "acos": ps.ArcCos,
    "atan": ps.ArcTan,
    "atan2": ps.ArcTan2,
    "sinh": ps.Sinh,
    "cosh": ps.Cosh,
    "tanh": ps.Tanh,
    "asinh": ps.ArcSinh,
    "acosh": ps.ArcCosh,
    "atanh": ps.ArcTanh,
    "erf": psm.Erf,
    "erfc": psm.Erfc,
    "erfinv": psm.Erfinv,
    "erfcinv": psm.Erfcinv,
    "lgamma": psm.GammaLn,
    "digamma": psm.Psi,
    "sigmoid": psm.Sigmoid,
    "softplus": psm.Softplus,
    "not": ps.Invert,
    "and": ps.AND,
    "or": ps.OR,
    "xor": ps.XOR,
}.items():
    _direct(_name, _class)


def _fold(name, *classes):
    """Any number of operands, combined from the left."""

    def translate(t, op, args, out):
        total = t.cast(args[0], out)
        for a in args[1:]:
            total = t.b.one(name, (total, t.cast(a, out)))
        return total

    translates_scalar(*classes)(translate)


_fold("add", ps.Add)
_fold("mul", ps.Mul)
_fold("max", ps.Maximum)
_fold("min", ps.Minimum)


def _compare(name, cls):
    def translate(t, op, args, out):
        common = np.result_type(*(t.b.dtype(a) for a in args)).name
        return t.cast(t.b.one(name, [t.cast(a, common) for a in args]), out)

    translates_scalar(cls)(translate)


for _name, _class in {"eq": ps.EQ, "ne": ps.NEQ, "lt": ps.LT, "le": ps.LE, "gt": ps.GT, "ge": ps.GE}.items():
    _compare(_name, _class)


def _rounding(name, cls):
    def translate(t, op, args, out):
        value = t.cast(args[0], out)
        return t.b.one(name, (value,)) if out in FLOATS else value

    translates_scalar(cls)(translate)


for _name, _class in {
    "ceil": ps.Ceil,
    "floor": ps.Floor,
    "trunc": ps.Trunc,
    "round": ps.RoundHalfToEven,
    "round_away": ps.RoundHalfAwayFromZero,
}.items():
    _rounding(_name, _class)


def _predicate(name, cls):
    def translate(t, op, args, out):
        value = args[0]
        if t.b.dtype(value) not in FLOATS:
            return t.cast(t.b.one("ne", (value, value)), out)
        return t.cast(t.b.one(name, (value,)), out)

    translates_scalar(cls)(translate)


_predicate("is_nan", ps.IsNan)
_predicate("is_inf", ps.IsInf)


@translates_scalar(ps.Sign)
def sign(t, op, args, out):
    value = t.cast(args[0], out)
    return value if out == "bool" else t.b.one("sign", (value,))


@translates_scalar(ps.Identity, ps.Cast, ps.Conj, ps.Real)
def cast(t, op, args, out):
    return t.cast(args[0], out)


@translates_scalar(ps.Imag)
def imag(t, op, args, out):
    return t.b.one("mul", (t.cast(args[0], out), t.const(0, out)))


@translates_scalar(ps.Switch)
def switch(t, op, args, out):
    condition, yes, no = args
    return t.b.one("select", (t.to_bool(condition), t.cast(yes, out), t.cast(no, out)))


@translates_scalar(ps.Clip)
def clip(t, op, args, out):
    # As Clip compares: the lower bound first; a NaN stays.
    value, low, high = (t.cast(a, out) for a in args)
    below, above = t.b.one("lt", (value, low)), t.b.one("gt", (value, high))
    return t.b.one("select", (below, low, t.b.one("select", (above, high, value))))


@translates_scalar(ps.Second)
def second(t, op, args, out):
    """The second operand in the shape of both."""
    shape_of, value = args
    value = t.cast(value, out)
    rank = max(t.rank(shape_of), t.rank(value))
    lengths = []
    for axis in range(rank):
        own, other = axis - rank + t.rank(shape_of), axis - rank + t.rank(value)
        if (own >= 0 and t.dim(shape_of, own) != 1) or other < 0:
            lengths.append(t.length(shape_of, own))
        else:
            lengths.append(t.length(value, other))
    return t.broadcast(value, lengths) if rank else value


@translates_scalar(psm.Log1mexp)
def log1mexp(t, op, args, out):
    """log(1 - exp(x)) for x <= 0, the better of two forms on each side of -log 2."""
    x = t.cast(args[0], out)
    near = t.one("log", t.one("neg", t.one("expm1", x)))
    far = t.one("log1p", t.one("neg", t.one("exp", x)))
    return t.one("select", t.one("gt", x, t.const(-0.6931471805599453, out)), near, far)


@translates_scalar(ps.Composite)
def composite(t, op, args, out):
    """An inner graph of scalar Ops with one output."""
    results = inner_scalars(t, op.fgraph, args)
    return results if results is NotImplemented else t.cast(results[0], out)


@translates_scalar_graph(ps.Composite)
def composite_results(t, op, args):
    return inner_scalars(t, op.fgraph, args)


def scalars(t, op, args, outs):
    """All results of a scalar Op on values, element by element; outs: their dtypes."""
    translate = SCALAR_GRAPHS.get(type(op))
    if translate is not None:
        return translate(t, op, args)
    result = scalar(t, op, args, outs[0]) if len(outs) == 1 else NotImplemented
    return result if result is NotImplemented else [result]


def inner_scalars(t, fgraph, args):
    """The outputs of a graph of scalar Ops, element by element."""
    values = dict(zip(fgraph.inputs, args, strict=True))

    def value(variable):
        if variable not in values:
            values[variable] = t.literal(np.asarray(variable.data, dtype=variable.type.dtype))
        return values[variable]

    for node in fgraph.toposort():
        operands = [value(v) for v in node.inputs]
        results = scalars(t, node.op, operands, [v.type.dtype for v in node.outputs])
        if results is NotImplemented:
            return NotImplemented
        values.update(zip(node.outputs, results, strict=True))
    return [value(v) for v in fgraph.outputs]


@translates(ps.ScalarOp)
def scalar_node(t, op, node, *inputs):
    """A scalar Op as a node of its own, on values of rank 0."""
    return scalars(t, op, inputs, [v.type.dtype for v in node.outputs])
