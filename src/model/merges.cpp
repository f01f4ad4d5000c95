// Hash tables of tokens and merges, filled with the slots fetched ahead.
#include "model/merges.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <bit>
#include <utility>

namespace ember::model {

namespace {

uint64_t pair_hash(uint64_t left, uint64_t right) {
    uint64_t mixed = (left ^ std::rotl(right, 23)) * 0x9e3779b97f4a7c15;
    return mixed ^ mixed >> 29;
}

}  // namespace

uint64_t hash_symbol(std::string_view text, uint64_t seed) {
    return XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

HashedRows::HashedRows(size_t count) : slots_(std::bit_ceil(2 * count + 2)), mask_(slots_.size() - 1) {}

TokenTable::TokenTable(std::span<const std::string_view> tokens, uint64_t seed)
    : tokens_(tokens), rows_(tokens.size()) {
    std::vector<uint64_t> hashes(tokens.size());
    for (size_t id = 0; id < tokens.size(); ++id) {
        hashes[id] = hash_symbol(tokens[id], seed);
    }
    rows_.insert_all(hashes, [&](uint32_t id, uint32_t earlier) { return tokens[id] == tokens[earlier]; });
}

std::optional<int32_t> TokenTable::find(std::string_view text, uint64_t hash) const {
    uint32_t id = rows_.find(hash, [&](uint32_t row) { return tokens_[row] == text; });
    return id == HashedRows::kNone ? std::nullopt : std::optional(static_cast<int32_t>(id));
}

MergeTable::MergeTable(std::span<const std::string_view> merges, uint64_t seed) : rows_(merges.size()) {
    merges_.reserve(merges.size());
    std::vector<uint64_t> hashes;
    hashes.reserve(merges.size());
    for (std::string_view merge : merges) {
        size_t space = merge.find(' ', 1);  // a symbol is not empty
        if (space != std::string_view::npos && space + 1 != merge.size()) {
            merges_.push_back(merge);
            hashes.push_back(
                pair_hash(hash_symbol(merge.substr(0, space), seed), hash_symbol(merge.substr(space + 1), seed)));
        }
    }
    rows_.insert_all(hashes, [&](uint32_t rank, uint32_t earlier) { return merges_[rank] == merges_[earlier]; });
}

uint32_t MergeTable::find(std::string_view left, uint64_t left_hash, std::string_view right,
                          uint64_t right_hash) const {
    return rows_.find(pair_hash(left_hash, right_hash), [&](uint32_t rank) {
        std::string_view merge = merges_[rank];
        return merge.size() == left.size() + 1 + right.size() && merge.starts_with(left) && merge.ends_with(right) &&
               merge[left.size()] == ' ';
    });
}

}  // namespace ember::model
