// Key → entry. A fault of the cache is never the user's error and never a wrong result: it is a miss or a memory-only
// entry, a counter, and one warning per reason and process. A hit takes no lock, lists nothing and creates nothing.
// Safe for any number of threads and processes; a fork may happen at any time.
// Layout of the folder: store.h. One compile per key: lock.h. For users: verbs.h.
//
// Tests: test/unit/cache_test.cpp, cache_fault_test.cpp, cache_process_test.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "ember/artifact/entry.h"
#include "ember/artifact/key.h"
#include "ember/cache/config.h"
#include "ember/cache/store.h"
#include "ember/support/result.h"

namespace ember {

enum class Outcome { kHit, kMiss, kBypass, kError };

std::string_view outcome_name(Outcome outcome);

/// Answer to one look-up. `bytes` is set on a hit only; `view` looks into it.
struct LookUp {
    Outcome outcome = Outcome::kMiss;
    Reason reason = Reason::kAbsent;
    std::shared_ptr<const std::string> bytes;
    EntryView view;

    bool hit() const { return outcome == Outcome::kHit; }
};

/// hits + misses + bypasses + errors = look_ups, and each that is not a hit is counted under its reason.
struct CacheCounters {
    uint64_t look_ups = 0;
    uint64_t hits = 0;
    uint64_t misses = 0;
    uint64_t bypasses = 0;
    uint64_t errors = 0;
    uint64_t puts = 0;         // stored on disk
    uint64_t puts_memory = 0;  // kept in memory only
    uint64_t compiles = 0;     // compile functions run by get_or_compile()
    uint64_t waits = 0;        // compiles saved by waiting for another thread or process
    std::array<uint64_t, kReasonCount> reasons{};
};

class Cache {
public:
    /// Never fails: what cannot be used is passed over, at last for memory.
    static std::shared_ptr<Cache> open(const CacheOptions& options = {});
    ~Cache();

    LookUp get(const Key& key);
    /// Says why the entry is not on disk; kNone when it is. It is kept in memory then, unless the mode is off.
    Reason put(const Key& key, std::shared_ptr<const std::string> bytes);
    /// A look-up that is not counted and leaves everything as it is.
    LookUp peek(const Key& key) const;

    const CacheConfig& config() const { return config_; }
    const FileSystem& file_system() const { return *fs_; }
    /// Null when entries live in memory only.
    Store* store() { return store_.get(); }
    const Store* store() const { return store_.get(); }
    /// The file of an entry, there or not; empty when entries live in memory only.
    std::string path_of(const Key& key) const;
    CacheCounters counters() const;

private:
    friend class Compilation;
    struct State;

    explicit Cache(const CacheOptions& options);
    LookUp look(const Key& key, Store::ReadPolicy policy) const;
    LookUp look_in_memory(const Key& key, Reason otherwise) const;
    void count(uint64_t CacheCounters::* counter);
    bool writes() const {
        return store_ != nullptr && config_.mode != CacheMode::kOff && config_.mode != CacheMode::kRead;
    }

    const FileSystem* fs_;
    CacheConfig config_;
    std::unique_ptr<Store> store_;
    std::unique_ptr<State> state_;
};

/// What the caller knows about a compile that others may wait for.
struct CompileHints {
    /// A process that finds another one compiling the same key waits at most this and two seconds more.
    double expected_seconds = 10;
};

struct CompileOutcome {
    Key key;
    Outcome status = Outcome::kMiss;           // kHit also when another thread or process compiled it meanwhile
    Reason reason = Reason::kNone;             // why it is not a hit
    Reason stored = Reason::kNone;             // why a new entry is not on disk
    double compile_seconds = 0;                // 0 when nothing was compiled
    bool waited = false;                       // for another thread or process
    std::shared_ptr<const std::string> bytes;  // never null
    EntryView view;                            // into bytes
};

/// Makes the entry (pack_entry()) of a document. Errors are the user's or the compiler's and go to the caller.
using CompileFunction = std::function<Result<std::string>()>;

/// The entry of `document`: stored, or compiled by `compile` and stored. One compile per key among the threads and
/// processes of a host, where locks work; the cold run gets the very bytes that a later process reads.
Result<CompileOutcome> get_or_compile(Cache& cache, const KeyDocument& document, const CompileFunction& compile,
                                      const CompileHints& hints = {});

}  // namespace ember
