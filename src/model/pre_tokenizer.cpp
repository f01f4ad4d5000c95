// One matcher a family of regular expressions, and the table of the names that models give them.
#include "model/pre_tokenizer.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "model/unicode.h"

namespace ember::model {

namespace {

enum class Case { kSensitive, kIgnored };
enum class Numbers {
    kRuns,   // \p{N}+, with a space in front
    kApart,  // each number is a piece, and the text around it is matched as if it ended there
};

/// End of the run of `wanted` that starts at `start`, of at most `most` characters.
size_t run_end(std::string_view text, size_t start, CharClass wanted, size_t most = SIZE_MAX) {
    for (size_t count = 0; start < text.size() && count < most; ++count) {
        ClassifiedChar next = read_class(text.substr(start));
        if (next.char_class != wanted) {
            break;
        }
        start += next.length;
    }
    return start;
}

/// Length of 's 't 'm 'd 're 've 'll at the start, or 0.
size_t contraction(std::string_view text, Case letter_case) {
    auto letter = [&](size_t i) {
        char c = i < text.size() ? text[i] : '\0';
        return letter_case == Case::kIgnored && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    };
    if (text[0] != '\'') {
        return 0;
    }
    char a = letter(1), b = letter(2);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') {
        return 2;
    }
    return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

/// \s+(?!\S)|\s+ on white space: all of the run where the text ends after it, else all but its last character, which
/// goes with what follows; where that would be nothing, the one character.
size_t space_piece(std::string_view text, Numbers numbers) {
    size_t end = 0, last = 0;
    while (end < text.size()) {
        ClassifiedChar next = read_class(text.substr(end));
        if (next.char_class != CharClass::kSpace) {
            bool text_ends = numbers == Numbers::kApart && next.char_class == CharClass::kNumber;
            return text_ends || last == 0 ? end : last;
        }
        last = end;
        end += next.length;
    }
    return end;
}

/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
template <Numbers numbers>
size_t gpt2_piece(std::string_view text) {
    if (size_t length = contraction(text, Case::kSensitive)) {
        return length;
    }
    size_t start = text[0] == ' ' && text.size() > 1 ? 1 : 0;
    ClassifiedChar first = read_class(text.substr(start));
    if (first.char_class == CharClass::kSpace) {
        return space_piece(text, numbers);
    }
    if (numbers == Numbers::kApart && first.char_class == CharClass::kNumber) {
        return start == 1 ? 1 : first.length;
    }
    return run_end(text, start, first.char_class);
}

/// \s*[\r\n]+ at the start: white space up to the last line end in its run, or 0.
size_t line_ends(std::string_view text) {
    size_t after_last = 0;
    for (size_t at = 0; at < text.size();) {
        ClassifiedChar next = read_class(text.substr(at));
        if (next.char_class != CharClass::kSpace) {
            break;
        }
        bool line_end = text[at] == '\r' || text[at] == '\n';
        at += next.length;
        after_last = line_end ? at : after_last;
    }
    return after_last;
}

/// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,most}|
/// ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
template <size_t most_digits>
size_t llama3_piece(std::string_view text) {
    if (size_t length = contraction(text, Case::kIgnored)) {
        return length;
    }
    ClassifiedChar first = read_class(text);
    if (first.char_class == CharClass::kLetter) {
        return run_end(text, 0, CharClass::kLetter);
    }
    if (first.char_class == CharClass::kNumber) {
        return run_end(text, 0, CharClass::kNumber, most_digits);
    }
    if (text[0] != '\r' && text[0] != '\n') {
        size_t letters = run_end(text, first.length, CharClass::kLetter);
        if (letters > first.length) {
            return letters;
        }
    }
    size_t start = text[0] == ' ' ? 1 : 0;
    size_t others = run_end(text, start, CharClass::kOther);
    if (others > start) {
        return std::min(text.find_first_not_of("\r\n", others), text.size());
    }
    size_t lines = line_ends(text);
    return lines > 0 ? lines : space_piece(text, Numbers::kRuns);
}

using enum PreTokenizer::WholePieces;

constexpr std::array<PreTokenizer, 13> kPreTokenizers = {{
    {"smollm", gpt2_piece<Numbers::kApart>, kMerged, false},
    {"starcoder", gpt2_piece<Numbers::kApart>, kMerged, false},
    {"refact", gpt2_piece<Numbers::kApart>, kMerged, false},
    {"command-r", gpt2_piece<Numbers::kApart>, kMerged, false},
    {"codeshell", gpt2_piece<Numbers::kApart>, kMerged, false},
    {"gpt-2", gpt2_piece<Numbers::kRuns>, kMerged, false},
    {"mpt", gpt2_piece<Numbers::kRuns>, kMerged, false},
    {"olmo", gpt2_piece<Numbers::kRuns>, kMerged, false},
    {"llama-bpe", llama3_piece<3>, kKept, true},
    {"llama3", llama3_piece<3>, kKept, true},
    {"llama-v3", llama3_piece<3>, kKept, true},
    {"qwen2", llama3_piece<1>, kMerged, false},
    {"deepseek-r1-qwen", llama3_piece<1>, kMerged, false},
}};

}  // namespace

const PreTokenizer* find_pre_tokenizer(std::string_view name) {
    for (const PreTokenizer& row : kPreTokenizers) {
        if (row.name == name) {
            return &row;
        }
    }
    return nullptr;
}

std::string pre_tokenizer_names() {
    std::string names;
    for (const PreTokenizer& row : kPreTokenizers) {
        if (!names.empty()) {
            names += ' ';
        }
        names += row.name;
    }
    return names;
}

}  // namespace ember::model
