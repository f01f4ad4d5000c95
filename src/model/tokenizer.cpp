// The tokenizer of a GGUF file: special tokens, pre-tokenizer and merging put together.
#include "model/tokenizer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <mutex>

#include "model/bpe.h"
#include "model/pre_tokenizer.h"
#include "model/special_tokens.h"
#include "model/unicode.h"
#include "model/vocabulary.h"

namespace ember::model {

namespace {

constexpr size_t kMaxTextBytes = size_t{1} << 30;  // symbols are numbered and spelled (two bytes a byte) in 32 bits
constexpr size_t kMaxSpecialTokenBytes = 256;      // each is compared at every place of a text
constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

/// Control tokens that end a turn or a document, in the vocabularies we know.
constexpr std::array<std::string_view, 8> kEndNames = {
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>", "<end_of_turn>", "<|end|>", "</s>"};

class BpeTokenizer final : public Tokenizer {
public:
    static Result<std::shared_ptr<const Tokenizer>> make(std::shared_ptr<const GgufFile> file);

    Result<std::vector<int32_t>> encode(std::string_view text, ControlTokens control) const override;
    Result<std::string> decode(std::span<const int32_t> ids, ShowControl control) const override;

    int64_t vocabulary_size() const override { return static_cast<int64_t>(tokens_.size()); }
    std::optional<int32_t> find_control(std::string_view name) const override { return control_.find_exact(name); }
    bool is_control(int32_t id) const override { return in_vocabulary(id) && is_control_[static_cast<size_t>(id)]; }
    bool ends_generation(int32_t id) const override { return std::find(ends_.begin(), ends_.end(), id) != ends_.end(); }
    std::optional<int32_t> bos() const override { return bos_; }
    std::optional<int32_t> eos() const override { return eos_; }
    bool adds_bos() const override { return adds_bos_; }

private:
    explicit BpeTokenizer(std::shared_ptr<const GgufFile> file) : file_(std::move(file)) {}

    Status read_pre_tokenizer();
    Status read_tokens();
    Status read_merges();
    Status read_special_ids();
    Result<std::optional<int32_t>> read_id(std::string_view key) const;
    bool in_vocabulary(int32_t id) const { return id >= 0 && static_cast<size_t>(id) < tokens_.size(); }
    const BpeTables& tables() const;
    void encode_plain(std::string_view text, BpeEncoder& encoder, std::vector<int32_t>& ids) const;

    std::shared_ptr<const GgufFile> file_;
    const PreTokenizer* pre_tokenizer_ = nullptr;
    std::vector<std::string_view> tokens_;
    std::vector<bool> is_control_;
    std::vector<bool> is_literal_;  // text stands for itself: control and user-defined tokens
    std::optional<GgufArray> merges_;
    SpecialTokens control_;       // by name
    SpecialTokens user_defined_;  // found in any text
    SpecialTokens all_special_;   // found in text whose control tokens count
    std::optional<int32_t> bos_, eos_;
    std::vector<int32_t> ends_;
    bool adds_bos_ = false;

    mutable std::once_flag tables_once_;
    mutable std::unique_ptr<const BpeTables> tables_;
};

Result<std::shared_ptr<const Tokenizer>> BpeTokenizer::make(std::shared_ptr<const GgufFile> file) {
    std::shared_ptr<BpeTokenizer> tokenizer(new BpeTokenizer(std::move(file)));
    EMBER_CHECKED(tokenizer->read_pre_tokenizer());
    EMBER_CHECKED(tokenizer->read_tokens());
    EMBER_CHECKED(tokenizer->read_merges());
    EMBER_CHECKED(tokenizer->read_special_ids());
    return std::shared_ptr<const Tokenizer>(std::move(tokenizer));
}

Status BpeTokenizer::read_pre_tokenizer() {
    EMBER_TRY(std::string_view kind, file_->get_string("tokenizer.ggml.model"));
    if (kind != "gpt2") {
        return file_->error_at("tokenizer.ggml.model", Code::kUnsupported,
                               "tokenizer " + quote(kind) + " is not supported: expected 'gpt2' (byte-level BPE)");
    }
    EMBER_TRY(std::string_view name, file_->get_string("tokenizer.ggml.pre"));
    pre_tokenizer_ = find_pre_tokenizer(name);
    if (!pre_tokenizer_) {
        return file_->error_at(
            "tokenizer.ggml.pre", Code::kUnsupported,
            "pre-tokenizer " + quote(name) + " is not supported: expected one of " + pre_tokenizer_names());
    }
    EMBER_TRY(adds_bos_, file_->get_bool_or("tokenizer.ggml.add_bos_token", pre_tokenizer_->adds_bos));
    return {};
}

/// Chat markers are control tokens, also where a converter took them for user-defined ones.
TokenType read_token_type(std::string_view text, int64_t number) {
    auto type = static_cast<TokenType>(number);
    bool marker = text.starts_with("<|") && text.ends_with("|>");
    return type == TokenType::kUserDefined && marker ? TokenType::kControl : type;
}

Status BpeTokenizer::read_tokens() {
    EMBER_TRY(Vocabulary vocabulary, read_vocabulary(*file_));
    tokens_.reserve(vocabulary.tokens.size());
    for (GgufValue token : vocabulary.tokens) {
        tokens_.push_back(*token.as_string());
    }
    is_control_.resize(tokens_.size());
    is_literal_.resize(tokens_.size());
    std::vector<SpecialTokens::Token> control, user_defined, all;
    if (vocabulary.types) {
        int32_t id = 0;
        for (GgufValue value : *vocabulary.types) {
            std::string_view text = tokens_[static_cast<size_t>(id)];
            TokenType type = read_token_type(text, *value.as_integer());
            bool special = type == TokenType::kControl || type == TokenType::kUserDefined;
            if (special && (text.empty() || text.size() > kMaxSpecialTokenBytes)) {
                return file_->error_at("tokenizer.ggml.tokens", Code::kParse,
                                       "special token " + std::to_string(id) + " has " + std::to_string(text.size()) +
                                           " bytes: expected 1 to " + std::to_string(kMaxSpecialTokenBytes));
            }
            if (special) {
                is_control_[static_cast<size_t>(id)] = type == TokenType::kControl;
                is_literal_[static_cast<size_t>(id)] = true;
                (type == TokenType::kControl ? control : user_defined).push_back({text, id});
                all.push_back({text, id});
            }
            ++id;
        }
    }
    control_ = SpecialTokens(std::move(control));
    user_defined_ = SpecialTokens(std::move(user_defined));
    all_special_ = SpecialTokens(std::move(all));
    return {};
}

Status BpeTokenizer::read_merges() {
    EMBER_TRY(merges_, file_->get_array("tokenizer.ggml.merges", ValueType::kString));
    if (merges_->size() >= UINT32_MAX) {
        return file_->error_at("tokenizer.ggml.merges", Code::kParse, "expected fewer than 4294967295 merges");
    }
    return {};
}

Result<std::optional<int32_t>> BpeTokenizer::read_id(std::string_view key) const {
    EMBER_TRY(int64_t id, file_->get_integer_or(key, -1));  // read_vocabulary() has checked the range
    return id < 0 ? std::nullopt : std::optional(static_cast<int32_t>(id));
}

Status BpeTokenizer::read_special_ids() {
    EMBER_TRY(bos_, read_id("tokenizer.ggml.bos_token_id"));
    EMBER_TRY(eos_, read_id("tokenizer.ggml.eos_token_id"));
    EMBER_TRY(auto eot, read_id("tokenizer.ggml.eot_token_id"));
    EMBER_TRY(auto eom, read_id("tokenizer.ggml.eom_token_id"));
    for (std::optional<int32_t> id : {eos_, eot, eom}) {
        if (id) {
            ends_.push_back(*id);
        }
    }
    for (std::string_view name : kEndNames) {
        if (auto id = find_control(name)) {
            ends_.push_back(*id);
        }
    }
    return {};
}

const BpeTables& BpeTokenizer::tables() const {
    std::call_once(tables_once_, [this] {
        std::vector<std::string_view> merges;
        merges.reserve(merges_->size());
        for (GgufValue merge : *merges_) {
            merges.push_back(*merge.as_string());
        }
        // Ids do not depend on the seed; a file's author must not know it.
        auto now = std::chrono::steady_clock::now().time_since_epoch().count();
        uint64_t seed = static_cast<uint64_t>(now) ^ reinterpret_cast<uintptr_t>(this);
        tables_ = std::make_unique<const BpeTables>(tokens_, merges, seed);
    });
    return *tables_;
}

void BpeTokenizer::encode_plain(std::string_view text, BpeEncoder& encoder, std::vector<int32_t>& ids) const {
    bool keep_whole = pre_tokenizer_->whole_pieces == PreTokenizer::WholePieces::kKept;
    while (!text.empty()) {
        std::string_view piece = text.substr(0, pre_tokenizer_->first_piece(text));
        if (!keep_whole || !encoder.encode_whole(piece, ids)) {
            encoder.encode(piece, ids);
        }
        text.remove_prefix(piece.size());
    }
}

Result<std::vector<int32_t>> BpeTokenizer::encode(std::string_view text, ControlTokens control) const {
    if (text.size() > kMaxTextBytes) {
        return error(Code::kInvalidArgument, "the text has " + std::to_string(text.size()) +
                                                 " bytes: expected at most " + std::to_string(kMaxTextBytes));
    }
    const SpecialTokens& special = control == ControlTokens::kParse ? all_special_ : user_defined_;
    BpeEncoder encoder(tables());
    std::vector<int32_t> ids;
    size_t at = 0;
    while (auto match = special.find(text, at)) {
        encode_plain(text.substr(at, match->start - at), encoder, ids);
        ids.push_back(match->id);
        at = match->start + match->length;
    }
    encode_plain(text.substr(at), encoder, ids);
    return ids;
}

Result<std::string> BpeTokenizer::decode(std::span<const int32_t> ids, ShowControl control) const {
    std::string text;
    for (int32_t id : ids) {
        if (!in_vocabulary(id)) {
            return error(Code::kIndex, "token " + std::to_string(id) + " is outside of the vocabulary of " +
                                           std::to_string(tokens_.size()));
        }
        std::string_view token = tokens_[static_cast<size_t>(id)];
        if (!is_literal_[static_cast<size_t>(id)]) {
            append_symbol_bytes(token, text);
        } else if (!is_control(id) || control == ShowControl::kShow) {
            text += token;
        }
    }
    return text;
}

/// Moves all that is certain from the front of `bytes` to `out`; what may still become a character stays.
void take_certain(std::string& bytes, std::string& out) {
    size_t at = 0;
    while (at < bytes.size()) {
        Utf8Char next = read_utf8(std::string_view(bytes).substr(at));
        if (next.state == Utf8Char::State::kUnfinished) {
            break;
        }
        out += next.state == Utf8Char::State::kValid ? std::string_view(bytes).substr(at, next.length) : kReplacement;
        at += next.length;
    }
    bytes.erase(0, at);
}

}  // namespace

Result<std::shared_ptr<const Tokenizer>> make_tokenizer(std::shared_ptr<const GgufFile> file) {
    return BpeTokenizer::make(std::move(file));
}

Result<std::string> StreamDecoder::push(int32_t id) {
    EMBER_TRY(std::string bytes, tokenizer_->decode({&id, 1}, control_));
    waiting_ += bytes;
    std::string text;
    take_certain(waiting_, text);
    return text;
}

std::string StreamDecoder::finish() {
    bool unfinished = !waiting_.empty();
    waiting_.clear();
    return unfinished ? std::string(kReplacement) : std::string();
}

std::string to_valid_utf8(std::string_view bytes) {
    std::string waiting(bytes), text;
    take_certain(waiting, text);
    return waiting.empty() ? text : text + std::string(kReplacement);
}

}  // namespace ember::model
