// Finds tokens that are written out in a text: the longest one that starts at the earliest place. The set is a sorted
// array walked like a trie, so the time a place costs does not grow with the number of tokens.
// Tests: test/unit/tokenizer_test.cpp.
#pragma once

#include <bitset>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace ember::model {

class SpecialTokens {
public:
    struct Token {
        std::string_view text;  // not empty
        int32_t id;
    };
    struct Match {
        size_t start, length;
        int32_t id;
    };

    SpecialTokens() = default;
    /// The first of equal tokens counts.
    explicit SpecialTokens(std::vector<Token> tokens);

    /// The first match at or after `from`.
    std::optional<Match> find(std::string_view text, size_t from) const;
    std::optional<int32_t> find_exact(std::string_view name) const;

private:
    std::optional<Match> longest_at(std::string_view text, size_t start) const;

    std::vector<Token> tokens_;  // by text
    std::bitset<256> first_bytes_;
};

}  // namespace ember::model
