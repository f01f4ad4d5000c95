// Gradients against numerical differences, for every row of the op table: maps come from the table itself, every other
// op has a case below, and a row without one fails. Each case runs with numbers and with symbols for lengths; forward
// mode is held against reverse mode.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "ember/autodiff/grad.h"
#include "ember/autodiff/reverse.h"
#include "ember/interp/evaluate.h"

namespace ember::autodiff {
namespace {

using interp::Tensor;
using ir::Dim;
using ir::DType;
using ir::Op;
using ir::TensorType;
using Values = std::vector<ValueId>;
using Tensors = std::vector<Tensor>;
using Axes = std::vector<int64_t>;

struct Range {
    double low;
    double high;
};

struct Input {
    std::vector<int64_t> shape;
    std::vector<double> values = {};  // random where empty
    DType dtype = DType::kF64;
    Range range = {0.1, 0.9};
};

Input ints(std::vector<int64_t> shape, std::vector<double> values, DType dtype = DType::kI64) {
    return {std::move(shape), std::move(values), dtype};
}

struct Case {
    std::string name;
    Op op;
    std::vector<Input> inputs;
    std::function<Values(GraphBuilder&, const Values&)> build;
};

Tensor make_tensor(const Input& input, uint64_t seed) {
    int64_t elements = 1;
    for (int64_t length : input.shape) {
        elements *= length;
    }
    std::vector<double> values = input.values;
    std::mt19937_64 random(seed);
    std::uniform_real_distribution<double> uniform(input.range.low, input.range.high);
    while (static_cast<int64_t>(values.size()) < elements) {
        values.push_back(uniform(random));
    }
    return interp::from_values(input.dtype, input.shape, values);
}

enum class Lengths { kNumbers, kSymbols };

TensorType type_of(const Tensor& tensor, Lengths lengths) {
    TensorType type{tensor.dtype, {}};
    for (int64_t length : tensor.shape) {
        bool named = lengths == Lengths::kSymbols && length > 1;
        type.shape.push_back(named ? Dim::symbol("d" + std::to_string(length)) : Dim(length));
    }
    return type;
}

Tensors run(const ir::Graph& graph, const ir::Module* module, const Tensors& inputs) {
    Status verified = ir::verify(graph, module);
    EXPECT_TRUE(verified.ok()) << verified.error().to_string();
    auto results = interp::evaluate(graph, module, inputs);
    if (!results.ok()) {
        ADD_FAILURE() << results.error().to_string();
        return {};
    }
    return std::move(results).value();
}

/// A case with its inputs, and weights that make one number of its results.
class Checked {
public:
    Checked(const Case& test, Lengths lengths, const ir::Module* module = nullptr)
        : test_(test), lengths_(lengths), module_(module) {
        for (size_t k = 0; k < test.inputs.size(); ++k) {
            inputs_.push_back(make_tensor(test.inputs[k], 7 * k + 1));
        }
        for (const Tensor& result : results()) {
            if (ir::is_float(result.dtype)) {
                weights_.push_back(make_tensor({result.shape, {}, result.dtype, {0.5, 1.5}}, 91 + weights_.size()));
            }
        }
    }

    GraphBuilder start(Values& params) const {
        GraphBuilder builder("main", module_);
        for (const Tensor& input : inputs_) {
            params.push_back(builder.param(type_of(input, lengths_)));
        }
        return builder;
    }

    Tensors results() const {
        Values params;
        GraphBuilder builder = start(params);
        for (ValueId value : test_.build(builder, params)) {
            builder.output(value);
        }
        return run(builder.take(), module_, inputs_);
    }

    bool is_finite() const {
        for (const Tensor& result : results()) {
            for (int64_t i = 0; i < result.elements(); ++i) {
                if (!std::isfinite(result.at_double(i))) {
                    return false;
                }
            }
        }
        return true;
    }

    /// The sum of all float results times their weights.
    ValueId cost(GraphBuilder& builder, const Values& params, Values& weights) const {
        ValueId sum = builder.constant(DType::kF64, 0.0);
        size_t next = 0;
        for (ValueId value : test_.build(builder, params)) {
            if (!is_real(builder, value)) {
                continue;
            }
            ValueId weight = builder.param(type_of(weights_[next++], lengths_));
            weights.push_back(weight);
            ValueId product = builder.make(Op::k_mul, {value, weight});
            Axes axes;
            for (int axis = 0; axis < builder.type(product).rank(); ++axis) {
                axes.push_back(axis);
            }
            ValueId part = builder.make(Op::k_reduce_sum, {product}, {{"axes", axes}});
            sum = builder.make(Op::k_add, {sum, builder.make(Op::k_cast, {part}, {{"dtype", DType::kF64}})});
        }
        return sum;
    }

    Tensors all_inputs() const {
        Tensors all = inputs_;
        all.insert(all.end(), weights_.begin(), weights_.end());
        return all;
    }

