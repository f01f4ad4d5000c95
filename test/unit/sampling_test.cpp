// Each filter on logits whose probabilities are known, and the generator against the values of its authors.
#include "model/sampling.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <set>

namespace ember::model {
namespace {

constexpr float kInfinity = INFINITY;

/// Logits of these probabilities.
std::vector<float> logits_of(const std::vector<double>& probabilities) {
    std::vector<float> logits;
    for (double p : probabilities) {
        logits.push_back(static_cast<float>(std::log(p)));
    }
    return logits;
}

/// How often each token is drawn.
std::vector<int> draws(SamplingOptions options, const std::vector<float>& logits, int count = 4000) {
    Sampler sampler = Sampler::make(options).value();
    std::vector<int> counts(logits.size());
    for (int i = 0; i < count; ++i) {
        ++counts[static_cast<size_t>(sampler.sample(logits).value())];
    }
    return counts;
}

std::set<int32_t> kept(SamplingOptions options, const std::vector<float>& logits) {
    std::set<int32_t> ids;
    std::vector<int> counts = draws(options, logits);
    for (size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] > 0) {
            ids.insert(static_cast<int32_t>(i));
        }
    }
    return ids;
}

using Set = std::set<int32_t>;

TEST(Sampling, GreedyTakesTheHighestAndTheLowestIdOfEquals) {
    EXPECT_EQ(sample_greedy(std::vector<float>{1, 3, 2}).value(), 1);
    EXPECT_EQ(sample_greedy(std::vector<float>{1, 3, 3}).value(), 1);
    EXPECT_EQ(sample_greedy(std::vector<float>{-kInfinity, -5, -kInfinity}).value(), 1);
    EXPECT_EQ(sample_greedy(std::vector<float>{0.0f, -0.0f}).value(), 0);
    EXPECT_EQ(sample_greedy(std::vector<float>{-0.0f, 0.0f}).value(), 0);
    EXPECT_EQ(Sampler::make({}).value().sample(std::vector<float>{1, 3, 3}).value(), 1);
}

TEST(Sampling, BadLogitsAreErrors) {
    std::vector<float> nan = {1, NAN, 2}, infinite = {kInfinity, 1}, masked = {-kInfinity, -kInfinity}, none;
    for (float temperature : {0.0f, 1.0f}) {
        Sampler sampler = Sampler::make({.temperature = temperature}).value();
        EXPECT_EQ(sampler.sample(nan).error().message, "the logit of token 1 is NaN: expected a number");
        EXPECT_EQ(sampler.sample(infinite).error().message, "the logit of token 0 is +infinity: expected a number");
        EXPECT_EQ(sampler.sample(masked).error().message, "every logit is -infinity");
        EXPECT_EQ(sampler.sample(none).error().message, "there are no logits to choose from");
    }
}

TEST(Sampling, BadOptionsAreErrors) {
    std::vector<SamplingOptions> bad = {{.temperature = -1},
                                        {.temperature = NAN},
                                        {.temperature = kInfinity},
                                        {.top_k = -1},
                                        {.top_p = 0},
                                        {.top_p = 1.5f},
                                        {.top_p = NAN},
                                        {.min_p = -0.1f},
                                        {.min_p = 2},
                                        {.repetition_penalty = 0},
                                        {.repetition_penalty = NAN}};
    for (const SamplingOptions& options : bad) {
        auto sampler = Sampler::make(options);
        ASSERT_FALSE(sampler.ok());
        EXPECT_EQ(sampler.error().code, Code::kInvalidArgument);
        EXPECT_NE(sampler.error().message.find(": expected "), std::string::npos);
    }
}

TEST(Sampling, DrawsByProbability) {
    std::vector<int> counts = draws({.temperature = 1, .seed = 5}, logits_of({0.5, 0.3, 0.2}), 20000);
    EXPECT_NEAR(counts[0], 10000, 400);
    EXPECT_NEAR(counts[1], 6000, 400);
    EXPECT_NEAR(counts[2], 4000, 400);
}

TEST(Sampling, TemperatureSharpensAndFlattens) {
    // At temperature 0.5 probabilities are squared: 0.64 / 0.68.
    std::vector<int> sharp = draws({.temperature = 0.5f, .seed = 5}, logits_of({0.8, 0.2}), 20000);
    EXPECT_NEAR(sharp[0], 20000 * 0.64 / 0.68, 400);
    std::vector<int> flat = draws({.temperature = 1e6f, .seed = 5}, logits_of({0.99, 0.01}), 20000);
    EXPECT_NEAR(flat[0], 10000, 400);
    EXPECT_EQ(kept({.temperature = 1e-30f}, {1.0f, 1.0001f}), Set({1}));
}

