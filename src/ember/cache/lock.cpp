// The table of flights and locks that a fork puts right, and the lock file. See lock.h.
#include "ember/cache/lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <set>
#include <thread>

namespace ember {

struct Flight::State {
    std::condition_variable landed_signal;
    bool landed = false;
    std::thread::id leader;
};

/// All that a fork must put right in the child.
struct FlightTable {
    std::mutex mutex;
    uint64_t generation = 0;  // forks between the first process and this one
    std::map<std::string, std::shared_ptr<Flight::State>> flights;
    std::set<int> lock_fds;

    /// In the child: leaders and waiters are threads of the parent. Their condition variables must not be destroyed
    /// (that would wait for the waiters), so they are leaked. Closing our copy of a lock leaves the parent's in place.
    void forget_parent() {
        ++generation;
        for (int fd : lock_fds) {
            ::close(fd);
        }
        [[maybe_unused]] auto* leaked = new std::map(std::move(flights));
        flights.clear();
        lock_fds.clear();
    }
};

namespace {

/// Never destroyed: threads may outlive main().
FlightTable& table() {
    static FlightTable& kTable = *[] {
        static FlightTable* made = new FlightTable;
        pthread_atfork([] { made->mutex.lock(); }, [] { made->mutex.unlock(); },
                       [] {
                           made->forget_parent();
                           made->mutex.unlock();
                       });
        return made;
    }();
    return kTable;
}

std::string holder_text(const FileSystem& fs, double expected_seconds) {
    int64_t until = fs.now() / 1'000'000 + static_cast<int64_t>(expected_seconds * 1000);
    return "pid " + std::to_string(getpid()) + " until " + std::to_string(until) + "\n";
}

}  // namespace

std::mutex& cache_mutex() {
    return table().mutex;
}

CompileLock::State CompileLock::state_of_holder(int fd) const {
    std::array<char, 64> text{};
    long pid = 0;
    long long until = 0;
    ssize_t size = fs_->pread(fd, text.data(), text.size() - 1, 0);
    if (size <= 0 || std::sscanf(text.data(), "pid %ld until %lld", &pid, &until) != 2) {
        return State::kBusy;
    }
    return fs_->now() / 1'000'000 - until > kLockGraceNs / 1'000'000 ? State::kOverdue : State::kBusy;
}

CompileLock::State CompileLock::try_acquire(double expected_seconds) {
    // Again: the file that we lock may just have been removed by the one that held it, or be a dead one's.
    for (int attempt = 0; attempt < 3; ++attempt) {
        Fd fd(*fs_, fs_->open(path_.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0666));
        if (!fd) {
            return State::kUnavailable;
        }
        if (fs_->lock(fd.get()) != 0) {
            return errno == EWOULDBLOCK ? state_of_holder(fd.get()) : State::kUnavailable;
        }
        struct stat info{};
        if (fs_->fstat(fd.get(), &info) != 0) {
            return State::kUnavailable;
        }
        if (info.st_nlink == 0) {
            continue;
        }
        if (info.st_size > 0) {  // a new file, so that nobody takes the dead one's time for ours
            fs_->unlink(path_.c_str());
            continue;
        }
        (void)write_all(*fs_, fd.get(), holder_text(*fs_, expected_seconds));  // without it others wait their own bound
        std::lock_guard hold(table().mutex);
        generation_ = table().generation;
        fd_ = fd.release();
        table().lock_fds.insert(fd_);
        return State::kHeld;
    }
    return State::kBusy;
}

void CompileLock::release() {
    int fd = std::exchange(fd_, -1);
    if (fd < 0) {
        return;
    }
    {
        std::lock_guard hold(table().mutex);
        if (generation_ != table().generation) {
            return;  // the lock is our parent's
        }
        table().lock_fds.erase(fd);
    }
    fs_->unlink(path_.c_str());
    fs_->close(fd);
}

Flight::Flight(std::string name) : name_(std::move(name)) {
    std::lock_guard hold(table().mutex);
    generation_ = table().generation;
    auto [row, is_new] = table().flights.try_emplace(name_);
    if (is_new) {
        row->second = std::make_shared<State>();
        row->second->leader = std::this_thread::get_id();
        role_ = Role::kLeader;
    } else if (row->second->leader == std::this_thread::get_id()) {
        role_ = Role::kNested;
    }
    state_ = row->second;
}

Flight::~Flight() {
    std::lock_guard hold(table().mutex);
    if (!leads() || generation_ != table().generation) {
        return;
    }
    table().flights.erase(name_);
    state_->landed = true;
    state_->landed_signal.notify_all();
}

bool Flight::wait(int64_t ns) {
    std::unique_lock hold(table().mutex);
    return state_->landed_signal.wait_for(hold, std::chrono::nanoseconds(ns), [&] { return state_->landed; });
}

}  // namespace ember
