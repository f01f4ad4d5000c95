// Element types. Block-quantised types are storage only: their last axis is stored in blocks of `block_elements`
// elements in `block_bytes` bytes, in the layout of the GGUF format.
// Tests: test/unit/ir_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace ember::ir {

enum class DType : uint8_t {
    kBool,
    kI8,
    kI16,
    kI32,
    kI64,
    kU8,
    kU16,
    kU32,
    kU64,
    kF16,
    kBF16,
    kF32,
    kF64,
    kC64,
    kC128,
    kQ4_0,
    kQ4_1,
    kQ5_0,
    kQ5_1,
    kQ8_0,
    kQ4_K,
    kQ5_K,
    kQ6_K,
    kRng,  // the state of NumPy's PCG64, 48 bytes: state, increment (u128 each), has_uint32, uinteger
};
inline constexpr int kDTypeCount = static_cast<int>(DType::kRng) + 1;

enum class DTypeKind : uint8_t { kBool, kInt, kUint, kFloat, kComplex, kQuantized, kRng };

struct DTypeInfo {
    std::string_view name;
    DTypeKind kind;
    int32_t block_elements;  // 1 but for quantised types
    int32_t block_bytes;     // bytes of an element, or of a block
};

const DTypeInfo& info(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);

inline std::string_view dtype_name(DType dtype) {
    return info(dtype).name;
}
inline DTypeKind kind(DType dtype) {
    return info(dtype).kind;
}
inline bool is_float(DType dtype) {
    return kind(dtype) == DTypeKind::kFloat;
}
inline bool is_complex(DType dtype) {
    return kind(dtype) == DTypeKind::kComplex;
}
inline bool is_bool(DType dtype) {
    return dtype == DType::kBool;
}
inline bool is_signed_int(DType dtype) {
    return kind(dtype) == DTypeKind::kInt;
}
inline bool is_unsigned_int(DType dtype) {
    return kind(dtype) == DTypeKind::kUint;
}
inline bool is_int(DType dtype) {
    return is_signed_int(dtype) || is_unsigned_int(dtype);
}
inline bool is_quantized(DType dtype) {
    return kind(dtype) == DTypeKind::kQuantized;
}

/// DLPack's type code and bits; {0, 0} for storage types.
std::pair<uint8_t, uint8_t> dlpack_type(DType dtype);
/// The dtype that has this code and these bits; nothing where none has.
std::optional<DType> dtype_of_dlpack(uint8_t code, uint8_t bits);
/// Bytes of one element; a quantised type has none.
int64_t element_bytes(DType dtype);
/// Bytes of a row of `elements` elements; `elements` must be a multiple of the block.
int64_t row_bytes(DType dtype, int64_t elements);

}  // namespace ember::ir
