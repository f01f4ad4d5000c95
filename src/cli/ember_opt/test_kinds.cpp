// Kinds of file tests that need no evaluation.
#include "cli/ember_opt/test_kinds.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "ember/rewrite/passes.h"
#include "ember/text/print.h"

namespace ember::opt {
namespace {

constexpr std::string_view kErrorMark = "// error: ";

/// Line and column of "file:line:column".
std::pair<size_t, size_t> place_of(const Diagnostic& problem) {
    size_t second = problem.where.rfind(':');
    size_t first = problem.where.rfind(':', second - 1);
    auto number = [&](size_t at) {
        size_t value = 0;
        std::from_chars(problem.where.data() + at + 1, problem.where.data() + problem.where.size(), value);
        return value;
    };
    return {number(first), number(second)};
}

/// The lines without expected errors; lines that are nothing else go away.
Lines without_errors(const Lines& lines) {
    Lines result;
    for (const std::string& line : lines) {
        size_t mark = line.find(kErrorMark);
        std::string kept = line.substr(0, mark);
        while (mark != std::string::npos && kept.ends_with(' ')) {
            kept.pop_back();
        }
        if (mark == std::string::npos || !kept.empty()) {
            result.push_back(kept);
        }
    }
    return result;
}

void add_error(const TestCase& test, const Diagnostic& problem, Lines& lines) {
    auto [line, column] = place_of(problem);
    std::string mark = std::string(kErrorMark) + std::to_string(column) + ": " + problem.message;
    size_t index = line - test.first_line;
    if (index < lines.size() && !lines[index].empty()) {
        lines[index] += "  " + mark;
    } else {
        lines.push_back(mark);
    }
}

Outcome test_verify(const TestCase& test) {
    Outcome outcome{without_errors(without_expected(test.lines)), {}};
    auto module = parse_lines(test, outcome.lines);
    if (module.ok()) {
        check_round_trip(*module, outcome.faults);
    } else {
        add_error(test, module.error(), outcome.lines);
    }
    return outcome;
}

Outcome test_parse(const TestCase& test) {
    Outcome outcome = test_verify(test);
    auto module = parse_lines(test, outcome.lines);
    if (module.ok()) {
        outcome.lines = with_expected(outcome.lines, text::print(*module));
    }
    return outcome;
}

Outcome test_infer(const TestCase& test) {
    Outcome outcome{without_errors(without_expected(test.lines)), {}};
    std::vector<text::ParsedNode> nodes;
    auto module = parse_lines(test, outcome.lines, &nodes);
    std::map<uint32_t, text::SymbolNames> names;
    for (const text::ParsedNode& node : nodes) {
        auto place = names.try_emplace(node.function, text::SymbolNames::Style::kNamed).first;
        std::string& line = outcome.lines[node.line - test.first_line];
        line = line.substr(0, line.find("//"));
        line.erase(line.find_last_not_of(' ') + 1);
        line += "  //";
        for (const ir::TensorType& type : node.types) {
            line += &type == node.types.data() ? " " : ", ";
            place->second.append(line, type);
        }
    }
    if (module.ok()) {
        check_round_trip(*module, outcome.faults);
    } else {
        add_error(test, module.error(), outcome.lines);
    }
    return outcome;
}

/// A test of modules that must parse.
template <class F>
Outcome test_module(const TestCase& test, F f) {
    Outcome outcome{test.lines, {}};
    auto module = parse_lines(test, test.lines);
    if (module.ok()) {
        check_round_trip(*module, outcome.faults);
        f(*module, outcome);
    } else {
        outcome.faults.push_back(module.error().to_string());
    }
    return outcome;
}

Outcome test_key(const TestCase& test) {
    return test_module(test, [&](const ir::Module& module, Outcome& outcome) {
        outcome.lines = with_expected(test.lines, text::canonical_text(module));
    });
}

/// Is the function named in a line of this directive?
bool is_listed(const TestCase& test, std::string_view list, const std::string& name) {
    return std::any_of(test.lines.begin(), test.lines.end(), [&](const std::string& line) {
        std::string names = " " + std::string(directive(line, list).value_or("")) + " ";
        return names.find(" " + name + " ") != std::string::npos;
    });
}

Outcome test_same(const TestCase& test) {
    return test_module(test, [&](const ir::Module& module, Outcome& outcome) {
        std::map<std::string, std::string> seen;  // canonical text → the function that first had it
        std::string common = text::canonical_text(module);
        for (size_t i = 0; i < module.functions.size(); ++i) {
            std::string name = "@" + module.functions[i].name;
            std::string text = text::canonical_text(with_entry(module, i));
            if (is_listed(test, "helpers", name)) {
                continue;
            }
            bool should_differ = is_listed(test, "differ", name);
            auto [other, is_new] = seen.emplace(text, name);
            if (should_differ ? !is_new : text != common) {
                outcome.faults.push_back(should_differ ? name + " has the text of " + other->second + ":\n" + text
                                                       : name + " has another text:\n" + text + "than:\n" + common);
            }
        }
        if (module.functions.size() < 2) {
            outcome.faults.push_back("a case needs two functions at least");
        }
    });
}

}  // namespace

std::optional<double> tolerance_of(std::string_view line) {
    auto text = directive(line, "tolerance");
    double value = 0;
    if (!text || std::from_chars(text->data(), text->data() + text->size(), value).ec != std::errc()) {
        return {};
    }
    return value;
}

void check_round_trip(const ir::Module& module, std::vector<std::string>& faults) {
    auto must_return = [&](const std::string& text, std::string_view what, auto print) {
        auto again = text::parse(text, what);
        if (!again.ok()) {
            faults.push_back("does not read back: " + again.error().to_string() + "\n" + text);
        } else if (print(*again) != text) {
            faults.push_back(std::string(what) + " changes when read back:\n" + text + "becomes:\n" + print(*again));
        }
    };
    std::string canonical = text::canonical_text(module);
    must_return(text::print(module), "the printed text", [](const ir::Module& m) { return text::print(m); });
    must_return(canonical, "the canonical text", [](const ir::Module& m) { return text::canonical_text(m); });
    must_return(canonical, "the canonical text", [](const ir::Module& m) { return text::print(m); });
}

TestKind find_kind(std::string_view folder) {
    static const std::map<std::string_view, TestKind> kKinds = {
        {"parse", test_parse}, {"verify", test_verify}, {"infer", test_infer}, {"key", test_key},
        {"same", test_same},   {"run", test_run},       {"lower", test_lower}, {"codegen", test_codegen}};
    if (auto found = kKinds.find(folder); found != kKinds.end()) {
        return found->second;
    }
    for (const rewrite::Pass& pass : rewrite::passes()) {
        if (pass.name == folder) {
            return [run = pass.run](const TestCase& test) { return test_pass(test, run); };
        }
    }
    return {};
}

}  // namespace ember::opt
