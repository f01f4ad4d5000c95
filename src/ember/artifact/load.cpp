// Bytes to a loaded object by way of a sealed memfd, or of a private file where there are none. See load.h.
#include "ember/artifact/load.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <string>

#include "ember/support/env.h"

namespace ember {
namespace {

/// A path to a descriptor that no earlier load has used. ld.so takes a path that it has seen for the object that it has
/// loaded, and descriptor numbers come back; so a counter is written into the path, "//" and "/./" for its bits.
std::string fresh_path_of(int fd) {
    static std::atomic<uint64_t> count{0};
    std::string path = "/proc/self/fd";
    for (uint64_t bits = ++count; bits > 0; bits >>= 1) {
        path += bits & 1 ? "/." : "/";
    }
    return path + "/" + std::to_string(fd);
}

Result<std::shared_ptr<LoadedObject>> open_object(const std::string& path, std::string_view name) {
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
        const char* why = dlerror();
        return error(Code::kIo, "cannot load: " + std::string(why ? why : "unknown"), std::string(name));
    }
    return std::make_shared<LoadedObject>(handle, std::string(name));
}

Result<std::shared_ptr<LoadedObject>> load_from_memory(std::string_view elf, std::string_view name,
                                                       const FileSystem& fs) {
    Fd fd(fs, fs.memfd(("ember-" + std::string(name.substr(0, 200))).c_str()));
    if (!fd) {
        return io_error("cannot make memory for a loaded object", std::string(name), errno);
    }
    int failure = write_all(fs, fd.get(), elf);
    if (failure == 0 && fs.seal(fd.get()) != 0) {
        failure = errno;
    }
    if (failure != 0) {
        return io_error("cannot write to memory for a loaded object", std::string(name), failure);
    }
    return open_object(fresh_path_of(fd.get()), name);
}

/// A file that only this user can reach and that is gone from its folder once it is loaded.
Result<std::shared_ptr<LoadedObject>> load_from_file(const std::string& folder, std::string_view elf,
                                                     std::string_view name, const FileSystem& fs) {
    std::string path = folder + "/ember-XXXXXX";
    Fd fd(fs, mkostemp(path.data(), O_CLOEXEC));
    if (!fd) {
        return io_error("cannot make a file for a loaded object", folder, errno);
    }
    int failure = write_all(fs, fd.get(), elf);
    auto loaded = failure == 0 ? open_object(path, name) : io_error("cannot write", path, failure);
    fs.unlink(path.c_str());
    return loaded;
}

}  // namespace

LoadedObject::~LoadedObject() {
    dlclose(handle_);
}

void* LoadedObject::symbol(const char* name) const {
    return dlsym(handle_, name);
}

Result<std::shared_ptr<LoadedObject>> load_object(std::string_view elf, std::string_view name, const FileSystem& fs) {
    if (!elf.starts_with("\177ELF")) {
        return error(Code::kVerify, "not an ELF object", std::string(name));
    }
    auto loaded = load_from_memory(elf, name, fs);
    for (const std::string& folder :
         {process_environment()("TMPDIR").value_or("/tmp"), std::string("/dev/shm"), std::string("/var/tmp")}) {
        if (loaded.ok()) {
            break;
        }
        if (auto other = load_from_file(folder, elf, name, fs); other.ok()) {
            loaded = std::move(other);
        }
    }
    return loaded;
}

}  // namespace ember
