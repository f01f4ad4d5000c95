// Element types, tensor types and errors of the public API. Part of ember.h, which says how it is used.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace ember {

/// Element types. The block-quantised ones (kQ4_0 … kQ6_K, GGUF's layouts) and generator states are storage: they are
/// bound or given to a function, cast and contracted, but no other op takes them.
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
    kRng,
};

/// "f32", "bool", "q4_k", …
std::string_view dtype_name(DType dtype);

/// The dtype of a C++ type: bool, the sized integers, float, double and their std::complex.
template <class T>
constexpr DType dtype_of() {
    if constexpr (std::is_same_v<T, bool>) {
        return DType::kBool;
    } else if constexpr (std::is_integral_v<T>) {
        constexpr int kFirst = static_cast<int>(std::is_signed_v<T> ? DType::kI8 : DType::kU8);
        return static_cast<DType>(kFirst + (sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3));
    } else if constexpr (std::is_same_v<T, float>) {
        return DType::kF32;
    } else if constexpr (std::is_same_v<T, double>) {
        return DType::kF64;
    } else if constexpr (std::is_same_v<T, std::complex<float>>) {
        return DType::kC64;
    } else {
        static_assert(std::is_same_v<T, std::complex<double>>, "no dtype of this C++ type");
        return DType::kC128;
    }
}

/// The length of an axis: a number, or a symbol that stands for a length known at the call only. Equal symbols of one
/// function are equal lengths; a function is compiled once for all of them.
class Dim {
public:
    /// A known length, 0 or more. Throws Error(kShape) for negative ones.
    Dim(int64_t length);
    Dim(int length) : Dim(static_cast<int64_t>(length)) {}
    /// The symbol of this name. Throws Error(kInvalidArgument) for an empty name.
    Dim(std::string symbol);
    Dim(const char* symbol) : Dim(std::string(symbol)) {}

    bool is_static() const { return symbol_.empty(); }
    /// Of a known length only; -1 for a symbol.
    int64_t length() const { return length_; }
    /// Empty for a known length.
    const std::string& symbol() const { return symbol_; }

    friend bool operator==(const Dim&, const Dim&) = default;

private:
    int64_t length_;
    std::string symbol_;
};

/// The type of a variable: `{DType::kF32, {"n", 64}}` is a matrix of floats, any number of rows of 64; `{DType::kF32}`
/// a scalar.
struct Type {
    DType dtype = DType::kF32;
    std::vector<Dim> shape;

    /// "f32[n,64]".
    std::string to_string() const;
    friend bool operator==(const Type&, const Type&) = default;
};

/// What kind of error it is.
enum class ErrorCode {
    kInvalidArgument,
    kShape,
    kType,
    kIndex,
    kAssert,
    kParse,
    kVerify,
    kIo,
    kUnsupported,
    kOutOfMemory,
    kCancelled,
    kInternal,  // a bug of Ember
};

/// What every function of this API throws. what() names the op, its operands' types and what was expected.
class Error : public std::runtime_error {
public:
    Error(ErrorCode code, const std::string& text) : std::runtime_error(text), code_(code) {}
    ErrorCode code() const { return code_; }

private:
    ErrorCode code_;
};

}  // namespace ember
