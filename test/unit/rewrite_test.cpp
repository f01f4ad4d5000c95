// Random graphs through every pass: what the reference evaluator makes of them stays the same, and they stay valid.
// Graphs mix symbols and numbers, axes of length 1, stretching, views, reductions, indexing and control flow.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "ember/autodiff/grad.h"
#include "ember/interp/evaluate.h"
#include "ember/ir/formula.h"
#include "ember/rewrite/passes.h"
#include "ember/text/parse.h"
#include "ember/text/print.h"

namespace ember::rewrite {
namespace {

using interp::Tensor;
using ir::Dim;
using ir::DType;
using ir::GraphBuilder;
using ir::NodeSpec;
using ir::Op;
using ir::TensorType;
using ir::ValueId;
using Axes = std::vector<int64_t>;
using Values = std::vector<ValueId>;

int64_t length_of(Dim dim) {
    if (dim.is_static()) {
        return dim.size();
    }
    return 4;  // also for other symbols: inference must not know, evaluation must not mind
}

class RandomGraph {
public:
    RandomGraph(uint64_t seed, int nodes) : random_(seed) {
        const ir::Shape shapes[] = {{dim_n(), dim_m()}, {dim_n()},       {Dim(1), dim_m()}, {},
                                    {Dim(4), dim_n()},  {Dim(4), Dim(2)}};
        for (const ir::Shape& shape : shapes) {
            values_.push_back(builder_.param({DType::kF64, shape}));
        }
        values_.push_back(builder_.param({DType::kI64, {dim_n()}}));
        for (double number : {0.0, 1.0, 2.0, -0.5}) {
            values_.push_back(builder_.constant(DType::kF64, number));
        }
        while (static_cast<int>(values_.size()) < nodes) {
            add_node();
        }
    }

    ir::Module take() {
        for (int k = 0; k < 4; ++k) {
            builder_.output(values_[values_.size() - 1 - pick(values_.size() / 2)]);
        }
        builder_.output(values_.back());
        ir::Module module;
        module.functions.push_back(builder_.take());
        return module;
    }

    /// A scalar that depends on much of the graph, and its gradients.
    ir::Module take_gradient() {
        ValueId cost = builder_.constant(DType::kF64, 0.0);
        for (int k = 0; k < 3; ++k) {
            ValueId x = float_value();
            ValueId bounded = builder_.make(Op::k_tanh, {x});
            cost = builder_.make(Op::k_add, {cost, reduce_all(bounded)});
        }
        Values wrt(values_.begin(), values_.begin() + 6);
        auto gradients = autodiff::gradient(builder_, cost, wrt);
        builder_.output(cost);
        for (size_t k = 0; gradients.ok() && k < wrt.size(); ++k) {
            builder_.output(gradients.value()[k]);
        }
        ir::Module module;
        module.functions.push_back(builder_.take());
        return module;
    }

private:
    static Dim dim_n() { return Dim::symbol("n"); }
    static Dim dim_m() { return Dim::symbol("m"); }
    size_t pick(size_t count) { return random_() % count; }
    ValueId any() { return values_[values_.size() - 1 - std::min(pick(values_.size()), pick(values_.size()))]; }
    const TensorType& type(ValueId value) const { return builder_.type(value); }

    ValueId value_of(DType dtype) {
        for (int tries = 0; tries < 50; ++tries) {
            ValueId value = any();
            if (type(value).dtype == dtype) {
                return value;
            }
        }
        return builder_.make(Op::k_cast, {values_[0]}, {{"dtype", dtype}});
    }
    ValueId float_value() { return value_of(DType::kF64); }
    ValueId with_rank(int low) {
        for (int tries = 0; tries < 50; ++tries) {
            ValueId value = any();
            if (type(value).rank() >= low && type(value).rank() <= 3) {
                return value;
            }
        }
        return values_[0];
    }
    int64_t random_axis(ValueId value) { return static_cast<int64_t>(pick(type(value).shape.size())); }

    ValueId reduce_all(ValueId value) {
        Axes axes;
        for (int axis = 0; axis < type(value).rank(); ++axis) {
            axes.push_back(axis);
        }
        return builder_.make(Op::k_reduce_sum, {value}, {{"axes", axes}});
    }

    /// Do dimensions that inference does not know to be equal have one length, as far as we know?
    static bool is_same_length(Dim a, Dim b) {
        auto is_known = [](Dim dim) { return dim.is_static() || dim == dim_n() || dim == dim_m(); };
        return a == b || (is_known(a) && is_known(b) && length_of(a) == length_of(b));
    }

