// Reads and checks the configuration of llama-family models; the tensors of a block are rows of a table.
#include "model/config.h"

#include <array>
#include <cmath>
#include <set>
#include <string_view>

#include "model/vocabulary.h"

namespace ember::model {

namespace {

constexpr int64_t kMaxPosition = (int64_t{1} << 31) - 1;

enum class Presence { kRequired, kOptional };

/// A tensor of a block, named "blk.N." + name.
struct LayerTensor {
    std::string_view name;
    const GgufTensor* LlamaLayer::* member;
    int64_t (*rows)(const LlamaConfig&);     // null: a vector
    int64_t (*columns)(const LlamaConfig&);  // contiguous
    Presence presence;
};

int64_t embedding(const LlamaConfig& c) {
    return c.embedding_length;
}
int64_t feed_forward(const LlamaConfig& c) {
    return c.feed_forward_length;
}
int64_t query(const LlamaConfig& c) {
    return c.head_count * c.head_dim;
}
int64_t key(const LlamaConfig& c) {
    return c.head_count_kv * c.head_dim;
}

constexpr auto kRequired = Presence::kRequired;
constexpr auto kOptional = Presence::kOptional;

constexpr std::array<LayerTensor, 12> kLayerTensors = {{
    {"attn_norm.weight", &LlamaLayer::attn_norm, nullptr, embedding, kRequired},
    {"attn_q.weight", &LlamaLayer::attn_q, query, embedding, kRequired},
    {"attn_k.weight", &LlamaLayer::attn_k, key, embedding, kRequired},
    {"attn_v.weight", &LlamaLayer::attn_v, key, embedding, kRequired},
    {"attn_output.weight", &LlamaLayer::attn_output, embedding, query, kRequired},
    {"attn_q.bias", &LlamaLayer::attn_q_bias, nullptr, query, kOptional},
    {"attn_k.bias", &LlamaLayer::attn_k_bias, nullptr, key, kOptional},
    {"attn_v.bias", &LlamaLayer::attn_v_bias, nullptr, key, kOptional},
    {"ffn_norm.weight", &LlamaLayer::ffn_norm, nullptr, embedding, kRequired},
    {"ffn_gate.weight", &LlamaLayer::ffn_gate, feed_forward, embedding, kRequired},
    {"ffn_up.weight", &LlamaLayer::ffn_up, feed_forward, embedding, kRequired},
    {"ffn_down.weight", &LlamaLayer::ffn_down, embedding, feed_forward, kRequired},
}};

std::string shape_text(const std::vector<int64_t>& shape) {
    std::string text = "[";
    for (size_t i = 0; i < shape.size(); ++i) {
        text += (i ? ", " : "") + std::to_string(shape[i]);
    }
    return text + "]";
}

/// Reads one file's configuration; each step relies on the ones before it.
class ConfigReader {
public:
    explicit ConfigReader(const GgufFile& file) : file_(file) {}

    Result<LlamaConfig> read() {
        EMBER_CHECKED(read_architecture());
        EMBER_CHECKED(read_sizes());
        EMBER_CHECKED(read_heads());
        EMBER_CHECKED(read_rope());
        EMBER_CHECKED(read_epsilon());
        EMBER_CHECKED(refuse_variants());
        EMBER_CHECKED(read_vocabulary_size());
        EMBER_CHECKED(find_outer_tensors());
        EMBER_CHECKED(find_layers());
        EMBER_CHECKED(refuse_unknown_tensors());
        return std::move(config_);
    }

private:
    std::string key_of(std::string_view name) const { return config_.architecture + "." + std::string(name); }

    Diagnostic fail(const std::string& key, int64_t found, const std::string& expected) const {
        return file_.error_at(key, Code::kParse, key + " is " + std::to_string(found) + ": expected " + expected);
    }

    /// An integer in [least, most].
    Result<int64_t> read_count(const std::string& key, int64_t least, int64_t most) const {
        EMBER_TRY(int64_t count, file_.get_integer(key));
        if (count < least || count > most) {
            return fail(key, count, std::to_string(least) + " to " + std::to_string(most));
        }
        return count;
    }
    Result<int64_t> read_count_or(const std::string& key, int64_t least, int64_t most, int64_t otherwise) const {
        return file_.find_entry(key) ? read_count(key, least, most) : Result<int64_t>(otherwise);
    }

    Result<float> check_positive(const std::string& key, double value) const {
        if (!(value > 0) || !std::isfinite(static_cast<float>(value))) {
            return file_.error_at(key, Code::kParse,
                                  key + " is " + std::to_string(value) + ": expected a finite number above 0");
        }
        return static_cast<float>(value);
    }

