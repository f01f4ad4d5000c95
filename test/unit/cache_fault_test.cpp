// The cache against damage, strange files, and a system call that fails, stops half-way or kills at any point.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "cache_testing.h"
#include "ember/artifact/load.h"
#include "ember/cache/cache.h"
#include "ember/cache/verbs.h"

namespace ember::testing {
namespace {

// Damage.

/// The entry of "a" is `bytes`; expects a miss for `reason`, and a hit afterwards.
class DamagedEntryTest : public CacheTest {
protected:
    void expect_replaced(std::string_view bytes, std::initializer_list<Reason> reasons, const std::string& what) {
        std::filesystem::create_directories(path_of("a").parent_path());
        write_bytes(path_of("a"), bytes);
        auto cache = open();
        CompileOutcome outcome = run(*cache, "a");
        ASSERT_EQ(outcome.status, Outcome::kMiss) << what;
        ASSERT_EQ(std::ranges::count(reasons, outcome.reason), 1) << what << ": " << reason_name(outcome.reason);
        ASSERT_EQ(outcome.view.object, "\177ELF code") << what;
        ASSERT_EQ(file_bytes(path_of("a")), entry_of("a")) << what;
        ASSERT_EQ(run(*open(), "a").status, Outcome::kHit) << what;
    }
};

TEST_F(DamagedEntryTest, CutAtEveryLength) {
    const std::string entry = entry_of("a");
    for (size_t size = 0; size < entry.size(); ++size) {
        expect_replaced(entry.substr(0, size), {Reason::kCut}, std::to_string(size));
    }
    EXPECT_EQ(warnings.size(), 1u) << "one warning per reason";
}

TEST_F(DamagedEntryTest, BitsFlipped) {
    const std::string entry = entry_of("a");
    for (size_t bit = 0; bit < entry.size() * 8; bit += 5) {  // artifact_test flips them all
        std::string bytes = entry;
        bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
        expect_replaced(bytes, {Reason::kCut, Reason::kFormat, Reason::kKey, Reason::kDigest}, std::to_string(bit));
    }
}

TEST_F(DamagedEntryTest, OfAnotherKey) {
    expect_replaced(entry_of("b"), {Reason::kKey}, "b under a");
}

TEST_F(DamagedEntryTest, ZeroTail) {
    const std::string entry = entry_of("a");
    for (size_t size : {size_t{0}, size_t{20}, entry.size() - 1}) {
        expect_replaced(entry.substr(0, size) + std::string(entry.size() - size, '\0'), {Reason::kCut}, "zero tail");
    }
}

TEST_F(DamagedEntryTest, IsRemovedByALookUpThatWrites) {
    run(*open(), "a");
    const std::string cut = entry_of("a").substr(0, 50);
    write_bytes(path_of("a"), cut);
    EXPECT_EQ(open(CacheMode::kRead)->get(document_of("a").key()).reason, Reason::kCut);
    EXPECT_EQ(file_bytes(path_of("a")), cut) << "mode ro leaves it";
    EXPECT_EQ(open()->get(document_of("a").key()).reason, Reason::kCut);
    EXPECT_FALSE(std::filesystem::exists(path_of("a")));
}

TEST_F(CacheTest, ForAnotherCpuIsAMissAndStays) {
    auto cache = open();
    const Key key = document_of("a").key();
    cache->put(key, std::make_shared<const std::string>(entry_of("a", "\177ELF", {"avx512f", "sse2"})));
    EXPECT_EQ(cache->get(key).reason, Reason::kIsa);
    CacheOptions superset = options();
    superset.isa = std::vector<std::string>{"sse2", "avx512f", "amx"};
    EXPECT_TRUE(Cache::open(superset)->get(key).hit());
}

// What is no regular file.

class IrregularEntryTest : public CacheTest {
protected:
    IrregularEntryTest() {
        path = path_of("a");
        std::filesystem::create_directories(path.parent_path());
    }
    /// The right result at once, and nothing followed or waited for.
    void expect_ignored(Reason stored) {
        CompileOutcome outcome = run(*open(), "a");
        EXPECT_EQ(outcome.status, Outcome::kMiss);
        EXPECT_EQ(outcome.reason, Reason::kIrregular);
        EXPECT_EQ(outcome.view.object, "\177ELF code");
        EXPECT_EQ(outcome.stored, stored);
        EXPECT_EQ(run(*open(), "a").status, stored == Reason::kNone ? Outcome::kHit : Outcome::kMiss);
    }
    std::filesystem::path path;
};

TEST_F(IrregularEntryTest, Folder) {
    std::filesystem::create_directories(path / "with something in it");
    expect_ignored(Reason::kIrregular);
    EXPECT_TRUE(std::filesystem::is_directory(path));
}

TEST_F(IrregularEntryTest, Fifo) {
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    expect_ignored(Reason::kNone);
}

TEST_F(IrregularEntryTest, Socket) {
    // Names of sockets are short: bind by a relative one.
    const auto here = std::filesystem::current_path();
    std::filesystem::current_path(path.parent_path());
    sockaddr_un address{AF_UNIX, "socket"};
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    std::filesystem::current_path(here);
    std::filesystem::rename(path.parent_path() / "socket", path);
    expect_ignored(Reason::kNone);
    close(fd);
}

TEST_F(IrregularEntryTest, SymlinkToAGoodEntry) {
    const auto elsewhere = folder / "elsewhere";
    write_bytes(elsewhere, entry_of("a", "\177ELF evil"));
    std::filesystem::create_symlink(elsewhere, path);
    expect_ignored(Reason::kNone);
    EXPECT_FALSE(std::filesystem::is_symlink(path));
    EXPECT_EQ(file_bytes(elsewhere), entry_of("a", "\177ELF evil")) << "nothing is written through a link";
}

TEST_F(IrregularEntryTest, SymlinkToADevice) {
    std::filesystem::create_symlink("/dev/zero", path);
    expect_ignored(Reason::kNone);
}

TEST_F(IrregularEntryTest, HugeSparseFile) {
    write_bytes(path, "");
    if (truncate(path.c_str(), off_t{1} << 40) != 0) {
        GTEST_SKIP() << "no sparse file of this size here";
    }
    expect_ignored(Reason::kNone);
}

TEST_F(DamagedEntryTest, LargeSparseFileIsNotRead) {
    std::filesystem::create_directories(path_of("a").parent_path());
    write_bytes(path_of("a"), entry_of("a"));
    ASSERT_EQ(truncate(path_of("a").c_str(), off_t{900} << 20), 0);
    calls_by_name.clear();
    EXPECT_EQ(open()->get(document_of("a").key()).reason, Reason::kCut);
    EXPECT_EQ(calls_by_name["read"], 0) << "the trailer tells";
}

// Faults at every call.

/// Number of calls that a cold get_or_compile() makes.
int count_calls(const std::function<void()>& body) {
    WithFault none({});
    body();
    return calls;
}

TEST_F(CacheTest, ErrorAtEveryCall) {
    const int total = count_calls([&] { run(*open(), "dry"); });
    ASSERT_GT(total, 15);
    int number = 0;
    for (bool lasts : {false, true}) {
        for (int error : {EIO, EACCES, EROFS, ENOSPC, EDQUOT, ESTALE, EBUSY, EMFILE, ENOENT}) {
            for (int at = 1; at <= total; ++at) {
                const std::string graph = numbered("g", ++number);
                const std::string what = numbered("call ", at) + numbered(", error ", error);
                forget_warnings();
                warnings.clear();
                std::shared_ptr<Cache> cache;
                {
                    WithFault fault({Fault::Kind::kFail, at, error, lasts, ""});
                    cache = open();
                    ASSERT_EQ(run(*cache, graph).view.object, "\177ELF code") << what;
                    // Where nothing could be stored, memory serves this process.
                    ASSERT_EQ(run(*cache, graph).view.object, "\177ELF code") << what;
                    ASSERT_LE(warnings.size(), 2u) << what << ": " << warnings.back();
                }
                ASSERT_EQ(run(*open(), graph).view.object, "\177ELF code") << what;
                CompileOutcome after = run(*open(), graph);
                ASSERT_EQ(after.status, Outcome::kHit) << what << ": does not recover";
                ASSERT_EQ(*after.bytes, entry_of(graph)) << what;
            }
        }
    }
    cache_prune(*open());
    EXPECT_TRUE(files_below(dir, ".tmp").empty());
    EXPECT_TRUE(files_below(dir, ".lock").empty());
    EXPECT_TRUE(cache_verify(*open(), Repair::kNo).damaged.empty());
}

TEST_F(CacheTest, ErrorAtEveryCallOfAHit) {
    run(*open(), "a");
    const int total = count_calls([&] { run(*open(), "a"); });
    for (int error : {EIO, EACCES, ESTALE, EMFILE}) {
        for (int at = 1; at <= total; ++at) {
            compiles = 0;
            {
                WithFault fault({Fault::Kind::kFail, at, error, false, ""});
                ASSERT_EQ(run(*open(), "a").view.object, "\177ELF code") << at;
            }
            ASSERT_LE(compiles, 1);
            ASSERT_EQ(run(*open(), "a").status, Outcome::kHit) << at;
        }
    }
}

TEST_F(CacheTest, ShortReadsAndWrites) {
    const int total = count_calls([&] { run(*open(), "dry"); });
    for (int at = 1; at <= total; ++at) {
        const std::string graph = numbered("g", at);
        WithFault fault({Fault::Kind::kHalf, at, EINTR, false, ""});
        ASSERT_EQ(run(*open(), graph).view.object, "\177ELF code") << at;
        ASSERT_EQ(run(*open(), graph).status, Outcome::kHit) << at;
    }
}

TEST_F(CacheTest, DiskFullThenSpaceAgain) {
    auto cache = open();
    {
        WithFault fault({Fault::Kind::kFail, 1, ENOSPC, true, "write"});
        CompileOutcome outcome = run(*cache, "a");
        EXPECT_EQ(outcome.stored, Reason::kNoSpace);
        EXPECT_EQ(run(*cache, "b").stored, Reason::kNoSpace);
        EXPECT_EQ(run(*cache, "a").status, Outcome::kHit) << "from memory";
        EXPECT_EQ(warnings.size(), 1u);
        EXPECT_TRUE(files_below(dir, ".ember").empty());
        EXPECT_TRUE(files_below(dir, ".tmp").empty());
    }
    EXPECT_EQ(run(*cache, "c").stored, Reason::kNone);
    EXPECT_EQ(run(*open(), "c").status, Outcome::kHit);
}

/// Kills a writer at each call in turn, until one survives: readers see the old entry, the new one or nothing, and the
/// key can be stored at once.
class KilledWriterTest : public CacheTest {
protected:
    void sweep(CacheMode mode, bool has_old_entry) {
        const Key key = document_of("a").key();
        int killed = 0;
        for (int code = 1000 + SIGKILL; code == 1000 + SIGKILL; killed += code != 0) {
            std::filesystem::remove_all(dir);
            if (has_old_entry) {
                open()->put(key, shared_entry("a", "\177ELF old"));
            }
            code = run_child([&] {
                WithFault fault({Fault::Kind::kKill, killed + 1, 0, false, ""});
                return run(*open(mode), "a", "\177ELF new").status == Outcome::kHit;
            });
            LookUp seen = open()->get(key);
            if (seen.hit()) {
                ASSERT_TRUE(*seen.bytes == entry_of("a", "\177ELF old") || *seen.bytes == entry_of("a", "\177ELF new"));
            } else {
                ASSERT_FALSE(has_old_entry) << "call " << killed;
                ASSERT_EQ(seen.reason, Reason::kAbsent) << "call " << killed;
            }
            ASSERT_EQ(open()->put(key, shared_entry("a")), Reason::kNone) << "call " << killed;
            ASSERT_EQ(run(*open(), "a").view.object, "\177ELF code");
            ASSERT_TRUE(files_below(dir / "v1", ".tmp").empty()) << "a put removes what the dead left";
            ASSERT_TRUE(files_below(dir / "v1", ".lock").empty());
            cache_prune(*open());
            ASSERT_TRUE(files_below(dir, ".tmp").empty());
        }
        EXPECT_GT(killed, 15);
    }
};

TEST_F(KilledWriterTest, OfANewEntry) {
    sweep(CacheMode::kWrite, false);
}
TEST_F(KilledWriterTest, ThatReplacesAnEntry) {
    sweep(CacheMode::kRefresh, true);
}

TEST_F(CacheTest, RenameReportedFailedButDone) {
    FileSystem fs = posix_file_system();
    fs.rename = [](const char* from, const char* to) {
        posix_file_system().rename(from, to);
        errno = EIO;
        return -1;
    };
    CacheOptions wanted = options();
    wanted.file_system = &fs;
    EXPECT_EQ(run(*Cache::open(wanted), "a").stored, Reason::kNone);
    EXPECT_EQ(run(*open(), "a").status, Outcome::kHit);
}

TEST_F(CacheTest, FileReplacedOrCutWhileInUse) {
    auto bytes = std::make_shared<const std::string>(entry_of("a", file_bytes(EMBER_TEST_OBJECT)));
    open()->put(document_of("a").key(), bytes);
    LookUp found = open()->get(document_of("a").key());
    ASSERT_TRUE(found.hit());
    auto loaded = load_object(found.view.object, "in use");
    ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
    ASSERT_EQ(truncate(path_of("a").c_str(), 100), 0);
    EXPECT_EQ((*loaded)->function<int(int, int)>("ember_test_add")(2, 3), 5);
    write_bytes(path_of("a"), std::string(bytes->size(), '\xcc'));
    EXPECT_EQ((*loaded)->function<int()>("ember_test_bump")(), 1);
    std::filesystem::remove_all(dir);
    EXPECT_EQ((*loaded)->function<int()>("ember_test_bump")(), 2);
    EXPECT_EQ(*found.bytes, *bytes);
}

}  // namespace
}  // namespace ember::testing
