// Sizes of packed tiles, as constants: see packed.h for what lies where. Internal linkage, as kernels include it.
#pragma once

#include <stdint.h>

#include "runtime/quantized.h"

namespace ember::runtime {
namespace {

constexpr int kGroup = 32;  // columns with a scale of their own
constexpr int kPairs = 16;  // of a group
constexpr int kPlaneBytes = 64;

enum class PackedScales {
    kUnit,      // d
    kUnitMin,   // d, m
    kPairs,     // q4_k, q5_k
    kSixteens,  // q6_k
};

struct PackedLayout {
    int bits;  // 0: the type has no packed form
    int offset;
    PackedScales scales;
};

constexpr PackedLayout packed_layout(QType type) {
    switch (type) {
        case QType::kQ4_0:
            return {4, 8, PackedScales::kUnit};
        case QType::kQ4_1:
            return {4, 0, PackedScales::kUnitMin};
        case QType::kQ5_0:
            return {5, 16, PackedScales::kUnit};
        case QType::kQ5_1:
            return {5, 0, PackedScales::kUnitMin};
        case QType::kQ8_0:
            return {8, 0, PackedScales::kUnit};
        case QType::kQ4_K:
            return {4, 0, PackedScales::kPairs};
        case QType::kQ5_K:
            return {5, 0, PackedScales::kPairs};
        case QType::kQ6_K:
            return {6, 32, PackedScales::kSixteens};
        case QType::kF32:
        case QType::kF16:
        case QType::kBf16:
            break;
    }
    return {0, 0, PackedScales::kUnit};
}

constexpr int64_t packed_scale_bytes(PackedScales scales, int64_t groups) {
    switch (scales) {
        case PackedScales::kUnit:
            return groups * 32;
        case PackedScales::kUnitMin:
            return groups * 64;
        case PackedScales::kPairs:
            return groups / 8 * (64 + 8 * 32);
        case PackedScales::kSixteens:
            return groups / 8 * (32 + 8 * 32);
    }
    return 0;
}

/// Where the codes of a tile begin.
constexpr int64_t packed_codes_at(PackedScales scales, int64_t groups) {
    return (packed_scale_bytes(scales, groups) + 63) / 64 * 64;
}

constexpr int64_t packed_tile_bytes(const PackedLayout& layout, int64_t groups) {
    return packed_codes_at(layout.scales, groups) + groups * layout.bits * kPlaneBytes;
}

/// The first column of pair p of a group; the second is two further on.
constexpr int pair_column(int p) {
    return p / 4 * 4 + p % 2 * 16 + p % 4 / 2;
}

/// The bit of a plane's halves that belongs to pair p.
constexpr int pair_bit(int p) {
    constexpr int kPlace[4] = {0, 2, 1, 3};
    return p / 4 * 4 + kPlace[p % 4];
}

}  // namespace
}  // namespace ember::runtime
