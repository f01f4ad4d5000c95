// Loads a shared object from bytes: copied into sealed private memory (a memfd), so that nothing that happens to a file
// later can touch running code. Each load is independent, of the same bytes too; the last reference unloads.
// The object should bind its own symbols to itself (-Bsymbolic or hidden): the loader adds nothing to the global scope.
// Tests: test/unit/artifact_test.cpp.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ember/support/file.h"
#include "ember/support/result.h"

namespace ember {

class LoadedObject {
public:
    LoadedObject(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
    LoadedObject(const LoadedObject&) = delete;
    LoadedObject& operator=(const LoadedObject&) = delete;
    ~LoadedObject();

    /// Null when there is no such symbol.
    void* symbol(const char* name) const;
    template <class Function>
    Function* function(const char* name) const {
        return reinterpret_cast<Function*>(symbol(name));
    }
    const std::string& name() const { return name_; }

private:
    void* handle_;
    std::string name_;
};

/// `name` is what gdb, perf and /proc/self/maps show. Bytes must be trusted: checked by verify_entry() or just made.
Result<std::shared_ptr<LoadedObject>> load_object(std::string_view elf, std::string_view name,
                                                  const FileSystem& fs = posix_file_system());

}  // namespace ember
