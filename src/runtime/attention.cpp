// Attention by blocks of tokens and chunks of positions, over the kernels of matrix products: see attention.h.
#include "runtime/attention.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "runtime/functions.h"
#include "runtime/kernels.h"
#include "runtime/scratch.h"
#include "runtime/thread_pool.h"

namespace ember::runtime {
namespace {

constexpr int64_t kChunk = 256;     // positions with a maximum and a sum of their own
constexpr int64_t kTile = 64;       // positions whose keys are in the first-level cache
constexpr int64_t kBlockRows = 48;  // rows that share them: query heads of a group times tokens
constexpr int64_t kFewRows = 8;     // up to this many rows nothing is packed

int64_t round_up(int64_t n, int64_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

/// What the rows of a block are after some positions: the largest score, the sum of e^(score - largest), and the values
/// weighted with these.
struct Partial {
    float* most;
    float* sum;
    float* values;  // [rows, value_dim]
};

class Attention {
public:
    explicit Attention(const AttentionArgs& args)
        : a_(args),
          group_(args.heads / args.kv_heads),
          block_tokens_(std::clamp<int64_t>(kBlockRows / group_, 1, args.tokens)),
          blocks_((args.tokens + block_tokens_ - 1) / block_tokens_),
          block_rows_(block_tokens_ * group_) {}

    void run() {
        const int64_t most_chunks = chunks_of(blocks_ - 1);
        const bool few_blocks = blocks_ * a_.kv_heads < 4 * thread_count();
        if (!few_blocks || most_chunks == 1 || thread_count() == 1 || !run_by_chunk(most_chunks)) {
            run_by_block();
        }
    }

private:
    int64_t partial_floats() const { return block_rows_ * (2 + a_.value_dim); }
    Partial partial_at(float* memory) const { return {memory, memory + block_rows_, memory + 2 * block_rows_}; }
    int64_t tokens_of(int64_t block) const { return std::min(block_tokens_, a_.tokens - block * block_tokens_); }
    /// Positions that the last token of a block sees.
    int64_t positions_of(int64_t block) const { return a_.first + block * block_tokens_ + tokens_of(block); }
    int64_t chunks_of(int64_t block) const { return (positions_of(block) + kChunk - 1) / kChunk; }

    void run_by_block();
    void attend_plainly(int64_t block, int64_t head) const;
    bool run_by_chunk(int64_t most_chunks);
    void do_chunk(int64_t block, int64_t head, int64_t chunk, float* room, const Partial& to) const;
    void multiply_keys(int64_t rows, int64_t head, int64_t begin, int64_t count, float* room) const;
    void multiply_values(int64_t rows, int64_t head, int64_t begin, int64_t count, float* room, float* to) const;
    void add(int64_t rows, const Partial& part, const Partial& to) const;
    void finish(int64_t block, int64_t head, const Partial& from) const;

    /// Rows [begin, begin + count) of a head's keys or values as f32, converted into `room` where they are not.
    const float* rows_of(const void* all, int64_t head, int64_t begin, int64_t count, int64_t width,
                         float* room) const {
        const int64_t at = (head * a_.capacity + begin) * width;
        if (a_.type == KeyType::kF32) {
            return static_cast<const float*>(all) + at;
        }
        kernels().attention.widen(static_cast<const uint16_t*>(all) + at, room, count * width);
        return room;
    }

    // Room of a thread, in floats from its beginning on; each part begins at a multiple of 16.
    int64_t packed_rows() const { return round_up(block_rows_, 16); }
    int64_t q_at() const { return 0; }
    int64_t scores_at() const { return q_at() + round_up(packed_rows() * a_.dim, 16); }
    int64_t packed_at() const { return scores_at() + round_up(block_rows_ * kChunk, 16); }
    int64_t converted_at() const { return packed_at() + round_up(packed_rows() * std::max(kTile, a_.dim) + 64, 16); }
    int64_t columns_at() const { return converted_at() + round_up(kTile * std::max(a_.dim, a_.value_dim), 16); }
    int64_t room_floats() const { return columns_at() + round_up(round_up(kTile, 48) * a_.dim + 64, 16); }

    AttentionArgs a_;
    int64_t group_, block_tokens_, blocks_, block_rows_;
};

// Scores of the rows, at scores_at(), kChunk apart.
void Attention::multiply_keys(int64_t rows, int64_t head, int64_t begin, int64_t count, float* room) const {
    const GemmKernels<float>& gemm = kernels().f32;
    float* packed = room + packed_at();
    if (rows > kFewRows) {
        gemm.pack_a(rows, a_.dim, room + q_at(), a_.dim, 1, packed);
    }
    for (int64_t tile = 0; tile < count; tile += kTile) {
        const int64_t some = std::min(kTile, count - tile);
        const float* keys = rows_of(a_.keys, head, begin + tile, some, a_.dim, room + converted_at());
        float* scores = room + scores_at() + tile;
        if (rows <= kFewRows) {
            gemm.dot(rows, some, a_.dim, room + q_at(), a_.dim, keys, a_.dim, scores, kChunk, 1);
        } else {
            gemm.pack_b(some, a_.dim, keys, a_.dim, 1, room + columns_at());
            gemm.packed(rows, some, a_.dim, packed, room + columns_at(), scores, kChunk, 1, false);
        }
    }
}

void Attention::multiply_values(int64_t rows, int64_t head, int64_t begin, int64_t count, float* room,
                                float* to) const {
    const GemmKernels<float>& gemm = kernels().f32;
    const float* weights = room + scores_at();
    if (rows <= kFewRows) {
        std::fill_n(to, rows * a_.value_dim, 0.0F);
    }
    for (int64_t tile = 0; tile < count; tile += kTile) {
        const int64_t some = std::min(kTile, count - tile);
        const float* values = rows_of(a_.values, head, begin + tile, some, a_.value_dim, room + converted_at());
        if (rows <= kFewRows) {
            kernels().attention.weighted_rows(rows, some, a_.value_dim, weights + tile, kChunk, values, to);
        } else {
            gemm.pack_a(rows, some, weights + tile, kChunk, 1, room + packed_at());
            gemm.direct(rows, a_.value_dim, some, room + packed_at(), values, a_.value_dim, to, a_.value_dim, 1,
                        tile > 0);
        }
    }
}

void Attention::do_chunk(int64_t block, int64_t head, int64_t chunk, float* room, const Partial& to) const {
    const int64_t tokens = tokens_of(block);
    const int64_t rows = tokens * group_;
    const int64_t begin = chunk * kChunk;
    const int64_t count = std::min(kChunk, positions_of(block) - begin);
    float* q = room + q_at();
    for (int64_t t = 0; t < tokens; ++t) {
        const float* from = a_.q + ((block * block_tokens_ + t) * a_.heads + head * group_) * a_.dim;
        std::copy_n(from, group_ * a_.dim, q + t * group_ * a_.dim);
    }
    multiply_keys(rows, head, begin, count, room);
    float* scores = room + scores_at();
    const int64_t width = round_up(count, 16);
    for (int64_t r = 0; r < rows; ++r) {
        const int64_t seen = a_.first + block * block_tokens_ + r / group_ + 1 - begin;
        float* row = scores + r * kChunk;
        to.sum[r] = kernels().attention.exp_row(row, std::clamp<int64_t>(seen, 0, count), width, &to.most[r]);
    }
    multiply_values(rows, head, begin, count, room, to.values);
}

void Attention::add(int64_t rows, const Partial& part, const Partial& to) const {
    for (int64_t r = 0; r < rows; ++r) {
        if (part.sum[r] == 0) {  // a row that sees nothing of the chunk
            continue;
        }
        const float most = std::max(to.most[r], part.most[r]);
        const float old_weight = std::exp(to.most[r] - most);
        const float new_weight = std::exp(part.most[r] - most);
        to.most[r] = most;
        to.sum[r] = to.sum[r] * old_weight + part.sum[r] * new_weight;
        float* values = to.values + r * a_.value_dim;
        const float* more = part.values + r * a_.value_dim;
        for (int64_t c = 0; c < a_.value_dim; ++c) {
            values[c] = values[c] * old_weight + more[c] * new_weight;
        }
    }
}

void Attention::finish(int64_t block, int64_t head, const Partial& from) const {
    for (int64_t r = 0; r < tokens_of(block) * group_; ++r) {
        const int64_t token = block * block_tokens_ + r / group_;
        float* to = a_.out + (token * a_.heads + head * group_ + r % group_) * a_.value_dim;
        for (int64_t c = 0; c < a_.value_dim; ++c) {
            to[c] = from.values[r * a_.value_dim + c] / from.sum[r];
        }
    }
}

// Only for want of memory: every score is computed twice.
void Attention::attend_plainly(int64_t block, int64_t head) const {
    const auto element = [&](const void* all, int64_t position, int64_t width, int64_t i) {
        float value;
        const int64_t at = (head * a_.capacity + position) * width + i;
        if (a_.type == KeyType::kF32) {
            value = static_cast<const float*>(all)[at];
        } else {
            kernels().half.f16_to_f32(static_cast<const uint16_t*>(all) + at, &value, 1);
        }
        return value;
    };
    for (int64_t r = 0; r < tokens_of(block) * group_; ++r) {
        const int64_t token = block * block_tokens_ + r / group_;
        const int64_t row = token * a_.heads + head * group_ + r % group_;
        float* to = a_.out + row * a_.value_dim;
        float most = -std::numeric_limits<float>::infinity();
        float sum = 0;
        for (const bool is_sum : {false, true}) {
            for (int64_t j = 0; j <= a_.first + token; ++j) {
                float score = 0;
                for (int64_t i = 0; i < a_.dim; ++i) {
                    score += a_.q[row * a_.dim + i] * element(a_.keys, j, a_.dim, i);
                }
                if (!is_sum) {
                    most = std::max(most, score);
                    continue;
                }
                const float weight = std::exp(score - most);
                sum += weight;
                for (int64_t c = 0; c < a_.value_dim; ++c) {
                    to[c] = (j == 0 ? 0.0F : to[c]) + weight * element(a_.values, j, a_.value_dim, c);
                }
            }
        }
        for (int64_t c = 0; c < a_.value_dim; ++c) {
            to[c] /= sum;
        }
    }
}

// Later blocks see more: they go first, so that no thread begins a long one last.
void Attention::run_by_block() {
    parallel_for(blocks_ * a_.kv_heads, 1, [&](int64_t unit, int64_t end) {
        static thread_local Scratch scratch;
        float* memory = scratch.reserve<float>(2 * partial_floats() + room_floats() + 64);
        const Partial whole = partial_at(memory);
        const Partial part = partial_at(memory + partial_floats());
        float* room = memory + round_up(2 * partial_floats(), 16);
        for (; unit < end; ++unit) {
            const int64_t block = blocks_ - 1 - unit / a_.kv_heads;
            const int64_t head = unit % a_.kv_heads;
            if (memory == nullptr) {
                attend_plainly(block, head);
                continue;
            }
            for (int64_t chunk = 0; chunk < chunks_of(block); ++chunk) {
                do_chunk(block, head, chunk, room, chunk == 0 ? whole : part);
                if (chunk > 0) {
                    add(tokens_of(block) * group_, part, whole);
                }
            }
            finish(block, head, whole);
        }
    });
}

/// False, with nothing done, where memory is out.
bool Attention::run_by_chunk(int64_t most_chunks) {
    static thread_local Scratch all_parts;
    float* parts = all_parts.reserve<float>(blocks_ * a_.kv_heads * most_chunks * partial_floats());
    if (parts == nullptr) {
        return false;
    }
    std::atomic<bool> done{true};
    parallel_for(blocks_ * a_.kv_heads * most_chunks, 1, [&](int64_t unit, int64_t end) {
        static thread_local Scratch scratch;
        float* room = scratch.reserve<float>(room_floats());
        if (room == nullptr) {
            done = false;
            return;
        }
        for (; unit < end; ++unit) {
            const int64_t chunk = unit % most_chunks;
            const int64_t block = unit / most_chunks / a_.kv_heads;
            if (chunk < chunks_of(block)) {
                do_chunk(block, unit / most_chunks % a_.kv_heads, chunk, room,
                         partial_at(parts + unit * partial_floats()));
            }
        }
    });
    for (int64_t unit = 0; done && unit < blocks_ * a_.kv_heads; ++unit) {
        const int64_t block = unit / a_.kv_heads;
        const Partial whole = partial_at(parts + unit * most_chunks * partial_floats());
        for (int64_t chunk = 1; chunk < chunks_of(block); ++chunk) {
            add(tokens_of(block) * group_, partial_at(parts + (unit * most_chunks + chunk) * partial_floats()), whole);
        }
        finish(block, unit % a_.kv_heads, whole);
    }
    return done;
}

}  // namespace

void attention(const AttentionArgs& args) {
    if (args.tokens > 0 && args.heads > 0 && args.value_dim > 0) {
        Attention(args).run();
    }
}

int64_t functions::attention(const EmberSlot* a) {
    const AttentionArgs args = {static_cast<KeyType>(a[0].number),
                                a[1].number,
                                a[2].number,
                                a[3].number,
                                a[4].number,
                                a[5].number,
                                a[6].number,
                                a[7].number,
                                static_cast<const float*>(a[8].pointer),
                                a[9].pointer,
                                a[10].pointer,
                                static_cast<float*>(a[11].pointer)};
    runtime::attention(args);
    return 0;
}

}  // namespace ember::runtime
