// Names of error codes and the text of diagnostics: see result.h.
#include "ember/support/result.h"

#include <array>

namespace ember {

std::string_view code_name(Code code) {
    static constexpr std::array<std::string_view, 12> kNames = {
        "invalid argument", "shape mismatch", "type mismatch", "index out of range",
        "assertion failed", "parse error",    "verify error",  "i/o error",
        "unsupported",      "out of memory",  "cancelled",     "internal error"};
    return kNames[static_cast<size_t>(code)];
}

std::string Diagnostic::to_string() const {
    std::string text = where.empty() ? message : where + ": " + message;
    for (const std::string& note : notes) {
        text += "\n    " + note;
    }
    return text;
}

}  // namespace ember
