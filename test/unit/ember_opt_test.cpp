// The machinery of file tests: what passes must be right, and what is wrong must not pass.
#include <gtest/gtest.h>

#include "cli/ember_opt/tensor_text.h"
#include "cli/ember_opt/test_case.h"
#include "cli/ember_opt/test_kinds.h"
#include "ember/ir/builder.h"

namespace ember::opt {
namespace {

Outcome run_kind(std::string_view kind, std::string_view text) {
    TestKind test = find_kind(kind);
    EXPECT_TRUE(test) << kind;
    return test(split_cases("t.ember", text).at(0));
}

/// Does the text pass as it stands?
bool passes(std::string_view kind, std::string_view text) {
    Outcome outcome = run_kind(kind, text);
    return outcome.faults.empty() && outcome.lines == split_lines(text);
}

TEST(TestCase, SplitsAndJoins) {
    std::string text = "a\n// ---\nb\n\nc\n";
    std::vector<TestCase> cases = split_cases("f", text);
    ASSERT_EQ(cases.size(), 2U);
    EXPECT_EQ(cases[1].first_line, 3U);
    EXPECT_EQ(cases[1].lines, (Lines{"b", "", "c"}));
    EXPECT_EQ(join_cases(cases), text);
}

TEST(TestCase, Directives) {
    EXPECT_EQ(directive("// input: f32[] 1", "input"), "f32[] 1");
    EXPECT_EQ(directive("// input:", "input"), "");
    EXPECT_EQ(directive("// inputs: x", "input"), std::nullopt);
    EXPECT_EQ(tolerance_of("// tolerance: 1e-3"), 1e-3);
}

TEST(Tensors, Text) {
    for (std::string_view text : {"f32[2] [1, nan]", "f64[] -0", "bool[2] [true, false]", "i8[1,2] [-1, 2]",
                                  "c64[1] [(1,-2)]", "f32[0,3] []"}) {
        auto tensor = parse_tensor(text);
        ASSERT_TRUE(tensor.ok()) << tensor.error().to_string();
        EXPECT_EQ(print_tensor(*tensor), text);
    }
    EXPECT_TRUE(parse_tensor("q8_0[2,32] special(seed=3)").ok());
    for (std::string_view text :
         {"", "f32", "f32[2]", "f32[2] [1]", "f32[2] 1", "f32[] [1]", "f32[n] [1]", "f32[] 1 2",
          "f32[99999999999] ordinary(seed=1)", "i32[] 1.5", "f32[2] ordinary(1)", "q8_0[32] [1]"}) {
        EXPECT_FALSE(parse_tensor(text).ok()) << text;
    }
}

bool agree(std::string_view a, std::string_view b, std::optional<Tolerance> tolerance = {}) {
    return !find_difference(parse_tensor(a).value(), parse_tensor(b).value(), tolerance);
}

TEST(Tensors, Agreement) {
    EXPECT_TRUE(agree("f32[] nan", "f32[] nan"));
    EXPECT_FALSE(agree("f32[] nan", "f32[] 1"));
    EXPECT_FALSE(agree("f32[] inf", "f32[] 3e38", Tolerance{1, 1}));
    EXPECT_FALSE(agree("f32[] 0", "f32[] -0"));
    EXPECT_FALSE(agree("f32[] 1", "f64[] 1"));
    EXPECT_FALSE(agree("f32[1] [1]", "f32[] 1"));
    EXPECT_TRUE(agree("f32[] 1", "f32[] 1.000001"));
    EXPECT_FALSE(agree("f64[] 1", "f64[] 1.000001"));
    EXPECT_TRUE(agree("f64[] 1", "f64[] 1.000001", Tolerance{1e-5, 0}));
    EXPECT_FALSE(agree("i64[] 9007199254740993", "i64[] 9007199254740992"));
}

TEST(Kinds, ParseSeesStaleExpectations) {
    EXPECT_TRUE(passes("parse", "func @f() {\n  return\n}\n// expect:\n// func @f() {\n//   return\n// }\n"));
    EXPECT_FALSE(passes("parse", "func @f() {\n  return\n}\n"));
    EXPECT_FALSE(
        passes("parse", "func @f() {  // error: 1: no\n  return\n}\n// expect:\n// func @f() {\n//   return\n// }\n"));
    EXPECT_TRUE(passes("verify", "func @f() {\n  return %x  // error: 10: unknown value '%x'\n}\n"));
    EXPECT_FALSE(passes("verify", "func @f() {\n  return %x\n}\n"));
    EXPECT_FALSE(passes("verify", "func @f() {\n  return  // error: 10: unknown value '%x'\n}\n"));
}

TEST(Kinds, Infer) {
    EXPECT_TRUE(passes("infer", "func @f(%x: f32[n]) {\n  %y = is_nan(%x)  // bool[n]\n  return\n}\n"));
    EXPECT_FALSE(passes("infer", "func @f(%x: f32[n]) {\n  %y = is_nan(%x)  // f32[n]\n  return\n}\n"));
    EXPECT_FALSE(passes("infer", "func @f(%x: f32[n]) {\n  %y = is_nan(%x)\n  return\n}\n"));
}

TEST(Kinds, Same) {
    std::string two = "func @a(%x: f32[n]) { return %x }\nfunc @b(%y: f32[m]) { return %y }\n";
    EXPECT_TRUE(passes("same", two));
    EXPECT_FALSE(passes("same", "// differ: @b\n" + two));
    std::string other = "func @a(%x: f32[n]) { return %x }\nfunc @b(%y: f64[m]) { return %y }\n";
    EXPECT_FALSE(passes("same", other));
    EXPECT_TRUE(passes("same", "// differ: @b\n" + other));
    EXPECT_FALSE(passes("same", "func @a(%x: f32[n]) { return %x }\n"));
}

constexpr std::string_view kAdd =
    "// interpreter only: a test\nfunc @f(%x: f32[n]) {\n  %y = add(%x, %x)\n  return %y\n}\n";

TEST(Kinds, Run) {
    auto with = [](std::string_view runs) { return std::string(kAdd) + std::string(runs); };
    EXPECT_TRUE(passes("run", with("// input: f32[1] [2]\n// expect: f32[1] [4]\n")));
    EXPECT_TRUE(passes("run", with("// input: f32[1] [2]\n// expect: f32[1] [4.000001]\n")));
    EXPECT_FALSE(passes("run", with("// input: f32[1] [2]\n// expect: f32[1] [5]\n")));
    EXPECT_TRUE(passes("run", with("// tolerance: 0.5\n// input: f32[1] [2]\n// expect: f32[1] [5]\n")));
    EXPECT_FALSE(passes("run", with("// input: f32[1] [2]\n")));
    EXPECT_FALSE(passes("run", with("// input: f32[1] [2]\n// error: no\n")));
    EXPECT_FALSE(passes("run", with("// input: f32[1] [2]\n// expect: f32[1] [4]\n// expect: f32[1] [4]\n")));
    EXPECT_FALSE(passes("run", with("")));
    EXPECT_FALSE(passes("run", with("// input: f32[1 [2]\n// expect: f32[1] [4]\n")));
    Outcome two = run_kind("run", with("// input: f32[1] [2]\n// input: f32[1] [3]\n"));
    Lines runs(two.lines.end() - 4, two.lines.end());
    EXPECT_EQ(runs, (Lines{"// input: f32[1] [2]", "// expect: f32[1] [4]", "// input: f32[1] [3]",
                           "// expect: f32[1] [6]"}));
}

ir::Module keep(ir::Module module) {
    return module;
}

/// Turns the entry's add into sub.
ir::Module spoil_values(ir::Module module) {
    for (ir::Node& node : module.entry().nodes) {
        node.op = node.op == ir::Op::k_add ? ir::Op::k_sub : node.op;
    }
    return module;
}

ir::Module spoil_types(ir::Module module) {
    module.entry().values.back().type.dtype = ir::DType::kI8;
    return module;
}

Outcome pass_outcome(ir::Module (*pass)(ir::Module), std::string_view more = "") {
    return test_pass(split_cases("t.ember", std::string(more) + std::string(kAdd)).at(0), pass);
}

TEST(Kinds, PassesThatChangeValuesCannotBeBlessed) {
    EXPECT_TRUE(pass_outcome(keep).faults.empty());
    ASSERT_FALSE(pass_outcome(spoil_values).faults.empty());
    EXPECT_NE(pass_outcome(spoil_values).faults[0].find("changes values"), std::string::npos);
    ASSERT_FALSE(pass_outcome(spoil_types).faults.empty());
    EXPECT_NE(pass_outcome(spoil_types).faults[0].find("broken module"), std::string::npos);
    EXPECT_FALSE(pass_outcome(keep, "// input: i8[1] [1]\n").lines.empty());
}

TEST(Kinds, Names) {
    EXPECT_FALSE(find_kind("nonsense"));
    EXPECT_TRUE(find_kind("simplify"));
}

}  // namespace
}  // namespace ember::opt
