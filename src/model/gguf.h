// Reads GGUF model files, version 2 and 3 (little-endian), without copying: metadata and tensors are views into the
// file. A file is checked completely when it is opened (every length, count, type, offset and overlap), so views are in
// bounds for the life of the GgufFile. No allocation depends on a number in the file that its size does not bear out.
//
//   file     = "GGUF" version:u32 tensor_count:u64 entry_count:u64 entry* tensor* padding data
//   entry    = key:string type:u32 value
//   string   = length:u64 byte*
//   array    = type:u32 count:u64 value*                        (a value of type 9; arrays nest)
//   tensor   = name:string rank:u32 dim:u64* type:u32 offset:u64   (offset from the start of data)
//   padding  = zero or more bytes up to a multiple of general.alignment (32 where it is absent)
//
// Source: the GGUF specification (ggml, docs/gguf.md). Tests: test/unit/gguf_test.cpp, test/fuzz/gguf_fuzz.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ember/support/result.h"

namespace ember::model {

/// How a tensor's elements are stored; the numbers are GGUF's own.
enum class TensorType : uint32_t {
    kF32 = 0,
    kF16 = 1,
    kQ4_0 = 2,
    kQ4_1 = 3,
    kQ5_0 = 6,
    kQ5_1 = 7,
    kQ8_0 = 8,
    kQ4_K = 12,
    kQ5_K = 13,
    kQ6_K = 14,
    kBF16 = 30,
};

/// One row a supported type: rows of a tensor are whole blocks of `block_elements`, each `block_bytes` long.
struct TensorTypeInfo {
    TensorType type;
    std::string_view name;  // "q4_1": also the name of the Ember dtype
    uint32_t block_elements;
    uint32_t block_bytes;
};

const TensorTypeInfo& tensor_type_info(TensorType type);
std::span<const TensorTypeInfo> supported_tensor_types();

struct GgufTensor {
    std::string_view name;
    TensorType type = TensorType::kF32;
    std::vector<int64_t> dims;   // as the file has them: dims[0] is contiguous
    std::vector<int64_t> shape;  // row-major: dims reversed; a weight of [out, in] has dims {in, out}
    uint64_t offset = 0;         // of the first byte, from the start of the file
    const std::byte* data = nullptr;
    uint64_t bytes = 0;

    int64_t elements() const;
};

/// The type of a metadata value; the numbers are GGUF's own.
enum class ValueType : uint32_t { kU8, kI8, kU16, kI16, kU32, kI32, kF32, kBool, kString, kArray, kU64, kI64, kF64 };

std::string_view value_type_name(ValueType type);

class GgufArray;

/// One metadata value, a view into the file. An as_ function of another type than the value's gives nothing.
class GgufValue {
public:
    GgufValue(ValueType type, const std::byte* data) : type_(type), data_(data) {}

    ValueType type() const { return type_; }
    /// "u32", "array of string".
    std::string type_name() const;

    std::optional<int64_t> as_integer() const;  // any integer type whose value fits
    std::optional<double> as_float() const;     // f32 or f64
    std::optional<bool> as_bool() const;
    std::optional<std::string_view> as_string() const;
    std::optional<GgufArray> as_array() const;

    /// Bytes the value takes in the file.
    uint64_t size() const;

private:
    ValueType type_;
    const std::byte* data_;
};

/// An array value. Elements of fixed size are found directly; strings and nested arrays are walked in order.
class GgufArray {
public:
    GgufArray(ValueType element, uint64_t count, const std::byte* data)
        : element_(element), count_(count), data_(data) {}

    ValueType element_type() const { return element_; }
    uint64_t size() const { return count_; }
    bool empty() const { return count_ == 0; }
    const std::byte* data() const { return data_; }

