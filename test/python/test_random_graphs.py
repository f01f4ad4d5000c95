"""Random graphs by both engines. A failure names the seed; EMBER_GRAPHS=FIRST:LAST tries others."""

import os
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from oracle.batch import needs_program, program
from oracle.random_graph import RandomGraph

pytestmark = needs_program

FIRST, LAST = map(int, os.environ.get("EMBER_GRAPHS", "0:200").split(":"))
SHARE = 25  # graphs a test


def difference(value, wanted, found):
    """How an output differs: zeros of either sign are equal, and what smooth ops gave may be a little off."""
    if wanted.shape != found.shape or wanted.dtype != found.dtype:
        return f"{wanted.dtype}{wanted.shape} and {found.dtype}{found.shape}"
    exact = value.exact or not value.is_float
    if exact:
        same = (wanted == found) | ((wanted != wanted) & (found != found))
    else:
        loose = {"f16": 0.05, "bf16": 0.3, "f32": 1e-3, "f64": 1e-9}[value.dtype]
        wanted, found = wanted.astype(np.float64), found.astype(np.float64)
        same = np.isclose(wanted, found, rtol=loose, atol=loose, equal_nan=True)
    if same.all():
        return None
    at = np.argwhere(~np.atleast_1d(same))[0]
    return f"at {at}: {np.atleast_1d(wanted)[tuple(at)]} and {np.atleast_1d(found)[tuple(at)]}"


def compare(seed, environment):
    """What is wrong with the graph of a seed, if anything."""
    graph = RandomGraph(seed)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        path = folder / "graph.ember"
        path.write_text(graph.text())
        inputs = []
        for k, array in enumerate(graph.arrays):
            inputs.append(folder / f"in{k}.npy")
            np.save(inputs[-1], array)
        for engine in ("interp", "compiled"):
            command = [program(), "run", path, "--engine", engine, "--outputs", folder / engine]
            command += ["--inputs", *inputs] if inputs else []
            run = subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, timeout=120)
            if run.returncode != 0:
                return f"seed {seed}: {engine}: status {run.returncode}: {run.stderr.strip()[:1000]}"
        for k, value in enumerate([*graph.outputs, *(new for _, new in graph.updates)]):
            arrays = [np.load(folder / f"{engine}{k}.npy") for engine in ("interp", "compiled")]
            if found := difference(value, *arrays):
                return f"seed {seed}: output {k}: {found}"
    return None


@pytest.mark.parametrize("first", range(FIRST, LAST, SHARE))
def test_random_graphs(first, tmp_path):
    environment = os.environ | {"EMBER_CACHE_DIR": str(tmp_path / "cache")}
    seeds = range(first, min(first + SHARE, LAST))
    with ThreadPoolExecutor(2) as pool:
        wrong = [one for one in pool.map(lambda seed: compare(seed, environment), seeds) if one]
    assert not wrong, f"{len(wrong)} of {len(seeds)} graphs fail:\n" + "\n".join(wrong)
