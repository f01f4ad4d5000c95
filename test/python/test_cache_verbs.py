"""ember.cache: the verbs of `ember cache` as functions, each in a fresh process with a cache of its own."""

import json
import subprocess
import sys
import textwrap

import pytest

GRAPH = """
func @main(%x: f32[n], %y: f32[n]) {
  %s = add(%x, %y)
  return %s
}
"""
OTHER = GRAPH.replace("add", "mul")


@pytest.fixture
def run(tmp_path, package_environment):
    """Runs Python code in a fresh process; what it printed, as JSON. `graph` and `other` are paths of two graphs."""
    (tmp_path / "graph.ember").write_text(GRAPH)
    (tmp_path / "other.ember").write_text(OTHER)

    def run(code, **environment):
        program = f"""
import dataclasses, json
import ember
import ember.cache
graph, other = {str(tmp_path / "graph.ember")!r}, {str(tmp_path / "other.ember")!r}
def show(value):
    print(json.dumps(value, default=lambda v: dataclasses.asdict(v) if dataclasses.is_dataclass(v) else str(v)))
{textwrap.dedent(code)}
"""
        variables = package_environment | {"EMBER_CACHE_DIR": str(tmp_path / "cache")} | environment
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        return lines[0] if len(lines) == 1 else lines

    return run


def test_warm_then_hit(run):
    first = run("show(ember.cache.warm(graph))")
    again = run("show(ember.cache.warm(graph)); show(ember.cache.info())")
    assert (first["status"], again[0]["status"]) == ("miss", "hit")
    assert first["key"] == again[0]["key"]
    info = again[1]
    assert (info["entries"], info["mode"]) == (1, "rw")
    assert (info["counters"]["hits"], info["counters"]["misses"], info["counters"]["compiles"]) == (1, 0, 0)
    assert info["bytes"] > 1000


def test_list_and_show(run, tmp_path):
    entries = run("ember.cache.warm(graph); ember.cache.warm(other); show(ember.cache.list())")
    assert len({entry["key"] for entry in entries}) == 2
    for entry in entries:
        assert entry["path"].startswith(str(tmp_path / "cache"))
        assert len(entry["key"]) == 64
    key = entries[0]["key"]
    shown, full = run(f"show(ember.cache.show({key[:12]!r})); show(ember.cache.show({key!r}))")
    assert shown == full
    assert (shown["key"], shown["state"]) == (key, "none")
    assert "target" in shown["document"]
    assert shown["metadata"]
    assert shown["object_bytes"] <= shown["bytes"]


def test_unknown_key_is_an_error(run):
    said = run(
        """
        for key in ("00", "zz", "f" * 64):
            try:
                ember.cache.show(key)
                show("found")
            except ValueError as error:
                show(str(error))
        """
    )
    assert len(said) == 3
    assert all(line and line != "found" for line in said)


def test_explain(run):
    absent, found, near = run(
        """
        show(ember.cache.explain(graph))
        ember.cache.warm(graph)
        show(ember.cache.explain(graph))
        show(ember.cache.explain(other))
        """
    )
    assert (absent["state"], absent["nearest"], absent["differences"]) == ("absent", None, [])
    assert found["state"] == "none"
    assert near["state"] == "absent"
    assert near["nearest"] == found["key"]
    assert [d["field"] for d in near["differences"]] == ["graph"]
    assert "add" in near["differences"][0]["stored"]
    assert "mul" in near["differences"][0]["wanted"]
    assert near["text"].count("\n") >= 2


def test_verify_finds_damage_and_repairs(run):
    entries = run("ember.cache.warm(graph); show(ember.cache.list())")
    path = entries[0]["path"]
    with open(path, "r+b") as file:
        file.seek(100)
        byte = file.read(1)
        file.seek(100)
        file.write(bytes([byte[0] ^ 1]))
    seen, repaired, after = run(
        "show(ember.cache.verify()); show(ember.cache.verify(repair=True)); show(ember.cache.verify())"
    )
    assert seen["checked"] == 1
    assert [(d["path"], d["removed"]) for d in seen["damaged"]] == [(path, False)]
    assert [d["removed"] for d in repaired["damaged"]] == [True]
    assert (after["checked"], after["damaged"]) == (0, [])


def test_prune_and_clear(run):
    counts = run(
        """
        ember.cache.warm(graph); ember.cache.warm(other)
        show(ember.cache.prune())
        show(ember.cache.prune(max_count=1))
        show(ember.cache.prune(max_size="1K"))
        ember.cache.warm(other)
        show(ember.cache.clear())
        show(ember.cache.list())
        """
    )
    assert [c["removed"] for c in counts[:4]] == [0, 1, 1, 1]
    assert [c["kept"] for c in counts[:4]] == [2, 1, 0, 0]
    assert counts[4] == []


def test_a_wrong_size_is_an_error(run):
    assert (
        run(
            """
        try:
            ember.cache.prune(max_size="much")
        except ValueError as error:
            show(str(error))
        """
        )
        == "max_size: 'much' is no size"
    )


def test_export_and_import(run, tmp_path):
    file = str(tmp_path / "entry.bin")
    key = run(f"key = ember.cache.warm(graph)['key']; ember.cache.export(key, {file!r}); show(key)")
    elsewhere = str(tmp_path / "elsewhere")
    imported, warmed = run(
        f"show(ember.cache.import_({file!r})); show(ember.cache.warm(graph)['status'])", EMBER_CACHE_DIR=elsewhere
    )
    assert (imported, warmed) == (key, "hit")
    (tmp_path / "entry.bin").write_bytes(b"no entry")
    said = run(
        f"""
        try:
            ember.cache.import_({file!r})
        except Exception as error:
            show([type(error).__name__, str(error)])
        """
    )
    assert said[0] in ("ValueError", "OSError")
    assert said[1]


def test_settings_say_where_they_come_from(run, tmp_path):
    settings, folder = run("show(ember.cache.config()); show(ember.cache.dir())", EMBER_CACHE="ro")
    by_name = {s["name"]: s for s in settings}
    assert by_name["dir"]["origin"] == "EMBER_CACHE_DIR"
    assert folder == by_name["dir"]["value"] == str(tmp_path / "cache")
    assert (by_name["mode"]["value"], by_name["mode"]["origin"]) == ("ro", "EMBER_CACHE")
    assert by_name["salt"]["origin"] == "default"
    assert by_name["cpu"]["origin"] == "host"


def test_what_is_no_graph_is_refused(run):
    assert run(
        """
        for wrong in (3, graph + ".missing"):
            try:
                ember.cache.explain(wrong)
            except (TypeError, OSError) as error:
                show(type(error).__name__)
        """
    ) == ["TypeError", "FileNotFoundError"]
