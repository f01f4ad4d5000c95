// One folder of entries, shared by any number of processes.
//
//     DIR/CACHEDIR.TAG             backups leave the folder out (bford.info/cachedir)
//     DIR/usage                    how much there is, see usage.h
//     DIR/v1/xx/KEY.ember          an entry; KEY = 64 hexadecimal digits, xx the first two
//     DIR/v1/xx/KEY.PID-N.tmp      being written
//     DIR/v1/xx/KEY.lock           being compiled, see lock.h
//
// An entry appears and is replaced by rename only: a reader sees all of it or nothing. There is no fsync: a power cut
// may leave an entry cut, which its digest tells, and a recompile is cheaper than a flush at every put.
//
// A writer locks its temporary file, so what a dead one left is known, and removed by the next put to the same xx.
//
// The modification time of an entry is its access stamp, set by a hit that finds it more than an hour off.
//
// Other formats live in other v… folders and are pruned with the rest, never read.
//
// Tests: test/unit/cache_test.cpp, test/unit/cache_fault_test.cpp.
#pragma once

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ember/artifact/entry.h"
#include "ember/artifact/key.h"
#include "ember/cache/usage.h"
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
    kMode,       // the mode says so
    kDiffers,    // mode verify: compiled again and not the same
};
constexpr size_t kReasonCount = static_cast<size_t>(Reason::kDiffers) + 1;

std::string_view reason_name(Reason reason);
Reason reason_of(EntryFault fault);

/// No entry is larger, no more is ever allocated for one.
constexpr uint64_t kMaxEntrySize = uint64_t{1} << 30;

struct StoredEntry {
    Key key;
    std::string path;
    uint64_t size = 0;
    int64_t used_ns = 0;  // access stamp, since 1970
};

struct StoreLimits {
    uint64_t max_size = 0;  // 0: bounded by free space only
    uint64_t max_count = 0;
};

struct PruneReport {
    uint64_t removed = 0;
    uint64_t removed_bytes = 0;
    uint64_t leftovers = 0;  // files that dead writers left, removed
    uint64_t kept = 0;
    uint64_t kept_bytes = 0;
};

class Store {
public:
    Store(const FileSystem& fs, std::string dir, StoreLimits limits);

    enum class Damage { kRemove, kKeep };
    enum class Stamp { kTouch, kLeave };
    struct ReadPolicy {
        Damage damage = Damage::kKeep;
        Stamp stamp = Stamp::kLeave;
    };

    /// Reads and checks an entry. kNone: `bytes` and `view` are set. Damage is kCut, kFormat, kKey, kDigest.
    Reason read(const Key& key, const std::vector<std::string>& host_isa, ReadPolicy policy, std::string* bytes,
                EntryView* view) const;
    /// Publishes an entry and keeps the caps.
    Reason write(const Key& key, std::string_view bytes);
    Reason remove(const Key& key);

    /// Every entry of this format, in no order.
    std::vector<StoredEntry> list() const;
    /// Removes the least recently used entries of all formats until `limits` hold, and what dead writers left.
    PruneReport prune(StoreLimits limits);
    /// Removes every entry and leftover.
    PruneReport clear();

    /// The caps in force now: max_size is at most a tenth of the free space.
    StoreLimits limits() const;
    uint64_t free_bytes() const;

    const std::string& dir() const { return dir_; }
    std::string entry_path(const Key& key) const;
    std::string lock_path(const Key& key) const;
    /// Creates the folder of a key where it is missing; 0 or an errno.
    int make_shard(const Key& key) const;

private:
    struct Room {
        uint64_t bytes = 0;
        uint64_t count = 0;
    };
    struct Scan;

    Reason read_open_file(int fd, const Key& key, const std::vector<std::string>& host_isa, std::string* bytes,
                          EntryView* view) const;
    void remove_if_same(const Key& key, int fd) const;
    void touch(int fd) const;
    int write_once(const Key& key, std::string_view bytes);
    int publish(const std::string& temporary, int fd, const std::string& path) const;
    void make_room(uint64_t bytes);
    Scan scan() const;
    PruneReport shrink(StoreLimits limits, Room reserved);
    bool reap(const std::string& path) const;
    void reap_shard(const Key& key);
    std::string shard_path(const Key& key) const;

    const FileSystem* fs_;
    std::string dir_;
    std::string root_;  // dir_/v1
    StoreLimits limits_;
    std::bitset<256> reaped_;  // shards whose leftovers this process has looked for; under cache_mutex()
};

}  // namespace ember
