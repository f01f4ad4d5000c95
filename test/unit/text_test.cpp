// The textual form: numbers, printing, canonical text, parsing of hostile text. Most cases of the grammar are file
// tests (test/filetests/parse).
#include "ember/text/parse.h"
#include "ember/text/print.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "ember/ir/builder.h"
#include "ember/ir/literal.h"
#include "ember/text/element.h"
#include "ember/text/suggest.h"

namespace ember::text {
namespace {

using ir::DType;
using ir::Op;

ir::Module parsed(std::string_view text) {
    auto module = parse(text, "test");
    EXPECT_TRUE(module.ok()) << module.error().to_string();
    return std::move(module).value();
}

std::string problem(std::string_view text) {
    auto module = parse(text, "t");
    return module.ok() ? "" : module.error().to_string();
}

template <class T>
std::string bytes_of(T value) {
    std::string bytes(sizeof value, '\0');
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

std::string element_text(DType dtype, const std::string& bytes) {
    std::string out;
    append_element(out, dtype, bytes.data());
    return out;
}

TEST(Element, FloatsAreShortest) {
    EXPECT_EQ(element_text(DType::kF32, bytes_of(0.1F)), "0.1");
    EXPECT_EQ(element_text(DType::kF64, bytes_of(0.1)), "0.1");
    EXPECT_EQ(element_text(DType::kF64, bytes_of(-0.0)), "-0");
    EXPECT_EQ(element_text(DType::kF64, bytes_of(1e300)), "1e+300");
    EXPECT_EQ(element_text(DType::kF32, bytes_of(std::numeric_limits<float>::infinity())), "inf");
    EXPECT_EQ(element_text(DType::kF64, bytes_of(-std::numeric_limits<double>::infinity())), "-inf");
}

TEST(Element, NanKeepsItsPayload) {
    EXPECT_EQ(element_text(DType::kF32, bytes_of(uint32_t{0x7fc00000})), "nan");
    EXPECT_EQ(element_text(DType::kF32, bytes_of(uint32_t{0x7fc00001})), "0x7fc00001");
    EXPECT_EQ(element_text(DType::kF32, bytes_of(uint32_t{0xffc00000})), "0xffc00000");
    EXPECT_EQ(element_text(DType::kF16, bytes_of(uint16_t{0x7e00})), "nan");
    EXPECT_EQ(element_text(DType::kBF16, bytes_of(uint16_t{0x7fc1})), "0x7fc1");
    EXPECT_EQ(element_text(DType::kF64, bytes_of(uint64_t{0x7ff8000000000000})), "nan");
}

void expect_round_trip(DType dtype, const std::string& bytes) {
    std::string text = element_text(dtype, bytes);
    std::string back;
    ASSERT_TRUE(parse_element(text, dtype, back)) << text;
    EXPECT_EQ(back, bytes) << ir::dtype_name(dtype) << " " << text;
}

TEST(Element, EveryHalfRoundTrips) {
    for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
        expect_round_trip(DType::kF16, bytes_of(static_cast<uint16_t>(bits)));
        expect_round_trip(DType::kBF16, bytes_of(static_cast<uint16_t>(bits)));
    }
}

TEST(Element, RandomBitsRoundTrip) {
    std::mt19937_64 random(7);
    for (int i = 0; i < 20000; ++i) {
        uint64_t bits = random();
        for (DType dtype : {DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kU8, DType::kU16, DType::kU32,
                            DType::kU64, DType::kF32, DType::kF64}) {
            expect_round_trip(dtype, bytes_of(bits).substr(0, static_cast<size_t>(ir::element_bytes(dtype))));
        }
    }
}

TEST(Element, RefusesWhatDoesNotFit) {
    std::string bytes;
    for (auto [text, dtype] :
         std::initializer_list<std::pair<const char*, DType>>{{"128", DType::kI8},
                                                              {"-1", DType::kU8},
                                                              {"256", DType::kU8},
                                                              {"1.5", DType::kI32},
                                                              {"1e400", DType::kF64},
                                                              {"infinity", DType::kF64},
                                                              {"nan(1)", DType::kF64},
                                                              {"1x", DType::kF32},
                                                              {"0x1ffff", DType::kF16},
                                                              {"true", DType::kF32},
                                                              {"1", DType::kBool},
                                                              {"", DType::kF32},
                                                              {"-", DType::kF32},
                                                              {"0x", DType::kF32},
                                                              {"18446744073709551616", DType::kU64}}) {
        EXPECT_FALSE(parse_element(text, dtype, bytes)) << text;
    }
}

TEST(Quoted, EscapesWhatIsNoPlainText) {
    std::string out;
    append_quoted(out, std::string("a\"b\\c\n\t\r\x01\x7f\xff é\0", 15));
    EXPECT_EQ(out, "\"a\\\"b\\\\c\\n\\t\\r\\x01\\x7f\\xff é\\x00\"");
}

TEST(Suggest, NearNamesOnly) {
    EXPECT_EQ(did_you_mean("flor", {"add", "floor", "for"}), "; did you mean 'floor'?");
    EXPECT_EQ(did_you_mean("zzzzz", {"add", "floor"}), "");
    EXPECT_EQ(did_you_mean(std::string(100000, 'a'), {"add"}), "");
}

constexpr std::string_view kSeed =
    "func @f0(%0: f32[n0,64], shared %1: f32[64,64], bound %2: f32[8]) {\n"
    "  %3 = dot_general(%0, %1) {contract=[1,0]} : f32[n0,64]\n"
    "  return %3, %1 -> %1\n"
    "}\n";

TEST(Canonical, PrintsWhatItReads) {
    ir::Module module = parsed(kSeed);
    EXPECT_EQ(print(module), kSeed);
    EXPECT_EQ(canonical_text(module), kSeed);
}

TEST(Canonical, ForgetsNamesAndOrder) {
    ir::Module a = parsed(R"(
        func @first(%x: f32[rows,cols]) {
          %unused = exp(%x)
          %b = cos(%x)
          %a = sin(%x)
          %c = add(%a, %b)
          return %c
        })");
    ir::Module b = parsed("func @g(%0: f32[p,q]) { %1 = sin(%0) %2 = cos(%0) %3 = add(%1, %2) return %3 }");
    EXPECT_EQ(canonical_text(a), canonical_text(b));
    EXPECT_EQ(canonical_text(a),
              "func @f0(%0: f32[n0,n1]) {\n"
              "  %1 = sin(%0) : f32[n0,n1]\n"
              "  %2 = cos(%0) : f32[n0,n1]\n"
              "  %3 = add(%1, %2) : f32[n0,n1]\n"
              "  return %3\n"
              "}\n");
}

TEST(Canonical, TellsDifferentGraphsApart) {
    auto key = [](std::string_view text) { return canonical_text(parsed(text)); };
    std::string base = key("func @f(%x: f32[n], %y: f32[n]) { %z = sub(%x, %y) return %z }");
    EXPECT_NE(base, key("func @f(%x: f32[n], %y: f32[n]) { %z = sub(%y, %x) return %z }"));
    EXPECT_NE(base, key("func @f(%x: f32[n], %y: f32[m]) { %z = sub(%x, %y) return %z }"));
    EXPECT_NE(base, key("func @f(%x: f64[n], %y: f64[n]) { %z = sub(%x, %y) return %z }"));
    EXPECT_NE(base, key("func @f(%x: f32[n], shared %y: f32[n]) { %z = sub(%x, %y) return %z }"));
    EXPECT_NE(base, key("func @f(%x: f32[n], %y: f32[n], %q: f32[n]) { %z = sub(%x, %y) return %z }"));
    EXPECT_NE(base, key("func @f(%x: f32[n], %y: f32[n]) { %z = sub(%x, %y) return %z, %z }"));
}

TEST(Canonical, FunctionsInOrderOfFirstCall) {
    ir::Module module = parsed(R"(
        func @main(%x: f32[n]) {
          %a = call(%x) {callee="second"} : f32[n]
          %b = call(%a) {callee="first"} : f32[n]
          return %b
        }
        func @first(%x: f32[n]) { %y = exp(%x) return %y }
        func @unused(%x: f32[n]) { %y = log(%x) return %y }
        func @second(%x: f32[m]) { %y = sin(%x) %z = call(%y) {callee="first"} : f32[m] return %z })");
    std::string text = canonical_text(module);
    EXPECT_EQ(text,
              "func @f0(%0: f32[n0]) {\n"
              "  %1 = call(%0) {callee=\"f1\"} : f32[n0]\n"
              "  %2 = call(%1) {callee=\"f2\"} : f32[n0]\n"
              "  return %2\n"
              "}\n"
              "func @f1(%0: f32[n0]) {\n"
              "  %1 = sin(%0) : f32[n0]\n"
              "  %2 = call(%1) {callee=\"f2\"} : f32[n0]\n"
              "  return %2\n"
              "}\n"
              "func @f2(%0: f32[n0]) {\n"
              "  %1 = exp(%0) : f32[n0]\n"
              "  return %1\n"
              "}\n");
    EXPECT_EQ(canonical_text(parsed(text)), text);
}

TEST(Canonical, FreshSymbolsPrintAlikeInAnyProcess) {
    auto build = [](int burned) {
        for (int i = 0; i < burned; ++i) {
            (void)ir::Dim::fresh();
        }
        ir::GraphBuilder builder;
        ir::ValueId n = builder.param({DType::kI64, {}});
        ir::ValueId m = builder.param({DType::kI64, {}});
        builder.output(builder.make(Op::k_iota, {n}, {{"dtype", DType::kF32}}));
        builder.output(builder.make(Op::k_iota, {m}, {{"dtype", DType::kF32}}));
        ir::Module module;
        module.functions.push_back(builder.take());
        return module;
    };
    ir::Module a = build(0);
    ir::Module b = build(100);
    EXPECT_EQ(canonical_text(a), canonical_text(b));
    EXPECT_EQ(print(a), print(b));
    EXPECT_NE(print(a).find("f32[_1]"), std::string::npos) << print(a);
}

TEST(Print, SymbolsOfOneNameStayApart) {
    ir::GraphBuilder builder;
    builder.param({DType::kF32, {ir::Dim::symbol("a b"), ir::Dim::symbol("a_b"), ir::Dim::symbol("7")}});
    std::string text = print(builder.graph());
    EXPECT_NE(text.find("f32[a_b,a_b_,_7]"), std::string::npos) << text;
}

TEST(Print, FunctionNamesOfAnyKind) {
    ir::GraphBuilder builder("two \"words\"");
    ir::Module module;
    module.functions.push_back(builder.take());
    EXPECT_EQ(print(module), "func @\"two \\\"words\\\"\"() {\n  return\n}\n");
    EXPECT_EQ(print(parsed(print(module))), print(module));
}

TEST(Parse, AttributesHaveOneForm) {
    auto text = [](std::string_view attributes) {
        return canonical_text(
            parsed("func @f(%x: f32[3,3]) { %y = dot_general(%x, %x) {" + std::string(attributes) + "} return %y }"));
    };
    EXPECT_EQ(text("batch=[0,0], contract=[1,1]"), text("contract=[1,1], batch=[0,0]"));
    EXPECT_EQ(text("batch=[], contract=[1,1]"), text("contract=[1,1]"));
}

TEST(Parse, ErrorsSayWhere) {
    EXPECT_EQ(problem("func @f() {\n  %0 = flor() : f32[]\n}"), "t:2:8: unknown op 'flor'; did you mean 'floor'?");
    EXPECT_EQ(problem("func @f() { return"), "t:1:19: expected an output, found the end of the text");
    EXPECT_EQ(problem(""), "t:1:1: expected 'func', found the end of the text");
    EXPECT_EQ(problem("func @f(%x: f32[n]) { %y = add(%x, %z) return %y }"), "t:1:36: unknown value '%z'");
}

TEST(Parse, HostileTextIsBounded) {
    std::string nested = "func @f(%n: i64[]) {\n";
    for (int i = 0; i < 100000; ++i) {
        nested += "loop(%n) {carried=0} do (%n: i64[]) {\n";
    }
    EXPECT_NE(problem(nested).find("deeper than"), std::string::npos);
    EXPECT_NE(problem("func @f(%x: f32[" + std::string(100000, '1') + "]) { return }"), "");
    std::string axes = "1";
    for (int i = 0; i < 100000; ++i) {
        axes += ",1";
    }
    EXPECT_NE(problem("func @f(%x: f32[" + axes + "]) { return }").find("at most 32 axes"), std::string::npos);
    EXPECT_NE(problem("func @f() { %x = const() {value=[" + axes + "]} : f32[1] return }").find("at most 64 bytes"),
              std::string::npos);
    EXPECT_NE(problem(std::string(1000, '(')), "");
    EXPECT_NE(problem(std::string_view("\0\0\0", 3)), "");
}

TEST(Parse, LengthsDoNotOverflow) {
    EXPECT_NE(problem("func @f(%x: f32[9223372036854775807]) { return }").find("no axis"), std::string::npos);
    EXPECT_NE(problem("func @f() { %n = const() {value=9223372036854775807} : i64[] "
                      "%x = iota(%n) {dtype=f32} return %x }")
                  .find("too large"),
              std::string::npos);
    EXPECT_EQ(problem("func @f(%x: f32[281474976710656,281474976710656]) { %y = concat(%x, %x) {axis=0} return %y }"),
              "");
}

TEST(Parse, ListsNodesWithTypes) {
    std::vector<ParsedNode> nodes;
    auto module = parse("func @f(%x: f32[n]) {\n %y = exp(%x)\n %z = is_nan(%y)\n return %z }", "t", nodes);
    ASSERT_TRUE(module.ok());
    ASSERT_EQ(nodes.size(), 2U);
    EXPECT_EQ(nodes[1].line, 3U);
    EXPECT_EQ(nodes[1].types.at(0).to_string(), "bool[n]");
}

}  // namespace
}  // namespace ember::text
