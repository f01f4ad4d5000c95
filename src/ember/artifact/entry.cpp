// Packing and checking of entries. Input is hostile: no size is believed before it adds up. See entry.h.
#include "ember/artifact/entry.h"

#include <algorithm>
#include <cstring>

#include "ember/artifact/isa.h"
#include "ember/support/sha256.h"

namespace ember {
namespace {

constexpr std::string_view kMagic = "EMBERENT";
// Offsets in the trailer.
constexpr size_t kSizesAt = 8;
constexpr size_t kKeyAt = 40;
constexpr size_t kDigestAt = 72;
constexpr size_t kMagicAt = 104;
static_assert(kMagicAt + kMagic.size() == kEntryTrailerSize);

template <class Int>
void append_little_endian(std::string& to, Int value) {
    for (size_t i = 0; i < sizeof(Int); ++i) {
        to += static_cast<char>(value >> (8 * i));
    }
}

template <class Int>
Int load_little_endian(std::string_view from, size_t at) {
    Int value = 0;
    for (size_t i = 0; i < sizeof(Int); ++i) {
        value |= static_cast<Int>(static_cast<uint8_t>(from[at + i])) << (8 * i);
    }
    return value;
}

Digest load_digest(std::string_view from, size_t at) {
    Digest digest;
    std::memcpy(digest.data(), from.data() + at, digest.size());
    return digest;
}

void append_digest(std::string& to, const Digest& digest) {
    to.append(reinterpret_cast<const char*>(digest.data()), digest.size());
}

/// object, metadata, isa, document.
struct Sizes {
    uint64_t part[4];
};

Sizes load_sizes(std::string_view trailer) {
    Sizes sizes;
    for (size_t i = 0; i < 4; ++i) {
        sizes.part[i] = load_little_endian<uint64_t>(trailer, kSizesAt + 8 * i);
    }
    return sizes;
}

/// Whether the parts and the trailer make up exactly `file_size` bytes, without overflow on the way.
bool sizes_add_up(const Sizes& sizes, uint64_t file_size) {
    uint64_t left = file_size - kEntryTrailerSize;
    for (uint64_t size : sizes.part) {
        if (size > left) {
            return false;
        }
        left -= size;
    }
    return left == 0;
}

bool is_feature(std::string_view name) {
    return !name.empty() && std::ranges::all_of(name, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
    });
}

std::string isa_text(std::vector<std::string> features) {
    std::ranges::sort(features);
    features.erase(std::unique(features.begin(), features.end()), features.end());
    std::string text;
    for (const std::string& feature : features) {
        check(is_feature(feature), "name of an ISA feature");
        text += feature + "\n";
    }
    return text;
}

Digest digest_of(std::string_view object_metadata_isa, std::string_view trailer) {
    return Sha256().update(object_metadata_isa).update(trailer.substr(0, kDigestAt)).finish();
}

}  // namespace

std::string_view entry_fault_name(EntryFault fault) {
    static constexpr std::string_view kNames[] = {"none", "cut", "format", "key", "digest", "isa"};
    return kNames[static_cast<size_t>(fault)];
}

std::string pack_entry(const EntryParts& parts) {
    std::string isa = isa_text(parts.isa);
    std::string entry;
    entry.reserve(parts.object.size() + parts.metadata.size() + isa.size() + parts.document.size() + kEntryTrailerSize);
    entry.append(parts.object).append(parts.metadata).append(isa);
    std::string trailer;
    append_little_endian(trailer, kEntryVersion);
    append_little_endian(trailer, static_cast<uint32_t>(kEntryTrailerSize));
    for (size_t size : {parts.object.size(), parts.metadata.size(), isa.size(), parts.document.size()}) {
        append_little_endian(trailer, static_cast<uint64_t>(size));
    }
    append_digest(trailer, key_of_text(parts.document).bytes);
    append_digest(trailer, digest_of(entry, trailer));
    trailer += kMagic;
    check(trailer.size() == kEntryTrailerSize);
    return entry.append(parts.document).append(trailer);
}

EntryFault check_entry_trailer(std::string_view trailer, uint64_t file_size) {
    if (trailer.size() != kEntryTrailerSize || file_size < kEntryTrailerSize || trailer.substr(kMagicAt) != kMagic) {
        return EntryFault::kCut;
    }
    if (load_little_endian<uint32_t>(trailer, 0) != kEntryVersion) {
        return EntryFault::kFormat;
    }
    bool sound =
        load_little_endian<uint32_t>(trailer, 4) == kEntryTrailerSize && sizes_add_up(load_sizes(trailer), file_size);
    return sound ? EntryFault::kNone : EntryFault::kCut;
}

EntryFault split_entry(std::string_view bytes, EntryView* view) {
    if (bytes.size() < kEntryTrailerSize) {
        return EntryFault::kCut;
    }
    std::string_view trailer = bytes.substr(bytes.size() - kEntryTrailerSize);
    if (EntryFault fault = check_entry_trailer(trailer, bytes.size()); fault != EntryFault::kNone) {
        return fault;
    }
    std::string_view* parts[] = {&view->object, &view->metadata, &view->isa, &view->document};
    Sizes sizes = load_sizes(trailer);
    for (size_t i = 0, at = 0; i < 4; ++i) {
        *parts[i] = bytes.substr(at, static_cast<size_t>(sizes.part[i]));
        at += static_cast<size_t>(sizes.part[i]);
    }
    view->key.bytes = load_digest(trailer, kKeyAt);
    return EntryFault::kNone;
}

EntryFault check_entry(std::string_view bytes, const Key& expected, std::span<const std::string> host_isa,
                       EntryView* view) {
    if (EntryFault fault = split_entry(bytes, view); fault != EntryFault::kNone) {
        return fault;
    }
    if (view->key != expected) {
        return EntryFault::kKey;
    }
    std::string_view trailer = bytes.substr(bytes.size() - kEntryTrailerSize);
    size_t document_at = view->object.size() + view->metadata.size() + view->isa.size();
    if (key_of_text(view->document) != expected ||
        digest_of(bytes.substr(0, document_at), trailer) != load_digest(trailer, kDigestAt)) {
        return EntryFault::kDigest;
    }
    return isa_subset(isa_features(*view), host_isa) ? EntryFault::kNone : EntryFault::kIsa;
}

Result<EntryView> verify_entry(std::string_view bytes, const Key& expected, std::span<const std::string> host_isa) {
    static constexpr std::string_view kMessages[] = {"",
                                                     "is cut or has no entry trailer",
                                                     "has another format version",
                                                     "belongs to another key",
                                                     "does not have the bytes that were written (digest differs)",
                                                     "uses instructions that this CPU lacks"};
    EntryView view;
    EntryFault fault = check_entry(bytes, expected, host_isa, &view);
    if (fault != EntryFault::kNone) {
        return error(Code::kVerify, "cache entry " + std::string(kMessages[static_cast<size_t>(fault)]),
                     expected.hex());
    }
    return view;
}

std::vector<std::string> isa_features(const EntryView& view) {
    std::vector<std::string> features;
    for (std::string_view rest = view.isa; !rest.empty();) {
        std::string_view feature = rest.substr(0, rest.find('\n'));
        features.emplace_back(feature);
        rest.remove_prefix(std::min(rest.size(), feature.size() + 1));
    }
    return features;
}

}  // namespace ember
