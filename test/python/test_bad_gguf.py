"""Damaged and hostile model files: one line of error, exit code 1; no crash, no hang, no allocation out of bounds."""

import os
import random
import re
import resource
import subprocess

import pytest
from gguf_files import DAMAGES, damaged_bytes, tiny_model

RUN = ("--prompt-tokens", "40,41,42", "--max-tokens", "2", "--temperature", "0", "--json")
CPU_SECONDS = 20
MAX_RESIDENT = 200 << 20


class Outcome:
    """How `ember run FILE` ended, and the most memory it held."""

    def __init__(self, ember, path, scratch):
        with (scratch / "stderr").open("w+b") as stderr:
            process = subprocess.Popen(
                [ember.program, "run", path, *RUN],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                env=ember.environment(),
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS)),
            )
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            stderr.seek(0)
            self.errors = stderr.read().decode(errors="replace")
        self.code = process.returncode
        self.resident = usage.ru_maxrss << 10

    def assert_refused(self, path, words=""):
        assert self.code == 1, f"exit code {self.code}: {self.errors}"
        assert len(self.errors.splitlines()) == 1, self.errors
        assert path.name in self.errors
        assert re.search(words, self.errors), f"/{words}/ is not in: {self.errors}"
        assert self.resident < MAX_RESIDENT


@pytest.fixture
def run_bytes(warm_ember, tmp_path):
    """Runs a file of these bytes; gives the outcome and the file's path."""

    def run(content):
        path = tmp_path / "tiny.gguf"
        path.write_bytes(content)
        return Outcome(warm_ember, path, tmp_path), path

    return run


def test_whole_file_runs(run_bytes):
    outcome, _ = run_bytes(tiny_model().to_bytes())
    assert (outcome.code, outcome.errors) == (0, "")


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_refused(run_bytes, name):
    outcome, path = run_bytes(damaged_bytes(name))
    outcome.assert_refused(path, DAMAGES[name][1])


def test_file_cut_anywhere_is_refused(run_bytes):
    content = tiny_model().to_bytes()
    end_of_data = len(content) - 1
    for length in [*range(0, len(tiny_model().header()) + 64, 61), end_of_data // 2, end_of_data]:
        outcome, path = run_bytes(content[:length])
        outcome.assert_refused(path)


def test_flipped_bits_never_crash(run_bytes):
    """A flipped bit may leave a file that loads; what it must not do is end the process by a signal or fill memory."""
    content = tiny_model().to_bytes()
    choose = random.Random(1)
    for _ in range(150):
        flipped = bytearray(content)
        flipped[choose.randrange(len(tiny_model().header()))] ^= 1 << choose.randrange(8)
        outcome, path = run_bytes(bytes(flipped))
        if outcome.code != 0:
            outcome.assert_refused(path)
        assert outcome.resident < MAX_RESIDENT


def test_what_is_no_file_is_refused(warm_ember, tmp_path):
    folder, pipe, text = tmp_path / "folder.gguf", tmp_path / "pipe.gguf", tmp_path / "text.gguf"
    folder.mkdir()
    os.mkfifo(pipe)
    text.write_text("func @f() {}\n" * 100)
    for path in (folder, pipe, text, tmp_path / "missing.gguf"):
        Outcome(warm_ember, path, tmp_path).assert_refused(path)
