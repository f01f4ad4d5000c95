"""What the Python tests share: the tree, the programs and the model (scripts/test sets EMBER_BIN, EMBER_MODEL)."""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# PyTensor's own inner functions stay in Python: compiling them to C would take seconds each. Read when it is imported.
os.environ.setdefault("PYTENSOR_FLAGS", "cxx=")


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def tracked_files() -> list[Path]:
    """Every file that is, or would be, committed; relative to the root."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    names = listing.stdout.decode().split("\0")
    return sorted({Path(name) for name in names if name and (ROOT / name).is_file()})


class Ember:
    """The command line under test, with a cache folder of its own."""

    def __init__(self, cache_dir: Path):
        folder = os.environ.get("EMBER_BIN", ROOT / "build" / "release" / "bin")
        self.program = Path(folder) / "ember"
        self.cache_dir = cache_dir

    def environment(self):
        kept = {name: value for name, value in os.environ.items() if not name.startswith("EMBER_")}
        return kept | {"EMBER_CACHE_DIR": str(self.cache_dir)}

    def __call__(self, *arguments, stdin="", check=True, environment=None):
        """Runs `ember ARGUMENTS...` in a fresh process; unless told not to, insists that it succeeds."""
        run = subprocess.run(
            [self.program, *map(str, arguments)],
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            env=self.environment() | (environment or {}),
            timeout=600,
        )
        if check:
            assert run.returncode == 0, run.stderr
        return run

    def json(self, *arguments, stdin=""):
        """The line of JSON that a command with --json ends with."""
        return json.loads(self(*arguments, "--json", stdin=stdin).stdout.splitlines()[-1])

    def generate(self, model, *prompt, max_tokens=0, options=()):
        """`ember run`, greedy; `prompt` is the options that give it."""
        return self.json("run", model, *prompt, "--max-tokens", max_tokens, "--temperature", 0, *options)


@pytest.fixture
def ember(tmp_path) -> Ember:
    """Ember with an empty cache."""
    return Ember(tmp_path / "cache")


@pytest.fixture(scope="session")
def warm_ember(tmp_path_factory) -> Ember:
    """Ember with one cache for all tests that do not look at it."""
    return Ember(tmp_path_factory.mktemp("shared") / "cache")


@pytest.fixture(scope="session")
def package_environment() -> dict[str, str]:
    """Variables of a process that uses the Python package: those of this one, but for Ember's own."""
    pytest.importorskip("ember._core", reason="the Python package is not built, or not on PYTHONPATH")
    return {name: value for name, value in os.environ.items() if not name.startswith("EMBER_")}


@pytest.fixture(scope="session")
def model() -> Path:
    """The real model; without it the end-to-end tests are skipped, never passed."""
    path = Path(os.environ.get("EMBER_MODEL", ROOT / ".cache" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"))
    if not path.is_file():
        pytest.skip(f"no model at {path}: scripts/setup fetches it, EMBER_MODEL names another")
    return path


def ids_option(ids):
    """Token ids as `ember run` takes them."""
    return ("--prompt-tokens", ",".join(map(str, ids)))
