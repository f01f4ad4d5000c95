// Metadata values, look-ups and getters of an open GGUF file. Reading and checking one is gguf_read.cpp.
#include "model/gguf.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "model/gguf_internal.h"

namespace ember::model {

static_assert(std::endian::native == std::endian::little, "GGUF values are read in place, and are little-endian");

namespace {

constexpr std::array<TensorTypeInfo, 11> kTensorTypes = {{
    {TensorType::kF32, "f32", 1, 4},
    {TensorType::kF16, "f16", 1, 2},
    {TensorType::kBF16, "bf16", 1, 2},
    {TensorType::kQ4_0, "q4_0", 32, 18},
    {TensorType::kQ4_1, "q4_1", 32, 20},
    {TensorType::kQ5_0, "q5_0", 32, 22},
    {TensorType::kQ5_1, "q5_1", 32, 24},
    {TensorType::kQ8_0, "q8_0", 32, 34},
    {TensorType::kQ4_K, "q4_k", 256, 144},
    {TensorType::kQ5_K, "q5_k", 256, 176},
    {TensorType::kQ6_K, "q6_k", 256, 210},
}};

constexpr std::array<std::string_view, kValueTypes> kValueTypeNames = {
    "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64"};

template <class Row, class TextOf>
const Row* find_sorted(const std::vector<Row>& rows, const std::vector<uint32_t>& order, std::string_view text,
                       TextOf text_of) {
    auto at = std::lower_bound(order.begin(), order.end(), text,
                               [&](uint32_t index, std::string_view wanted) { return text_of(rows[index]) < wanted; });
    return at != order.end() && text_of(rows[*at]) == text ? &rows[*at] : nullptr;
}

}  // namespace

const TensorTypeInfo* find_tensor_type(uint32_t number) {
    for (const TensorTypeInfo& row : kTensorTypes) {
        if (static_cast<uint32_t>(row.type) == number) {
            return &row;
        }
    }
    return nullptr;
}

const TensorTypeInfo& tensor_type_info(TensorType type) {
    const TensorTypeInfo* info = find_tensor_type(static_cast<uint32_t>(type));
    check(info != nullptr, "a tensor type without a row");
    return *info;
}

std::span<const TensorTypeInfo> supported_tensor_types() {
    return kTensorTypes;
}

std::string_view value_type_name(ValueType type) {
    return kValueTypeNames[static_cast<size_t>(type)];
}

std::string quote(std::string_view text) {
    constexpr size_t kMost = 80;
    static constexpr char kHex[] = "0123456789abcdef";
    std::string out = "'";
    for (unsigned char c : text.substr(0, kMost)) {
        if (c >= 0x20 && c < 0x7f) {
            out += static_cast<char>(c);
        } else {
            out += {'\\', 'x', kHex[c >> 4], kHex[c & 15]};
        }
    }
    return out + (text.size() > kMost ? "...'" : "'");
}

int64_t GgufTensor::elements() const {
    return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

std::string GgufValue::type_name() const {
    if (auto array = as_array()) {
        return "array of " + std::string(value_type_name(array->element_type()));
    }
    return std::string(value_type_name(type_));
}

std::optional<int64_t> GgufValue::as_integer() const {
    switch (type_) {
        case ValueType::kU8:
            return read_as<uint8_t>(data_);
        case ValueType::kI8:
            return read_as<int8_t>(data_);
        case ValueType::kU16:
            return read_as<uint16_t>(data_);
        case ValueType::kI16:
            return read_as<int16_t>(data_);
        case ValueType::kU32:
            return read_as<uint32_t>(data_);
        case ValueType::kI32:
            return read_as<int32_t>(data_);
        case ValueType::kI64:
            return read_as<int64_t>(data_);
        case ValueType::kU64: {
            auto value = read_as<uint64_t>(data_);
            return value <= INT64_MAX ? std::optional(static_cast<int64_t>(value)) : std::nullopt;
        }
        default:
            return std::nullopt;
    }
}

std::optional<double> GgufValue::as_float() const {
    switch (type_) {
        case ValueType::kF32:
            return read_as<float>(data_);
        case ValueType::kF64:
            return read_as<double>(data_);
        default:
            return std::nullopt;
    }
}

std::optional<bool> GgufValue::as_bool() const {
    return type_ == ValueType::kBool ? std::optional(read_as<uint8_t>(data_) != 0) : std::nullopt;
}

std::optional<std::string_view> GgufValue::as_string() const {
    if (type_ != ValueType::kString) {
        return std::nullopt;
    }
    return std::string_view(reinterpret_cast<const char*>(data_) + 8, read_as<uint64_t>(data_));
}

std::optional<GgufArray> GgufValue::as_array() const {
    if (type_ != ValueType::kArray) {
        return std::nullopt;
    }
    return GgufArray(ValueType{read_as<uint32_t>(data_)}, read_as<uint64_t>(data_ + 4), data_ + 12);
}

uint64_t GgufValue::size() const {
    if (type_ == ValueType::kString) {
        return 8 + read_as<uint64_t>(data_);
    }
    if (type_ != ValueType::kArray) {
        return least_bytes(type_);
    }
    GgufArray array = *as_array();
    if (has_fixed_size(array.element_type())) {
        return 12 + array.size() * least_bytes(array.element_type());
    }
    uint64_t bytes = 12;
    for (GgufValue element : array) {
        bytes += element.size();
    }
    return bytes;
}

GgufArray::Iterator& GgufArray::Iterator::operator++() {
    at_ += GgufValue(element_, at_).size();
    --left_;
    return *this;
}

GgufFile::~GgufFile() {
    if (mapped_) {
        munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
    }
}

const GgufEntry* GgufFile::find_entry(std::string_view key) const {
    return find_sorted(entries_, entries_by_key_, key, kKeyOf);
}

const GgufTensor* GgufFile::find_tensor(std::string_view name) const {
    return find_sorted(tensors_, tensors_by_name_, name, kNameOf);
}

Diagnostic GgufFile::error_at(std::string_view key, Code code, std::string message) const {
    const GgufEntry* entry = find_entry(key);
    return error(code, std::move(message), entry ? place(path_, entry->offset) : path_);
}

Diagnostic GgufFile::error_at_tensor(const GgufTensor& tensor, Code code, std::string message) const {
    return error(code, std::move(message), place(path_, tensor.offset));
}

namespace {

/// The value of `key` by `as` (one of GgufValue's as_ functions); `otherwise` where the key is absent.
template <class T, class As>
Result<T> get_value(const GgufFile& file, std::string_view key, std::string_view expected, As as,
                    const T* otherwise = nullptr) {
    const GgufEntry* entry = file.find_entry(key);
    if (!entry && otherwise) {
        return *otherwise;
    }
    if (!entry) {
        return file.error_at(key, Code::kParse,
                             "metadata key " + quote(key) + " is missing: expected " + std::string(expected));
    }
    if (auto value = (entry->value.*as)()) {
        return T(*value);
    }
    return file.error_at(
        key, Code::kType,
        "metadata key " + quote(key) + ": expected " + std::string(expected) + ", found " + entry->value.type_name());
}

constexpr std::string_view kInteger = "an integer";
constexpr std::string_view kFloat = "a float";
constexpr std::string_view kBool = "a bool";
constexpr std::string_view kString = "a string";

}  // namespace

Result<int64_t> GgufFile::get_integer(std::string_view key) const {
    return get_value<int64_t>(*this, key, kInteger, &GgufValue::as_integer);
}
Result<double> GgufFile::get_float(std::string_view key) const {
    return get_value<double>(*this, key, kFloat, &GgufValue::as_float);
}
Result<bool> GgufFile::get_bool(std::string_view key) const {
    return get_value<bool>(*this, key, kBool, &GgufValue::as_bool);
}
Result<std::string_view> GgufFile::get_string(std::string_view key) const {
    return get_value<std::string_view>(*this, key, kString, &GgufValue::as_string);
}
Result<int64_t> GgufFile::get_integer_or(std::string_view key, int64_t otherwise) const {
    return get_value<int64_t>(*this, key, kInteger, &GgufValue::as_integer, &otherwise);
}
Result<double> GgufFile::get_float_or(std::string_view key, double otherwise) const {
    return get_value<double>(*this, key, kFloat, &GgufValue::as_float, &otherwise);
}
Result<bool> GgufFile::get_bool_or(std::string_view key, bool otherwise) const {
    return get_value<bool>(*this, key, kBool, &GgufValue::as_bool, &otherwise);
}
Result<std::string_view> GgufFile::get_string_or(std::string_view key, std::string_view otherwise) const {
    return get_value<std::string_view>(*this, key, kString, &GgufValue::as_string, &otherwise);
}

Result<GgufArray> GgufFile::get_array(std::string_view key, ValueType element) const {
    std::string expected = "array of " + std::string(value_type_name(element));
    EMBER_TRY(GgufArray array, get_value<GgufArray>(*this, key, "an " + expected, &GgufValue::as_array));
    if (array.element_type() != element) {
        return error_at(key, Code::kType,
                        "metadata key " + quote(key) + ": expected an " + expected + ", found " +
                            find_entry(key)->value.type_name());
    }
    return array;
}

void GgufFile::prefetch() const {
    if (mapped_) {
        (void)madvise(const_cast<std::byte*>(bytes_.data()), bytes_.size(), MADV_WILLNEED);
    }
}

void GgufFile::release(const GgufTensor& tensor) const {
    if (!mapped_) {
        return;
    }
    const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto data = reinterpret_cast<uintptr_t>(tensor.data);
    const uintptr_t begin = (data + page - 1) / page * page;
    const uintptr_t end = (data + tensor.bytes) / page * page;
    if (begin < end) {
        (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
    }
}

}  // namespace ember::model
