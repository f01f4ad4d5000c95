// Convolutions, made of ops that there are: padding, gathers of windows and one matrix product, which the gathered
// windows are written for row by row. Tests: test/unit/convolution_test.cpp.
#pragma once

#include <vector>

#include "ember/ir/builder.h"

namespace ember::ir {

/// How a kernel walks along one spatial axis. Zeros are put around the operand (or elements are cut off, where the
/// numbers are negative) once it is dilated.
struct ConvolutionAxis {
    int64_t stride = 1;
    ValueId low = kNone;  // i64 scalars; kNone: 0
    ValueId high = kNone;
    int64_t dilation = 1;         // distance of the operand's elements: dilation - 1 zeros between two
    int64_t kernel_dilation = 1;  // distance of the elements that a kernel's neighbours meet
};

/// result[n, o, p…] = sum over c, k… of x[n, g(o), c, p*stride + k*kernel_dilation - low…] * kernel[o, c, k…]: what
/// machine learning calls a convolution; reverse the kernel's spatial axes for the mathematical one. x: [batch,
/// channels, spatial…], kernel: [filters, channels/groups, spatial…] of x's dtype, one row of `axes` a spatial axis, of
/// which there may be none. Group g has the g-th part of the channels and of the filters. Gives [batch, filters,
/// positions…]; an axis has floor((length - span)/stride) + 1 positions, or none where the kernel's span is longer.
/// Errors: kShape and kType as inference tells them; groups that do not divide the lengths, and strides and dilations
/// below 1, are kVerify.
Result<ValueId> convolve(GraphBuilder& builder, ValueId x, ValueId kernel, const std::vector<ConvolutionAxis>& axes,
                         int64_t groups = 1);

}  // namespace ember::ir
