// Tensors of the reference evaluator: a dtype, lengths and row-major, contiguous bytes. Elements stand as they do in
// memory (bool is one byte, 0 or 1; complex is real, imaginary); quantised types in blocks along their last axis.
// Tests: test/unit/interp_test.cpp.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ember/ir/graph.h"
#include "ember/support/result.h"

namespace ember::interp {

using Lengths = std::vector<int64_t>;

struct Tensor {
    ir::DType dtype = ir::DType::kF32;
    Lengths shape;
    std::vector<char> bytes;

    int rank() const { return static_cast<int>(shape.size()); }
    int64_t elements() const;

    /// Elements by their row-major index; quantised types have none. Complex: the real part.
    double at_double(int64_t index) const;
    int64_t at_int(int64_t index) const;
    std::complex<double> at_complex(int64_t index) const;
    void set(int64_t index, double value);
    void set(int64_t index, int64_t value);
    void set(int64_t index, std::complex<double> value);

    /// "f32[2,3] {1, 2, …}": at most `limit` elements.
    std::string to_string(int64_t limit = 16) const;

    /// Bit for bit, so NaN equals NaN and 0 differs from -0.
    friend bool operator==(const Tensor&, const Tensor&) = default;
};

/// "[2,3]".
std::string lengths_to_string(const Lengths& shape);

/// Bytes that a tensor of this type takes. kShape: a negative length, a row that is no multiple of the block, or
/// lengths (but for those that are 0) with a product beyond 2^60 bytes; so no product of lengths overflows.
Result<int64_t> tensor_bytes(ir::DType dtype, const Lengths& shape);
/// Are the bytes what dtype and shape ask for?
Status verify(const Tensor& tensor);

/// All bits 0. The shape must be one that tensor_bytes admits.
Tensor zeros(ir::DType dtype, Lengths shape);
/// Every value converted to `dtype`; as many as the shape has elements.
Tensor from_values(ir::DType dtype, Lengths shape, const std::vector<double>& values);
Tensor from_values(ir::DType dtype, Lengths shape, const std::vector<int64_t>& values);
Tensor scalar(ir::DType dtype, double value);
Tensor scalar(ir::DType dtype, int64_t value);
Tensor from_literal(const ir::Literal& literal);

/// What random tensors hold. Ordinary: floats in (-2, 2), integers in -8..8 (unsigned 0..16), both bools. Positive:
/// floats in (0, 2), integers in 1..8, true. Wide: any finite float, every exponent equally likely; any integer.
/// Special: a third of NaN, infinities, zeros of both signs, subnormals, 1, -1 and the largest and smallest values
/// (integers: the ends of their range, -1, 0, 1), the rest like wide and ordinary. Quantised: any quants, finite
/// scales of ordinary size.
enum class Fill { kOrdinary, kPositive, kWide, kSpecial };
/// The same tensor for the same arguments on every machine.
Tensor random_tensor(ir::DType dtype, Lengths shape, uint64_t seed, Fill fill = Fill::kOrdinary);

/// Every element as f32, by the block definitions of the GGUF format.
Tensor dequantize(const Tensor& tensor);

}  // namespace ember::interp
