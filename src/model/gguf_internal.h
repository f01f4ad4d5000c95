// What gguf.cpp and gguf_read.cpp share.
#pragma once

#include <array>
#include <cstring>
#include <string>

#include "model/gguf.h"

namespace ember::model {

constexpr uint32_t kValueTypes = 13;

/// Bytes of a value; of strings and arrays, of their length fields alone.
constexpr std::array<uint64_t, kValueTypes> kValueBytes = {1, 1, 2, 2, 4, 4, 4, 1, 8, 12, 8, 8, 8};

constexpr bool has_fixed_size(ValueType type) {
    return type != ValueType::kString && type != ValueType::kArray;
}
constexpr uint64_t least_bytes(ValueType type) {
    return kValueBytes[static_cast<size_t>(type)];
}

template <class T>
T read_as(const std::byte* data) {
    T value;
    std::memcpy(&value, data, sizeof value);
    return value;
}

/// Null where the number names no type that we read.
const TensorTypeInfo* find_tensor_type(uint32_t number);

inline std::string place(const std::string& path, uint64_t offset) {
    return path + ": offset " + std::to_string(offset);
}

constexpr auto kKeyOf = [](const GgufEntry& entry) { return entry.key; };
constexpr auto kNameOf = [](const GgufTensor& tensor) { return tensor.name; };

}  // namespace ember::model
