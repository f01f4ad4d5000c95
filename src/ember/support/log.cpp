// The one logger of the process: filter, sink, and warnings that come once. See log.h.
#include "ember/support/log.h"

#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "ember/support/env.h"

namespace ember {
namespace {

constexpr std::string_view kLevelNames[] = {"off", "error", "warn", "info", "debug"};

std::optional<LogLevel> parse_level(std::string_view text) {
    for (size_t i = 0; i < std::size(kLevelNames); ++i) {
        if (text == kLevelNames[i]) {
            return static_cast<LogLevel>(i);
        }
    }
    return std::nullopt;
}

struct Filter {
    LogLevel level = LogLevel::kWarn;
    std::map<std::string, LogLevel, std::less<>> tags;

    bool shows(LogLevel asked, std::string_view tag) const {
        auto row = tags.find(tag);
        return asked <= (row == tags.end() ? level : row->second);
    }
};

/// Items that break the grammar are passed over: a log setting never stops a program.
Filter parse_filter(std::string_view text) {
    Filter filter;
    while (!text.empty()) {
        std::string_view item = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), item.size() + 1));
        size_t colon = item.find(':');
        if (auto level = parse_level(item.substr(colon == item.npos ? 0 : colon + 1)); level && colon == item.npos) {
            filter.level = *level;
        } else if (level) {
            filter.tags.insert_or_assign(std::string(item.substr(0, colon)), *level);
        }
    }
    return filter;
}

struct State {
    std::mutex mutex;
    Filter filter = parse_filter(process_environment()("EMBER_LOG").value_or(""));
    LogSink sink;
    std::set<std::string, std::less<>> warned;
};

/// Never destroyed: destructors of other statics may log. Held across a fork, so that a child never finds it locked by
/// a thread it does not have.
State& state() {
    static State& kState = *[] {
        static State* made = new State;
        pthread_atfork([] { made->mutex.lock(); }, [] { made->mutex.unlock(); }, [] { made->mutex.unlock(); });
        return made;
    }();
    return kState;
}

void write_to_stderr(LogLevel level, std::string_view tag, std::string_view message) {
    std::string_view name = log_level_name(level);
    std::fprintf(stderr, "ember: %.*s: %.*s: %.*s\n", static_cast<int>(name.size()), name.data(),
                 static_cast<int>(tag.size()), tag.data(), static_cast<int>(message.size()), message.data());
}

}  // namespace

std::string_view log_level_name(LogLevel level) {
    return kLevelNames[static_cast<size_t>(level)];
}

LogSink set_log_sink(LogSink sink) {
    std::lock_guard hold(state().mutex);
    std::swap(state().sink, sink);
    return sink;
}

void set_log_filter(std::string_view filter) {
    std::lock_guard hold(state().mutex);
    state().filter = parse_filter(filter);
}

bool log_enabled(LogLevel level, std::string_view tag) {
    std::lock_guard hold(state().mutex);
    return state().filter.shows(level, tag);
}

void log(LogLevel level, std::string_view tag, std::string_view message) {
    LogSink sink;
    {
        std::lock_guard hold(state().mutex);
        if (!state().filter.shows(level, tag)) {
            return;
        }
        sink = state().sink;
    }
    // Outside the lock: a sink may take Python's lock, and may log.
    sink ? sink(level, tag, message) : write_to_stderr(level, tag, message);
}

bool warn_once(std::string_view tag, std::string_view reason, std::string_view message) {
    {
        std::lock_guard hold(state().mutex);
        if (!state().warned.insert(std::string(tag) + ":" + std::string(reason)).second) {
            return false;
        }
    }
    log(LogLevel::kWarn, tag, message);
    return true;
}

void forget_warnings() {
    std::lock_guard hold(state().mutex);
    state().warned.clear();
}

}  // namespace ember
