// What `ember cache …` and ember.cache do, as functions that return plain data. They count no look-ups.
// Tests: test/unit/cache_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
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
    StoreLimits limits;  // in force now: max_size is at most a tenth of the free space
    uint64_t free_bytes = 0;
    std::vector<ConfigValue> config;
    CacheCounters counters;  // of this process
};
CacheInfo cache_info(const Cache& cache);

/// Most recently used first.
std::vector<StoredEntry> cache_list(const Cache& cache);

struct ShownEntry {
    StoredEntry stored;
    Reason state = Reason::kNone;  // kNone: good and runs here
    KeyDocument document;
    std::string metadata;  // JSON
    std::vector<std::string> isa;
    uint64_t object_size = 0;
};
/// `key` may be the beginning of one, at least two digits, if it is the only one.
Result<ShownEntry> cache_show(const Cache& cache, std::string_view key);

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
/// Reads every entry. One for another CPU is fine.
VerifyReport cache_verify(Cache& cache, Repair repair);

/// Down to the caps in force, or to those given.
PruneReport cache_prune(Cache& cache, std::optional<uint64_t> max_size = {}, std::optional<uint64_t> max_count = {});
PruneReport cache_clear(Cache& cache);

struct FieldDifference {
    enum class Kind { kChanged, kAdded, kRemoved, kMoved };
    std::string name;
    Kind kind = Kind::kChanged;
    uint64_t line = 0;   // first line that differs, from 1
    std::string stored;  // that line in the stored document
    std::string wanted;  // and in the one asked for
};
/// In the order of `wanted`, removed fields last.
std::vector<FieldDifference> compare_documents(const KeyDocument& stored, const KeyDocument& wanted);

struct Explanation {
    Key key;
    Reason state = Reason::kAbsent;  // kNone: it would hit
    std::optional<Key> nearest;      // the stored document with the fewest differences
    std::vector<FieldDifference> differences;

    std::string to_string() const;
};
/// Why would this document miss?
Explanation cache_explain(const Cache& cache, const KeyDocument& document);

/// Writes the entry to a file, as it is. Never leaves half a file.
Status cache_export(const Cache& cache, std::string_view key, const std::string& path);
/// Checks a file and stores it under its own key.
Result<Key> cache_import(Cache& cache, const std::string& path);

}  // namespace ember
