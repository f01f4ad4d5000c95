// Logging to stderr or to a sink such as Python's `logging`. EMBER_LOG says what is shown:
//     EMBER_LOG = item *("," item)      item = level | tag ":" level      level = off|error|warn|info|debug
// The tag is the pass or part that speaks ("cache", "fold_constants"). Default: warn.
// Tests: test/unit/cache_test.cpp.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace ember {

enum class LogLevel { kOff, kError, kWarn, kInfo, kDebug };

std::string_view log_level_name(LogLevel level);

using LogSink = std::function<void(LogLevel level, std::string_view tag, std::string_view message)>;

/// Replaces the sink; an empty one means stderr again. Returns the sink that was there.
LogSink set_log_sink(LogSink sink);

/// Replaces what EMBER_LOG says (same grammar).
void set_log_filter(std::string_view filter);

bool log_enabled(LogLevel level, std::string_view tag);
void log(LogLevel level, std::string_view tag, std::string_view message);

/// Warns on the first call with this `reason` in this process and is silent after; says whether it warned.
bool warn_once(std::string_view tag, std::string_view reason, std::string_view message);

/// Lets every reason warn again; for tests.
void forget_warnings();

}  // namespace ember
