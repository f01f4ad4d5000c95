// Finds test files, runs their cases, prints or blesses what differs.
#include "cli/ember_opt/test_runner.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <set>

#include "cli/ember_opt/rule_use.h"
#include "cli/ember_opt/test_kinds.h"
#include "ember/rewrite/rules.h"
#include "ember/support/file.h"

namespace ember::opt {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxTestFile = uint64_t{1} << 24;

Result<std::vector<std::string>> find_files(const std::vector<std::string>& paths) {
    std::vector<std::string> files;
    for (const std::string& path : paths) {
        std::error_code problem;
        if (!fs::is_directory(path, problem)) {
            files.push_back(path);
            continue;
        }
        for (auto entry = fs::recursive_directory_iterator(path, problem); entry != fs::recursive_directory_iterator();
             entry.increment(problem)) {
            if (problem) {
                return error(Code::kIo, problem.message(), path);
            }
            if (entry->is_regular_file() && entry->path().extension() == ".ember") {
                files.push_back(entry->path().string());
            }
        }
    }
    std::sort(files.begin(), files.end());
    return files;
}

std::string folder_of(const std::string& path) {
    return fs::absolute(path).parent_path().filename().string();
}

/// A bug that a check finds is a fault of the case, not the end of the run.
Outcome run_case(const TestKind& kind, const TestCase& test) {
    try {
        return kind(test);
    } catch (const std::exception& bug) {
        return {test.lines, {std::string("threw: ") + bug.what()}};
    }
}

bool is_interpreted_only(const TestCase& test) {
    return std::any_of(test.lines.begin(), test.lines.end(),
                       [](const std::string& line) { return directive(line, "interpreter only").has_value(); });
}

void print_lines(char sign, const Lines& lines, size_t from, size_t to) {
    for (size_t i = from; i < to; ++i) {
        std::printf("  %c %s\n", sign, lines[i].c_str());
    }
}

/// Where both have as many lines, those that differ; else all between the common ends.
void print_difference(const TestCase& test, const Lines& expected, const Lines& found) {
    size_t shortest = std::min(expected.size(), found.size());
    bool by_line = expected.size() == found.size();
    size_t tail = 0;
    for (size_t i = 0; i < shortest; ++i) {
        if (expected[i] == found[i]) {
            continue;
        }
        std::printf("%s:%zu: differs\n", test.path.c_str(), test.first_line + i);
        while (!by_line && tail < shortest - i &&
               expected[expected.size() - 1 - tail] == found[found.size() - 1 - tail]) {
            ++tail;
        }
        print_lines('-', expected, i, by_line ? i + 1 : expected.size() - tail);
        print_lines('+', found, i, by_line ? i + 1 : found.size() - tail);
        if (!by_line) {
            return;
        }
    }
    if (!by_line && tail == 0) {
        std::printf("%s:%zu: differs at its end\n", test.path.c_str(), test.first_line + shortest);
        print_lines('-', expected, shortest, expected.size());
        print_lines('+', found, shortest, found.size());
    }
}

class Runner {
public:
    explicit Runner(Bless bless) : bless_(bless) {}

    Status run_file(const std::string& path) {
        TestKind kind = find_kind(folder_of(path));
        if (!kind) {
            return error(Code::kInvalidArgument, "'" + folder_of(path) + "' is no kind of test and no pass", path);
        }
        EMBER_TRY(std::string text, read_file(path, kMaxTestFile));
        std::vector<TestCase> cases = split_cases(path, text);
        std::vector<TestCase> wanted = cases;
        bool failed = false;
        for (size_t i = 0; i < cases.size(); ++i) {
            Outcome outcome = run_case(kind, cases[i]);
            wanted[i].lines = outcome.lines;
            failed = !report(cases[i], outcome) || failed;
        }
        cases_ += cases.size();
        interpreted_ += static_cast<size_t>(std::count_if(cases.begin(), cases.end(), is_interpreted_only));
        ++files_;
        return failed ? finish_failed(path, join_cases(wanted), text) : Status();
    }