    Status read_architecture() {
        EMBER_TRY(std::string_view name, file_.get_string("general.architecture"));
        if (name != "llama") {
            return file_.error_at("general.architecture", Code::kUnsupported,
                                  "architecture " + quote(name) + " is not supported: expected 'llama'");
        }
        config_.architecture = name;
        return {};
    }

    /// No size may exceed what the file could hold a row of; a block has at least nine tensors.
    Status read_sizes() {
        auto most = static_cast<int64_t>(file_.size());
        auto most_blocks = static_cast<int64_t>(file_.tensors().size() / 9);
        std::string blocks = key_of("block_count");
        EMBER_TRY(config_.block_count, file_.get_integer(blocks));
        if (config_.block_count < 1 || config_.block_count > most_blocks) {
            return fail(blocks, config_.block_count,
                        "1 to " + std::to_string(most_blocks) + ", as the file has " +
                            std::to_string(file_.tensors().size()) + " tensors");
        }
        EMBER_TRY(config_.context_length, read_count(key_of("context_length"), 1, kMaxPosition));
        EMBER_TRY(config_.embedding_length, read_count(key_of("embedding_length"), 1, most));
        EMBER_TRY(config_.feed_forward_length, read_count(key_of("feed_forward_length"), 1, most));
        return {};
    }

    Status read_heads() {
        std::string heads = key_of("attention.head_count"), kv_heads = key_of("attention.head_count_kv");
        EMBER_TRY(config_.head_count, read_count(heads, 1, config_.embedding_length));
        EMBER_TRY(config_.head_count_kv, read_count_or(kv_heads, 1, config_.head_count, config_.head_count));
        if (config_.head_count % config_.head_count_kv != 0) {
            return fail(kv_heads, config_.head_count_kv,
                        "a divisor of the " + std::to_string(config_.head_count) + " heads of " + heads);
        }
        std::string key_length = key_of("attention.key_length");
        if (!file_.find_entry(key_length) && config_.embedding_length % config_.head_count != 0) {
            return fail(heads, config_.head_count,
                        "a divisor of " + key_of("embedding_length") + ", which is " +
                            std::to_string(config_.embedding_length));
        }
        EMBER_TRY(config_.head_dim,
                  read_count_or(key_length, 1, static_cast<int64_t>(file_.size()) / config_.head_count,
                                config_.embedding_length / config_.head_count));
        std::string value_length = key_of("attention.value_length");
        EMBER_TRY(int64_t value_dim, file_.get_integer_or(value_length, config_.head_dim));
        if (value_dim != config_.head_dim) {
            return fail(value_length, value_dim, std::to_string(config_.head_dim) + ", the length of the keys");
        }
        return {};
    }

    Status read_rope() {
        std::string dimensions = key_of("rope.dimension_count"), base = key_of("rope.freq_base");
        EMBER_TRY(config_.rope_dimension_count, read_count_or(dimensions, 1, config_.head_dim, config_.head_dim));
        if (config_.rope_dimension_count % 2 != 0) {
            return fail(dimensions, config_.rope_dimension_count, "an even number, as pairs are rotated");
        }
        EMBER_TRY(double freq_base, file_.get_float_or(base, 10000.0));
        EMBER_TRY(config_.rope_freq_base, check_positive(base, freq_base));
        return read_rope_scaling();
    }

    Status read_rope_scaling() {
        std::string type = key_of("rope.scaling.type"), factor = key_of("rope.scaling.factor");
        std::string old_factor = key_of("rope.scale_linear");
        EMBER_TRY(std::string_view kind, file_.get_string_or(type, file_.find_entry(old_factor) ? "linear" : "none"));
        if (kind == "none") {
            return {};
        }
        if (kind != "linear") {
            return file_.error_at(type, Code::kUnsupported,
                                  type + " is " + quote(kind) + ": expected 'none' or 'linear'");
        }
        const std::string& used = file_.find_entry(factor) ? factor : old_factor;
        EMBER_TRY(double by, file_.get_float(used));
        EMBER_TRY(float checked, check_positive(used, by));
        config_.rope_scale = 1.0f / checked;
        return {};
    }

    Status read_epsilon() {
        std::string key = key_of("attention.layer_norm_rms_epsilon");
        EMBER_TRY(double epsilon, file_.get_float(key));
        EMBER_TRY(config_.rms_epsilon, check_positive(key, epsilon));
        return {};
    }

