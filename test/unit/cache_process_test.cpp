// The cache among threads and processes: one compile per key, dead and stopped holders, forks, everything at once.
// No test depends on how fast the machine is; long waits are made with a clock of the test's own.
#include <gtest/gtest.h>

#include <barrier>
#include <random>
#include <thread>

#include "cache_testing.h"
#include "ember/artifact/load.h"
#include "ember/cache/lock.h"
#include "ember/cache/verbs.h"

namespace ember::testing {
namespace {

class CacheProcessTest : public CacheTest {
protected:
    /// Without the faults, which are for one thread.
    std::shared_ptr<Cache> open_plain() const {
        CacheOptions wanted = options();
        wanted.file_system = &posix_file_system();
        return Cache::open(wanted);
    }

    /// Compiles are counted in a file, across processes.
    CompileFunction slow_compiler(std::string_view graph, int milliseconds) const {
        return [this, graph = std::string(graph), milliseconds]() -> Result<std::string> {
            note("compiles");
            std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
            return entry_of(graph);
        };
    }
    void note(const char* name) const {
        std::ofstream(folder / name, std::ios::app | std::ios::binary).put('x').flush();
    }
    size_t noted(const char* name) const { return file_bytes(folder / name).size(); }
    void wait_until_noted(const char* name, size_t count) const {
        // Ends also when the test has, which takes its folder along.
        while (noted(name) < count && std::filesystem::exists(folder)) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
    }

    /// What a process that wants `graph` does; 0 when its result is right.
    int run_plain(std::string_view graph, int milliseconds = 0, double expected_seconds = 60) const {
        auto cache = open_plain();
        auto outcome =
            get_or_compile(*cache, document_of(graph), slow_compiler(graph, milliseconds), {expected_seconds});
        return outcome.ok() && *outcome->bytes == entry_of(graph) ? 0 : 1;
    }

