// What the tests of the cache share: a folder of their own, small keyed entries, and a file system that fails, kills,
// cuts or counts at the n-th call.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ember/artifact/entry.h"
#include "ember/cache/cache.h"
#include "ember/support/log.h"

namespace ember::testing {

// Documents and entries.

inline std::string numbered(std::string text, int number) {
    return text.append(std::to_string(number));
}

inline KeyDocument document_of(std::string_view graph) {
    KeyDocument document;
    document.add("ember", "test build").add("isa", "sse2").add("graph", graph);
    return document;
}

inline std::string entry_of(std::string_view graph, std::string_view object = "\177ELF code",
                            std::vector<std::string> isa = {"sse2"}) {
    const std::string document = document_of(graph).to_text();
    return pack_entry({object, "{}", std::move(isa), document});
}

inline std::shared_ptr<const std::string> shared_entry(std::string_view graph,
                                                       std::string_view object = "\177ELF code") {
    return std::make_shared<const std::string>(entry_of(graph, object));
}

inline std::string file_bytes(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::filesystem::path& path, std::string_view bytes) {
    std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

inline std::vector<std::filesystem::path> files_below(const std::filesystem::path& folder, std::string_view suffix) {
    std::vector<std::filesystem::path> found;
    for (const auto& item : std::filesystem::recursive_directory_iterator(folder)) {
        if (item.path().string().ends_with(suffix)) {
            found.push_back(item.path());
        }
    }
    return found;
}

// A file system with faults.

/// What happens at call number `at` (from 1) and, if `lasts`, at all later ones. Names are those of the table.
struct Fault {
    enum class Kind { kNone, kFail, kKill, kHalf };
    Kind kind = Kind::kNone;
    int at = 0;
    int error = 0;
    bool lasts = false;
    std::string_view only;  // a name of the table; empty: any call
};

inline Fault fault;
inline std::atomic<int> calls{0};
inline std::map<std::string_view, int> calls_by_name;
inline std::atomic<int64_t> clock_shift{0};     // ns added to both clocks
inline std::atomic<bool> sleep_is_fake{false};  // sleeping shifts the clocks instead

inline bool strikes(std::string_view name) {
    calls_by_name[name] += 1;
    if (!fault.only.empty() && fault.only != name) {
        return false;
    }
    const int number = ++calls;
    return fault.kind != Fault::Kind::kNone && (number == fault.at || (fault.lasts && number > fault.at));
}

/// A function of the table with the fault in front of it.
template <auto Member, class Function = std::remove_reference_t<decltype(posix_file_system().*Member)>>
struct Faulty;

template <auto Member, class R, class... Args>
struct Faulty<Member, R (*const)(Args...)> {
    static inline std::string_view name;

    static R call(Args... args) {
        if (!strikes(name)) {
            return (posix_file_system().*Member)(args...);
        }
        if (fault.kind == Fault::Kind::kKill) {
            ::kill(::getpid(), SIGKILL);
        }
        if (fault.kind == Fault::Kind::kHalf) {
            if constexpr (std::is_same_v<R, ssize_t>) {
                return call_half(args...);
            } else {
                return (posix_file_system().*Member)(args...);
            }
        }
        errno = fault.error;
        return static_cast<R>(-1);
    }

    template <class Buffer, class... Rest>
    static R call_half(int fd, Buffer buffer, size_t size, Rest... rest) {
        return (posix_file_system().*Member)(fd, buffer, (size + 1) / 2, rest...);
    }
};

inline const FileSystem& faulty_file_system() {
    static const FileSystem kFaulty = [] {
        FileSystem fs = posix_file_system();
        auto wrap = [&]<auto Member>(std::integral_constant<decltype(Member), Member>, std::string_view name) {
            Faulty<Member>::name = name;
            fs.*Member = Faulty<Member>::call;
        };
        wrap(std::integral_constant<decltype(&FileSystem::open), &FileSystem::open>(), "open");
        wrap(std::integral_constant<decltype(&FileSystem::read), &FileSystem::read>(), "read");
        wrap(std::integral_constant<decltype(&FileSystem::pread), &FileSystem::pread>(), "pread");
        wrap(std::integral_constant<decltype(&FileSystem::write), &FileSystem::write>(), "write");
        wrap(std::integral_constant<decltype(&FileSystem::fstat), &FileSystem::fstat>(), "fstat");
        wrap(std::integral_constant<decltype(&FileSystem::lstat), &FileSystem::lstat>(), "lstat");
        wrap(std::integral_constant<decltype(&FileSystem::rename), &FileSystem::rename>(), "rename");
        wrap(std::integral_constant<decltype(&FileSystem::unlink), &FileSystem::unlink>(), "unlink");
        wrap(std::integral_constant<decltype(&FileSystem::mkdir), &FileSystem::mkdir>(), "mkdir");
        wrap(std::integral_constant<decltype(&FileSystem::list), &FileSystem::list>(), "list");
        wrap(std::integral_constant<decltype(&FileSystem::set_mtime), &FileSystem::set_mtime>(), "set_mtime");
        wrap(std::integral_constant<decltype(&FileSystem::lock), &FileSystem::lock>(), "lock");
        wrap(std::integral_constant<decltype(&FileSystem::statvfs), &FileSystem::statvfs>(), "statvfs");
        fs.now = [] { return posix_file_system().now() + clock_shift; };
        fs.monotonic = [] { return posix_file_system().monotonic() + clock_shift; };
        fs.sleep = [](int64_t ns) {
            if (sleep_is_fake) {
                clock_shift += ns;
                ns = 200'000;
            }
            posix_file_system().sleep(ns);
        };
        return fs;
    }();
    return kFaulty;
}

/// A fault that is in place while this lives.
class WithFault {
public:
    explicit WithFault(Fault wanted) {
        calls = 0;
        fault = wanted;
    }
    WithFault(const WithFault&) = delete;
    WithFault& operator=(const WithFault&) = delete;
    ~WithFault() { fault = {}; }
};

// Processes.

/// Runs `body` in a child, which exits with what it returns and runs nothing of the parent's at its end.
inline pid_t fork_child(const std::function<int()>& body) {
    const pid_t child = ::fork();
    if (child == 0) {
        int code = 99;
        try {
            code = body();
        } catch (...) {
        }
        ::_exit(code);
    }
    return child;
}

/// The exit code, or 1000 and the signal.
inline int wait_for(pid_t child) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

inline int run_child(const std::function<int()>& body) {
    return wait_for(fork_child(body));
}

/// A folder of the test's own, and caches in it. No warning of an earlier test silences one of this.
class CacheTest : public ::testing::Test {
protected:
    CacheTest() {
        std::string pattern = (std::filesystem::temp_directory_path() / "ember-cache-test-XXXXXX").string();
        folder = ::mkdtemp(pattern.data());
        dir = folder / "cache";
        calls_by_name.clear();
        clock_shift = 0;
        sleep_is_fake = false;
        forget_warnings();
        old_sink = set_log_sink(
            [this](LogLevel, std::string_view, std::string_view message) { warnings.emplace_back(message); });
    }
    ~CacheTest() override {
        set_log_sink(old_sink);
        std::filesystem::remove_all(folder);
    }

    CacheOptions options() const {
        CacheOptions wanted;
        wanted.dir = dir.string();
        wanted.isa = std::vector<std::string>{"avx2", "sse2"};
        wanted.environment = [](const char*) { return std::nullopt; };
        wanted.file_system = &faulty_file_system();
        return wanted;
    }
    std::shared_ptr<Cache> open(CacheMode mode = CacheMode::kWrite) const {
        CacheOptions wanted = options();
        wanted.mode = mode;
        return Cache::open(wanted);
    }
    std::filesystem::path path_of(std::string_view graph) const { return open()->path_of(document_of(graph).key()); }

    /// Compiles are counted; what they make says which one it was.
    CompileFunction compiler_of(std::string_view graph, std::string_view object = "\177ELF code") {
        return [this, graph = std::string(graph), object = std::string(object)]() -> Result<std::string> {
            compiles += 1;
            return entry_of(graph, object);
        };
    }
    CompileOutcome run(Cache& cache, std::string_view graph, std::string_view object = "\177ELF code") {
        auto outcome = get_or_compile(cache, document_of(graph), compiler_of(graph, object), {0.2});
        EXPECT_TRUE(outcome.ok());
        return std::move(outcome).value();
    }

    std::filesystem::path folder, dir;
    std::atomic<int> compiles{0};
    std::vector<std::string> warnings;
    LogSink old_sink;
};

}  // namespace ember::testing
