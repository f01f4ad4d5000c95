// Tests of code generation: levels of the instruction set agree in their results, use the vectors that they have, and
// the same module gives the same bytes. What each file test of kind `run` compiles is not repeated here.
#include "ember/codegen/codegen.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "ember/driver/driver.h"
#include "ember/lower/lower.h"
#include "ember/rewrite/passes.h"
#include "ember/text/parse.h"

namespace ember::codegen {
namespace {

struct Program {
    const char* name;
    const char* text;
    float tolerance;  // relative; sums are taken in another order, functions in other vectors
};

/// Each takes f32[n,m] and gives one f32 output of the same size or smaller.
constexpr Program kPrograms[] = {
    {"map", R"(func @map(%0: f32[n,m]) {
  %1 = mul(%0, %0) : f32[n,m]
  %2 = sub(%1, %0) : f32[n,m]
  return %2
})",
     1e-6F},
    {"math", R"(func @math(%0: f32[n,m]) {
  %1 = exp(%0) : f32[n,m]
  %2 = tanh(%0) : f32[n,m]
  %3 = add(%1, %2) : f32[n,m]
  %4 = erf(%0) : f32[n,m]
  %5 = add(%3, %4) : f32[n,m]
  return %5
})",
     1e-5F},
    {"sum", R"(func @sum(%0: f32[n,m]) {
  %1 = reduce_sum(%0) {axes=[1]} : f32[n]
  return %1
})",
     1e-5F},
    {"columns", R"(func @columns(%0: f32[n,m]) {
  %1 = reduce_max(%0) {axes=[0]} : f32[m]
  return %1
})",
     0},
    {"running", R"(func @running(%0: f32[n,m]) {
  %1 = cumsum(%0) {axis=1} : f32[n,m]
  return %1
})",
     1e-5F},
    {"transposed", R"(func @transposed(%0: f32[n,m]) {
  %1 = transpose(%0) {perm=[1,0]} : f32[m,n]
  %2 = neg(%1) : f32[m,n]
  return %2
})",
     0},
    {"half", R"(func @half(%0: f32[n,m]) {
  %1 = cast(%0) {dtype=f16} : f16[n,m]
  %2 = cast(%0) {dtype=bf16} : bf16[n,m]
  %3 = cast(%1) {dtype=f32} : f32[n,m]
  %4 = cast(%2) {dtype=f32} : f32[n,m]
  %5 = sub(%3, %4) : f32[n,m]
  return %5
})",
     0},
};

constexpr const char* kLevels[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4"};

ir::Module parse(std::string_view text) {
    auto module = text::parse(text, "test");
    EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.error().to_string());
    return std::move(module).value();
}

std::string generate(std::string_view text, const std::string& level, Emit emit) {
    auto lowered = lower::lower(rewrite::rewrite(parse(text), {}));
    auto target = make_target(level, {});
    EXPECT_TRUE(lowered.ok() && target.ok());
    auto made = compile(*lowered, *target, emit);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
    return std::move(made->object);
}

/// Is this machine able to run code of the level?
bool runs_here(const std::string& level) {
    auto host = driver::target_of({.cpu = "host"});
    auto target = make_target(level, {});
    return host.ok() && target.ok() && host->cpu >= target->cpu;
}

struct Output {
    std::vector<float> data;
    static void* allocate(void* host, int32_t, int64_t bytes) {
        auto& room = static_cast<Output*>(host)->data;
        room.assign(static_cast<size_t>(bytes) / sizeof(float) + 1, 0);
        room.pop_back();
        return room.data();
    }
};

using Code = std::shared_ptr<const driver::Executable>;

Code load(std::string_view text, const std::string& level) {
    std::string folder = (std::filesystem::temp_directory_path() / "ember-codegen-XXXXXX").string();
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    driver::Options options;
    CacheOptions cache;
    cache.dir = folder;
    options.cache = Cache::open(cache);
    options.cpu = level;
    auto made = driver::compile_or_load(parse(text), options);
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
    std::filesystem::remove_all(folder);
    return made.ok() ? *made : nullptr;
}