    /// A process that compiles `graph` and does not come to an end; returns when it has the lock.
    pid_t start_endless_holder(std::string_view graph, double expected_seconds = 60) const {
        const size_t before = noted("held");
        const pid_t holder = fork_child([&] {
            (void)get_or_compile(*open_plain(), document_of(graph),
                                 [&]() -> Result<std::string> {
                                     note("held");
                                     std::this_thread::sleep_for(std::chrono::hours(1));
                                     return entry_of(graph);
                                 },
                                 {expected_seconds});
            return 0;
        });
        wait_until_noted("held", before + 1);
        return holder;
    }
    static void kill_and_wait(pid_t child) {
        ::kill(child, SIGKILL);
        EXPECT_EQ(wait_for(child), 1000 + SIGKILL);
    }
};

TEST_F(CacheProcessTest, ManyColdProcessesCompileOnce) {
    std::vector<pid_t> children;
    for (int i = 0; i < 32; ++i) {
        children.push_back(fork_child([&] { return run_plain("a", 200); }));
    }
    for (pid_t child : children) {
        EXPECT_EQ(wait_for(child), 0);
    }
    EXPECT_EQ(noted("compiles"), 1u);
    EXPECT_TRUE(files_below(dir, ".lock").empty());
    EXPECT_TRUE(files_below(dir, ".tmp").empty());
}

TEST_F(CacheProcessTest, TheOneThatCompilesIsKilled) {
    const pid_t holder = start_endless_holder("a", 3600);
    std::vector<pid_t> children;
    for (int i = 0; i < 8; ++i) {
        children.push_back(fork_child([&] {
            note("started");
            return run_plain("a", 100, 3600);
        }));
    }
    wait_until_noted("started", children.size());
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_EQ(noted("compiles"), 0u) << "they wait";
    kill_and_wait(holder);
    for (pid_t child : children) {  // were they to wait for the expected time, it would be an hour
        EXPECT_EQ(wait_for(child), 0);
    }
    EXPECT_EQ(noted("compiles"), 1u);
    EXPECT_TRUE(files_below(dir, ".lock").empty());
}

TEST_F(CacheProcessTest, StoppedHolderDelaysByTheStatedBound) {
    ASSERT_EQ(run_plain("hit"), 0);
    const pid_t holder = start_endless_holder("a", 40);
    ::kill(holder, SIGSTOP);
    sleep_is_fake = true;
    CompileHints hints{40};
    auto outcome = get_or_compile(*open(), document_of("a"), compiler_of("a"), hints);
    const int64_t waited = clock_shift;
    ASSERT_TRUE(outcome.ok());
    EXPECT_EQ(*outcome->bytes, entry_of("a"));
    EXPECT_GE(waited, int64_t{20'000'000'000}) << "does wait";  // until the time in the lock file, which began earlier
    EXPECT_LE(waited, int64_t{42'000'000'000});
    EXPECT_EQ(compiles, 1);
    // Hits are not touched, of this key and others.
    EXPECT_EQ(run(*open(), "hit").status, Outcome::kHit);
    EXPECT_EQ(run(*open(), "a").status, Outcome::kHit);
    // Who comes after the holder should have been ready does not wait for it again.
    cache_clear(*open());
    clock_shift += 1'000'000'000;
    const int64_t late = clock_shift;
    EXPECT_EQ(run(*open(), "a").status, Outcome::kMiss);
    EXPECT_EQ(clock_shift, late);
    kill_and_wait(holder);
}

TEST_F(CacheProcessTest, WithoutLocksEveryoneCompiles) {
    const pid_t holder = start_endless_holder("a");
    WithFault fault({Fault::Kind::kFail, 1, ENOLCK, true, "lock"});
    EXPECT_EQ(run(*open(), "a").status, Outcome::kMiss);
    EXPECT_EQ(run(*open(), "a").status, Outcome::kHit);
    EXPECT_EQ(compiles, 1);
    kill_and_wait(holder);
}

TEST_F(CacheProcessTest, ManyThreadsCompileOnce) {
    for (bool shares_cache : {true, false}) {
        const std::string graph = shares_cache ? "shared" : "own";
        auto cache = open_plain();
        std::vector<std::thread> threads;
        std::barrier start(8);
        std::atomic<int> right{0}, hits{0}, bumps{0};
        const std::string entry = entry_of(graph, file_bytes(EMBER_TEST_OBJECT));
        for (int i = 0; i < 8; ++i) {
            threads.emplace_back([&] {
                auto mine = shares_cache ? cache : open_plain();
                start.arrive_and_wait();
                auto outcome = get_or_compile(*mine, document_of(graph), [&]() -> Result<std::string> {
                    compiles += 1;
                    std::this_thread::sleep_for(std::chrono::milliseconds(50));
                    return entry;
                });
                right += outcome.ok() && *outcome->bytes == entry;
                hits += outcome->status == Outcome::kHit;
                auto loaded = load_object(outcome->view.object, graph);
                bumps += (*loaded)->function<int()>("ember_test_bump")();
            });
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
        EXPECT_EQ(right, 8);
        EXPECT_EQ(hits, 7);
        EXPECT_EQ(bumps, 8) << "each load has a state of its own";
        EXPECT_EQ(compiles.exchange(0), 1);
    }
}

TEST_F(CacheProcessTest, FailedCompileLetsTheNextThreadTry) {
    auto cache = open_plain();
    std::atomic<int> tries{0}, failures{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 6; ++i) {
        threads.emplace_back([&] {
            auto outcome = get_or_compile(*cache, document_of("a"), [&]() -> Result<std::string> {
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
                if (++tries <= 3) {
                    return error(Code::kInternal, "not yet");
                }
                return entry_of("a");
            });
            failures += !outcome.ok();
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(tries, 4);
    EXPECT_EQ(failures, 3);
}

TEST_F(CacheProcessTest, CompileThatWantsItsOwnKey) {
    auto cache = open_plain();
    auto outcome = get_or_compile(*cache, document_of("a"), [&]() -> Result<std::string> {
        auto inner = get_or_compile(*cache, document_of("a"), compiler_of("a"), {3600});
        EXPECT_TRUE(inner.ok());
        auto other = get_or_compile(*cache, document_of("part of a"), compiler_of("part of a"));
        EXPECT_TRUE(other.ok());
        return entry_of("a");
    });
    EXPECT_TRUE(outcome.ok());
    EXPECT_EQ(compiles, 2);
}

TEST_F(CacheProcessTest, ForkDuringACompile) {
    // The child has neither the thread that compiles nor its lock.
    auto cache = open_plain();
    std::atomic<bool> finish{false};
    std::thread thread([&] {
        auto outcome = get_or_compile(*cache, document_of("a"), [&]() -> Result<std::string> {
            note("held");
            while (!finish) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
            }
            return entry_of("a");
        });
        EXPECT_EQ(outcome->status, Outcome::kMiss);
    });
    wait_until_noted("held", 1);
    EXPECT_EQ(run_child([&] { return run_plain("other"); }), 0);
    const pid_t child = fork_child([&] {
        auto outcome = get_or_compile(*cache, document_of("a"), slow_compiler("a", 0), {3600});
        return outcome.ok() && outcome->status == Outcome::kHit ? 0 : 1;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    finish = true;
    EXPECT_EQ(wait_for(child), 0) << "waits for the parent as any other process would";
    thread.join();
    EXPECT_EQ(noted("compiles"), 1u) << "that of the other key";
    EXPECT_TRUE(files_below(dir, ".lock").empty());
}

TEST_F(CacheProcessTest, ForkedChildDoesNotKeepADeadParentsLock) {
    const pid_t parent = fork_child([&] {
        (void)get_or_compile(*open_plain(), document_of("a"), [&]() -> Result<std::string> {
            fork_child([&] {
                note("held");
                wait_until_noted("over", 1);
                return 0;
            });
            std::this_thread::sleep_for(std::chrono::hours(1));
            return entry_of("a");
        });
        return 0;
    });
    wait_until_noted("held", 1);
    kill_and_wait(parent);
    // Time stands still: were the lock still held, this would wait for ever.
    FileSystem fs = posix_file_system();
    fs.monotonic = [] { return int64_t{0}; };
    fs.now = fs.monotonic;
    CacheOptions wanted = options();
    wanted.file_system = &fs;
    EXPECT_EQ(run(*Cache::open(wanted), "a").status, Outcome::kMiss);
    EXPECT_EQ(compiles, 1);
    note("over");
}

TEST_F(CacheProcessTest, LoadedCodeRunsInAForkedChild) {
    auto loaded = load_object(file_bytes(EMBER_TEST_OBJECT), "forked");
    ASSERT_TRUE(loaded.ok());
    auto* bump = (*loaded)->function<int()>("ember_test_bump");
    EXPECT_EQ(bump(), 1);
    EXPECT_EQ(run_child([&] {
                  auto again = load_object(file_bytes(EMBER_TEST_OBJECT), "forked");
                  return bump() == 2 && (*again)->function<int()>("ember_test_bump")() == 1 ? 0 : 1;
              }),
              0);
    EXPECT_EQ(bump(), 2);
}

/// Verbs and look-ups on a few keys in random order; 0 if every result was right.
int do_anything(Cache& cache, unsigned seed, int steps) {
    std::mt19937 random(seed);
    for (int step = 0; step < steps; ++step) {
        const std::string graph = std::to_string(random() % 12);
        const KeyDocument document = document_of(graph);
        const std::string expected = entry_of(graph, std::string(100 * (1 + graph.size()), graph[0]));
        auto shared = std::make_shared<const std::string>(expected);
        switch (random() % 16) {
            case 0:
                cache_clear(cache);
                break;
            case 1:
                cache_prune(cache, {}, 5);
                break;
            case 2:
                if (!cache_verify(cache, Repair::kYes).damaged.empty()) {
                    return 2;
                }
                break;
            case 3:
            case 4:
                if (cache.put(document.key(), shared) != Reason::kNone) {
                    return 3;
                }
                break;
            case 5:
            case 6:
            case 7:
                if (LookUp found = cache.get(document.key());
                    found.hit() ? *found.bytes != expected : found.reason != Reason::kAbsent) {
                    return 4;
                }
                break;
            default:
                if (auto made = get_or_compile(cache, document, [&] { return Result(expected); }, {0.5});
                    !made.ok() || *made->bytes != expected || made->stored != Reason::kNone) {
                    return 5;
                }
        }
    }
    return 0;
}

TEST_F(CacheProcessTest, EverythingAtOnceWithRandomKills) {
    CacheOptions wanted = options();
    wanted.file_system = &posix_file_system();
    wanted.max_count = 8;
    std::mt19937 random(1);
    std::vector<pid_t> children;
    for (unsigned i = 0; i < 24; ++i) {
        const bool is_victim = i % 3 == 0;
        children.push_back(
            fork_child([&] { return do_anything(*Cache::open(wanted), i, is_victim ? 1'000'000 : 150); }));
        if (children.size() == 6) {
            for (size_t k = 0; k < children.size(); ++k) {
                if ((i - 5 + k) % 3 == 0) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(5 + random() % 40));
                    kill_and_wait(children[k]);
                }
            }
            for (size_t k = 0; k < children.size(); ++k) {
                if ((i - 5 + k) % 3 != 0) {
                    EXPECT_EQ(wait_for(children[k]), 0);
                }
            }
            children.clear();
        }
    }
    auto cache = Cache::open(wanted);
    EXPECT_TRUE(cache_verify(*cache, Repair::kNo).damaged.empty());
    cache_prune(*cache);
    EXPECT_LE(cache_info(*cache).entries, 8u);
    EXPECT_TRUE(files_below(dir, ".tmp").empty());
    EXPECT_TRUE(files_below(dir, ".lock").empty());
    EXPECT_EQ(do_anything(*cache, 99, 50), 0);
}

}  // namespace
}  // namespace ember::testing
