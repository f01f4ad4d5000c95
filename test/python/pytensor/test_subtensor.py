"""Basic and advanced indexing: reading, setting and adding, against PyTensor's Python code."""

import numpy as np
import pytest
from against_py import compare, raises, values

pytensor = pytest.importorskip("pytensor")
import pytensor.tensor as pt  # noqa: E402

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"]
SHAPES = [(0, 4), (1, 4), (5, 4)]
BASIC = {
    "row": lambda x: x[0],
    "last": lambda x: x[-1, 2],
    "column": lambda x: x[:, -1],
    "tail": lambda x: x[1:],
    "head": lambda x: x[:-1],
    "middle": lambda x: x[-3:3, 1:-1],
    "far": lambda x: x[-100:100],
    "none": lambda x: x[4:2],
    "odd": lambda x: x[::2, 1::2],
    "backward": lambda x: x[::-1],
    "backward two": lambda x: x[::-2, 3:0:-2],
    "backward part": lambda x: x[3:0:-1, -2::-1],
    "backward none": lambda x: x[0:3:-1],
    "backward far": lambda x: x[100:-100:-1],
    "huge": lambda x: x[: 2**62, :: 2**62],
    "huge backward": lambda x: x[:: -(2**62)],
    "added axes": lambda x: x[None, 1:, None],
}


def tensor(dtype, shape, static):
    return pt.tensor("x", dtype=dtype, shape=shape if static else (None,) * len(shape))


def y_for(part, dtype="float64"):
    return pt.tensor("y", dtype=dtype, shape=(None,) * part.type.ndim)


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("name", BASIC)
def test_basic_index_reads(name, static):
    for shape in SHAPES:
        x = tensor("float64", shape, static)
        compare([x], BASIC[name](x), [values(shape, "float64")])


@pytest.mark.parametrize("dtype", DTYPES)
def test_basic_index_of_each_dtype(dtype):
    x = tensor(dtype, (5, 4), False)
    compare([x], [x[1:, ::-1], x[2], x[-1, 0]], [values((5, 4), dtype)], [values((3, 7), dtype)])


def test_odd_strides():
    x = pt.tensor3("x")
    wide = values((6, 8, 4), "float64")
    compare([x], [x[1, ::-1], x[:, 1:3, -1]], [wide[::2, ::-1]], [wide.T], [np.broadcast_to(wide[:1], (3, 8, 4))])


def test_slices_with_bounds_of_the_run():
    x, a, b, c = pt.vector("x"), pt.lscalar("a"), pt.lscalar("b"), pt.lscalar("c")
    numbers = (-9, -5, -4, -1, 0, 1, 3, 5, 9)
    for n in (0, 1, 5):
        data = values((n,), "float64")
        calls = [[data, i, j, k] for i in numbers for j in numbers for k in (-7, -2, -1, 1, 2, 7)]
        compare([x, a, b, c], [x[a:b:c], x[a::c], x[:b:c], x[::c]], *calls)
        pairs = [[data, i, j] for i in numbers for j in numbers]
        compare([x, a, b], [x[a:b], x[a:], x[:b], x[a:b:-1], x[b::-2]], *pairs)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_bounds_of_each_integer_dtype(dtype):
    x, a = pt.matrix("x"), pt.scalar("a", dtype=dtype)
    compare([x, a], [x[a], x[:, a:], x[:a]], [values((4, 3), "float64"), np.array(2, dtype)])


@pytest.mark.parametrize("index", [5, -6, 2**40])
def test_index_out_of_range(index):
    x, i, y = pt.tensor("x", dtype="float64", shape=(None, 3)), pt.lscalar("i"), pt.dvector("y")
    data, row = values((5, 3), "float64"), values((3,), "float64")
    raises(IndexError, [x, i], x[i], data, index)
    raises(IndexError, [x], x[index], data)
    raises(IndexError, [x, i, y], x[i].set(y), data, index, row)
    raises(IndexError, [x, y], x[index].inc(y), data, row)
    fixed = pt.tensor("x", dtype="float64", shape=(5, 3))
    raises(IndexError, [fixed, y], fixed[index].inc(y), data, row)


def test_index_into_nothing():
    x, i = pt.vector("x"), pt.lscalar("i")
    raises(IndexError, [x, i], x[i], values((0,), "float64"), 0)
    raises(IndexError, [x], x[-1], values((0,), "float64"))


