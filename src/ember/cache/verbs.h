// What `ember cache …` and ember.cache do, as functions that return plain data. They count no look-ups.
// Tests: test/unit/cache_test.cpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ember/cache/cache.h"

namespace ember {

struct CacheInfo {
    std::string dir;  // empty: memory
    CacheMode mode = CacheMode::kWrite;
    uint64_t entries = 0;
    uint64_t bytes = 0;
    uint64_t max_size = 0;   // in force: the option and a tenth of the free space
    uint64_t max_count = 0;
    uint64_t free_bytes = 0;
    std::vector<ConfigValue> config;
    CacheCounters counters;  // of this process
};
CacheInfo cache_info(Cache& cache);

/// Most recently used first.
std::vector<StoredEntry> cache_list(Cache& cache);

struct ShownEntry {
    StoredEntry stored;
    Reason state = Reason::kNone;  // kNone: good and runnable here
    KeyDocument document;
    std::string metadata;          // JSON
    std::vector<std::string> isa;
    uint64_t object_size = 0;
};
/// `key` may be the beginning of one, as long as it is unique.
Result<ShownEntry> cache_show(Cache& cache, std::string_view key);

struct DamagedEntry {
    std::string path;
    Reason reason = Reason::kNone;
    bool removed = false;
};
struct VerifyReport {
    uint64_t checked = 0;
    std::vector<DamagedEntry> damaged;
};
enum class Repair { kNo, kYes };
VerifyReport cache_verify(Cache& cache, Repair repair);

/// Down to the caps in force, or to those given.
PruneReport cache_prune(Cache& cache, std::optional<uint64_t> max_size = {}, std::optional<uint64_t> max_count = {});
PruneReport cache_clear(Cache& cache);

struct FieldDifference {
    std::string name;
    enum class Kind { kChanged, kAdded, kRemoved } kind = Kind::kChanged;
    uint64_t line = 0;   // first line that differs, from 1
    std::string stored;  // that line in the stored document
    std::string wanted;  // and in the one asked for
};
struct Explanation {
    Key key;
    Reason state = Reason::kAbsent;  // kNone: it would hit
    bool found = false;              // a stored document to compare with
    Key nearest;
    std::vector<FieldDifference> differences;

    std::string to_string() const;
};
/// Why would this document miss? Compares it with the nearest stored one.
Explanation cache_explain(Cache& cache, const KeyDocument& document);
std::vector<FieldDifference> compare_documents(const KeyDocument& stored, const KeyDocument& wanted);

/// Writes the entry to a file, as it is. Never makes half a file.
Status cache_export(Cache& cache, std::string_view key, const std::string& path);
/// Checks a file and stores it under its own key.
Result<Key> cache_import(Cache& cache, const std::string& path);

}  // namespace ember
