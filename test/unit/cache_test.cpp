// The cache within one process: hits, modes, bounds, settings, verbs.
// Damage and faults: cache_fault_test.cpp. Several processes and threads: cache_process_test.cpp.
#include "ember/cache/cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "cache_testing.h"
#include "ember/cache/verbs.h"

namespace ember::testing {
namespace {

constexpr int64_t kHour = int64_t{3600} * 1'000'000'000;

TEST_F(CacheTest, MissThenHitWithTheSameBytes) {
    CompileOutcome cold = run(*open(), "a");
    EXPECT_EQ(cold.status, Outcome::kMiss);
    EXPECT_EQ(cold.reason, Reason::kAbsent);
    EXPECT_EQ(cold.stored, Reason::kNone);
    CompileOutcome warm = run(*open(), "a");
    EXPECT_EQ(warm.status, Outcome::kHit);
    EXPECT_EQ(compiles, 1);
    EXPECT_EQ(*cold.bytes, *warm.bytes);
    EXPECT_EQ(file_bytes(path_of("a")), *cold.bytes) << "the cold run has the very bytes that are stored";
    EXPECT_EQ(warm.view.object, "\177ELF code");
    EXPECT_TRUE(warnings.empty());
}

TEST_F(CacheTest, HitIsWhatIsStored) {
    run(*open(), "a");
    write_bytes(path_of("a"), entry_of("a", "\177ELF planted"));
    CompileOutcome warm = run(*open(), "a");
    EXPECT_EQ(warm.status, Outcome::kHit);
    EXPECT_EQ(warm.view.object, "\177ELF planted");
    EXPECT_EQ(compiles, 1);
}

TEST_F(CacheTest, CompileErrorsGoToTheCallerAndAreNotStored) {
    auto cache = open();
    auto failed = get_or_compile(*cache, document_of("a"),
                                 []() -> Result<std::string> { return error(Code::kShape, "shapes differ"); });
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().message, "shapes differ");
    EXPECT_EQ(run(*cache, "a").status, Outcome::kMiss);
    EXPECT_TRUE(files_below(dir, ".lock").empty());
    EXPECT_THROW((void)get_or_compile(*cache, document_of("b"), compiler_of("c")), InternalError);
    EXPECT_TRUE(files_below(dir, ".lock").empty());
}

// Modes.

TEST_F(CacheTest, ModeOff) {
    auto cache = open(CacheMode::kOff);
    EXPECT_EQ(run(*cache, "a").status, Outcome::kBypass);
    EXPECT_EQ(run(*cache, "a").status, Outcome::kBypass);
    EXPECT_EQ(compiles, 2);
    EXPECT_FALSE(std::filesystem::exists(dir));
    EXPECT_EQ(cache->counters().bypasses, 2u);
}

TEST_F(CacheTest, ModeRead) {
    EXPECT_EQ(run(*open(CacheMode::kRead), "a").stored, Reason::kMode);
    EXPECT_FALSE(std::filesystem::exists(dir));
    run(*open(), "a");
    std::filesystem::last_write_time(path_of("a"), std::filesystem::file_time_type());
    const auto stamp = std::filesystem::last_write_time(path_of("a"));
    auto cache = open(CacheMode::kRead);
    EXPECT_EQ(run(*cache, "a").status, Outcome::kHit);
    EXPECT_EQ(std::filesystem::last_write_time(path_of("a")), stamp);
    EXPECT_EQ(run(*cache, "b").status, Outcome::kMiss);
    EXPECT_EQ(run(*cache, "b").status, Outcome::kHit) << "from memory";
    EXPECT_TRUE(warnings.empty());
}

TEST_F(CacheTest, ModeRefreshMakesEachEntryAnewOnce) {
    run(*open(), "a", "\177ELF old");
    auto cache = open(CacheMode::kRefresh);
    CompileOutcome first = run(*cache, "a", "\177ELF new");
    EXPECT_EQ(first.status, Outcome::kBypass);
    EXPECT_EQ(first.reason, Reason::kMode);
    EXPECT_EQ(run(*cache, "a", "\177ELF newer").view.object, "\177ELF new");
    EXPECT_EQ(run(*open(), "a").view.object, "\177ELF new");
}

TEST_F(CacheTest, ModeVerifyCompilesAndCompares) {
    run(*open(), "a");
    EXPECT_EQ(run(*open(CacheMode::kVerify), "a").status, Outcome::kHit);
    EXPECT_EQ(compiles, 2);
    EXPECT_TRUE(warnings.empty());
    CompileOutcome differs = run(*open(CacheMode::kVerify), "a", "\177ELF other code");
    EXPECT_EQ(differs.status, Outcome::kMiss);
    EXPECT_EQ(differs.reason, Reason::kDiffers);
    EXPECT_EQ(warnings.size(), 1u);
    EXPECT_EQ(run(*open(), "a").view.object, "\177ELF other code");
}

// Bounds.

TEST_F(CacheTest, CapsHoldAfterEveryPutAndTheOldestGoFirst) {
    CacheOptions wanted = options();
    wanted.max_count = 20;
    const uint64_t size = entry_of("00").size();
    wanted.max_size = size * 1000;
    auto cache = Cache::open(wanted);
    for (int i = 10; i < 80; ++i) {
        clock_shift += 2 * kHour;
        const std::string graph = std::to_string(i);
        ASSERT_EQ(cache->put(document_of(graph).key(), shared_entry(graph)), Reason::kNone);
        ASSERT_TRUE(cache->get(document_of("10").key()).hit()) << "used at each turn, so never the oldest";
        ASSERT_TRUE(cache->get(document_of(graph).key()).hit());
        CacheInfo info = cache_info(*cache);
        ASSERT_LE(info.entries, 20u);
    }
    wanted.max_size = size * 7 + size / 2;
    cache = Cache::open(wanted);
    for (int i = 10; i < 60; ++i) {
        const std::string graph = numbered("s", i);
        ASSERT_EQ(cache->put(document_of(graph).key(), shared_entry(graph)), Reason::kNone);
        ASSERT_LE(cache_info(*cache).bytes, wanted.max_size);
    }
    EXPECT_GE(cache_info(*cache).entries, 5u) << "prunes no more than it must";
}

TEST_F(CacheTest, EntriesWithStampsOfAWrongClockGoFirst) {
    auto cache = open();
    for (const char* graph : {"old", "future", "new"}) {
        clock_shift = std::string_view(graph) == "future" ? 1000 * kHour : clock_shift + 2 * kHour;
        cache->put(document_of(graph).key(), shared_entry(graph));
        clock_shift = std::string_view(graph) == "future" ? 2 * kHour : clock_shift.load();
    }
    clock_shift = 4 * kHour;
    cache_prune(*cache, {}, 2);
    EXPECT_FALSE(cache->get(document_of("future").key()).hit());
    EXPECT_TRUE(cache->get(document_of("new").key()).hit());
    // A hit puts a wrong stamp right.
    clock_shift = 1000 * kHour;
    cache->put(document_of("future").key(), shared_entry("future"));
    clock_shift = 6 * kHour;
    EXPECT_TRUE(cache->get(document_of("future").key()).hit());
    cache_prune(*cache, {}, 1);
    EXPECT_TRUE(cache->get(document_of("future").key()).hit());
}

TEST_F(CacheTest, StaysWithinATenthOfTheFreeSpace) {
    FileSystem fs = faulty_file_system();
    fs.statvfs = [](const char*, struct statvfs* to) {
        *to = {};
        to->f_frsize = 512;
        to->f_bavail = 20;  // a tenth is 1024 bytes
        return 0;
    };
    CacheOptions wanted = options();
    wanted.file_system = &fs;
    auto cache = Cache::open(wanted);
    EXPECT_EQ(cache_info(*cache).limits.max_size, 1024u);
    for (int i = 0; i < 20; ++i) {
        const std::string graph = std::to_string(i);
        EXPECT_EQ(cache->put(document_of(graph).key(), shared_entry(graph)), Reason::kNone);
        EXPECT_LE(cache_info(*cache).bytes, 1024u);
    }
    EXPECT_EQ(cache->put(document_of("big").key(), shared_entry("big", std::string(2000, 'x'))), Reason::kTooLarge);
    EXPECT_TRUE(cache->get(document_of("big").key()).hit()) << "from memory";
}

TEST_F(CacheTest, OtherFormatsShareTheFolderAndItsCaps) {
    const Key key = document_of("a").key();
    run(*open(), "a");
    const auto other = dir / "v999" / key.hex().substr(0, 2) / (key.hex() + ".ember");
    std::filesystem::create_directories(other.parent_path());
    write_bytes(other, "an entry of a later format");
    write_bytes(dir / "notes of the user", "kept");
    EXPECT_EQ(cache_list(*open()).size(), 1u);
    EXPECT_TRUE(cache_verify(*open(), Repair::kYes).damaged.empty());
    EXPECT_TRUE(std::filesystem::exists(other));
    EXPECT_EQ(cache_prune(*open(), {}, 1).removed, 1u);
    EXPECT_EQ(cache_clear(*open()).kept, 0u);
    EXPECT_TRUE(std::filesystem::exists(dir / "notes of the user"));
}

TEST_F(CacheTest, HitListsNothingHoweverMuchThereIs) {
    auto cache = open();
    run(*cache, "a");
    calls_by_name.clear();
    run(*open(), "a");
    auto few = calls_by_name;
    for (int i = 0; i < 300; ++i) {
        const std::string graph = std::to_string(i);
        cache->put(document_of(graph).key(), shared_entry(graph));
    }
    calls_by_name.clear();
    EXPECT_EQ(run(*open(), "a").status, Outcome::kHit);
    EXPECT_EQ(calls_by_name, few);
    EXPECT_EQ(calls_by_name["list"] + calls_by_name["lock"] + calls_by_name["write"], 0);
    // Nor does a put, once this process has looked after its part of the folder.
    calls_by_name.clear();
    cache->put(document_of("a").key(), shared_entry("a"));
    EXPECT_EQ(calls_by_name["list"], 0);
}

TEST_F(CacheTest, TotalsSurviveDamage) {
    CacheOptions wanted = options();
    wanted.max_count = 10;
    for (const char* text : {"", "garbage", "= 1", "= 5 5\n+", "= 99999999999999999999 1\n", "= 0 0\n-5\n-5\n"}) {
        write_bytes(dir / "usage", text);
        for (int i = 0; i < 25; ++i) {
            const std::string graph = std::to_string(i);
            ASSERT_EQ(Cache::open(wanted)->put(document_of(graph).key(), shared_entry(graph)), Reason::kNone);
        }
        ASSERT_LE(cache_info(*open()).entries, 10u) << text;
    }
}

// Settings.

TEST_F(CacheTest, FolderRule) {
    std::map<std::string, std::string> variables;
    CacheOptions wanted = options();
    wanted.dir.reset();
    wanted.environment = [&](const char* name) -> std::optional<std::string> {
        auto row = variables.find(name);
        return row == variables.end() ? std::nullopt : std::optional(row->second);
    };
    auto chosen = [&] { return make_cache_config(wanted).dir; };
    const std::string base = folder.string();
    variables["TMPDIR"] = base;
    variables["HOME"] = base + "/home";
    EXPECT_EQ(chosen(), base + "/home/.cache/ember");
    variables["XDG_CACHE_HOME"] = "relative";
    EXPECT_EQ(chosen(), base + "/home/.cache/ember");
    variables["XDG_CACHE_HOME"] = base + "/xdg";
    EXPECT_EQ(chosen(), base + "/xdg/ember");
    variables["EMBER_CACHE_DIR"] = base + "/named";
    EXPECT_EQ(chosen(), base + "/named");
    wanted.dir = base + "/option";
    EXPECT_EQ(chosen(), base + "/option");
    EXPECT_EQ(make_cache_config(wanted).origins.back().origin, "option");
    EXPECT_TRUE(warnings.empty());

    // Files where folders should be.
    write_bytes(folder / "file", "");
    wanted.dir.reset();
    variables["EMBER_CACHE_DIR"] = base + "/file";
    EXPECT_EQ(chosen(), "") << "a wish has no substitute but memory";
    EXPECT_EQ(warnings.size(), 1u);
    variables.erase("EMBER_CACHE_DIR");
    variables["XDG_CACHE_HOME"] = base + "/file";
    variables["HOME"] = base + "/file";
    const std::string temporary = base + "/ember-" + std::to_string(geteuid());
    EXPECT_EQ(chosen(), temporary);
    struct stat info{};
    ASSERT_EQ(stat(temporary.c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);

    // A temporary folder that is not ours alone is nobody's cache.
    std::filesystem::permissions(temporary, std::filesystem::perms::all);
    EXPECT_EQ(chosen(), "");
    std::filesystem::remove_all(temporary);
    std::filesystem::create_directory(folder / "trap");
    std::filesystem::create_directory_symlink(folder / "trap", temporary);
    EXPECT_EQ(chosen(), "");
    CompileOutcome outcome = run(*Cache::open(wanted), "a");
    EXPECT_EQ(outcome.stored, Reason::kMemory);
}

TEST_F(CacheTest, OptionsOverEnvironmentOverDefault) {
    CacheOptions wanted = options();
    EXPECT_EQ(make_cache_config(wanted).max_size, uint64_t{1} << 30);
    wanted.environment = [](const char* name) -> std::optional<std::string> {
        const std::map<std::string_view, std::string> kVariables = {
            {"EMBER_CACHE", "ro"}, {"EMBER_CACHE_MAX_SIZE", "1.5"}, {"EMBER_CACHE_SALT", "s"}};
        auto row = kVariables.find(name);
        return row == kVariables.end() ? std::nullopt : std::optional(row->second);
    };
    CacheConfig config = make_cache_config(wanted);
    EXPECT_EQ(config.mode, CacheMode::kRead);
    EXPECT_EQ(config.salt, "s");
    EXPECT_EQ(config.max_size, uint64_t{1} << 30);
    EXPECT_EQ(warnings.size(), 1u) << "a size that is none";
    wanted.mode = CacheMode::kOff;
    std::map<std::string, std::pair<std::string, std::string>> rows;
    for (const ConfigValue& row : make_cache_config(wanted).origins) {
        rows[row.name] = {row.value, row.origin};
    }
    EXPECT_EQ(rows["mode"], std::pair(std::string("off"), std::string("option")));
    EXPECT_EQ(rows["salt"], std::pair(std::string("s"), std::string("EMBER_CACHE_SALT")));
    EXPECT_EQ(rows["max_count"], std::pair(std::string("16384"), std::string("default")));
    EXPECT_EQ(rows["dir"].second, "option");
}

TEST(Sizes, ParseAndFormat) {
    EXPECT_EQ(parse_size("0"), 0u);
    EXPECT_EQ(parse_size("500M"), uint64_t{500} << 20);
    EXPECT_EQ(parse_size("2 GiB"), uint64_t{2} << 30);
    EXPECT_EQ(parse_size("3kb"), 3072u);
    EXPECT_EQ(parse_size("7B"), 7u);
    for (const char* text : {"", "M", "-1", "1.5G", "5X", "5MM", "99999999999999999999", "99999999999T"}) {
        EXPECT_EQ(parse_size(text), std::nullopt) << text;
    }
    EXPECT_EQ(format_size(512), "512 B");
    EXPECT_EQ(format_size(uint64_t{1} << 30), "1 GiB");
    EXPECT_EQ(format_size(1536), "1.5 KiB");
}

TEST(Log, FilterByLevelAndTag) {
    set_log_filter("error,cache:debug,nonsense");
    EXPECT_FALSE(log_enabled(LogLevel::kWarn, "lower"));
    EXPECT_TRUE(log_enabled(LogLevel::kError, "lower"));
    EXPECT_TRUE(log_enabled(LogLevel::kDebug, "cache"));
    set_log_filter("");
    EXPECT_TRUE(log_enabled(LogLevel::kWarn, "lower"));
    EXPECT_FALSE(log_enabled(LogLevel::kInfo, "lower"));
}

// Truth.

TEST_F(CacheTest, CountersAddUp) {
    auto cache = open();
    run(*cache, "a");
    run(*cache, "a");
    run(*cache, "b");
    write_bytes(path_of("b"), "cut");
    run(*cache, "b");
    {
        WithFault fault({Fault::Kind::kFail, 1, EIO, true, "open"});
        run(*cache, "a");
    }
    open(CacheMode::kOff)->get(document_of("a").key());
    CacheCounters c = cache->counters();
    EXPECT_EQ(c.look_ups, 5u);
    EXPECT_EQ(c.hits, 1u);
    EXPECT_EQ(c.misses, 3u);
    EXPECT_EQ(c.errors, 1u);
    EXPECT_EQ(c.hits + c.misses + c.bypasses + c.errors, c.look_ups);
    uint64_t reasons = 0;
    for (uint64_t count : c.reasons) {
        reasons += count;
    }
    EXPECT_EQ(reasons, c.look_ups - c.hits) << "each that is no hit has a reason";
    EXPECT_EQ(c.reasons[static_cast<size_t>(Reason::kCut)], 1u);
    EXPECT_EQ(c.reasons[static_cast<size_t>(Reason::kIo)], 1u);
    EXPECT_EQ(c.compiles, 4u);
}

TEST_F(CacheTest, VerifyFindsExactlyWhatWasPlanted) {
    auto cache = open();
    for (const char* graph : {"good", "cut", "flipped", "swapped", "other cpu"}) {
        run(*cache, graph);
    }
    write_bytes(path_of("cut"), entry_of("cut").substr(0, 100));
    std::string flipped = entry_of("flipped");
    flipped[3] ^= 1;
    write_bytes(path_of("flipped"), flipped);
    write_bytes(path_of("swapped"), entry_of("good"));
    write_bytes(path_of("other cpu"), entry_of("other cpu", "\177ELF", {"avx512f"}));
    std::map<std::string, Reason> found;
    VerifyReport report = cache_verify(*cache, Repair::kNo);
    for (const DamagedEntry& entry : report.damaged) {
        found[entry.path] = entry.reason;
        EXPECT_FALSE(entry.removed);
    }
    EXPECT_EQ(report.checked, 5u);
    EXPECT_EQ(found, (std::map<std::string, Reason>{{path_of("cut"), Reason::kCut},
                                                    {path_of("flipped"), Reason::kDigest},
                                                    {path_of("swapped"), Reason::kKey}}));
    EXPECT_EQ(cache_verify(*cache, Repair::kYes).damaged.size(), 3u);
    report = cache_verify(*cache, Repair::kNo);
    EXPECT_EQ(report.checked, 2u);
    EXPECT_TRUE(report.damaged.empty());
}

TEST_F(CacheTest, ExplainNamesTheFieldAndTheLine) {
    auto cache = open();
    auto document = [](const char* options, const char* graph) {
        KeyDocument made;
        made.add("ember", "1").add("options", options).add("graph", graph);
        return made;
    };
    auto store = [&](const KeyDocument& stored) {
        cache->put(stored.key(),
                   std::make_shared<const std::string>(pack_entry({"\177ELF", "{}", {}, stored.to_text()})));
    };
    const char* graph = "func @f(%0: f32[n]) {\n  %1 = exp(%0) : f32[n]\n  return %1\n}\n";
    const char* edited = "func @f(%0: f32[n]) {\n  %1 = log(%0) : f32[n]\n  return %1\n}\n";
    Explanation empty = cache_explain(*cache, document("O2", graph));
    EXPECT_EQ(empty.state, Reason::kAbsent);
    EXPECT_FALSE(empty.nearest.has_value());
    store(document("O2", graph));
    store(document("O3", "func @g() {\n}\n"));
    EXPECT_EQ(cache_explain(*cache, document("O2", graph)).state, Reason::kNone);
    Explanation why = cache_explain(*cache, document("O2", edited));
    EXPECT_EQ(why.nearest, document("O2", graph).key());
    ASSERT_EQ(why.differences.size(), 1u);
    EXPECT_EQ(why.differences[0].name, "graph");
    EXPECT_EQ(why.differences[0].line, 2u);
    EXPECT_EQ(why.differences[0].stored, "  %1 = exp(%0) : f32[n]");
    EXPECT_EQ(why.differences[0].wanted, "  %1 = log(%0) : f32[n]");
    EXPECT_NE(why.to_string().find("field graph changed, line 2"), std::string::npos) << why.to_string();
    why = cache_explain(*cache, document("O3", graph));
    ASSERT_EQ(why.differences.size(), 1u);
    EXPECT_EQ(why.differences[0].name, "options");
    EXPECT_EQ(cache->counters().look_ups, 0u);
}

TEST(CompareDocuments, AddedRemovedMoved) {
    using Kind = FieldDifference::Kind;
    KeyDocument one, two, three;
    one.add("a", "1").add("b", "2\n");
    two.add("b", "2\n").add("c", "3");
    three.add("b", "2\n").add("a", "1");
    auto differences = compare_documents(one, two);
    ASSERT_EQ(differences.size(), 2u);
    EXPECT_EQ(differences[0].name, "c");
    EXPECT_EQ(differences[0].kind, Kind::kAdded);
    EXPECT_EQ(differences[1].name, "a");
    EXPECT_EQ(differences[1].kind, Kind::kRemoved);
    EXPECT_EQ(compare_documents(one, three).at(0).kind, Kind::kMoved);
    EXPECT_TRUE(compare_documents(one, one).empty());
}

TEST_F(CacheTest, ShowListInfoClear) {
    auto cache = open();
    EXPECT_TRUE(cache_list(*cache).empty());
    for (int i = 0; i < 5; ++i) {
        clock_shift += 1'000'000'000;
        run(*cache, std::to_string(i));
    }
    std::vector<StoredEntry> entries = cache_list(*cache);
    ASSERT_EQ(entries.size(), 5u);
    EXPECT_EQ(entries[0].key, document_of("4").key()) << "the latest first";
    auto shown = cache_show(*cache, entries[0].key.hex().substr(0, 10));
    ASSERT_TRUE(shown.ok()) << shown.error().to_string();
    EXPECT_EQ(shown->document, document_of("4"));
    EXPECT_EQ(shown->metadata, "{}");
    EXPECT_EQ(shown->isa, std::vector<std::string>{"sse2"});
    EXPECT_FALSE(cache_show(*cache, "").ok());
    EXPECT_FALSE(cache_show(*cache, "zz").ok());
    write_bytes(entries[0].path, "cut");
    EXPECT_EQ(cache_show(*cache, entries[0].key.hex())->state, Reason::kCut);
    CacheInfo info = cache_info(*cache);
    EXPECT_EQ(info.entries, 5u);
    EXPECT_EQ(info.dir, dir.string());
    EXPECT_TRUE(file_bytes(dir / "CACHEDIR.TAG").starts_with("Signature: 8a477f597d28d172789f06886806bc55\n"));
    EXPECT_EQ(cache_clear(*cache).removed, 5u);
    EXPECT_EQ(cache_info(*cache).entries, 0u);
    EXPECT_EQ(cache_info(*cache).bytes, 0u);
    EXPECT_EQ(run(*cache, "0").status, Outcome::kMiss);
}

TEST_F(CacheTest, ExportAndImport) {
    auto cache = open();
    run(*cache, "a");
    const std::string hex = document_of("a").key().hex(), file = (folder / "exported").string();
    ASSERT_TRUE(cache_export(*cache, hex, file).ok());
    EXPECT_EQ(file_bytes(file), entry_of("a"));
    cache_clear(*cache);
    auto key = cache_import(*cache, file);
    ASSERT_TRUE(key.ok()) << key.error().to_string();
    EXPECT_EQ(key->hex(), hex);
    EXPECT_EQ(run(*cache, "a").status, Outcome::kHit);
    std::string damaged = entry_of("a");
    damaged[2] ^= 1;
    write_bytes(file, damaged);
    EXPECT_FALSE(cache_import(*cache, file).ok());
    EXPECT_FALSE(cache_import(*cache, (folder / "missing").string()).ok());
    EXPECT_FALSE(cache_import(*cache, folder.string()).ok());
    EXPECT_FALSE(cache_export(*cache, hex, (folder / "no" / "such").string()).ok());
}

}  // namespace
}  // namespace ember::testing
