// Reference dequantisation: the meaning of each stored tensor type, in plain code. Not on any hot path: compiled
// kernels read the blocks themselves, and are tested against this. Block layouts are written out in dequantize.cpp.
// Tests: test/unit/gguf_test.cpp, against values from the gguf Python package.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/gguf.h"

namespace ember::model {

float float_from_f16(uint16_t bits);
float float_from_bf16(uint16_t bits);

/// Reads out.size() elements, which must be whole blocks, from `blocks`.
void dequantize(TensorType type, const std::byte* blocks, std::span<float> out);

/// Row `row` of a tensor seen as [rows, dims[0]]; `out` holds dims[0] floats.
void dequantize_row(const GgufTensor& tensor, int64_t row, std::span<float> out);

/// All elements in row-major order.
std::vector<float> dequantize(const GgufTensor& tensor);

}  // namespace ember::model
