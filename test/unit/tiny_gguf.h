// Builds small GGUF files at run time, so that tests carry none: a writer for any metadata and tensors, and a model
// (tiny_llama) of a few kilobytes that is complete and valid. Everything is a plain value that a test may change before
// it calls bytes(): that is how it damages a file in one place.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "model/gguf.h"

namespace ember::model {

template <class T>
std::string raw(T value) {
    std::string bytes(sizeof(T), '\0');
    std::memcpy(bytes.data(), &value, sizeof(T));
    return bytes;
}

/// A string of the format: its length and its bytes.
inline std::string gguf_string(std::string_view text) {
    return raw(uint64_t{text.size()}) + std::string(text);
}

struct TinyGguf {
    struct Entry {
        std::string key;
        uint32_t type;
        std::string value;  // as it stands in the file
    };
    struct Tensor {
        std::string name;
        std::vector<uint64_t> dims;
        uint32_t type = 0;
        std::string data;
        uint64_t offset = UINT64_MAX;  // right after the tensor before it
    };

    uint32_t version = 3;
    uint64_t alignment = 32;
    uint64_t tensor_count = UINT64_MAX;  // as many as there are
    uint64_t entry_count = UINT64_MAX;
    std::vector<Entry> entries;
    std::vector<Tensor> tensors;

    void set(std::string key, ValueType type, std::string value) {
        for (Entry& entry : entries) {
            if (entry.key == key) {
                entry = {std::move(key), static_cast<uint32_t>(type), std::move(value)};
                return;
            }
        }
        entries.push_back({std::move(key), static_cast<uint32_t>(type), std::move(value)});
    }
    void set_u32(std::string key, uint32_t value) { set(std::move(key), ValueType::kU32, raw(value)); }
    void set_f32(std::string key, float value) { set(std::move(key), ValueType::kF32, raw(value)); }
    void set_bool(std::string key, bool value) { set(std::move(key), ValueType::kBool, raw(uint8_t{value})); }
    void set_string(std::string key, std::string_view text) {
        set(std::move(key), ValueType::kString, gguf_string(text));
    }
    void set_strings(std::string key, const std::vector<std::string>& texts) {
        std::string value = raw(uint32_t{8}) + raw(uint64_t{texts.size()});
        for (const std::string& text : texts) {
            value += gguf_string(text);
        }
        set(std::move(key), ValueType::kArray, value);
    }
    void set_i32s(std::string key, const std::vector<int32_t>& numbers) {
        std::string value = raw(uint32_t{5}) + raw(uint64_t{numbers.size()});
        for (int32_t number : numbers) {
            value += raw(number);
        }
        set(std::move(key), ValueType::kArray, value);
    }
    void remove(std::string_view key) {
        std::erase_if(entries, [&](const Entry& entry) { return entry.key == key; });
    }
    Tensor& tensor(std::string_view name) {
        for (Tensor& tensor : tensors) {
            if (tensor.name == name) {
                return tensor;
            }
        }
        tensors.push_back({std::string(name), {}, 0, {}});
        return tensors.back();
    }
    /// An f32 tensor of small numbers.
    void add_f32(std::string_view name, std::vector<uint64_t> dims) {
        uint64_t count = 1;
        for (uint64_t dim : dims) {
            count *= dim;
        }
        Tensor& added = tensor(name);
        added.dims = std::move(dims);
        added.data.clear();
        for (uint64_t i = 0; i < count; ++i) {
            added.data += raw(static_cast<float>((i * 37 + tensors.size()) % 101) / 500.0f - 0.1f);
        }
    }

    /// The file's head: everything in front of the data, padding included.
    std::string head() const {
        std::string out = "GGUF" + raw(version);
        out += raw(tensor_count == UINT64_MAX ? uint64_t{tensors.size()} : tensor_count);
        out += raw(entry_count == UINT64_MAX ? uint64_t{entries.size()} : entry_count);
        for (const Entry& entry : entries) {
            out += gguf_string(entry.key) + raw(entry.type) + entry.value;
        }
        uint64_t at = 0;
        for (const Tensor& tensor : tensors) {
            out += gguf_string(tensor.name) + raw(static_cast<uint32_t>(tensor.dims.size()));
            for (uint64_t dim : tensor.dims) {
                out += raw(dim);
            }
            out += raw(tensor.type) + raw(tensor.offset == UINT64_MAX ? at : tensor.offset);
            at += padded(tensor.data.size());
        }
        out.resize(padded(out.size()));
        return out;
    }

