// The process environment as a value, so that tests give their own, and the words users write in it.
// Tests: test/unit/cache_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ember {

/// The value of a variable; nothing when it is not set or empty.
using Environment = std::function<std::optional<std::string>(const char* name)>;

Environment process_environment();

/// A number of bytes: digits and an optional unit K, M, G, T (powers of 1024; "KiB", "kb" and the like are the same).
std::optional<uint64_t> parse_size(std::string_view text);

/// "512 B", "1.5 MiB", "1 GiB".
std::string format_size(uint64_t bytes);

}  // namespace ember
