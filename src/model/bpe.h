// Byte-pair merging of one piece of text: symbols start as single bytes, and the pair of neighbours with the lowest
// merge rank, the leftmost of equals, is merged until none is left. A heap holds the candidates and a linked list the
// symbols, so a piece of n bytes takes O(n log n). Tests: test/unit/tokenizer_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/merges.h"

namespace ember::model {

/// How vocabularies spell bytes: GPT-2's map of each byte to a printable character (one or two bytes of UTF-8).
std::string_view byte_symbol(uint8_t byte);
/// A token's text back to bytes; characters outside of the map stay as they are.
void append_symbol_bytes(std::string_view symbols, std::string& out);

/// The tables of a vocabulary, made once.
struct BpeTables {
    BpeTables(std::span<const std::string_view> tokens, std::span<const std::string_view> merges, uint64_t seed);

    uint64_t seed;
    TokenTable tokens;
    MergeTable merges;
    std::array<uint64_t, 256> byte_hashes;
};

/// Encodes piece after piece, with the same memory.
class BpeEncoder {
public:
    explicit BpeEncoder(const BpeTables& tables) : tables_(tables) {}

    /// Appends the ids of a piece. A byte that the vocabulary has no token for is left out, as every tokenizer of this
    /// kind does: the model was trained without it.
    void encode(std::string_view piece, std::vector<int32_t>& ids);
    /// Appends the id of a piece that is itself a token; false where it is none.
    bool encode_whole(std::string_view piece, std::vector<int32_t>& ids);

private:
    struct Symbol {
        uint32_t start, length;  // in spelled_; length 0: merged into the one before
        uint32_t before, after;  // neighbours, or kNone
        uint64_t hash;
    };
    struct Candidate {
        uint32_t rank, left;     // the lowest rank first, then the leftmost
        uint32_t right, length;  // what they were when it was found: if they have grown since, it is out of date
    };
    static constexpr uint32_t kNone = UINT32_MAX;

    std::string_view text_of(const Symbol& symbol) const {
        return std::string_view(spelled_).substr(symbol.start, symbol.length);
    }
    static bool later(const Candidate& a, const Candidate& b);
    void spell(std::string_view piece);
    void add_candidate(uint32_t left);
    void merge(const Candidate& candidate);
    void append_ids(const Symbol& symbol, std::vector<int32_t>& ids) const;

    const BpeTables& tables_;
    std::string spelled_;  // the piece in the vocabulary's spelling
    std::vector<Symbol> symbols_;
    std::vector<Candidate> heap_;
};

}  // namespace ember::model