TEST(Sampling, TopK) {
    std::vector<float> logits = logits_of({0.1, 0.4, 0.2, 0.3});
    EXPECT_EQ(kept({.temperature = 1, .top_k = 1}, logits), Set({1}));
    EXPECT_EQ(kept({.temperature = 1, .top_k = 2}, logits), Set({1, 3}));
    EXPECT_EQ(kept({.temperature = 1, .top_k = 9}, logits), Set({0, 1, 2, 3}));
    EXPECT_EQ(kept({.temperature = 1, .top_k = 2}, {1, 1, 1}), Set({0, 1}));  // of equals, the lowest ids
}

TEST(Sampling, TopPKeepsTheFirstThatReachIt) {
    std::vector<float> logits = logits_of({0.1, 0.4, 0.2, 0.3});
    EXPECT_EQ(kept({.temperature = 1, .top_p = 0.01f}, logits), Set({1}));
    EXPECT_EQ(kept({.temperature = 1, .top_p = 0.69f}, logits), Set({1, 3}));
    EXPECT_EQ(kept({.temperature = 1, .top_p = 0.71f}, logits), Set({1, 2, 3}));
    EXPECT_EQ(kept({.temperature = 1, .top_p = 1.0f}, logits), Set({0, 1, 2, 3}));
}

TEST(Sampling, MinP) {
    std::vector<float> logits = logits_of({0.1, 0.4, 0.2, 0.3});
    EXPECT_EQ(kept({.temperature = 1, .min_p = 0.6f}, logits), Set({1, 3}));
    EXPECT_EQ(kept({.temperature = 1, .min_p = 0.45f}, logits), Set({1, 2, 3}));
    EXPECT_EQ(kept({.temperature = 1, .min_p = 1.0f}, logits), Set({1}));
}

TEST(Sampling, RepetitionPenaltyFallsOnceOnRecentTokens) {
    std::vector<float> logits = {3.0f, 2.0f, -1.0f, -1.2f};
    std::vector<int32_t> recent = {0, 0, 2, 99, -1};
    Sampler sampler = Sampler::make({.repetition_penalty = 1.4f}).value();
    EXPECT_EQ(sampler.sample(logits, recent).value(), 0);  // 3 / 1.4 is above 2: twice would be below
    sampler = Sampler::make({.repetition_penalty = 1.6f}).value();
    EXPECT_EQ(sampler.sample(logits, recent).value(), 1);
    std::vector<float> negative = {-5.0f, -5.0f, -1.0f, -1.2f};
    EXPECT_EQ(sampler.sample(negative, recent).value(), 3);
}

TEST(Sampling, MaskedTokensAreNeverDrawn) {
    std::vector<float> logits = {-kInfinity, 0, -kInfinity, 0};
    for (SamplingOptions options : {SamplingOptions{.temperature = 1},
                                    {.temperature = 1, .top_k = 3},
                                    {.temperature = 1, .top_p = 0.999f},
                                    {.temperature = 100, .min_p = 0.01f}}) {
        EXPECT_EQ(kept(options, logits), Set({1, 3}));
    }
}

TEST(Sampling, TheSameSeedGivesTheSameTokens) {
    std::vector<float> logits;
    for (int i = 0; i < 1000; ++i) {
        logits.push_back(static_cast<float>(i * 7919 % 1000) / 200.0f);
    }
    auto sequence = [&](uint64_t seed) {
        Sampler sampler = Sampler::make({.temperature = 0.8f, .top_k = 200, .top_p = 0.95f, .seed = seed}).value();
        std::vector<int32_t> ids;
        for (int i = 0; i < 8; ++i) {
            ids.push_back(sampler.sample(logits).value());
        }
        return ids;
    };
    EXPECT_EQ(sequence(1), sequence(1));
    EXPECT_NE(sequence(1), sequence(2));
    EXPECT_EQ(sequence(42), (std::vector<int32_t>{878, 939, 891, 446, 544, 347, 963, 792}));
}

TEST(Pcg32, IsItsAuthorsGenerator) {
    // pcg32_srandom_r(seed, stream) of the reference with seed 42 and the default stream, computed from its definition.
    Pcg32 random(42);
    uint64_t state = 0, increment = 1442695040888963407u;
    auto step = [&] { state = state * 6364136223846793005u + increment; };
    step();
    state += 42;
    step();
    for (int i = 0; i < 100; ++i) {
        auto shifted = static_cast<uint32_t>(((state >> 18) ^ state) >> 27);
        auto turn = static_cast<uint32_t>(state >> 59);
        ASSERT_EQ(random.next(), std::rotr(shifted, static_cast<int>(turn)));
        step();
    }
    for (int i = 0; i < 1000; ++i) {
        double value = random.next_double();
        ASSERT_TRUE(value >= 0 && value < 1);
    }
}

}  // namespace
}  // namespace ember::model
