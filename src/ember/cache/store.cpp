// One folder of entries: reading, publishing by rename, pruning, leftovers. See store.h for layout and rules.
#include "ember/cache/store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <mutex>

#include "ember/cache/lock.h"

namespace ember {
namespace {

constexpr int64_t kHourNs = int64_t{3600} * 1'000'000'000;
constexpr int64_t kDayNs = 24 * kHourNs;
constexpr std::string_view kEntrySuffix = ".ember";
constexpr std::string_view kTag =
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder is a cache of compiled code made by Ember; it can be removed at any time.\n"
    "# About this file: https://bford.info/cachedir/\n";

bool is_hex(std::string_view text) {
    return std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

bool is_entry_name(std::string_view name) {
    return name.size() == 64 + kEntrySuffix.size() && name.ends_with(kEntrySuffix) && is_hex(name.substr(0, 64));
}

bool is_leftover_name(std::string_view name) {
    bool has_suffix = name.ends_with(".tmp") || name.ends_with(".lock");
    return has_suffix && (name.starts_with("usage.") || (name.size() > 64 && is_hex(name.substr(0, 64))));
}

bool is_format_name(std::string_view name) {
    return name.size() > 1 && name[0] == 'v' &&
           std::ranges::all_of(name.substr(1), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_damage(Reason reason) {
    return reason == Reason::kCut || reason == Reason::kFormat || reason == Reason::kKey || reason == Reason::kDigest;
}

/// A failed open or write of a cache file.
Reason reason_of_errno(int error_number) {
    switch (error_number) {
        case 0:
            return Reason::kNone;
        case ENOENT:
        case ENOTDIR:
        case ESTALE:
            return Reason::kAbsent;
        case ELOOP:
        case ENXIO:
        case ENODEV:
        case EISDIR:
        case ENOTEMPTY:
            return Reason::kIrregular;
        case ENOSPC:
        case EDQUOT:
            return Reason::kNoSpace;
        case EROFS:
        case EACCES:
        case EPERM:
            return Reason::kReadOnly;
        case EFBIG:
            return Reason::kTooLarge;
        default:
            return Reason::kIo;
    }
}

Reason reason_of_read_errno(int error_number) {
    Reason reason = reason_of_errno(error_number);
    return reason == Reason::kAbsent || reason == Reason::kIrregular ? reason : Reason::kIo;
}

std::vector<std::string> list_names(const FileSystem& fs, const std::string& path) {
    std::vector<std::string> names;
    fs.list(path.c_str(), &names);
    return names;
}

std::string temporary_name(const std::string& entry_path) {
    static std::atomic<unsigned> count{0};
    std::string stem = entry_path.substr(0, entry_path.size() - kEntrySuffix.size());
    return stem + "." + std::to_string(getpid()) + "-" + std::to_string(count++) + ".tmp";
}

}  // namespace

std::string_view reason_name(Reason reason) {
    static constexpr std::string_view kNames[] = {"none",      "absent",    "cut",       "format", "key",
                                                  "digest",    "isa",       "irregular", "io",     "no space",
                                                  "read only", "too large", "memory",    "mode",   "differs"};
    static_assert(std::size(kNames) == kReasonCount);
    return kNames[static_cast<size_t>(reason)];
}

Reason reason_of(EntryFault fault) {
    static constexpr Reason kReasons[] = {Reason::kNone, Reason::kCut,    Reason::kFormat,
                                          Reason::kKey,  Reason::kDigest, Reason::kIsa};
    return kReasons[static_cast<size_t>(fault)];
}

Store::Store(const FileSystem& fs, std::string dir, StoreLimits limits)
    : fs_(&fs), dir_(std::move(dir)), root_(dir_ + "/v" + std::to_string(kEntryVersion)), limits_(limits) {}

std::string Store::shard_path(const Key& key) const {
    return root_ + "/" + key.hex().substr(0, 2);
}
std::string Store::entry_path(const Key& key) const {
    return shard_path(key) + "/" + key.hex() + ".ember";
}
std::string Store::lock_path(const Key& key) const {
    return shard_path(key) + "/" + key.hex() + ".lock";
}

int Store::make_shard(const Key& key) const {
    if (int failure = make_directories(*fs_, shard_path(key)); failure != 0) {
        return failure;
    }
    Fd tag(*fs_, fs_->open((dir_ + "/CACHEDIR.TAG").c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666));
    if (tag) {
        (void)write_all(*fs_, tag.get(), kTag);  // only backups read it
    }
    return 0;
}

// Reading.

Reason Store::read(const Key& key, const std::vector<std::string>& host_isa, ReadPolicy policy, std::string* bytes,
                   EntryView* view) const {
    const std::string path = entry_path(key);
    Fd fd(*fs_, fs_->open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0));
    if (!fd) {
        return reason_of_read_errno(errno);
    }
    Reason reason = read_open_file(fd.get(), key, host_isa, bytes, view);
    if (is_damage(reason) && policy.damage == Damage::kRemove) {
        remove_if_same(key, fd.get());
    }
    if (reason == Reason::kNone && policy.stamp == Stamp::kTouch) {
        touch(fd.get());
    }
    return reason;
}

Reason Store::read_open_file(int fd, const Key& key, const std::vector<std::string>& host_isa, std::string* bytes,
                             EntryView* view) const {
    struct stat info{};
    if (fs_->fstat(fd, &info) != 0) {
        return reason_of_read_errno(errno);
    }
    const auto size = static_cast<uint64_t>(info.st_size);
    if (!S_ISREG(info.st_mode) || size > kMaxEntrySize) {
        return Reason::kIrregular;
    }
    if (size < kEntryTrailerSize) {
        return Reason::kCut;
    }
    // The trailer first: nothing is allocated for a large file that is no entry.
    char trailer[kEntryTrailerSize];
    const auto trailer_at = static_cast<off_t>(size - sizeof(trailer));
    if (int failure = pread_exactly(*fs_, fd, trailer, sizeof(trailer), trailer_at); failure != 0) {
        return failure == ENODATA ? Reason::kCut : reason_of_read_errno(failure);
    }
    if (EntryFault fault = check_entry_trailer({trailer, sizeof(trailer)}, size); fault != EntryFault::kNone) {
        return reason_of(fault);
    }
    bytes->resize(size);
    if (int failure = read_exactly(*fs_, fd, bytes->data(), size); failure != 0) {
        return failure == ENODATA ? Reason::kCut : reason_of_read_errno(failure);
    }
    return reason_of(check_entry(*bytes, key, host_isa, view));
}

/// Removes the entry if it is still the file that was read: another process may have put a good one there.
void Store::remove_if_same(const Key& key, int fd) const {
    const std::string path = entry_path(key);
    struct stat read{}, now{};
    if (fs_->fstat(fd, &read) == 0 && fs_->lstat(path.c_str(), &now) == 0 && read.st_ino == now.st_ino &&
        read.st_dev == now.st_dev && fs_->unlink(path.c_str()) == 0) {
        UsageFile(*fs_, dir_).subtract(static_cast<uint64_t>(read.st_size));
    }
}

void Store::touch(int fd) const {
    struct stat info{};
    const int64_t now = fs_->now();
    if (fs_->fstat(fd, &info) == 0 && std::abs(now - mtime_ns(info)) > kHourNs) {
        fs_->set_mtime(fd, now);
    }
}

// Writing.

Reason Store::write(const Key& key, std::string_view bytes) {
    const StoreLimits limits = this->limits();
    if (bytes.size() > kMaxEntrySize || (limits.max_size > 0 && bytes.size() > limits.max_size) ||
        limits.max_count == 0) {
        return Reason::kTooLarge;
    }
    int failure = ENOENT;
    // Again where the folder or the temporary file went away: somebody may be clearing the cache, and take our file for
    // a leftover between its opening and its locking. Rare, but a busy machine can do it several times in a row.
    constexpr int kAttempts = 16;
    for (int attempt = 0; attempt < kAttempts && (failure == ENOENT || failure == ESTALE); ++attempt) {
        failure = write_once(key, bytes);
    }
    Reason reason = reason_of_errno(failure);
    return reason == Reason::kAbsent ? Reason::kIo : reason;
}

int Store::write_once(const Key& key, std::string_view bytes) {
    if (int failure = make_shard(key); failure != 0) {
        return failure;
    }
    reap_shard(key);
    const std::string path = entry_path(key);
    const std::string temporary = temporary_name(path);
    Fd fd(*fs_, fs_->open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666));
    if (!fd) {
        return errno;
    }
    if (fs_->lock(fd.get()) != 0 && errno == EWOULDBLOCK) {
        return ENOENT;  // somebody took it for a leftover and is removing it
    }
    int failure = write_all(*fs_, fd.get(), bytes);
    if (failure == 0) {
        fs_->set_mtime(fd.get(), fs_->now());
        make_room(bytes.size());
        failure = publish(temporary, fd.get(), path);
    }
    if (failure != 0) {
        fs_->unlink(temporary.c_str());
    }
    return failure;
}

int Store::publish(const std::string& temporary, int fd, const std::string& path) const {
    struct stat before{};
    bool replaces = fs_->lstat(path.c_str(), &before) == 0 && S_ISREG(before.st_mode);
    int failure = fs_->rename(temporary.c_str(), path.c_str()) == 0 ? 0 : errno;
    struct stat ours{}, there{};
    if (failure != 0 && fs_->fstat(fd, &ours) == 0) {
        // A file server may have done what it says has failed.
        bool done = fs_->lstat(path.c_str(), &there) == 0 && there.st_ino == ours.st_ino && there.st_dev == ours.st_dev;
        failure = done ? 0 : failure;
    }
    if (failure != 0) {
        UsageFile(*fs_, dir_).subtract(static_cast<uint64_t>(ours.st_size));
    } else if (replaces) {
        UsageFile(*fs_, dir_).subtract(static_cast<uint64_t>(before.st_size));
    }
    return failure;
}

/// Counts an entry that is about to come, and prunes if it would not fit.
void Store::make_room(uint64_t bytes) {
    UsageFile usage(*fs_, dir_);
    const StoreLimits limits = this->limits();
    std::optional<Totals> totals = usage.load();
    auto fits = [&](const Totals& t) {
        return (limits.max_size == 0 || t.bytes + bytes <= limits.max_size) && t.count + 1 <= limits.max_count;
    };
    if (totals && fits(*totals)) {
        usage.add(bytes);
        return;
    }
    // Below the caps by a tenth, so that not every put lists the folder.
    StoreLimits goal =
        totals ? StoreLimits{limits.max_size - limits.max_size / 10, limits.max_count - limits.max_count / 10} : limits;
    shrink(goal, {bytes, 1});
}

Reason Store::remove(const Key& key) {
    const std::string path = entry_path(key);
    struct stat info{};
    if (fs_->lstat(path.c_str(), &info) != 0 || fs_->unlink(path.c_str()) != 0) {
        return reason_of_errno(errno);
    }
    UsageFile(*fs_, dir_).subtract(static_cast<uint64_t>(info.st_size));
    return Reason::kNone;
}

// Bounds.

uint64_t Store::free_bytes() const {
    struct statvfs info{};
    if (fs_->statvfs(dir_.c_str(), &info) != 0) {
        return UINT64_MAX;
    }
    return uint64_t{info.f_bavail} * info.f_frsize;
}

StoreLimits Store::limits() const {
    // A disk too full for one page still has a cap: 0 would mean none.
    const uint64_t tenth = std::max<uint64_t>(free_bytes() / 10, 1);
    return {limits_.max_size == 0 ? tenth : std::min(limits_.max_size, tenth), limits_.max_count};
}

/// All files of the cache, of every format.
struct Store::Scan {
    std::vector<StoredEntry> entries;
    std::vector<std::string> leftovers;
    std::vector<std::string> irregular;  // links, pipes and the like at the name of an entry
};

Store::Scan Store::scan() const {
    Scan scan;
    auto look_at = [&](const std::string& folder, const std::string& name) {
        struct stat info{};
        std::string path = folder + "/" + name;
        if (is_leftover_name(name)) {
            scan.leftovers.push_back(path);
        } else if (!is_entry_name(name) || fs_->lstat(path.c_str(), &info) != 0 || S_ISDIR(info.st_mode)) {
            return;
        } else if (!S_ISREG(info.st_mode)) {
            scan.irregular.push_back(path);
        } else {
            Key key = *Key::from_hex(std::string_view(name).substr(0, 64));
            scan.entries.push_back({key, path, static_cast<uint64_t>(info.st_size), mtime_ns(info)});
        }
    };
    for (const std::string& format : list_names(*fs_, dir_)) {
        if (!is_format_name(format)) {
            look_at(dir_, format);
            continue;
        }
        for (const std::string& shard : list_names(*fs_, dir_ + "/" + format)) {
            const std::string folder = dir_ + "/" + format + "/" + shard;
            for (const std::string& name :
                 shard.size() == 2 && is_hex(shard) ? list_names(*fs_, folder) : std::vector<std::string>()) {
                look_at(folder, name);
            }
        }
    }
    return scan;
}

std::vector<StoredEntry> Store::list() const {
    std::vector<StoredEntry> entries = scan().entries;
    std::erase_if(entries, [&](const StoredEntry& entry) { return !entry.path.starts_with(root_ + "/"); });
    return entries;
}

PruneReport Store::prune(StoreLimits limits) {
    return shrink(limits, {});
}

PruneReport Store::clear() {
    for (const std::string& path : scan().irregular) {
        fs_->unlink(path.c_str());
    }
    return shrink({1, 0}, {});
}

/// Lists, removes what dead writers left and the least recently used entries until `reserved` more fits in `limits`.
PruneReport Store::shrink(StoreLimits limits, Room reserved) {
    PruneReport report;
    UsageFile usage(*fs_, dir_);
    usage.start_listing();
    Scan scan = this->scan();
    for (const std::string& path : scan.leftovers) {
        report.leftovers += reap(path);
    }
    // A stamp in the future was set by a wrong clock and no hit has put it right since: the longest unused of all.
    const int64_t latest = fs_->now() + kHourNs;
    auto age_order = [&](const StoredEntry& entry) {
        return std::tuple(entry.used_ns <= latest, entry.used_ns, std::string_view(entry.path));
    };
    std::ranges::sort(scan.entries, {}, age_order);
    for (const StoredEntry& entry : scan.entries) {
        report.kept_bytes += entry.size;
    }
    report.kept = scan.entries.size();
    for (const StoredEntry& entry : scan.entries) {
        bool fits = (limits.max_size == 0 || report.kept_bytes + reserved.bytes <= limits.max_size) &&
                    report.kept + reserved.count <= limits.max_count;
        if (fits) {
            break;
        }
        if (fs_->unlink(entry.path.c_str()) == 0) {
            report.removed += 1;
            report.removed_bytes += entry.size;
        } else if (errno != ENOENT) {
            continue;
        }
        report.kept -= 1;
        report.kept_bytes -= entry.size;
    }
    usage.store_base({report.kept_bytes + reserved.bytes, report.kept + reserved.count});
    return report;
}

/// Removes a temporary or lock file whose owner is dead: alive, it would hold a lock. Both kinds of owner look after
/// locking whether their file is still there.
bool Store::reap(const std::string& path) const {
    Fd fd(*fs_, fs_->open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0));
    struct stat info{};
    if (!fd || fs_->fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
        return false;
    }
    bool is_dead = fs_->lock(fd.get()) == 0;
    if (!is_dead && errno != EWOULDBLOCK) {  // no locks here: only time tells
        is_dead = std::abs(fs_->now() - mtime_ns(info)) > kDayNs;
    }
    bool is_still_there = fs_->fstat(fd.get(), &info) == 0 && info.st_nlink > 0;
    return is_dead && is_still_there && fs_->unlink(path.c_str()) == 0;
}

void Store::reap_shard(const Key& key) {
    {
        std::lock_guard hold(cache_mutex());
        if (reaped_.test(key.bytes[0])) {
            return;
        }
        reaped_.set(key.bytes[0]);
    }
    const std::string folder = shard_path(key);
    for (const std::string& name : list_names(*fs_, folder)) {
        if (is_leftover_name(name)) {
            reap(folder + "/" + name);
        }
    }
}

}  // namespace ember
