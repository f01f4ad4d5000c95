"""`mode="EMBER"` for PyTensor and PyMC: the mode, its linker and its rewriter.

import ember.pytensor                                # registers the mode
fn = pytensor.function([x], y, mode="EMBER")
ember.pytensor.use()                                 # makes it the default mode
"""

import functools

import pytensor
from pytensor.compile import executor, maker
from pytensor.compile.mode import Mode, predefined_linkers, register_linker, register_mode
from pytensor.graph.rewriting.basic import GraphRewriter
from pytensor.link.basic import Container, Linker

from . import _core
from .report import FunctionReport
from .translate import translate


class EmberRewriter(GraphRewriter):
    """Rewrites nothing: the compiler does. Only what tags ask for that changes a graph's meaning is done here.

    tags: names that were included, as in `mode.including("...")`.
    """

    def __init__(self, tags=()):
        super().__init__()
        self.tags = tuple(dict.fromkeys(tags))

    def add_requirements(self, fgraph):
        pass

    def apply(self, fgraph, *args, **kwargs):
        from .graph_changes import change_graph

        change_graph(fgraph, self.tags)

    def including(self, *tags):
        return EmberRewriter((*self.tags, *tags))

    def excluding(self, *tags):
        return EmberRewriter(tag for tag in self.tags if tag not in tags)

    def requiring(self, *tags):
        return self

    def register(self, *rewrites):
        return self

    def __eq__(self, other):
        return type(self) is type(other) and self.tags == other.tags

    def __hash__(self):
        return hash((type(self), self.tags))

    def __reduce__(self):
        return EmberRewriter, (self.tags,)


class EmberLinker(Linker):
    """Compiles a whole FunctionGraph, or finds it compiled. Pickles without code and without weights."""

    required_rewrites = ()
    incompatible_rewrites = ()

    def __init__(self, allow_gc=None):
        super().__init__(allow_gc=pytensor.config.allow_gc if allow_gc is None else allow_gc)
        self.fgraph = None
        self.no_recycling = []

    def accept(self, fgraph, no_recycling=None, profile=None):
        if self.fgraph is not None and self.fgraph is not fgraph:
            return type(self)(self.allow_gc).accept(fgraph, no_recycling, profile)
        self.fgraph = fgraph
        self.no_recycling = no_recycling or []
        return self

    def make_thunk(self, input_storage=None, output_storage=None, storage_map=None, **kwargs):
        fgraph = self.fgraph
        inputs, outputs, storage_map = cells_of(fgraph, input_storage, output_storage, storage_map)
        translated = translate(fgraph)
        vm = _core.Vm(translated.plan, inputs)
        vm.allow_gc = self.allow_gc
        vm.storage_map = storage_map
        vm.translated = translated
        return (
            vm,
            [Container(variable, cell) for variable, cell in zip(fgraph.inputs, inputs, strict=True)],
            [Container(variable, cell, readonly=True) for variable, cell in zip(fgraph.outputs, outputs, strict=True)],
        )

    def __repr__(self):
        return "EmberLinker()"


def cells_of(fgraph, input_storage, output_storage, storage_map):
    """Lists of one element for inputs and outputs, those given or new ones, and all of them by Variable."""
    cells = {} if storage_map is None else storage_map
    if input_storage is None:
        input_storage = [[None] for _ in fgraph.inputs]
    for variable, cell in zip(fgraph.inputs, input_storage, strict=True):
        if cells.setdefault(variable, cell) is not cell:
            raise ValueError(f"input_storage and storage_map have different cells for {variable}")
    for k, variable in enumerate(fgraph.outputs):
        if output_storage is not None:
            cells.setdefault(variable, output_storage[k])
        else:
            cells.setdefault(variable, [getattr(variable, "data", None)])
    return input_storage, [cells[variable] for variable in fgraph.outputs], cells


#: PyTensor's Function. Calls whose arguments need no conversion take a short cut past its Python. Not derived from in
#: Python: CPython gives classes written in Python no vectorcall of their bases.
EmberFunction = _core.function_class(executor.Function)


def make_function(*args, **kwargs):
    """An EmberFunction, its short cut open where nothing of PyTensor's call is needed."""
    function = EmberFunction(*args, **kwargs)
    _open_short_cut(function)
    return function


def _open_short_cut(function):
    inputs = function.maker.expanded_inputs
    given = [not (i.shared or i.implicit) for i in inputs]
    count = sum(given)
    if not all(given[:count]) or function.return_none or function._potential_aliased_input_groups:
        return
    if any(i.value is not None or i.update is not None for i in inputs[:count]):
        return
    if function.maker.profile or not getattr(function.vm, "need_update_inputs", True):
        return
    cells = tuple(c.storage for c in function.input_storage[count:])
    updated = tuple(c.storage for _, c in function._update_input_storage)
    returned = -1 if function.unpack_single else function._n_returned_outputs
    _core.arm(function, function.vm.translated.plan, cells, updated, count, returned)


class EmberMode(Mode):
    """The mode whose functions are EmberFunctions."""

    @property
    def function_maker(self):
        return functools.partial(maker.FunctionMaker, function_class=make_function)


executor.copyreg.pickle(EmberFunction, executor._pickle_Function)

linker = EmberLinker()
rewriter = EmberRewriter()
EMBER = EmberMode(linker, rewriter)
if "ember" not in predefined_linkers:
    register_linker("ember", linker)
    register_mode("EMBER", EMBER)


def use():
    """Makes EMBER the default mode: of `pytensor.function`, `.eval()`, and PyMC's own functions."""
    pytensor.config.mode = EMBER


def _function_report(self):
    translated = getattr(self.vm, "translated", None)
    if translated is None:
        raise AttributeError("this function was not compiled by Ember")
    return FunctionReport(translated)


executor.Function.ember = property(_function_report)
