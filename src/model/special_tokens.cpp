// Search for special tokens in a sorted array.
#include "model/special_tokens.h"

#include <algorithm>

namespace ember::model {

SpecialTokens::SpecialTokens(std::vector<Token> tokens) : tokens_(std::move(tokens)) {
    std::sort(tokens_.begin(), tokens_.end(), [](const Token& a, const Token& b) {
        int by_text = a.text.compare(b.text);
        return by_text != 0 ? by_text < 0 : a.id < b.id;
    });
    auto equal = [](const Token& a, const Token& b) { return a.text == b.text; };
    tokens_.erase(std::unique(tokens_.begin(), tokens_.end(), equal), tokens_.end());
    for (const Token& token : tokens_) {
        first_bytes_.set(static_cast<uint8_t>(token.text[0]));
    }
}

std::optional<SpecialTokens::Match> SpecialTokens::find(std::string_view text, size_t from) const {
    for (size_t start = from; start < text.size(); ++start) {
        if (first_bytes_[static_cast<uint8_t>(text[start])]) {
            if (auto match = longest_at(text, start)) {
                return match;
            }
        }
    }
    return std::nullopt;
}

std::optional<SpecialTokens::Match> SpecialTokens::longest_at(std::string_view text, size_t start) const {
    std::optional<Match> longest;
    auto first = tokens_.begin(), last = tokens_.end();  // those that agree with the text up to `depth`
    for (size_t depth = 0; first != last && start + depth < text.size(); ++depth) {
        // Tokens of length `depth` sort first in the range and have been reported already.
        auto byte_at = [depth](const Token& token) {
            return depth < token.text.size() ? static_cast<uint8_t>(token.text[depth]) : -1;
        };
        int wanted = static_cast<uint8_t>(text[start + depth]);
        first = std::partition_point(first, last, [&](const Token& token) { return byte_at(token) < wanted; });
        last = std::partition_point(first, last, [&](const Token& token) { return byte_at(token) == wanted; });
        if (first != last && first->text.size() == depth + 1) {
            longest = Match{start, depth + 1, first->id};
        }
    }
    return longest;
}

std::optional<int32_t> SpecialTokens::find_exact(std::string_view name) const {
    auto at = std::lower_bound(tokens_.begin(), tokens_.end(), name,
                               [](const Token& token, std::string_view wanted) { return token.text < wanted; });
    return at != tokens_.end() && at->text == name ? std::optional(at->id) : std::nullopt;
}

}  // namespace ember::model
