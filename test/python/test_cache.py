"""The cache as users meet it: cold, then warm; damage; no weights in entries; equal bytes wherever compiled."""

import mmap
import os
import shutil
import subprocess

import pytest
from conftest import ids_option

PROMPT = ids_option([504, 3575, 282, 4649, 314])
LONGER_PROMPT = ids_option(range(1000, 1037))


@pytest.fixture
def cold(ember, model):
    """A first run with an empty cache."""
    run = ember.generate(model, *PROMPT, max_tokens=4)
    assert run["cache"]["hits"] == 0
    assert run["cache"]["misses"] > 0
    assert run["llvm_modules"] > 0
    return run


def entries(ember):
    """The files of the cache that hold something, largest first."""
    files = [path for path in ember.cache_dir.rglob("*") if path.is_file() and path.name != "CACHEDIR.TAG"]
    return sorted((path for path in files if path.stat().st_size > 512), key=lambda path: -path.stat().st_size)


def test_second_process_finds_everything(ember, model, cold):
    warm = ember.generate(model, *PROMPT, max_tokens=4)
    assert warm["cache"]["misses"] == 0
    assert warm["cache"]["hits"] == cold["cache"]["misses"]
    assert warm["llvm_modules"] == 0
    assert warm["tokens"] == cold["tokens"]


def test_hit_loads_no_compiler(ember, model):
    """The dynamic loader's own log: the compiler's library is opened by the cold process and not by the warm one."""
    options = ("run", model, *PROMPT, "--max-tokens", 1)
    logs = [ember(*options, environment={"LD_DEBUG": "files"}).stderr for _ in range(2)]
    assert ["libember-compiler" in log for log in logs] == [True, False]


def test_cold_and_warm_are_bit_equal(ember, model, tmp_path):
    paths = [tmp_path / "cold.npy", tmp_path / "warm.npy"]
    runs = [ember.generate(model, *PROMPT, options=("--logits", path)) for path in paths]
    assert runs[0]["cache"]["misses"] > 0 == runs[1]["cache"]["misses"]
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_one_artifact_serves_every_length(ember, model, cold):
    longer = ember.generate(model, *LONGER_PROMPT, max_tokens=4)
    assert longer["cache"]["misses"] == 0
    assert longer["llvm_modules"] == 0


def test_damaged_entries_are_compiled_again(ember, model, cold):
    damaged = entries(ember)
    assert damaged
    for path in damaged:
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 0x10
        path.chmod(0o644)
        path.write_bytes(content)
    again = ember.generate(model, *PROMPT, max_tokens=4)
    assert again["tokens"] == cold["tokens"]
    assert again["cache"]["misses"] == cold["cache"]["misses"]
    assert ember.generate(model, *PROMPT, max_tokens=4)["cache"]["misses"] == 0


def test_no_weights_in_entries(ember, model, cold):
    """No 64-byte window of the model's tensors, taken all over the file, stands in an entry."""
    found = entries(ember)
    assert found
    stored = [path.read_bytes() for path in found]
    assert sum(map(len, stored)) < model.stat().st_size / 10
    with model.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        first_tensor = 4 << 20  # metadata and vocabulary lie before it
        step = (len(content) - first_tensor) // 2000
        windows = {content[offset : offset + 64] for offset in range(first_tensor, len(content) - 64, step)}
    telling = [window for window in windows if len(set(window)) > 8]
    assert len(telling) > 1000
    assert [window for window in telling if any(window in entry for entry in stored)] == []


def test_unusable_cache_folder_is_no_error(ember, model, cold):
    ember.cache_dir = ember.cache_dir.parent / "file"
    ember.cache_dir.write_text("not a folder")
    run = ember.generate(model, *PROMPT, max_tokens=4)
    assert run["tokens"] == cold["tokens"]


SOFTMAX = """func @softmax(%x: f32[n,m]) {
  %m = reduce_max(%x) {axes=[1]} : f32[n]
  %n = dim(%x) {axis=0} : i64[]
  %one = const() {value=1} : i64[]
  %r = reshape(%m, %n, %one) : f32[n,1]
  %s = sub(%x, %r) : f32[n,m]
  %e = exp(%s) : f32[n,m]
  %t = reduce_sum(%e) {axes=[1]} : f32[n]
  %u = reshape(%t, %n, %one) : f32[n,1]
  %d = div(%e, %u) : f32[n,m]
  return %d
}
"""


def compile_elsewhere(ember, folder, arguments, *, environment, prefix=()):
    """Runs a program in a folder and environment of its own; the bytes of the entries it made, by file name."""
    cache = folder / "cache"
    for name in ("home", "tmp", "here"):
        (folder / name).mkdir(parents=True)
    own = {"EMBER_CACHE_DIR": str(cache), "HOME": str(folder / "home"), "TMPDIR": str(folder / "tmp")}
    run = subprocess.run(
        [*prefix, *map(str, arguments)],
        cwd=folder / "here",
        env=ember.environment() | own | environment,
        capture_output=True,
        encoding="utf-8",
        timeout=600,
    )
    assert run.returncode == 0, run.stderr
    files = [path for path in cache.rglob("*") if path.is_file() and path.stat().st_size > 512]
    return {path.name: path.read_bytes() for path in files if b"ELF" in path.read_bytes()}


def compile_in_two_places(ember, tmp_path, *arguments):
    """What two processes store that share nothing but the program and the machine."""
    here = {"TZ": "UTC", "LANG": "C", "LC_ALL": "C"}
    there = {"TZ": "Asia/Kathmandu", "LANG": "de_DE.UTF-8", "LC_ALL": "tr_TR.UTF-8", "MALLOC_PERTURB_": "165"}
    fixed = ["setarch", "-R"] if shutil.which("setarch") else []  # without randomised addresses
    one_core = ["taskset", "-c", str(min(os.sched_getaffinity(0)))] if shutil.which("taskset") else []
    first = compile_elsewhere(ember, tmp_path / "a", arguments, environment=here, prefix=fixed)
    second = compile_elsewhere(ember, tmp_path / "b" / "deeper", arguments, environment=there, prefix=one_core)
    assert first
    return first, second


def test_same_bytes_of_a_graph(ember, tmp_path):
    graph = tmp_path / "softmax.ember"
    graph.write_text(SOFTMAX)
    first, second = compile_in_two_places(ember, tmp_path, ember.program, "compile", graph)
    assert first == second


def test_same_bytes_of_a_gradient(ember, tmp_path):
    """The training step of a perceptron, written with the C++ API."""
    program = ember.program.parent / "examples" / "train"
    first, second = compile_in_two_places(ember, tmp_path, program)
    assert first == second


def test_same_bytes_of_a_model(ember, model, tmp_path):
    """Prefill and decode of all layers, which are outlined into one function."""
    arguments = (ember.program, "run", model, *PROMPT, "--max-tokens", 2, "--temperature", 0)
    first, second = compile_in_two_places(ember, tmp_path, *arguments)
    assert first == second
