// Tests of the public API's graphs: every op that ops.h offers on known numbers, shapes known and unknown, errors and
// what they name, control flow, derivatives. Tensors and functions: api_function_test.cpp.
#include "api_testing.h"

#include <cmath>
#include <cstring>
#include <future>
#include <limits>
#include <numeric>

namespace ember {
namespace {

using testing::expect_error;
using testing::on;
using testing::Shape;
using testing::value;
using testing::values;

constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor counted(Shape shape) {
    Tensor made = Tensor::empty(DType::kF32, std::move(shape));
    std::iota(made.data_as<float>(), made.data_as<float>() + made.size(), 0.0F);
    return made;
}

using Floats = std::vector<float>;
using Ints = std::vector<int64_t>;

template <class F>
Floats floats_on(const Tensor& x, const F& f) {
    return on(x, f).template to_vector<float>();
}

/// One function of the API for each map of the op table, and what it gives for these operands.
// Long because it is a table.
TEST(Maps, EveryOneIsReachable) {
    Variable x = constant(0.25);
    Variable y = constant(2.0);
    Variable i = constant(int64_t{-7});
    Variable j = constant(int64_t{2});
    struct Case {
        Variable made;
        double expected;
    };
    for (const Case& c : std::vector<Case>{{neg(x), -0.25},
                                           {abs(-x), 0.25},
                                           {sign(-x), -1},
                                           {x + y, 2.25},
                                           {x - y, -1.75},
                                           {x * y, 0.5},
                                           {x / y, 0.125},
                                           {floor_div(-x, y), -1},
                                           {mod(-x, y), 1.75},
                                           {fmod(-x, y), -0.25},
                                           {pow(y, 3), 8},
                                           {max(x, y), 2},
                                           {min(x, y), 0.25},
                                           {clamp(y, 0, 1), 1},
                                           {square(x), 0.0625},
                                           {reciprocal(x), 4},
                                           {fma(x, y, 1), 1.5},
                                           {copysign(x, -1), -0.25},
                                           {hypot(3, y + 2), 5},
                                           {floor(x), 0},
                                           {ceil(x), 1},
                                           {trunc(-x), 0},
                                           {round(y + 0.5), 2},
                                           {round_away(y + 0.5), 3},
                                           {sqrt(x), 0.5},
                                           {rsqrt(x), 2},
                                           {cbrt(y * 4), 2},
                                           {exp(x), std::exp(0.25)},
                                           {exp2(y), 4},
                                           {expm1(x), std::expm1(0.25)},
                                           {log(x), std::log(0.25)},
                                           {log2(x), -2},
                                           {log10(x), std::log10(0.25)},
                                           {log1p(x), std::log1p(0.25)},
                                           {logaddexp(x, y), std::log(std::exp(0.25) + std::exp(2.0))},
                                           {sigmoid(x), 1 / (1 + std::exp(-0.25))},
                                           {softplus(x), std::log1p(std::exp(0.25))},
                                           {log_sigmoid(x), -std::log1p(std::exp(-0.25))},
                                           {sin(x), std::sin(0.25)},
                                           {cos(x), std::cos(0.25)},
                                           {tan(x), std::tan(0.25)},
                                           {asin(x), std::asin(0.25)},
                                           {acos(x), std::acos(0.25)},
                                           {atan(x), std::atan(0.25)},
                                           {atan2(x, y), std::atan2(0.25, 2.0)},
                                           {sinh(x), std::sinh(0.25)},
                                           {cosh(x), std::cosh(0.25)},
                                           {tanh(x), std::tanh(0.25)},
                                           {asinh(x), std::asinh(0.25)},
                                           {acosh(y), std::acosh(2.0)},
                                           {atanh(x), std::atanh(0.25)},
                                           {erf(x), std::erf(0.25)},
                                           {erfc(x), std::erfc(0.25)},
                                           {erf(erfinv(x)), 0.25},
                                           {erfc(erfcinv(x)), 0.25},
                                           {lgamma(x), std::lgamma(0.25)},
                                           {digamma(y), 0.42278433509846714},
                                           {relu(-x), 0},
                                           {select(gt(x, y), x, y), 2},
                                           {cast(eq(x, 0.25), DType::kF64), 1},
                                           {cast(ne(x, 0.25), DType::kF64), 0},
                                           {cast(x < y, DType::kF64), 1},
                                           {cast(x <= y, DType::kF64), 1},
                                           {cast(x > y, DType::kF64), 0},
                                           {cast(x >= y, DType::kF64), 0},
                                           {cast(is_nan(x), DType::kF64), 0},
                                           {cast(is_inf(x / 0), DType::kF64), 1},
                                           {cast(is_finite(x), DType::kF64), 1},
                                           {cast(bit_and(i, 12), DType::kF64), 8},
                                           {cast(bit_or(j, 12), DType::kF64), 14},
                                           {cast(bit_xor(j, 3), DType::kF64), 1},
                                           {cast(bit_not(j), DType::kF64), -3},
                                           {cast(shift_left(j, 3), DType::kF64), 16},
                                           {cast(shift_right(i, 1), DType::kF64), -4}}) {
        EXPECT_NEAR(value(c.made).item<double>(), c.expected, 1e-13 * std::max(1.0, std::abs(c.expected)));
    }
}

TEST(Maps, EveryDType) {
    for (DType dtype : {DType::kI8, DType::kI16, DType::kI32, DType::kI64, DType::kU8, DType::kU16, DType::kU32,
                        DType::kU64, DType::kF16, DType::kBF16, DType::kF32, DType::kF64}) {
        Variable x = full({3}, dtype, 5);
        Variable sum = cast(reduce_sum(x * 2 + 1), DType::kF64);
        EXPECT_EQ(value(sum).item<double>(), 33) << dtype_name(dtype);
    }
    EXPECT_EQ(values<bool>(constant(true) + false), std::vector<bool>{true});
    EXPECT_EQ(value(constant(DType::kU64, std::numeric_limits<uint64_t>::max())).item<uint64_t>(),
              std::numeric_limits<uint64_t>::max());
    EXPECT_EQ(value(constant(uint64_t{1}) * (uint64_t{1} << 63)).item<uint64_t>(), uint64_t{1} << 63);
    Tensor half = Tensor::from<float>({1.5F, -2, kInf}).cast(DType::kF16);
    EXPECT_EQ(on(half, [](const Variable& x) { return x * 2; }).cast(DType::kF32).to_vector<float>(),
              (Floats{3, -4, kInf}));
}

TEST(Maps, Broadcast) {
    Variable row = constant(Tensor::from<float>({1, 2, 3}, {1, 3}));
    Variable column = constant(Tensor::from<float>({10, 20}, {2, 1}));
    EXPECT_EQ(value(row + column).to_vector<float>(), (Floats{11, 12, 13, 21, 22, 23}));
    // A symbol's length that turns out to be another is an error of the call.
    Variable x = input({DType::kF32, {"n"}});
    Variable y = input({DType::kF32, {"m"}});
    Function f = function({x, y}, x + y);
    EXPECT_EQ(f(counted({2}), counted({2}))[0].to_vector<float>(), (Floats{0, 2}));
    expect_error(ErrorCode::kShape, {"add", "3", "2"}, [&] { f(counted({3}), counted({2})); });
}

TEST(Maps, ErrorsNameOpAndOperands) {
    Variable x = input({DType::kF32, {"n", 4}});
    Variable i = input({DType::kI32, {5}});
    expect_error(ErrorCode::kType, {"add", "f32[n,4]", "i32[5]"}, [&] { x + i; });
    expect_error(ErrorCode::kShape, {"mul", "f32[n,4]", "f32[5]"}, [&] { x* cast(i, DType::kF32); });
    expect_error(ErrorCode::kType, {"exp", "i32[5]"}, [&] { exp(i); });
    expect_error(ErrorCode::kType, {"div", "i32[5]"}, [&] { i / i; });
    expect_error(ErrorCode::kType, {"add", "0.5", "i32"}, [&] { i + 0.5; });
    expect_error(ErrorCode::kType, {"add", "300", "u8"}, [&] { cast(i, DType::kU8) + 300; });
    expect_error(ErrorCode::kType, {"add", "-1", "u8"}, [&] { cast(i, DType::kU8) + -1; });
    expect_error(ErrorCode::kType, {"mean", "i32[5]"}, [&] { mean(i); });
    expect_error(ErrorCode::kType, {"constant", "q8_0"}, [&] { constant(DType::kQ8_0, 1); });
    expect_error(ErrorCode::kInvalidArgument, {"constant", "f32[n,4]"}, [&] { constant(DType::kF32, x); });
}

TEST(Reductions, AxesAndKeptAxes) {
    Tensor x = counted({2, 3});
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return sum(v); }), (Floats{15}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return sum(v, 0); }), (Floats{3, 5, 7}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return sum(v, -1); }), (Floats{3, 12}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return sum(v, Axes{1, 0}); }), (Floats{15}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return sum(v, Axes(std::vector<int64_t>{})); }),
              (Floats{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(on(x, [](const Variable& v) { return sum(v, 1, KeepAxes::kYes); }).shape(), (Shape{2, 1}));
    EXPECT_EQ(on(x, [](const Variable& v) { return logsumexp(v, 0, KeepAxes::kYes); }).shape(), (Shape{1, 3}));
    EXPECT_EQ(on(x, [](const Variable& v) { return logsumexp(v, 0); }).shape(), (Shape{3}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return prod(v + 1, 1); }), (Floats{6, 120}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return reduce_max(v, 1); }), (Floats{2, 5}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return reduce_min(v, 1); }), (Floats{0, 3}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return mean(v, 1); }), (Floats{1, 4}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return var(v, 1, KeepAxes::kNo, 1); }), (Floats{1, 1}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return var(v, 0); }), (Floats{2.25, 2.25, 2.25}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return stddev(v, 0); }), (Floats{1.5, 1.5, 1.5}));
    EXPECT_EQ(on(x, [](const Variable& v) { return argmax(v, -1); }).to_vector<int64_t>(), (Ints{2, 2}));
    EXPECT_EQ(on(x, [](const Variable& v) { return argmin(v, 0); }).to_vector<int64_t>(), (Ints{0, 0, 0}));
    EXPECT_EQ(on(x, [](const Variable& v) { return argmax(v); }).item<int64_t>(), 5);
    EXPECT_EQ(on(x, [](const Variable& v) { return argmin(v); }).item<int64_t>(), 0);
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return cumsum(v, 1); }), (Floats{0, 1, 3, 3, 7, 12}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return cumprod(v + 1, 0); }), (Floats{1, 2, 3, 4, 10, 18}));
    EXPECT_EQ(on(x, [](const Variable& v) { return all(v, 1); }).to_vector<bool>(), (std::vector<bool>{false, true}));
    EXPECT_TRUE(on(x, [](const Variable& v) { return any(v > 4); }).item<bool>());
    EXPECT_EQ(on(Tensor::from<int32_t>({6, 3}), [](const Variable& v) { return reduce_xor(v); }).item<int32_t>(), 5);
    EXPECT_EQ(on(Tensor::from<int32_t>({6, 3}), [](const Variable& v) { return reduce_and(v); }).item<int32_t>(), 2);
    EXPECT_EQ(on(Tensor::from<int32_t>({6, 3}), [](const Variable& v) { return reduce_or(v); }).item<int32_t>(), 7);
    Variable v = input({DType::kF32, {2, 3}});
    expect_error(ErrorCode::kIndex, {"reduce_sum", "axis 2"}, [&] { sum(v, 2); });
    expect_error(ErrorCode::kShape, {"reduce_sum", "f32[2,3]"}, [&] { sum(v, Axes{1, -1}); });
}