    std::vector<size_t> real_inputs() const {
        std::vector<size_t> which;
        for (size_t k = 0; k < inputs_.size(); ++k) {
            if (ir::is_float(inputs_[k].dtype)) {
                which.push_back(k);
            }
        }
        return which;
    }

    Values wrt(const Values& params) const {
        Values values;
        for (size_t k : real_inputs()) {
            values.push_back(params[k]);
        }
        return values;
    }

    Tensors gradients() const {
        Values params;
        Values weights;
        GraphBuilder builder = start(params);
        ValueId value = cost(builder, params, weights);
        EXPECT_TRUE(contains(builder.graph(), test_.op)) << "the case does not have its op";
        auto results = gradient(builder, value, wrt(params));
        if (!results.ok()) {
            ADD_FAILURE() << results.error().to_string();
            return {};
        }
        for (ValueId result : results.value()) {
            builder.output(result);
        }
        return run(builder.take(), module_, all_inputs());
    }

    double cost_at(size_t input, int64_t element, double step) const {
        Tensors inputs = all_inputs();
        inputs[input].set(element, inputs[input].at_double(element) + step);
        return run(*cost_graph(), module_, inputs).at(0).at_double(0);
    }

    void check_gradients(double tolerance = 1e-6) const {
        Tensors found = gradients();
        ASSERT_EQ(found.size(), real_inputs().size());
        for (size_t k = 0; k < found.size(); ++k) {
            size_t input = real_inputs()[k];
            ASSERT_EQ(found[k].shape, inputs_[input].shape) << "input " << input;
            ASSERT_EQ(found[k].dtype, inputs_[input].dtype) << "input " << input;
            for (int64_t i = 0; i < found[k].elements(); ++i) {
                double step = 1e-5;
                double expected = (cost_at(input, i, step) - cost_at(input, i, -step)) / (2 * step);
                EXPECT_NEAR(found[k].at_double(i), expected, tolerance * (1 + std::abs(expected)))
                    << "input " << input << " element " << i;
            }
        }
    }

    /// The weights' product with the tangent of the results is the tangents' product with the gradients.
    void check_forward() const {
        Values params;
        GraphBuilder builder = start(params);
        Values of;
        for (ValueId value : test_.build(builder, params)) {
            if (is_real(builder, value)) {
                of.push_back(value);
            }
        }
        Tensors inputs = inputs_;
        std::vector<Seed> seeds;
        for (size_t k : real_inputs()) {
            inputs.push_back(make_tensor({inputs_[k].shape, {}, inputs_[k].dtype, {-1, 1}}, 400 + k));
            seeds.push_back({params[k], builder.param(type_of(inputs.back(), lengths_))});
        }
        auto tangents = push_forward(builder, seeds, of);
        ASSERT_TRUE(tangents.ok()) << tangents.error().to_string();
        for (ValueId tangent : tangents.value()) {
            builder.output(tangent);
        }
        Tensors found = run(builder.take(), module_, inputs);
        Tensors reverse = gradients();
        double from_forward = 0;
        double from_reverse = 0;
        for (size_t k = 0; k < found.size(); ++k) {
            ASSERT_EQ(found[k].shape, weights_[k].shape);
            from_forward += dot(found[k], weights_[k]);
        }
        for (size_t k = 0; k < reverse.size(); ++k) {
            from_reverse += dot(reverse[k], inputs[inputs_.size() + k]);
        }
        EXPECT_NEAR(from_forward, from_reverse, 1e-9 * (1 + std::abs(from_reverse)));
    }

private:
    static double dot(const Tensor& a, const Tensor& b) {
        double sum = 0;
        for (int64_t i = 0; i < a.elements(); ++i) {
            sum += a.at_double(i) * b.at_double(i);
        }
        return sum;
    }

    static bool contains(const ir::Graph& graph, Op op) {
        for (const ir::Node& node : graph.nodes) {
            if (node.op == op) {
                return true;
            }
        }
        return false;
    }

    const ir::Graph* cost_graph() const {
        if (cost_graph_.outputs.empty()) {
            Values params;
            Values weights;
            GraphBuilder builder = start(params);
            builder.output(cost(builder, params, weights));
            cost_graph_ = builder.take();
        }
        return &cost_graph_;
    }