std::vector<float> run(const Code& code, std::vector<float>& input, int64_t n, int64_t m) {
    int64_t shape[] = {n, m};
    int64_t result_shape[] = {0, 0};
    EmberTensor given = driver::make_tensor(ir::DType::kF32, shape, input.data());
    EmberTensor taken{};
    taken.ndim = static_cast<int32_t>(code->outputs()[0].rank());
    taken.shape = result_shape;
    const EmberTensor* inputs[] = {&given};
    EmberTensor* outputs[] = {&taken};
    Output output;
    Status status = code->call(inputs, outputs, Output::allocate, &output);
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().to_string());
    return output.data;
}

class Levels : public ::testing::TestWithParam<Program> {};

/// Lengths around the widths of vectors, with rests of every kind.
TEST_P(Levels, Agree) {
    const Program& program = GetParam();
    std::vector<std::pair<std::string, Code>> codes;
    for (const char* level : kLevels) {
        if (runs_here(level)) {
            codes.emplace_back(level, load(program.text, level));
            ASSERT_NE(codes.back().second, nullptr);
        }
    }
    ASSERT_GE(codes.size(), 1U);
    for (auto [n, m] : {std::pair<int64_t, int64_t>{1, 1}, {3, 7}, {2, 16}, {5, 33}, {4, 128}, {0, 5}}) {
        std::vector<float> input(static_cast<size_t>(n * m));
        for (size_t i = 0; i < input.size(); ++i) {
            input[i] = std::sin(static_cast<float>(i) * 1.7F) * 3;
        }
        std::vector<float> expected = run(codes[0].second, input, n, m);
        EXPECT_EQ(expected.empty(), n == 0 && std::string_view(program.name) != "columns");
        for (const auto& [level, code] : codes) {
            std::vector<float> found = run(code, input, n, m);
            ASSERT_EQ(found.size(), expected.size());
            for (size_t i = 0; i < found.size(); ++i) {
                float bound = program.tolerance * (1 + std::abs(expected[i]));
                EXPECT_TRUE(found[i] == expected[i] || std::abs(found[i] - expected[i]) <= bound)
                    << level << " " << n << "x" << m << " at " << i << ": " << found[i] << ", " << expected[i];
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Programs, Levels, ::testing::ValuesIn(kPrograms),
                         [](const auto& info) { return std::string(info.param.name); });

#if defined(__x86_64__)
TEST(Vectors, AreAsWideAsTheLevelHas) {
    const char* map = kPrograms[0].text;
    auto has = [&](const char* level, const char* what) {
        return generate(map, level, Emit::kAssembly).find(what) != std::string::npos;
    };
    EXPECT_TRUE(has("x86-64", "mulps"));
    EXPECT_FALSE(has("x86-64", "%ymm"));
    EXPECT_TRUE(has("x86-64-v3", "%ymm"));
    EXPECT_FALSE(has("x86-64-v3", "%zmm"));
    EXPECT_TRUE(has("x86-64-v4", "%zmm"));
}
#endif

TEST(Objects, SameModuleSameBytes) {
    for (const Program& program : kPrograms) {
        std::string first = generate(program.text, "x86-64-v3", Emit::kObject);
        std::string other = generate(program.text, "x86-64-v2", Emit::kObject);
        EXPECT_EQ(first, generate(program.text, "x86-64-v3", Emit::kObject)) << program.name;
        EXPECT_NE(first, other) << program.name;
        EXPECT_EQ(first.substr(0, 4),
                  "\x7f"
                  "ELF");
    }
}

TEST(Objects, UnknownLevelsAreRefused) {
    auto target = make_target("x86-64-v9", {});
    ASSERT_FALSE(target.ok());
    EXPECT_NE(target.error().message.find("x86-64-v9"), std::string::npos);
}

}  // namespace
}  // namespace ember::codegen