TEST(Reductions, LargeAndInfinite) {
    Tensor x = Tensor::from<float>({1000, 1000, -kInf, -kInf, kInf, 0}, {3, 2});
    Floats sums = floats_on(x, [](const Variable& v) { return logsumexp(v, 1); });
    EXPECT_FLOAT_EQ(sums[0], 1000.6931472F);
    EXPECT_EQ(sums[1], -kInf);
    EXPECT_EQ(sums[2], kInf);
    Tensor rows = Tensor::from<float>({1000, 1000, -1000, 1000}, {2, 2});
    EXPECT_EQ(floats_on(rows, [](const Variable& v) { return softmax(v); }), (Floats{0.5, 0.5, 0, 1}));
    Floats logs = floats_on(rows, [](const Variable& v) { return log_softmax(v, 1); });
    EXPECT_FLOAT_EQ(logs[0], -0.6931472F);
    EXPECT_EQ(logs[2], -2000);
}

TEST(Reductions, OfNothing) {
    Tensor x = Tensor::empty(DType::kF32, {0, 3});
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return sum(v, 0); }), (Floats{0, 0, 0}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return prod(v); }), (Floats{1}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return logsumexp(v); }), (Floats{-kInf}));
    EXPECT_TRUE(std::isnan(on(x, [](const Variable& v) { return mean(v); }).item<float>()));
    EXPECT_EQ(on(x, [](const Variable& v) { return softmax(exp(v)); }).shape(), (Shape{0, 3}));
    Variable v = input({DType::kF32, {"n"}});
    Function f = function({v}, argmax(v));
    EXPECT_THROW(f(Tensor::empty(DType::kF32, {0})), Error);
}

