// Byte-level BPE as GGUF carries it (tokenizer.ggml.model = gpt2): text is cut into pieces by the pre-tokenizer that
// tokenizer.ggml.pre names, each piece's bytes are merged in order of merge rank, leftmost first. Merging is O(n log n)
// in a piece's length, so a megabyte of one letter is as good as any other text. Bytes need not be UTF-8: what is not
// valid is kept as it is. Immutable once made; every function may be called from several threads at once.
// Tests: test/unit/tokenizer_test.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ember/support/result.h"
#include "model/gguf.h"

namespace ember::model {

/// Whether control tokens that are written out in a text ("<|im_end|>") count as such or are plain text. Text from
/// users is plain text. (Tokens that a vocabulary marks as user-defined are found either way.)
enum class ControlTokens { kAsText, kParse };

/// Whether decoding shows control tokens by their names or leaves them out.
enum class ShowControl { kHide, kShow };

class Tokenizer {
public:
    virtual ~Tokenizer() = default;

    virtual Result<std::vector<int32_t>> encode(std::string_view text, ControlTokens control) const = 0;

    /// The exact bytes; not necessarily UTF-8 (see StreamDecoder). An id outside the vocabulary is an error.
    virtual Result<std::string> decode(std::span<const int32_t> ids, ShowControl control) const = 0;

    virtual int64_t vocabulary_size() const = 0;
    /// A token's id by its name in the file ("<|im_end|>"), for control tokens only.
    virtual std::optional<int32_t> find_control(std::string_view name) const = 0;
    virtual bool is_control(int32_t id) const = 0;
    /// Whether generation stops after this token: the file's eos and eot, and control tokens known to end a turn.
    virtual bool ends_generation(int32_t id) const = 0;

    virtual std::optional<int32_t> bos() const = 0;
    virtual std::optional<int32_t> eos() const = 0;
    /// Whether the file asks for bos in front of every prompt (encode() never adds it).
    virtual bool adds_bos() const = 0;
};

/// Needs no more than the views into the file; the hash tables are built by the first encode(). Errors: another kind of
/// tokenizer, an unknown pre-tokenizer, a vocabulary that is missing or contradicts itself.
Result<std::shared_ptr<const Tokenizer>> make_tokenizer(std::shared_ptr<const GgufFile> file);

/// Turns a stream of tokens into text that is valid UTF-8 at every step: bytes of an unfinished character wait for the
/// next token, bytes that can never be a character become U+FFFD.
class StreamDecoder {
public:
    explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, ShowControl control = ShowControl::kHide)
        : tokenizer_(std::move(tokenizer)), control_(control) {}

    Result<std::string> push(int32_t id);
    /// What still waits, as U+FFFD.
    std::string finish();

private:
    std::shared_ptr<const Tokenizer> tokenizer_;
    ShowControl control_;
    std::string waiting_;
};

/// `bytes` with every maximal part that is not UTF-8 replaced by U+FFFD, as Unicode recommends.
std::string to_valid_utf8(std::string_view bytes);

}  // namespace ember::model
