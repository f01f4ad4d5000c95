"""What the Python tests share: the tree, the programs and the model (scripts/test sets EMBER_BIN, EMBER_MODEL)."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


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
    return [Path(name) for name in names if name and (ROOT / name).is_file()]


@pytest.fixture(scope="session")
def ember() -> Path:
    """The command line under test."""
    return Path(os.environ.get("EMBER_BIN", ROOT / "build" / "release" / "bin")) / "ember"


@pytest.fixture(scope="session")
def model() -> Path:
    """The real model; without it the end-to-end tests are skipped, never passed."""
    path = Path(os.environ.get("EMBER_MODEL", ROOT / ".cache" / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"))
    if not path.is_file():
        pytest.skip(f"no model at {path}: scripts/setup fetches it, EMBER_MODEL names another")
    return path


@pytest.fixture
def cache_dir(tmp_path, monkeypatch) -> Path:
    """An empty cache of the test's own, used by every program that it starts."""
    path = tmp_path / "cache"
    monkeypatch.setenv("EMBER_CACHE_DIR", str(path))
    return path
