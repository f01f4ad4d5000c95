// Invariant checks that stay on in every build. A failed check is a bug in Ember, never a user's error: it throws
// InternalError, which the API edge turns into a Diagnostic, so that a notebook survives a compiler bug.
// Tests: test/unit/support_test.cpp.
#pragma once

#include <source_location>
#include <stdexcept>
#include <string>
#include <string_view>

namespace ember {

class InternalError : public std::logic_error {
public:
    using std::logic_error::logic_error;
};

[[noreturn]] void fail_check(std::string_view what, std::source_location where);

inline void check(bool condition, std::string_view what = "invariant",
                  std::source_location where = std::source_location::current()) {
    if (!condition) [[unlikely]] {
        fail_check(what, where);
    }
}

[[noreturn]] inline void unreachable(std::string_view what,
                                     std::source_location where = std::source_location::current()) {
    fail_check(what, where);
}

}  // namespace ember
