// Spelling of bytes, and merging by a heap over a linked list.
#include "model/bpe.h"

#include <algorithm>

#include "model/unicode.h"

namespace ember::model {

namespace {

constexpr bool is_printable(int byte) {
    return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

/// Printable bytes are the character of the same number; the 68 others follow each other from U+0100.
constexpr int kOtherBytes = 68;
constexpr std::array<uint16_t, 256> make_code_points() {
    std::array<uint16_t, 256> code_points{};
    uint16_t next = 0x100;
    for (int byte = 0; byte < 256; ++byte) {
        code_points[static_cast<size_t>(byte)] = is_printable(byte) ? static_cast<uint16_t>(byte) : next++;
    }
    return code_points;
}
constexpr std::array<uint16_t, 256> kCodePoints = make_code_points();

constexpr std::array<int16_t, 256 + kOtherBytes> make_bytes() {
    std::array<int16_t, 256 + kOtherBytes> bytes{};
    bytes.fill(-1);
    for (size_t byte = 0; byte < 256; ++byte) {
        bytes[kCodePoints[byte]] = static_cast<int16_t>(byte);
    }
    return bytes;
}
constexpr std::array<int16_t, 256 + kOtherBytes> kBytes = make_bytes();

struct Spelling {
    char text[2];
    uint8_t length;
};
constexpr std::array<Spelling, 256> make_spellings() {
    std::array<Spelling, 256> spellings{};
    for (size_t byte = 0; byte < 256; ++byte) {
        uint16_t code = kCodePoints[byte];
        spellings[byte] =
            code < 0x80 ? Spelling{{static_cast<char>(code), 0}, 1}
                        : Spelling{{static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 63))}, 2};
    }
    return spellings;
}
constexpr std::array<Spelling, 256> kSpellings = make_spellings();

}  // namespace

std::string_view byte_symbol(uint8_t byte) {
    return {kSpellings[byte].text, kSpellings[byte].length};
}

void append_symbol_bytes(std::string_view symbols, std::string& out) {
    while (!symbols.empty()) {
        Utf8Char next = read_utf8(symbols);
        if (next.state == Utf8Char::State::kValid && next.code_point < kBytes.size() && kBytes[next.code_point] >= 0) {
            out += static_cast<char>(kBytes[next.code_point]);
        } else {
            out += symbols.substr(0, next.length);
        }
        symbols.remove_prefix(next.length);
    }
}

BpeTables::BpeTables(std::span<const std::string_view> tokens, std::span<const std::string_view> merges, uint64_t seed)
    : seed(seed), tokens(tokens, seed), merges(merges, seed) {
    for (size_t byte = 0; byte < 256; ++byte) {
        byte_hashes[byte] = hash_symbol(byte_symbol(static_cast<uint8_t>(byte)), seed);
    }
}

void BpeEncoder::encode(std::string_view piece, std::vector<int32_t>& ids) {
    spell(piece);
    heap_.clear();
    for (uint32_t left = 0; left + 1 < symbols_.size(); ++left) {
        add_candidate(left);
    }
    while (!heap_.empty()) {
        std::pop_heap(heap_.begin(), heap_.end(), later);
        Candidate candidate = heap_.back();
        heap_.pop_back();
        merge(candidate);
    }
    for (const Symbol& symbol : symbols_) {
        if (symbol.length > 0) {
            append_ids(symbol, ids);
        }
    }
}

bool BpeEncoder::encode_whole(std::string_view piece, std::vector<int32_t>& ids) {
    spelled_.clear();
    for (char c : piece) {
        spelled_ += byte_symbol(static_cast<uint8_t>(c));
    }
    auto id = tables_.tokens.find(spelled_, hash_symbol(spelled_, tables_.seed));
    if (id) {
        ids.push_back(*id);
    }
    return id.has_value();
}

void BpeEncoder::spell(std::string_view piece) {
    spelled_.clear();
    symbols_.clear();
    symbols_.reserve(piece.size());
    for (char c : piece) {
        auto byte = static_cast<uint8_t>(c);
        std::string_view symbol = byte_symbol(byte);
        auto index = static_cast<uint32_t>(symbols_.size());
        symbols_.push_back({static_cast<uint32_t>(spelled_.size()), static_cast<uint32_t>(symbol.size()), index - 1,
                            index + 1, tables_.byte_hashes[byte]});
        spelled_ += symbol;
    }
    if (!symbols_.empty()) {
        symbols_.back().after = kNone;
    }
}

/// Heap order: whether `a` is merged after `b`.
bool BpeEncoder::later(const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
}

void BpeEncoder::add_candidate(uint32_t left) {
    const Symbol& a = symbols_[left];
    if (a.after == kNone) {
        return;
    }
    const Symbol& b = symbols_[a.after];
    uint32_t rank = tables_.merges.find(text_of(a), a.hash, text_of(b), b.hash);
    if (rank != MergeTable::kNone) {
        heap_.push_back({rank, left, a.after, a.length + b.length});
        std::push_heap(heap_.begin(), heap_.end(), later);
    }
}

void BpeEncoder::merge(const Candidate& candidate) {
    Symbol& left = symbols_[candidate.left];
    Symbol& right = symbols_[candidate.right];
    bool out_of_date = left.length == 0 || right.length == 0 || left.after != candidate.right ||
                       left.length + right.length != candidate.length;
    if (out_of_date) {
        return;
    }
    left.length += right.length;
    left.after = right.after;
    left.hash = hash_symbol(text_of(left), tables_.seed);
    right.length = 0;
    if (left.after != kNone) {
        symbols_[left.after].before = candidate.left;
    }
    add_candidate(candidate.left);
    if (left.before != kNone) {
        add_candidate(left.before);
    }
}

void BpeEncoder::append_ids(const Symbol& symbol, std::vector<int32_t>& ids) const {
    std::string_view text = text_of(symbol);
    if (auto id = tables_.tokens.find(text, symbol.hash)) {
        ids.push_back(*id);
        return;
    }
    std::string bytes;  // a merge whose result is no token: byte by byte
    append_symbol_bytes(text, bytes);
    for (char c : bytes) {
        auto byte = static_cast<uint8_t>(c);
        if (auto id = tables_.tokens.find(byte_symbol(byte), tables_.byte_hashes[byte])) {
            ids.push_back(*id);
        }
    }
}

}  // namespace ember::model
