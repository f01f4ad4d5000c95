// Cases of a test file.
#include "cli/ember_opt/test_case.h"

#include <algorithm>

namespace ember::opt {
namespace {

constexpr std::string_view kSeparator = "// ---";
constexpr std::string_view kExpect = "// expect:";

}  // namespace

Lines split_lines(std::string_view text) {
    Lines lines;
    while (!text.empty()) {
        size_t end = text.find('\n');
        lines.emplace_back(text.substr(0, end));
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    }
    return lines;
}

std::string join_lines(const Lines& lines) {
    std::string text;
    for (const std::string& line : lines) {
        text += line + "\n";
    }
    return text;
}

std::vector<TestCase> split_cases(const std::string& path, std::string_view text) {
    std::vector<TestCase> cases = {{path, 1, {}}};
    size_t number = 0;
    for (std::string& line : split_lines(text)) {
        ++number;
        if (line == kSeparator) {
            cases.push_back({path, number + 1, {}});
        } else {
            cases.back().lines.push_back(std::move(line));
        }
    }
    return cases;
}

std::string join_cases(const std::vector<TestCase>& cases) {
    std::string text;
    for (size_t i = 0; i < cases.size(); ++i) {
        text += i == 0 ? "" : std::string(kSeparator) + "\n";
        text += join_lines(cases[i].lines);
    }
    return text;
}

std::optional<std::string_view> directive(std::string_view line, std::string_view name) {
    std::string start = "// " + std::string(name) + ":";
    if (!line.starts_with(start)) {
        return {};
    }
    line.remove_prefix(start.size());
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    return line;
}

Result<ir::Module> parse_lines(const TestCase& test, const Lines& lines, std::vector<text::ParsedNode>* nodes) {
    std::string text(test.first_line - 1, '\n');
    text += join_lines(lines);
    if (!lines.empty()) {
        text.pop_back();
    }
    std::vector<text::ParsedNode> ignored;
    return text::parse(text, test.path, nodes == nullptr ? ignored : *nodes);
}

Lines without_expected(const Lines& lines) {
    return {lines.begin(), std::find(lines.begin(), lines.end(), kExpect)};
}

Lines with_expected(const Lines& lines, std::string_view expected) {
    Lines result = without_expected(lines);
    result.emplace_back(kExpect);
    for (const std::string& line : split_lines(expected)) {
        result.push_back(line.empty() ? "//" : "// " + line);
    }
    return result;
}

ir::Module with_entry(const ir::Module& module, size_t entry) {
    ir::Module rotated = module;
    auto first = rotated.functions.begin();
    std::rotate(first, first + static_cast<std::ptrdiff_t>(entry), first + static_cast<std::ptrdiff_t>(entry) + 1);
    return rotated;
}

}  // namespace ember::opt
