// Elements to numbers and back. The evaluator computes every dtype in one of five wide types: `widen` turns a tensor
// into a vector of them, `narrow` rounds or wraps back. Conversions between kinds follow NumPy's astype on x86-64; see
// evaluate.h. Tests: test/unit/interp_test.cpp.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "ember/interp/tensor.h"
#include "ember/ir/dtype.h"
#include "ember/ir/literal.h"
#include "ember/support/check.h"

namespace ember::interp {

using Complex = std::complex<long double>;

struct StoredBool {
    uint8_t byte;
};
struct StoredF16 {
    uint16_t bits;
};
struct StoredBF16 {
    uint16_t bits;
};

template <class T>
inline constexpr bool is_complex_v = false;
template <class T>
inline constexpr bool is_complex_v<std::complex<T>> = true;

/// Calls f with a value of the type that elements of `dtype` have in memory.
template <class F>
auto with_stored(ir::DType dtype, F f) {
    switch (dtype) {
        case ir::DType::kBool:
            return f(StoredBool{});
        case ir::DType::kI8:
            return f(int8_t{});
        case ir::DType::kI16:
            return f(int16_t{});
        case ir::DType::kI32:
            return f(int32_t{});
        case ir::DType::kI64:
            return f(int64_t{});
        case ir::DType::kU8:
            return f(uint8_t{});
        case ir::DType::kU16:
            return f(uint16_t{});
        case ir::DType::kU32:
            return f(uint32_t{});
        case ir::DType::kU64:
            return f(uint64_t{});
        case ir::DType::kF16:
            return f(StoredF16{});
        case ir::DType::kBF16:
            return f(StoredBF16{});
        case ir::DType::kF32:
            return f(float{});
        case ir::DType::kF64:
            return f(double{});
        case ir::DType::kC64:
            return f(std::complex<float>{});
        case ir::DType::kC128:
            return f(std::complex<double>{});
        default:
            unreachable("elements of a storage type");
    }
}

/// Calls f with a value of the wide type of `dtype`: uint64_t, int64_t, double (f64: long double) or Complex.
template <class F>
auto with_wide(ir::DType dtype, F f) {
    switch (ir::kind(dtype)) {
        case ir::DTypeKind::kBool:
        case ir::DTypeKind::kUint:
            return f(uint64_t{});
        case ir::DTypeKind::kInt:
            return f(int64_t{});
        case ir::DTypeKind::kFloat:
            return dtype == ir::DType::kF64 ? f(0.0L) : f(0.0);
        case ir::DTypeKind::kComplex:
            return f(Complex{});
        default:
            unreachable("numbers of a storage type");
    }
}

/// Float to integer as the conversion instructions of x86-64 do it.
template <class R>
int32_t truncated_i32(R value) {
    bool inside = value > R{-2147483649.0} && value < R{2147483648.0};
    return inside ? static_cast<int32_t>(value) : std::numeric_limits<int32_t>::min();
}
template <class R>
int64_t truncated_i64(R value) {
    bool inside = value >= R{-0x1p63} && value < R{0x1p63};
    return inside ? static_cast<int64_t>(value) : std::numeric_limits<int64_t>::min();
}
template <class T, class R>
T truncated(R value) {
    if constexpr (std::is_same_v<T, int64_t>) {
        return truncated_i64(value);
    } else if constexpr (std::is_same_v<T, uint64_t>) {
        bool high = value >= R{0x1p63};
        return high ? static_cast<uint64_t>(truncated_i64(value - R{0x1p63})) ^ (uint64_t{1} << 63)
                    : static_cast<uint64_t>(truncated_i64(value));
    } else if constexpr (std::is_same_v<T, uint32_t>) {
        return static_cast<uint32_t>(truncated_i64(value));
    } else {
        return static_cast<T>(truncated_i32(value));
    }
}

/// The float below or above that has an odd last bit, so that a second rounding to fewer bits is right.
template <class R>
float rounded_to_odd(R value) {
    auto near = static_cast<float>(value);
    if (!std::isfinite(near) || static_cast<R>(near) == value) {
        return std::isinf(near) && std::isfinite(value) ? std::copysign(std::numeric_limits<float>::max(), near) : near;
    }
    auto toward_zero = std::abs(static_cast<R>(near)) > std::abs(value) ? std::nextafter(near, 0.0F) : near;
    uint32_t bits = 0;
    std::memcpy(&bits, &toward_zero, sizeof bits);
    bits |= 1;
    std::memcpy(&toward_zero, &bits, sizeof bits);
    return toward_zero;
}

template <class W, class T>
W widened(T stored) {
    if constexpr (is_complex_v<T>) {
        if constexpr (is_complex_v<W>) {
            return W(stored.real(), stored.imag());
        } else {
            return widened<W>(stored.real());
        }
    } else if constexpr (is_complex_v<W>) {
        return W(widened<typename W::value_type>(stored));
    } else if constexpr (std::is_same_v<T, StoredBool>) {
        return static_cast<W>(stored.byte != 0);
    } else if constexpr (std::is_same_v<T, StoredF16>) {
        return widened<W>(ir::f16_value(stored.bits));
    } else if constexpr (std::is_same_v<T, StoredBF16>) {
        return widened<W>(ir::bf16_value(stored.bits));
    } else if constexpr (std::is_floating_point_v<T> && std::is_integral_v<W>) {
        return truncated<W>(stored);
    } else {
        return static_cast<W>(stored);
    }
}

template <class T, class W>
T narrowed(W wide) {
    if constexpr (is_complex_v<T>) {
        using Part = typename T::value_type;
        if constexpr (is_complex_v<W>) {
            return T(static_cast<Part>(wide.real()), static_cast<Part>(wide.imag()));
        } else {
            return T(static_cast<Part>(wide));
        }
    } else if constexpr (is_complex_v<W>) {
        return narrowed<T>(wide.real());
    } else if constexpr (std::is_same_v<T, StoredBool>) {
        return StoredBool{static_cast<uint8_t>(wide != W{})};
    } else if constexpr (std::is_same_v<T, StoredF16> || std::is_same_v<T, StoredBF16>) {
        float rounded = 0;
        if constexpr (std::is_integral_v<W>) {
            rounded = static_cast<float>(wide);
        } else {
            rounded = rounded_to_odd(wide);
        }
        return T{std::is_same_v<T, StoredF16> ? ir::f16_bits(rounded) : ir::bf16_bits(rounded)};
    } else if constexpr (std::is_floating_point_v<W> && std::is_integral_v<T>) {
        return truncated<T>(wide);
    } else {
        return static_cast<T>(wide);
    }
}

template <class W>
std::vector<W> widen(const Tensor& tensor) {
    std::vector<W> wide(static_cast<size_t>(tensor.elements()));
    with_stored(tensor.dtype, [&]<class T>(T) {
        for (size_t i = 0; i < wide.size(); ++i) {
            T stored;
            std::memcpy(&stored, tensor.bytes.data() + i * sizeof(T), sizeof(T));
            wide[i] = widened<W>(stored);
        }
    });
    return wide;
}

template <class W>
Tensor narrow(ir::DType dtype, Lengths shape, const std::vector<W>& wide) {
    Tensor tensor = zeros(dtype, std::move(shape));
    check(static_cast<size_t>(tensor.elements()) == wide.size(), "as many numbers as elements");
    with_stored(dtype, [&]<class T>(T) {
        for (size_t i = 0; i < wide.size(); ++i) {
            T stored = narrowed<T>(wide[i]);
            std::memcpy(tensor.bytes.data() + i * sizeof(T), &stored, sizeof(T));
        }
    });
    return tensor;
}

/// Sum and product that wrap for integers.
template <class W>
W wrapping_add(W x, W y) {
    if constexpr (std::is_integral_v<W>) {
        return static_cast<W>(static_cast<uint64_t>(x) + static_cast<uint64_t>(y));
    } else {
        return x + y;
    }
}
template <class W>
W wrapping_mul(W x, W y) {
    if constexpr (std::is_integral_v<W>) {
        return static_cast<W>(static_cast<uint64_t>(x) * static_cast<uint64_t>(y));
    } else {
        return x * y;
    }
}

template <class W>
bool is_nan(W x) {
    if constexpr (std::is_floating_point_v<W>) {
        return std::isnan(x);
    } else {
        return false;
    }
}
template <class W>
W larger(W x, W y) {
    return x >= y || is_nan(x) ? x : y;
}
template <class W>
W smaller(W x, W y) {
    return x <= y || is_nan(x) ? x : y;
}

}  // namespace ember::interp
