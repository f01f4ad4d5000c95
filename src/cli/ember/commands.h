// The verbs of `ember`: each adds its options to the program and returns what runs it. Exit codes: 0 fine, 1 error (one
// line on stderr), 2 usage, 130 interrupted. Tests: test/python/test_golden.py, test/python/test_cli_*.py.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "ember/support/result.h"

namespace ember::cli {

using Command = std::function<int()>;

void add_run(CLI::App& app, Command& chosen);
void add_tokenize(CLI::App& app, Command& chosen);
void add_compile(CLI::App& app, Command& chosen);
void add_cache(CLI::App& app, Command& chosen);
void add_config(CLI::App& app, Command& chosen);
void add_doctor(CLI::App& app, Command& chosen);
void add_bench(CLI::App& app, Command& chosen);

/// Prints the diagnostic and gives exit code 1.
int fail(const Diagnostic& diagnostic);

/// Seconds since this process was started.
double process_seconds();
/// The most memory this process has held, bytes.
int64_t peak_bytes();

}  // namespace ember::cli
