"""layers.txt against every #include: a folder includes only itself and what its row names; LLVM only in codegen.

The checker takes the tree as {path: text}, so the tests at the end plant a broken rule and see it found.
"""

import posixpath
import re
from pathlib import PurePosixPath

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
SOURCE_SUFFIXES = (".h", ".cpp", ".def", ".inc", ".c")
PUBLIC = "include"
PACKAGE = ("python", "src")  # the extension module's sources; their row is named by the first folder
# The compiler's own libraries, and the only layer that may see them.
CONFINED = {"llvm": "ember/codegen", "llvm-c": "ember/codegen", "lld": "ember/codegen"}


def parse_layers(text):
    """{layer: layers that it may include}, itself left out."""
    rows = {}
    for line in text.splitlines():
        line = line.split("#")[0].strip()
        if line:
            name, _, allowed = line.partition(":")
            rows[name.strip()] = set(allowed.split())
    return rows


def layer_of(path, rows):
    """The layer of a path below src/ (longest match wins), PUBLIC for a public header, else None."""
    parts = PurePosixPath(path).parts
    if parts[0] == PUBLIC:
        return PUBLIC
    if parts[:2] == PACKAGE:
        return PACKAGE[0]
    if parts[0] != "src":
        return None
    for depth in range(len(parts) - 1, 1, -1):
        name = "/".join(parts[1:depth])
        if name in rows:
            return name
    return None


def resolve(header, includer, files):
    """Where an include leads in the tree, as the compiler looks: beside the includer, in src/, in include/."""
    beside = posixpath.normpath(posixpath.join(posixpath.dirname(includer), header))
    return next((path for path in (beside, f"src/{header}", f"{PUBLIC}/{header}") if path in files), None)


def layer_included(header, includer, files, rows):
    """The layer that an include reaches into; a header made at build time counts by its folder's name."""
    found = resolve(header, includer, files)
    return layer_of(found or f"src/{header}", rows)


def violations(files, rows):
    """One line for each include that layers.txt forbids and each source folder that it does not name."""
    found = []
    for path, text in sorted(files.items()):
        layer = layer_of(path, rows)
        if layer is None:
            found.append(f"{path}: its folder has no row in layers.txt")
            continue
        allowed = rows.get(layer, set()) | {layer}
        for match in INCLUDE.finditer(text):
            header = match.group(1) or match.group(2)
            where = f"{path}:{text.count(chr(10), 0, match.start(match.lastindex)) + 1}"
            reached = layer_included(header, path, files, rows)
            owner = CONFINED.get(header.split("/")[0])
            if owner and layer != owner:
                found.append(f"{where}: {header} belongs in {owner} only")
            elif reached and reached not in allowed:
                found.append(f"{where}: {layer} may not include {reached} ({header})")
            elif match.group(1) and not reached and not owner:
                found.append(f'{where}: "{header}" is no header of this tree; others are included with <>')
    return found


def cycles(rows):
    """Layers that reach themselves through others."""

    def reachable(start):
        seen, pending = set(), list(rows.get(start, ()))
        while pending:
            layer = pending.pop()
            if layer not in seen:
                seen.add(layer)
                pending.extend(rows.get(layer, ()))
        return seen

    return [layer for layer in rows if layer in reachable(layer)]


def sources(tracked_files, root):
    return {
        path.as_posix(): (root / path).read_text()
        for path in tracked_files
        if (path.parts[0] in ("src", PUBLIC) or path.parts[:2] == PACKAGE) and path.suffix in SOURCE_SUFFIXES
    }


def test_tree_keeps_to_layers(root, tracked_files):
    rows = parse_layers((root / "layers.txt").read_text())
    files = sources(tracked_files, root)
    assert files, "no source found: the check would pass for nothing"
    found = violations(files, rows)
    assert not found, "\n" + "\n".join(found)


def test_rows_are_known_and_without_cycles(root):
    rows = parse_layers((root / "layers.txt").read_text())
    unknown = {name for allowed in rows.values() for name in allowed} - set(rows) - {PUBLIC}
    assert unknown == set()
    assert [name for name in rows if name not in (PUBLIC, PACKAGE[0]) and not (root / "src" / name).is_dir()] == []
    assert cycles(rows) == []


ROWS = parse_layers("""
# a comment
ember/support:
ember/ir:      ember/support
ember/cache:   ember/support
ember/codegen: ember/support ember/ir
cli:           ember/cache include
""")
HEADERS = {
    "src/ember/support/result.h": "",
    "src/ember/ir/graph.h": '#include "ember/support/result.h"\n',
    "src/ember/cache/store.h": "",
    "include/ember/ember.h": "#include <vector>\n",
}


def check_planted(path, text):
    return violations({**HEADERS, path: text}, ROWS)


def test_allowed_includes_pass():
    assert check_planted("src/ember/cache/store.cpp", '#include "ember/support/result.h"\n#include <string>\n') == []
    assert check_planted("src/cli/main.cpp", '#include "ember/ember.h"\n#include <CLI/CLI.hpp>\n') == []
    assert check_planted("src/ember/codegen/emit.cpp", "#include <llvm/IR/Module.h>\n") == []
    assert check_planted("src/ember/ir/sub/node.cpp", '#include "ember/ir/graph.h"\n') == []
    assert check_planted("src/ember/codegen/emit.cpp", '#include "ember/codegen/made_at_build_time.inc"\n') == []


def test_forbidden_layer_is_found():
    planted = "// What it is.\n\n#include <ember/ir/graph.h>\n"
    assert check_planted("src/ember/cache/store.cpp", planted) == [
        "src/ember/cache/store.cpp:3: ember/cache may not include ember/ir (ember/ir/graph.h)"
    ]
    assert check_planted("src/ember/ir/type.cpp", '#  include "../cache/store.h"\n') == [
        "src/ember/ir/type.cpp:1: ember/ir may not include ember/cache (../cache/store.h)"
    ]
    assert len(check_planted("include/ember/array.h", '#include "ember/ir/graph.h"\n')) == 1
    assert len(check_planted("src/ember/support/log.cpp", '#include "ember/ir/made_at_build_time.inc"\n')) == 1


def test_llvm_outside_codegen_is_found():
    for header in ("llvm/IR/Module.h", "lld/Common/Driver.h", "llvm-c/Core.h"):
        assert len(check_planted("src/ember/ir/type.cpp", f"#include <{header}>\n")) == 1
        assert len(check_planted("src/cli/main.cpp", f'#include "{header}"\n')) == 1


def test_unnamed_folder_and_unknown_header_are_found():
    assert check_planted("src/ember/magic/spell.cpp", "") == [
        "src/ember/magic/spell.cpp: its folder has no row in layers.txt"
    ]
    assert len(check_planted("src/ember/ir/type.cpp", '#include "nowhere.h"\n')) == 1


def test_cycle_is_found():
    assert cycles(parse_layers("a: b\nb: c\nc: a\nd: a\n")) == ["a", "b", "c"]
