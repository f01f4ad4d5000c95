"""What docs and reviews ask of the sources and a machine can check. Each rule is proved on planted text at the end."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CPP_SUFFIXES = (".h", ".cpp", ".def", ".inc")
MAX_FILE_LINES = 600
MAX_FUNCTION_LINES = 60
LONG_REASON = "// Long because "

# Words that no file may hold (this one aside, which must name them).
FORBIDDEN = {
    "a path of somebody's machine": re.compile(r"(?<![\w.$}/-])/(?:work|root|home/\w+)/"),
    "a registry's host name": re.compile(r"pypi\.org|pythonhosted\.org|deb\.debian\.org|npmjs\.|crates\.io"),
}
# Words that no source may hold; a document may point at a thread of another project.
FORBIDDEN_IN_SOURCES = {"a ticket": re.compile(r"\b(?:TODO|FIXME|XXX)\b|\b(?:issue|ticket) ?#?\d+", re.IGNORECASE)}
TEXT_SUFFIXES = (*CPP_SUFFIXES, ".py", ".txt", ".cmake", ".json", ".md", ".toml", ".ini", ".sh", ".ir", ".mlir", "")
# Data made elsewhere: its words are not ours.
DATA_FOLDERS = ("test/data/",)


def opens_with_comment(path, text):
    """C++ by //, Python by a docstring (or nothing at all in it), a script by # under its first line."""
    if path.suffix in CPP_SUFFIXES:
        return text.startswith("//")
    if path.suffix == ".py":
        return not text.strip() or text.startswith('"""') or bool(re.match(r'#![^\n]*\n"""', text))
    return bool(re.match(r"(#![^\n]*\n)?# ", text))


def long_functions(text):
    """(line, length) of each function over the limit that gives no reason. Relies on clang-format's layout: outside of
    classes a function's body closes with } in the first column, and so it opens on a line that starts there."""
    found, start = [], None
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if re.match(r"[\w:~\[]", line) and not re.match(r"(namespace|struct|class|enum|union|extern|using|#)\b", line):
            start = number
        elif line == "}" and start is not None:
            length = number - start + 1
            reasoned = any(LONG_REASON in reason for reason in lines[max(0, start - 5) : number])
            if length > MAX_FUNCTION_LINES and not reasoned:
                found.append((start + 1, length))
            start = None
        elif line.startswith("}"):
            start = None
    return found


def cpp_violations(path, text):
    name = path.as_posix()
    found = []
    lines = text.count("\n")
    tests = path.parts[0] == "test"  # a list of cases may be as long as it is
    if lines > MAX_FILE_LINES and LONG_REASON not in text and not tests:
        found.append(f'{name}: {lines} lines; split it or say "{LONG_REASON}..."')
    found += [
        f'{name}:{line}: a function of {size} lines; split it or say "{LONG_REASON}..."'
        for line, size in long_functions(text)
    ]
    if path.suffix == ".h" and "#pragma once" not in text:
        found.append(f"{name}: no #pragma once")
    if path.suffix == ".h" and re.search(r"^using namespace", text, re.MULTILINE):
        found.append(f"{name}: using namespace in a header")
    return found


def word_violations(path, text):
    if path.name == Path(__file__).name:
        return []
    found = []
    rules = FORBIDDEN if path.suffix == ".md" else FORBIDDEN | FORBIDDEN_IN_SOURCES
    for what, pattern in rules.items():
        for match in pattern.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{path.as_posix()}:{line}: {what}: {match.group()}")
    return found


def is_program(path):
    """C++, Python and shell: what wants an opening comment."""
    return path.suffix in (*CPP_SUFFIXES, ".py", ".sh") or (path.parts[0] in ("scripts", ".ci") and not path.suffix)


def violations(path, text):
    found = word_violations(path, text)
    if is_program(path) and not opens_with_comment(path, text):
        found.append(f"{path.as_posix()}: does not open with a comment that says what it is")
    if path.suffix in CPP_SUFFIXES:
        found += cpp_violations(path, text)
    return found


def is_checked(path):
    return path.suffix in TEXT_SUFFIXES and not path.as_posix().startswith(DATA_FOLDERS)


