// libFuzzer: any bytes as a cache entry and as a key document. An input without an entry's magic is replaced by a good
// entry before it is mutated, so the fuzzer needs no corpus. Run: build/fuzz/bin/entry_fuzz -max_total_time=60
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "ember/artifact/entry.h"
#include "ember/artifact/key.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

using namespace ember;

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

const std::string& good_document() {
    static const std::string kDocument =
        KeyDocument().add("ember", "1").add("options", "").add("graph", "func @f() {\n  return\n}\n").to_text();
    return kDocument;
}

const std::string& good_entry() {
    static const std::string kEntry = pack_entry({"\177ELF", "{}", {"avx2", "sse2"}, good_document()});
    return kEntry;
}

/// Whatever reads as a document is written back as the same bytes.
void try_document(std::string_view bytes) {
    auto document = KeyDocument::parse(bytes);
    require(!document.ok() || document->to_text() == bytes);
}

void try_entry(std::string_view bytes) {
    const Key good = key_of_text(good_document());
    static const std::vector<std::string> kHost = {"avx2", "sse2"};
    EntryView view;
    if (split_entry(bytes, &view) == EntryFault::kNone) {
        // The parts lie one after the other and fill the entry.
        require(view.object.data() == bytes.data());
        require(view.document.data() + view.document.size() + kEntryTrailerSize == bytes.data() + bytes.size());
        (void)isa_features(view);
        (void)check_entry(bytes, view.key, kHost, &view);
        try_document(view.document);
    }
    // The digest is no secret (the fuzzer finds it by watching comparisons), but no other document has this key.
    bool passes = check_entry(bytes, good, kHost, &view) == EntryFault::kNone;
    require(!passes || view.document == good_document());
    require(passes || bytes != good_entry());
}

}  // namespace

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
    const std::string& good = seed % 2 ? good_entry() : good_document();
    bool is_lost =
        size < 8 || (std::memcmp(data + size - 8, "EMBERENT", 8) != 0 && std::memcmp(data, "ember-ke", 8) != 0);
    if (is_lost && good.size() <= max_size) {
        std::memcpy(data, good.data(), good.size());
        size = good.size();
    }
    return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const std::string_view bytes(reinterpret_cast<const char*>(data), size);
    try_document(bytes);
    try_entry(bytes);
    return 0;
}
