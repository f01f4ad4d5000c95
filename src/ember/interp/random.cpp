// Random tensors. Only integer arithmetic and exact scaling, so every machine makes the same ones.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "ember/interp/number.h"
#include "ember/interp/tensor.h"

namespace ember::interp {
namespace {

/// SplitMix64.
class Generator {
public:
    explicit Generator(uint64_t seed) : state_(seed) {}
    uint64_t next() {
        state_ += 0x9e3779b97f4a7c15ULL;
        uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }
    int64_t below(int64_t limit) { return static_cast<int64_t>(next() % static_cast<uint64_t>(limit)); }
    /// A multiple of 2^-24 in (0, 1].
    double unit() { return static_cast<double>((next() >> 40) + 1) * 0x1p-24; }

private:
    uint64_t state_;
};

/// A float type's bits: those of its mantissa and of the whole.
struct FloatBits {
    int mantissa;
    int total;
};

FloatBits float_bits(ir::DType dtype) {
    switch (dtype) {
        case ir::DType::kF16:
            return {10, 16};
        case ir::DType::kBF16:
            return {7, 16};
        case ir::DType::kF32:
        case ir::DType::kC64:
            return {23, 32};
        default:
            return {52, 64};
    }
}

uint64_t wide_float(Generator& random, FloatBits bits) {
    uint64_t value = random.next() >> (64 - bits.total);
    uint64_t exponent = ((uint64_t{1} << (bits.total - 1 - bits.mantissa)) - 1) << bits.mantissa;
    return (value & exponent) == exponent ? value ^ (uint64_t{1} << bits.mantissa) : value;
}

uint64_t special_float(Generator& random, FloatBits bits) {
    uint64_t one = uint64_t{1};
    uint64_t sign = (random.next() & one) << (bits.total - 1);
    uint64_t infinity = ((one << (bits.total - 1 - bits.mantissa)) - 1) << bits.mantissa;
    uint64_t unit = (infinity >> 1) & ~((one << bits.mantissa) - 1);
    const std::array<uint64_t, 9> values = {
        infinity | (one << (bits.mantissa - 1)),  // NaN
        infinity,
        0,
        1,                           // the smallest subnormal
        (one << bits.mantissa) - 1,  // the largest subnormal
        one << bits.mantissa,        // the smallest normal number
        infinity - 1,                // the largest number
        unit,
        unit - (one << bits.mantissa),  // 0.5
    };
    return sign | values[static_cast<size_t>(random.below(values.size()))];
}

double ordinary_float(Generator& random, Fill fill) {
    double value = 2 * random.unit();
    return fill == Fill::kPositive || (random.next() & 1) == 0 ? value : -value;
}

void put_bits(char* to, uint64_t bits, int total) {
    for (int i = 0; i < total / 8; ++i) {
        to[i] = static_cast<char>(bits >> (8 * i));
    }
}

/// Fills one float (or one part of a complex number) of `dtype` at `to`.
void fill_float(Generator& random, ir::DType dtype, Fill fill, char* to) {
    FloatBits bits = float_bits(dtype);
    if (fill == Fill::kSpecial && random.below(3) == 0) {
        return put_bits(to, special_float(random, bits), bits.total);
    }
    if (fill == Fill::kWide || (fill == Fill::kSpecial && random.below(2) == 0)) {
        return put_bits(to, wide_float(random, bits), bits.total);
    }
    ir::DType part = dtype == ir::DType::kC64 ? ir::DType::kF32 : dtype == ir::DType::kC128 ? ir::DType::kF64 : dtype;
    Tensor one = scalar(part, ordinary_float(random, fill));
    std::memcpy(to, one.bytes.data(), one.bytes.size());
}

int64_t integer_value(Generator& random, ir::DType dtype, Fill fill) {
    if (fill == Fill::kSpecial && random.below(3) == 0) {
        int bits = ir::info(dtype).block_bytes * 8 - (ir::is_signed_int(dtype) ? 1 : 0);
        uint64_t most = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
        const std::array<uint64_t, 5> values = {most, ~most, ~uint64_t{0}, 0, 1};
        return static_cast<int64_t>(values[static_cast<size_t>(random.below(values.size()))]);
    }
    if (fill == Fill::kWide || (fill == Fill::kSpecial && random.below(2) == 0)) {
        return static_cast<int64_t>(random.next());
    }
    if (fill == Fill::kPositive) {
        return 1 + random.below(ir::is_bool(dtype) ? 1 : 8);
    }
    if (ir::is_bool(dtype)) {
        return random.below(2);
    }
    return random.below(17) - (ir::is_signed_int(dtype) ? 8 : 0);
}

/// Where a block's f16 scales stand.
std::vector<size_t> scale_offsets(ir::DType dtype) {
    switch (dtype) {
        case ir::DType::kQ4_1:
        case ir::DType::kQ5_1:
        case ir::DType::kQ4_K:
        case ir::DType::kQ5_K:
            return {0, 2};
        case ir::DType::kQ6_K:
            return {208};
        default:
            return {0};
    }
}

void fill_blocks(Generator& random, Tensor& tensor) {
    auto size = static_cast<size_t>(ir::info(tensor.dtype).block_bytes);
    for (char& byte : tensor.bytes) {
        byte = static_cast<char>(random.next() >> 56);
    }
    for (size_t block = 0; block < tensor.bytes.size(); block += size) {
        for (size_t offset : scale_offsets(tensor.dtype)) {
            fill_float(random, ir::DType::kF16, Fill::kOrdinary, tensor.bytes.data() + block + offset);
        }
    }
}

}  // namespace

Tensor random_tensor(ir::DType dtype, Lengths shape, uint64_t seed, Fill fill) {
    Generator random(seed);
    Tensor tensor = zeros(dtype, std::move(shape));
    if (ir::is_quantized(dtype)) {
        fill_blocks(random, tensor);
    } else if (ir::is_float(dtype) || ir::is_complex(dtype)) {
        auto size = static_cast<size_t>(float_bits(dtype).total / 8);
        for (size_t at = 0; at < tensor.bytes.size(); at += size) {
            fill_float(random, dtype, fill, tensor.bytes.data() + at);
        }
    } else if (dtype == ir::DType::kRng) {
        for (char& byte : tensor.bytes) {
            byte = static_cast<char>(random.next() >> 56);
        }
    } else {
        for (int64_t i = 0; i < tensor.elements(); ++i) {
            tensor.set(i, integer_value(random, dtype, fill));
        }
    }
    return tensor;
}

}  // namespace ember::interp
