// The rewriting passes, graph to graph on one level of the IR, and the pipeline that runs them in order. Each pass is
// one file of its own name; the table in passes.cpp gives the order and the reason for each place.
// Tests: test/unit/rewrite_test.cpp, test/filetests/<pass>/.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ember/ir/graph.h"

namespace ember::rewrite {

struct Pass {
    std::string_view name;
    std::string_view why;
    ir::Module (*run)(ir::Module);
};

/// In the order in which the pipeline runs them.
std::span<const Pass> passes();

struct Options {
    std::vector<std::string> disabled = {};  // names of passes that are not run
    bool verify = false;                     // check the module after each pass
};

/// Runs every pass that is not disabled. EMBER_TIME_PASSES=1 prints the milliseconds and node counts of each;
/// EMBER_VERIFY_PASSES=1 is `verify` everywhere, and so is a debug build.
ir::Module rewrite(ir::Module module, const Options& options = {});

ir::Module inline_calls(ir::Module module);
ir::Module outline_layers(ir::Module module);
ir::Module decompose(ir::Module module);
ir::Module fold_constants(ir::Module module);
ir::Module simplify(ir::Module module);
ir::Module stabilize(ir::Module module);
ir::Module hoist_invariants(ir::Module module);
ir::Module merge_common(ir::Module module);
ir::Module eliminate_dead(ir::Module module);

}  // namespace ember::rewrite
