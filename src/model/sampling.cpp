// Filters and the draw. Sums run in a fixed order, so results do not depend on the platform.
#include "model/sampling.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace ember::model {

namespace {

Diagnostic fail_option(std::string_view name, double value, std::string_view expected) {
    return error(Code::kInvalidArgument,
                 std::string(name) + " is " + std::to_string(value) + ": expected " + std::string(expected));
}

Status check_options(const SamplingOptions& options) {
    // Written so that NaN fails too.
    if (!(options.temperature >= 0 && std::isfinite(options.temperature))) {
        return fail_option("temperature", options.temperature, "a finite number of at least 0");
    }
    if (options.top_k < 0) {
        return fail_option("top_k", options.top_k, "0 (all) or more");
    }
    if (!(options.top_p > 0 && options.top_p <= 1)) {
        return fail_option("top_p", options.top_p, "a number above 0, at most 1");
    }
    if (!(options.min_p >= 0 && options.min_p <= 1)) {
        return fail_option("min_p", options.min_p, "a number from 0 to 1");
    }
    if (!(options.repetition_penalty > 0 && std::isfinite(options.repetition_penalty))) {
        return fail_option("repetition_penalty", options.repetition_penalty, "a finite number above 0");
    }
    return {};
}

/// The index of the highest logit, the lowest of equals.
Result<int32_t> find_highest(std::span<const float> logits) {
    int32_t highest = -1;
    for (size_t i = 0; i < logits.size(); ++i) {
        float logit = logits[i];
        if (!(logit < INFINITY)) {
            return error(Code::kInvalidArgument, "the logit of token " + std::to_string(i) + " is " +
                                                     (std::isnan(logit) ? "NaN" : "+infinity") + ": expected a number");
        }
        if (logit > (highest < 0 ? -INFINITY : logits[static_cast<size_t>(highest)])) {
            highest = static_cast<int32_t>(i);
        }
    }
    if (highest < 0) {
        return error(Code::kInvalidArgument,
                     logits.empty() ? "there are no logits to choose from" : "every logit is -infinity");
    }
    return highest;
}

}  // namespace

Pcg32::Pcg32(uint64_t seed) {
    next();
    state_ += seed;
    next();
}

uint32_t Pcg32::next() {
    uint64_t old = state_;
    state_ = old * 6364136223846793005u + 1442695040888963407u;
    auto shifted = static_cast<uint32_t>(((old >> 18) ^ old) >> 27);
    auto turn = static_cast<uint32_t>(old >> 59);
    return shifted >> turn | shifted << (-turn & 31);
}

double Pcg32::next_double() {
    uint64_t high = next() >> 5, low = next() >> 6;  // 27 and 26 bits
    return static_cast<double>(high << 26 | low) * 0x1p-53;
}

Result<Sampler> Sampler::make(const SamplingOptions& options) {
    EMBER_CHECKED(check_options(options));
    return Sampler(options);
}

Result<int32_t> Sampler::sample(std::span<const float> logits, std::span<const int32_t> recent) {
    EMBER_TRY(int32_t highest_id, find_highest(logits));
    bool penalised = options_.repetition_penalty != 1.0f && !recent.empty();
    if (options_.temperature == 0 && !penalised) {
        return highest_id;
    }
    set_candidates(logits, recent);
    if (options_.temperature == 0) {
        return std::min_element(candidates_.begin(), candidates_.end(), likelier)->id;
    }
    keep_top_k();
    float highest = std::min_element(candidates_.begin(), candidates_.end(), likelier)->logit;
    keep_top_p(highest);
    keep_min_p(highest);
    return draw(highest);
}

/// A total order, so that what is kept does not depend on how it was found.
bool Sampler::likelier(const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

void Sampler::set_candidates(std::span<const float> logits, std::span<const int32_t> recent) {
    candidates_.resize(logits.size());
    for (size_t i = 0; i < logits.size(); ++i) {
        candidates_[i] = {logits[i], static_cast<int32_t>(i)};
    }
    if (options_.repetition_penalty == 1.0f) {
        return;
    }
    for (int32_t id : recent) {
        if (id < 0 || static_cast<size_t>(id) >= logits.size()) {
            continue;
        }
        float logit = logits[static_cast<size_t>(id)];  // from the original: a token is penalised once
        candidates_[static_cast<size_t>(id)].logit =
            logit > 0 ? logit / options_.repetition_penalty : logit * options_.repetition_penalty;
    }
}

void Sampler::keep_top_k() {
    auto k = static_cast<size_t>(options_.top_k);
    if (k == 0 || k >= candidates_.size()) {
        return;
    }
    std::nth_element(candidates_.begin(), candidates_.begin() + options_.top_k, candidates_.end(), likelier);
    candidates_.resize(k);
    std::sort(candidates_.begin(), candidates_.end(),
              [](const Candidate& a, const Candidate& b) { return a.id < b.id; });
}

/// A heap gives the likeliest one by one: few are needed of many.
void Sampler::keep_top_p(float highest) {
    if (options_.top_p == 1.0f) {
        return;
    }
    double total = 0;
    for (const Candidate& candidate : candidates_) {
        total += std::exp(static_cast<double>(candidate.logit) - highest);
    }
    auto less_likely = [](const Candidate& a, const Candidate& b) { return likelier(b, a); };
    std::make_heap(candidates_.begin(), candidates_.end(), less_likely);
    auto end = candidates_.end();
    double reached = 0;
    while (end != candidates_.begin() && reached < options_.top_p * total) {
        std::pop_heap(candidates_.begin(), end, less_likely);
        --end;
        reached += std::exp(static_cast<double>(end->logit) - highest);
    }
    candidates_.erase(candidates_.begin(), end);
    std::reverse(candidates_.begin(), candidates_.end());
}

void Sampler::keep_min_p(float highest) {
    if (options_.min_p == 0.0f) {
        return;
    }
    double least = static_cast<double>(highest) + std::log(static_cast<double>(options_.min_p));
    std::erase_if(candidates_, [&](const Candidate& candidate) { return candidate.logit < least; });
}

int32_t Sampler::draw(float highest) {
    auto weight = [&](const Candidate& candidate) {
        return std::exp((static_cast<double>(candidate.logit) - highest) / options_.temperature);
    };
    double total = 0;
    for (const Candidate& candidate : candidates_) {
        total += weight(candidate);
    }
    double left = random_.next_double() * total;
    int32_t last = candidates_.front().id;  // rounding may leave a rest after the last one that can be drawn
    for (const Candidate& candidate : candidates_) {
        double share = weight(candidate);
        if (share > 0) {
            last = candidate.id;
            if (left < share) {
                return last;
            }
        }
        left -= share;
    }
    return last;
}

Result<int32_t> sample_greedy(std::span<const float> logits) {
    return find_highest(logits);
}

}  // namespace ember::model
