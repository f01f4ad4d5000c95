"""The cache as a user of `ember run` meets it: cold, then warm; damage; no weights in entries."""

import mmap

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
