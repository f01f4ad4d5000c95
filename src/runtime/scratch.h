// A block of aligned memory that a thread keeps from call to call, so that kernels do not allocate.
// Tests: through the kernels, test/unit/runtime_test.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace ember::runtime {

class Scratch {
public:
    Scratch() = default;
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    ~Scratch() { std::free(block_); }

    /// At least `count` elements, with what they held lost; null when there is no memory.
    template <class T>
    T* reserve(int64_t count) {
        return static_cast<T*>(reserve_bytes(static_cast<size_t>(count) * sizeof(T)));
    }

private:
    static constexpr size_t kAlignment = 64;

    void* reserve_bytes(size_t bytes) {
        if (bytes > size_ || block_ == nullptr) {
            std::free(block_);
            size_ = (bytes / kAlignment + 1) * kAlignment;
            block_ = std::aligned_alloc(kAlignment, size_);
            size_ = block_ == nullptr ? 0 : size_;
        }
        return block_;
    }

    void* block_ = nullptr;
    size_t size_ = 0;
};

}  // namespace ember::runtime
