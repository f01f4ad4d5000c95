// Elements as bytes, 16-bit floats included: see literal.h.
#include "ember/ir/literal.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "ember/ir/graph.h"
#include "ember/support/check.h"

namespace ember::ir {
namespace {

template <class T>
void append(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T load(const char* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

template <class T>
void append_as(std::string& bytes, DType dtype, T value) {
    switch (dtype) {
        case DType::kBool:
            return append<uint8_t>(bytes, value != 0);
        case DType::kI8:
            return append<int8_t>(bytes, static_cast<int8_t>(value));
        case DType::kI16:
            return append<int16_t>(bytes, static_cast<int16_t>(value));
        case DType::kI32:
            return append<int32_t>(bytes, static_cast<int32_t>(value));
        case DType::kI64:
            return append<int64_t>(bytes, static_cast<int64_t>(value));
        case DType::kU8:
            return append<uint8_t>(bytes, static_cast<uint8_t>(value));
        case DType::kU16:
            return append<uint16_t>(bytes, static_cast<uint16_t>(value));
        case DType::kU32:
            return append<uint32_t>(bytes, static_cast<uint32_t>(value));
        case DType::kU64:
            return append<uint64_t>(bytes, static_cast<uint64_t>(value));
        case DType::kF16:
            return append<uint16_t>(bytes, f16_bits(static_cast<float>(value)));
        case DType::kBF16:
            return append<uint16_t>(bytes, bf16_bits(static_cast<float>(value)));
        case DType::kF32:
            return append<float>(bytes, static_cast<float>(value));
        case DType::kF64:
            return append<double>(bytes, static_cast<double>(value));
        case DType::kC64:
            append<float>(bytes, static_cast<float>(value));
            return append<float>(bytes, 0);
        case DType::kC128:
            append<double>(bytes, static_cast<double>(value));
            return append<double>(bytes, 0);
        default:
            unreachable("literal of a storage type");
    }
}

template <class T>
T element_as(const char* bytes, DType dtype) {
    switch (dtype) {
        case DType::kBool:
            return static_cast<T>(load<uint8_t>(bytes) != 0);
        case DType::kI8:
            return static_cast<T>(load<int8_t>(bytes));
        case DType::kI16:
            return static_cast<T>(load<int16_t>(bytes));
        case DType::kI32:
            return static_cast<T>(load<int32_t>(bytes));
        case DType::kI64:
            return static_cast<T>(load<int64_t>(bytes));
        case DType::kU8:
            return static_cast<T>(load<uint8_t>(bytes));
        case DType::kU16:
            return static_cast<T>(load<uint16_t>(bytes));
        case DType::kU32:
            return static_cast<T>(load<uint32_t>(bytes));
        case DType::kU64:
            return static_cast<T>(load<uint64_t>(bytes));
        case DType::kF16:
            return static_cast<T>(f16_value(load<uint16_t>(bytes)));
        case DType::kBF16:
            return static_cast<T>(bf16_value(load<uint16_t>(bytes)));
        case DType::kF32:
        case DType::kC64:
            return static_cast<T>(load<float>(bytes));
        case DType::kF64:
        case DType::kC128:
            return static_cast<T>(load<double>(bytes));
        default:
            unreachable("element of a storage type");
    }
}

}  // namespace

uint16_t bf16_bits(float value) {
    uint32_t bits = std::bit_cast<uint32_t>(value);
    if (std::isnan(value)) {
        return static_cast<uint16_t>((bits >> 16) | 0x40);
    }
    return static_cast<uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float bf16_value(uint16_t bits) {
    return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

uint16_t f16_bits(float value) {
    uint32_t bits = std::bit_cast<uint32_t>(value);
    auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000);
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000) {
        return static_cast<uint16_t>(sign | 0x7e00);
    }
    if (magnitude >= 0x477ff000) {  // rounds to infinity
        return static_cast<uint16_t>(sign | 0x7c00);
    }
    if (magnitude < 0x38800000) {  // subnormal: the float addition rounds to a multiple of 2^-24
        float shifted = std::bit_cast<float>(magnitude) + 0.5F;
        return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3f000000));
    }
    magnitude += 0xfff + ((magnitude >> 13) & 1);
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000) >> 13));
}

float f16_value(uint16_t bits) {
    uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
    uint32_t exponent = (bits >> 10) & 31;
    uint32_t mantissa = bits & 0x3ff;
    if (exponent == 0) {
        float value = static_cast<float>(mantissa) * 0x1p-24F;
        return std::bit_cast<float>(std::bit_cast<uint32_t>(value) | sign);
    }
    uint32_t biased = exponent == 31 ? 255 : exponent + 112;
    return std::bit_cast<float>(sign | (biased << 23) | (mantissa << 13));
}

void append_element(std::string& bytes, DType dtype, double value) {
    bool wraps = (is_int(dtype) && dtype != DType::kU64) || (dtype == DType::kU64 && value < 0);
    if (wraps) {
        bool fits = value >= -0x1p63 && value < 0x1p63;
        append_as(bytes, dtype, fits ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min());
    } else {
        append_as(bytes, dtype, dtype == DType::kU64 && !(value < 0x1p64) ? 0.0 : value);
    }
}
void append_element(std::string& bytes, DType dtype, int64_t value) {
    append_as(bytes, dtype, value);
}
double element_as_double(const char* bytes, DType dtype) {
    return element_as<double>(bytes, dtype);
}
int64_t element_as_int(const char* bytes, DType dtype) {
    return element_as<int64_t>(bytes, dtype);
}

Literal scalar_literal(DType dtype, double value) {
    Literal literal{dtype, {}, {}};
    append_element(literal.bytes, dtype, value);
    return literal;
}

Literal scalar_literal(DType dtype, int64_t value) {
    Literal literal{dtype, {}, {}};
    append_element(literal.bytes, dtype, value);
    return literal;
}

double literal_as_double(const Literal& literal, size_t index) {
    return element_as_double(literal.bytes.data() + index * static_cast<size_t>(element_bytes(literal.dtype)),
                             literal.dtype);
}

int64_t literal_as_int(const Literal& literal, size_t index) {
    return element_as_int(literal.bytes.data() + index * static_cast<size_t>(element_bytes(literal.dtype)),
                          literal.dtype);
}

}  // namespace ember::ir
