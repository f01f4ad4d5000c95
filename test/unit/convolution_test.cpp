// Convolutions against the sum they are defined by, with numbers and with symbols for lengths: strides, padding and
// cropping, dilation of both operands, groups, no spatial axis, kernels that do not fit; and their derivatives against
// differences.
#include <gtest/gtest.h>

#include <algorithm>

#include "ember/autodiff/grad.h"
#include "ember/interp/evaluate.h"
#include "ember/ir/convolution.h"

namespace ember::ir {
namespace {

using interp::Lengths;
using interp::Tensor;

struct Axis {
    int64_t stride = 1;
    int64_t low = 0;
    int64_t high = 0;
    int64_t dilation = 1;
    int64_t kernel_dilation = 1;
};

struct Case {
    Lengths x;
    Lengths kernel;
    std::vector<Axis> axes;
    int64_t groups = 1;
    DType dtype = DType::kF64;
};

int64_t positions(const Case& test, size_t i) {
    const Axis& axis = test.axes[i];
    int64_t length = std::max<int64_t>(0, (test.x[i + 2] - 1) * axis.dilation + 1) + axis.low + axis.high;
    int64_t room = length - ((test.kernel[i + 2] - 1) * axis.kernel_dilation + 1);
    return room < 0 ? 0 : room / axis.stride + 1;
}

int64_t linear(const Lengths& index, const Lengths& shape) {
    int64_t at = 0;
    for (size_t i = 0; i < shape.size(); ++i) {
        at = at * shape[i] + index[i];
    }
    return at;
}

/// Calls f with every index below `shape`.
template <class F>
void for_each_index(const Lengths& shape, F f) {
    Lengths index(shape.size(), 0);
    if (std::count(shape.begin(), shape.end(), 0) > 0) {
        return;
    }
    while (true) {
        f(index);
        size_t i = shape.size();
        while (i > 0 && ++index[i - 1] == shape[i - 1]) {
            index[--i] = 0;
        }
        if (i == 0) {
            return;
        }
    }
}

/// By the definition.
Tensor expected(const Case& test, const Tensor& x, const Tensor& kernel) {
    Lengths shape = {test.x[0], test.kernel[0]};
    for (size_t i = 0; i < test.axes.size(); ++i) {
        shape.push_back(positions(test, i));
    }
    Tensor result = interp::zeros(test.dtype, shape);
    int64_t filters = test.kernel[0] / test.groups;
    for_each_index(shape, [&](const Lengths& at) {
        double sum = 0;
        Lengths taps(test.kernel.begin() + 1, test.kernel.end());
        for_each_index(taps, [&](const Lengths& tap) {
            Lengths from = {at[0], at[1] / filters * test.kernel[1] + tap[0]};
            Lengths weight = {at[1]};
            weight.insert(weight.end(), tap.begin(), tap.end());
            bool inside = true;
            for (size_t i = 0; i < test.axes.size(); ++i) {
                const Axis& axis = test.axes[i];
                int64_t place = at[i + 2] * axis.stride + tap[i + 1] * axis.kernel_dilation - axis.low;
                inside = inside && place >= 0 && place % axis.dilation == 0 && place / axis.dilation < test.x[i + 2];
                from.push_back(place / axis.dilation);
            }
            sum += inside ? x.at_double(linear(from, test.x)) * kernel.at_double(linear(weight, test.kernel)) : 0;
        });
        result.set(linear(at, shape), sum);
    });
    return result;
}

enum class LengthsAs { kNumbers, kSymbols };

TensorType type_of(const Tensor& tensor, LengthsAs as, const std::string& prefix) {
    TensorType type{tensor.dtype, {}};
    for (size_t i = 0; i < tensor.shape.size(); ++i) {
        type.shape.push_back(as == LengthsAs::kSymbols ? Dim::symbol(prefix + std::to_string(i))
                                                       : Dim(tensor.shape[i]));
    }
    return type;
}

ValueId build(GraphBuilder& builder, const Case& test, ValueId x, ValueId kernel) {
    std::vector<ConvolutionAxis> axes;
    for (const Axis& axis : test.axes) {
        axes.push_back({axis.stride, builder.constant_int(axis.low), builder.constant_int(axis.high), axis.dilation,
                        axis.kernel_dilation});
    }
    auto result = convolve(builder, x, kernel, axes, test.groups);
    EXPECT_TRUE(result.ok()) << result.error().to_string();
    return result.value();
}

std::vector<Tensor> run(GraphBuilder& builder, std::vector<Tensor> inputs) {
    Graph graph = builder.take();
    Status verified = verify(graph);
    EXPECT_TRUE(verified.ok()) << verified.error().to_string();
    auto results = interp::evaluate(graph, nullptr, std::move(inputs));
    EXPECT_TRUE(results.ok()) << results.error().to_string();
    return results.ok() ? std::move(results).value() : std::vector<Tensor>();
}

const std::vector<Case> kCases = {
    {{2, 3, 8}, {4, 3, 3}, {{}}},
    {{1, 1, 5}, {1, 1, 5}, {{}}},
    {{1, 1, 5}, {1, 1, 6}, {{}}},
    {{2, 2, 9}, {3, 2, 2}, {{3, 1, 2}}},
    {{1, 2, 9}, {2, 2, 3}, {{2, 0, 0, 1, 2}}},
    {{1, 2, 5}, {2, 2, 3}, {{1, 2, 2, 3}}},
    {{1, 2, 5}, {2, 2, 3}, {{2, 1, 0, 2, 3}}},
    {{1, 2, 9}, {2, 2, 3}, {{1, -2, -1}}},
    {{1, 2, 9}, {2, 2, 2}, {{1, -3, 2, 2}}},
    {{2, 4, 7}, {6, 2, 3}, {{1, 1, 1}}, 2},
    {{2, 3, 7}, {3, 1, 3}, {{2, 1, 1}}, 3},
    {{2, 3, 6, 5}, {4, 3, 3, 2}, {{}, {}}},
    {{1, 4, 7, 6}, {2, 2, 3, 3}, {{2, 1, 1}, {1, 0, 2, 1, 2}}, 2},
    {{1, 2, 4, 3, 5}, {3, 2, 2, 3, 2}, {{1, 0, 1}, {}, {2}}},
    {{3, 2}, {4, 2}, {}},
    {{0, 2, 5}, {3, 2, 3}, {{}}},
    {{2, 2, 0}, {3, 2, 3}, {{1, 2, 2, 2}}},
    {{2, 0, 5}, {3, 0, 3}, {{}}},
    {{2, 3, 8}, {4, 3, 3}, {{2, 1, 1}}, 1, DType::kF32},
    {{2, 3, 8}, {4, 3, 3}, {{2, 1, 1}}, 1, DType::kI32},
};

TEST(Convolution, IsTheSumThatDefinesIt) {
    for (const Case& test : kCases) {
        Tensor x = interp::random_tensor(test.dtype, test.x, 1);
        Tensor kernel = interp::random_tensor(test.dtype, test.kernel, 2);
        Tensor want = expected(test, x, kernel);
        for (LengthsAs as : {LengthsAs::kNumbers, LengthsAs::kSymbols}) {
            SCOPED_TRACE("case " + std::to_string(&test - kCases.data()));
            GraphBuilder builder;
            ValueId a = builder.param(type_of(x, as, "x"));
            ValueId b = builder.param(type_of(kernel, as, "k"));
            builder.output(build(builder, test, a, b));
            Tensor got = run(builder, {x, kernel}).at(0);
            ASSERT_EQ(got.shape, want.shape);
            for (int64_t i = 0; i < want.elements(); ++i) {
                ASSERT_NEAR(got.at_double(i), want.at_double(i), test.dtype == DType::kF32 ? 1e-5 : 1e-12) << i;
            }
        }
    }
}

TEST(Convolution, HasDerivatives) {
    for (const Case& test : kCases) {
        if (test.dtype != DType::kF64) {
            continue;
        }
        SCOPED_TRACE("case " + std::to_string(&test - kCases.data()));
        Tensor operands[] = {interp::random_tensor(test.dtype, test.x, 1),
                             interp::random_tensor(test.dtype, test.kernel, 2)};
        Tensor weights = interp::random_tensor(test.dtype, expected(test, operands[0], operands[1]).shape, 3);
        auto cost_at = [&](const Tensor& x, const Tensor& kernel) {
            Tensor result = expected(test, x, kernel);
            double sum = 0;
            for (int64_t i = 0; i < result.elements(); ++i) {
                sum += result.at_double(i) * weights.at_double(i);
            }
            return sum;
        };
        GraphBuilder builder;
        ValueId params[] = {builder.param(type_of(operands[0], LengthsAs::kNumbers, "x")),
                            builder.param(type_of(operands[1], LengthsAs::kNumbers, "k"))};
        ValueId cotangent = builder.param(type_of(weights, LengthsAs::kNumbers, "r"));
        autodiff::Seed seed{build(builder, test, params[0], params[1]), cotangent};
        auto gradients = autodiff::pull_back(builder, {&seed, 1}, params);
        ASSERT_TRUE(gradients.ok()) << gradients.error().to_string();
        for (ValueId gradient : *gradients) {
            builder.output(gradient);
        }
        std::vector<Tensor> got = run(builder, {operands[0], operands[1], weights});
        for (size_t k = 0; k < 2; ++k) {
            for (int64_t i = 0; i < operands[k].elements(); ++i) {
                // The cost is linear in each operand: differences of any size are exact.
                Tensor moved = operands[k];
                moved.set(i, moved.at_double(i) + 1.0);
                double more = k == 0 ? cost_at(moved, operands[1]) : cost_at(operands[0], moved);
                ASSERT_NEAR(got[k].at_double(i), more - cost_at(operands[0], operands[1]), 1e-9) << k << " " << i;
            }
        }
    }
}

TEST(Convolution, SaysWhatDoesNotFit) {
    auto message = [](const Shape& x, const Shape& kernel, ConvolutionAxis axis, int64_t groups) {
        GraphBuilder builder;
        ValueId a = builder.param({DType::kF32, x});
        ValueId b = builder.param({DType::kF32, kernel});
        auto result = convolve(builder, a, b, {axis}, groups);
        EXPECT_FALSE(result.ok());
        return result.ok() ? "" : result.error().message;
    };
    EXPECT_EQ(message({2, 3}, {4, 3, 3}, {}, 1),
              "convolution: needs operands of one dtype and of rank 3; operands: f32[2,3] f32[4,3,3]");
    EXPECT_EQ(message({2, 3, 5}, {4, 2, 3}, {}, 1),
              "convolution: 1 groups of 2 channels are not the 3 of the left operand; operands: f32[2,3,5] f32[4,2,3]");
    EXPECT_EQ(message({2, 4, 5}, {3, 2, 3}, {}, 2),
              "convolution: 2 groups do not divide channels and filters; operands: f32[2,4,5] f32[3,2,3]");
    EXPECT_EQ(message({2, 3, 5}, {4, 3, 3}, {.stride = 0}, 1),
              "convolution: strides and dilations are at least 1; operands: f32[2,3,5] f32[4,3,3]");
}

}  // namespace
}  // namespace ember::ir
