// The commands of ember-opt, but for `test` (test_runner.h).
#pragma once

#include <string>
#include <vector>

#include "ember/support/result.h"

namespace ember::opt {

struct TransformOptions {
    std::string file;                 // "-": standard input
    std::vector<std::string> passes;  // in this order
    std::string emit = "text";        // one of emit_kinds()
};
std::vector<std::string> emit_kinds();
/// Reads a module, runs passes, prints what is asked for.
Status transform(const TransformOptions& options);

struct RunOptions {
    std::string file;
    std::vector<std::string> inputs;  // .npy files, one a parameter
    std::string engine = "interp";    // or "compiled"
    std::string outputs;              // results go to PREFIX0.npy, PREFIX1.npy, …; empty: they are printed
    bool compare = false;             // run both engines and say where they differ
};
Status run(const RunOptions& options);

/// The op table as a JSON array.
std::string ops_json();
/// One line a rule of rewriting.
std::string list_rules();
/// For each rule a case for test/filetests/simplify, without what is expected.
std::string rule_tests();
/// One line a pass: name and reason.
std::string list_passes();

}  // namespace ember::opt
