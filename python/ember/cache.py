"""The cache of compiled graphs: what `ember cache …` does, as functions.

All of them act on the process's cache: the folder and mode of the environment at its first use (EMBER_CACHE_DIR,
EMBER_CACHE; docs/cache.md). A key may be given by its beginning, at least two digits, where it is the only one.
"""

import json
import os
from dataclasses import dataclass

from . import _core

__all__ = [
    "Counters",
    "DamagedEntry",
    "Difference",
    "Entry",
    "Explanation",
    "Info",
    "PruneReport",
    "Setting",
    "ShownEntry",
    "VerifyReport",
    "clear",
    "config",
    "dir",
    "explain",
    "export",
    "import_",
    "info",
    "list",
    "prune",
    "show",
    "verify",
    "warm",
]

_native = _core.cache
_list = list


@dataclass(frozen=True)
class Setting:
    """A setting, and where it comes from: "option", the name of a variable, "default", "host"."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True)
class Counters:
    """Of this process. reasons: how many look-ups did not hit, by why."""

    look_ups: int
    hits: int
    misses: int
    bypasses: int
    errors: int
    puts: int
    puts_memory: int
    compiles: int
    waits: int
    reasons: dict


@dataclass(frozen=True)
class Info:
    """dir: "" where entries live in memory only. max_size, max_count: in force now; sizes in bytes."""

    dir: str
    mode: str
    entries: int
    bytes: int
    max_size: int
    max_count: int
    free_bytes: int
    settings: tuple
    counters: Counters


@dataclass(frozen=True)
class Entry:
    """key: 64 hexadecimal digits. used: seconds since 1970, to about an hour."""

    key: str
    path: str
    bytes: int
    used: float


@dataclass(frozen=True)
class ShownEntry:
    """state: "none" where it is good and runs here. document: name of a field -> its bytes; metadata: parsed JSON."""

    key: str
    path: str
    bytes: int
    used: float
    state: str
    object_bytes: int
    isa: tuple
    document: dict
    metadata: dict


@dataclass(frozen=True)
class DamagedEntry:
    path: str
    reason: str
    removed: bool


@dataclass(frozen=True)
class VerifyReport:
    """checked: how many entries were read."""

    checked: int
    damaged: tuple


@dataclass(frozen=True)
class PruneReport:
    """leftovers: files that writers which died had left."""

    removed: int
    removed_bytes: int
    leftovers: int
    kept: int
    kept_bytes: int


@dataclass(frozen=True)
class Difference:
    """kind: changed, added, removed, moved. line: the first that differs, from 1; stored, wanted: that line."""

    field: str
    kind: str
    line: int
    stored: str
    wanted: str


@dataclass(frozen=True)
class Explanation:
    """state: "none" where the graph would hit. nearest: the key of the entry with the fewest differences, or None."""

    key: str
    state: str
    nearest: str | None
    differences: tuple
    text: str

    def __str__(self):
        return self.text


def dir():
    """The folder; "" where entries live in memory only."""
    return _native.info()["dir"]


def info():
    """How much there is, what bounds it, and what this process has looked up."""
    found = _native.info()
    settings = tuple(Setting(**row) for row in found.pop("settings"))
    return Info(**found | {"settings": settings, "counters": Counters(**found["counters"])})


def list():
    """All entries, most recently used first."""
    return [Entry(**row) for row in _native.list()]


def show(key):
    """One entry's key document and metadata. ValueError where no entry, or more than one, begins so."""
    found = _native.show(key)
    found["isa"] = tuple(found["isa"])
    found["metadata"] = json.loads(found["metadata"])
    return ShownEntry(**found)


def verify(repair=False):
    """Reads and checks every entry; repair: removes the damaged ones."""
    found = _native.verify(bool(repair))
    return VerifyReport(found["checked"], tuple(DamagedEntry(**row) for row in found["damaged"]))


def prune(max_size=None, max_count=None):
    """Removes the least recently used entries down to the limits in force, or to these.

    max_size: bytes, or a size such as "500M".
    """
    if isinstance(max_size, str):
        size = _native.parse_size(max_size)
        if size is None:
            raise ValueError(f"max_size: {max_size!r} is no size")
        max_size = size
    return PruneReport(**_native.prune(max_size, max_count))


def clear():
    """Removes everything. What is loaded goes on running."""
    return PruneReport(**_native.clear())


def explain(graph):
    """Why would this graph miss? See _module() for what a graph may be."""
    found = _native.explain(_module(graph))
    found["differences"] = tuple(Difference(**row) for row in found["differences"])
    return Explanation(**found)


def warm(graph):
    """Compiles a graph and keeps it; how it came about, as a dict: status, reason, key, compile_s, ..."""
    return _module(graph).compile().origin


def config():
    """Each setting, its value, and where it comes from."""
    return [Setting(**row) for row in _native.config()]


def export(key, path):
    """Writes an entry to a file, for another machine."""
    _native.export_entry(key, os.fspath(path))


def import_(path):
    """Checks a file and stores it; its key."""
    return _native.import_entry(os.fspath(path))


def _module(graph):
    """A graph as a Module: the path of a file of text, a Module, or a function that Ember compiled."""
    if isinstance(graph, _core.Module):
        return graph
    if isinstance(graph, str | os.PathLike):
        path = os.fspath(graph)
        with open(path, encoding="utf-8") as file:
            return _core.Module.parse(file.read(), path)
    report = getattr(graph, "ember", None)
    if report is None:
        raise TypeError(f"{type(graph).__name__} is no graph: a path, a Module, or a function that Ember compiled")
    return report.module()
