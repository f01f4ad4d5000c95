// The two hash tables of a BPE vocabulary, over strings that stay where they are in the file: text → token, and pair of
// symbols → merge rank. Open addressing; a slot holds 32 bits of the hash, so that a miss rarely touches a string.
// Hashes are seeded, as a file's author must not be able to choose collisions. Tests: test/unit/tokenizer_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace ember::model {

/// Hash of a token's or a symbol's text.
uint64_t hash_symbol(std::string_view text, uint64_t seed);

/// What both tables share: 32-bit rows found by 64-bit hashes.
class HashedRows {
public:
    /// Room for `count` rows.
    explicit HashedRows(size_t count);

    /// The first row with this hash for which `is_same(row)`; `kNone` where there is none.
    static constexpr uint32_t kNone = UINT32_MAX;
    template <class IsSame>
    uint32_t find(uint64_t hash, IsSame is_same) const {
        for (size_t at = hash & mask_; slots_[at].row != kNone; at = (at + 1) & mask_) {
            if (slots_[at].tag == static_cast<uint32_t>(hash >> 32) && is_same(slots_[at].row)) {
                return slots_[at].row;
            }
        }
        return kNone;
    }
    /// Adds row i under hashes[i] for every i, but no row that `is_same(row, earlier)` as an earlier one.
    template <class IsSame>
    void insert_all(std::span<const uint64_t> hashes, IsSame is_same) {
        constexpr size_t kAhead = 16;  // slots are all over a megabyte: fetch them before their turn
        for (size_t i = 0; i < hashes.size(); ++i) {
            if (i + kAhead < hashes.size()) {
                __builtin_prefetch(&slots_[hashes[i + kAhead] & mask_], 1);
            }
            auto row = static_cast<uint32_t>(i);
            insert(hashes[i], row, [&](uint32_t earlier) { return is_same(row, earlier); });
        }
    }

private:
    struct Slot {
        uint32_t tag = 0;
        uint32_t row = kNone;
    };

    template <class IsSame>
    void insert(uint64_t hash, uint32_t row, IsSame is_same) {
        size_t at = hash & mask_;
        for (; slots_[at].row != kNone; at = (at + 1) & mask_) {
            if (slots_[at].tag == static_cast<uint32_t>(hash >> 32) && is_same(slots_[at].row)) {
                return;
            }
        }
        slots_[at] = {static_cast<uint32_t>(hash >> 32), row};
    }

    std::vector<Slot> slots_;  // a power of two of them, at most half full
    size_t mask_;
};

class TokenTable {
public:
    /// The first of equal tokens counts. `tokens` must outlive the table.
    TokenTable(std::span<const std::string_view> tokens, uint64_t seed);
    std::optional<int32_t> find(std::string_view text, uint64_t hash) const;

private:
    std::span<const std::string_view> tokens_;
    HashedRows rows_;
};

class MergeTable {
public:
    /// Each merge is "LEFT RIGHT"; one without a space is left out, and the first of equal ones counts.
    MergeTable(std::span<const std::string_view> merges, uint64_t seed);

    static constexpr uint32_t kNone = HashedRows::kNone;
    /// The rank (its place among the merges; low is first) of merging two symbols with their hashes.
    uint32_t find(std::string_view left, uint64_t left_hash, std::string_view right, uint64_t right_hash) const;

private:
    std::vector<std::string_view> merges_;
    HashedRows rows_;
};

}  // namespace ember::model