TEST(Contractions, Products) {
    Tensor x = counted({2, 3});
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return dot(v, transpose(v)); }), (Floats{5, 14, 14, 50}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return dot(v, at(v, 0)); }), (Floats{5, 14}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return dot(at(v, 1), at(v, 1)); }), (Floats{50}));
    EXPECT_EQ(floats_on(counted({2, 2, 1}), [](const Variable& v) { return dot(v, transpose(v, {0, 2, 1})); }),
              (Floats{0, 0, 0, 1, 4, 6, 6, 9}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return dot_general(v, v, {{-1, -1}}, {{0, 0}}); }), (Floats{5, 50}));
    Variable a = input({DType::kF32, {2, 3}});
    Variable b = input({DType::kF32, {2, 3, 4, 5}});
    expect_error(ErrorCode::kShape, {"dot", "f32[2,3]", "f32[2,3,4,5]"}, [&] { dot(a, b); });
    expect_error(ErrorCode::kShape, {"dot_general", "f32[2,3]"}, [&] { dot(a, a); });
    expect_error(ErrorCode::kShape, {"dot", "f32[]"}, [&] { dot(sum(a), a); });
}

TEST(Shapes, Views) {
    Tensor x = counted({2, 3});
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return transpose(v); }), (Floats{0, 3, 1, 4, 2, 5}));
    EXPECT_EQ(on(x, [](const Variable& v) { return reshape(v, {3, -1}); }).shape(), (Shape{3, 2}));
    EXPECT_EQ(on(x, [](const Variable& v) { return expand_dims(v, -1); }).shape(), (Shape{2, 3, 1}));
    EXPECT_EQ(on(counted({1, 3}), [](const Variable& v) { return squeeze(v, 0); }).shape(), (Shape{3}));
    EXPECT_EQ(on(x, [](const Variable& v) { return broadcast_to(v, {4, dim(v, 0), dim(v, 1)}); }).shape(),
              (Shape{4, 2, 3}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return reverse(v, 1); }), (Floats{2, 1, 0, 5, 4, 3}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return reverse(v); }), (Floats{5, 4, 3, 2, 1, 0}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return pad(v, 0, 9, 1, 0); }), (Floats{9, 9, 9, 0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(on(x, [](const Variable& v) { return concat({v, v}, -1); }).shape(), (Shape{2, 6}));
    EXPECT_EQ(on(x, [](const Variable& v) { return stack({v, v, v}, 1); }).shape(), (Shape{2, 3, 3}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return split(v, {1, dim(v, 1) - 1}, 1)[1]; }), (Floats{1, 2, 4, 5}));
    EXPECT_EQ(on(x, [](const Variable& v) { return iota(dim(v, 1)); }).to_vector<int64_t>(), (Ints{0, 1, 2}));
    EXPECT_EQ(value(full({2, 2}, DType::kI64, (int64_t{1} << 62) + 1)).to_vector<int64_t>()[3], (int64_t{1} << 62) + 1);
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return full({2}, DType::kF32, dim(v, 1)); }), (Floats{3, 3}));
    Variable v = input({DType::kF32, {2, 3}});
    expect_error(ErrorCode::kShape, {"squeeze", "f32[2,3]"}, [&] { squeeze(v, 1); });
    expect_error(ErrorCode::kShape, {"reshape", "f32[2,3]"}, [&] { reshape(v, {4, -1}); });
    expect_error(ErrorCode::kShape, {"-1"}, [&] { reshape(v, {-1, -1}); });
    expect_error(ErrorCode::kInvalidArgument, {"concat"}, [&] { concat({}, 0); });
    expect_error(ErrorCode::kShape, {"concat", "f32[2,3]"}, [&] { concat({v, transpose(v)}, 0); });
    expect_error(ErrorCode::kIndex, {"expand_dims", "axis 4"}, [&] { expand_dims(v, 4); });
}

