// UTF-8 and the three character classes that pre-tokenizers know. Tests: test/unit/tokenizer_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ember::model {

enum class CharClass : uint8_t { kOther, kLetter, kNumber, kSpace };

CharClass classify(uint32_t code_point);

/// The character at the start of a text.
struct Utf8Char {
    enum class State : uint8_t {
        kValid,
        kInvalid,     // `length` bytes (at least one) that start no character
        kUnfinished,  // the text ends inside of what may become a character
    };

    uint32_t code_point = 0xfffd;
    uint32_t length = 1;
    State state = State::kInvalid;
};

/// `text` must not be empty. Surrogates, overlong forms and values over U+10FFFF are invalid; the length of an invalid
/// or unfinished one is Unicode's maximal subpart (section 3.9, table 3-7).
Utf8Char read_utf8(std::string_view text);

/// The same for classes: what is no character is kOther.
struct ClassifiedChar {
    CharClass char_class;
    uint32_t length;
};
ClassifiedChar read_class(std::string_view text);

}  // namespace ember::model
