// Tests of the driver: misses, hits, keys, in-place updates, what a call reports, and the levels of a target.
#include "ember/driver/driver.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "ember/text/parse.h"
#include "runtime/thread_pool.h"

namespace ember::driver {
namespace {

class DriverTest : public ::testing::Test {
protected:
    DriverTest() {
        folder_ = (std::filesystem::temp_directory_path() / "ember-driver-XXXXXX").string();
        EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    }
    ~DriverTest() override { std::filesystem::remove_all(folder_); }

    Options options() const {
        CacheOptions cache;
        cache.dir = folder_;
        Options options;
        options.cache = Cache::open(cache);
        return options;
    }

    std::string folder_;
};

ir::Module parse(std::string_view text) {
    auto module = text::parse(text, "test");
    EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.error().to_string());
    return std::move(module).value();
}

constexpr std::string_view kScale = R"(func @scale(%0: f32[n], shared %1: f32[n]) {
  %2 = mul(%0, %1) : f32[n]
  %3 = add(%1, %2) : f32[n]
  return %2, %3 -> %1
})";

struct Vector {
    std::vector<float> data;
    int64_t length;
    EmberTensor tensor{};

    explicit Vector(std::vector<float> values) : data(std::move(values)), length(static_cast<int64_t>(data.size())) {
        tensor = make_tensor(ir::DType::kF32, {&length, 1}, data.data());
    }
    Vector(const Vector&) = delete;
};

struct Outputs {
    std::array<std::vector<float>, 2> data;
    std::array<int64_t, 2> lengths{};
    std::array<EmberTensor, 2> tensors{};
    std::array<EmberTensor*, 2> pointers{};

    Outputs() {
        for (size_t k = 0; k < 2; ++k) {
            tensors[k].ndim = 1;
            tensors[k].shape = &lengths[k];
            pointers[k] = &tensors[k];
        }
    }
    static void* allocate(void* host, int32_t output, int64_t bytes) {
        auto& room = static_cast<Outputs*>(host)->data[static_cast<size_t>(output)];
        room.reserve(static_cast<size_t>(bytes) / sizeof(float) + 1);  // memory even for an empty output
        room.resize(static_cast<size_t>(bytes) / sizeof(float));
        return room.data();
    }
};

/// What a fresh process finds: 'h' hit, 'm' miss; and whether it loaded the compiler.
std::string in_fresh_process(const Options& options, std::string_view text) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        auto made = compile_or_load(parse(text), options);
        std::string answer = !made.ok() ? "error" : (*made)->origin().status == Outcome::kHit ? "hit" : "miss";
        answer += compiler_loaded() ? " with compiler" : "";
        ssize_t written = write(ends[1], answer.data(), answer.size());
        _exit(written == static_cast<ssize_t>(answer.size()) ? 0 : 1);
    }
    close(ends[1]);
    std::string answer(64, '\0');
    ssize_t size = read(ends[0], answer.data(), answer.size());
    close(ends[0]);
    waitpid(child, nullptr, 0);
    answer.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return answer;
}

TEST_F(DriverTest, AHitLoadsNoCompiler) {
    // The first test of this process: nothing has loaded the compiler yet, so its children start without one.
    ASSERT_FALSE(compiler_loaded());
    EXPECT_EQ(in_fresh_process(options(), kScale), "miss with compiler");
    EXPECT_EQ(in_fresh_process(options(), kScale), "hit");
}

TEST_F(DriverTest, SharedStateIsUpdatedInItsOwnMemory) {
    auto made = compile_or_load(parse(kScale), options());
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    EXPECT_EQ((*made)->in_place(0), -1);
    EXPECT_EQ((*made)->in_place(1), 1);
    Vector x({1, 2, 3});
    Vector w({10, 20, 30});
    const EmberTensor* inputs[] = {&x.tensor, &w.tensor};
    ASSERT_TRUE((*made)->check_inputs(inputs).ok());
    Outputs outputs;
    ASSERT_TRUE((*made)->call(inputs, outputs.pointers.data(), Outputs::allocate, &outputs).ok());
    EXPECT_EQ(outputs.data[0], (std::vector<float>{10, 40, 90}));
    EXPECT_EQ(outputs.lengths[0], 3);
    EXPECT_EQ(w.data, (std::vector<float>{20, 60, 120}));
}

