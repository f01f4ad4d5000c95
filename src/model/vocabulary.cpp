// Checks the arrays and the special token ids of a vocabulary.
#include "model/vocabulary.h"

#include <string>

namespace ember::model {

namespace {

Result<GgufArray> read_tokens(const GgufFile& file) {
    constexpr std::string_view kKey = "tokenizer.ggml.tokens";
    EMBER_TRY(GgufArray tokens, file.get_array(kKey, ValueType::kString));
    if (tokens.empty() || tokens.size() > INT32_MAX) {
        return file.error_at(kKey, Code::kParse,
                             "tokenizer.ggml.tokens has " + std::to_string(tokens.size()) + " tokens: expected 1 to " +
                                 std::to_string(INT32_MAX));
    }
    return tokens;
}

Result<std::optional<GgufArray>> read_types(const GgufFile& file, uint64_t count) {
    constexpr std::string_view kKey = "tokenizer.ggml.token_type";
    if (!file.find_entry(kKey)) {
        return std::optional<GgufArray>();
    }
    EMBER_TRY(GgufArray types, file.get_array(kKey, ValueType::kI32));
    if (types.size() != count) {
        return file.error_at(kKey, Code::kParse,
                             "tokenizer.ggml.token_type has " + std::to_string(types.size()) + " elements: expected " +
                                 std::to_string(count) + ", one a token");
    }
    return std::optional(types);
}

/// Every tokenizer.ggml.*_token_id, known to us or not, must be a token.
Status check_special_tokens(const GgufFile& file, uint64_t count) {
    for (const GgufEntry& entry : file.entries()) {
        if (!entry.key.starts_with("tokenizer.ggml.") || !entry.key.ends_with("_token_id")) {
            continue;
        }
        EMBER_TRY(int64_t id, file.get_integer(entry.key));
        if (id < 0 || static_cast<uint64_t>(id) >= count) {
            return file.error_at(entry.key, Code::kParse,
                                 quote(entry.key) + " is " + std::to_string(id) +
                                     ": expected a token of the vocabulary, 0 to " + std::to_string(count - 1));
        }
    }
    return {};
}

}  // namespace

Result<Vocabulary> read_vocabulary(const GgufFile& file) {
    EMBER_TRY(GgufArray tokens, read_tokens(file));
    EMBER_TRY(auto types, read_types(file, tokens.size()));
    EMBER_CHECKED(check_special_tokens(file, tokens.size()));
    return Vocabulary{tokens, types};
}

}  // namespace ember::model