/// Every range of a short axis, against Python's rules.
TEST(Shapes, Ranges) {
    constexpr int64_t kLength = 4;
    auto expected = [](std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step) {
        int64_t low = step < 0 ? -1 : 0;
        int64_t high = step < 0 ? kLength - 1 : kLength;
        auto place = [&](std::optional<int64_t> at, int64_t absent) {
            return at ? std::clamp(*at < 0 ? *at + kLength : *at, low, high) : absent;
        };
        Floats picked;
        int64_t end = place(stop, step < 0 ? low : high);
        for (int64_t i = place(start, step < 0 ? high : low); step < 0 ? i > end : i < end; i += step) {
            picked.push_back(static_cast<float>(i));
        }
        return picked;
    };
    std::vector<std::optional<int64_t>> places{std::nullopt};
    for (int64_t at = -6; at <= 6; ++at) {
        places.emplace_back(at);
    }
    Variable n = input({DType::kF32, {"n"}});
    Variable known = input({DType::kF32, {kLength}});
    Variable first = input({DType::kI64});
    Variable last = input({DType::kI64});
    for (int64_t step : {1, 2, 3, -1, -2, -5}) {
        Function dynamic = function({n, first, last}, slice(n, 0, Range{first, last, step}));
        std::vector<Variable> some;
        std::vector<Floats> wanted;
        for (const auto& start : places) {
            for (const auto& stop : places) {
                Floats picked = expected(start, stop, step);
                Range range{{}, {}, step};
                range.start = start ? std::optional<Operand>(*start) : std::nullopt;
                range.stop = stop ? std::optional<Operand>(*stop) : std::nullopt;
                if (start.value_or(9) % 3 == 0 && stop.value_or(9) % 2 != 0) {
                    some.push_back(slice(known, 0, range));
                    some.push_back(slice(n, 0, range));
                    wanted.insert(wanted.end(), 2, picked);
                }
                if (start && stop) {
                    EXPECT_EQ(dynamic(counted({kLength}), Tensor::scalar(*start), Tensor::scalar(*stop))[0]
                                  .to_vector<float>(),
                              picked)
                        << *start << ":" << *stop << ":" << step;
                }
            }
        }
        std::vector<Tensor> found = function({known, n}, some)(counted({kLength}), counted({kLength}));
        for (size_t k = 0; k < found.size(); ++k) {
            EXPECT_EQ(found[k].to_vector<float>(), wanted[k]) << k;
        }
    }
    expect_error(ErrorCode::kInvalidArgument, {"slice", "step"}, [&] { slice(n, 0, Range{{}, {}, 0}); });
}