TEST_F(DriverTest, ReductionsOfEverythingDoNotDependOnTheNumberOfThreads) {
    auto made = compile_or_load(parse(R"(func @f(%x: f32[n], %y: f32[n]) {
      %product = mul(%x, %y)
      %sum = reduce_sum(%product) {axes=[0]}
      %most = reduce_max(%x) {axes=[0]}
      %both = add(%sum, %most)
      %one = const() {value=1} : i64[]
      %all = reshape(%both, %one)
      return %all, %product
    })"),
                                options());
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    for (size_t length : {size_t{65537}, size_t{100003}, size_t{1000000}}) {
        std::vector<float> values(length);
        double wanted = 0;
        for (size_t i = 0; i < length; ++i) {
            values[i] = static_cast<float>((i * 7919) % 1000) * 0.37F - 150;
            wanted += static_cast<double>(values[i]) * values[i];
        }
        wanted += *std::max_element(values.begin(), values.end());
        Vector x(values);
        Vector y(values);
        const EmberTensor* inputs[] = {&x.tensor, &y.tensor};
        std::set<float> found;
        for (int threads : {1, 2, 3, 8}) {
            runtime::set_thread_count(threads);
            Outputs outputs;
            ASSERT_TRUE((*made)->call(inputs, outputs.pointers.data(), Outputs::allocate, &outputs).ok());
            found.insert(outputs.data[0].at(0));
            EXPECT_EQ(outputs.data[1].back(), values.back() * values.back());
        }
        runtime::set_thread_count(0);
        EXPECT_EQ(found.size(), 1);
        EXPECT_NEAR(*found.begin(), wanted, wanted * 1e-5);
    }
}

TEST_F(DriverTest, OneArtifactForEveryLength) {
    auto made = compile_or_load(parse(kScale), options());
    ASSERT_TRUE(made.ok());
    for (size_t length : {0, 1, 17, 100000}) {
        Vector x(std::vector<float>(length, 2));
        Vector w(std::vector<float>(length, 3));
        const EmberTensor* inputs[] = {&x.tensor, &w.tensor};
        Outputs outputs;
        ASSERT_TRUE((*made)->call(inputs, outputs.pointers.data(), Outputs::allocate, &outputs).ok());
        EXPECT_EQ(outputs.data[0], std::vector<float>(length, 6));
        EXPECT_EQ(w.data, std::vector<float>(length, 9));
    }
}

TEST_F(DriverTest, UnequalLengthsOfOneSymbolAreNamed) {
    auto made = compile_or_load(parse(kScale), options());
    ASSERT_TRUE(made.ok());
    Vector x({1, 2, 3});
    Vector w({1, 2});
    const EmberTensor* inputs[] = {&x.tensor, &w.tensor};
    Status status = (*made)->check_inputs(inputs);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kShape);
    EXPECT_NE(status.error().message.find("parameter 1"), std::string::npos);
}

TEST_F(DriverTest, KeyIsTheGraphNotItsNames) {
    auto key = [&](std::string_view text, Options o) { return key_document(parse(text), o)->key(); };
    Options plain = options();
    Key first = key(kScale, plain);
    EXPECT_EQ(first, key(R"(func @other(%a: f32[length], shared %w: f32[length]) {
  %p = mul(%a, %w) : f32[length]
  %q = add(%w, %p) : f32[length]
  return %p, %q -> %w
})",
                         plain));
    EXPECT_NE(first, key(R"(func @scale(%0: f32[n], shared %1: f32[n]) {
  %2 = mul(%0, %1) : f32[n]
  %3 = sub(%1, %2) : f32[n]
  return %2, %3 -> %1
})",
                         plain));
    Options other = options();
    other.disabled_passes = {"simplify"};
    EXPECT_NE(first, key(kScale, other));
}

TEST_F(DriverTest, FailedChecksSayWhat) {
    auto made = compile_or_load(parse(R"(func @f(%0: f32[n], %1: f32[m]) {
  %2 = add(%0, %1) : f32[n]
  return %2
})"),
                                options());
    ASSERT_TRUE(made.ok()) << made.error().to_string();
    Vector x({1, 2, 3});
    Vector y({1, 2});
    const EmberTensor* inputs[] = {&x.tensor, &y.tensor};
    Outputs outputs;
    Status status = (*made)->call(inputs, outputs.pointers.data(), Outputs::allocate, &outputs);
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kShape);
    EXPECT_NE(status.error().message.find("add"), std::string::npos);
    EXPECT_NE(status.error().message.find("3"), std::string::npos);
    EXPECT_NE(status.error().message.find("2"), std::string::npos);
}

TEST(Target, TheBestLevelThatTheHostCovers) {
#if defined(__x86_64__)
    std::vector<std::string> none;
    EXPECT_EQ(make_target("host", none)->cpu, "x86-64");
    std::vector<std::string> features = make_target("x86-64-v3", none)->features;
    EXPECT_EQ(make_target("host", features)->cpu, "x86-64-v3");
    EXPECT_FALSE(make_target("z80", none).ok());
#endif
}

}  // namespace
}  // namespace ember::driver
