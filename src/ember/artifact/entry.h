// A cache entry: one file that is an ELF shared object (what follows its end is ignored by ld.so, gdb and perf).
//
//     entry    = object metadata isa document trailer
//     object   = ELF shared object
//     metadata = JSON text of the caller: signature, kernel table, compile times
//     isa      = *(feature "\n")        ; the ISA features that the code uses: sorted, each once
//     feature  = 1*(lower / digit / "." / "-" / "_")
//     document = key document, see key.h
//     trailer  = version u32, trailer size u32, object size u64, metadata size u64, isa size u64, document size u64,
//                key[32], digest[32], "EMBERENT"           ; integers little-endian
//     key      = SHA-256(document)
//     digest   = SHA-256(object metadata isa (trailer up to the digest))
//
// Each byte is hashed once: the document's through the key, the others through the digest, which covers the key.
// The magic comes last: a cut file has none. The sizes add up to the file's size, so no byte can hide.
// Tests: test/unit/artifact_test.cpp, test/fuzz/entry_fuzz.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ember/artifact/key.h"
#include "ember/support/result.h"

namespace ember {

constexpr uint32_t kEntryVersion = 1;
constexpr size_t kEntryTrailerSize = 112;

struct EntryParts {
    std::string_view object;
    std::string_view metadata;
    std::vector<std::string> isa;  // any order; see isa.h for the names
    std::string_view document;     // KeyDocument::to_text()
};

/// Views into the bytes of an entry.
struct EntryView {
    std::string_view object;
    std::string_view metadata;
    std::string_view isa;
    std::string_view document;
    Key key;
};

/// What is wrong with an entry, in the order of the checks.
enum class EntryFault {
    kNone,
    kCut,     // sizes and magic do not fit the file's size
    kFormat,  // another version of this format
    kKey,     // an entry of another key
    kDigest,  // some byte is not what was written, or the document is not the key's
    kIsa,     // good, but uses instructions that this host lacks
};

std::string_view entry_fault_name(EntryFault fault);

std::string pack_entry(const EntryParts& parts);

/// The check of sizes, version and magic only: from the last kEntryTrailerSize bytes of a file of `file_size` bytes.
EntryFault check_entry_trailer(std::string_view trailer, uint64_t file_size);

/// Every check. Fills `view` where the sizes are right (so that a damaged entry can be shown).
/// `host_isa` is sorted; it must contain every feature that the entry uses.
EntryFault check_entry(std::string_view bytes, const Key& expected, std::span<const std::string> host_isa,
                       EntryView* view);

/// The same as a Result, for callers that report.
Result<EntryView> verify_entry(std::string_view bytes, const Key& expected, std::span<const std::string> host_isa);

/// The parts without the checks of key, digest and ISA; for tools that show an entry.
EntryFault split_entry(std::string_view bytes, EntryView* view);

std::vector<std::string> isa_features(const EntryView& view);

}  // namespace ember
