// Element types as artifacts name them to the runtime, and unsigned keys that order as the numbers do: NaN is the
// largest and equals itself, -0 equals 0. Tests: test/unit/sort_test.cpp.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ember::runtime {

/// In the order of ir::DType.
enum class ElementType : int64_t { kBool, kI8, kI16, kI32, kI64, kU8, kU16, kU32, kU64, kF16, kBF16, kF32, kF64 };

struct Bool {
    uint8_t byte;
};
struct F16 {
    uint16_t bits;
};
struct BF16 {
    uint16_t bits;
};

/// The bits of a float type: how many, and those of infinity; none for other types.
template <class T>
struct FloatBits {
    static constexpr bool kIsFloat = false;
};
template <class B, B kInf>
struct FloatBitsOf {
    static constexpr bool kIsFloat = true;
    using Bits = B;
    static constexpr B kInfinity = kInf;
};
template <>
struct FloatBits<F16> : FloatBitsOf<uint16_t, 0x7c00> {};
template <>
struct FloatBits<BF16> : FloatBitsOf<uint16_t, 0x7f80> {};
template <>
struct FloatBits<float> : FloatBitsOf<uint32_t, 0x7f800000> {};
template <>
struct FloatBits<double> : FloatBitsOf<uint64_t, 0x7ff0000000000000> {};

template <class T>
inline constexpr bool is_float_v = FloatBits<T>::kIsFloat;

template <class U>
inline constexpr U kTopBit = static_cast<U>(U{1} << (8 * sizeof(U) - 1));

/// An unsigned number that orders as the elements do.
template <class T>
inline auto key_of(T x) {
    if constexpr (std::is_same_v<T, Bool>) {
        return x.byte;
    } else if constexpr (is_float_v<T>) {
        using U = typename FloatBits<T>::Bits;
        U bits = 0;
        std::memcpy(&bits, &x, sizeof bits);
        const U magnitude = static_cast<U>(bits & ~kTopBit<U>);
        const U ordered = static_cast<U>((bits & kTopBit<U>) != 0 ? ~bits : bits | kTopBit<U>);
        return magnitude > FloatBits<T>::kInfinity ? static_cast<U>(~U{0}) : magnitude == 0 ? kTopBit<U> : ordered;
    } else if constexpr (std::is_signed_v<T>) {
        using U = std::make_unsigned_t<T>;
        return static_cast<U>(static_cast<U>(x) ^ kTopBit<U>);
    } else {
        return x;
    }
}

template <class T>
using KeyOf = decltype(key_of(T{}));

/// The element of a key; of those that share one, 0 and any NaN.
template <class T>
inline T from_key(KeyOf<T> key) {
    using U = KeyOf<T>;
    T x{};
    U bits = key;
    if constexpr (is_float_v<T>) {
        bits = static_cast<U>((key & kTopBit<U>) != 0 ? key ^ kTopBit<U> : ~key);
    } else if constexpr (!std::is_same_v<T, Bool> && std::is_signed_v<T>) {
        bits = static_cast<U>(key ^ kTopBit<U>);
    }
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

template <class T>
inline bool is_nan(T x) {
    if constexpr (is_float_v<T>) {
        return key_of(x) == static_cast<KeyOf<T>>(~KeyOf<T>{0});
    } else {
        return false;
    }
}

/// Calls f with a value of the type that elements have in memory.
template <class F>
auto with_element(int64_t type, F f) {
    switch (static_cast<ElementType>(type)) {
        case ElementType::kBool:
            return f(Bool{});
        case ElementType::kI8:
            return f(int8_t{});
        case ElementType::kI16:
            return f(int16_t{});
        case ElementType::kI32:
            return f(int32_t{});
        case ElementType::kI64:
            return f(int64_t{});
        case ElementType::kU8:
            return f(uint8_t{});
        case ElementType::kU16:
            return f(uint16_t{});
        case ElementType::kU32:
            return f(uint32_t{});
        case ElementType::kU64:
            return f(uint64_t{});
        case ElementType::kF16:
            return f(F16{});
        case ElementType::kBF16:
            return f(BF16{});
        case ElementType::kF32:
            return f(float{});
        case ElementType::kF64:
            break;
    }
    return f(double{});
}

}  // namespace ember::runtime
