// Elements of literals and quoted strings as text, both ways.
#include "ember/text/element.h"

#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ember/ir/literal.h"
#include "ember/support/check.h"

namespace ember::text {
namespace {

using ir::DType;

template <class T>
T load(const char* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
}

template <class T>
void store(std::string& bytes, T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T, class... Format>
void append_chars(std::string& out, T value, Format... format) {
    std::array<char, 40> buffer;
    auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format...).ptr;
    out.append(buffer.data(), end);
}

template <class Bits>
void append_bits(std::string& out, Bits bits) {
    out += "0x";
    append_chars(out, bits, 16);
}

/// `value` is what the bits of the float type say; `quiet` the bits that "nan" stands for.
template <class Float, class Bits>
void append_float(std::string& out, Float value, Bits bits, Bits quiet) {
    if (!std::isnan(value)) {
        append_chars(out, value);
    } else if (bits == quiet) {
        out += "nan";
    } else {
        append_bits(out, bits);
    }
}

constexpr uint16_t kQuietF16 = 0x7e00;
constexpr uint16_t kQuietBF16 = 0x7fc0;
constexpr uint32_t kQuietF32 = 0x7fc00000;
constexpr uint64_t kQuietF64 = 0x7ff8000000000000;

template <class T>
bool parse_all(std::string_view text, T& value, auto... format) {
    auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value, format...);
    return problem == std::errc() && end == text.data() + text.size();
}

template <class Bits>
bool parse_bits(std::string_view text, std::string& bytes) {
    Bits bits = 0;
    if (!parse_all(text.substr(2), bits, 16)) {
        return false;
    }
    store(bytes, bits);
    return true;
}

/// from_chars takes "infinity", "nan(…)" and the like too; the grammar does not.
bool is_plain_float(std::string_view text) {
    if (text.starts_with('-')) {
        text.remove_prefix(1);
    }
    return text == "inf" || (!text.empty() && text[0] >= '0' && text[0] <= '9');
}

template <class Bits, class Float>
Bits bits_of(Float value) {
    return std::bit_cast<Bits>(value);
}

template <class Float, class Bits>
bool parse_float(std::string_view text, std::string& bytes, Bits quiet, Bits (*to_bits)(Float)) {
    if (text.starts_with("0x")) {
        return parse_bits<Bits>(text, bytes);
    }
    if (text == "nan" || text == "-nan") {
        Bits sign = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
        store(bytes, static_cast<Bits>(text == "nan" ? quiet : quiet | sign));
        return true;
    }
    Float value = 0;
    if (!is_plain_float(text) || !parse_all(text, value)) {
        return false;
    }
    store(bytes, to_bits(value));
    return true;
}

template <class Int>
bool parse_int(std::string_view text, std::string& bytes) {
    Int value = 0;
    if (!parse_all(text, value)) {
        return false;
    }
    store(bytes, value);
    return true;
}

bool parse_bool(std::string_view text, std::string& bytes) {
    if (text != "true" && text != "false") {
        return false;
    }
    bytes.push_back(text == "true" ? 1 : 0);
    return true;
}

void append_complex(std::string& out, DType dtype, const char* bytes) {
    DType part = part_dtype(dtype);
    out += '(';
    append_element(out, part, bytes);
    out += ',';
    append_element(out, part, bytes + ir::element_bytes(part));
    out += ')';
}

/// Bytes of the UTF-8 character at the start of `text`; 0 where there is none.
size_t utf8_length(std::string_view text) {
    auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
    size_t length = byte(0) < 0x80 ? 1 : byte(0) >> 5 == 6 ? 2 : byte(0) >> 4 == 14 ? 3 : byte(0) >> 3 == 30 ? 4 : 0;
    if (length == 0 || length > text.size()) {
        return 0;
    }
    uint32_t point = length == 1 ? byte(0) : byte(0) & (0xffU >> (length + 1));
    for (size_t i = 1; i < length; ++i) {
        if (byte(i) >> 6 != 2) {
            return 0;
        }
        point = point << 6 | (byte(i) & 0x3fU);
    }
    static constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
    bool valid = point >= kLeast[length] && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
    return valid ? length : 0;
}

void append_escaped(std::string& out, char c) {
    static constexpr char kHex[] = "0123456789abcdef";
    switch (c) {
        case '"':
            out += "\\\"";
            return;
        case '\\':
            out += "\\\\";
            return;
        case '\n':
            out += "\\n";
            return;
        case '\t':
            out += "\\t";
            return;
        case '\r':
            out += "\\r";
            return;
        default:
            out += "\\x";
            out += kHex[static_cast<unsigned char>(c) >> 4];
            out += kHex[static_cast<unsigned char>(c) & 15];
    }
}

}  // namespace

