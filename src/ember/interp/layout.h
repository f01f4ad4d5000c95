// Row-major index arithmetic.
#pragma once

#include <cstdint>
#include <vector>

#include "ember/interp/tensor.h"

namespace ember::interp {

int64_t product(const Lengths& lengths);
Lengths row_major_strides(const Lengths& lengths);

/// The offset sum(index[i] * strides[i]) of every index below `lengths`, in row-major order.
std::vector<int64_t> offsets(const Lengths& lengths, const Lengths& strides);

/// The items of `list` at `axes`, and those at all other positions.
Lengths at_axes(const Lengths& list, const std::vector<int64_t>& axes);
Lengths without_axes(const Lengths& list, const std::vector<int64_t>& axes);

/// The tensor of `shape` whose element (or quantised block) k is element `from[k]` of `tensor`.
Tensor pick(const Tensor& tensor, Lengths shape, const std::vector<int64_t>& from);

}  // namespace ember::interp
