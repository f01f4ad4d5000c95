"""Random graphs in the textual form, for comparing engines.

Float values are small integers as long as only exact ops touch them, so engines must agree to the bit whatever the
order in which they add; those that exp, tanh, ... made feed only smooth ops. Integers wrap.
"""

import math
import random
from dataclasses import dataclass

import numpy as np

FLOATS = {"f16": 2048, "bf16": 256, "f32": 1 << 20, "f64": 1 << 40}  # integers that are exact, and a margin
INTS = ["i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]
NUMPY = {"f16": "f2", "f32": "f4", "f64": "f8", "bool": "?"} | {name: f"{name[0]}{int(name[1:]) // 8}" for name in INTS}


@dataclass
class Value:
    name: str
    dtype: str
    lengths: tuple
    ones: tuple  # for each axis: is its length 1 for every input?
    bound: int = 1  # of the magnitude of exact floats
    exact: bool = True
    nan: bool = False

    @property
    def is_float(self):
        return self.dtype in FLOATS

    @property
    def rank(self):
        return len(self.lengths)

    def replace(self, **changes):
        return Value(**(self.__dict__ | changes))


class RandomGraph:
    """One graph: text() and arrays."""

    def __init__(self, seed, steps=14):
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.params, self.lines, self.arrays, self.updates = [], [], [], []
        self.functions = ""
        self.count = 0
        self.used = set()
        few = [0, 1, 2, 3] if self.random.random() < 0.15 else [1, 2, 3, 4, 5, 8, 9, 17, 33]
        self.lengths = self.random.choices(few, k=3)
        self.main = self.random.choice(["f32", "f32", "f32", "f64", "f16", "bf16", "i32", "i64", "u8", "bool"])
        self.values = []
        for _ in range(self.random.randint(1, 3)):
            self.values.append(self.param(self.main, self.shape()))
        makers = [name for name in dir(self) if name.startswith("make_")]
        weights = [5 if name in ("make_map1", "make_map2", "make_reduce", "make_softmax") else 1 for name in makers]
        for _ in range(self.random.randint(3, steps)):
            made = getattr(self, self.random.choices(makers, weights)[0])()
            if made is not None:
                self.values.append(self.bounded(made))
        loose = [value for value in self.values if value.name not in self.used]
        self.outputs = [*loose, *self.random.sample(self.values, min(2, len(self.values)))]
        for k, value in enumerate(self.outputs):
            if value.dtype == "bf16":  # no .npy file holds it
                self.outputs[k] = value.replace(name=self.emit("cast", [value], "dtype=f32"))

    # --- text

    def text(self):
        shared = {name: new.name for name, new in self.updates}
        header = ", ".join(("shared " if name in shared else "") + f"{name}: {kind}" for name, kind in self.params)
        results = [value.name for value in self.outputs] + [f"{new} -> {name}" for name, new in shared.items()]
        body = "\n".join(f"  {line}" for line in self.lines)
        return f"func @main({header}) {{\n{body}\n  return {', '.join(results)}\n}}\n{self.functions}"

    def fresh(self):
        self.count += 1
        return f"%{self.count}"

    def emit(self, op, operands=(), attributes="", tail=""):
        name = self.fresh()
        names = [one if isinstance(one, str) else one.name for one in operands]
        self.used.update(names)
        braces = f" {{{attributes}}}" if attributes else ""
        self.lines.append(f"{name} = {op}({', '.join(names)}){braces}{tail}")
        return name

    def number(self, value, dtype="i64"):
        return self.emit("const", attributes=f"value={str(value).lower()}", tail=f" : {dtype}[]")

    # --- parameters

    def shape(self):
        rank = self.random.choices([0, 1, 2, 3, 4], [1, 3, 6, 3, 1])[0]
        lengths = [self.random.choice([*self.lengths, *self.lengths, 1]) for _ in range(rank)]
        while math.prod(lengths) > 4000:
            lengths[self.random.randrange(rank)] = 2
        return tuple(lengths)

    def array(self, dtype, shape, with_nan=False):
        if dtype == "bool":
            return self.numbers.random(shape) < 0.5
        low, high = (0, 4) if dtype[0] == "u" else (-4, 4)
        array = np.asarray(self.numbers.integers(low, high, shape, endpoint=True)).astype(NUMPY[dtype])
        if with_nan and array.size:
            array.reshape(-1)[self.numbers.integers(0, array.size)] = np.nan
        return array

    def declare(self, array, dtype, ones):
        name = self.fresh()
        dims = [str(n) if one or self.random.random() < 0.2 else f"n{n}" for n, one in zip(array.shape, ones)]
        self.params.append((name, f"{dtype}[{','.join(dims)}]"))
        self.arrays.append(array)
        return name

    def param(self, dtype, shape, ones=None):
        ones = tuple(n == 1 and self.random.random() < 0.8 for n in shape) if ones is None else ones
        given = "f32" if dtype == "bf16" else dtype
        nan = dtype in FLOATS and self.random.random() < 0.08
        name = self.declare(self.array(given, shape, nan), given, ones)
        if dtype != given:
            name = self.emit("cast", [name], f"dtype={dtype}")
        return Value(name, dtype, shape, ones, bound=4, nan=nan)

    def indices(self, shape, length):
        array = self.numbers.integers(-length, length, shape).astype(self.random.choice(["i8", "i4"]))
        return self.declare(array, "i64" if array.dtype.itemsize == 8 else "i32", (False,) * len(shape))

    # --- picking

    def pick(self, test=lambda value: True):
        fitting = [value for value in self.values if test(value)]
        # Later values more often: long chains.
        return self.random.choices(fitting, range(1, len(fitting) + 1))[0] if fitting else None

    def with_axes(self):
        return self.pick(lambda value: value.rank > 0)

    def partner(self, value):
        """A value of the dtype that broadcasts with `value`, and may be itself."""

        def fits(other):
            pairs = zip(reversed(value.lengths), reversed(value.ones), reversed(other.lengths), reversed(other.ones))
            return other.dtype == value.dtype and all(m == n or a or b for m, a, n, b in pairs)

        found = self.pick(fits)
        if found is not None and self.random.random() < 0.75:
            return found
        shape = tuple(1 if self.random.random() < 0.3 else n for n in value.lengths)
        ones = tuple(n == 1 and (m != 1 or one) for n, m, one in zip(shape, value.lengths, value.ones))
        cut = self.random.randint(0, len(shape)) if self.random.random() < 0.3 else 0
        return self.param(value.dtype, shape[cut:], ones[cut:])

    def joined(self, a, b):
        """The lengths of two that broadcast."""
        rank = max(a.rank, b.rank)
        pad = lambda v: zip((1,) * (rank - v.rank) + v.lengths, (True,) * (rank - v.rank) + v.ones)  # noqa: E731
        dims = [(m, one_m) if not one_m else (n, one_n) for (m, one_m), (n, one_n) in zip(pad(a), pad(b))]
        lengths, ones = tuple(n for n, _ in dims), tuple(one for _, one in dims)
        return (lengths, ones) if math.prod(lengths) <= 20000 else None

    def clamped(self, value, limit):
        if not value.is_float or (value.exact and value.bound <= limit):
            return value
        low, high = self.number(-limit, value.dtype), self.number(limit, value.dtype)
        return value.replace(name=self.emit("clamp", [value, low, high]), bound=limit)

    def bounded(self, value):
        """Narrowed where results of exact ops would soon not be exact; others stay small enough for exp."""
        return self.clamped(value, 4) if value.bound > FLOATS.get(value.dtype, 0) // 64 else value

    def summable(self, value, count):
        """Narrowed so that `count` of them add up exactly; None where nothing does."""
        if not value.is_float:
            return value
        limit = FLOATS[value.dtype] // max(count, 1)
        return self.clamped(value, min(limit, 8)) if limit > 0 else None

    # --- one maker a kind of step

    def make_map1(self):
        value = self.pick()
        if value.dtype == "bool":
            return value.replace(name=self.emit("not", [value]))
        op = self.random.choice(["neg", "abs", "sign", "square", "smooth" if value.is_float else "not"])
        if op == "smooth":
            value = self.clamped(value, 4)
            op = self.random.choice(["exp", "tanh", "sigmoid", "sin", "softplus", "erf"])
            return value.replace(name=self.emit(op, [value]), exact=False, bound=64)
        return value.replace(
            name=self.emit(op, [value]),
            bound=value.bound**2 if op == "square" else value.bound,
            exact=value.exact,
        )

    def make_map2(self):
        a = self.pick()
        b = self.partner(a)
        dims = self.joined(a, b)
        if dims is None:
            return None
        op = self.random.choice(["add", "mul", "max", "min"] + ["sub"] * (a.dtype != "bool"))
        bound = a.bound * b.bound if op == "mul" else a.bound + b.bound
        operands = [a, b] if self.random.random() < 0.5 else [b, a]
        name = self.emit(op, operands)
        return Value(name, a.dtype, *dims, bound, a.exact and b.exact, a.nan or b.nan)

    def make_select(self):
        a = self.pick(lambda value: value.exact)
        b = a and self.partner(a)
        if a is None or not b.exact or (dims := self.joined(a, b)) is None:
            return None
        condition = self.emit(self.random.choice(["lt", "eq", "ge"]), [a, b])
        if self.random.random() < 0.3:
            return Value(condition, "bool", *dims)
        name = self.emit("select", [condition, a, b])
        return Value(name, a.dtype, *dims, max(a.bound, b.bound), nan=a.nan or b.nan)

    def make_cast(self):
        value = self.pick(lambda value: value.exact and not value.nan)
        if value is None:
            return None
        to = self.random.choice([*FLOATS, *INTS, "bool"])
        if value.is_float:  # a negative number has no unsigned cast, and none may overflow
            value = self.clamped(value, 8)
            value = value.replace(name=self.emit("abs", [value])) if to[0] == "u" else value
        elif to in FLOATS and value.dtype != "bool":
            low = 0 if value.dtype[0] == "u" else -4
            bounds = [self.number(low, value.dtype), self.number(4, value.dtype)]
            value = value.replace(name=self.emit("clamp", [value, *bounds]), bound=4)
        return value.replace(name=self.emit("cast", [value], f"dtype={to}"), dtype=to, bound=8)

    def make_reduce(self):
        value = self.pick()
        axes = sorted(self.random.sample(range(value.rank), self.random.randint(0, value.rank)))
        return self.reduced(value, axes)

    def reduced(self, value, axes, keep=False):
        count = math.prod(value.lengths[axis] for axis in axes)
        op = self.random.choice(["sum", "sum", "max", "min"])
        value = self.summable(value, count) if op == "sum" else value
        if value is None or (value.is_float and op != "sum" and count == 0):
            return None
        name = self.emit(f"reduce_{op}", [value], f"axes={axes}".replace(" ", ""))
        kept = [axis for axis in range(value.rank) if axis not in axes]
        lengths = tuple(value.lengths[axis] for axis in kept)
        ones = tuple(value.ones[axis] for axis in kept)
        bound = value.bound * max(count, 1) if op == "sum" else value.bound
        return value.replace(name=name, lengths=lengths, ones=ones, bound=bound)

    def back(self, source, reduced, axes):
        """The reduced value with its axes put back as ones."""
        lengths = [self.number(1) if k in axes else self.emit("dim", [source], f"axis={k}") for k in range(source.rank)]
        return self.emit("reshape", [reduced, *lengths])

    def make_softmax(self):
        """exp(x - max) / sum, or x minus something reduced over the same axes."""
        value = self.pick(lambda value: value.rank > 0 and value.dtype != "bool" and 0 not in value.lengths)
        if value is None:
            return None
        axes = sorted(self.random.sample(range(value.rank), self.random.randint(1, value.rank)))
        if not value.is_float or self.random.random() < 0.5:
            low = self.reduced(value, axes)
            return low and value.replace(
                name=self.emit("sub", [value, self.back(value, low, axes)]),
                bound=value.bound + low.bound,
            )
        value = self.clamped(value, 4)
        listed = f"axes={axes}".replace(" ", "")
        top = self.back(value, self.emit("reduce_max", [value], listed), axes)
        powers = self.emit("exp", [self.emit("sub", [value, top])])
        total = self.emit("reduce_sum", [powers], listed)
        if self.random.random() < 0.3:
            total = self.emit("log", [total])
            return value.replace(name=self.emit("sub", [value, self.back(value, total, axes)]), exact=False, bound=64)
        return value.replace(name=self.emit("div", [powers, self.back(value, total, axes)]), exact=False, bound=1)

    def make_transpose(self):
        value = self.pick()
        perm = self.random.sample(range(value.rank), value.rank)
        name = self.emit("transpose", [value], f"perm={perm}".replace(" ", ""))
        order = lambda items: tuple(items[axis] for axis in perm)  # noqa: E731
        return value.replace(name=name, lengths=order(value.lengths), ones=order(value.ones))

    def make_reshape(self):
        """Neighbouring axes become one, or an axis falls apart."""
        value = self.with_axes()
        if value is None:
            return None
        k = self.random.randrange(value.rank)
        dims = [self.emit("dim", [value], f"axis={axis}") for axis in range(value.rank)]
        lengths, ones = list(value.lengths), list(value.ones)
        if k + 1 < value.rank and self.random.random() < 0.7:
            dims[k : k + 2] = [self.emit("mul", dims[k : k + 2])]
            lengths[k : k + 2] = [lengths[k] * lengths[k + 1]]
            ones[k : k + 2] = [ones[k] and ones[k + 1]]
        else:
            part = self.random.choice([d for d in (1, 2, 3, 4) if lengths[k] % d == 0])
            dims[k : k + 1] = [self.number(part), self.number(lengths[k] // part)]
            lengths[k : k + 1] = [part, lengths[k] // part]
            ones[k : k + 1] = [part == 1, lengths[k + 1] == 1]
        return value.replace(name=self.emit("reshape", [value, *dims]), lengths=tuple(lengths), ones=tuple(ones))

    def make_broadcast(self):
        value = self.pick()
        if math.prod(value.lengths) > 2000 or value.rank > 4:
            return None
        lengths = tuple(self.random.choice(self.lengths) if one else n for n, one in zip(value.lengths, value.ones))
        more = (self.random.choice([1, 2, 3]),) if self.random.random() < 0.5 else ()
        lengths = more + lengths
        if math.prod(lengths) > 20000:
            return None
        name = self.emit("broadcast", [value, *(self.number(n) for n in lengths)])
        stretched = zip(lengths[len(more) :], value.ones, strict=True)
        ones = tuple(n == 1 for n in more) + tuple(one and n == 1 for n, one in stretched)
        return value.replace(name=name, lengths=lengths, ones=ones)

    def changed(self, value, name, axis, length, **more):
        lengths = (*value.lengths[:axis], length, *value.lengths[axis + 1 :])
        ones = (*value.ones[:axis], False, *value.ones[axis + 1 :])
        return value.replace(name=name, lengths=lengths, ones=ones, **more)

    def make_slice(self):
        value = self.with_axes()
        if value is None:
            return None
        axis = self.random.randrange(value.rank)
        length = value.lengths[axis]
        step = self.random.choice([1, 1, 2])
        size = self.random.randint(0 if length == 0 else 1, (length + step - 1) // step)
        start = self.random.randint(0, length - ((size - 1) * step + 1)) if size else 0
        if step == 1 and self.random.random() < 0.3 and size:
            step, start = -1, start + size - 1
        first = self.declare(np.array(start), "i64", ()) if self.random.random() < 0.3 else self.number(start)
        name = self.emit("slice", [value, first, self.number(size)], f"axis={axis}, step={step}")
        return self.changed(value, name, axis, size)

    def make_reverse(self):
        value = self.pick()
        axes = sorted(self.random.sample(range(value.rank), self.random.randint(0, value.rank)))
        return value.replace(name=self.emit("reverse", [value], f"axes={axes}".replace(" ", "")))

    def make_pad(self):
        value = self.with_axes()
        if value is None or math.prod(value.lengths) > 4000:
            return None
        axis = self.random.randrange(value.rank)
        low, high = self.random.randint(0, 2), self.random.randint(0, 2)
        fill = self.number("true" if value.dtype == "bool" else 1, value.dtype)
        name = self.emit("pad", [value, fill, self.number(low), self.number(high)], f"axis={axis}")
        return self.changed(value, name, axis, value.lengths[axis] + low + high)

    def make_concat(self):
        value = self.with_axes()
        if value is None or math.prod(value.lengths) > 4000:
            return None
        axis = self.random.randrange(value.rank)

        def fits(other):
            alike = other.dtype == value.dtype and other.rank == value.rank
            return alike and all(other.lengths[k] == value.lengths[k] for k in range(value.rank) if k != axis)

        pieces = [value, *(self.pick(fits) for _ in range(self.random.randint(1, 2)))]
        self.random.shuffle(pieces)
        more = {"bound": max(p.bound for p in pieces), "exact": all(p.exact for p in pieces)}
        more["nan"] = any(piece.nan for piece in pieces)
        name = self.emit("concat", pieces, f"axis={axis}")
        return self.changed(value, name, axis, sum(p.lengths[axis] for p in pieces), **more)

    def make_gather(self):
        value = self.pick(lambda value: value.rank > 0 and 0 not in value.lengths and math.prod(value.lengths) < 4000)
        if value is None:
            return None
        axis = self.random.randrange(value.rank)
        if self.random.random() < 0.3:
            shape = (*value.lengths[:axis], 3, *value.lengths[axis + 1 :])
            index = self.indices(shape, value.lengths[axis])
            name = self.emit("take_along", [value, index], f"axis={axis}")
            return value.replace(name=name, lengths=shape, ones=(False,) * value.rank)
        shape = self.random.choice([(), (self.random.choice(self.lengths),), (2, 2)])
        index = self.indices(shape, value.lengths[axis])
        name = self.emit("gather", [value, index], f"axes=[{axis}]")
        lengths = value.lengths[:axis] + shape + value.lengths[axis + 1 :]
        ones = value.ones[:axis] + (False,) * len(shape) + value.ones[axis + 1 :]
        return value.replace(name=name, lengths=lengths, ones=ones)

    def make_scatter(self):
        value = self.pick(lambda value: value.rank > 0 and 0 not in value.lengths and value.exact)
        if value is None:
            return None
        axis, count = self.random.randrange(value.rank), self.random.choice([0, 1, 5])
        shape = (*value.lengths[:axis], count, *value.lengths[axis + 1 :])
        updates = self.param(value.dtype, shape, tuple(False for _ in shape))
        index = self.indices((count,), value.lengths[axis])
        mode = self.random.choice(["add", "add", "set", "max"])
        name = self.emit("scatter", [value, updates, index], f'axes=[{axis}], mode="{mode}"')
        return value.replace(name=name, bound=value.bound + 4 * count, nan=value.nan or updates.nan)

    def make_update_slice(self):
        value = self.pick()
        shape = tuple(self.random.randint(min(n, 1), n) for n in value.lengths)
        block = self.param(value.dtype, shape, tuple(False for _ in shape))
        starts = [self.number(self.random.randint(0, n - m)) for n, m in zip(value.lengths, shape)]
        name = self.emit("update_slice", [value, block, *starts])
        return value.replace(name=name, bound=max(value.bound, 4), nan=value.nan or block.nan)

    def make_shared_update(self):
        """w - step, kept in w; w itself is used before and after."""
        if self.main == "bf16":
            return None
        like = self.pick(lambda value: value.dtype == self.main)
        if like is None:
            return None
        weight = self.param(self.main, like.lengths, like.ones)
        changed = weight
        for _ in range(self.random.randint(1, 2)):
            if self.random.random() < 0.5:
                changed = changed.replace(
                    name=self.emit("add" if self.main == "bool" else "sub", [changed, like]),
                    bound=changed.bound + like.bound,
                    exact=changed.exact and like.exact,
                    nan=changed.nan or like.nan,
                )
            else:
                self.values.append(self.bounded(changed))
                starts = [self.number(0) for _ in weight.lengths]
                block = self.param(self.main, tuple(min(n, 1) for n in weight.lengths))
                changed = changed.replace(
                    name=self.emit("update_slice", [changed, block, *starts]), nan=changed.nan or block.nan
                )
        self.updates.append((weight.name, changed))
        return self.random.choice([weight, changed])

    def make_scan(self):
        value = self.pick(lambda value: value.rank > 0 and value.dtype != "bool")
        axis = value and self.random.randrange(value.rank)
        value = value and self.summable(value, value.lengths[axis])
        if value is None:
            return None
        name = self.emit("cumsum", [value], f"axis={axis}")
        return value.replace(name=name, bound=value.bound * max(value.lengths[axis], 1))

    def make_argmax(self):
        value = self.pick(lambda value: value.rank > 0 and value.exact and 0 not in value.lengths)
        if value is None:
            return None
        axis = self.random.randrange(value.rank)
        name = self.emit(self.random.choice(["argmax", "argmin"]), [value], f"axis={axis}")
        drop = lambda items: items[:axis] + items[axis + 1 :]  # noqa: E731
        return Value(name, "i64", drop(value.lengths), drop(value.ones))

    def make_dot(self):
        value = self.with_axes()
        axis = value and self.random.randrange(value.rank)
        value = value and self.summable(value, 8 * value.lengths[axis])
        if value is None or math.prod(value.lengths) > 2000:
            return None
        other = self.param(value.dtype, (self.random.choice([1, 3, 8]), value.lengths[axis]), (False, False))
        name = self.emit("dot_general", [value, other], f"contract=[{axis},1]")
        lengths = value.lengths[:axis] + value.lengths[axis + 1 :] + other.lengths[:1]
        ones = value.ones[:axis] + value.ones[axis + 1 :] + (False,)
        bound = value.bound * 4 * max(other.lengths[1], 1)
        return value.replace(name=name, lengths=lengths, ones=ones, bound=bound, nan=value.nan or other.nan)

    def type_of(self, value):
        """A type as a region or function may declare it."""
        dims = [f"r{self.fresh()[1:]}" for _ in value.lengths]
        return f"{value.dtype}[{','.join(dims)}]"

    def make_if(self):
        value = self.clamped(self.pick(), 4)
        kind = self.type_of(value)
        condition = self.declare(np.array(self.random.random() < 0.5), "bool", ())
        op = "add" if value.dtype == "bool" else "mul"
        regions = f" then (%a: {kind}) {{ %b = {op}(%a, %a) return %b }} else (%a: {kind}) {{ return %a }}"
        name = self.emit("if", [condition, value], tail=regions)
        return value.replace(name=name, ones=(False,) * value.rank, bound=value.bound**2)

    def make_loop(self):
        """The last of the carried values, or all of them stacked."""
        value = self.clamped(self.pick(), 4)
        if math.prod(value.lengths) > 2000 or value.dtype == "bool":
            return None
        times = self.random.choice([0, 1, 3])
        count = self.declare(np.array(times), "i64", ())
        kind = self.type_of(value)
        head, dims = kind[:-1].split("[")
        last, stacked = self.fresh(), self.fresh()
        self.used.update([count, value.name])
        self.lines.append(
            f"{last}, {stacked} = loop({count}, {value.name}, {value.name}) {{carried=1}} do (%i: i64[], %v: {kind}, "
            f"%k: {kind}) {{ %w = add(%v, %k) %x = neg(%v) return %w, %x }} : {kind}, {head}[s{last[1:]}"
            f"{',' if dims else ''}{dims}]"
        )
        bound = value.bound * (times + 1)
        if self.random.random() < 0.5:
            return value.replace(name=last, ones=(False,) * value.rank, bound=bound)
        ones = (False,) * (value.rank + 1)
        return value.replace(name=stacked, lengths=(times, *value.lengths), ones=ones, bound=bound)

    def make_call(self):
        """Of a parameter: the text states what a call gives exactly as it is inferred."""
        if self.main == "bf16":
            return None
        value = self.param(self.main, self.pick().lengths)
        kind = self.params[-1][1]
        name = f"g{self.fresh()[1:]}"
        self.functions += f"func @{name}(%x: {kind}) {{ %y = max(%x, %x) %z = add(%y, %x) return %z }}\n"
        return value.replace(name=self.emit("call", [value], f'callee="{name}"', f" : {kind}"), bound=2 * value.bound)
