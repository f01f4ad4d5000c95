// Links an object file into a shared object with lld, in this process.
#include <fcntl.h>
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "ember/codegen/emitter.h"

LLD_HAS_DRIVER(elf)

namespace ember::codegen {
namespace {

/// A file without a name, reached as /proc/self/fd/N.
class MemoryFile {
public:
    explicit MemoryFile(const char* name) : fd_(memfd_create(name, MFD_CLOEXEC)) {}
    ~MemoryFile() {
        if (fd_ >= 0) {
            close(fd_);
        }
    }
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;

    bool ok() const { return fd_ >= 0; }
    std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
    bool write(const std::string& bytes) const {
        size_t done = 0;
        while (done < bytes.size()) {
            ssize_t step = ::write(fd_, bytes.data() + done, bytes.size() - done);
            if (step <= 0) {
                return false;
            }
            done += static_cast<size_t>(step);
        }
        return true;
    }

private:
    int fd_;
};

/// lld replaces its output file, so that one needs a real folder: ours alone, gone afterwards.
class PrivateFolder {
public:
    PrivateFolder() {
        for (const char* parent : {static_cast<const char*>(std::getenv("TMPDIR")), "/dev/shm", "/tmp"}) {
            if (parent == nullptr || *parent == 0) {
                continue;
            }
            path_ = std::string(parent) + "/ember-XXXXXX";
            ok_ = mkdtemp(path_.data()) != nullptr;
            if (ok_) {
                return;
            }
        }
    }
    ~PrivateFolder() {
        if (ok_) {
            std::error_code ignored;
            std::filesystem::remove_all(path_, ignored);
        }
    }
    PrivateFolder(const PrivateFolder&) = delete;
    PrivateFolder& operator=(const PrivateFolder&) = delete;

    bool ok() const { return ok_; }
    const std::string& path() const { return path_; }

private:
    std::string path_;
    bool ok_ = false;
};

}  // namespace

Result<std::string> link_shared_object(const std::string& object) {
    static std::mutex one_at_a_time;  // lld keeps global state
    std::lock_guard lock(one_at_a_time);
    MemoryFile input("ember-object");
    PrivateFolder folder;
    if (!input.ok() || !folder.ok() || !input.write(object)) {
        return error(Code::kIo, "cannot make the linker's files");
    }
    std::string in = input.path();
    std::string out = folder.path() + "/artifact.so";
    const char* args[] = {"ld.lld",
                          "-shared",
                          "--no-mmap-output-file",
                          "--threads=1",
                          "--gc-sections",
                          "-Bsymbolic",
                          "--hash-style=gnu",
                          "--build-id=none",
                          "-soname",
                          "ember-artifact",
                          "-z",
                          "noexecstack",
                          "-o",
                          out.c_str(),
                          in.c_str()};
    std::string messages;
    llvm::raw_string_ostream errors(messages);
    llvm::raw_null_ostream silent;
    lld::Result result = lld::lldMain(args, silent, errors, {{lld::Gnu, &lld::elf::link}});
    if (result.retCode != 0) {
        return error(Code::kInternal, "linking failed: " + errors.str());
    }
    std::ifstream file(out, std::ios::binary);
    std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (bytes.empty()) {
        return error(Code::kInternal, "linking gave no output");
    }
    return bytes;
}

}  // namespace ember::codegen