void append_number(std::string& out, int64_t value) {
    append_chars(out, value);
}

DType part_dtype(DType complex) {
    return complex == DType::kC64 ? DType::kF32 : DType::kF64;
}

void append_element(std::string& out, DType dtype, const char* bytes) {
    switch (dtype) {
        case DType::kBool:
            out += *bytes != 0 ? "true" : "false";
            return;
        case DType::kF16: {
            auto bits = load<uint16_t>(bytes);
            return append_float(out, ir::f16_value(bits), bits, kQuietF16);
        }
        case DType::kBF16: {
            auto bits = load<uint16_t>(bytes);
            return append_float(out, ir::bf16_value(bits), bits, kQuietBF16);
        }
        case DType::kF32:
            return append_float(out, load<float>(bytes), load<uint32_t>(bytes), kQuietF32);
        case DType::kF64:
            return append_float(out, load<double>(bytes), load<uint64_t>(bytes), kQuietF64);
        case DType::kC64:
        case DType::kC128:
            return append_complex(out, dtype, bytes);
        case DType::kU64:
            return append_chars(out, load<uint64_t>(bytes));
        default:
            return append_chars(out, ir::element_as_int(bytes, dtype));
    }
}

bool parse_element(std::string_view text, DType dtype, std::string& bytes) {
    switch (dtype) {
        case DType::kBool:
            return parse_bool(text, bytes);
        case DType::kI8:
            return parse_int<int8_t>(text, bytes);
        case DType::kI16:
            return parse_int<int16_t>(text, bytes);
        case DType::kI32:
            return parse_int<int32_t>(text, bytes);
        case DType::kI64:
            return parse_int<int64_t>(text, bytes);
        case DType::kU8:
            return parse_int<uint8_t>(text, bytes);
        case DType::kU16:
            return parse_int<uint16_t>(text, bytes);
        case DType::kU32:
            return parse_int<uint32_t>(text, bytes);
        case DType::kU64:
            return parse_int<uint64_t>(text, bytes);
        case DType::kF16:
            return parse_float<float, uint16_t>(text, bytes, kQuietF16, ir::f16_bits);
        case DType::kBF16:
            return parse_float<float, uint16_t>(text, bytes, kQuietBF16, ir::bf16_bits);
        case DType::kF32:
            return parse_float<float, uint32_t>(text, bytes, kQuietF32, bits_of<uint32_t, float>);
        case DType::kF64:
            return parse_float<double, uint64_t>(text, bytes, kQuietF64, bits_of<uint64_t, double>);
        default:
            return false;
    }
}

void append_quoted(std::string& out, std::string_view text) {
    out += '"';
    while (!text.empty()) {
        size_t length = utf8_length(text);
        char c = text[0];
        bool plain = length > 1 || (length == 1 && c >= ' ' && c != '"' && c != '\\' && c != 0x7f);
        if (plain) {
            out.append(text.substr(0, length));
        } else {
            append_escaped(out, c);
        }
        text.remove_prefix(plain ? length : 1);
    }
    out += '"';
}

}  // namespace ember::text