TEST(Shapes, Slices) {
    Tensor x = counted({5});
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return slice(v, 0, 1, 2, 2); }), (Floats{1, 3}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return slice(v, 0, 4, 3, -2); }), (Floats{4, 2, 0}));
    EXPECT_EQ(floats_on(x, [](const Variable& v) { return slice(v, 0, 5, 0); }), (Floats{}));
    Variable v = input({DType::kF32, {"n"}});
    Function f = function({v}, slice(v, 0, 3, 2));
    expect_error(ErrorCode::kIndex, {"slice"}, [&] { f(counted({4})); });
}

TEST(Indices, GatherAndScatter) {
    Tensor x = counted({3, 2});
    Variable rows = constant(Tensor::from<int64_t>({2, -3}));
    EXPECT_EQ(floats_on(x, [&](const Variable& v) { return gather(v, rows); }), (Floats{4, 5, 0, 1}));
    EXPECT_EQ(floats_on(x, [&](const Variable& v) { return gather(v, rows, 1, Bounds::kWrap); }),
              (Floats{0, 1, 2, 3, 4, 5}));
    EXPECT_EQ(floats_on(x, [&](const Variable& v) { return gather(v, rows, 1, Bounds::kClip); }),
              (Floats{1, 0, 3, 2, 5, 4}));
    Variable columns = constant(Tensor::from<int64_t>({1, 0}));
    EXPECT_EQ(floats_on(x, [&](const Variable& v) { return gather(v, {rows, columns}, {0, 1}); }), (Floats{5, 0}));
    EXPECT_EQ(floats_on(x, [&](const Variable& v) { return at(v, -1); }), (Floats{4, 5}));
    EXPECT_EQ(floats_on(x, [&](const Variable& v) { return at(v, dim(v, 1) - 1, 1); }), (Floats{1, 3, 5}));
    Variable updates = constant(Tensor::from<float>({10, 20, 30, 40}, {2, 2}));
    Variable twice = constant(Tensor::from<int32_t>({1, 1}));
    auto scattered = [&](ScatterMode mode) {
        return floats_on(x, [&](const Variable& v) { return scatter(v, updates, {twice}, {0}, mode); });
    };
    EXPECT_EQ(scattered(ScatterMode::kAdd), (Floats{0, 1, 42, 63, 4, 5}));
    EXPECT_EQ(scattered(ScatterMode::kSet), (Floats{0, 1, 30, 40, 4, 5}));
    EXPECT_EQ(scattered(ScatterMode::kMul), (Floats{0, 1, 600, 2400, 4, 5}));
    EXPECT_EQ(scattered(ScatterMode::kMax), (Floats{0, 1, 30, 40, 4, 5}));
    EXPECT_EQ(scattered(ScatterMode::kMin), (Floats{0, 1, 2, 3, 4, 5}));
    Variable order = constant(Tensor::from<int64_t>({1, 0, 0, 0, 1, 1}, {3, 2}));
    EXPECT_EQ(floats_on(x, [&](const Variable& v) { return take_along(v, order, 1); }), (Floats{1, 0, 2, 2, 5, 5}));
    Variable block = constant(Tensor::from<float>({7, 8}, {1, 2}));
    EXPECT_EQ(floats_on(x, [&](const Variable& v) { return update_slice(v, block, {dim(v, 0) - 1, 0}); }),
              (Floats{0, 1, 2, 3, 7, 8}));
    Variable v = input({DType::kF32, {"n"}});
    Variable i = input({DType::kI64, {"k"}});
    Function f = function({v, i}, gather(v, i));
    expect_error(ErrorCode::kIndex, {"gather", "3"}, [&] { f(counted({3}), Tensor::from<int64_t>({0, 3})); });
    expect_error(ErrorCode::kIndex, {"gather"}, [&] { f(counted({0}), Tensor::from<int64_t>({0})); });
    EXPECT_EQ(f(counted({0}), Tensor::empty(DType::kI64, {0}))[0].size(), 0);
    expect_error(ErrorCode::kType, {"gather", "f32[n]"}, [&] { gather(v, v); });
}