def test_tree(root, tracked_files):
    checked = [path for path in tracked_files if is_checked(path)]
    assert len(checked) > 20, "too few files found: the check would pass for nothing"
    found = []
    for path in checked:
        found += violations(path, (root / path).read_text(errors="replace"))
    assert not found, "\n" + "\n".join(found)


def test_no_large_or_built_files(root, tracked_files):
    large = [path for path in tracked_files if (root / path).stat().st_size > 2 << 20]
    built = [path for path in tracked_files if path.suffix in (".whl", ".gguf", ".o", ".a", ".so", ".bc", ".pyc")]
    assert (large, built) == ([], [])


def test_clang_format(root, tracked_files):
    formatter = shutil.which("clang-format-19")
    if not formatter:
        pytest.skip("clang-format-19 is not installed")
    files = [str(path) for path in tracked_files if path.suffix in (".h", ".cpp")]
    run = subprocess.run([formatter, "--dry-run", "--Werror", *files], cwd=root, capture_output=True, text=True)
    unformatted = sorted(set(re.findall(r"^(\S+?):\d+:\d+: error", run.stderr, re.MULTILINE)))
    assert run.returncode == 0, f"{len(unformatted)} files; run: scripts/format {' '.join(unformatted)}"


@pytest.mark.parametrize("command", [["check"], ["format", "--check"]], ids=["lint", "format"])
def test_ruff(root, tracked_files, command):
    files = [str(path) for path in tracked_files if path.suffix == ".py"]
    run = subprocess.run([sys.executable, "-m", "ruff", *command, *files], cwd=root, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


def test_shellcheck(root, tracked_files):
    checker = shutil.which("shellcheck")
    if not checker:
        pytest.skip("shellcheck is not installed")
    files = [str(path) for path in tracked_files if path.parts[0] in ("scripts", ".ci") and path.suffix in ("", ".sh")]
    run = subprocess.run([checker, "-x", *files], cwd=root, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


GOOD = "// What it is.\n#pragma once\n"


def planted(name, text):
    return violations(Path(name), text)


def test_good_files_pass():
    assert planted("src/ember/ir/node.h", GOOD) == []
    assert planted("test/python/test_x.py", '"""What it is."""\n') == []
    assert planted("scripts/lib.sh", "# What it is.\n") == []
    assert planted("docs/x.md", "Set EMBER_CACHE_DIR=/tmp/x or $HOME/work/x\n") == []


def test_length_is_checked():
    body = "    step();\n"
    long_file = GOOD + "\n" * MAX_FILE_LINES
    long_function = f"{GOOD}int f() {{\n{body * MAX_FUNCTION_LINES}}}\n"
    assert len(planted("src/a.h", long_file)) == 1
    assert len(planted("src/a.h", long_function)) == 1
    assert planted("src/a.h", f"{long_file}// Long because it is a table.\n") == []
    assert planted("src/a.h", long_function.replace("int f", "// Long because it is a list.\nint f")) == []
    assert planted("src/a.h", f"{GOOD}const int kTable[] = {{\n{body * MAX_FUNCTION_LINES}}};\n") == []
    assert planted("src/a.h", f"{GOOD}namespace a {{\n{body * MAX_FUNCTION_LINES}}}\n") == []


def test_words_are_checked():
    for words in ("/work/main", "see /root/x", "https://pypi.org/simple"):
        assert len(planted("src/a.h", f"{GOOD}// {words}\n")) == 1, words
        assert len(planted("docs/a.md", f"{words}\n")) == 1, words
    for words in ("TODO: later", "issue 12", "Issue #3", "FIXME"):
        assert len(planted("src/a.h", f"{GOOD}// {words}\n")) == 1, words
        assert planted("docs/a.md", f"{words}\n") == [], words


def test_openings_are_checked():
    assert len(planted("src/a.cpp", "int x;\n")) == 1
    assert len(planted("test/python/a.py", "import os\n")) == 1
    assert len(planted("scripts/a", "#!/usr/bin/env bash\nset -e\n")) == 1
    assert len(planted("src/a.h", "// What it is.\n")) == 1
    assert len(planted("src/a.h", f"{GOOD}using namespace std;\n")) == 1
