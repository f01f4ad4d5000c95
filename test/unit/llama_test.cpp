// Tests of the llama graph and its sessions on a tiny model that is made here.
#include "model/llama.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "unit/tiny_gguf.h"

namespace ember::model {
namespace {

class LlamaTest : public ::testing::Test {
protected:
    LlamaTest() : bytes_(tiny_llama().bytes()) {
        folder_ = (std::filesystem::temp_directory_path() / "ember-llama-XXXXXX").string();
        EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    }
    ~LlamaTest() override { std::filesystem::remove_all(folder_); }

    std::unique_ptr<LlamaSession> session(int64_t context = 0) {
        CacheOptions cache;
        cache.dir = folder_;
        LlamaSession::Options options;
        options.context = context;
        options.driver.cache = Cache::open(cache);
        auto file = read_gguf(std::as_bytes(std::span<const char>(bytes_)), "tiny");
        EXPECT_TRUE(file.ok());
        auto made = LlamaSession::make(*file, options);
        EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
        return made.ok() ? std::move(*made) : nullptr;
    }

    std::string bytes_;
    std::string folder_;
};

const std::vector<int32_t> kTokens = {1, 20, 3, 44, 5, 44, 7, 9};

TEST_F(LlamaTest, PromptAtOnceEqualsTokenByToken) {
    auto at_once = session();
    auto one_by_one = session();
    ASSERT_TRUE(at_once != nullptr && one_by_one != nullptr);
    auto whole = at_once->evaluate(kTokens);
    ASSERT_TRUE(whole.ok()) << whole.error().to_string();
    std::vector<float> expected(whole->begin(), whole->end());
    std::span<const float> last;
    for (int32_t token : kTokens) {
        auto step = one_by_one->evaluate(std::span<const int32_t>(&token, 1));
        ASSERT_TRUE(step.ok());
        last = *step;
    }
    ASSERT_EQ(last.size(), expected.size());
    float largest = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_TRUE(std::isfinite(expected[i]));
        EXPECT_NEAR(last[i], expected[i], 1e-4) << i;
        largest = std::max(largest, std::fabs(expected[i]));
    }
    EXPECT_GT(largest, 0) << "logits that are all zero prove nothing";
    EXPECT_EQ(at_once->position(), static_cast<int64_t>(kTokens.size()));
}

TEST_F(LlamaTest, EarlierTokensMatterAndAResetForgetsThem) {
    auto s = session();
    ASSERT_NE(s, nullptr);
    auto evaluate = [&](std::vector<int32_t> tokens) {
        s->reset();
        auto logits = s->evaluate(tokens);
        EXPECT_TRUE(logits.ok());
        return std::vector<float>(logits->begin(), logits->end());
    };
    std::vector<float> first = evaluate({1, 2, 3});
    EXPECT_NE(first, evaluate({2, 2, 3}));
    EXPECT_EQ(first, evaluate({1, 2, 3}));
}

TEST_F(LlamaTest, SecondSessionHits) {
    ASSERT_NE(session(), nullptr);
    auto again = session();
    ASSERT_NE(again, nullptr);
    for (const driver::Origin& origin : again->origins()) {
        EXPECT_EQ(origin.status, Outcome::kHit);
        EXPECT_EQ(origin.llvm_modules, 0);
    }
}

TEST_F(LlamaTest, BadCallsAreNamed) {
    auto s = session(4);
    ASSERT_NE(s, nullptr);
    auto message = [&](std::vector<int32_t> tokens) {
        auto logits = s->evaluate(tokens);
        return logits.ok() ? std::string() : logits.error().message;
    };
    EXPECT_NE(message({}).find("no tokens"), std::string::npos);
    EXPECT_NE(message({1 << 30}).find("vocabulary"), std::string::npos);
    EXPECT_NE(message({1, 2, 3, 4, 5}).find("context of 4"), std::string::npos);
    EXPECT_EQ(message({1, 2, 3, 4}), "");
    EXPECT_NE(message({1}).find("context of 4"), std::string::npos);
}

}  // namespace
}  // namespace ember::model
