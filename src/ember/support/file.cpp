// The POSIX table of functions and the helpers on top of it. See file.h.
#include "ember/support/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <memory>

namespace ember {
namespace {

int64_t clock_ns(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

timespec to_timespec(int64_t ns) {
    return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

int list_names(const char* path, std::vector<std::string>* names) {
    std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(path), closedir);
    if (!dir) {
        return -1;
    }
    errno = 0;
    while (const dirent* entry = readdir(dir.get())) {
        std::string_view name = entry->d_name;
        if (name != "." && name != "..") {
            names->emplace_back(name);
        }
    }
    return errno == 0 ? 0 : -1;
}

int set_mtime_ns(int fd, int64_t ns) {
    const timespec times[2] = {{0, UTIME_OMIT}, to_timespec(ns)};
    return futimens(fd, times);
}

int make_memfd(const char* name) {
    constexpr unsigned kExecutable = 0x10;  // MFD_EXEC: asked for since Linux 6.3, unknown before
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | kExecutable);
    return fd >= 0 || errno != EINVAL ? fd : memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
}

int seal_memfd(int fd) {
    return fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
}

void sleep_ns(int64_t ns) {
    const timespec time = to_timespec(ns);
    nanosleep(&time, nullptr);
}

}  // namespace

const FileSystem& posix_file_system() {
    static constexpr FileSystem kPosix = {
        .open = [](const char* path, int flags, mode_t mode) { return ::open(path, flags | O_CLOEXEC, mode); },
        .close = ::close,
        .read = ::read,
        .pread = ::pread,
        .write = ::write,
        .fstat = ::fstat,
        .lstat = ::lstat,
        .rename = ::rename,
        .unlink = ::unlink,
        .mkdir = ::mkdir,
        .list = list_names,
        .set_mtime = set_mtime_ns,
        .lock = [](int fd) { return ::flock(fd, LOCK_EX | LOCK_NB); },
        .unlock = [](int fd) { return ::flock(fd, LOCK_UN); },
        .statvfs = ::statvfs,
        .memfd = make_memfd,
        .seal = seal_memfd,
        .now = [] { return clock_ns(CLOCK_REALTIME); },
        .monotonic = [] { return clock_ns(CLOCK_MONOTONIC); },
        .sleep = sleep_ns,
    };
    return kPosix;
}

Fd& Fd::operator=(Fd&& other) noexcept {
    if (this != &other) {
        reset();
        fs_ = other.fs_;
        fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
}

void Fd::reset() {
    if (fd_ >= 0) {
        fs_->close(std::exchange(fd_, -1));
    }
}

int write_all(const FileSystem& fs, int fd, std::string_view bytes) {
    while (!bytes.empty()) {
        ssize_t done = fs.write(fd, bytes.data(), bytes.size());
        if (done < 0 && errno != EINTR) {
            return errno;
        }
        if (done == 0) {
            return EIO;
        }
        bytes.remove_prefix(static_cast<size_t>(std::max<ssize_t>(done, 0)));
    }
    return 0;
}

namespace {

/// Calls `read_some(to, size)` until `size` bytes have come.
template <class ReadSome>
int fill(char* to, size_t size, ReadSome read_some) {
    while (size > 0) {
        ssize_t done = read_some(to, size);
        if (done < 0 && errno != EINTR) {
            return errno;
        }
        if (done == 0) {
            return ENODATA;
        }
        to += std::max<ssize_t>(done, 0);
        size -= static_cast<size_t>(std::max<ssize_t>(done, 0));
    }
    return 0;
}

}  // namespace

int read_exactly(const FileSystem& fs, int fd, char* to, size_t size) {
    return fill(to, size, [&](char* at, size_t left) { return fs.read(fd, at, left); });
}

int pread_exactly(const FileSystem& fs, int fd, char* to, size_t size, off_t offset) {
    return fill(to, size, [&](char* at, size_t left) { return fs.pread(fd, at, left, offset + (at - to)); });
}

int make_directories(const FileSystem& fs, const std::string& path, mode_t mode) {
    if (fs.mkdir(path.c_str(), mode) == 0) {
        return 0;
    }
    int failure = errno;
    if (failure == ENOENT) {
        size_t slash = path.find_last_of('/');
        if (slash == std::string::npos || slash == 0) {
            return failure;
        }
        if (int above = make_directories(fs, path.substr(0, slash), mode); above != 0) {
            return above;
        }
        if (fs.mkdir(path.c_str(), mode) == 0) {
            return 0;
        }
        failure = errno;
    }
    // mkdir of an existing folder may also say EROFS or EACCES; only a look tells.
    struct stat info{};
    if (fs.lstat((path + "/.").c_str(), &info) == 0) {
        return 0;
    }
    return failure == EEXIST ? ENOTDIR : failure;
}

int64_t mtime_ns(const struct stat& info) {
    return int64_t{info.st_mtim.tv_sec} * 1'000'000'000 + info.st_mtim.tv_nsec;
}

Diagnostic io_error(std::string_view verb, const std::string& path, int error_number) {
    return error(Code::kIo, std::string(verb) + ": " + std::strerror(error_number), path);
}

Result<std::string> read_file(const std::string& path, uint64_t max_size, const FileSystem& fs) {
    Fd fd(fs, fs.open(path.c_str(), O_RDONLY | O_NONBLOCK, 0));
    struct stat info{};
    if (!fd || fs.fstat(fd.get(), &info) != 0) {
        return io_error("cannot read", path, errno);
    }
    if (!S_ISREG(info.st_mode)) {
        return error(Code::kIo, "not a regular file", path);
    }
    if (static_cast<uint64_t>(info.st_size) > max_size) {
        return error(Code::kIo, "has " + std::to_string(info.st_size) + " bytes, more than " + std::to_string(max_size),
                     path);
    }
    std::string bytes(static_cast<size_t>(info.st_size), '\0');
    if (int failure = read_exactly(fs, fd.get(), bytes.data(), bytes.size()); failure != 0) {
        return io_error("cannot read", path, failure);
    }
    return bytes;
}

Status write_file(const std::string& path, std::string_view bytes, const FileSystem& fs) {
    static std::atomic<unsigned> count{0};
    std::string beside = path + "." + std::to_string(getpid()) + "-" + std::to_string(count++) + ".tmp";
    Fd fd(fs, fs.open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0666));
    if (!fd) {
        return io_error("cannot write", path, errno);
    }
    int failure = write_all(fs, fd.get(), bytes);
    fd.reset();
    if (failure == 0 && fs.rename(beside.c_str(), path.c_str()) != 0) {
        failure = errno;
    }
    if (failure != 0) {
        fs.unlink(beside.c_str());
        return io_error("cannot write", path, failure);
    }
    return {};
}

}  // namespace ember
