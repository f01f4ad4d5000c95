// One compile per key and host. The lock only saves work: whoever cannot have it in time compiles all the same.
//
//     DIR/v1/xx/KEY.lock = "pid " N " until " MS "\n"      flocked by the one that compiles; MS since 1970, expected end
//
// The kernel drops the lock of a killed holder at once. A stopped holder delays others by a stated bound: the expected
// time of the compile and two seconds. Hits never come here. A child made by fork keeps none of its parent's locks.
// Tests: test/unit/cache_test.cpp.
#pragma once

#include <cstdint>
#include <string>

#include "ember/support/file.h"

namespace ember {

class CompileLock {
public:
    enum class State { kHeld, kBusy, kUnavailable };

    CompileLock(const FileSystem& fs, std::string path) : fs_(&fs), path_(std::move(path)) {}
    CompileLock(const CompileLock&) = delete;
    CompileLock& operator=(const CompileLock&) = delete;
    ~CompileLock() { release(); }

    /// Never waits.
    State try_acquire(double expected_seconds);
    void release();

private:
    const FileSystem* fs_;
    std::string path_;
    Fd fd_;
    int64_t owner_pid_ = 0;
};

}  // namespace ember
