"""ember.function: values, arguments, shared variables, copies, pickles, threads; what importing the package costs."""

import copy
import json
import pickle
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

pytest.importorskip("ember", reason="the Python package is not built, or not on PYTHONPATH")
pytensor = pytest.importorskip("pytensor")

import pytensor.tensor as pt  # noqa: E402
from pytensor.compile.io import In, Out  # noqa: E402
from pytensor.compile.rebuild import UnusedInputError  # noqa: E402
from pytensor.graph.utils import MissingInputError  # noqa: E402

import ember  # noqa: E402

F64 = np.arange(8.0)


def in_new_process(code, environment):
    program = f"import json, sys\n{textwrap.dedent(code)}"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


# --- the package
def test_importing_is_quick_and_loads_no_pytensor(package_environment):
    loaded = in_new_process(
        """
        import ember
        print(json.dumps([name in sys.modules for name in ("pytensor", "numba", "scipy")]))
        """,
        package_environment,
    )
    assert loaded == [False, False, False]


def test_public_names(package_environment):
    for name in ember.__all__:
        assert getattr(ember, name) is not None
    assert set(ember.__all__) <= set(dir(ember))
    with pytest.raises(AttributeError, match="no_such_name"):
        ember.no_such_name  # noqa: B018


def test_a_later_process_finds_the_code_and_loads_no_compiler(package_environment, tmp_path):
    code = """
        import numpy as np, pytensor, pytensor.tensor as pt, ember
        from ember import _core
        x, w = pt.matrix("x"), pytensor.shared(np.ones((3, 3)) * {value}, name="w")
        fn = ember.function([x], pt.exp(x) * w + 1)
        out = fn(np.zeros((3, 3)))
        print(json.dumps([fn.ember.status, fn.ember.key, out.sum(), _core.compiler_loaded()]))
    """
    environment = package_environment | {"EMBER_CACHE_DIR": str(tmp_path)}
    first = in_new_process(code.format(value=1.0), environment)
    second = in_new_process(code.format(value=2.0), environment)
    assert (first[0], second[0]) == ("miss", "hit")
    assert first[1] == second[1]
    assert (first[2], second[2]) == (18.0, 27.0)
    assert (first[3], second[3]) == (True, False)


# --- calls
def test_one_output_and_many():
    x, y = pt.vector("x"), pt.vector("y")
    one = ember.function([x], x + 1)
    np.testing.assert_array_equal(one(F64), F64 + 1)
    total, double = ember.function([x, y], [(x * y).sum(), Out(x + x)])(F64, F64)
    assert total == (F64 * F64).sum()
    assert total.shape == ()
    np.testing.assert_array_equal(double, 2 * F64)
    assert isinstance(ember.function([x], [x + 1])(F64), list)
    assert ember.function([])() == []


def test_results_are_the_callers_own():
    x = pt.vector("x")
    s = pytensor.shared(F64.copy(), name="s")
    constant = pt.constant(F64)
    results = ember.function([x], [x, x, s, constant, x[::-1]])(F64)
    for k, result in enumerate(results):
        for other in (F64, s.get_value(borrow=True), constant.data, *results[:k]):
            assert not np.shares_memory(result, other)
    np.testing.assert_array_equal(results[4], F64[::-1])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int8", "bool"])
