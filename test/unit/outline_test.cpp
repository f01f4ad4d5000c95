// Outlining of layers, on flat transformers and networks made here: one function for any number of layers, forward and
// with gradients, the same results, and graphs on which there is nothing to find.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <functional>

#include "ember/autodiff/grad.h"
#include "ember/interp/evaluate.h"
#include "ember/ir/append.h"
#include "ember/ir/formula.h"
#include "ember/rewrite/passes.h"
#include "ember/rewrite/repeats.h"
#include "ember/text/print.h"

namespace ember::rewrite {
namespace {

using interp::Tensor;
using ir::Dim;
using ir::DType;
using ir::GraphBuilder;
using ir::Op;
using ir::ParamKind;
using ir::TensorType;
using ir::ValueId;
using Axes = std::vector<int64_t>;
using Values = std::vector<ValueId>;

struct Sizes {
    int64_t heads = 2;
    int64_t head = 4;
    int64_t inner = 12;
    int64_t vocabulary = 10;
    int64_t context = 8;
    int64_t width() const { return heads * head; }
};

/// Builds a decoder with key-value caches, node by node, as a frontend would.
class Transformer {
public:
    /// `wide`: layers whose feed-forward part is larger.
    explicit Transformer(int layers, std::function<bool(int)> wide = {}) : layers_(layers), wide_(std::move(wide)) {}

    ir::Module build() {
        tokens_ = b_.param({DType::kI64, {n_}});
        position_ = b_.param({DType::kI64, {}});
        ValueId embedding = weight({s_.vocabulary, s_.width()});
        make_rope_and_mask();
        ValueId x = b_.make(Op::k_gather, {embedding, tokens_}, {{"axes", Axes{0}}});
        for (int layer = 0; layer < layers_; ++layer) {
            inner_ = wide_ && wide_(layer) ? s_.inner + 4 : s_.inner;
            x = add(x, attention(normalized(x)));
            x = add(x, feed_forward(normalized(x)));
        }
        b_.output(dot(normalized(x), weight({s_.vocabulary, s_.width()}), {1, 1}));
        for (auto [value, param] : updates_) {
            b_.output(value, param);
        }
        ir::Module module;
        module.functions.push_back(b_.take());
        return module;
    }

private:
    ValueId weight(std::vector<int64_t> shape) {
        return b_.param({DType::kF32, {shape.begin(), shape.end()}}, ParamKind::kBound);
    }
    ValueId number(int64_t value) { return b_.constant_int(value); }
    ValueId real(double value) { return b_.constant(DType::kF32, value); }
    ValueId add(ValueId x, ValueId y) { return b_.make(Op::k_add, {x, y}); }
    ValueId mul(ValueId x, ValueId y) { return b_.make(Op::k_mul, {x, y}); }
    ValueId dot(ValueId x, ValueId y, Axes contract, Axes batch = {}) {
        return b_.make(Op::k_dot_general, {x, y}, {{"contract", contract}, {"batch", batch}});
    }
    ValueId reshape(ValueId x, Values lengths) {
        lengths.insert(lengths.begin(), x);
        return b_.make(Op::k_reshape, lengths);
    }
    ValueId count() { return b_.dim_value(tokens_, 0); }

    ValueId normalized(ValueId x) {
        ValueId square = b_.make(Op::k_reduce_sum, {mul(x, x)}, {{"axes", Axes{1}}});
        ValueId mean =
            reshape(b_.make(Op::k_div, {square, real(static_cast<double>(s_.width()))}), {count(), number(1)});
        ValueId scale = b_.make(Op::k_rsqrt, {add(mean, real(1e-5))});
        return mul(mul(x, scale), weight({s_.width()}));
    }

