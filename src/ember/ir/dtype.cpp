// The table of element types: see dtype.h.
#include "ember/ir/dtype.h"

#include <array>

#include "ember/support/check.h"

namespace ember::ir {
namespace {

constexpr std::array<DTypeInfo, kDTypeCount> kInfo = {{
    {"bool", DTypeKind::kBool, 1, 1},
    {"i8", DTypeKind::kInt, 1, 1},
    {"i16", DTypeKind::kInt, 1, 2},
    {"i32", DTypeKind::kInt, 1, 4},
    {"i64", DTypeKind::kInt, 1, 8},
    {"u8", DTypeKind::kUint, 1, 1},
    {"u16", DTypeKind::kUint, 1, 2},
    {"u32", DTypeKind::kUint, 1, 4},
    {"u64", DTypeKind::kUint, 1, 8},
    {"f16", DTypeKind::kFloat, 1, 2},
    {"bf16", DTypeKind::kFloat, 1, 2},
    {"f32", DTypeKind::kFloat, 1, 4},
    {"f64", DTypeKind::kFloat, 1, 8},
    {"c64", DTypeKind::kComplex, 1, 8},
    {"c128", DTypeKind::kComplex, 1, 16},
    {"q4_0", DTypeKind::kQuantized, 32, 18},
    {"q4_1", DTypeKind::kQuantized, 32, 20},
    {"q5_0", DTypeKind::kQuantized, 32, 22},
    {"q5_1", DTypeKind::kQuantized, 32, 24},
    {"q8_0", DTypeKind::kQuantized, 32, 34},
    {"q4_k", DTypeKind::kQuantized, 256, 144},
    {"q5_k", DTypeKind::kQuantized, 256, 176},
    {"q6_k", DTypeKind::kQuantized, 256, 210},
    {"rng", DTypeKind::kRng, 1, 48},
}};

}  // namespace

const DTypeInfo& info(DType dtype) {
    return kInfo[static_cast<size_t>(dtype)];
}

std::optional<DType> dtype_from_name(std::string_view name) {
    for (int i = 0; i < kDTypeCount; ++i) {
        if (kInfo[static_cast<size_t>(i)].name == name) {
            return static_cast<DType>(i);
        }
    }
    return std::nullopt;
}

std::pair<uint8_t, uint8_t> dlpack_type(DType dtype) {
    auto bits = static_cast<uint8_t>(info(dtype).block_bytes * 8);
    switch (kind(dtype)) {
        case DTypeKind::kInt:
            return {0, bits};
        case DTypeKind::kUint:
            return {1, bits};
        case DTypeKind::kFloat:
            return {static_cast<uint8_t>(dtype == DType::kBF16 ? 4 : 2), bits};
        case DTypeKind::kComplex:
            return {5, bits};
        case DTypeKind::kBool:
            return {6, 8};
        default:
            return {0, 0};
    }
}

std::optional<DType> dtype_of_dlpack(uint8_t code, uint8_t bits) {
    for (int i = 0; i < kDTypeCount; ++i) {
        auto dtype = static_cast<DType>(i);
        if (auto [own_code, own_bits] = dlpack_type(dtype); own_bits != 0 && own_code == code && own_bits == bits) {
            return dtype;
        }
    }
    return std::nullopt;
}

int64_t element_bytes(DType dtype) {
    check(info(dtype).block_elements == 1, "element_bytes of a quantised type");
    return info(dtype).block_bytes;
}

int64_t row_bytes(DType dtype, int64_t elements) {
    const DTypeInfo& row = info(dtype);
    check(elements % row.block_elements == 0, "row is no multiple of the block");
    return elements / row.block_elements * row.block_bytes;
}

}  // namespace ember::ir
