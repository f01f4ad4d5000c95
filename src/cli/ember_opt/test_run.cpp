// `run` tests: functions evaluated on inputs of the text by every engine.
#include <algorithm>

#include "cli/ember_opt/engines.h"
#include "cli/ember_opt/tensor_text.h"
#include "cli/ember_opt/test_kinds.h"

namespace ember::opt {
namespace {

/// One run of a function while its lines are read.
struct Run {
    Tensors inputs;
    Lines results;  // the lines that tell what it gives
    std::optional<Tolerance> tolerance;
    std::vector<std::string> faults;
};

class RunTest {
public:
    RunTest(const TestCase& test, ir::Module module) : test_(test), module_(std::move(module)) {}

    Outcome check() {
        for (const std::string& line : test_.lines) {
            read(line);
        }
        end_function();
        if (runs_ == 0) {
            fault("no run: give inputs after a function, as in '// input: f32[2] [1, 2]'");
        }
        return std::move(outcome_);
    }

private:
    void fault(const std::string& text) { outcome_.faults.push_back(text); }

    void read(const std::string& line) {
        auto input = directive(line, "input");
        auto tolerance = tolerance_of(line);
        if (directive(line, "expect") || directive(line, "error")) {
            run().results.push_back(line);
            return;
        }
        if (input || tolerance) {
            if (run_ && (!run_->results.empty() || (tolerance && !run_->inputs.empty()))) {
                end_run();
            }
            input ? read_input(*input) : void(run().tolerance = Tolerance{*tolerance, *tolerance});
        } else {
            end_run();
        }
        if (line.starts_with("func @")) {
            end_function();
            ++functions_;
        }
        interpreted_only_ = interpreted_only_ || directive(line, "interpreter only");
        outcome_.lines.push_back(line);
    }

    /// A full set of inputs without results ends at the next input, so that new runs need only their inputs.
    void read_input(std::string_view text) {
        size_t params = functions_ == 0 ? 0 : module_.functions[functions_ - 1].params.size();
        if (run_ && params > 0 && run_->inputs.size() == params) {
            end_run();
        }
        auto tensor = parse_tensor(text);
        if (tensor.ok()) {
            run().inputs.push_back(std::move(*tensor));
        } else {
            run().faults.push_back("bad input '" + std::string(text) + "': " + tensor.error().to_string());
        }
    }

    Run& run() { return run_ ? *run_ : run_.emplace(); }

    /// A function without parameters has one run that need not be written.
    void end_function() {
        end_run();
        if (functions_ > 0 && runs_of_function_ == 0 && module_.functions[functions_ - 1].params.empty()) {
            run();
            end_run();
        }
        runs_of_function_ = 0;
    }

    void end_run() {
        if (!run_) {
            return;
        }
        Run run = std::move(*run_);
        run_.reset();
        ++runs_;
        ++runs_of_function_;
        if (functions_ == 0) {
            run.faults.emplace_back("a run stands after its function");
        }
        Lines results = run.faults.empty() ? evaluate(run) : run.results;
        outcome_.lines.insert(outcome_.lines.end(), results.begin(), results.end());
        outcome_.faults.insert(outcome_.faults.end(), run.faults.begin(), run.faults.end());
    }

    /// What the lines of results should be.
    Lines evaluate(Run& run) {
        ir::Module module = with_entry(module_, functions_ - 1);
        auto found = evaluate_reference(module, run.inputs);
        compare_compiled(module, run, found);
        if (!found.ok()) {
            return {"// error: " + found.error().message};
        }
        Lines lines;
        for (size_t k = 0; k < found->size(); ++k) {
            lines.push_back(result_line((*found)[k], k < run.results.size() ? run.results[k] : "", run.tolerance));
        }
        return lines;
    }

    /// The line itself where it agrees.
    static std::string result_line(const interp::Tensor& found, const std::string& line,
                                   std::optional<Tolerance> tolerance) {
        auto text = directive(line, "expect");
        auto expected = parse_tensor(text.value_or(""));
        bool agrees = expected.ok() && !find_difference(*expected, found, tolerance);
        return agrees ? line : "// expect: " + print_tensor(found);
    }

    void compare_compiled(const ir::Module& module, Run& run, const Result<Tensors>& reference) {
        if (!has_compiled_engine() || interpreted_only_) {
            return;
        }
        auto compiled = evaluate_compiled(module, run.inputs);
        std::string name = "@" + module.entry().name + ": compiled code ";
        if (compiled.ok() != reference.ok()) {
            run.faults.push_back(name + (compiled.ok() ? "runs, the interpreter says: " + reference.error().to_string()
                                                       : "says: " + compiled.error().to_string()));
        } else if (!compiled.ok() && compiled.error().code != reference.error().code) {
            run.faults.push_back(name + "says: " + compiled.error().to_string() +
                                 "\nthe interpreter: " + reference.error().to_string());
        } else if (compiled.ok()) {
            if (auto difference = find_difference(*reference, *compiled, run.tolerance)) {
                run.faults.push_back(name + "differs from the interpreter: " + *difference);
            }
        }
    }

    const TestCase& test_;
    ir::Module module_;
    Outcome outcome_;
    std::optional<Run> run_;
    size_t functions_ = 0;
    size_t runs_ = 0;
    size_t runs_of_function_ = 0;
    bool interpreted_only_ = false;
};

}  // namespace

Outcome test_run(const TestCase& test) {
    auto module = parse_lines(test, test.lines);
    if (!module.ok()) {
        return {test.lines, {module.error().to_string()}};
    }
    std::vector<std::string> faults;
    check_round_trip(*module, faults);
    Outcome outcome = RunTest(test, std::move(*module)).check();
    outcome.faults.insert(outcome.faults.begin(), faults.begin(), faults.end());
    return outcome;
}

}  // namespace ember::opt
