// The vocabulary's part of a GGUF file, checked: what config.cpp and tokenizer.cpp both rely on.
// Tests: test/unit/gguf_test.cpp.
#pragma once

#include <cstdint>
#include <optional>

#include "ember/support/result.h"
#include "model/gguf.h"

namespace ember::model {

/// What a token is; the numbers are GGUF's own.
enum class TokenType : int32_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };

struct Vocabulary {
    GgufArray tokens;                // of strings, at least one
    std::optional<GgufArray> types;  // of i32, one a token
};

/// Errors: no tokens, token types of another element type or number, a tokenizer.ggml.*_token_id that is no token.
Result<Vocabulary> read_vocabulary(const GgufFile& file);

}  // namespace ember::model
