// Tensors: arrays on the host. Part of ember.h, which says how it is used.
#pragma once

#include <memory>
#include <vector>

#include "ember/dlpack.h"
#include "ember/types.h"

namespace ember {

/// A dense row-major array. Copies share the elements; copy() does not.
class Tensor {
public:
    /// A f32 scalar 0.
    Tensor();

    /// Elements of any value, 64-byte aligned. Throws Error(kShape) for a negative length or a size over 2^48 bytes,
    /// Error(kOutOfMemory).
    static Tensor empty(DType dtype, std::vector<int64_t> shape);
    static Tensor zeros(DType dtype, std::vector<int64_t> shape);
    template <class T>
    static Tensor scalar(T value) {
        return from(std::vector<T>{value}, {});
    }
    /// Copies the elements, in row-major order. Throws Error(kShape) where their number is not that of the shape.
    template <class T>
    static Tensor from(const std::vector<T>& elements, std::vector<int64_t> shape) {
        if constexpr (std::is_same_v<T, bool>) {
            std::vector<uint8_t> bytes(elements.begin(), elements.end());
            return copy_of(bytes.data(), bytes.size(), DType::kBool, std::move(shape));
        } else {
            return copy_of(elements.data(), elements.size(), dtype_of<T>(), std::move(shape));
        }
    }
    /// A vector.
    template <class T>
    static Tensor from(const std::vector<T>& elements) {
        return from(elements, {static_cast<int64_t>(elements.size())});
    }
    /// Elements in somebody else's memory, row-major, aligned to their size: `keep_alive` is held as long as a tensor
    /// looks at them. Throws Error(kInvalidArgument) for null or unaligned memory.
    static Tensor borrow(void* elements, DType dtype, std::vector<int64_t> shape, std::shared_ptr<void> keep_alive);

    /// Takes a DLPack tensor over, without a copy where it is row-major and aligned; the deleter is called when the
    /// last tensor is gone, at once after a copy, and not when this throws: Error(kUnsupported) for another device or
    /// dtype, Error(kInvalidArgument) where elements are missing.
    static Tensor from_dlpack(dlpack::ManagedTensor* managed);
    /// The same for DLPack 1. Read-only elements are copied; Error(kUnsupported) for another major version, too.
    static Tensor from_dlpack(dlpack::VersionedTensor* managed);
    /// Shares the elements; the receiver calls the deleter. Throws Error(kUnsupported) for storage dtypes.
    dlpack::ManagedTensor* to_dlpack() const;
    dlpack::VersionedTensor* to_versioned_dlpack() const;

    DType dtype() const { return dtype_; }
    const std::vector<int64_t>& shape() const { return shape_; }
    int64_t rank() const { return static_cast<int64_t>(shape_.size()); }
    /// Number of elements.
    int64_t size() const;
    int64_t bytes() const;
    /// Never null.
    void* data() const { return data_.get(); }
    /// Throws Error(kType) where T is another dtype.
    template <class T>
    T* data_as() const {
        require(dtype_of<T>());
        return static_cast<T*>(data());
    }
    /// Throws Error(kType) where T is another dtype.
    template <class T>
    std::vector<T> to_vector() const {
        const T* elements = data_as<T>();
        return std::vector<T>(elements, elements + size());
    }
    /// The only element. Throws Error(kShape) where there is not exactly one.
    template <class T>
    T item() const {
        require_one();
        return *data_as<T>();
    }
    Tensor copy() const;
    /// A copy in another float dtype, f64 to 16 bits by way of f32: how values get into and out of f16 and bf16. Throws
    /// Error(kUnsupported) for dtypes that are no floats; the op cast() converts all.
    Tensor cast(DType dtype) const;
    /// "f32[3,64]".
    std::string type_string() const;

private:
    Tensor(DType dtype, std::vector<int64_t> shape, std::shared_ptr<void> data);
    static Tensor copy_of(const void* elements, size_t count, DType dtype, std::vector<int64_t> shape);
    void require(DType dtype) const;
    void require_one() const;

    DType dtype_ = DType::kF32;
    std::vector<int64_t> shape_;
    std::shared_ptr<void> data_;
};

}  // namespace ember
