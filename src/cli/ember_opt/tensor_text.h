// Tensors as file tests write them, and what it means that two of them agree.
//
//     tensor = type (element | "[" [element ("," element)*] "]" | fill "(" "seed" "=" number ")")
//     fill   = "ordinary" | "positive" | "wide" | "special"          see interp/tensor.h
//
// Elements stand in row-major order; the type has no symbols.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ember/interp/tensor.h"

namespace ember::opt {

Result<interp::Tensor> parse_tensor(std::string_view text);

/// Any NaN is "nan". A tensor of more than kMaxShown elements, or of a storage type, is its type only.
std::string print_tensor(const interp::Tensor& tensor);
inline constexpr int64_t kMaxShown = 64;

struct Tolerance {
    double relative = 0;
    double absolute = 0;
    bool zero_signs = true;  // is -0 another number than 0?
};
/// What two correct implementations may differ by.
Tolerance default_tolerance(ir::DType dtype);

/// Nothing, or in words where they differ. NaN agrees with NaN; zeros agree with zeros of their own sign; integers,
/// bools and storage types must be equal. The tolerance is the dtype's own where none is given.
std::optional<std::string> find_difference(const interp::Tensor& expected, const interp::Tensor& found,
                                           std::optional<Tolerance> tolerance = {});
/// The same for lists of results.
std::optional<std::string> find_difference(const std::vector<interp::Tensor>& expected,
                                           const std::vector<interp::Tensor>& found,
                                           std::optional<Tolerance> tolerance = {});

}  // namespace ember::opt
