// What the cache is told, by whom, and where its folder is. Options of the API win over the environment, that over the
// default; config() of the cache shows each value and where it came from.
//
//     EMBER_CACHE_DIR       the folder; else $XDG_CACHE_HOME/ember if absolute, else ~/.cache/ember, else a private
//                           temporary folder, else memory
//     EMBER_CACHE           off | ro | rw | refresh | verify
//     EMBER_CACHE_MAX_SIZE  a size such as 500M; 0 is no limit but that of free space
//     EMBER_CACHE_SALT      a text that the caller puts into every key
//
// Tests: test/unit/cache_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ember/support/env.h"
#include "ember/support/file.h"

namespace ember {

enum class CacheMode {
    kOff,      // nothing is looked up or stored
    kRead,     // hits only, nothing is written
    kWrite,    // the default
    kRefresh,  // stored entries are made anew, once a process
    kVerify,   // hits are compiled again and compared
};

std::string_view cache_mode_name(CacheMode mode);
std::optional<CacheMode> parse_cache_mode(std::string_view text);

struct CacheOptions {
    std::optional<std::string> dir;
    std::optional<CacheMode> mode;
    std::optional<uint64_t> max_size;
    std::optional<uint64_t> max_count;
    std::optional<std::string> salt;
    std::optional<std::vector<std::string>> isa;  // sorted features of the host; default host_isa()

    Environment environment = process_environment();
    const FileSystem* file_system = &posix_file_system();
};

constexpr uint64_t kDefaultMaxSize = uint64_t{1} << 30;
constexpr uint64_t kDefaultMaxCount = 16384;

/// One row of `ember config`.
struct ConfigValue {
    std::string name;
    std::string value;
    std::string origin;  // "option", "EMBER_CACHE_DIR", "default", …
};

/// The options with every blank filled in.
struct CacheConfig {
    std::string dir;  // absolute; empty when entries live in memory only
    CacheMode mode = CacheMode::kWrite;
    uint64_t max_size = kDefaultMaxSize;
    uint64_t max_count = kDefaultMaxCount;
    std::string salt;
    std::vector<std::string> isa;
    std::vector<ConfigValue> origins;  // one each for dir, mode, max_size, max_count, salt
};

/// Finds the folder and, unless the mode only reads, creates it. What cannot be used is warned about and passed over.
CacheConfig make_cache_config(const CacheOptions& options);

}  // namespace ember
