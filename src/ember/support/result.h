// Result<T>: a value or a Diagnostic. The way every user or input error travels; exceptions are for bugs only
// (check.h). Tests: test/unit/support_test.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ember/support/check.h"

namespace ember {

/// What kind of error this is; Python maps each to the exception type its users know.
enum class Code {
    kInvalidArgument,  // ValueError
    kShape,            // ValueError
    kType,             // TypeError
    kIndex,            // IndexError
    kAssert,           // AssertionError
    kParse,            // ValueError
    kVerify,           // ValueError
    kIo,               // OSError
    kUnsupported,      // NotImplementedError
    kOutOfMemory,      // MemoryError
    kCancelled,        // KeyboardInterrupt
    kInternal,         // RuntimeError
};

std::string_view code_name(Code code);

/// One error, ready to show: `where` is "file:line", "file: offset N" or empty.
struct Diagnostic {
    Code code = Code::kInternal;
    std::string message;
    std::string where;
    std::vector<std::string> notes;

    /// "where: message" and one indented line a note.
    std::string to_string() const;
};

template <class T>
class [[nodiscard]] Result {
public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Diagnostic error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool ok() const { return state_.index() == 0; }
    explicit operator bool() const { return ok(); }

    T& value() & {
        check(ok(), "value() of a failed Result");
        return std::get<0>(state_);
    }
    const T& value() const& {
        check(ok(), "value() of a failed Result");
        return std::get<0>(state_);
    }
    T&& value() && {
        check(ok(), "value() of a failed Result");
        return std::get<0>(std::move(state_));
    }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }
    T& operator*() & { return value(); }
    const T& operator*() const& { return value(); }
    T&& operator*() && { return std::move(*this).value(); }

    const Diagnostic& error() const {
        check(!ok(), "error() of a successful Result");
        return std::get<1>(state_);
    }

private:
    std::variant<T, Diagnostic> state_;
};

template <>
class [[nodiscard]] Result<void> {
public:
    Result() = default;
    Result(Diagnostic error) : error_(std::move(error)) {}

    bool ok() const { return !error_.has_value(); }
    explicit operator bool() const { return ok(); }
    const Diagnostic& error() const {
        check(!ok(), "error() of a successful Result");
        return *error_;
    }

private:
    std::optional<Diagnostic> error_;
};

using Status = Result<void>;

/// `return error(Code::kShape, "...")` from any function that returns a Result.
inline Diagnostic error(Code code, std::string message, std::string where = {}) {
    return Diagnostic{code, std::move(message), std::move(where), {}};
}

}  // namespace ember

#define EMBER_CONCAT_INNER(a, b) a##b
#define EMBER_CONCAT(a, b) EMBER_CONCAT_INNER(a, b)
/// `EMBER_TRY(auto x, make_x());` returns the Diagnostic to the caller or binds the value.
#define EMBER_TRY(declaration, expression)                     \
    auto EMBER_CONCAT(ember_result_, __LINE__) = (expression); \
    if (!EMBER_CONCAT(ember_result_, __LINE__).ok()) {         \
        return EMBER_CONCAT(ember_result_, __LINE__).error();  \
    }                                                          \
    declaration = std::move(EMBER_CONCAT(ember_result_, __LINE__)).value()
/// The same for a Status.
#define EMBER_CHECKED(expression)                                   \
    do {                                                            \
        if (auto ember_status = (expression); !ember_status.ok()) { \
            return ember_status.error();                            \
        }                                                           \
    } while (false)