    bool fits(const NodeSpec& spec) const {
        bool map = ir::is_map(spec.op);
        for (size_t k = 1; k < spec.operands.size() && (map || spec.op == Op::k_concat); ++k) {
            for (size_t j = 0; j < k; ++j) {
                const ir::Shape& a = type(spec.operands[j]).shape;
                const ir::Shape& b = type(spec.operands[k]).shape;
                for (size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
                    Dim x = a[a.size() - i];
                    Dim y = b[b.size() - i];
                    bool stretches = map && (x == Dim(1) || y == Dim(1));
                    bool joined =
                        !map && spec.attributes[0].value == ir::AttributeValue(static_cast<int64_t>(a.size() - i));
                    if (!stretches && !joined && !is_same_length(x, y)) {
                        return false;
                    }
                }
            }
        }
        const ir::Shape& first = type(spec.operands[0]).shape;
        return spec.op != Op::k_gather || std::find(first.begin(), first.end(), Dim(0)) == first.end();
    }

    /// What does not fit together is tried again with other operands.
    void try_add(NodeSpec spec) {
        if (!fits(spec)) {
            return;
        }
        auto results = builder_.add(std::move(spec));
        if (!results.ok()) {
            return;
        }
        for (ValueId result : results.value()) {
            int64_t elements = 1;
            for (Dim dim : type(result).shape) {
                elements *= dim.is_static() || dim == dim_n() || dim == dim_m() ? length_of(dim) : 12;
            }
            if (elements <= 400) {
                values_.push_back(result);
            }
        }
    }

    void add_node() {
        switch (pick(14)) {
            case 0:
            case 1:
                return add_unary();
            case 2:
            case 3:
            case 4:
                return add_binary();
            case 5:
                return add_choice();
            case 6:
                return add_reduction();
            case 7:
            case 8:
                return add_view();
            case 9:
                return add_slice();
            case 10:
                return add_join();
            case 11:
                return add_index();
            case 12:
                return add_contraction();
            default:
                return add_control();
        }
    }

    void add_unary() {
        const Op ops[] = {Op::k_neg,      Op::k_abs,        Op::k_square, Op::k_tanh,  Op::k_sin,         Op::k_sigmoid,
                          Op::k_softplus, Op::k_reciprocal, Op::k_exp,    Op::k_log1p, Op::k_log_sigmoid, Op::k_sign};
        try_add({ops[pick(std::size(ops))], {float_value()}});
    }

    void add_binary() {
        const Op ops[] = {Op::k_add, Op::k_sub, Op::k_mul, Op::k_max, Op::k_min, Op::k_div, Op::k_add, Op::k_mul};
        try_add({ops[pick(std::size(ops))], {float_value(), float_value()}});
    }

    void add_choice() {
        if (pick(3) == 0) {
            ValueId integer = value_of(DType::kI64);
            const Op ops[] = {Op::k_lt, Op::k_ge, Op::k_eq};
            return try_add({ops[pick(3)], {integer, builder_.constant_int(static_cast<int64_t>(pick(3)))}});
        }
        if (pick(2) == 0) {
            const DType dtypes[] = {DType::kF64, DType::kI64, DType::kF64};
            return try_add({Op::k_cast, {value_of(DType::kI64)}, {{"dtype", dtypes[pick(3)]}}});
        }
        try_add({Op::k_select, {value_of(DType::kBool), float_value(), float_value()}});
    }

    void add_reduction() {
        ValueId x = with_rank(1);
        if (type(x).dtype != DType::kF64) {
            return;
        }
        if (pick(4) == 0) {
            return try_add({Op::k_cumsum, {x}, {{"axis", random_axis(x)}}});
        }
        Axes axes;
        for (int axis = 0; axis < type(x).rank(); ++axis) {
            if (pick(2) == 0) {
                axes.push_back(axis);
            }
        }
        const Op ops[] = {Op::k_reduce_sum, Op::k_reduce_max, Op::k_reduce_min, Op::k_reduce_sum};
        try_add({ops[pick(4)], {x}, {{"axes", axes}}});
    }