def test_step_of_zero():
    x, k, y = pt.vector("x"), pt.lscalar("k"), pt.dscalar("y")
    data = values((5,), "float64")
    raises(ValueError, [x, k], x[::k], data, 0)
    raises(ValueError, [x, k, y], x[1::k].set(y), data, 0, 1.0)


@pytest.mark.parametrize("mode", ["set", "inc"])
@pytest.mark.parametrize("name", [n for n in BASIC if n != "added axes"])
def test_basic_index_writes(name, mode):
    for shape in SHAPES:
        for static in (False, True):
            x = tensor("float64", shape, static)
            data = values(shape, "float64")
            try:
                part = BASIC[name](data)
            except IndexError:
                continue
            y = y_for(BASIC[name](x))
            result = getattr(BASIC[name](x), mode)(y)
            calls = [[data, values(part.shape, "float64", 1)]]
            if 0 not in part.shape and part.ndim:
                calls.append([data, values((1,) * part.ndim, "float64", 1)])
            compare([x, y], result, *calls)
            compare([x], getattr(BASIC[name](x), mode)(3), [data])


@pytest.mark.parametrize("dtype", DTYPES)
def test_basic_writes_of_each_dtype(dtype):
    x, y = pt.matrix("x", dtype=dtype), pt.vector("y", dtype=dtype)
    data, row = values((5, 4), dtype), values((4,), dtype, 1)
    outputs = [x[1].set(y), x[::2].set(y), x[1].inc(y), x[3:0:-2].inc(y)]
    compare([x, y], outputs, [data, row])


def test_writes_of_another_dtype():
    x, y, z = pt.fmatrix("x"), pt.dvector("y"), pt.lvector("z")
    data, row = values((5, 4), "float32"), values((4,), "float64", 1) / 3
    compare([x, y], [x[1].set(y.astype("float32")), x[1:3].inc(y.astype("float32"))], [data, row])
    compare([x, z], [x[1].set(z), x[1:3].set(z)], [data, values((4,), "int64")])


def test_writes_with_bounds_of_the_run():
    x, y, a, b, c = pt.vector("x"), pt.dvector("y"), pt.lscalar("a"), pt.lscalar("b"), pt.lscalar("c")
    for n in (0, 1, 5):
        data = values((n,), "float64")
        for make in (lambda p: p.set(y), lambda p: p.inc(y)):
            calls = []
            for i in (-9, -3, 0, 2, 9):
                for j in (-9, -3, 0, 2, 9):
                    for k in (-2, -1, 1, 3):
                        size = len(data[i:j:k])
                        calls += [[data, values((size,), "float64", 1), i, j, k], [data, np.array([2.5]), i, j, k]]
            compare([x, y, a, b, c], make(x[a:b:c]), *calls)


def test_value_of_another_length():
    x, y = pt.vector("x"), pt.vector("y")
    data = values((5,), "float64")
    for result in (x[1:4].set(y), x[1:4].inc(y), x[::2].set(y), x[[0, 1, 2]].set(y), x[[0, 1, 2]].inc(y)):
        raises(ValueError, [x, y], result, data, values((2,), "float64"))


def test_several_writes():
    x, y = pt.matrix("x"), pt.vector("y")
    written = x[0].set(y)[:, 1].inc(2)[1:, 2:].set(7)
    compare([x, y], [written, x + written], [values((4, 5), "float64"), values((5,), "float64")])


# --- advanced
ADVANCED = {
    "vector": lambda x, i, j: x[i],
    "second": lambda x, i, j: x[:, i],
    "last": lambda x, i, j: x[..., i],
    "pairs": lambda x, i, j: x[i, j],
    "apart": lambda x, i, j: x[i, :, j],
    "inner pairs": lambda x, i, j: x[:, i, j],
    "with slice": lambda x, i, j: x[1:, i],
    "slice after": lambda x, i, j: x[i, ::-1],
    "slices around": lambda x, i, j: x[1:, i, ::2],
    "apart with slice": lambda x, i, j: x[i, 1:, j],
    "matrix": lambda x, i, j: x[pt.stack([i, j])],
    "outer": lambda x, i, j: x[i[:, None], j],
    "outer apart": lambda x, i, j: x[i[:, None], 1:, j],
    "scalar beside": lambda x, i, j: x[0, i],
    "scalar apart": lambda x, i, j: x[0, :, i],
    "index first": lambda x, i, j: x[i[0], :, j],
    "all": lambda x, i, j: x[i, j, j],
    "constant": lambda x, i, j: x[[0, -1, 2]],
    "two constants": lambda x, i, j: x[[[0], [-1]], [0, 1, 1]],
    "empty": lambda x, i, j: x[:, np.zeros(0, dtype="int64")],
}
BLOCK = values((4, 3, 5), "float64")
I3, J3 = np.array([0, -1, 0]), np.array([2, 1, -2])