TEST(Control, If) {
    Variable x = input({DType::kF32, {"n"}});
    Variable which = input({DType::kBool});
    std::vector<Variable> chosen = if_(
        which, [&] { return std::vector<Variable>{exp(x) * 0 + 1, sum(x)}; },
        [&] { return std::vector<Variable>{x - 1, constant(7.0F)}; });
    Function f = function({x, which}, chosen);
    EXPECT_EQ(f(counted({2}), Tensor::scalar(true))[0].to_vector<float>(), (Floats{1, 1}));
    EXPECT_EQ(f(counted({2}), Tensor::scalar(true))[1].item<float>(), 1);
    EXPECT_EQ(f(counted({2}), Tensor::scalar(false))[0].to_vector<float>(), (Floats{-1, 0}));
    EXPECT_EQ(f(counted({2}), Tensor::scalar(false))[1].item<float>(), 7);
    auto none = [] { return std::vector<Variable>{}; };
    expect_error(ErrorCode::kType, {"if"}, [&] { if_(sum(x), none, none); });
    EXPECT_THROW(if_(which, [&] { return std::vector<Variable>{x}; }, none), Error);
}

TEST(Control, Loops) {
    Variable n = input({DType::kI64});
    Variable step = input({DType::kF32});
    // A scan over rows, with a value from outside.
    Variable rows = constant(counted({4, 2}));
    LoopResult scan = loop(4, {full({2}, DType::kF32, 0)}, [&](const Variable& round, const auto& carried) {
        Variable next = carried[0] + at(rows, round) * step;
        return LoopStep{{next}, {next * 2}};
    });
    Function f = function({step}, {scan.carried[0], scan.stacked[0]});
    EXPECT_EQ(f(Tensor::scalar(1.0F))[0].to_vector<float>(), (Floats{12, 16}));
    EXPECT_EQ(f(Tensor::scalar(1.0F))[1].shape(), (Shape{4, 2}));
    EXPECT_EQ(f(Tensor::scalar(0.5F))[1].to_vector<float>()[6], 12);
    // As long as a condition holds.
    LoopResult search = loop(n, {constant(1.0F)}, [&](const Variable&, const auto& carried) {
        Variable next = carried[0] * 2;
        return LoopStep{{next}, {next}, next < 100};
    });
    Function g = function({n}, {search.carried[0], search.stacked[0]});
    EXPECT_EQ(g(Tensor::scalar(int64_t{50}))[0].item<float>(), 128);
    EXPECT_EQ(g(Tensor::scalar(int64_t{50}))[1].shape(), (Shape{7}));
    EXPECT_EQ(g(Tensor::scalar(int64_t{3}))[0].item<float>(), 8);
    EXPECT_EQ(g(Tensor::scalar(int64_t{0}))[1].shape(), (Shape{0}));
    expect_error(ErrorCode::kInvalidArgument, {"loop", "1", "2"},
                 [&] { loop(n, {step}, [](const Variable&, const auto& c) { return LoopStep{{c[0], c[0]}}; }); });
    expect_error(ErrorCode::kType, {"loop"},
                 [&] { loop(n, {step}, [](const Variable& round, const auto&) { return LoopStep{{round}}; }); });
}

