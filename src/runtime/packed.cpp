// Packing, the table of what is packed, and how a product is cut up for threads: see packed.h.
#include "runtime/packed.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "runtime/kernels.h"
#include "runtime/packed_layout.h"
#include "runtime/scratch.h"
#include "runtime/thread_pool.h"

namespace ember::runtime {
namespace {

// Up to this many tokens the codes are decoded in registers.
constexpr int64_t kFewPackedTokens = 8;
// A range of work worth handing to another thread: bytes of weights read, multiplications of many tokens.
constexpr int64_t kRangeBytes = 48 << 10;
constexpr int64_t kRangeMultiplications = 500'000;
// Tokens that share a decoded panel; more than enough to make decoding it cheap.
constexpr int64_t kTokensOfRange = 128;

struct Known {
    QType type;
    int64_t n, k;
    const uint8_t* tiles;
};

struct Table {
    std::shared_mutex mutex;
    std::unordered_multimap<const void*, Known> known;  // equal data may be packed twice
    std::atomic<size_t> size{0};
};

Table& table() {
    static Table* const instance = new Table;  // products may run while statics end
    return *instance;
}

int64_t tiles_of(int64_t n) {
    return (n + kTileRows - 1) / kTileRows;
}

int64_t tile_bytes(QType type, int64_t k) {
    return packed_tile_bytes(packed_layout(type), k / kGroup);
}

// ---- packing ----

/// The codes of 32 columns of a row: nibble j of the low (high) ones is column j (16 + j); planes hold the bits above,
/// bit j for column j.
struct RowCodes {
    uint8_t nibbles[16];
    uint32_t planes[2];
    const uint8_t* bytes;  // 8-bit codes instead
};

uint16_t read_u16(const uint8_t* from) {
    uint16_t value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

uint32_t read_u32(const uint8_t* from) {
    uint32_t value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

uint32_t bits_of(const uint8_t* bytes, int bit) {
    uint32_t bits = 0;
    for (int j = 0; j < kGroup; ++j) {
        bits |= static_cast<uint32_t>((bytes[j] >> bit) & 1) << j;
    }
    return bits;
}

/// Nibbles from 32 bytes that hold one group in their low and another in their high halves.
void take_nibbles(const uint8_t* bytes, bool high, uint8_t* nibbles) {
    for (int j = 0; j < 16; ++j) {
        nibbles[j] = static_cast<uint8_t>(high ? (bytes[j] >> 4) | (bytes[j + 16] & 0xf0)
                                               : (bytes[j] & 15) | (bytes[j + 16] << 4));
    }
}

RowCodes read_codes(QType type, const uint8_t* row, int64_t g) {
    RowCodes codes = {};
    const uint8_t* block = row + g * kGroup / qtype_info(type).block * qtype_info(type).bytes;
    const int in_block = static_cast<int>(g % 8);
    switch (type) {
        case QType::kQ4_0:
            std::memcpy(codes.nibbles, block + 2, 16);
            break;
        case QType::kQ4_1:
            std::memcpy(codes.nibbles, block + 4, 16);
            break;
        case QType::kQ5_0:
            codes.planes[0] = read_u32(block + 2);
            std::memcpy(codes.nibbles, block + 6, 16);
            break;
        case QType::kQ5_1:
            codes.planes[0] = read_u32(block + 4);
            std::memcpy(codes.nibbles, block + 8, 16);
            break;
        case QType::kQ8_0:
            codes.bytes = block + 2;
            break;
        case QType::kQ5_K:
            codes.planes[0] = bits_of(block + 16, in_block);
            take_nibbles(block + 48 + in_block / 2 * 32, in_block % 2 != 0, codes.nibbles);
            break;
        case QType::kQ4_K:
            take_nibbles(block + 16 + in_block / 2 * 32, in_block % 2 != 0, codes.nibbles);
            break;
        case QType::kQ6_K: {
            const int half = in_block / 4, quarter = in_block % 4;
            take_nibbles(block + half * 64 + quarter % 2 * 32, quarter >= 2, codes.nibbles);
            codes.planes[0] = bits_of(block + 128 + half * 32, 2 * quarter);
            codes.planes[1] = bits_of(block + 128 + half * 32, 2 * quarter + 1);
            break;
        }
        case QType::kF32:
        case QType::kF16:
        case QType::kBf16:
            break;
    }
    return codes;
}

/// Columns 0, 1 of each four in the lower half, 2, 3 in the upper one: bit 4c + i is column 4c + i or 16 + 4c + i - 2.
uint32_t packed_plane(uint32_t bits) {
    const uint32_t low = bits & 0x33333333U;
    const uint32_t high = (bits >> 2) & 0x33333333U;
    return ((low | (low >> 14)) & 0xffffU) | (high | (high >> 14)) << 16;
}

void put_codes(const RowCodes& from, int bits, int64_t r, uint8_t* group) {
    const auto put = [&](int plane, const void* lane) { std::memcpy(group + plane * kPlaneBytes + r * 4, lane, 4); };
    if (bits == 8) {
        for (int c = 0; c < 8; ++c) {
            put(c, from.bytes + 4 * c);
        }
        return;
    }
    for (int c = 0; c < 4; ++c) {
        put(c, from.nibbles + 4 * c);
    }
    for (int plane = 4; plane < bits; ++plane) {
        const uint32_t lane = packed_plane(from.planes[plane - 4]);
        put(plane, &lane);
    }
}

// Scale and minimum i of q4_k and q5_k: quantized_kernels.h says how their twelve bytes are laid out.
void put_pair(const uint8_t* packed, int i, uint8_t* scale, uint8_t* minimum) {
    if (i < 4) {
        *scale = packed[i] & 63;
        *minimum = packed[i + 4] & 63;
    } else {
        *scale = static_cast<uint8_t>((packed[i + 4] & 15) | ((packed[i - 4] >> 6) << 4));
        *minimum = static_cast<uint8_t>((packed[i + 4] >> 4) | ((packed[i] >> 6) << 4));
    }
}

void put_scales(QType type, const uint8_t* row, int64_t groups, int64_t r, uint8_t* scales) {
    const QTypeInfo& info = qtype_info(type);
    const auto put_half = [&](int64_t at, const uint8_t* from) {
        const uint16_t half = read_u16(from);
        std::memcpy(scales + at + 2 * r, &half, sizeof half);
    };
    for (int64_t g = 0; g < groups; g += info.block / kGroup) {
        const uint8_t* block = row + g * kGroup / info.block * info.bytes;
        switch (packed_layout(type).scales) {
            case PackedScales::kUnit:
                put_half(g * 32, block);
                break;
            case PackedScales::kUnitMin:
                put_half(g * 64, block);
                put_half(g * 64 + 32, block + 2);
                break;
            case PackedScales::kPairs:
                put_half(g / 8 * 320, block);
                put_half(g / 8 * 320 + 32, block + 2);
                for (int i = 0; i < 8; ++i) {
                    uint8_t* to = scales + g / 8 * 320 + 64 + i * 32 + r;
                    put_pair(block + 4, i, to, to + 16);
                }
                break;
            case PackedScales::kSixteens:
                put_half(g / 8 * 288, block + 208);
                for (int i = 0; i < 16; ++i) {
                    scales[g / 8 * 288 + 32 + i * 16 + r] = block[192 + i];
                }
                break;
        }
    }
}

/// `tile` holds zeros before.
void pack_tile(const PlainWeights& w, int64_t tile_number, uint8_t* tile) {
    const PackedLayout layout = packed_layout(w.type);
    const int64_t groups = w.k / kGroup;
    const int64_t first = tile_number * kTileRows;
    const int64_t bytes = row_bytes(w.type, w.k);
    uint8_t* codes = tile + packed_codes_at(layout.scales, groups);
    for (int64_t r = 0; r < std::min(kTileRows, w.n - first); ++r) {
        const uint8_t* row = static_cast<const uint8_t*>(w.data) + (first + r) * bytes;
        put_scales(w.type, row, groups, r, tile);
    }
    for (int64_t g = 0; g < groups; ++g) {
        for (int64_t r = 0; r < std::min(kTileRows, w.n - first); ++r) {
            const uint8_t* row = static_cast<const uint8_t*>(w.data) + (first + r) * bytes;
            put_codes(read_codes(w.type, row, g), layout.bits, r, codes + g * layout.bits * kPlaneBytes);
        }
    }
}

// ---- products ----

struct Activations {
    int16_t* q;
    GroupScale* scales;
};

/// In one piece of the calling thread's memory; q is null where there is none.
Activations room_for(int64_t m, int64_t k) {
    static thread_local Scratch scratch;
    const int64_t scale_bytes = m * (k / kGroup) * static_cast<int64_t>(sizeof(GroupScale));
    auto* room = scratch.reserve<std::byte>(scale_bytes + m * k * static_cast<int64_t>(sizeof(int16_t)) + 64);
    if (room == nullptr) {
        return {nullptr, nullptr};
    }
    return {reinterpret_cast<int16_t*>(room + (scale_bytes + 63) / 64 * 64), reinterpret_cast<GroupScale*>(room)};
}

void quantize(const PackedKernels& kernel, const Activations& to, int64_t m, int64_t k, const float* x,
              int64_t x_stride) {
    constexpr int64_t kElementsOfRange = 20'000;
    parallel_for(m, std::max<int64_t>(1, kElementsOfRange / k), [&](int64_t begin, int64_t end) {
        for (int64_t t = begin; t < end; ++t) {
            kernel.quantize(x + t * x_stride, k, to.q + t * k, to.scales + t * (k / kGroup));
        }
    });
}

void multiply_few(const PackedTypeKernels& kernel, QType type, const PackedProduct& p) {
    const int64_t grain = std::max<int64_t>(1, kRangeBytes / (tile_bytes(type, p.k) * ((p.m + 3) / 4)));
    parallel_for(tiles_of(p.n), grain, [&](int64_t begin, int64_t end) { kernel.few(p, begin, end - begin); });
}

// Units are two tiles times some tokens, tokens within tiles.
void multiply_many(const PackedTypeKernels& kernel, const PackedProduct& p) {
    const int64_t cuts = std::max<int64_t>(1, p.m / kTokensOfRange);
    const int64_t tokens = (p.m + cuts - 1) / cuts;
    const int64_t pairs = (tiles_of(p.n) + 1) / 2;
    const int64_t grain = std::max<int64_t>(1, kRangeMultiplications / (2 * kTileRows * p.k * tokens));
    parallel_for(pairs * cuts, grain, [&](int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) {
            const int64_t first = unit % cuts * tokens;
            kernel.many(p, unit / cuts * 2, 2, first, std::min(p.m, first + tokens));
        }
    });
}

}  // namespace

bool can_pack(QType type) {
    return packed_layout(type).bits != 0;
}

std::unique_ptr<PackedWeights> PackedWeights::make(std::span<const PlainWeights> weights,
                                                   const std::function<void(size_t)>& packed) {
    std::unique_ptr<PackedWeights> made(new PackedWeights);
    for (const PlainWeights& w : weights) {
        made->bytes_ += tiles_of(w.n) * tile_bytes(w.type, w.k);
    }
    if (made->bytes_ == 0) {
        return made;
    }
    const auto size = static_cast<size_t>(made->bytes_);
    void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        return nullptr;
    }
    madvise(memory, size, MADV_HUGEPAGE);
    made->memory_ = static_cast<std::byte*>(memory);
    auto* tiles = static_cast<uint8_t*>(memory);
    for (size_t i = 0; i < weights.size(); ++i) {
        const PlainWeights& w = weights[i];
        const int64_t bytes = tile_bytes(w.type, w.k);
        parallel_for(tiles_of(w.n), std::max<int64_t>(1, kRangeBytes / std::max<int64_t>(1, bytes)),
                     [&](int64_t begin, int64_t end) {
                         for (int64_t tile = begin; tile < end; ++tile) {
                             pack_tile(w, tile, tiles + tile * bytes);
                         }
                     });
        {
            std::unique_lock lock(table().mutex);
            table().known.emplace(w.data, Known{w.type, w.n, w.k, tiles});
            table().size.store(table().known.size(), std::memory_order_release);
        }
        tiles += tiles_of(w.n) * bytes;
        if (packed) {
            packed(i);
        }
    }
    return made;
}

PackedWeights::~PackedWeights() {
    {
        std::unique_lock lock(table().mutex);
        const auto* begin = reinterpret_cast<const uint8_t*>(memory_);
        std::erase_if(table().known, [&](const auto& entry) {
            return entry.second.tiles >= begin && entry.second.tiles < begin + bytes_;
        });
        table().size.store(table().known.size(), std::memory_order_release);
    }
    if (memory_ != nullptr) {
        munmap(memory_, static_cast<size_t>(bytes_));
    }
}

bool multiply_packed(QType type, int64_t m, int64_t n, int64_t k, const float* x, int64_t x_stride, const void* w,
                     float* y, int64_t y_stride) {
    if (table().size.load(std::memory_order_acquire) == 0) {
        return false;
    }
    PackedProduct p = {m, n, k, nullptr, nullptr, nullptr, y, y_stride};
    {
        std::shared_lock lock(table().mutex);
        auto found = table().known.find(w);
        if (found == table().known.end() || found->second.type != type || found->second.n != n ||
            found->second.k != k) {
            return false;
        }
        p.tiles = found->second.tiles;
    }
    const Activations activations = room_for(m, k);
    if (activations.q == nullptr) {
        return false;
    }
    const PackedKernels& kernels = packed_kernels();
    quantize(kernels, activations, m, k, x, x_stride);
    p.x = activations.q;
    p.x_scales = activations.scales;
    const PackedTypeKernels& kernel = kernels.type[static_cast<int>(type)];
    if (m <= kFewPackedTokens) {
        multiply_few(kernel, type, p);
    } else {
        multiply_many(kernel, p);
    }
    return true;
}

}  // namespace ember::runtime
