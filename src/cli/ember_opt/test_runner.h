// `ember-opt test`: runs file tests, all in one process.
#pragma once

#include <string>
#include <vector>

#include "ember/support/result.h"

namespace ember::opt {

enum class Bless { kNo, kYes };

/// Runs the cases of these files, or of all files NAME.ember below these folders. Prints what fails, how to bless it,
/// and a closing line that says how many cases ran. Gives how many failed; an error where a path cannot be read.
Result<int> run_tests(const std::vector<std::string>& paths, Bless bless);

/// Prints the ops that have no `infer` or no `run` test below these folders, and the rules that have no `simplify`
/// test; gives how many those are.
Result<int> check_coverage(const std::vector<std::string>& paths);

}  // namespace ember::opt
