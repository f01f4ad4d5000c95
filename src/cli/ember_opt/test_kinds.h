// The kinds of file tests. The folder says which: its name is a kind's or a pass's.
//
//     parse, verify  errors stand where they happen: "  // error: COLUMN: message" at the end of the line. A case that
//                    parses has in its expect block what print() makes of it; in `verify` it has none.
//     infer          every node's line ends with the types of its results: "  // f32[n]"; errors as in parse
//     key            the expect block is the canonical text
//     same           all functions have one canonical text, but for those in "// differ: @a @b", which differ from all
//                    others, and those in "// helpers: @a @b", which others call
//     run            after each function, runs of it: its inputs "// input: tensor", then one "// expect: tensor" for
//                    each output, or "// error: message"; "// tolerance: x" stands before the inputs. A function
//                    without runs is called by others. "// interpreter only: reason" keeps a case from compiled code.
//     lower          the expect block says what lowering makes of the rewritten module: buffers and their homes, steps,
//                    and what each kernel does
//     codegen        the expect block says what is compiled for each level of x86-64: kernels, width of vectors, calls
//     PASS           the expect block is what the pass makes of the module. Before and after are evaluated on random
//                    inputs; "// sizes: n=4 m=5" says what symbols are (else 3, 4, 5, …), "// input: tensor" lines give
//                    the inputs of the first function, "// tolerance: x" loosens, "// zeros: of any sign" lets a
//                    rule that may lose the sign of a zero lose it.
//
// Whatever its kind, a module that parses must survive printing and reading, and so must its canonical text.
#pragma once

#include <functional>
#include <string_view>

#include "cli/ember_opt/test_case.h"

namespace ember::opt {

using TestKind = std::function<Outcome(const TestCase&)>;

/// The kind that a folder's name stands for; empty where it is none.
TestKind find_kind(std::string_view folder);

Outcome test_run(const TestCase& test);
Outcome test_lower(const TestCase& test);
Outcome test_codegen(const TestCase& test);
Outcome test_pass(const TestCase& test, ir::Module (*pass)(ir::Module));

/// Faults of the text form that any module can show.
void check_round_trip(const ir::Module& module, std::vector<std::string>& faults);

/// "// tolerance: 1e-6" of a line.
std::optional<double> tolerance_of(std::string_view line);

}  // namespace ember::opt
