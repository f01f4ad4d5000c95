// Splits the textual form into tokens. Tokens are views into the text. Tests: test/unit/text_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ember::text {

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
constexpr bool is_name_start(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
constexpr bool is_name_char(char c) {
    return is_name_start(c) || is_digit(c) || c == '.';
}

enum class TokenKind : uint8_t {
    kName,      // func, add, f32, n, true, nan
    kValue,     // %3, %x: the text is what follows %
    kFunction,  // @f: the text is what follows @
    kNumber,    // digits, sign, point, exponent; also 0x…, -inf, -nan
    kString,    // as written, quotes included
    kMark,      // ( ) [ ] { } , : = ->
    kStray,     // one character that the grammar does not have
    kEnd,
    kBad,  // the text is what is wrong with it
};

struct Token {
    TokenKind kind = TokenKind::kEnd;
    std::string_view text;
    uint32_t line = 1;    // the first is 1
    uint32_t column = 1;  // in bytes, the first is 1
};

class Lexer {
public:
    explicit Lexer(std::string_view text) : text_(text) {}

    Token next();

private:
    void skip_spaces();
    Token read(Token token);
    std::string_view take(size_t length);
    size_t name_length(size_t from) const;
    size_t number_length() const;
    Token read_string(Token token);

    std::string_view text_;
    size_t at_ = 0;
    size_t line_start_ = 0;
    uint32_t line_ = 1;
};

/// How a token reads in a message: 'x', end of file.
std::string describe(const Token& token);

/// The characters of a string token; false where an escape is none of the grammar's.
bool unquote(std::string_view quoted, std::string& out);

}  // namespace ember::text