def index_vectors(dtype="int64"):
    return pt.vector("i", dtype=dtype), pt.vector("j", dtype=dtype)


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("name", ADVANCED)
def test_advanced_index_reads(name, static):
    x, (i, j) = tensor("float64", BLOCK.shape, static), index_vectors()
    one = np.array([1])
    compare([x, i, j], ADVANCED[name](x, i, j), [BLOCK, I3, J3], [BLOCK, one, J3], [BLOCK, I3, one], [BLOCK, one, one])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32"])
def test_index_of_each_integer_dtype(dtype):
    x, (i, j) = pt.tensor3("x"), index_vectors(dtype)
    compare([x, i, j], [x[i], x[:, i, j]], [BLOCK, np.abs(I3).astype(dtype), np.abs(J3).astype(dtype)])


@pytest.mark.parametrize("dtype", DTYPES)
def test_advanced_index_of_each_dtype(dtype):
    x, (i, j) = pt.matrix("x", dtype=dtype), index_vectors()
    y = pt.vector("y", dtype=dtype)
    data, row = values((4, 3), dtype), values((3,), dtype, 1)
    outputs = [x[i, j], x[:, j], x[i].set(y), x[i].inc(y), x[:, j].inc(y), x[i, j].inc(y)]
    compare([x, y, i, j], outputs, [data, row, I3, J3])


@pytest.mark.parametrize("mode", ["set", "inc"])
@pytest.mark.parametrize("name", ADVANCED)
def test_advanced_index_writes(name, mode):
    x, (i, j) = pt.tensor3("x"), index_vectors()
    part = ADVANCED[name](x, i, j)
    shape = pytensor.function([x, i, j], part.shape, mode="FAST_COMPILE", on_unused_input="ignore")(BLOCK, I3, J3)
    for dims in {tuple(shape), tuple(shape[1:])}:
        y = pt.tensor("y", dtype="float64", shape=(None,) * len(dims))
        compare([x, i, j, y], getattr(part, mode)(y), [BLOCK, I3, J3, values(dims, "float64", 1)])
    compare([x, i, j], getattr(part, mode)(2), [BLOCK, I3, J3])


def test_duplicates():
    x, y, i = pt.vector("x"), pt.vector("y"), pt.lvector("i")
    data, update, index = np.zeros(4), np.array([1.0, 2.0, 4.0, 8.0]), np.array([1, 1, -3, 0])
    once = pt.subtensor.inc_subtensor(x[i], y, ignore_duplicates=True)
    compiled = compare([x, y, i], [x[i].set(y), x[i].inc(y), once], [data, update, index])
    np.testing.assert_array_equal(compiled(data, update, index)[0], [8, 4, 0, 0])


def test_one_update_for_all():
    # PyTensor refuses to stretch an update whose length is not known to be 1 along one index vector.
    x, y, i = pt.vector("x"), pt.vector("y"), pt.lvector("i")
    raises(ValueError, [x, y, i], x[i].inc(y), np.zeros(4), np.ones(1), np.array([1, 2]))


@pytest.mark.parametrize("index", [4, -5, 2**40])
def test_advanced_index_out_of_range(index):
    x, y, (i, j) = pt.matrix("x"), pt.scalar("y"), index_vectors()
    data, bad, good = values((4, 3), "float64"), np.array([0, index]), np.array([0, 1])
    for result in (x[i], x[i, j], x[:, 1:][i], x[i].set(y), x[i].inc(y), x[i, j].inc(y), x[i, 1:].set(y)):
        raises(IndexError, [x, y, i, j], result, data, 1.0, bad, good)


