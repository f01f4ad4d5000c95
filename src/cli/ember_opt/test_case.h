// File tests: how a file falls into cases and a case into lines, directives and functions.
//
//     file      = case ("// ---" newline case)*
//     directive = "// " name ":" text                 on a line of its own; which names there are, the kind says
//     block     = "// expect:" newline ("// " line newline)*         up to the end of the case
//
// A test is a function from the lines of a case to the lines that it should have: it passes where they are the same,
// and blessing writes them. What must not be blessed is a fault.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ember/ir/graph.h"
#include "ember/support/result.h"
#include "ember/text/parse.h"

namespace ember::opt {

using Lines = std::vector<std::string>;

struct TestCase {
    std::string path;
    size_t first_line = 1;  // where it stands in its file
    Lines lines;
};

/// What a test says of its case.
struct Outcome {
    Lines lines;                      // as they should be
    std::vector<std::string> faults;  // wrong whatever the text says
};

std::vector<TestCase> split_cases(const std::string& path, std::string_view text);
std::string join_cases(const std::vector<TestCase>& cases);

Lines split_lines(std::string_view text);
std::string join_lines(const Lines& lines);

/// The text of "// NAME: text" where the line is this directive.
std::optional<std::string_view> directive(std::string_view line, std::string_view name);

/// Parses lines of a case; diagnostics have the line numbers of the file.
Result<ir::Module> parse_lines(const TestCase& test, const Lines& lines,
                               std::vector<text::ParsedNode>* nodes = nullptr);

/// The lines before "// expect:".
Lines without_expected(const Lines& lines);
/// These and, after them, the block of this text.
Lines with_expected(const Lines& lines, std::string_view expected);

/// The module of one of its functions: the same functions, that one first.
ir::Module with_entry(const ir::Module& module, size_t entry);

}  // namespace ember::opt