    int finish() const {
        std::string more = blessed_ == 0 ? "" : ", " + std::to_string(blessed_) + " files blessed";
        more += interpreted_ == 0 ? "" : ", " + std::to_string(interpreted_) + " by the interpreter only";
        std::printf("file tests: %zu cases in %zu files, %zu failed%s\n", cases_, files_, failed_, more.c_str());
        return static_cast<int>(failed_) + (files_ == 0 ? 1 : 0);
    }

private:
    bool report(const TestCase& test, const Outcome& outcome) {
        for (const std::string& fault : outcome.faults) {
            std::printf("%s:%zu: %s\n", test.path.c_str(), test.first_line, fault.c_str());
        }
        bool differs = outcome.lines != test.lines;
        if (differs && bless_ == Bless::kNo) {
            print_difference(test, test.lines, outcome.lines);
        }
        bool failed = !outcome.faults.empty() || (differs && bless_ == Bless::kNo);
        failed_ += failed ? 1 : 0;
        has_faults_ = has_faults_ || !outcome.faults.empty();
        return !differs && outcome.faults.empty();
    }

    Status finish_failed(const std::string& path, const std::string& wanted, const std::string& text) {
        bool has_faults = std::exchange(has_faults_, false);
        if (has_faults) {
            std::printf("%s: wrong whatever the text says: not to be blessed\n", path.c_str());
            return {};
        }
        if (bless_ == Bless::kNo) {
            std::printf("if the new text is right: ember-opt test --bless %s\n", path.c_str());
            return {};
        }
        ++blessed_;
        return wanted == text ? Status() : write_file(path, wanted);
    }

    Bless bless_;
    size_t cases_ = 0;
    size_t files_ = 0;
    size_t failed_ = 0;
    size_t blessed_ = 0;
    size_t interpreted_ = 0;
    bool has_faults_ = false;
};

using OpSet = std::set<ir::Op>;

void list_ops(const ir::Graph& graph, OpSet& ops) {
    for (const ir::Node& node : graph.nodes) {
        ops.insert(node.op);
        for (const auto& region : node.regions) {
            list_ops(*region, ops);
        }
    }
}

/// What the file tests have of the tables of ops and rules.
class Coverage {
public:
    void add(const std::string& folder, const TestCase& test) {
        auto module = parse_lines(test, test.lines);
        for (size_t i = 0; module.ok() && i < module->functions.size(); ++i) {
            const ir::Graph& function = module->functions[i];
            if (folder == "infer" || folder == "run") {
                list_ops(function, folder == "infer" ? inferred_ : run_);
            } else if (folder == "simplify") {
                list_rules(function, rules_);
            }
        }
    }

    int print_missing() const {
        int missing = print_missing_ops(inferred_, "infer") + print_missing_ops(run_, "run");
        for (const rewrite::Rule& rule : rewrite::rules()) {
            if (!rules_.contains(rule.name)) {
                std::printf("no simplify test has the rule %s: 'ember-opt rules --tests' has one\n",
                            std::string(rule.name).c_str());
                ++missing;
            }
        }
        std::printf("file tests cover %zu of %d ops by inference, %zu by running, %zu of %zu rules\n", inferred_.size(),
                    ir::kOpCount, run_.size(), rules_.size(), rewrite::rules().size());
        return missing;
    }

private:
    static int print_missing_ops(const OpSet& tested, const char* kind) {
        int missing = 0;
        for (int i = 0; i < ir::kOpCount; ++i) {
            auto op = static_cast<ir::Op>(i);
            if (!tested.contains(op)) {
                std::printf("no %s test has the op %s\n", kind, std::string(ir::op_name(op)).c_str());
                ++missing;
            }
        }
        return missing;
    }

    OpSet inferred_;
    OpSet run_;
    std::set<std::string_view> rules_;
};

}  // namespace

Result<int> run_tests(const std::vector<std::string>& paths, Bless bless) {
    EMBER_TRY(std::vector<std::string> files, find_files(paths));
    Runner runner(bless);
    for (const std::string& file : files) {
        EMBER_CHECKED(runner.run_file(file));
    }
    return runner.finish();
}

Result<int> check_coverage(const std::vector<std::string>& paths) {
    EMBER_TRY(std::vector<std::string> files, find_files(paths));
    Coverage coverage;
    for (const std::string& file : files) {
        EMBER_TRY(std::string text, read_file(file, kMaxTestFile));
        for (const TestCase& test : split_cases(file, text)) {
            coverage.add(folder_of(file), test);
        }
    }
    return coverage.print_missing();
}

}  // namespace ember::opt