TEST(Control, Assert) {
    Variable x = input({DType::kF32, {"n"}});
    Function f = function({x}, assert_that(x, {x > 0}, "x must be positive"));
    EXPECT_EQ(f(Tensor::from<float>({1, 2}))[0].to_vector<float>(), (Floats{1, 2}));
    expect_error(ErrorCode::kAssert, {"x must be positive"}, [&] { f(Tensor::from<float>({1, 0})); });
}

/// Central differences of an f64 function of one tensor.
void expect_gradient(const Tensor& at, const std::function<Variable(const Variable&)>& cost) {
    Variable x = input({DType::kF64, {at.shape().begin(), at.shape().end()}});
    Function f = function({x}, {cost(x), grad(cost(x), x)});
    std::vector<double> found = f(at)[1].to_vector<double>();
    for (int64_t i = 0; i < at.size(); ++i) {
        constexpr double kStep = 1e-5;
        auto moved = [&](double by) {
            Tensor there = at.copy();
            there.data_as<double>()[i] += by;
            return f(there)[0].item<double>();
        };
        EXPECT_NEAR(found[static_cast<size_t>(i)], (moved(kStep) - moved(-kStep)) / (2 * kStep), 1e-6) << i;
    }
}

TEST(Derivatives, AgreeWithDifferences) {
    Tensor x = Tensor::from<double>({0.3, -0.7, 1.1, 0.9, -0.2, 0.4}, {2, 3});
    expect_gradient(x, [](const Variable& v) { return sum(softmax(v) * log_softmax(v)); });
    expect_gradient(x, [](const Variable& v) { return logsumexp(v) + sum(var(v, 1)) + stddev(v); });
    expect_gradient(x, [](const Variable& v) { return sum(tanh(dot(v, transpose(v)))); });
    expect_gradient(x, [](const Variable& v) { return sum(square(slice(v, 1, Range{.start = -1, .step = -2}))); });
    expect_gradient(x, [](const Variable& v) {
        LoopResult made = loop(3, {at(v, 0)}, [&](const Variable&, const auto& carried) {
            return LoopStep{{sin(carried[0] + at(v, 1))}, {carried[0]}};
        });
        return sum(made.carried[0]) + sum(square(made.stacked[0]));
    });
    expect_gradient(x, [](const Variable& v) {
        auto yes = [&] { return std::vector<Variable>{exp(v)}; };
        auto no = [&] { return std::vector<Variable>{v}; };
        return sum(if_(sum(v) > 0, yes, no)[0]);
    });
}