    /// Forward walk over the elements, whatever their type.
    class Iterator {
    public:
        Iterator(ValueType element, uint64_t left, const std::byte* at) : element_(element), left_(left), at_(at) {}
        GgufValue operator*() const { return GgufValue(element_, at_); }
        Iterator& operator++();
        bool operator!=(const Iterator& other) const { return left_ != other.left_; }

    private:
        ValueType element_;
        uint64_t left_;
        const std::byte* at_;
    };
    Iterator begin() const { return Iterator(element_, count_, data_); }
    Iterator end() const { return Iterator(element_, 0, nullptr); }

private:
    ValueType element_;
    uint64_t count_;
    const std::byte* data_;
};

struct GgufEntry {
    std::string_view key;
    GgufValue value;
    uint64_t offset;  // of the key, from the start of the file
};

class GgufFile {
public:
    GgufFile(const GgufFile&) = delete;
    GgufFile& operator=(const GgufFile&) = delete;
    ~GgufFile();

    const std::string& path() const { return path_; }
    uint32_t version() const { return version_; }
    uint64_t size() const { return bytes_.size(); }
    uint64_t alignment() const { return alignment_; }
    uint64_t data_offset() const { return data_offset_; }

    /// In file order.
    std::span<const GgufEntry> entries() const { return entries_; }
    std::span<const GgufTensor> tensors() const { return tensors_; }

    /// Null where the file has none of that name.
    const GgufEntry* find_entry(std::string_view key) const;
    const GgufTensor* find_tensor(std::string_view name) const;

    /// The value of `key`; an error names the key, what was expected and what the file has, and where.
    Result<int64_t> get_integer(std::string_view key) const;
    Result<double> get_float(std::string_view key) const;
    Result<bool> get_bool(std::string_view key) const;
    Result<std::string_view> get_string(std::string_view key) const;
    Result<GgufArray> get_array(std::string_view key, ValueType element) const;
    /// The same, with `otherwise` where the key is absent; a value of the wrong type is still an error.
    Result<int64_t> get_integer_or(std::string_view key, int64_t otherwise) const;
    Result<double> get_float_or(std::string_view key, double otherwise) const;
    Result<bool> get_bool_or(std::string_view key, bool otherwise) const;
    Result<std::string_view> get_string_or(std::string_view key, std::string_view otherwise) const;

    /// A Diagnostic whose place is this file, and the offset of `key` where the file has it.
    Diagnostic error_at(std::string_view key, Code code, std::string message) const;
    Diagnostic error_at_tensor(const GgufTensor& tensor, Code code, std::string message) const;

    /// Asks the kernel to read the tensors ahead; returns at once, and needs not be called.
    void prefetch() const;
    /// Lets go of the memory that a tensor's pages take; they are read again where somebody needs them.
    void release(const GgufTensor& tensor) const;

private:
    friend class GgufReader;
    GgufFile(std::string path, std::span<const std::byte> bytes, bool mapped)
        : path_(std::move(path)), bytes_(bytes), mapped_(mapped) {}

    std::string path_;
    std::span<const std::byte> bytes_;
    bool mapped_;  // bytes_ is ours to unmap
    uint32_t version_ = 0;
    uint64_t alignment_ = 32;
    uint64_t data_offset_ = 0;
    std::vector<GgufEntry> entries_;
    std::vector<GgufTensor> tensors_;
    std::vector<uint32_t> entries_by_key_;   // indices, sorted
    std::vector<uint32_t> tensors_by_name_;  // indices, sorted
};

/// Maps and checks a file. Errors are one line: the file, the offset, what was expected.
Result<std::shared_ptr<const GgufFile>> open_gguf(const std::string& path);

/// The same over bytes that the caller keeps alive and unchanged; `name` stands for the path in errors.
Result<std::shared_ptr<const GgufFile>> read_gguf(std::span<const std::byte> bytes, std::string name);

/// Text from a file for use in a message: quoted, control bytes escaped, long text cut, so that it stays on one line.
std::string quote(std::string_view text);

}  // namespace ember::model
