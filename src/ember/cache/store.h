// One folder of entries, shared by any number of processes.
//
//     DIR/CACHEDIR.TAG                     bdcache.org's mark: backups leave the folder out
//     DIR/v1/xx/KEY.ember                  an entry; KEY = 64 hexadecimal digits, xx the first two
//     DIR/v1/xx/KEY.PID-N.tmp              being written; its writer holds a lock on it, so a dead one is known
//     DIR/v1/xx/KEY.lock                   being compiled, see lock.h
//     DIR/v1/usage                         how much there is, so that a put need not list the folder:
//         usage  = base *change            base = "= " bytes " " count "\n"
//         change = ("+" / "-") bytes "\n"  one write in append mode, before an entry comes or after one goes
//
// An entry appears and is replaced by rename only: a reader sees all of it or nothing. There is no fsync: after a power
// cut an entry may be cut, which its digest tells, and a recompile is cheaper than a flush at every put.
// The modification time of an entry is its access stamp: set by a hit that finds it more than an hour off.
// Other formats live in other v… folders and are pruned with the rest, never read.
// Tests: test/unit/cache_test.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <bitset>
#include <string>
#include <string_view>
#include <vector>

#include "ember/artifact/entry.h"
#include "ember/artifact/key.h"
#include "ember/support/file.h"

namespace ember {

/// Why a look-up is not a hit, or why an entry is not on disk.
enum class Reason {
    kNone,
    kAbsent,     // no such entry
    kCut,        // EntryFault
    kFormat,     //   "
    kKey,        //   "
    kDigest,     //   "
    kIsa,        //   "
    kIrregular,  // a symlink, folder, FIFO, device or absurdly large file at the entry's name
    kIo,         // a system call failed
    kNoSpace,    // disk or quota full
    kReadOnly,   // the folder cannot be written
    kTooLarge,   // more than the caps allow
    kMemory,     // there is no folder
    kMode,       // EMBER_CACHE says so
    kDiffers,    // mode verify: compiled again and not the same
};
constexpr size_t kReasonCount = 15;

std::string_view reason_name(Reason reason);
Reason reason_of(EntryFault fault);
Reason reason_of_errno(int error_number);

struct StoredEntry {
    Key key;
    std::string path;
    uint64_t size = 0;
    int64_t used_ns = 0;  // access stamp
};

struct StoreLimits {
    uint64_t max_size = 0;  // 0: only the bound by free space
    uint64_t max_count = 0;
};

struct PruneReport {
    uint64_t removed = 0;
    uint64_t removed_bytes = 0;
    uint64_t leftovers = 0;  // files of dead writers
    uint64_t kept = 0;
    uint64_t kept_bytes = 0;
};

class Store {
public:
    Store(const FileSystem& fs, std::string dir, StoreLimits limits);

    enum class Damage { kRemove, kKeep };
    enum class Stamp { kTouch, kLeave };

    /// Reads and checks an entry. kNone: `bytes` and `view` are set. A damaged entry is removed if so asked.
    Reason read(const Key& key, const std::vector<std::string>& host_isa, Damage damage, Stamp stamp,
                std::string* bytes, EntryView* view) const;
    /// Publishes an entry and keeps the caps.
    Reason write(const Key& key, std::string_view bytes);
    Reason remove(const Key& key);

    /// Every entry of this format, in no order.
    std::vector<StoredEntry> list() const;
    /// Removes the least recently used entries of all formats until `limits` hold, and what dead writers left.
    PruneReport prune(StoreLimits limits);
    /// Removes every entry and leftover.
    PruneReport clear();

    const std::string& dir() const { return dir_; }
    std::string entry_path(const Key& key) const;
    std::string lock_path(const Key& key) const;
    /// Creates the folder of a key where it is missing; 0 or an errno.
    int make_shard(const Key& key) const;

private:
    std::string shard_path(const Key& key) const;

    const FileSystem* fs_;
    std::string dir_;
    std::string root_;  // dir_/v1
    StoreLimits limits_;
    mutable std::mutex mutex_;
    std::bitset<256> reaped_;  // shards whose leftovers this process has looked for
};

}  // namespace ember
