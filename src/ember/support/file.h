// Files. Every call on a file, folder, lock or clock that the cache makes goes through one table of functions, so that
// a test can fail, delay, cut or kill at the n-th call. Functions of the table behave as their POSIX namesakes: -1 and
// errno. Helpers below take the table first and return 0 or an errno.
//
// Tests: test/unit/cache_fault_test.cpp.
#pragma once

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <time.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ember/support/result.h"

namespace ember {

struct FileSystem {
    int (*open)(const char* path, int flags, mode_t mode);
    int (*close)(int fd);
    ssize_t (*read)(int fd, void* to, size_t size);
    ssize_t (*pread)(int fd, void* to, size_t size, off_t offset);
    ssize_t (*write)(int fd, const void* from, size_t size);
    int (*fstat)(int fd, struct stat* to);
    int (*lstat)(const char* path, struct stat* to);
    int (*rename)(const char* from, const char* to);
    int (*unlink)(const char* path);
    int (*mkdir)(const char* path, mode_t mode);
    int (*list)(const char* path, std::vector<std::string>* names);  // without "." and ".."
    int (*set_mtime)(int fd, int64_t ns);                            // since 1970
    int (*lock)(int fd);                                             // flock, exclusive; never waits: EWOULDBLOCK
    int (*unlock)(int fd);
    int (*statvfs)(const char* path, struct statvfs* to);
    int (*memfd)(const char* name);  // sealable, executable
    int (*seal)(int fd);             // no more writes, growth or shrinking
    int64_t (*now)();                // wall clock, ns since 1970
    int64_t (*monotonic)();          // ns
    void (*sleep)(int64_t ns);
};

const FileSystem& posix_file_system();

/// A descriptor that closes itself.
class Fd {
public:
    Fd() = default;
    Fd(const FileSystem& fs, int fd) : fs_(&fs), fd_(fd) {}
    Fd(Fd&& other) noexcept : fs_(other.fs_), fd_(std::exchange(other.fd_, -1)) {}
    Fd& operator=(Fd&& other) noexcept;
    ~Fd() { reset(); }

    explicit operator bool() const { return fd_ >= 0; }
    int get() const { return fd_; }
    void reset();
    int release() { return std::exchange(fd_, -1); }

private:
    const FileSystem* fs_ = nullptr;
    int fd_ = -1;
};

int write_all(const FileSystem& fs, int fd, std::string_view bytes);
/// Fills `to`; ENODATA when the file ends before.
int read_exactly(const FileSystem& fs, int fd, char* to, size_t size);
int pread_exactly(const FileSystem& fs, int fd, char* to, size_t size, off_t offset);
/// mkdir -p; 0 when it is a directory at the end.
int make_directories(const FileSystem& fs, const std::string& path, mode_t mode = 0777);

int64_t mtime_ns(const struct stat& info);

/// A whole regular file; an error naming the path where it cannot be read or has more than `max_size` bytes.
Result<std::string> read_file(const std::string& path, uint64_t max_size, const FileSystem& fs = posix_file_system());

/// Writes beside `path` and renames, so that a reader sees the old file or the new one.
Status write_file(const std::string& path, std::string_view bytes, const FileSystem& fs = posix_file_system());

/// "cannot read" + path + what strerror says.
Diagnostic io_error(std::string_view verb, const std::string& path, int error_number);

}  // namespace ember
