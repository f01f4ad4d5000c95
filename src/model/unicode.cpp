// UTF-8 by table 3-7 of the Unicode standard; classes by binary search in unicode_tables.h.
#include "model/unicode.h"

#include <algorithm>
#include <array>

#include "model/unicode_tables.h"

namespace ember::model {

namespace {

CharClass search_class(uint32_t code_point) {
    auto after = std::upper_bound(kClassChanges.begin(), kClassChanges.end(), code_point << 2 | 3);
    return static_cast<CharClass>(*(after - 1) & 3);
}

const std::array<CharClass, 128>& ascii_classes() {
    static const std::array<CharClass, 128> kClasses = [] {
        std::array<CharClass, 128> classes;
        for (uint32_t code = 0; code < classes.size(); ++code) {
            classes[code] = search_class(code);
        }
        return classes;
    }();
    return kClasses;
}

/// What a lead byte asks for: how many bytes follow, and the range of the first of them.
struct Lead {
    uint32_t following;
    uint8_t least, most;
};

constexpr Lead lead_of(uint8_t byte) {
    if (byte >= 0xc2 && byte <= 0xdf) {
        return {1, 0x80, 0xbf};
    }
    if (byte >= 0xe0 && byte <= 0xef) {
        return {2, static_cast<uint8_t>(byte == 0xe0 ? 0xa0 : 0x80), static_cast<uint8_t>(byte == 0xed ? 0x9f : 0xbf)};
    }
    if (byte >= 0xf0 && byte <= 0xf4) {
        return {3, static_cast<uint8_t>(byte == 0xf0 ? 0x90 : 0x80), static_cast<uint8_t>(byte == 0xf4 ? 0x8f : 0xbf)};
    }
    return {0, 0, 0};
}

}  // namespace

CharClass classify(uint32_t code_point) {
    return code_point < 128 ? ascii_classes()[code_point] : search_class(code_point);
}

Utf8Char read_utf8(std::string_view text) {
    auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
    if (byte(0) < 0x80) {
        return {byte(0), 1, Utf8Char::State::kValid};
    }
    Lead lead = lead_of(byte(0));
    if (lead.following == 0) {
        return {};
    }
    uint32_t code_point = byte(0) & (0x3f >> lead.following);
    for (uint32_t i = 1; i <= lead.following; ++i) {
        if (i == text.size()) {
            return {0xfffd, i, Utf8Char::State::kUnfinished};
        }
        if (byte(i) < lead.least || byte(i) > lead.most) {
            return {0xfffd, i, Utf8Char::State::kInvalid};
        }
        code_point = code_point << 6 | (byte(i) & 0x3f);
        lead.least = 0x80;
        lead.most = 0xbf;
    }
    return {code_point, lead.following + 1, Utf8Char::State::kValid};
}

ClassifiedChar read_class(std::string_view text) {
    Utf8Char read = read_utf8(text);
    return {read.state == Utf8Char::State::kValid ? classify(read.code_point) : CharClass::kOther, read.length};
}

}  // namespace ember::model
