// One compile per key, among the threads of a process (Flight) and among the processes of a host (CompileLock). Both
// only save work: whoever cannot have them in time compiles all the same. Hits never come here.
//
//     DIR/v1/xx/KEY.lock = "pid " N " until " MS "\n"      flocked by the one that compiles; MS: expected end
//
// The kernel drops the lock of a killed holder at once; the file is removed by the holder or by who comes next. A
// stopped holder delays others by a stated bound: the expected time of the compile and two seconds.
//
// A forked child has none of its parent's locks and flights, and finds no lock held by a thread that it does not have.
//
// Tests: test/unit/cache_process_test.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "ember/support/file.h"

namespace ember {

/// Guards what the cache keeps in memory, in short critical sections without calls to files. Held across a fork.
std::mutex& cache_mutex();

constexpr int64_t kLockGraceNs = 2'000'000'000;

class CompileLock {
public:
    enum class State {
        kHeld,
        kBusy,         // somebody compiles
        kOverdue,      // somebody should have been ready two seconds ago
        kUnavailable,  // locks do not work here
    };

    CompileLock(const FileSystem& fs, std::string path) : fs_(&fs), path_(std::move(path)) {}
    CompileLock(const CompileLock&) = delete;
    CompileLock& operator=(const CompileLock&) = delete;
    ~CompileLock() { release(); }

    /// Never waits.
    State try_acquire(double expected_seconds);
    void release();

private:
    State state_of_holder(int fd) const;

    const FileSystem* fs_;
    std::string path_;
    int fd_ = -1;
    uint64_t generation_ = 0;
};

/// The first thread to construct one of a name leads until it destroys it; others can wait for that.
class Flight {
public:
    explicit Flight(std::string name);
    Flight(const Flight&) = delete;
    Flight& operator=(const Flight&) = delete;
    ~Flight();

    bool leads() const { return role_ == Role::kLeader; }
    /// A flight of that name is led by this very thread, which must not wait for itself.
    bool is_nested() const { return role_ == Role::kNested; }
    /// For followers: whether the leader was done within `ns`.
    bool wait(int64_t ns);

private:
    struct State;
    friend struct FlightTable;

    std::string name_;
    std::shared_ptr<State> state_;
    enum class Role { kLeader, kFollower, kNested } role_ = Role::kFollower;
    uint64_t generation_ = 0;
};

}  // namespace ember