def test_arguments_are_converted_as_pytensor_does(dtype):
    x = pt.vector("x", dtype=dtype)
    ours = ember.function([x], x * x if dtype != "bool" else x & x)
    arguments = [[1, 0, 1], (1.0, 0.0), np.array([1, 0], "int8"), np.ones(2), np.ones(4, dtype)[::2], 1, None]
    for argument in [*arguments, np.ones((2, 2), dtype), "text", np.array([1.5, 2.0]), np.ones(2, ">f4"), x]:
        try:
            expected = x.type.filter(argument)
        except (TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                ours(argument)
        else:
            result = ours(argument)
            assert result.dtype == dtype
            np.testing.assert_array_equal(result, expected * expected if dtype != "bool" else expected)


def test_strictness_and_downcasts():
    x = pt.vector("x", dtype="float32")
    wide = np.array([1.0, 2.0])
    with pytest.raises(TypeError, match="precision"):
        ember.function([x], x)(wide)
    assert ember.function([x], x, allow_input_downcast=True)(wide).dtype == "float32"
    strict = ember.function([In(x, strict=True)], x + 1)
    assert strict(np.ones(2, "float32")).tolist() == [2, 2]
    with pytest.raises(TypeError):
        strict([1.0, 2.0])


def test_inputs_by_name():
    x, y = pt.scalar("x"), pt.scalar("y")
    fn = ember.function([x, In(y, name="other")], x - 2 * y, name="difference")
    assert fn(1.0, 2.0) == fn(1.0, other=2.0) == fn(other=2.0, x=1.0) == -3.0
    for call, said in (
        (lambda: fn(1.0), "difference.*Missing input: other"),
        (lambda: fn(1.0, 2.0, 3.0), "takes 2 inputs, 3 were given"),
        (lambda: fn(1.0, y=2.0), "Unknown input: y"),
        (lambda: fn(1.0, 2.0, x=3.0), "Multiple values for input: x"),
    ):
        with pytest.raises(TypeError, match=said):
            call()
    twice = ember.function([x, In(y, name="x")], x - y)
    with pytest.raises(TypeError, match="Ambiguous name: x"):
        twice(x=1.0)


def test_default_values():
    x, y = pt.scalar("x"), pt.scalar("y")
    default = pytensor.shared(10.0)
    fn = ember.function([x, In(y, value=default, implicit=False)], x + y)
    assert fn(1.0) == 11.0
    assert fn(1.0, 2.0) == 3.0
    default.set_value(20.0)
    assert fn(1.0) == 21.0
    hidden = ember.function([x, In(y, value=default)], x + y)
    assert hidden(1.0) == 21.0
    with pytest.raises(TypeError, match="implicit"):
        hidden(1.0, 2.0)
    counting = ember.function([x, In(y, value=default, update=x + y, implicit=False)], y)
    assert [float(counting(1.0)), float(counting(1.0))] == [20.0, 21.0]


def test_lengths_that_do_not_fit():
    x, fixed = pt.vector("x"), pt.vector("fixed", shape=(3,))
    with pytest.raises((TypeError, ValueError)):
        ember.function([x, fixed], x + fixed)(np.ones(4), np.ones(3))
    with pytest.raises(TypeError):
        ember.function([fixed], fixed + 1)(np.ones(4))


# --- graphs
def test_intermediate_variables_may_be_inputs():
    x = pt.vector("x")
    square = x**2
    assert ember.function([square], square.sum())(F64) == F64.sum()


def test_givens():
    x, y, z = pt.vector("x"), pt.vector("y"), pt.vector("z")
    s = pytensor.shared(np.ones(8), name="s")
    np.testing.assert_array_equal(ember.function([z], x + 1, givens={x: z * 2})(F64), F64 * 2 + 1)
    fn = ember.function([y], x * y, givens=[(x, s)], updates={s: s + 1})
    assert [fn(np.ones(8))[0], fn(np.ones(8))[0], s.get_value()[0]] == [1.0, 2.0, 3.0]
    with pytest.raises(RuntimeError, match="replace variable"):
        ember.function([x], x + 1, givens={x: s})


def test_wrong_arguments():
    x, y = pt.vector("x"), pt.vector("y")
    s = pytensor.shared(1.0)
    for call, kind in (
        (lambda: ember.function([x], y), MissingInputError),
        (lambda: ember.function([x, y], x), UnusedInputError),
        (lambda: ember.function([x, x], x), UnusedInputError),
        (lambda: ember.function(x, x), TypeError),
        (lambda: ember.function([s], s), TypeError),
        (lambda: ember.function([pt.constant(1.0)], x), TypeError),
        (lambda: ember.function([x], "x"), TypeError),
        (lambda: ember.function([x], x, updates={x: x + 1}), TypeError),
        (lambda: ember.function([x], x, updates={s: x}), TypeError),
        (lambda: ember.function([x], x, updates=[(s, s + 1), (s, s + 2)]), ValueError),
        (lambda: ember.function([x], x, updates=[s]), TypeError),
        (lambda: ember.function([x], x, on_unused_input="maybe"), ValueError),
    ):
        with pytest.raises(kind):
            call()
    assert ember.function([x, y], x, on_unused_input="ignore")(F64, F64)[1] == 1.0
    with pytest.warns(UserWarning, match="does not use"):
        ember.function([x, y], x, on_unused_input="warn")


def test_deep_graphs_need_no_deep_stack():
    x = pt.scalar("x")
    y = x
    for k in range(3000):
        y = y * 0.5 + float(k % 3)
    fn = ember.function([x], y)
    again = pickle.loads(pickle.dumps(fn))
    assert fn(1.0) == again(1.0)


# --- shared variables
def test_updates_are_made_at_once_and_after_success():
    x = pt.scalar("x")
    a, b = pytensor.shared(1.0, name="a"), pytensor.shared(2.0, name="b")
    fn = ember.function([x], a + b, updates=[(a, b * x), (b, a)])
    assert fn(10.0) == 3.0
    assert (a.get_value(), b.get_value()) == (20.0, 1.0)
    checked = ember.function([x], pt.specify_shape(pt.zeros(pt.cast(x, "int64")), (2,)).sum(), updates={a: a + 1})
    with pytest.raises(AssertionError):
        checked(3.0)
    assert a.get_value() == 20.0
    assert checked(2.0) == 0.0
    assert a.get_value() == 21.0
    a.set_value(5.0)
    assert fn(1.0) == 6.0


def test_default_updates():
    counter = pytensor.shared(0.0)
    counter.default_update = counter + 1
    fn = ember.function([], counter * 2)
    assert [float(fn()) for _ in range(3)] == [0.0, 2.0, 4.0]
    fixed = ember.function([], counter * 2, no_default_updates=True)
    assert fixed() == fixed() == 6.0
    listed = ember.function([], counter, no_default_updates=[counter])
    assert listed() == listed()
    explicit = ember.function([], counter, updates={counter: counter * 10})
    explicit()
    assert counter.get_value() == 30.0


def test_random_draws_go_on():
    rng = pytensor.shared(np.random.default_rng(3), name="rng")
    state, draw = pt.random.normal(0.0, 1.0, size=4, rng=rng).owner.outputs
    fn = ember.function([], draw, updates={rng: state})
    reference = np.random.default_rng(3)
    for _ in range(3):
        np.testing.assert_allclose(fn(), reference.normal(size=4))


# --- copies and pickles
def test_copies():
    x = pt.scalar("x")
    s = pytensor.shared(1.0, name="s")
    fn = ember.function([x], s * x, updates={s: s + 1}, name="first")
    again = copy.copy(fn)
    assert (fn(1.0), again(1.0), s.get_value()) == (1.0, 2.0, 3.0)
    assert again.ember.key == fn.ember.key
    other = pytensor.shared(100.0, name="other")
    swapped = fn.copy(swap={s: other}, name="second")
    assert (swapped(1.0), other.get_value(), s.get_value(), swapped.name) == (100.0, 101.0, 3.0, "second")
    assert swapped.get_shared() == [other]
    reading = fn.copy(delete_updates=True)
    assert reading(1.0) == reading(1.0) == 3.0
    with pytest.raises(ValueError, match="no shared variable of this function"):
        fn.copy(swap={other: s})
    with pytest.raises(TypeError, match="type"):
        fn.copy(swap={s: pytensor.shared(np.ones(3))})
    deep = copy.deepcopy(fn)
    assert deep(1.0) == 3.0
    assert s.get_value() == 3.0


def test_pickles_hold_graph_and_values_but_no_code():
    x = pt.vector("x")
    w = pytensor.shared(np.full(8, 3.0), name="w")
    fn = ember.function([In(x, name="data")], [x * w, x.sum()], updates={w: w + 1}, name="scaled")
    data = pickle.dumps(fn)
    assert b"ELF" not in data
    again = pickle.loads(data)
    assert (again.name, again.ember.key) == ("scaled", fn.ember.key)
    np.testing.assert_array_equal(again(data=F64)[0], 3 * F64)
    assert w.get_value()[0] == 3.0, "the copy has its own shared variable"
    assert again.get_shared()[0].get_value()[0] == 4.0
    both = pickle.loads(pickle.dumps([fn, w]))
    both[0](F64)
    assert both[1].get_value()[0] == 4.0, "what is pickled together stays together"


def test_a_worker_that_was_spawned_finds_the_code(package_environment, tmp_path):
    code = """
        import numpy as np, pytensor, pytensor.tensor as pt, cloudpickle, ember
        x = pt.vector("x")
        fn = ember.function([x], pt.tanh(x) * pytensor.shared(2.0))
        cloudpickle.dump(fn, open({path!r}, "wb"))
        print(json.dumps(fn(np.ones(2)).tolist()))
    """
    worker = """
        import pickle, numpy as np
        from ember import _core
        fn = pickle.load(open({path!r}, "rb"))
        print(json.dumps([fn(np.ones(2)).tolist(), fn.ember.status, _core.compiler_loaded()]))
    """
    pytest.importorskip("cloudpickle")
    path = str(tmp_path / "function.pkl")
    environment = package_environment | {"EMBER_CACHE_DIR": str(tmp_path / "cache")}
    expected = in_new_process(code.format(path=path), environment)
    assert in_new_process(worker.format(path=path), environment) == [expected, "hit", False]


# --- threads
def test_many_threads_call_one_function():
    x = pt.matrix("x")
    fn = ember.function([x], pt.exp(x).sum(axis=1))
    data = [np.full((3, 4), k / 7) for k in range(8)]
    wrong = []

    def work(k):
        expected = np.exp(data[k]).sum(axis=1)
        for _ in range(300):
            if not np.allclose(fn(data[k]), expected):
                wrong.append(k)

    run_all([threading.Thread(target=work, args=(k,)) for k in range(8)])
    assert wrong == []


@pytest.mark.parametrize("length", [None, 5])
def test_no_update_is_lost_between_threads(length):
    counter = pytensor.shared(np.int64(0) if length is None else np.zeros(length, "int64"))
    fn = ember.function([], [], updates={counter: counter + 1})
    functions = [fn, fn.copy()]
    run_all([threading.Thread(target=lambda f=f: [f() for _ in range(2000)]) for f in functions * 2])
    assert np.all(counter.get_value() == 8000)


def run_all(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# --- what it costs
def test_a_small_call_costs_less_than_numpy():
    """x + 1 of 8 numbers: NumPy's own addition, three times over, is far more than a call costs."""
    x = pt.vector("x")
    fn = ember.function([x], x + 1)

    def seconds(call, repeats=2000):
        begin = time.perf_counter()
        for _ in range(repeats):
            call()
        return time.perf_counter() - begin

    pairs = [(seconds(lambda: fn(F64)), seconds(lambda: F64 + 1)) for _ in range(15)]
    assert min(ours / numpy for ours, numpy in pairs) < 1.5


# --- the report
def test_report():
    x = pt.vector("x")
    fn = ember.function([x], pt.exp(x) + 1, name="named")
    assert fn.ember.status in ("hit", "miss")
    assert len(fn.ember.key) == 64
    assert fn.ember.report() == {}
    assert "exp" in fn.ember.text()
    assert "kernel" in fn.ember.text("loops") or "for" in fn.ember.text("loops")
    assert ember.cache.explain(fn).state == "none"
    assert "named" in repr(fn)
    assert fn.ember.key[:16] in repr(fn)
    with pytest.raises(ValueError, match="stage"):
        fn.ember.text("nonsense")
