"""Many checks in one graph and one process.

A Batch grows one function of the textual form and remembers what each of its outputs should be. check() writes the
graph and its inputs, runs `ember-opt run` and compares. If the run itself fails, ever smaller parts of the checks run
alone, so that the report names the ones at fault.
"""

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from oracle.compare import EXACT, Tolerance, difference

ROOT = Path(__file__).resolve().parents[3]

DTYPE_NAMES = {
    np.dtype(np.bool_): "bool",
    **{np.dtype(f"{kind}{bits // 8}"): f"{kind}{bits}" for kind in "iu" for bits in (8, 16, 32, 64)},
    **{np.dtype(f"f{bits // 8}"): f"f{bits}" for bits in (16, 32, 64)},
    np.dtype(np.complex64): "c64",
    np.dtype(np.complex128): "c128",
}


def program():
    """Path of ember-opt."""
    return Path(os.environ.get("EMBER_BIN", ROOT / "build" / "release" / "bin")) / "ember-opt"


# A missing program fails the tests where EMBER_BIN promises it.
needs_program = pytest.mark.skipif(
    not program().exists() and "EMBER_BIN" not in os.environ, reason=f"no {program()}: scripts/build makes it"
)


def engines():
    """The engines under test: EMBER_ENGINES, separated by commas."""
    return os.environ.get("EMBER_ENGINES", "interp").split(",")


def has_code(engine, dtype):
    """Does the engine compute with this dtype? Compiled code has no complex numbers yet."""
    is_complex = dtype in ("c64", "c128") if isinstance(dtype, str) else np.dtype(dtype).kind == "c"
    return engine == "interp" or not is_complex


def skip_without_code(engine, dtype):
    if not has_code(engine, dtype):
        pytest.skip(f"{engine} has no code for {dtype}")


def run_text(text, inputs, engine, folder):
    """Runs a module on arrays; gives the finished process and the prefix of the outputs' files."""
    folder = Path(folder)
    (folder / "graph.ember").write_text(text)
    paths = []
    for k, array in enumerate(inputs):
        paths.append(folder / f"in{k}.npy")
        np.save(paths[-1], array)
    command = [program(), "run", folder / "graph.ember", "--engine", engine, "--outputs", folder / "out"]
    command += ["--inputs", *paths] if paths else []
    return subprocess.run(list(map(str, command)), capture_output=True, encoding="utf-8", timeout=600)


def evaluate(text, inputs, engine):
    """The outputs of a module that must run."""
    with tempfile.TemporaryDirectory() as folder:
        run = run_text(text, inputs, engine, folder)
        assert run.returncode == 0, f"{run.stderr}\n{text}"
        count = len(list(Path(folder).glob("out*.npy")))
        return [np.load(Path(folder) / f"out{k}.npy") for k in range(count)]


def failure(text, inputs, engine):
    """The message of a module that must fail, in one line and with status 1."""
    with tempfile.TemporaryDirectory() as folder:
        run = run_text(text, inputs, engine, folder)
        assert run.returncode == 1, f"status {run.returncode}\n{text}"
        return run.stderr


@dataclass
class Step:
    """A parameter (op is None) or a node of the graph."""

    names: list
    operands: tuple = ()
    text: str = ""
    array: object = None


@dataclass
class Check:
    label: str
    value: str
    want: list  # arrays; for each element any of theirs is right
    tolerance: Tolerance