    void make_rope_and_mask() {
        ValueId steps = add(b_.make(Op::k_iota, {count()}, {{"dtype", DType::kI64}}), position_);
        ValueId angle =
            mul(reshape(b_.make(Op::k_cast, {steps}, {{"dtype", DType::kF32}}), {count(), number(1), number(1)}),
                b_.make(Op::k_exp, {b_.make(Op::k_iota, {number(s_.head / 2)}, {{"dtype", DType::kF32}})}));
        cos_ = b_.make(Op::k_cos, {angle});
        sin_ = b_.make(Op::k_sin, {angle});
        ValueId columns = b_.make(Op::k_iota, {number(s_.context)}, {{"dtype", DType::kI64}});
        ValueId visible = b_.make(Op::k_le, {columns, reshape(steps, {count(), number(1)})});
        mask_ = b_.make(Op::k_select, {visible, real(0), real(-1e9)});
    }

    ValueId rotated(ValueId x) {
        ValueId half = number(s_.head / 2);
        ValueId low = b_.make(Op::k_slice, {x, number(0), half}, {{"axis", int64_t{2}}});
        ValueId high = b_.make(Op::k_slice, {x, half, half}, {{"axis", int64_t{2}}});
        ValueId first = b_.make(Op::k_sub, {mul(low, cos_), mul(high, sin_)});
        ValueId second = add(mul(low, sin_), mul(high, cos_));
        return b_.make(Op::k_concat, {first, second}, {{"axis", int64_t{2}}});
    }

    ValueId heads(ValueId x) {
        ValueId flat = dot(x, weight({s_.width(), s_.width()}), {1, 1});
        return reshape(flat, {count(), number(s_.heads), number(s_.head)});
    }

    ValueId cached(ValueId x) {
        ValueId cache = b_.param({DType::kF32, {s_.context, s_.heads, s_.head}}, ParamKind::kShared);
        auto index = static_cast<uint32_t>(b_.graph().params.size() - 1);
        ValueId filled = b_.make(Op::k_update_slice, {cache, x, position_, number(0), number(0)});
        updates_.emplace_back(filled, index);
        return filled;
    }

    ValueId softmax(ValueId x) {
        ValueId largest =
            reshape(b_.make(Op::k_reduce_max, {x}, {{"axes", Axes{2}}}), {number(s_.heads), count(), number(1)});
        ValueId e = b_.make(Op::k_exp, {b_.make(Op::k_sub, {x, largest})});
        ValueId sum =
            reshape(b_.make(Op::k_reduce_sum, {e}, {{"axes", Axes{2}}}), {number(s_.heads), count(), number(1)});
        return b_.make(Op::k_div, {e, sum});
    }

    ValueId attention(ValueId x) {
        ValueId q = rotated(heads(x));
        ValueId k = cached(rotated(heads(x)));
        ValueId v = cached(heads(x));
        ValueId scores = mul(dot(q, k, {2, 2}, {1, 1}), real(1 / std::sqrt(static_cast<double>(s_.head))));
        ValueId mixed = dot(softmax(add(scores, mask_)), v, {2, 0}, {0, 1});  // heads, n, head
        ValueId back = b_.make(Op::k_transpose, {mixed}, {{"perm", Axes{1, 0, 2}}});
        return dot(reshape(back, {count(), number(s_.width())}), weight({s_.width(), s_.width()}), {1, 1});
    }

    ValueId feed_forward(ValueId x) {
        ValueId gate = dot(x, weight({inner_, s_.width()}), {1, 1});
        ValueId up = dot(x, weight({inner_, s_.width()}), {1, 1});
        return dot(mul(mul(gate, b_.make(Op::k_sigmoid, {gate})), up), weight({s_.width(), inner_}), {1, 1});
    }