TEST(Derivatives, VectorProducts) {
    Variable x = input({DType::kF64, {2}});
    Variable y = x * x * constant(Tensor::from<double>({1, 10}));
    Variable u = constant(Tensor::from<double>({3, 5}));
    Function f = function({x}, {pull_back({y}, {u}, {x})[0], push_forward({y}, {x}, {u})[0]});
    std::vector<Tensor> made = f(Tensor::from<double>({1, 2}));
    EXPECT_EQ(made[0].to_vector<double>(), (std::vector<double>{6, 200}));
    EXPECT_EQ(made[1].to_vector<double>(), (std::vector<double>{6, 200}));
    expect_error(ErrorCode::kInvalidArgument, {"pull_back"}, [&] { pull_back({y}, {}, {x}); });
    expect_error(ErrorCode::kShape, {"push_forward", "f64[2]", "f64[]"}, [&] { push_forward({y}, {x}, {sum(u)}); });
    expect_error(ErrorCode::kShape, {"f64[2]"}, [&] { grad(y, x); });
    expect_error(ErrorCode::kType, {"i64"}, [&] { grad(sum(cast(y, DType::kI64)), x); });
    expect_error(ErrorCode::kUnsupported, {"digamma"}, [&] { grad(sum(digamma(x)), x); });
    EXPECT_EQ(value(grad(constant(2.0), constant(3.0))).item<double>(), 0);
}

/// A graph that one thread wrote is used by another: numbers and constants come along, other variables do not.
TEST(Graphs, OfOtherThreads) {
    Variable x = std::async(std::launch::async, [] { return input({DType::kF32, {2}}, "x"); }).get();
    Function f = function({x}, constant(2.0F) * x + 1 - sum(x, 0, KeepAxes::kYes));
    EXPECT_EQ(f(counted({2}))[0].to_vector<float>(), (Floats{0, 2}));
    Variable y = input({DType::kF32, {2}}, "y");
    expect_error(ErrorCode::kInvalidArgument, {"another graph", "f32[2]"}, [&] { x + y; });
}

}  // namespace
}  // namespace ember
