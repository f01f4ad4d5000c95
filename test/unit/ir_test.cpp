// The IR by hand: symbols, literals, the builder, canonical order, the verifier. Type rules are file tests
// (test/filetests/infer).
#include "ember/ir/builder.h"
#include "ember/ir/literal.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <thread>

namespace ember::ir {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

TensorType f32(Shape shape) {
    return {DType::kF32, std::move(shape)};
}

TEST(DType, NamesAndSizes) {
    std::set<std::string_view> names;
    for (int i = 0; i < kDTypeCount; ++i) {
        auto dtype = static_cast<DType>(i);
        EXPECT_TRUE(names.insert(dtype_name(dtype)).second);
        EXPECT_EQ(dtype_from_name(dtype_name(dtype)), dtype);
    }
    EXPECT_EQ(dtype_from_name("float"), std::nullopt);
    EXPECT_EQ(row_bytes(DType::kQ4_0, 64), 36);
    EXPECT_EQ(row_bytes(DType::kQ6_K, 512), 420);
    EXPECT_THROW((void)row_bytes(DType::kQ4_0, 33), InternalError);
    EXPECT_THROW((void)element_bytes(DType::kQ4_0), InternalError);
}

TEST(Ops, TableIsWellFormed) {
    std::set<std::string_view> names;
    for (int i = 0; i < kOpCount; ++i) {
        auto op = static_cast<Op>(i);
        const OpInfo& row = info(op);
        EXPECT_TRUE(names.insert(row.name).second) << row.name;
        EXPECT_EQ(op_from_name(row.name), op);
        EXPECT_FALSE(row.summary.empty()) << row.name;
        EXPECT_TRUE(row.max_arity == -1 || row.max_arity >= row.min_arity) << row.name;
        if (is_map(op)) {
            EXPECT_FALSE(row.numpy.empty()) << row.name;
            EXPECT_FALSE(row.derivative.empty()) << row.name;
        }
        std::set<std::string_view> seen;
        for (const AttributeInfo& attribute : attributes(op)) {
            EXPECT_TRUE(seen.insert(attribute.name).second) << row.name;
        }
    }
    ASSERT_EQ(attributes(Op::k_dot_general).size(), 2U);
    EXPECT_EQ(attributes(Op::k_dot_general)[1].name, "batch");
    EXPECT_EQ(attributes(Op::k_dot_general)[1].kind, AttributeKind::kInts);
    EXPECT_TRUE(attributes(Op::k_dot_general)[1].optional);
}

TEST(Dim, SymbolsAreInterned) {
    EXPECT_EQ(Dim::symbol("n"), Dim::symbol("n"));
    EXPECT_NE(Dim::symbol("n"), Dim::symbol("m"));
    EXPECT_NE(Dim::fresh(), Dim::fresh());
    EXPECT_EQ(Dim::symbol("n").to_string(), "n");
    EXPECT_EQ(Dim(7).to_string(), "7");
    EXPECT_THROW((void)Dim::symbol("n").size(), InternalError);
}

TEST(Dim, SymbolsFromManyThreads) {
    std::vector<std::thread> threads;
    std::vector<std::vector<Dim>> seen(4);
    for (size_t t = 0; t < seen.size(); ++t) {
        threads.emplace_back([&mine = seen[t]] {
            for (int i = 0; i < 1000; ++i) {
                mine.push_back(Dim::symbol("thread" + std::to_string(i)));
                (void)Dim::fresh().to_string();
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(seen[0], seen[1]);
    EXPECT_EQ(seen[0], seen[3]);
}

TEST(TensorType, ElementsDoNotOverflow) {
    EXPECT_EQ(f32({2, 3}).static_elements(), 6);
    EXPECT_EQ(f32({kMaxLength, kMaxLength}).static_elements(), INT64_MAX);
    EXPECT_EQ(f32({kMaxLength, kMaxLength, 0}).static_elements(), 0);
    EXPECT_EQ(f32({}).static_elements(), 1);
    EXPECT_FALSE(f32({2, Dim::symbol("n")}).is_static());
}

/// What rounding a float to half precision is by definition: the nearest of all halves, ties to the even one.
uint16_t nearest_half(float value) {
    uint16_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (uint32_t bits = 0; bits < 0x7c00; ++bits) {
        double distance = std::fabs(static_cast<double>(f16_value(static_cast<uint16_t>(bits))) - std::fabs(value));
        if (distance < least || (distance == least && bits % 2 == 0)) {
            least = distance;
            best = static_cast<uint16_t>(bits);
        }
    }
    bool too_large = std::fabs(value) >= 65520;
    auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
    return static_cast<uint16_t>((too_large ? 0x7c00 : best) | sign);
}

TEST(Literal, HalvesRoundToNearestEven) {
    for (float value :
         {0.0F,  -0.0F,    1.0F,          0.1F,  -1 / 3.0F, 65504.0F, 65519.9F, 65520.0F, 1e9F,         6.1e-5F,
          6e-8F, 2.98e-8F, 2.9802322e-8F, 3e-8F, 1e-10F,    2049.0F,  2051.0F,  -2047.5F, 0x1.ffcp-15F, 0x1.ffep-15F}) {
        EXPECT_EQ(f16_bits(value), nearest_half(value)) << value;
    }
    EXPECT_EQ(f16_bits(kInf), 0x7c00);
    EXPECT_EQ(f16_bits(-kInf), 0xfc00);
    EXPECT_EQ(f16_bits(std::numeric_limits<float>::quiet_NaN()), 0x7e00);
    for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
        auto half = static_cast<uint16_t>(bits);
        if (!std::isnan(f16_value(half))) {
            EXPECT_EQ(f16_bits(f16_value(half)), half);
        }
    }
}

TEST(Literal, Bfloat) {
    EXPECT_EQ(bf16_bits(1.0F), 0x3f80);
    EXPECT_EQ(bf16_bits(std::bit_cast<float>(0x3f808000U)), 0x3f80);
    EXPECT_EQ(bf16_bits(std::bit_cast<float>(0x3f818000U)), 0x3f82);
    EXPECT_EQ(bf16_bits(std::bit_cast<float>(0x7f7fffffU)), 0x7f80);
    EXPECT_TRUE(std::isnan(bf16_value(bf16_bits(std::bit_cast<float>(0x7f800001U)))));
}

TEST(Literal, ConvertsLikeStoredElements) {
    EXPECT_EQ(literal_as_int(scalar_literal(DType::kI8, int64_t{-128})), -128);
    EXPECT_EQ(literal_as_int(scalar_literal(DType::kU8, int64_t{255})), 255);
    EXPECT_EQ(literal_as_double(scalar_literal(DType::kBool, 2.5)), 1);
    EXPECT_EQ(literal_as_double(scalar_literal(DType::kBF16, 1.5)), 1.5);
    EXPECT_EQ(scalar_literal(DType::kC128, 1.5).bytes.size(), 16U);
    EXPECT_THROW((void)scalar_literal(DType::kQ4_0, 1.0), InternalError);
}

TEST(Builder, MergesEqualNodes) {
    GraphBuilder builder;
    ValueId x = builder.param(f32({Dim::symbol("n")}));
    EXPECT_EQ(builder.make(Op::k_exp, {x}), builder.make(Op::k_exp, {x}));
    EXPECT_NE(builder.make(Op::k_exp, {x}), builder.make(Op::k_log, {x}));
    EXPECT_EQ(builder.constant(DType::kF32, 1.0), builder.constant(DType::kF32, 1.0));
    EXPECT_NE(builder.constant(DType::kF32, 0.0), builder.constant(DType::kF32, -0.0));
    EXPECT_NE(builder.constant(DType::kF32, 1.0), builder.constant(DType::kF64, 1.0));
    EXPECT_NE(builder.constant({DType::kF32, {1}, std::string(4, '\0')}),
              builder.constant({DType::kF32, {1, 1}, std::string(4, '\0')}));
}

TEST(Builder, HostCallsDoNotMerge) {
    GraphBuilder builder;
    NodeSpec spec{Op::k_host_call, {}, {{"id", std::string("now")}}, {}, {f32({})}};
    EXPECT_NE(builder.make_node(spec), builder.make_node(spec));
}

TEST(Builder, EqualAttributesHaveOneForm) {
    GraphBuilder builder;
    ValueId x = builder.param(f32({3, 3}));
    Attribute contract{"contract", std::vector<int64_t>{1, 1}};
    Attribute batch{"batch", std::vector<int64_t>{0, 0}};
    Attribute none{"batch", std::vector<int64_t>{}};
    EXPECT_EQ(builder.make(Op::k_dot_general, {x, x}, {contract, batch}),
              builder.make(Op::k_dot_general, {x, x}, {batch, contract}));
    EXPECT_EQ(builder.make(Op::k_dot_general, {x, x}, {contract}),
              builder.make(Op::k_dot_general, {x, x}, {none, contract}));
}

TEST(Builder, ErrorsNameOpAndOperands) {
    GraphBuilder builder;
    ValueId x = builder.param(f32({3}));
    ValueId y = builder.param(f32({4}));
    auto sum = builder.add_one({Op::k_add, {x, y}});
    ASSERT_FALSE(sum.ok());
    EXPECT_EQ(sum.error().code, Code::kShape);
    EXPECT_EQ(sum.error().message, "add: shapes do not match: axis 0 has lengths 3 and 4; operands: f32[3] f32[4]");
    EXPECT_THROW(builder.make(Op::k_add, {x, y}), InternalError);
    EXPECT_FALSE(builder.add({Op::k_exp, {x}, {{"axis", int64_t{1}}}}).ok());
    EXPECT_FALSE(builder.add({Op::k_cumsum, {x}, {{"axis", std::string("0")}}}).ok());
    EXPECT_FALSE(builder.add({Op::k_const, {}, {{"value", Literal{DType::kF32, {}, "12345"}}}}).ok());
    EXPECT_FALSE(builder.add({Op::k_const, {}, {{"value", Literal{DType::kBool, {}, "\2"}}}}).ok());
    EXPECT_FALSE(builder.add({Op::k_const, {}, {{"value", Literal{DType::kQ4_0, {32}, std::string(18, '\0')}}}}).ok());
    EXPECT_FALSE(
        builder.add({Op::k_const, {}, {{"value", Literal{DType::kF32, {1 << 30, 1 << 30, 1 << 30}, ""}}}}).ok());
}

TEST(Builder, DimValue) {
    GraphBuilder builder;
    ValueId x = builder.param(f32({Dim::symbol("n"), 7}));
    EXPECT_EQ(builder.graph().producer(builder.dim_value(x, 0))->op, Op::k_dim);
    EXPECT_EQ(literal_as_int(*builder.graph().literal(builder.dim_value(x, 1))), 7);
}

Graph chain(size_t length) {
    GraphBuilder builder;
    ValueId x = builder.param(f32({4}));
    for (size_t i = 0; i < length; ++i) {
        x = builder.make(i % 2 == 0 ? Op::k_exp : Op::k_neg, {x});
    }
    builder.output(x);
    return builder.take();
}

TEST(CanonicalOrder, LongChainsNeedNoStack) {
    constexpr size_t kLength = 300000;
    Graph graph = chain(kLength);
    EXPECT_EQ(canonical_order(graph).size(), kLength);
    EXPECT_EQ(canonicalize_order(graph).nodes.size(), kLength);
    EXPECT_TRUE(verify(graph).ok());
}

TEST(CanonicalOrder, DropsWhatNoOutputNeeds) {
    GraphBuilder builder;
    ValueId x = builder.param(f32({4}));
    builder.make(Op::k_log, {x});
    ValueId b = builder.make(Op::k_cos, {x});
    ValueId a = builder.make(Op::k_sin, {x});
    builder.output(builder.make(Op::k_add, {a, b}));
    Graph graph = canonicalize_order(builder.graph());
    ASSERT_EQ(graph.nodes.size(), 3U);
    EXPECT_EQ(graph.nodes[0].op, Op::k_sin);
    EXPECT_EQ(graph.nodes[1].op, Op::k_cos);
    EXPECT_TRUE(verify(graph).ok());
}

TEST(Verify, FindsBrokenTables) {
    Graph graph = chain(3);
    EXPECT_TRUE(verify(graph).ok());
    Graph broken = graph;
    broken.nodes[0].operands[0] = 99;
    EXPECT_NE(verify(broken).error().message.find("operand out of range"), std::string::npos);
    broken = graph;
    broken.nodes[0].operands[0] = broken.nodes[2].result();
    EXPECT_NE(verify(broken).error().message.find("after its user"), std::string::npos);
    broken = graph;
    broken.values[1].type.dtype = DType::kF64;
    EXPECT_FALSE(verify(broken).ok());
    broken = graph;
    broken.values[1].node = 2;
    EXPECT_NE(verify(broken).error().message.find("result table"), std::string::npos);
    broken = graph;
    broken.outputs[0].value = 99;
    EXPECT_NE(verify(broken).error().message.find("output out of range"), std::string::npos);
    broken = graph;
    broken.params[0].value = 2;
    EXPECT_NE(verify(broken).error().message.find("parameter table"), std::string::npos);
    broken = graph;
    broken.nodes[2].result_count = 1000;
    EXPECT_NE(verify(broken).error().message.find("result out of range"), std::string::npos);
}

TEST(Verify, Modules) {
    EXPECT_FALSE(verify(Module{}).ok());
    Module module;
    module.functions = {chain(1), chain(2)};
    EXPECT_NE(verify(module).error().message.find("two functions are named"), std::string::npos);
    module.functions[1].name = "other";
    EXPECT_TRUE(verify(module).ok());
}

/// f0 calls f1 twice, f1 calls f2 twice, …
Module tower(int height) {
    Module module;
    for (int i = 0; i < height; ++i) {
        GraphBuilder builder("f" + std::to_string(i));
        ValueId x = builder.param(f32({4}));
        for (int k = 0; k < 2 && i + 1 < height; ++k) {
            Attribute callee{"callee", "f" + std::to_string(i + 1)};
            x = builder.make_node({Op::k_call, {x}, {callee}, {}, {f32({4})}}).at(0);
        }
        builder.output(x);
        module.functions.push_back(builder.take());
    }
    return module;
}

TEST(Verify, CallsAreBounded) {
    EXPECT_TRUE(verify(tower(64)).ok());
    EXPECT_NE(verify(tower(65)).error().message.find("nest deeper"), std::string::npos);
    EXPECT_NE(verify(tower(3000)).error().message.find("nest deeper"), std::string::npos);
}

}  // namespace
}  // namespace ember::ir
