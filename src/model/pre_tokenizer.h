// Cuts text into the pieces that BPE merges within. A pre-tokenizer is a regular expression in the model's own
// description; each one is matched here by hand, in one pass and in linear time. Tests: test/unit/tokenizer_test.cpp.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ember::model {

struct PreTokenizer {
    std::string_view name;  // as tokenizer.ggml.pre has it
    /// Length in bytes of the first piece of a text that is not empty; at least 1. No expression looks behind, so the
    /// next piece is the first one of the rest.
    size_t (*first_piece)(std::string_view text);
    /// Whether a piece that is itself a token stays whole, whatever the merges say.
    enum class WholePieces { kMerged, kKept } whole_pieces;
    /// Whether prompts start with bos where the file does not say.
    bool adds_bos;
};

/// Null where there is none of that name.
const PreTokenizer* find_pre_tokenizer(std::string_view name);
/// All names, for messages.
std::string pre_tokenizer_names();

}  // namespace ember::model
