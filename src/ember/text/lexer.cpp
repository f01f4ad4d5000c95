// The characters of the textual form.
#include "ember/text/lexer.h"

#include <algorithm>
#include <charconv>

namespace ember::text {
namespace {

Token as(Token token, TokenKind kind, std::string_view text) {
    token.kind = kind;
    token.text = text;
    return token;
}

}  // namespace

void Lexer::skip_spaces() {
    while (at_ < text_.size()) {
        char c = text_[at_];
        if (c == '\n') {
            ++line_;
            line_start_ = ++at_;
        } else if (c == ' ' || c == '\t' || c == '\r') {
            ++at_;
        } else if (text_.substr(at_, 2) == "//") {
            at_ = std::min(text_.find('\n', at_), text_.size());
        } else {
            return;
        }
    }
}

Token Lexer::next() {
    skip_spaces();
    Token token;
    token.line = line_;
    token.column = static_cast<uint32_t>(at_ - line_start_ + 1);
    return at_ == text_.size() ? token : read(token);
}

std::string_view Lexer::take(size_t length) {
    std::string_view part = text_.substr(at_, length);
    at_ += length;
    return part;
}

size_t Lexer::name_length(size_t from) const {
    size_t end = from;
    while (end < text_.size() && is_name_char(text_[end])) {
        ++end;
    }
    return end - from;
}

/// All that may belong to a number: whether it is one is for the reader of the element to say.
size_t Lexer::number_length() const {
    size_t end = at_ + 1;
    auto is_exponent_sign = [&] {
        char c = text_[end];
        char before = text_[end - 1];
        return (c == '-' || c == '+') && (before == 'e' || before == 'E') && text_.substr(at_, 2) != "0x";
    };
    while (end < text_.size() && (is_name_char(text_[end]) || is_exponent_sign())) {
        ++end;
    }
    return end - at_;
}

Token Lexer::read(Token token) {
    char c = text_[at_];
    char after = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
    if (is_name_start(c)) {
        return as(token, TokenKind::kName, take(name_length(at_)));
    }
    if (is_digit(c) || (c == '-' && is_name_char(after))) {
        return as(token, TokenKind::kNumber, take(number_length()));
    }
    if (c == '%' || (c == '@' && is_name_start(after))) {
        size_t length = name_length(at_ + 1);
        if (length == 0) {
            return as(token, TokenKind::kBad, "% without a name after it");
        }
        return as(token, c == '%' ? TokenKind::kValue : TokenKind::kFunction, take(length + 1).substr(1));
    }
    if (c == '@' && after == '"') {
        ++at_;
        token = read_string(token);
        return token.kind == TokenKind::kString ? as(token, TokenKind::kFunction, token.text) : token;
    }
    if (c == '"') {
        return read_string(token);
    }
    if (c == '-' && after == '>') {
        return as(token, TokenKind::kMark, take(2));
    }
    if (std::string_view("()[]{},:=").find(c) != std::string_view::npos) {
        return as(token, TokenKind::kMark, take(1));
    }
    bool plain = c > ' ' && c < 0x7f;
    return plain ? as(token, TokenKind::kStray, take(1))
                 : as(token, TokenKind::kBad, "a character that has no place here");
}

Token Lexer::read_string(Token token) {
    size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') {
        end += text_[end] == '\\' ? 2 : 1;
    }
    if (end >= text_.size() || text_[end] != '"') {
        return as(token, TokenKind::kBad, "a string that does not end on its line");
    }
    return as(token, TokenKind::kString, take(end + 1 - at_));
}

std::string describe(const Token& token) {
    static constexpr size_t kLongest = 40;
    std::string text(token.text.substr(0, kLongest));
    text += token.text.size() > kLongest ? "…" : "";
    switch (token.kind) {
        case TokenKind::kEnd:
            return "the end of the text";
        case TokenKind::kBad:
            return text;
        case TokenKind::kString:
            return "a string";
        case TokenKind::kValue:
            return "'%" + text + "'";
        case TokenKind::kFunction:
            return "'@" + text + "'";
        default:
            return "'" + text + "'";
    }
}

bool unquote(std::string_view quoted, std::string& out) {
    quoted = quoted.substr(1, quoted.size() - 2);
    for (size_t i = 0; i < quoted.size(); ++i) {
        if (quoted[i] != '\\') {
            out += quoted[i];
            continue;
        }
        static constexpr std::string_view kEscapes = "\"\\ntr";
        static constexpr std::string_view kMeanings = "\"\\\n\t\r";
        char c = ++i < quoted.size() ? quoted[i] : '\0';
        if (size_t which = kEscapes.find(c); c != '\0' && which != std::string_view::npos) {
            out += kMeanings[which];
            continue;
        }
        unsigned byte = 0;
        std::string_view digits = i < quoted.size() ? quoted.substr(i + 1, 2) : std::string_view();
        auto end = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16).ptr;
        if (c != 'x' || digits.size() != 2 || end != digits.data() + 2) {
            return false;
        }
        out += static_cast<char>(byte);
        i += 2;
    }
    return true;
}

}  // namespace ember::text