    void add_view() {
        ValueId x = with_rank(0);
        size_t rank = type(x).shape.size();
        switch (pick(4)) {
            case 0: {
                Axes perm(rank);
                for (size_t i = 0; i < rank; ++i) {
                    perm[i] = static_cast<int64_t>(i);
                }
                std::shuffle(perm.begin(), perm.end(), random_);
                return try_add({Op::k_transpose, {x}, {{"perm", perm}}});
            }
            case 1: {  // axes of length 1 come and go
                Values operands = {x};
                for (size_t axis = 0; axis < rank; ++axis) {
                    if (pick(3) == 0) {
                        operands.push_back(builder_.constant_int(1));
                    }
                    if (type(x).shape[axis] != Dim(1) || pick(2) == 0) {
                        operands.push_back(builder_.dim_value(x, static_cast<int>(axis)));
                    }
                }
                return try_add({Op::k_reshape, operands});
            }
            case 2: {
                Values operands = {x};
                if (pick(2) == 0 && rank < 3) {
                    operands.push_back(builder_.constant_int(2));
                }
                for (size_t axis = 0; axis < rank; ++axis) {
                    bool one = type(x).shape[axis] == Dim(1);
                    operands.push_back(one ? builder_.dim_value(values_[0], static_cast<int>(pick(2)))
                                           : builder_.dim_value(x, static_cast<int>(axis)));
                }
                return try_add({Op::k_broadcast, operands});
            }
            default:
                if (rank > 0) {
                    try_add({Op::k_reverse, {x}, {{"axes", Axes{random_axis(x)}}}});
                }
        }
    }

    void add_slice() {
        ValueId x = with_rank(1);
        int64_t axis = random_axis(x);
        Dim dim = type(x).shape[static_cast<size_t>(axis)];
        bool known = dim.is_static() || dim == dim_n() || dim == dim_m();
        int64_t length = known ? length_of(dim) : 1;
        auto start = static_cast<int64_t>(pick(static_cast<size_t>(length) + 1));
        auto size = static_cast<int64_t>(pick(static_cast<size_t>(length - start) + 1));
        try_add({Op::k_slice,
                 {x, builder_.constant_int(start), builder_.constant_int(std::max<int64_t>(size, 0))},
                 {{"axis", axis}}});
    }

    void add_join() {
        ValueId x = with_rank(1);
        int64_t axis = random_axis(x);
        if (pick(2) == 0 && type(x).dtype == DType::kF64) {
            return try_add(
                {Op::k_pad,
                 {x, builder_.constant(DType::kF64, 0.5), builder_.constant_int(static_cast<int64_t>(pick(3))),
                  builder_.constant_int(static_cast<int64_t>(pick(2)))},
                 {{"axis", axis}}});
        }
        ValueId y = pick(2) == 0 ? x : with_rank(1);
        try_add({Op::k_concat, {x, y}, {{"axis", axis}}});
    }

    void add_index() {
        ValueId x = with_rank(1);
        if (type(x).dtype != DType::kF64) {
            return;
        }
        int64_t axis = random_axis(x);
        ValueId index = pick(2) == 0 ? builder_.constant_int(0) : value_of(DType::kI64);
        try_add({Op::k_gather,
                 {x, index},
                 {{"axes", Axes{axis}}, {"bounds", std::string(pick(2) == 0 ? "clip" : "wrap")}}});
        if (type(x).rank() == 1 && pick(2) == 0) {
            try_add(
                {Op::k_update_slice,
                 {x, builder_.make(Op::k_reshape, {values_[3], builder_.constant_int(1)}), builder_.constant_int(0)}});
        }
    }

    void add_contraction() {
        ValueId x = with_rank(1);
        ValueId y = with_rank(1);
        int64_t a = random_axis(x);
        int64_t b = random_axis(y);
        if (type(x).shape[static_cast<size_t>(a)] == type(y).shape[static_cast<size_t>(b)] &&
            type(x).dtype == DType::kF64) {
            try_add({Op::k_dot_general, {x, y}, {{"contract", Axes{a, b}}}});
        }
    }

    void add_control() {
        ValueId x = float_value();
        ValueId y = float_value();
        auto region = [&](const char* formula, bool counted) {
            GraphBuilder inner("region");
            ir::FormulaVariables variables;
            if (counted) {
                inner.param({DType::kI64, {}});
            }
            variables['x'] = inner.param(type(x));
            variables['y'] = inner.param(type(y));
            ValueId value = build_formula(inner, ir::formulas(formula)[0], variables, DType::kF64);
            inner.output(value);
            return std::make_shared<const ir::Graph>(inner.take());
        };
        if (pick(2) == 0) {
            ValueId flag = pick(3) == 0 ? builder_.constant(DType::kBool, 1.0)
                                        : builder_.make(Op::k_gt, {values_[3], builder_.constant(DType::kF64, 0.0)});
            return try_add({Op::k_if, {flag, x, y}, {}, {region("tanh(x)+0*1", false), region("sin(x)", false)}});
        }
        if (type(y).is_scalar()) {
            auto trips = static_cast<int64_t>(pick(4));
            try_add({Op::k_loop,
                     {builder_.constant_int(trips), x, y},
                     {{"carried", int64_t{1}}},
                     {region("sin(x*1+y)", true)}});
        }
    }

