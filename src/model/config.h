// The hyperparameters and weights of a llama-family model in a GGUF file, checked against each other: once
// read_llama_config() has succeeded, every tensor that the graph needs is there with the shape the config implies, and
// the vocabulary's special tokens are in range. A file with tensors or settings that would change the result and that
// we do not implement is refused rather than computed wrongly. Tests: test/unit/gguf_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ember/support/result.h"
#include "model/gguf.h"

namespace ember::model {

/// Weights of one block; matrices have shape [out, in], norms and biases [out] f32. Null: the file has no such bias.
struct LlamaLayer {
    const GgufTensor* attn_norm = nullptr;    // [embedding]
    const GgufTensor* attn_q = nullptr;       // [head_count * head_dim, embedding]
    const GgufTensor* attn_k = nullptr;       // [head_count_kv * head_dim, embedding]
    const GgufTensor* attn_v = nullptr;       // [head_count_kv * head_dim, embedding]
    const GgufTensor* attn_output = nullptr;  // [embedding, head_count * head_dim]
    const GgufTensor* attn_q_bias = nullptr;  // optional
    const GgufTensor* attn_k_bias = nullptr;  // optional
    const GgufTensor* attn_v_bias = nullptr;  // optional
    const GgufTensor* ffn_norm = nullptr;     // [embedding]
    const GgufTensor* ffn_gate = nullptr;     // [feed_forward, embedding]
    const GgufTensor* ffn_up = nullptr;       // [feed_forward, embedding]
    const GgufTensor* ffn_down = nullptr;     // [embedding, feed_forward]
};

/// Pointers are into the GgufFile it was read from, and valid as long as that lives.
struct LlamaConfig {
    std::string architecture;  // "llama"
    int64_t block_count = 0;
    int64_t context_length = 0;
    int64_t embedding_length = 0;
    int64_t feed_forward_length = 0;
    int64_t head_count = 0;
    int64_t head_count_kv = 0;
    int64_t head_dim = 0;
    int64_t vocabulary_size = 0;
    int64_t rope_dimension_count = 0;  // the first so many of head_dim are rotated, in adjacent pairs (2i, 2i+1)
    float rope_freq_base = 10000.0f;
    float rope_scale = 1.0f;  // positions are multiplied by it (linear scaling)
    float rms_epsilon = 0.0f;
    bool tied_output = false;  // output == token_embd

    const GgufTensor* token_embd = nullptr;   // [vocabulary, embedding]
    const GgufTensor* output_norm = nullptr;  // [embedding]
    const GgufTensor* output = nullptr;       // [vocabulary, embedding]
    const GgufTensor* rope_freqs = nullptr;   // optional [rope_dimension_count / 2] f32: angles are divided by it
    std::vector<LlamaLayer> layers;
};

Result<LlamaConfig> read_llama_config(const GgufFile& file);

}  // namespace ember::model
