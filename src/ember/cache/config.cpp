// Where each setting comes from, and the search for a usable folder. See config.h.
#include "ember/cache/config.h"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "ember/artifact/isa.h"
#include "ember/support/log.h"

namespace ember {
namespace {

constexpr std::string_view kModeNames[] = {"off", "ro", "rw", "refresh", "verify"};

enum class Privacy { kShared, kPrivate };  // kPrivate: stands in a folder that everyone can write

/// A folder that the cache might use.
struct Candidate {
    std::string dir;
    std::string origin;
    Privacy privacy = Privacy::kShared;
};

std::string absolute(const std::string& path) {
    if (path.starts_with('/')) {
        return path;
    }
    std::array<char, 4096> here;
    return getcwd(here.data(), here.size()) == nullptr ? std::string() : std::string(here.data()) + "/" + path;
}

std::optional<std::string> home_of_user() {
    std::array<char, 4096> buffer;
    passwd row{};
    passwd* found = nullptr;
    if (getpwuid_r(geteuid(), &row, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
        return std::nullopt;
    }
    return found->pw_dir;
}

std::vector<Candidate> candidate_folders(const CacheOptions& options) {
    if (options.dir) {
        return {{absolute(*options.dir), "option"}};
    }
    if (auto dir = options.environment("EMBER_CACHE_DIR")) {
        return {{absolute(*dir), "EMBER_CACHE_DIR"}};
    }
    std::vector<Candidate> candidates;
    if (auto dir = options.environment("XDG_CACHE_HOME"); dir && dir->starts_with('/')) {
        candidates.push_back({*dir + "/ember", "XDG_CACHE_HOME"});
    }
    if (auto home = options.environment("HOME"); home && home->starts_with('/')) {
        candidates.push_back({*home + "/.cache/ember", "HOME"});
    } else if (auto other = home_of_user(); other && other->starts_with('/')) {
        candidates.push_back({*other + "/.cache/ember", "passwd"});
    }
    std::string temporary = options.environment("TMPDIR").value_or("/tmp");
    if (temporary.starts_with('/')) {
        candidates.push_back(
            {temporary + "/ember-" + std::to_string(geteuid()), "temporary folder", Privacy::kPrivate});
    }
    return candidates;
}

/// Entries are code: in a folder like /tmp it must be ours alone, and not a link to somebody's.
bool is_ours_alone(const struct stat& info) {
    return S_ISDIR(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & 077) == 0;
}

/// 0 when the folder is there, or was made; else an errno.
int prepare_folder(const FileSystem& fs, const Candidate& candidate, CacheMode mode) {
    bool is_private = candidate.privacy == Privacy::kPrivate;
    int failure = 0;
    if (candidate.dir.empty()) {
        return ENOENT;
    }
    if (mode != CacheMode::kOff && mode != CacheMode::kRead) {
        failure = make_directories(fs, candidate.dir, is_private ? 0700 : 0777);
    }
    struct stat info{};
    if (failure == 0 && is_private && fs.lstat(candidate.dir.c_str(), &info) == 0 && !is_ours_alone(info)) {
        return EPERM;
    }
    return failure;
}

void choose_folder(const CacheOptions& options, CacheConfig& config) {
    for (const Candidate& candidate : candidate_folders(options)) {
        int failure = prepare_folder(*options.file_system, candidate, config.mode);
        if (failure == 0) {
            config.dir = candidate.dir;
            config.origins.push_back({"dir", config.dir, candidate.origin});
            return;
        }
        // A home without a usable folder is common (services, containers) and has a substitute; a wish has none.
        bool wished = candidate.origin == "option" || candidate.origin == "EMBER_CACHE_DIR";
        std::string what = "cannot use " + candidate.dir + " (" + candidate.origin + "): " + std::strerror(failure);
        wished ? void(warn_once("cache", candidate.dir, what)) : log(LogLevel::kInfo, "cache", what);
    }
    config.origins.push_back({"dir", "memory", "no usable folder"});
}

/// Fills `value` from the option, the environment or the default, and says which. What does not parse is passed over.
template <class T, class Parse, class Print>
void choose(const CacheOptions& options, CacheConfig& config, const char* name, const std::optional<T>& option,
            const char* variable, T& value, Parse parse, Print print) {
    std::string origin = "default";
    if (option) {
        value = *option;
        origin = "option";
    } else if (auto text = variable ? options.environment(variable) : std::nullopt) {
        if (std::optional<T> parsed = parse(*text)) {
            value = *parsed;
            origin = variable;
        } else {
            warn_once("cache", variable, std::string(variable) + "=" + *text + " is not understood and ignored");
            origin = std::string("default; ") + variable + " is not understood";
        }
    }
    config.origins.push_back({name, print(value), origin});
}

}  // namespace

std::string_view cache_mode_name(CacheMode mode) {
    return kModeNames[static_cast<size_t>(mode)];
}

std::optional<CacheMode> parse_cache_mode(std::string_view text) {
    const auto* name = std::ranges::find(kModeNames, text);
    if (name == std::end(kModeNames)) {
        return std::nullopt;
    }
    return static_cast<CacheMode>(name - kModeNames);
}

CacheConfig make_cache_config(const CacheOptions& options) {
    CacheConfig config;
    auto number = [](uint64_t value) { return std::to_string(value); };
    auto same = [](const std::string& text) { return text; };
    choose(options, config, "mode", options.mode, "EMBER_CACHE", config.mode, parse_cache_mode,
           [](CacheMode mode) { return std::string(cache_mode_name(mode)); });
    choose(options, config, "max_size", options.max_size, "EMBER_CACHE_MAX_SIZE", config.max_size, parse_size, number);
    choose(options, config, "max_count", options.max_count, nullptr, config.max_count, parse_size, number);
    choose(
        options, config, "salt", options.salt, "EMBER_CACHE_SALT", config.salt,
        [](const std::string& text) { return std::optional(text); }, same);
    choose_folder(options, config);
    config.isa = options.isa ? *options.isa : host_isa();
    std::ranges::sort(config.isa);
    return config;
}

}  // namespace ember