    std::mt19937_64 random_;
    GraphBuilder builder_;
    Values values_;
};

std::vector<Tensor> random_inputs(const ir::Graph& graph, uint64_t seed) {
    std::vector<Tensor> inputs;
    for (const ir::Param& param : graph.params) {
        const TensorType& type = graph.type(param.value);
        interp::Lengths shape;
        for (Dim dim : type.shape) {
            shape.push_back(length_of(dim));
        }
        inputs.push_back(interp::random_tensor(type.dtype, shape, seed + inputs.size()));
    }
    return inputs;
}

bool agree(double a, double b) {
    if (!std::isfinite(a) || !std::isfinite(b)) {
        return (std::isnan(a) && std::isnan(b)) || a == b;
    }
    return std::abs(a - b) <= 1e-7 * (1 + std::abs(a));
}

std::string difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
    for (size_t k = 0; k < a.size(); ++k) {
        if (a[k].shape != b[k].shape || a[k].dtype != b[k].dtype) {
            return "output " + std::to_string(k) + ": " + a[k].to_string(0) + " became " + b[k].to_string(0);
        }
        for (int64_t i = 0; i < a[k].elements(); ++i) {
            if (!agree(a[k].at_double(i), b[k].at_double(i))) {
                return "output " + std::to_string(k) + ": " + a[k].to_string() + " became " + b[k].to_string();
            }
        }
    }
    return "";
}

/// Nothing, or what is wrong after a pass.
std::string check_pass(const ir::Module& before, const ir::Module& after, const std::vector<Tensor>& wanted,
                       const std::vector<Tensor>& inputs) {
    if (Status status = ir::verify(after); !status.ok()) {
        return status.error().to_string() + "\n" + text::print(before) + text::print(after);
    }
    auto found = interp::evaluate(after, inputs);
    std::string what = found.ok() ? difference(wanted, found.value()) : found.error().to_string();
    if (what.empty()) {
        auto again = text::parse(text::print(after), "printed");
        what = again.ok() ? "" : "does not parse: " + again.error().to_string();
    }
    return what.empty() ? "" : what + "\n" + text::print(before) + "became\n" + text::print(after);
}

/// Counts the graphs that have values at all.
void check_all_passes(ir::Module module, uint64_t seed, int& evaluated) {
    std::vector<Tensor> inputs = random_inputs(module.entry(), seed);
    auto wanted = interp::evaluate(module, inputs);
    if (!wanted.ok()) {
        return;
    }
    ++evaluated;
    for (const Pass& pass : passes()) {
        ir::Module after = pass.run(module);
        std::string what = check_pass(module, after, wanted.value(), inputs);
        ASSERT_EQ(what, "") << "after " << pass.name << ", seed " << seed;
        module = std::move(after);
    }
}

TEST(Rewrite, RandomGraphs) {
    int count = std::getenv("EMBER_FUZZ_GRAPHS") != nullptr ? std::atoi(std::getenv("EMBER_FUZZ_GRAPHS")) : 300;
    int evaluated = 0;
    for (int seed = 1; seed <= count && !HasFatalFailure(); ++seed) {
        auto number = static_cast<uint64_t>(seed);
        check_all_passes(RandomGraph(number, 20 + seed % 60).take(), number, evaluated);
    }
    EXPECT_GT(evaluated, count / 2);
}

TEST(Rewrite, GradientsOfRandomGraphs) {
    int count = std::getenv("EMBER_FUZZ_GRAPHS") != nullptr ? std::atoi(std::getenv("EMBER_FUZZ_GRAPHS")) : 200;
    int evaluated = 0;
    for (int seed = 1; seed <= count && !HasFatalFailure(); ++seed) {
        auto number = static_cast<uint64_t>(seed) + 100000;
        int valid = 0;
        check_all_passes(RandomGraph(number, 20 + seed % 40).take(), number, valid);
        if (valid == 1) {
            check_all_passes(RandomGraph(number, 20 + seed % 40).take_gradient(), number, evaluated);
        }
    }
    EXPECT_GT(evaluated, count / 2);
}

TEST(Rewrite, DisabledPassesAreNotRun) {
    GraphBuilder builder;
    ValueId x = builder.param({DType::kF32, {}});
    builder.output(builder.make(Op::k_neg, {builder.make(Op::k_neg, {x})}));
    ir::Module module;
    module.functions.push_back(builder.take());
    EXPECT_EQ(rewrite(module, {.disabled = {"simplify"}}).entry().nodes.size(), 2);
    EXPECT_EQ(rewrite(module, {.verify = true}).entry().nodes.size(), 0);
}

/// Functions of unknown lengths, each calling the one before it twice.
TEST(Rewrite, InliningDoesNotExplode) {
    std::string text =
        "func @main(%x: f32[n], %k: i64[]) {\n  %a = call(%x, %k) {callee=\"f30\"} : f32[m]\n  return %a\n}\n";
    for (int i = 30; i > 0; --i) {
        std::string callee = "{callee=\"f" + std::to_string(i - 1) + "\"} : f32[m]\n";
        text += "func @f" + std::to_string(i) + "(%x: f32[n], %k: i64[]) {\n  %a = call(%x, %k) " + callee +
                "  %s = sin(%x)\n  %b = call(%s, %k) " + callee + "  %c = add(%a, %b)\n  return %c\n}\n";
    }
    text +=
        "func @f0(%x: f32[n], %k: i64[]) {\n  %z = const() {value=0} : i64[]\n"
        "  %a = slice(%x, %z, %k) {axis=0} : f32[m]\n  return %a\n}\n";
    auto module = text::parse(text, "test");
    ASSERT_TRUE(module.ok()) << module.error().to_string();
    size_t nodes = 0;
    for (const ir::Graph& function : inline_calls(std::move(module).value()).functions) {
        nodes += function.nodes.size();
    }
    EXPECT_LT(nodes, 100000);
}

/// What overflows or is 0/0 in the form that was written.
TEST(Rewrite, StableSumsOfExponentials) {
    auto module = text::parse(R"(
        func @main(%x: f32[n,m]) {
          %n = dim(%x) {axis=0}
          %one = const() {value=1} : i64[]
          %a = exp(%x)
          %b = reduce_sum(%a) {axes=[1]}
          %c = log(%b)
          %d = reshape(%b, %n, %one)
          %e = div(%a, %d)
          %f = log(%e)
          return %c, %e, %f
        })",
                              "test");
    ASSERT_TRUE(module.ok()) << module.error().to_string();
    Tensor x = interp::from_values(DType::kF32, {2, 2}, std::vector<double>{1000, 1000, -1000, -1001});
    auto results = interp::evaluate(rewrite(std::move(module).value(), {.verify = true}), {x});
    ASSERT_TRUE(results.ok()) << results.error().to_string();
    EXPECT_NEAR(results.value()[0].at_double(0), 1000 + std::log(2.0), 1e-3);
    EXPECT_NEAR(results.value()[0].at_double(1), -1000 + std::log1p(std::exp(-1.0)), 1e-3);
    EXPECT_NEAR(results.value()[1].at_double(0), 0.5, 1e-6);
    EXPECT_NEAR(results.value()[1].at_double(3), 1 / (1 + std::exp(1.0)), 1e-6);
    EXPECT_NEAR(results.value()[2].at_double(3), -std::log1p(std::exp(1.0)), 1e-5);
}

/// Also where the gradient is taken of what was written.
TEST(Rewrite, StableGradientOfLogSumExp) {
    GraphBuilder builder;
    ValueId x = builder.param({DType::kF32, {Dim::symbol("n")}});
    ValueId sum = builder.make(Op::k_reduce_sum, {builder.make(Op::k_exp, {x})}, {{"axes", Axes{0}}});
    ValueId cost = builder.make(Op::k_log, {sum});
    auto gradients = autodiff::gradient(builder, cost, Values{x});
    builder.output(cost);
    builder.output(gradients.value()[0]);
    ir::Module module;
    module.functions.push_back(builder.take());
    Tensor input = interp::from_values(DType::kF32, {3}, std::vector<double>{1000, 1000, -5});
    auto results = interp::evaluate(rewrite(std::move(module), {.verify = true}), {input});
    ASSERT_TRUE(results.ok()) << results.error().to_string();
    EXPECT_NEAR(results.value()[0].at_double(0), 1000 + std::log(2.0), 1e-3);
    EXPECT_NEAR(results.value()[1].at_double(0), 0.5, 1e-6);
    EXPECT_EQ(results.value()[1].at_double(2), 0);
}

}  // namespace
}  // namespace ember::rewrite
