// The pass table and the one wrapper that runs it: switch, timer, verification.
#include "ember/rewrite/passes.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "ember/ir/builder.h"
#include "ember/support/check.h"

namespace ember::rewrite {
namespace {

constexpr Pass kPasses[] = {
    {"inline_calls", "small functions join their callers, so that what follows sees through them", inline_calls},
    {"outline_layers", "equal sub-graphs become one function: all later work is done once for each distinct one",
     outline_layers},
    {"decompose", "ops that others express go away, so that rules and lowering know fewer of them", decompose},
    {"fold_constants", "what only constants decide is computed now, and rules see the numbers", fold_constants},
    {"simplify", "the rule table and the rules of views, bottom-up", simplify},
    {"stabilize", "after simplify, which brings expressions into the form that these patterns know", stabilize},
    {"hoist_invariants", "loops are as small as they get, and what leaves them can merge with the rest",
     hoist_invariants},
    {"merge_common", "rewriting makes equal nodes of different ones", merge_common},
    {"eliminate_dead", "last: nothing is lowered that no output needs", eliminate_dead},
};

size_t count_nodes(const ir::Module& module) {
    size_t nodes = 0;
    for (const ir::Graph& function : module.functions) {
        nodes += function.nodes.size();
    }
    return nodes;
}

/// Debug builds verify always, others where EMBER_VERIFY_PASSES is set, as all tests do.
bool verifies_always() {
#ifdef NDEBUG
    static const bool asked = std::getenv("EMBER_VERIFY_PASSES") != nullptr;
    return asked;
#else
    return true;
#endif
}

ir::Module run_pass(const Pass& pass, ir::Module module, const Options& options) {
    static const bool timed = std::getenv("EMBER_TIME_PASSES") != nullptr;
    auto start = std::chrono::steady_clock::now();
    module = pass.run(std::move(module));
    if (timed) {
        std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
        std::fprintf(stderr, "%-16.*s %8.3f ms %6zu functions %8zu nodes\n", static_cast<int>(pass.name.size()),
                     pass.name.data(), spent.count(), module.functions.size(), count_nodes(module));
    }
    if (options.verify || verifies_always()) {
        Status status = ir::verify(module);
        check(status.ok(), status.ok() ? "" : "after " + std::string(pass.name) + ": " + status.error().to_string());
    }
    return module;
}

}  // namespace

std::span<const Pass> passes() {
    return kPasses;
}

ir::Module rewrite(ir::Module module, const Options& options) {
    for (const Pass& pass : kPasses) {
        if (std::find(options.disabled.begin(), options.disabled.end(), pass.name) == options.disabled.end()) {
            module = run_pass(pass, std::move(module), options);
        }
    }
    return module;
}

}  // namespace ember::rewrite