def test_index_tensors_of_other_lengths():
    x, (i, j) = pt.matrix("x"), index_vectors()
    raises(IndexError, [x, i, j], x[i, j], values((4, 3), "float64"), np.array([0, 1]), np.array([0, 1, 2]))


MASKS = {
    "all": (lambda x, m, i: x[m], (4, 3, 5)),
    "first": (lambda x, m, i: x[m], (4,)),
    "second": (lambda x, m, i: x[:, m], (3,)),
    "two": (lambda x, m, i: x[:, m], (3, 5)),
    "with index": (lambda x, m, i: x[m, i], (4,)),
    "apart": (lambda x, m, i: x[m, :, i], (4,)),
    "with slice": (lambda x, m, i: x[m, 1:], (4,)),
}


@pytest.mark.parametrize("name", MASKS)
def test_masks(name):
    make, shape = MASKS[name]
    x, m, i = pt.tensor3("x"), pt.tensor("m", dtype="bool", shape=(None,) * len(shape)), pt.lvector("i")
    some = values(shape, "bool", 3)
    index = np.arange(some.sum()) % 3 if "index" in name or name == "apart" else np.array([0])
    calls = [[BLOCK, some, index]]
    if name not in ("with index", "apart"):
        calls += [[BLOCK, np.zeros(shape, "bool"), index], [BLOCK, np.ones(shape, "bool"), index]]
    part = make(x, m, i)
    compare([x, m, i], [part, part.set(1.5), part.inc(2)], *calls)
    constant = make(x, pt.constant(some), i)
    compare([x, i], [constant, constant.inc(2)], [BLOCK, index])


def test_mask_of_another_length():
    x, m = pt.matrix("x"), pt.vector("m", dtype="bool")
    for result in (x[m], x[m].set(1.0)):
        raises(IndexError, [x, m], result, values((4, 3), "float64"), np.ones(5, "bool"))


def test_lengths_stay_scalars():
    x = pt.tensor3("x")
    shape = pt.concatenate([x.shape[1:], x.shape[:1]])
    compiled = compare([x], x.reshape((shape[0], shape[1] * shape[2])), [BLOCK])
    text = compiled.ember.text()
    assert "gather" not in text and "slice" not in text


def test_gradients():
    x, i = pt.matrix("x"), pt.lvector("i")
    cost = (x[1:, ::2] ** 2).sum() + (x[i] ** 3).sum() + (x[0, i] * x[-1, 1]).sum()
    compare([x, i], pytensor.grad(cost, x), [values((4, 4), "float64"), np.array([0, 1, 1, -1])])


# --- lengths of 1 that only the run knows
INC_INDICES = {
    "vector": lambda x, i: x[i],
    "pair": lambda x, i: x[i, i],
    "mask": lambda x, i: x[x > 7],
    "matrix of indices": lambda x, i: x[i[:, None], i],
}


@pytest.mark.parametrize("index", INC_INDICES)
def test_a_value_is_repeated_only_where_its_type_says_so(index):
    x, i = pt.tensor("x", dtype="float64", shape=(None, None)), pt.lvector("i")
    part = INC_INDICES[index](x, i)
    y, single = y_for(part), pt.tensor("y", dtype="float64", shape=(1,) * part.type.ndim)
    matrix, rows = np.arange(12.0).reshape(4, 3), np.array([2, 0])
    one = np.ones((1,) * part.type.ndim)
    for put in (lambda part, y: part.inc(y), lambda part, y: part.set(y)):
        function = pytensor.function([x, i, y], put(part, y), mode="EMBER", on_unused_input="ignore")
        with pytest.raises(ValueError, match="Runtime broadcasting not allowed"):
            function(matrix, rows, one)
        compare([x, i, single], put(part, single), [matrix, rows, one])


def test_alloc_repeats_only_where_the_type_says_so():
    v, n = pt.dvector("v"), pt.lscalar("n")
    function = pytensor.function([v, n], pt.alloc(v, 2, n), mode="EMBER")
    np.testing.assert_array_equal(function(np.arange(3.0), 3), [np.arange(3.0)] * 2)
    for wrong in (np.ones(1), np.ones(2)):
        with pytest.raises(ValueError, match=r"could not broadcast input array.*Runtime broadcasting not allowed"):
            function(wrong, 3)
