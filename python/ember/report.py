"""What Ember knows about a function that it compiled."""


class FunctionReport:
    """`fn.ember` of a function.

    status: "hit", "miss", "bypass" or "error" of the cache. key: 64 hexadecimal digits.
    """

    def __init__(self, translated):
        self._translated = translated

    @property
    def origin(self):
        """How the code came about: status, reason, key, compile_s, load_s, kernels, llvm_modules, artifact_bytes."""
        return self._translated.executable.origin

    @property
    def status(self):
        return self.origin["status"]

    @property
    def key(self):
        return self.origin["key"]

    def report(self):
        """Names of the Ops that run through their own `perform`, and how many nodes each has."""
        return dict(self._translated.host_ops)

    def module(self):
        """The graph, as `ember.cache` takes it."""
        return self._translated.module()

    def text(self, stage="text", **options):
        """The graph as text; stage: text, canonical, rewritten, loops, llvm, assembly.

        Options: cpu, a target instead of this host; disabled_passes, names of rewriting passes to leave out.
        """
        return self.module().emit(stage, **options)

    def __repr__(self):
        origin = self.origin
        return f"<{origin['status']} {origin['key'][:16]}, {origin['kernels']} kernels>"
