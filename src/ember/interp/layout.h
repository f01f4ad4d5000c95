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

/// Lengths in units that views can move: elements, or whole blocks of a quantised last axis; and the bytes of a unit.
struct Units {
    Lengths lengths;
    int64_t bytes;
};
Units units_of(const Tensor& tensor);

/// The tensor of `shape` whose unit k is unit `from[k]` of `tensor`.
Tensor pick(const Tensor& tensor, Lengths shape, const std::vector<int64_t>& from);

}  // namespace ember::interp
