"""ember-opt as a program: arrays in and out, exit status, blessing."""

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def ember_opt(root, tmp_path):
    program = Path(os.environ.get("EMBER_BIN", root / "build" / "release" / "bin")) / "ember-opt"

    def call(*arguments, status=0, stdin="", **environment):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("EMBER_")}
        kept |= {"EMBER_CACHE_DIR": str(tmp_path / "cache")} | environment
        run = subprocess.run(
            [program, *map(str, arguments)], input=stdin, capture_output=True, encoding="utf-8", env=kept
        )
        assert run.returncode == status, (run.returncode, run.stdout, run.stderr)
        return run.stdout if status == 0 else run.stdout + run.stderr

    return call


def graph(tmp_path, text):
    path = tmp_path / "graph.ember"
    path.write_text(text)
    return path


DTYPES = {"f16": "f2", "f32": "f4", "f64": "f8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8"}
DTYPES |= {"u8": "u1", "u16": "u2", "u32": "u4", "u64": "u8", "bool": "b1", "c64": "c8", "c128": "c16"}


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_of_every_dtype(ember_opt, tmp_path, dtype):
    x = np.array([[0, 1, 1], [1, 0, 1]]).astype(DTYPES[dtype])
    np.save(tmp_path / "x.npy", x)
    path = graph(tmp_path, f"func @f(%x: {dtype}[n,m]) {{ %y = transpose(%x) {{perm=[1,0]}} return %y, %x }}")
    ember_opt("run", path, "--inputs", tmp_path / "x.npy", "--outputs", tmp_path / "out")
    for name, expected in (("out0.npy", x.T), ("out1.npy", x)):
        found = np.load(tmp_path / name)
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2), (1, 1, 1, 1)])
def test_arrays_of_every_shape(ember_opt, tmp_path, shape):
    x = np.full(shape, 1.5, np.float32)
    np.save(tmp_path / "x.npy", x)
    dims = ",".join(f"d{axis}" for axis in range(len(shape)))
    path = graph(tmp_path, f"func @f(%x: f32[{dims}]) {{ %y = add(%x, %x) return %y }}")
    for engine in ("interp", "compiled"):
        ember_opt("run", path, "--engine", engine, "--inputs", tmp_path / "x.npy", "--outputs", tmp_path / "out")
        np.testing.assert_array_equal(np.load(tmp_path / "out0.npy"), x + x)


def test_bad_inputs_are_one_clear_line(ember_opt, tmp_path):
    path = graph(tmp_path, "func @f(%x: f32[n]) { return %x }")
    np.save(tmp_path / "long.npy", np.zeros((2, 2), np.float32))
    np.save(tmp_path / "fortran.npy", np.asfortranarray(np.zeros((2, 2), np.float32)))
    np.save(tmp_path / "objects.npy", np.array([None]), allow_pickle=True)
    (tmp_path / "cut.npy").write_bytes((tmp_path / "long.npy").read_bytes()[:-1])
    (tmp_path / "empty.npy").write_bytes(b"")
    for name, words in {
        "long": "f32[2,2]",
        "fortran": "Fortran",
        "objects": "|O",
        "cut": "15 bytes",
        "empty": "NUMPY",
        "absent": "absent.npy",
    }.items():
        said = ember_opt("run", path, "--inputs", tmp_path / f"{name}.npy", status=1)
        assert words in said, said
        assert said.startswith("ember-opt: ")
    assert "1 parameters, 0 inputs" in ember_opt("run", path, status=1)


def test_errors_and_exit_status(ember_opt, tmp_path):
    bad = graph(tmp_path, "func @f() {\n  oops\n}")
    assert f"{bad}:2:3: unknown op 'oops'" in ember_opt(bad, status=1)
    assert "unknown pass" in ember_opt("-", "--pass", "simplfy", stdin="func @f() { return }", status=1)
    assert "did you mean 'simplify'" in ember_opt("-", "--pass", "simplfy", stdin="func @f() { return }", status=1)
    ember_opt("--emit", "nonsense", bad, status=2)
    assert "absent" in ember_opt(tmp_path / "absent", status=1)


def test_key_is_of_the_graph_only(ember_opt):
    one = ember_opt("-", "--emit", "key", stdin="func @a(%x: f32[n]) { %y = exp(%x) return %y }")
    two = ember_opt("-", "--emit", "key", stdin="func @b(%0: f32[k]) { %z = log(%0) %1 = exp(%0) return %1 }")
    other = ember_opt("-", "--emit", "key", stdin="func @a(%x: f32[n]) { %y = log(%x) return %y }")
    assert one == two != other
    assert len(one) == 65


def test_op_table(ember_opt):
    ops = {op["name"]: op for op in json.loads(ember_opt("ops", "--json"))}
    assert ops["exp"]["numpy"] == "np.exp(x)"
    assert ops["dot_general"]["attributes"][1] == {"name": "batch", "kind": "ints", "optional": True}


WRONG = "func @f(%x: f32[n]) {\n  %y = neg(%x)\n  return %y\n}\n// input: f32[2] [1, 2]\n// expect: f32[2] [1, 2]\n"


@pytest.mark.parametrize("how", ["option", "environment"])
def test_blessing(ember_opt, tmp_path, how):
    (tmp_path / "run").mkdir()
    path = tmp_path / "run" / "wrong.ember"
    path.write_text(WRONG)
    said = ember_opt("test", tmp_path, status=1)
    assert f"ember-opt test --bless {path}" in said
    assert "- // expect: f32[2] [1, 2]" in said
    assert "1 cases in 1 files, 1 failed" in said
    assert path.read_text() == WRONG
    if how == "option":
        ember_opt("test", "--bless", path)
    else:
        ember_opt("test", path, EMBER_BLESS="1")
    assert "[-1, -2]" in path.read_text()
    assert "1 cases in 1 files, 0 failed" in ember_opt("test", path)


def test_no_tests_is_a_failure(ember_opt, tmp_path):
    assert "0 cases" in ember_opt("test", tmp_path, status=1)
    (tmp_path / "nonsense").mkdir()
    (tmp_path / "nonsense" / "a.ember").write_text("func @f() { return }")
    assert "no kind of test" in ember_opt("test", tmp_path, status=1)


def test_coverage_names_what_is_missing(ember_opt, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a.ember").write_text(WRONG)
    said = ember_opt("test", "--coverage", tmp_path, status=1)
    assert "no run test has the op exp" in said
    assert "no run test has the op neg" not in said
    assert "no infer test has the op neg" in said
