// The llama architecture as an Ember graph, and a session that runs it: weights stay in the file's own types and
// memory, matrices in packed form as well, the KV cache is shared state that is updated in place. Two compiled
// functions: one for prompts of any length, one for a single token. Tests: test/unit/llama_test.cpp,
// test/python/test_golden.py.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ember/driver/driver.h"
#include "ember/ir/graph.h"
#include "ember/support/result.h"
#include "model/config.h"
#include "runtime/packed.h"

namespace ember::model {

/// What a graph is built for.
struct LlamaGraphOptions {
    int64_t tokens = -1;   // tokens a call, -1: any number
    int64_t context = -1;  // positions in the cache, -1: any number; 0: no cache, logits of every position
    bool f32_weights = false;
};

/// The graph and the data its bound parameters take, in order. Parameters: tokens i32[t]; with a cache also the
/// position of the first one, i64[], and a k and v cache f16[head_count_kv, context, head_dim] a block; then the
/// weights. Outputs: logits f32[vocabulary] of the last token (without a cache: f32[t, vocabulary]), then the updated
/// caches.
struct LlamaGraph {
    ir::Module module;
    std::vector<const GgufTensor*>
        weights;  // null: the table of inverse rope frequencies, f32[rope_dimension_count / 2]
    std::vector<float> inverse_frequencies;
};

LlamaGraph make_llama_graph(const LlamaConfig& config, const LlamaGraphOptions& options);

/// A model with its compiled functions and one sequence's state. Not thread-safe.
class LlamaSession {
public:
    struct Options {
        int64_t context = 0;  // positions to make room for; 0: what the model was trained with
        /// A first call of few tokens goes before packing, and gives its logits sooner; the same tokens later give
        /// logits that differ by rounding.
        bool pack_after_first_call = false;
        driver::Options driver;
    };

    static Result<std::unique_ptr<LlamaSession>> make(std::shared_ptr<const GgufFile> file, const Options& options);

    /// Appends tokens to the sequence; the logits [vocabulary] of the last one, valid until the next call.
    /// Errors: no tokens, a token outside the vocabulary, more positions than the context has.
    Result<std::span<const float>> evaluate(std::span<const int32_t> tokens);
    /// Forgets the sequence.
    void reset() { position_ = 0; }

    int64_t position() const { return position_; }
    int64_t context() const { return context_; }
    const LlamaConfig& config() const { return config_; }
    /// Of the functions compiled or loaded so far.
    std::vector<driver::Origin> origins() const;
    int64_t cache_bytes() const;

private:
    LlamaSession() = default;
    Status pack_weights_if_worthwhile(size_t tokens);
    Status call(const driver::Executable& function, std::span<const int32_t> tokens);

    std::shared_ptr<const GgufFile> file_;
    LlamaConfig config_;
    int64_t context_ = 0;
    bool pack_after_first_call_ = false;
    int64_t position_ = 0;
    std::vector<float> inverse_frequencies_;
    std::vector<const GgufTensor*> weights_;
    std::shared_ptr<const driver::Executable> prefill_;
    std::shared_ptr<const driver::Executable> decode_;
    std::unique_ptr<runtime::PackedWeights> packed_;
    struct Memory;
    std::shared_ptr<Memory> memory_;
};

}  // namespace ember::model