    const Case& test_;
    Lengths lengths_;
    const ir::Module* module_;
    Tensors inputs_;
    Tensors weights_;
    mutable ir::Graph cost_graph_;
};

constexpr Lengths kBoth[] = {Lengths::kNumbers, Lengths::kSymbols};

void check_case(const Case& test, const ir::Module* module = nullptr) {
    for (Lengths lengths : kBoth) {
        SCOPED_TRACE(test.name + (lengths == Lengths::kNumbers ? ", numbers" : ", symbols"));
        Checked checked(test, lengths, module);
        checked.check_gradients();
        if (::testing::Test::HasFatalFailure()) {
            return;
        }
        bool has_forward = !test.name.starts_with("scatter m");  // mul, max and min have no forward rule
        if (has_forward) {
            checked.check_forward();
        }
    }
}

// --- maps, from the table

constexpr Range kRanges[] = {{0.1, 0.9}, {1.1, 1.9}, {-0.9, -0.1}, {-1.9, -1.1}};

std::vector<std::vector<std::vector<int64_t>>> map_shapes(int arity) {
    if (arity == 1) {
        return {{{2, 3}}, {{}}};
    }
    if (arity == 2) {
        return {{{2, 3}, {2, 3}}, {{2, 3}, {3}}, {{2, 1}, {1, 3}}, {{}, {3}}, {{3}, {}}};
    }
    return {{{3}, {3}, {3}}, {{2, 3}, {3}, {}}, {{}, {2, 1}, {3}}};
}

bool is_differentiable_map(const ir::OpInfo& row) {
    return row.kind == ir::OpKind::kMap && row.domain != ir::Domain::kInt && row.domain != ir::Domain::kBits &&
           row.result == ir::MapResult::kSame;
}

Case map_case(int row, const std::vector<std::vector<int64_t>>& shapes, Range range) {
    Op op = static_cast<Op>(row);
    Case test{std::string(op_name(op)), op, {}, nullptr};
    for (const auto& shape : shapes) {
        bool condition = op == Op::k_select && test.inputs.empty();
        test.inputs.push_back(condition ? Input{shape, {0, 1, 1, 0, 1, 0}, DType::kBool}
                                        : Input{shape, {}, DType::kF64, range});
        if (condition) {
            size_t elements = static_cast<size_t>(make_tensor({shape}, 0).elements());
            test.inputs.back().values.resize(elements);
        }
    }
    test.build = [op](GraphBuilder& builder, const Values& params) { return Values{builder.make(op, params)}; };
    return test;
}

TEST(Autodiff, MapsOfTheTable) {
    for (int row = 0; row < ir::kOpCount; ++row) {
        if (!is_differentiable_map(ir::kOps[row]) || ir::kOps[row].derivative == "none") {
            continue;
        }
        int checked = 0;
        for (const auto& shapes : map_shapes(ir::kOps[row].min_arity)) {
            for (Range range : kRanges) {
                Case test = map_case(row, shapes, range);
                if (Checked(test, Lengths::kNumbers).is_finite()) {
                    check_case(test);
                    ++checked;
                }
            }
        }
        EXPECT_GT(checked, 0) << ir::kOps[row].name << ": no range where it is finite";
    }
}

TEST(Autodiff, DerivativesOfMapsHaveDerivatives) {
    for (int row = 0; row < ir::kOpCount; ++row) {
        Op op = static_cast<Op>(row);
        if (!is_differentiable_map(ir::kOps[row]) || ir::kOps[row].derivative == "none" || op == Op::k_lgamma) {
            continue;
        }
        std::vector<std::vector<int64_t>> shapes(static_cast<size_t>(ir::kOps[row].min_arity), {3});
        for (Range range : kRanges) {
            Case test = map_case(row, shapes, range);
            test.build = [op](GraphBuilder& builder, const Values& params) {
                ValueId value = builder.make(op, params);
                ValueId g = builder.constant(DType::kF64, 1.3);
                Seed seed{value, broadcast_like(builder, g, value)};
                Values wrt(params.begin() + (op == Op::k_select ? 1 : 0), params.end());
                auto results = pull_back(builder, {&seed, 1}, wrt);
                EXPECT_TRUE(results.ok()) << results.error().to_string();
                return results.value();
            };
            SCOPED_TRACE(test.name);
            Checked checked(test, Lengths::kSymbols);
            if (checked.is_finite()) {
                checked.check_gradients(1e-5);
            }
        }
    }
}

// --- all other rows

ValueId make(GraphBuilder& builder, Op op, Values operands, std::vector<ir::Attribute> attributes = {}) {
    return builder.make(op, std::move(operands), std::move(attributes));
}

/// An op with attributes, on all inputs.
auto plain(Op op, std::vector<ir::Attribute> attributes) {
    return [=](GraphBuilder& builder, const Values& params) { return Values{make(builder, op, params, attributes)}; };
}

/// The same with i64 scalars behind the inputs.
auto with_ints(Op op, std::vector<ir::Attribute> attributes, std::vector<int64_t> numbers) {
    return [=](GraphBuilder& builder, const Values& params) {
        Values operands = params;
        for (int64_t number : numbers) {
            operands.push_back(builder.constant_int(number));
        }
        return builder.make_node({op, operands, attributes});
    };
}

std::vector<ir::Attribute> axes(Axes list) {
    return {{"axes", std::move(list)}};
}
std::vector<ir::Attribute> axis(int64_t at) {
    return {{"axis", at}};
}
std::vector<ir::Attribute> dot(Axes contract, Axes batch = {}) {
    std::vector<ir::Attribute> attributes = {{"contract", std::move(contract)}};
    if (!batch.empty()) {
        attributes.push_back({"batch", std::move(batch)});
    }
    return attributes;
}
std::vector<ir::Attribute> scatter(Axes list, std::string mode) {
    return {{"axes", std::move(list)}, {"mode", std::move(mode)}};
}

using Body = std::function<void(GraphBuilder&)>;
std::shared_ptr<const ir::Graph> region(const Body& fill) {
    GraphBuilder builder("region");
    fill(builder);
    return std::make_shared<const ir::Graph>(builder.take());
}

TensorType f64(ir::Shape shape = {}) {
    return {DType::kF64, std::move(shape)};
}

/// carried x (3), count (i64); invariant w (3); stacked sin(x*i).
Values build_loop(GraphBuilder& builder, const Values& params, bool may_stop) {
    auto body = region([&](GraphBuilder& b) {
        ValueId i = b.param({DType::kI64, {}});
        ValueId x = b.param(f64({Dim::symbol("d3")}));
        ValueId count = b.param({DType::kI64, {}});
        ValueId w = b.param(f64({Dim::symbol("d3")}));
        ValueId step = make(b, Op::k_cast, {i}, {{"dtype", DType::kF64}});
        ValueId next = make(b, Op::k_tanh, {apply(b, "x*w+x*s", {{'x', x}, {'w', w}, {'s', step}})});
        ValueId counted = make(b, Op::k_add, {count, b.constant_int(1)});
        b.output(next);
        b.output(counted);
        b.output(apply(b, "sin(x*s)", {{'x', next}, {'s', step}}));
        if (may_stop) {
            b.output(make(b, Op::k_lt, {counted, b.constant_int(3)}));
        }
    });
    std::vector<ir::Attribute> attributes = {{"carried", int64_t{2}}};
    if (may_stop) {
        attributes.push_back({"while", int64_t{1}});
    }
    return builder.make_node(
        {Op::k_loop, {builder.constant_int(4), params[0], builder.constant_int(0), params[1]}, attributes, {body}, {}});
}

/// The gradient of a loop's results, so that its own gradient is a second derivative.
Values build_loop_gradient(GraphBuilder& builder, const Values& params) {
    Values results = build_loop(builder, params, false);
    Seed seed{results[0], make(builder, Op::k_add, {results[0], builder.constant(DType::kF64, 1.0)})};
    auto gradients = pull_back(builder, {&seed, 1}, params);
    EXPECT_TRUE(gradients.ok()) << gradients.error().to_string();
    return gradients.value();
}

/// Only stacked results: a map over steps.
Values build_stacking_loop(GraphBuilder& builder, const Values& params) {
    auto body = region([&](GraphBuilder& b) {
        ValueId i = b.param({DType::kI64, {}});
        ValueId w = b.param(f64({Dim::symbol("d3")}));
        ValueId step = make(b, Op::k_cast, {i}, {{"dtype", DType::kF64}});
        b.output(apply(b, "exp(w*s)", {{'w', w}, {'s', step}}));
    });
    return builder.make_node({Op::k_loop, {builder.constant_int(3), params[0]}, {{"carried", int64_t{0}}}, {body}, {}});
}

Values build_if(GraphBuilder& builder, const Values& params) {
    auto branch = [&](const char* formula) {
        return region([&](GraphBuilder& b) {
            ValueId x = b.param(f64({Dim::symbol("d3")}));
            ValueId y = b.param(f64({Dim::symbol("d3")}));
            b.output(apply(b, formula, {{'x', x}, {'y', y}}));
            b.output(x);
        });
    };
    return builder.make_node({Op::k_if, params, {}, {branch("x*sin(y)"), branch("exp(x)/y")}, {}});
}

ir::Module callee_module() {
    ir::Module module;
    GraphBuilder callee("callee");
    Dim k = Dim::symbol("callee_k");
    ValueId x = callee.param(f64({k}));
    ValueId y = callee.param(f64({k}));
    callee.output(apply(callee, "x*sin(y)", {{'x', x}, {'y', y}}));
    callee.output(apply(callee, "exp(x)", {{'x', x}}));
    module.functions.push_back(callee.take());
    return module;
}

Values build_call(GraphBuilder& builder, const Values& params) {
    ValueId twice = make(builder, Op::k_add, {params[0], params[0]});
    return builder.make_node({Op::k_call, {twice, params[0]}, {{"callee", std::string("callee")}}, {}, {}});
}

std::vector<Case> reduction_cases() {
    std::vector<Case> cases;
    for (Op op : {Op::k_reduce_sum, Op::k_reduce_prod, Op::k_reduce_max, Op::k_reduce_min}) {
        std::string name(op_name(op));
        cases.push_back({name, op, {{{2, 3, 4}}}, plain(op, axes({1}))});
        cases.push_back({name + " several", op, {{{2, 3, 4}}}, plain(op, axes({0, 2}))});
        cases.push_back({name + " none", op, {{{2}}}, plain(op, axes({}))});
        cases.push_back({name + " all", op, {{{2, 1}}}, plain(op, axes({0, 1}))});
    }
    cases.push_back({"one zero", Op::k_reduce_prod, {{{3}, {2, 0, 3}}}, plain(Op::k_reduce_prod, axes({0}))});
    cases.push_back({"two zeros", Op::k_reduce_prod, {{{3}, {0, 0, 3}}}, plain(Op::k_reduce_prod, axes({0}))});
    for (Op op : {Op::k_cumsum, Op::k_cumprod}) {
        cases.push_back({std::string(op_name(op)), op, {{{2, 4}}}, plain(op, axis(1))});
        cases.push_back({std::string(op_name(op)) + " first", op, {{{3, 2}}}, plain(op, axis(0))});
    }
    cases.push_back({"zero", Op::k_cumprod, {{{5}, {2, 3, 0, 4, 5}}}, plain(Op::k_cumprod, axis(0))});
    cases.push_back({"zeros", Op::k_cumprod, {{{5}, {2, 0, 3, 0, 5}}}, plain(Op::k_cumprod, axis(0))});
    return cases;
}

std::vector<Case> contraction_cases() {
    Op op = Op::k_dot_general;
    return {
        {"matrices", op, {{{2, 3}}, {{3, 4}}}, plain(op, dot({1, 0}))},
        {"right turned", op, {{{2, 3}}, {{4, 3}}}, plain(op, dot({1, 1}))},
        {"vectors", op, {{{3}}, {{3}}}, plain(op, dot({0, 0}))},
        {"outer", op, {{{2}}, {{3}}}, plain(op, dot({}))},
        {"batched", op, {{{2, 3, 4}}, {{4, 5, 2}}}, plain(op, dot({2, 0}, {0, 2}))},
        {"two batches", op, {{{3, 2, 4}}, {{2, 4, 3}}}, plain(op, dot({2, 1}, {1, 0, 0, 2}))},
        {"two contracted", op, {{{2, 3, 4}}, {{4, 5, 3}}}, plain(op, dot({1, 2, 2, 0}))},
        {"two contracted, other order", op, {{{2, 3, 4}}, {{4, 5, 3}}}, plain(op, dot({2, 0, 1, 2}))},
        {"everything", op, {{{2, 3}}, {{3, 2}}}, plain(op, dot({0, 1, 1, 0}))},
        {"attention",
         Op::k_attention,
         {{{2, 4, 3}}, {{2, 5, 3}}, {{2, 5, 2}}},
         [](GraphBuilder& builder, const Values& params) {
             Values operands = params;
             operands.push_back(builder.constant_int(1));
             return Values{builder.make(Op::k_attention, operands)};
         }},
        {"only batches", op, {{{2, 3}}, {{3, 2}}}, plain(op, dot({}, {0, 1, 1, 0}))},
    };
}

std::vector<Case> view_cases() {
    return {
        {"cast", Op::k_cast, {{{3}}}, plain(Op::k_cast, {{"dtype", DType::kF64}})},
        {"transpose", Op::k_transpose, {{{2, 3, 4}}}, plain(Op::k_transpose, {{"perm", Axes{2, 0, 1}}})},
        {"reshape", Op::k_reshape, {{{2, 6}}}, with_ints(Op::k_reshape, {}, {3, 4})},
        {"reshape scalar", Op::k_reshape, {{{1, 1}}}, with_ints(Op::k_reshape, {}, {})},
        {"broadcast", Op::k_broadcast, {{{3, 1}}}, with_ints(Op::k_broadcast, {}, {2, 3, 4})},
        {"broadcast scalar", Op::k_broadcast, {{{}}}, with_ints(Op::k_broadcast, {}, {2, 3})},
        {"slice", Op::k_slice, {{{2, 5}}}, with_ints(Op::k_slice, axis(1), {1, 3})},
        {"slice step",
         Op::k_slice,
         {{{7}}},
         with_ints(Op::k_slice, {{"axis", int64_t{0}}, {"step", int64_t{2}}}, {1, 3})},
        {"slice back",
         Op::k_slice,
         {{{2, 7}}},
         with_ints(Op::k_slice, {{"axis", int64_t{1}}, {"step", int64_t{-3}}}, {6, 3})},
        {"reverse", Op::k_reverse, {{{2, 3, 4}}}, plain(Op::k_reverse, axes({0, 2}))},
        {"pad", Op::k_pad, {{{2, 3}}, {{}}}, with_ints(Op::k_pad, axis(1), {2, 1})},
        {"pad nothing", Op::k_pad, {{{2, 3}}, {{}}}, with_ints(Op::k_pad, axis(0), {0, 0})},
        {"concat", Op::k_concat, {{{2, 3}}, {{2, 1}}, {{2, 4}}}, plain(Op::k_concat, axis(1))},
        {"concat one", Op::k_concat, {{{2, 3}}}, plain(Op::k_concat, axis(0))},
        {"split", Op::k_split, {{{2, 6}}}, with_ints(Op::k_split, axis(1), {1, 3, 2})},
        {"update_slice", Op::k_update_slice, {{{3, 4}}, {{2, 2}}}, with_ints(Op::k_update_slice, {}, {1, 2})},
        {"split, one used",
         Op::k_split,
         {{{6}}},
         [](GraphBuilder& builder, const Values& params) {
             Values sizes = {params[0], builder.constant_int(2), builder.constant_int(4)};
             return Values{builder.make_node({Op::k_split, sizes, axis(0)}).at(1)};
         }},
    };
}

std::vector<Case> index_cases() {
    Op gather = Op::k_gather;
    auto clip = [](std::vector<ir::Attribute> attributes) {
        attributes.push_back({"bounds", std::string("clip")});
        return attributes;
    };
    std::vector<Case> cases = {
        {"gather", gather, {{{4, 2}}, ints({3}, {1, 1, -1})}, plain(gather, axes({0}))},
        {"gather scalar", gather, {{{2, 4}}, ints({}, {2})}, plain(gather, axes({1}))},
        {"gather inner", gather, {{{2, 4, 3}}, ints({2, 2}, {0, 3, 3, 1})}, plain(gather, axes({1}))},
        {"gather pairs", gather, {{{2, 4, 3}}, ints({2}, {1, 1}), ints({2}, {3, 0})}, plain(gather, axes({0, 1}))},
        {"gather clip", gather, {{{4}}, ints({3}, {9, 2, -7}, DType::kI32)}, plain(gather, clip(axes({0})))},
        {"take_along",
         Op::k_take_along,
         {{{2, 3}}, ints({2, 4}, {0, 2, 2, 1, -1, 0, 0, 0})},
         plain(Op::k_take_along, axis(1))},
        {"take_along first",
         Op::k_take_along,
         {{{3, 2}}, ints({2, 2}, {0, 2, 1, 1}, DType::kI32)},
         plain(Op::k_take_along, axis(0))},
    };
    for (const char* mode : {"add", "set", "mul", "max", "min"}) {
        std::string name = "scatter " + std::string(mode);
        auto build = plain(Op::k_scatter, scatter({0}, mode));
        cases.push_back({name, Op::k_scatter, {{{4, 2}}, {{3, 2}}, ints({3}, {2, 0, 3})}, build});
        cases.push_back({name + " twice", Op::k_scatter, {{{4, 2}}, {{3, 2}}, ints({3}, {2, 2, -1})}, build});
        cases.push_back({name + " stretched", Op::k_scatter, {{{4, 2}}, {{1, 2}}, ints({3}, {2, 0, 2})}, build});
        cases.push_back({name + " pairs",
                         Op::k_scatter,
                         {{{2, 3}}, {{2}}, ints({2}, {1, 0}), ints({2}, {2, 2})},
                         plain(Op::k_scatter, scatter({0, 1}, mode))});
    }
    cases.push_back({"scatter mul zeros",
                     Op::k_scatter,
                     {{{3}, {0, 2, 0}}, {{4}, {0, 3, 4, 5}}, ints({4}, {0, 1, 2, 2})},
                     plain(Op::k_scatter, scatter({0}, "mul"))});
    return cases;
}

std::vector<Case> sorting_cases() {
    std::vector<ir::Attribute> descending = {{"axis", int64_t{0}}, {"descending", int64_t{1}}};
    auto weighted = [](GraphBuilder& builder, const Values& params) {
        return builder.make_node({Op::k_bincount, {params[0], builder.constant_int(6), params[1]}});
    };
    return {
        {"sort", Op::k_sort, {{{2, 5}}}, plain(Op::k_sort, axis(1))},
        {"sort first", Op::k_sort, {{{4, 3}}}, plain(Op::k_sort, descending)},
        {"topk", Op::k_topk, {{{2, 5}}}, with_ints(Op::k_topk, axis(1), {3})},
        {"topk of a cube", Op::k_topk, {{{2, 5, 3}}}, with_ints(Op::k_topk, axis(1), {2})},
        {"topk of none", Op::k_topk, {{{4, 2}}}, with_ints(Op::k_topk, axis(0), {0})},
        {"unique",
         Op::k_unique,
         {{{2, 3}}},
         [](GraphBuilder& builder, const Values& params) {
             return Values{builder.make_node({Op::k_unique, params})[0]};
         }},
        {"unique slices",
         Op::k_unique,
         {{{3, 4, 2}}},
         [](GraphBuilder& builder, const Values& params) {
             return Values{builder.make_node({Op::k_unique, params, axis(1)})[0]};
         }},
        {"bincount", Op::k_bincount, {ints({4}, {1, 3, 1, 0}), {{4}}}, weighted},
    };
}

std::vector<Case> control_cases() {
    auto loop = [](bool may_stop) {
        return
            [may_stop](GraphBuilder& builder, const Values& params) { return build_loop(builder, params, may_stop); };
    };
    auto asserting = [](GraphBuilder& builder, const Values& params) {
        ValueId positive = make(builder, Op::k_gt, {params[0], builder.constant(DType::kF64, 0.0)});
        return Values{make(builder, Op::k_assert, {params[0], positive}, {{"message", std::string("x > 0")}})};
    };
    return {
        {"loop", Op::k_loop, {{{3}}, {{3}}}, loop(false)},
        {"while loop", Op::k_loop, {{{3}}, {{3}}}, loop(true)},
        {"second derivative of a loop", Op::k_loop, {{{3}}, {{3}}}, build_loop_gradient},
        {"stacking loop", Op::k_loop, {{{3}}}, build_stacking_loop},
        {"if yes", Op::k_if, {ints({}, {1}, DType::kBool), {{3}}, {{3}}}, build_if},
        {"if no", Op::k_if, {ints({}, {0}, DType::kBool), {{3}}, {{3}}}, build_if},
        {"assert", Op::k_assert, {{{3}}}, asserting},
    };
}

std::vector<Case> all_cases() {
    std::vector<Case> all;
    for (auto&& cases :
         {reduction_cases(), contraction_cases(), view_cases(), index_cases(), sorting_cases(), control_cases()}) {
        all.insert(all.end(), cases.begin(), cases.end());
    }
    return all;
}

TEST(Autodiff, AllOtherOps) {
    for (const Case& test : all_cases()) {
        check_case(test);
    }
}

TEST(Autodiff, Call) {
    ir::Module module = callee_module();
    check_case({"call", Op::k_call, {{{3}}}, build_call}, &module);
}

/// Rows whose results are integers, or that do not come from operands at all.
const std::set<Op> kWithoutDerivative = {
    Op::k_const,  Op::k_iota,   Op::k_dim,     Op::k_reduce_and,   Op::k_reduce_or, Op::k_reduce_xor,
    Op::k_argmax, Op::k_argmin, Op::k_argsort, Op::k_searchsorted, Op::k_nonzero,   Op::k_host_call,
};

TEST(Autodiff, EveryRowIsCovered) {
    std::set<Op> covered = kWithoutDerivative;
    for (const Case& test : all_cases()) {
        covered.insert(test.op);
    }
    covered.insert(Op::k_call);
    for (int row = 0; row < ir::kOpCount; ++row) {
        Op op = static_cast<Op>(row);
        bool map = ir::kOps[row].kind == ir::OpKind::kMap;
        EXPECT_TRUE(map || covered.contains(op)) << ir::kOps[row].name << " has no case in this test";
        EXPECT_EQ(reverse_rule(op) == nullptr, kWithoutDerivative.contains(op)) << ir::kOps[row].name;
    }
}

TEST(Autodiff, DerivativeColumnsHaveOneFormulaAnOperand) {
    for (const ir::OpInfo& row : ir::kOps) {
        if (row.kind == ir::OpKind::kMap && row.derivative != "none") {
            EXPECT_EQ(static_cast<int>(ir::formulas(row.derivative).size()), row.min_arity) << row.name;
        }
    }
}

TEST(Autodiff, ExtremesShareEqually) {
    Case test{"ties", Op::k_reduce_max, {{{4}, {1, 3, 3, 2}}}, plain(Op::k_reduce_max, axes({0}))};
    Tensors found = Checked(test, Lengths::kNumbers).gradients();
    EXPECT_EQ(found[0].at_double(0), 0);
    EXPECT_EQ(found[0].at_double(1), found[0].at_double(2));
}

TEST(Autodiff, PowersOfZero) {
    GraphBuilder builder;
    ValueId x = builder.param(f64());
    ValueId y = builder.param(f64());
    auto results = gradient(builder, make(builder, Op::k_pow, {x, y}), Values{x, y});
    for (ValueId result : results.value()) {
        builder.output(result);
    }
    ir::Graph graph = builder.take();
    auto at = [&](double a, double b) {
        return run(graph, nullptr, {interp::scalar(DType::kF64, a), interp::scalar(DType::kF64, b)});
    };
    EXPECT_EQ(at(0, 2)[0].at_double(0), 0);
    EXPECT_EQ(at(0, 2)[1].at_double(0), 0);
    EXPECT_EQ(at(0, 0)[0].at_double(0), 0);
    EXPECT_EQ(at(0, 1)[0].at_double(0), 1);
    EXPECT_EQ(at(-2, 3)[0].at_double(0), 12);
}

TEST(Autodiff, KeepsTheDType) {
    GraphBuilder builder;
    ValueId x = builder.param({DType::kF16, {Dim(3)}});
    ValueId wide = make(builder, Op::k_cast, {make(builder, Op::k_tanh, {x})}, {{"dtype", DType::kF32}});
    ValueId cost = make(builder, Op::k_reduce_sum, {wide}, axes({0}));
    auto results = gradient(builder, cost, Values{x});
    EXPECT_EQ(builder.type(results.value()[0]).to_string(), "f16[3]");
}

TEST(Autodiff, UnconnectedValuesHaveZeros) {
    GraphBuilder builder;
    ValueId x = builder.param(f64({Dim(3)}));
    ValueId y = builder.param(f64({Dim::symbol("n")}));
    ValueId cost = make(builder, Op::k_reduce_sum, {make(builder, Op::k_floor, {x})}, axes({0}));
    auto results = gradient(builder, cost, Values{x, y});
    EXPECT_EQ(builder.type(results.value()[0]).to_string(), "f64[3]");
    EXPECT_EQ(builder.type(results.value()[1]).to_string(), "f64[n]");
}

/// Both a value and what it is made of: each gets the whole derivative.
TEST(Autodiff, IntermediateValues) {
    GraphBuilder builder;
    ValueId x = builder.param(f64());
    ValueId y = make(builder, Op::k_sin, {x});
    ValueId cost = make(builder, Op::k_mul, {y, x});
    auto results = gradient(builder, cost, Values{x, y});
    for (ValueId result : results.value()) {
        builder.output(result);
    }
    Tensors found = run(builder.take(), nullptr, {interp::scalar(DType::kF64, 0.5)});
    EXPECT_NEAR(found[0].at_double(0), std::sin(0.5) + 0.5 * std::cos(0.5), 1e-12);
    EXPECT_EQ(found[1].at_double(0), 0.5);
}

TEST(Autodiff, QuantisedWeightsPassTheGradientOn) {
    GraphBuilder builder;
    ValueId x = builder.param({DType::kF32, {Dim(2), Dim(32)}});
    ValueId w = builder.param({DType::kQ8_0, {Dim(3), Dim(32)}});
    ValueId cost =
        make(builder, Op::k_reduce_sum, {make(builder, Op::k_dot_general, {x, w}, dot({1, 1}))}, axes({0, 1}));
    auto results = gradient(builder, cost, Values{x});
    ASSERT_TRUE(results.ok()) << results.error().to_string();
    builder.output(results.value()[0]);
    Tensor weights = interp::random_tensor(DType::kQ8_0, {3, 32}, 1);
    Tensors found = run(builder.take(), nullptr, {interp::random_tensor(DType::kF32, {2, 32}, 2), weights});
    Tensor plain_weights = interp::dequantize(weights);
    for (int64_t j = 0; j < 32; ++j) {
        double sum = 0;
        for (int64_t i = 0; i < 3; ++i) {
            sum += plain_weights.at_double(i * 32 + j);
        }
        EXPECT_NEAR(found[0].at_double(j), sum, 1e-4);
    }
}

std::string error_of(const std::function<ValueId(GraphBuilder&, ValueId)>& build, TensorType type) {
    GraphBuilder builder;
    ValueId x = builder.param(std::move(type));
    auto results = gradient(builder, build(builder, x), Values{x});
    return results.ok() ? "no error" : results.error().message;
}

TEST(Autodiff, Errors) {
    EXPECT_EQ(error_of([](GraphBuilder& b, ValueId x) { return make(b, Op::k_digamma, {x}); }, f64()),
              "gradient: digamma has no derivative");
    EXPECT_EQ(error_of([](GraphBuilder&, ValueId x) { return x; }, f64({Dim(3)})),
              "gradient: the cost must be a scalar, not f64[3]");
    EXPECT_EQ(error_of([](GraphBuilder&, ValueId x) { return x; }, {DType::kI64, {}}),
              "gradient: the cost must be a float tensor, not i64[]");
    EXPECT_EQ(error_of([](GraphBuilder& b, ValueId x) { return make(b, Op::k_cast, {x}, {{"dtype", DType::kF64}}); },
                       {DType::kI64, {}}),
              "gradient: a variable must be a float tensor, not i64[]");
    EXPECT_EQ(error_of(
                  [](GraphBuilder& b, ValueId x) {
                      return b.make_node({Op::k_host_call, {x}, {{"id", std::string("f")}}, {}, {f64()}}).at(0);
                  },
                  f64()),
              "gradient: host_call f has no derivative");
    EXPECT_EQ(error_of(
                  [](GraphBuilder& b, ValueId x) {
                      ValueId c = make(b, Op::k_cast, {x}, {{"dtype", DType::kC128}});
                      ValueId product = make(b, Op::k_mul, {c, c});
                      ValueId r =
                          b.make_node({Op::k_host_call, {product}, {{"id", std::string("re")}}, {}, {f64()}}).at(0);
                      return r;
                  },
                  f64()),
              "gradient: host_call re has no derivative");
}

}  // namespace
}  // namespace ember::autodiff