    /// Settings that change the result and that our graph does not have, wherever they are not neutral.
    Status refuse_variants() const {
        EMBER_TRY(int64_t experts, file_.get_integer_or(key_of("expert_count"), 0));
        EMBER_TRY(int64_t window, file_.get_integer_or(key_of("attention.sliding_window"), 0));
        EMBER_TRY(double logit_scale, file_.get_float_or(key_of("logit_scale"), 1.0));
        EMBER_TRY(double embedding_scale, file_.get_float_or(key_of("embedding_scale"), 1.0));
        EMBER_TRY(double residual_scale, file_.get_float_or(key_of("residual_scale"), 1.0));
        EMBER_TRY(double attention_scale, file_.get_float_or(key_of("attention.scale"), 0.0));
        struct Variant {
            std::string_view name;
            bool used;
        };
        for (Variant variant : {Variant{"expert_count", experts != 0},
                                {"attention.sliding_window", window != 0 && window < config_.context_length},
                                {"logit_scale", logit_scale != 1.0},
                                {"embedding_scale", embedding_scale != 1.0},
                                {"residual_scale", residual_scale != 1.0},
                                {"attention.scale", attention_scale != 0.0}}) {
            if (variant.used) {
                return file_.error_at(key_of(variant.name), Code::kUnsupported,
                                      key_of(variant.name) + " is set: models with it are not supported");
            }
        }
        return {};
    }

    Status read_vocabulary_size() {
        EMBER_TRY(Vocabulary vocabulary, read_vocabulary(file_));
        config_.vocabulary_size = static_cast<int64_t>(vocabulary.tokens.size());
        std::string key = key_of("vocab_size");
        EMBER_TRY(int64_t declared, file_.get_integer_or(key, config_.vocabulary_size));
        if (declared != config_.vocabulary_size) {
            return fail(key, declared, std::to_string(config_.vocabulary_size) + ", the number of tokens in the file");
        }
        return {};
    }

    Result<const GgufTensor*> find(const std::string& name, std::vector<int64_t> shape, Presence presence) {
        const GgufTensor* tensor = file_.find_tensor(name);
        if (!tensor) {
            return presence == kOptional
                       ? Result<const GgufTensor*>(nullptr)
                       : error(Code::kParse,
                               "tensor " + quote(name) + " is missing: expected one of shape " + shape_text(shape),
                               file_.path());
        }
        known_.insert(tensor->name);
        if (tensor->shape != shape) {
            return file_.error_at_tensor(*tensor, Code::kShape,
                                         "tensor " + quote(name) + " has shape " + shape_text(tensor->shape) +
                                             ": expected " + shape_text(shape));
        }
        if (shape.size() == 1 && tensor->type != TensorType::kF32) {
            return file_.error_at_tensor(*tensor, Code::kType,
                                         "tensor " + quote(name) + " is of type " +
                                             std::string(tensor_type_info(tensor->type).name) + ": expected f32");
        }
        return tensor;
    }

    Status find_outer_tensors() {
        std::vector<int64_t> table = {config_.vocabulary_size, config_.embedding_length};
        EMBER_TRY(config_.token_embd, find("token_embd.weight", table, kRequired));
        EMBER_TRY(config_.output_norm, find("output_norm.weight", {config_.embedding_length}, kRequired));
        EMBER_TRY(config_.output, find("output.weight", table, kOptional));
        EMBER_TRY(config_.rope_freqs, find("rope_freqs.weight", {config_.rope_dimension_count / 2}, kOptional));
        config_.tied_output = config_.output == nullptr;
        if (config_.tied_output) {
            config_.output = config_.token_embd;
        }
        return {};
    }

    Status find_layers() {
        config_.layers.resize(static_cast<size_t>(config_.block_count));
        for (size_t i = 0; i < config_.layers.size(); ++i) {
            for (const LayerTensor& row : kLayerTensors) {
                std::vector<int64_t> shape;
                if (row.rows) {
                    shape.push_back(row.rows(config_));
                }
                shape.push_back(row.columns(config_));
                EMBER_TRY(config_.layers[i].*row.member,
                          find("blk." + std::to_string(i) + "." + std::string(row.name), shape, row.presence));
            }
        }
        return {};
    }

    /// A tensor that we would leave out is a model that we would compute wrongly.
    Status refuse_unknown_tensors() const {
        for (const GgufTensor& tensor : file_.tensors()) {
            if (!known_.contains(tensor.name)) {
                return file_.error_at_tensor(tensor, Code::kUnsupported,
                                             "tensor " + quote(tensor.name) + " has no place in a '" +
                                                 config_.architecture + "' model of " +
                                                 std::to_string(config_.block_count) + " blocks");
            }
        }
        return {};
    }

    const GgufFile& file_;
    LlamaConfig config_;
    std::set<std::string_view> known_;
};

}  // namespace

Result<LlamaConfig> read_llama_config(const GgufFile& file) {
    return ConfigReader(file).read();
}

}  // namespace ember::model
