// The textual form, read. Result types may be left out where inference finds them; where they stand, they must agree
// with it, and they name the symbols of lengths that only the run knows. Parsed modules are verified.
// Hostile text is bounded: see the limits in parse.cpp. Tests: test/unit/text_test.cpp, test/filetests/{parse,verify,
// infer}, test/fuzz/text_fuzz.cpp.
//
//     module     = function+
//     function   = "func" "@" (name | string) params block
//     params     = "(" [param ("," param)*] ")"
//     param      = ["shared" | "bound"] value ":" type
//     block      = "{" node* "return" [output ("," output)*] "}"
//     output     = value ["->" value]                 the second: the shared parameter that is updated
//     node       = [value ("," value)* "="] op "(" [value ("," value)*] ")" [attributes] [regions] [":" types]
//     attributes = "{" [name "=" attribute ("," name "=" attribute)*] "}"
//     attribute  = integer | "[" [integer ("," integer)*] "]" | string | dtype | literal      by the op's row
//     literal    = element | "[" [element ("," element)*] "]"      row-major; the node's type gives dtype and shape
//     element    = number | "true" | "false" | ["-"] ("nan" | "inf") | "0x" bits of a float | "(" number "," number ")"
//     regions    = "do" params block                  of loop
//                | "then" params block "else" params block             of if
//     types      = type ("," type)*
//     type       = dtype "[" [dim ("," dim)*] "]"
//     dim        = digits | symbol
//     value      = "%" (digits | name)
//     name, symbol = [A-Za-z_][A-Za-z0-9_.]*
//     Line ends are spaces; "//" starts a comment up to the line's end.
//
// A region sees the symbols of its function but not its values: those come in as operands.
#pragma once

#include <string_view>
#include <vector>

#include "ember/ir/graph.h"
#include "ember/support/result.h"

namespace ember::text {

/// Errors say "file:line:column" and what was expected; errors of inference stand at the op's name.
Result<ir::Module> parse(std::string_view text, std::string_view file_name);

/// Where one node of a text stands and what it gives, for tools that show types beside the text.
struct ParsedNode {
    uint32_t line;      // of the op's name; the first line is 1
    uint32_t function;  // which function of the module
    std::vector<ir::TensorType> types;
};
/// As parse(), and lists the nodes in the order of the text, also those before an error.
Result<ir::Module> parse(std::string_view text, std::string_view file_name, std::vector<ParsedNode>& nodes);

}  // namespace ember::text
