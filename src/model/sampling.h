// Chooses the next token from logits. Greedy at temperature 0 (ties go to the lowest id); otherwise, in this order:
// repetition penalty, top-k, top-p, min-p, temperature, draw. The same seed and logits give the same tokens on every
// platform. Tests: test/unit/sampling_test.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "ember/support/result.h"

namespace ember::model {

struct SamplingOptions {
    float temperature = 0.0f;
    int32_t top_k = 0;                // keep the k likeliest; 0: all
    float top_p = 1.0f;               // keep the likeliest whose probabilities reach p; 1: all
    float min_p = 0.0f;               // keep what has at least this share of the likeliest's probability; 0: all
    float repetition_penalty = 1.0f;  // > 1: logits of recent tokens are divided by it (multiplied where negative)
    uint64_t seed = 0;
};

/// PCG32 (O'Neill 2014, XSH-RR 64/32): small, and the same everywhere.
class Pcg32 {
public:
    explicit Pcg32(uint64_t seed);
    uint32_t next();
    /// Uniform in [0, 1), 53 bits.
    double next_double();

private:
    uint64_t state_ = 0;
};

class Sampler {
public:
    /// Errors: an option out of its range.
    static Result<Sampler> make(const SamplingOptions& options);

    /// `recent`: the tokens that the repetition penalty falls on. Errors: no logits, NaN or +infinity among them, none
    /// finite.
    Result<int32_t> sample(std::span<const float> logits, std::span<const int32_t> recent = {});

private:
    struct Candidate {
        float logit;
        int32_t id;
    };

    explicit Sampler(const SamplingOptions& options) : options_(options), random_(options.seed) {}
    static bool likelier(const Candidate& a, const Candidate& b);
    void set_candidates(std::span<const float> logits, std::span<const int32_t> recent);
    void keep_top_k();
    void keep_top_p(float highest);
    void keep_min_p(float highest);
    int32_t draw(float highest);

    SamplingOptions options_;
    Pcg32 random_;
    std::vector<Candidate> candidates_;  // kept between calls to save the allocation
};

/// The id of the highest logit, the lowest of equals; the same errors.
Result<int32_t> sample_greedy(std::span<const float> logits);

}  // namespace ember::model