    std::string bytes() const {
        std::string out = head();
        for (const Tensor& tensor : tensors) {
            out += tensor.data;
            out.resize(out.size() + padded(tensor.data.size()) - tensor.data.size());
        }
        return out;
    }

private:
    uint64_t padded(uint64_t size) const { return (size + alignment - 1) / alignment * alignment; }
};

/// GPT-2's printable stand-in for a byte, as vocabularies spell it.
inline std::string spelled_byte(uint8_t byte) {
    bool printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
    int code = byte;
    if (!printable) {
        code = 256;
        for (int b = 0; b < byte; ++b) {
            bool other = (b >= 0x21 && b <= 0x7e) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
            code += other ? 0 : 1;
        }
    }
    if (code < 0x80) {
        return std::string(1, static_cast<char>(code));
    }
    return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))};
}

/// A complete llama model: one block, embedding 32, 2 heads over 1, feed-forward 64. Its vocabulary is three control
/// tokens, the 256 bytes (token 3 + b is byte b) and what `merges` make.
inline TinyGguf tiny_llama(const std::vector<std::string>& merges = {"h e", "l l", "he ll", "\xc4\xa0 t"}) {
    constexpr uint64_t kEmbedding = 32, kFeedForward = 64, kKey = 16;
    TinyGguf file;
    std::vector<std::string> tokens = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};
    for (int byte = 0; byte < 256; ++byte) {
        tokens.push_back(spelled_byte(static_cast<uint8_t>(byte)));
    }
    for (std::string merge : merges) {
        std::erase(merge, ' ');
        tokens.push_back(merge);
    }
    std::vector<int32_t> types(tokens.size(), 1);
    types[0] = types[1] = types[2] = 3;
    file.set_string("general.architecture", "llama");
    file.set_string("general.name", "tiny");
    file.set_u32("llama.block_count", 1);
    file.set_u32("llama.context_length", 128);
    file.set_u32("llama.embedding_length", kEmbedding);
    file.set_u32("llama.feed_forward_length", kFeedForward);
    file.set_u32("llama.attention.head_count", 2);
    file.set_u32("llama.attention.head_count_kv", 1);
    file.set_f32("llama.rope.freq_base", 10000.0f);
    file.set_f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
    file.set_u32("llama.vocab_size", static_cast<uint32_t>(tokens.size()));
    file.set_string("tokenizer.ggml.model", "gpt2");
    file.set_string("tokenizer.ggml.pre", "smollm");
    file.set_strings("tokenizer.ggml.tokens", tokens);
    file.set_i32s("tokenizer.ggml.token_type", types);
    file.set_strings("tokenizer.ggml.merges", merges);
    file.set_u32("tokenizer.ggml.bos_token_id", 1);
    file.set_u32("tokenizer.ggml.eos_token_id", 2);
    file.add_f32("token_embd.weight", {kEmbedding, tokens.size()});
    file.add_f32("output_norm.weight", {kEmbedding});
    file.add_f32("blk.0.attn_norm.weight", {kEmbedding});
    file.add_f32("blk.0.attn_q.weight", {kEmbedding, kEmbedding});
    file.add_f32("blk.0.attn_k.weight", {kEmbedding, kKey});
    file.add_f32("blk.0.attn_v.weight", {kEmbedding, kKey});
    file.add_f32("blk.0.attn_output.weight", {kEmbedding, kEmbedding});
    file.add_f32("blk.0.ffn_norm.weight", {kEmbedding});
    file.add_f32("blk.0.ffn_gate.weight", {kEmbedding, kFeedForward});
    file.add_f32("blk.0.ffn_up.weight", {kEmbedding, kFeedForward});
    file.add_f32("blk.0.ffn_down.weight", {kFeedForward, kEmbedding});
    return file;
}

}  // namespace ember::model
