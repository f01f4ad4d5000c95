// ember-opt, the developers' tool: prints, rewrites and runs graphs in text form, and runs the file tests.
// Exit status: 0, 1 where something failed (one line on standard error), 2 for a wrong command line.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>

#include "cli/ember_opt/commands.h"
#include "cli/ember_opt/test_runner.h"

namespace ember::opt {
namespace {

/// The command line, and what it asks for.
class Program {
public:
    Program() {
        app_.add_option("file", transform_.file, "graph in text form; - is standard input");
        app_.add_option("--pass", transform_.passes, "pass to run; may be given several times")
            ->allow_extra_args(false);
        app_.add_option("--emit", transform_.emit, "what to print")->check(CLI::IsMember(emit_kinds()));
        app_.add_flag("--list-passes", list_passes_, "print the passes in pipeline order");
        app_.require_subcommand(0, 1);
        add_ops();
        add_rules();
        add_run();
        add_test();
    }

    int run(int argc, char** argv) {
        try {
            app_.parse(argc, argv);
        } catch (const CLI::ParseError& problem) {
            return app_.exit(problem) == 0 ? 0 : 2;
        }
        Result<int> result = dispatch();
        if (!result.ok()) {
            std::fflush(stdout);
            std::fprintf(stderr, "ember-opt: %s\n", result.error().to_string().c_str());
        }
        return result.ok() && *result == 0 ? 0 : 1;
    }

private:
    void add_ops() {
        ops_ = app_.add_subcommand("ops", "print the op table");
        ops_->add_flag("--json", json_, "as JSON (the only form)");
    }

    void add_rules() {
        rules_ = app_.add_subcommand("rules", "print the table of rewriting rules");
        rules_->add_flag("--tests", rule_tests_, "print a file test of each instead");
    }

    void add_run() {
        run_ = app_.add_subcommand("run", "run a graph on arrays of .npy files");
        run_->add_option("file", run_options_.file, "graph in text form")->required();
        run_->add_option("--inputs", run_options_.inputs, ".npy files, one a parameter");
        run_->add_option("--engine", run_options_.engine, "interp or compiled")
            ->check(CLI::IsMember({"interp", "compiled"}));
        run_->add_option("--outputs", run_options_.outputs, "prefix of the results' files; else they are printed");
        run_->add_flag("--compare", run_options_.compare, "run both engines and say where they differ");
    }

    void add_test() {
        test_ = app_.add_subcommand("test", "run file tests");
        test_->add_option("paths", paths_, "files and folders")->required();
        test_->add_flag("--bless", bless_, "write what the tests give into the files; also EMBER_BLESS=1");
        test_->add_flag("--coverage", coverage_, "say which ops and rules no test has");
    }

    Result<int> dispatch() {
        if (ops_->parsed()) {
            std::fputs(ops_json().c_str(), stdout);
            return 0;
        }
        if (rules_->parsed()) {
            std::fputs((rule_tests_ ? rule_tests() : list_rules()).c_str(), stdout);
            return 0;
        }
        if (test_->parsed()) {
            const char* blessing = std::getenv("EMBER_BLESS");
            bool bless = bless_ || (blessing != nullptr && std::string_view(blessing) == "1");
            return coverage_ ? check_coverage(paths_) : run_tests(paths_, bless ? Bless::kYes : Bless::kNo);
        }
        if (list_passes_) {
            std::fputs(list_passes().c_str(), stdout);
            return 0;
        }
        if (!run_->parsed() && transform_.file.empty()) {
            std::fputs(app_.help().c_str(), stdout);
            return 0;
        }
        EMBER_CHECKED(run_->parsed() ? opt::run(run_options_) : transform(transform_));
        return 0;
    }

    CLI::App app_{"Ember's developer tool: graphs in text form", "ember-opt"};
    CLI::App* ops_ = nullptr;
    CLI::App* rules_ = nullptr;
    CLI::App* run_ = nullptr;
    CLI::App* test_ = nullptr;
    TransformOptions transform_;
    RunOptions run_options_;
    std::vector<std::string> paths_;
    bool json_ = true;
    bool list_passes_ = false;
    bool rule_tests_ = false;
    bool bless_ = false;
    bool coverage_ = false;
};

}  // namespace
}  // namespace ember::opt

int main(int argc, char** argv) {
    try {
        return ember::opt::Program().run(argc, argv);
    } catch (const std::bad_alloc&) {
        std::fputs("ember-opt: out of memory\n", stderr);
    } catch (const std::exception& bug) {
        std::fprintf(stderr, "ember-opt: %s\n", bug.what());
    }
    return 1;
}