class Batch:
    def __init__(self, symbolic=True):
        """symbolic: lengths of parameters other than 1 are symbols, one for each length, rather than numbers."""
        self.symbolic = symbolic
        self.steps = []
        self.by_name = {}
        self.checks = []
        self.functions = ""

    def type_of(self, array):
        """The type of a parameter that holds the array."""
        lengths = [f"n{n}" if self.symbolic and n != 1 else str(n) for n in array.shape]
        return f"{DTYPE_NAMES[array.dtype]}[{','.join(lengths)}]"

    def _append(self, step):
        self.steps.append(step)
        for name in step.names:
            self.by_name[name] = step
        return step.names

    def _fresh(self, count=1):
        return [f"%{len(self.by_name) + k}" for k in range(count)]

    def param(self, array):
        """A parameter that holds the array."""
        array = np.asarray(array)
        (name,) = self._append(Step(self._fresh(), text=f"{self.type_of(array)}", array=array))
        return name

    def number(self, value):
        """An i64 scalar that the compiler knows."""
        (name,) = self._append(Step(self._fresh(), text=f"const() {{value={value}}} : i64[]"))
        return name

    def nodes(self, op, *operands, attributes="", regions="", count=1):
        """The results of a node. Operands that are arrays become parameters."""
        names = tuple(value if isinstance(value, str) else self.param(value) for value in operands)
        attributes = f" {{{attributes}}}" if attributes else ""
        text = f"{op}({', '.join(names)}){attributes}{' ' + regions if regions else ''}"
        return self._append(Step(self._fresh(count), operands=names, text=text))

    def node(self, op, *operands, **more):
        """The result of a node that has one."""
        (name,) = self.nodes(op, *operands, **more)
        return name

    def expect(self, label, value, want, tolerance=EXACT):
        """The value must be the array `want`; of a list of arrays, each element that of any."""
        wants = want if isinstance(want, list) else [want]
        self.checks.append(Check(label, value, [np.asarray(one) for one in wants], tolerance))

    def render(self, checks):
        """The text of what these checks need, and the inputs."""
        needed, stack = set(), [check.value for check in checks]
        while stack:
            step = self.by_name[stack.pop()]
            if id(step) not in needed:
                needed.add(id(step))
                stack.extend(step.operands)
        steps = [step for step in self.steps if id(step) in needed]
        params = [step for step in steps if step.array is not None]
        lines = [f"  {', '.join(step.names)} = {step.text}" for step in steps if step.array is None]
        header = ", ".join(f"{step.names[0]}: {step.text}" for step in params)
        outputs = ", ".join(check.value for check in checks)
        text = "\n".join([f"func @main({header}) {{", *lines, f"  return {outputs}", "}", self.functions])
        return text, [step.array for step in params]

    def run(self, checks, engine):
        """Lines about what is wrong; None where the run itself failed, and its message."""
        text, inputs = self.render(checks)
        with tempfile.TemporaryDirectory() as folder:
            run = run_text(text, inputs, engine, folder)
            if run.returncode != 0:
                return None, f"status {run.returncode}: {run.stderr.strip()}"
            try:
                outputs = [np.load(Path(folder) / f"out{k}.npy") for k in range(len(checks))]
            except (OSError, ValueError, MemoryError) as problem:
                return None, f"no arrays: {problem}"
        wrong = []
        for check, got in zip(checks, outputs):
            found = difference(got, check.want, check.tolerance)
            if found is not None:
                message, index = found
                wrong.append(f"{check.label}: {message}{self.operands_at(check, index)}")
        return wrong, ""

    def operands_at(self, check, index):
        """The operands' elements where a scalar op is wrong."""
        arrays = [self.by_name[name].array for name in self.by_name[check.value].operands]
        fits = all(array is not None and array.shape == check.want[0].shape for array in arrays)
        return f" for {[array[index] for array in arrays]}" if index is not None and arrays and fits else ""

    def find_wrong(self, checks, engine):
        """Lines about what is wrong; where a run fails, halves of its checks run for themselves."""
        wrong, message = self.run(checks, engine)
        if wrong is not None:
            return wrong
        if len(checks) == 1:
            return [f"{checks[0].label}: {message}"]
        middle = len(checks) // 2
        wrong = self.find_wrong(checks[:middle], engine) + self.find_wrong(checks[middle:], engine)
        return wrong or [f"{checks[0].label} to {checks[-1].label}: only together: {message}"]

    def check(self, engine):
        """Runs all checks; fails with a line for each that is wrong."""
        assert self.checks, "a batch without checks"
        wrong = self.find_wrong(self.checks, engine)
        assert not wrong, f"{len(wrong)} of {len(self.checks)} checks fail:\n" + "\n".join(wrong[:20])
