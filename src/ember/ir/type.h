// Tensor types. A dimension is a number or a symbol; equal symbols are known to be equal at run time. Symbols are
// interned process-wide; their names never reach a canonical text, which renames them in order of appearance.
// Tests: test/unit/ir_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ember/ir/dtype.h"

namespace ember::ir {

class Dim {
public:
    constexpr Dim() = default;
    constexpr Dim(int64_t size) : code_(size) {}

    /// The symbol of this name, the same one for equal names. Thread-safe.
    static Dim symbol(std::string_view name);
    /// A symbol that equals no other one. Thread-safe.
    static Dim fresh();

    constexpr bool is_static() const { return code_ >= 0; }
    constexpr bool is_symbol() const { return code_ < 0; }
    int64_t size() const;
    /// Small, unique number of a symbol.
    constexpr int64_t symbol_id() const { return ~code_; }
    /// Digits, or the symbol's name.
    std::string to_string() const;

    friend constexpr bool operator==(Dim, Dim) = default;
    constexpr int64_t code() const { return code_; }

private:
    int64_t code_ = 0;  // size, or ~symbol id
};

using Shape = std::vector<Dim>;

/// No axis is longer than this, and no two lengths overflow when added.
inline constexpr int64_t kMaxLength = int64_t{1} << 48;

struct TensorType {
    DType dtype = DType::kF32;
    Shape shape;

    int rank() const { return static_cast<int>(shape.size()); }
    bool is_scalar() const { return shape.empty(); }
    bool is_static() const;
    /// Elements of a static type; the largest int64_t where there are more.
    int64_t static_elements() const;
    /// "f32[n,64]".
    std::string to_string() const;

    friend bool operator==(const TensorType&, const TensorType&) = default;
};

std::string shape_to_string(const Shape& shape);

}  // namespace ember::ir
