// The table that artifacts call, their arena, and contractions of any rank over gemm: see artifact_abi.h.
#include "runtime/artifact_abi.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "runtime/functions.h"
#include "runtime/gemm.h"
#include "runtime/quantized.h"
#include "runtime/thread_pool.h"

namespace ember::runtime {
namespace {

constexpr int64_t kAlignment = 64;
constexpr int64_t kFirstBlock = int64_t{1} << 16;

int64_t round_up(int64_t bytes) {
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Arena::~Arena() {
    for (Block& block : blocks_) {
        std::free(block.memory);
    }
}

void* Arena::allocate(int64_t bytes) {
    if (bytes < 0 || bytes > (int64_t{1} << 46)) {
        return nullptr;
    }
    bytes = std::max<int64_t>(round_up(bytes), kAlignment);
    int at = std::max(current_, 0);
    if (current_ >= 0 && blocks_[at].size - blocks_[at].used < bytes) {
        ++at;
    }
    while (at < kMaxBlocks) {
        Block& block = blocks_[at];
        block.used = at == current_ ? block.used : 0;
        if (block.memory != nullptr && block.size - block.used < bytes && block.used == 0) {
            std::free(block.memory);
            block = {};
        }
        if (block.memory == nullptr) {
            int64_t size = std::max({bytes, kFirstBlock, at > 0 ? 2 * blocks_[at - 1].size : 0});
            block.memory = static_cast<char*>(std::aligned_alloc(kAlignment, static_cast<size_t>(size)));
            if (block.memory == nullptr && size > bytes) {
                size = bytes;
                block.memory = static_cast<char*>(std::aligned_alloc(kAlignment, static_cast<size_t>(size)));
            }
            if (block.memory == nullptr) {
                return nullptr;
            }
            block.size = size;
        }
        if (block.size - block.used >= bytes) {
            current_ = at;
            char* memory = block.memory + block.used;
            block.used += bytes;
            return memory;
        }
        ++at;
    }
    return nullptr;
}

int64_t Arena::mark() const {
    return current_ < 0 ? 0 : (static_cast<int64_t>(current_) << 48) | (blocks_[current_].used / kAlignment);
}

void Arena::release(int64_t mark) {
    if (current_ < 0) {
        return;
    }
    current_ = static_cast<int>(mark >> 48);
    blocks_[current_].used = (mark & ((int64_t{1} << 48) - 1)) * kAlignment;
}

Kept::~Kept() {
    for (void* memory : memory_) {
        std::free(memory);
    }
}

void* Kept::keep(int64_t bytes) {
    if (bytes < 0 || bytes > (int64_t{1} << 46)) {
        return nullptr;
    }
    auto size = static_cast<size_t>(std::max<int64_t>(round_up(bytes), kAlignment));
    void* memory = std::aligned_alloc(kAlignment, size);
    if (memory != nullptr) {
        memory_.insert(memory);
    }
    return memory;
}

void Kept::drop(void* memory) {
    if (memory_.erase(memory) != 0) {
        std::free(memory);
    }
}

namespace {

Arena* arena_of(EmberContext* context) {
    return static_cast<Arena*>(context->arena);
}

void* thread_scratch(int32_t number, int64_t bytes) {
    struct Room {
        void* memory = nullptr;
        int64_t size = 0;
        ~Room() { std::free(memory); }
    };
    thread_local Room rooms[8];
    Room& room = rooms[number];
    if (room.size < bytes) {
        std::free(room.memory);
        room.size = round_up(bytes);
        room.memory = std::aligned_alloc(kAlignment, static_cast<size_t>(room.size));
        if (room.memory == nullptr) {
            std::abort();  // a row of scratch cannot be had: nothing sensible can follow
        }
    }
    return room.memory;
}

/// One axis of a contraction with its stride in up to three operands.
struct Axis {
    int64_t size;
    int64_t stride[3];
};

/// Drops axes of length 1 and joins neighbours that are walked as one.
void collapse(std::vector<Axis>& axes) {
    std::vector<Axis> kept;
    for (const Axis& axis : axes) {
        if (axis.size == 1) {
            continue;
        }
        if (!kept.empty()) {
            Axis& outer = kept.back();
            bool joins = true;
            for (int i = 0; i < 3; ++i) {
                joins &= outer.stride[i] == axis.stride[i] * axis.size;
            }
            if (joins) {
                outer = {outer.size * axis.size, {axis.stride[0], axis.stride[1], axis.stride[2]}};
                continue;
            }
        }
        kept.push_back(axis);
    }
    axes = std::move(kept);
}

/// Takes the longest axis out of `axes`, or one of length 1.
Axis take_longest(std::vector<Axis>& axes) {
    if (axes.empty()) {
        return {1, {0, 0, 0}};
    }
    auto longest =
        std::max_element(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.size < b.size; });
    Axis axis = *longest;
    axes.erase(longest);
    return axis;
}

template <class T>
void run_batches(const std::vector<Axis>& loops, const GemmArgs& base) {
    GemmArgs args = base;
    size_t outer = loops.size() > kMaxBatchRank ? loops.size() - kMaxBatchRank : 0;
    args.batch_rank = static_cast<int32_t>(loops.size() - outer);
    for (size_t i = outer; i < loops.size(); ++i) {
        args.batch[i - outer] = loops[i].size;
        args.a_batch[i - outer] = loops[i].stride[0];
        args.b_batch[i - outer] = loops[i].stride[1];
        args.c_batch[i - outer] = loops[i].stride[2];
    }
    std::vector<int64_t> index(outer, 0);
    while (true) {
        int64_t offset[3] = {0, 0, 0};
        for (size_t i = 0; i < outer; ++i) {
            for (int o = 0; o < 3; ++o) {
                offset[o] += index[i] * loops[i].stride[o];
            }
        }
        args.a = static_cast<const T*>(base.a) + offset[0];
        args.b = static_cast<const T*>(base.b) + offset[1];
        args.c = static_cast<T*>(base.c) + offset[2];
        if constexpr (sizeof(T) == 4) {
            gemm_f32(args);
        } else {
            gemm_f64(args);
        }
        size_t i = outer;
        while (i > 0 && ++index[i - 1] == loops[i - 1].size) {
            index[--i] = 0;
        }
        if (i == 0) {
            return;
        }
    }
}

/// More than one contracted axis is left: the plain sum, element by element, over all but the longest.
template <class T>
void add_over(std::vector<Axis> sums, const std::vector<Axis>& loops, const GemmArgs& base) {
    // Each further contracted index adds one product; C collects them through a buffer of its own.
    Axis axis = sums.back();
    sums.pop_back();
    std::vector<Axis> all = loops;
    all.push_back({base.m, {base.a_m, 0, base.c_m}});
    all.push_back({base.n, {0, base.b_n, base.c_n}});
    std::vector<T> total;
    int64_t elements = 1;
    for (const Axis& a : all) {
        elements *= a.size;
    }
    total.assign(static_cast<size_t>(elements), T(0));
    auto visit = [&](auto&& f) {
        std::vector<int64_t> index(all.size(), 0);
        for (int64_t e = 0; e < elements; ++e) {
            int64_t at = 0;
            for (size_t i = 0; i < all.size(); ++i) {
                at += index[i] * all[i].stride[2];
            }
            f(e, at);
            for (size_t i = all.size(); i-- > 0 && ++index[i] == all[i].size;) {
                index[i] = 0;
            }
        }
    };
    T* c = static_cast<T*>(base.c);
    for (int64_t k = 0; k < axis.size; ++k) {
        GemmArgs args = base;
        args.a = static_cast<const T*>(base.a) + k * axis.stride[0];
        args.b = static_cast<const T*>(base.b) + k * axis.stride[1];
        if (sums.empty()) {
            run_batches<T>(loops, args);
        } else {
            add_over<T>(sums, loops, args);
        }
        visit([&](int64_t e, int64_t at) { total[static_cast<size_t>(e)] += c[at]; });
    }
    visit([&](int64_t e, int64_t at) { c[at] = total[static_cast<size_t>(e)]; });
}

template <class T>
void contract_as(const int64_t* table, const void* a, const void* b, void* c) {
    int64_t ranks[4] = {table[0], table[1], table[2], table[3]};
    const int64_t* sizes = table + 4;
    int64_t total_rank = ranks[0] + ranks[1] + ranks[2] + ranks[3];
    const int64_t* a_strides = sizes + total_rank;
    const int64_t* b_strides = a_strides + ranks[0] + ranks[1] + ranks[3];
    const int64_t* c_strides = b_strides + ranks[0] + ranks[2] + ranks[3];
    std::vector<Axis> batch;
    std::vector<Axis> m;
    std::vector<Axis> n;
    std::vector<Axis> k;
    for (int64_t i = 0; i < ranks[0]; ++i) {
        batch.push_back({sizes[i], {a_strides[i], b_strides[i], c_strides[i]}});
    }
    for (int64_t i = 0; i < ranks[1]; ++i) {
        m.push_back({sizes[ranks[0] + i], {a_strides[ranks[0] + i], 0, c_strides[ranks[0] + i]}});
    }
    for (int64_t i = 0; i < ranks[2]; ++i) {
        n.push_back({sizes[ranks[0] + ranks[1] + i], {0, b_strides[ranks[0] + i], c_strides[ranks[0] + ranks[1] + i]}});
    }
    for (int64_t i = 0; i < ranks[3]; ++i) {
        k.push_back({sizes[ranks[0] + ranks[1] + ranks[2] + i],
                     {a_strides[ranks[0] + ranks[1] + i], b_strides[ranks[0] + ranks[2] + i], 0}});
    }
    for (auto* axes : {&batch, &m, &n}) {
        for (const Axis& axis : *axes) {
            if (axis.size == 0) {
                return;
            }
        }
    }
    for (const Axis& axis : k) {
        if (axis.size == 0) {
            k.assign(1, {0, {0, 0, 0}});
            break;
        }
    }
    collapse(batch);
    collapse(m);
    collapse(n);
    collapse(k);
    GemmArgs args;
    Axis long_m = take_longest(m);
    Axis long_n = take_longest(n);
    Axis long_k = take_longest(k);
    args.m = long_m.size, args.a_m = long_m.stride[0], args.c_m = long_m.stride[2];
    args.n = long_n.size, args.b_n = long_n.stride[1], args.c_n = long_n.stride[2];
    args.k = long_k.size, args.a_k = long_k.stride[0], args.b_k = long_k.stride[1];
    args.a = a, args.b = b, args.c = c;
    batch.insert(batch.end(), m.begin(), m.end());
    batch.insert(batch.end(), n.begin(), n.end());
    if (k.empty()) {
        run_batches<T>(batch, args);
    } else {
        add_over<T>(k, batch, args);
    }
}

void contract(int32_t is_f64, const int64_t* table, const void* a, const void* b, void* c) {
    if (is_f64 != 0) {
        contract_as<double>(table, a, b, c);
    } else {
        contract_as<float>(table, a, b, c);
    }
}

void quantized_matmul(int32_t type, int64_t m, int64_t n, int64_t k, const float* x, const void* w, float* y) {
    qmatmul(static_cast<QType>(type), m, n, k, x, k, w, y, n);
}

void dequantize_rows(int32_t type, const void* rows, const void* index, int32_t index_bytes, int64_t count,
                     int64_t length, int64_t limit, float* to) {
    auto qtype = static_cast<QType>(type);
    int64_t bytes = row_bytes(qtype, length);
    parallel_for(count, std::max<int64_t>(1, 16384 / std::max<int64_t>(length, 1)), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            int64_t row = i;
            if (index_bytes == 4) {
                row = static_cast<const int32_t*>(index)[i];
            } else if (index_bytes == 8) {
                row = static_cast<const int64_t*>(index)[i];
            }
            row += row < 0 ? limit : 0;
            dequantize_row(qtype, static_cast<const char*>(rows) + row * bytes, to + i * length, length);
        }
    });
}

template <class T>
int64_t first_outside(const void* index, int64_t count, int64_t limit) {
    const T* values = static_cast<const T*>(index);
    for (int64_t i = 0; i < count; ++i) {
        bool fine = std::is_signed_v<T>
                        ? static_cast<int64_t>(values[i]) < limit && static_cast<int64_t>(values[i]) >= -limit
                        : static_cast<uint64_t>(values[i]) < static_cast<uint64_t>(limit);
        if (!fine) {
            return i;
        }
    }
    return -1;
}

int64_t check_indices(const void* index, int32_t kind, int64_t count, int64_t limit) {
    switch (kind) {
        case 1:
            return first_outside<int8_t>(index, count, limit);
        case 2:
            return first_outside<int16_t>(index, count, limit);
        case 4:
            return first_outside<int32_t>(index, count, limit);
        case 8:
            return first_outside<int64_t>(index, count, limit);
        case -1:
            return first_outside<uint8_t>(index, count, limit);
        case -2:
            return first_outside<uint16_t>(index, count, limit);
        case -4:
            return first_outside<uint32_t>(index, count, limit);
        default:
            return first_outside<uint64_t>(index, count, limit);
    }
}

constexpr EmberRuntime kRuntime = {
    [](EmberRange kernel, void* arguments, int64_t total, int64_t grain) {
        parallel_for(kernel, arguments, total, grain);
    },
    [](EmberContext* context, int64_t bytes) { return arena_of(context)->allocate(bytes); },
    [](EmberContext* context) { return arena_of(context)->mark(); },
    [](EmberContext* context, int64_t mark) { arena_of(context)->release(mark); },
    [](EmberContext* context, int64_t bytes) { return static_cast<Kept*>(context->kept)->keep(bytes); },
    [](EmberContext* context, void* memory) { static_cast<Kept*>(context->kept)->drop(memory); },
    thread_scratch,
    contract,
    quantized_matmul,
    dequantize_rows,
    check_indices,
    call_function,
};

}  // namespace

const EmberRuntime* artifact_runtime() {
    return &kRuntime;
}

}  // namespace ember::runtime
