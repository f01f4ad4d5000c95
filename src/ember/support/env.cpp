// Reading the environment and sizes written by users. See env.h.
#include "ember/support/env.h"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace ember {

Environment process_environment() {
    return [](const char* name) -> std::optional<std::string> {
        const char* value = std::getenv(name);
        if (value == nullptr || *value == '\0') {
            return std::nullopt;
        }
        return value;
    };
}

namespace {

constexpr std::string_view kUnits = "KMGT";

/// The power of 1024 that a unit stands for; nothing for a word that is none.
std::optional<int> unit_power(std::string_view unit) {
    if (unit.empty() || unit == "B" || unit == "b") {
        return 0;
    }
    size_t index = kUnits.find(static_cast<char>(unit[0] & ~0x20));
    std::string_view rest = unit.substr(1);
    bool known = rest.empty() || rest == "B" || rest == "b" || rest == "i" || rest == "iB" || rest == "ib";
    if (index == std::string_view::npos || !known) {
        return std::nullopt;
    }
    return static_cast<int>(index) + 1;
}

}  // namespace

std::optional<uint64_t> parse_size(std::string_view text) {
    uint64_t number = 0;
    auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failure != std::errc()) {
        return std::nullopt;
    }
    std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
    while (unit.starts_with(' ')) {
        unit.remove_prefix(1);
    }
    std::optional<int> power = unit_power(unit);
    if (!power || number > (UINT64_MAX >> (10 * *power))) {
        return std::nullopt;
    }
    return number << (10 * *power);
}

std::string format_size(uint64_t bytes) {
    if (bytes < 1024) {
        return std::to_string(bytes) + " B";
    }
    double value = static_cast<double>(bytes) / 1024;
    size_t unit = 0;
    for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) {
        value /= 1024;
    }
    std::array<char, 32> text;
    bool whole = value == static_cast<double>(static_cast<uint64_t>(value));
    int size = std::snprintf(text.data(), text.size(), whole ? "%.0f %ciB" : "%.1f %ciB", value, kUnits[unit]);
    return std::string(text.data(), static_cast<size_t>(size));
}

}  // namespace ember