    int layers_;
    std::function<bool(int)> wide_;
    int64_t inner_ = 0;
    Sizes s_;
    Dim n_ = Dim::symbol("n");
    GraphBuilder b_;
    ValueId tokens_ = ir::kNone;
    ValueId position_ = ir::kNone;
    ValueId cos_ = ir::kNone;
    ValueId sin_ = ir::kNone;
    ValueId mask_ = ir::kNone;
    std::vector<std::pair<ValueId, uint32_t>> updates_;
};

/// A residual network with its gradient and in-place updates.
ir::Module training_step(int layers) {
    GraphBuilder b;
    Dim n = Dim::symbol("n");
    ValueId x = b.param({DType::kF32, {n, Dim(6)}});
    std::vector<uint32_t> indices;
    Values weights;
    auto weight = [&](ir::Shape shape) {
        indices.push_back(static_cast<uint32_t>(b.graph().params.size()));
        weights.push_back(b.param({DType::kF32, std::move(shape)}, ParamKind::kShared));
        return weights.back();
    };
    auto dot = [&](ValueId a, ValueId c) { return b.make(Op::k_dot_general, {a, c}, {{"contract", Axes{1, 0}}}); };
    for (int layer = 0; layer < layers; ++layer) {
        ValueId hidden = b.make(Op::k_tanh, {b.make(Op::k_add, {dot(x, weight({Dim(6), Dim(8)})), weight({Dim(8)})})});
        x = b.make(Op::k_add, {x, b.make(Op::k_add, {dot(hidden, weight({Dim(8), Dim(6)})), weight({Dim(6)})})});
    }
    ValueId cost = b.make(Op::k_reduce_sum, {b.make(Op::k_mul, {x, x})}, {{"axes", Axes{0, 1}}});
    auto gradients = autodiff::gradient(b, cost, weights);
    check(gradients.ok(), "gradient");
    b.output(cost);
    for (size_t i = 0; i < weights.size(); ++i) {
        ValueId step = b.make(Op::k_mul, {gradients.value()[i], b.constant(DType::kF32, 0.01)});
        b.output(b.make(Op::k_sub, {weights[i], step}), indices[i]);
    }
    ir::Module module;
    module.functions.push_back(b.take());
    return module;
}

std::vector<Tensor> inputs_of(const ir::Graph& graph) {
    std::vector<Tensor> inputs;
    for (const ir::Param& param : graph.params) {
        const TensorType& type = graph.type(param.value);
        interp::Lengths shape;
        for (Dim dim : type.shape) {
            shape.push_back(dim.is_static() ? dim.size() : 3);
        }
        Tensor tensor = interp::random_tensor(type.dtype, shape, inputs.size());
        for (int64_t i = 0; i < tensor.elements() && type.dtype == DType::kF32; ++i) {
            tensor.set(i, tensor.at_double(i) / 4);
        }
        if (type.dtype == DType::kI64) {
            for (int64_t i = 0; i < tensor.elements(); ++i) {
                tensor.set(i, (i * 3 + 2) % 5);
            }
        }
        inputs.push_back(std::move(tensor));
    }
    return inputs;
}

void expect_same_results(const ir::Module& before, const ir::Module& after, double tolerance) {
    Status verified = ir::verify(after);
    ASSERT_TRUE(verified.ok()) << verified.error().to_string();
    std::vector<Tensor> inputs = inputs_of(before.entry());
    auto wanted = interp::evaluate(before, inputs);
    auto found = interp::evaluate(after, inputs);
    ASSERT_TRUE(wanted.ok()) << wanted.error().to_string();
    ASSERT_TRUE(found.ok()) << found.error().to_string();
    ASSERT_EQ(wanted->size(), found->size());
    for (size_t k = 0; k < wanted->size(); ++k) {
        const Tensor& a = wanted.value()[k];
        const Tensor& b = found.value()[k];
        ASSERT_EQ(a.shape, b.shape) << "output " << k;
        for (int64_t i = 0; i < a.elements(); ++i) {
            ASSERT_NEAR(a.at_double(i), b.at_double(i), tolerance * (1 + std::abs(a.at_double(i)))) << "output " << k;
        }
    }
}

size_t calls_in(const ir::Graph& graph) {
    size_t calls = 0;
    for (const ir::Node& node : graph.nodes) {
        calls += node.op == Op::k_call ? 1 : 0;
    }
    return calls;
}

TEST(OutlineLayers, OneLayerStaysAsItIs) {
    ir::Module module = outline_layers(Transformer(1).build());
    EXPECT_EQ(module.functions.size(), 1);
}

TEST(OutlineLayers, OneFunctionForAnyNumberOfLayers) {
    for (int layers : {2, 3, 30}) {
        ir::Module before = Transformer(layers).build();
        ir::Module after = outline_layers(before);
        ASSERT_EQ(after.functions.size(), 2) << layers << " layers\n" << text::print(after);
        EXPECT_EQ(calls_in(after.entry()), static_cast<size_t>(layers));
        EXPECT_LT(after.entry().nodes.size(), 80 + static_cast<size_t>(layers) * 2);
        if (layers < 30) {
            expect_same_results(before, after, 0);
        }
    }
}

TEST(OutlineLayers, LayersOfTwoKinds) {
    struct Pattern {
        const char* name;
        std::function<bool(int)> wide;
    };
    const Pattern kPatterns[] = {
        {"alternating", [](int layer) { return layer % 2 == 1; }},
        {"every third", [](int layer) { return layer % 3 == 2; }},
        {"irregular", [](int layer) { return (0x9a5c3 >> (layer % 20) & 1) != 0; }},
        {"ends", [](int layer) { return layer < 4 || layer > 11; }},
    };
    for (const Pattern& pattern : kPatterns) {
        SCOPED_TRACE(pattern.name);
        ir::Module before = Transformer(16, pattern.wide).build();
        ir::Module after = outline_layers(before);
        EXPECT_GE(after.functions.size(), 2);
        EXPECT_LE(after.functions.size(), 5);
        EXPECT_LT(after.entry().nodes.size(), 200) << text::print(after);
        expect_same_results(before, after, 0);
    }
}

TEST(OutlineLayers, SharedValuesAreParametersAndConstantsAreNot) {
    ir::Module module = outline_layers(Transformer(5).build());
    const ir::Graph& layer = module.functions[1];
    for (const ir::Param& param : layer.params) {
        const ir::TensorType& type = layer.type(param.value);
        EXPECT_FALSE(type.is_scalar() && type.dtype == DType::kF32) << "a constant became a parameter";
    }
    size_t integers = 0;
    for (const ir::Param& param : layer.params) {
        integers += layer.type(param.value).dtype == DType::kI64 ? 1 : 0;
    }
    EXPECT_EQ(integers, 1);              // the position; lengths are asked for inside
    EXPECT_EQ(layer.outputs.size(), 3);  // the stream and two caches
}

TEST(OutlineLayers, Gradients) {
    for (int layers : {3, 12}) {
        ir::Module before = training_step(layers);
        ir::Module after = outline_layers(before);
        EXPECT_EQ(after.functions.size(), layers == 3 ? 1 : 3) << text::print(after);
        expect_same_results(before, after, 0);
    }
    size_t few = outline_layers(training_step(12)).functions.size();
    EXPECT_EQ(outline_layers(training_step(40)).functions.size(), few);
    EXPECT_LE(outline_layers(training_step(40)).entry().nodes.size(), 60 + 40 * 3);
}

TEST(OutlineLayers, WholePipeline) {
    for (int layers : {1, 2, 4}) {
        ir::Module before = Transformer(layers).build();
        expect_same_results(before, rewrite(before, {.verify = true}), 1e-4);
    }
    ir::Module before = training_step(4);
    expect_same_results(before, rewrite(before, {.verify = true}), 1e-4);
}

TEST(OutlineLayers, SameGraphSameResult) {
    for (int layers : {3, 8}) {
        EXPECT_EQ(text::canonical_text(rewrite(Transformer(layers).build())),
                  text::canonical_text(rewrite(Transformer(layers).build())));
        EXPECT_EQ(text::canonical_text(rewrite(training_step(layers))),
                  text::canonical_text(rewrite(training_step(layers))));
    }
}

/// Not a test of time: prints it where it is asked for.
TEST(OutlineLayers, Deep) {
    ir::Module flat = Transformer(300).build();
    size_t nodes = flat.entry().nodes.size();
    auto start = std::chrono::steady_clock::now();
    ir::Module module = rewrite(std::move(flat));
    std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
    if (std::getenv("EMBER_TIME_PASSES") != nullptr) {
        std::fprintf(stderr, "%zu nodes: %.1f ms\n", nodes, spent.count());
    }
    EXPECT_EQ(module.functions.size(), 2);
}

}  // namespace
}  // namespace ember::rewrite
