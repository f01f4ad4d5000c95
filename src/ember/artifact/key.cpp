// Writing and strict reading of key documents. See key.h for the grammar.
#include "ember/artifact/key.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace ember {
namespace {

constexpr std::string_view kHeader = "ember-key 1\n";
constexpr size_t kMaxNameSize = 63;
constexpr size_t kMaxFields = 1024;

bool is_lower(char c) {
    return c >= 'a' && c <= 'z';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

bool is_field_name(std::string_view name) {
    return !name.empty() && name.size() <= kMaxNameSize && is_lower(name[0]) &&
           std::ranges::all_of(name, [](char c) { return is_lower(c) || is_digit(c) || c == '_' || c == '.'; });
}

/// Takes what stands before `end` off `text`; nothing when there is no `end` within the first `limit` characters.
std::optional<std::string_view> take_until(std::string_view& text, char end, size_t limit) {
    size_t size = text.substr(0, limit + 1).find(end);
    if (size == std::string_view::npos) {
        return std::nullopt;
    }
    std::string_view token = text.substr(0, size);
    text.remove_prefix(size + 1);
    return token;
}

std::optional<size_t> parse_length(std::string_view text) {
    size_t length = 0;
    auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), length);
    bool whole = failure == std::errc() && end == text.data() + text.size();
    if (!whole || (text.size() > 1 && text[0] == '0')) {
        return std::nullopt;
    }
    return length;
}

/// What is wrong with the field that `text` begins with; null when it was taken off and added.
const char* take_field(std::string_view& text, KeyDocument& document) {
    std::string_view rest = text;
    auto name = take_until(rest, ' ', kMaxNameSize);
    if (!name || !is_field_name(*name)) {
        return "expected the name of a field";
    }
    if (document.find(*name) != nullptr) {
        return "field comes twice";
    }
    auto digits = take_until(rest, '\n', 20);
    auto length = digits ? parse_length(*digits) : std::nullopt;
    if (!length) {
        return "expected the length of a field";
    }
    if (*length >= rest.size() || rest[*length] != '\n') {
        return "field does not end where its length says";
    }
    document.add(*name, rest.substr(0, *length));
    text = rest.substr(*length + 1);
    return nullptr;
}

}  // namespace

std::string Key::hex() const {
    return to_hex({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::optional<Key> Key::from_hex(std::string_view text) {
    Key key;
    if (text.size() != 2 * key.bytes.size()) {
        return std::nullopt;
    }
    for (size_t i = 0; i < text.size(); ++i) {
        char c = text[i];
        if (!is_digit(c) && !(c >= 'a' && c <= 'f')) {
            return std::nullopt;
        }
        int digit = is_digit(c) ? c - '0' : c - 'a' + 10;
        key.bytes[i / 2] = static_cast<uint8_t>(key.bytes[i / 2] << 4 | digit);
    }
    return key;
}

KeyDocument& KeyDocument::add(std::string_view name, std::string_view value) {
    check(is_field_name(name), "name of a key field");
    check(find(name) == nullptr, "key field comes once");
    fields_.push_back({std::string(name), std::string(value)});
    return *this;
}

const std::string* KeyDocument::find(std::string_view name) const {
    auto field = std::ranges::find(fields_, name, &KeyField::name);
    return field == fields_.end() ? nullptr : &field->value;
}

std::string KeyDocument::to_text() const {
    std::string text(kHeader);
    for (const KeyField& field : fields_) {
        text += field.name;
        text += ' ';
        text += std::to_string(field.value.size());
        text += '\n';
        text += field.value;
        text += '\n';
    }
    return text;
}

Key KeyDocument::key() const {
    return key_of_text(to_text());
}

Result<KeyDocument> KeyDocument::parse(std::string_view text) {
    KeyDocument document;
    std::string_view rest = text;
    auto fail = [&](const char* what) {
        return error(Code::kParse, what, "key document: offset " + std::to_string(text.size() - rest.size()));
    };
    if (!rest.starts_with(kHeader)) {
        return fail("expected \"ember-key 1\"");
    }
    rest.remove_prefix(kHeader.size());
    while (!rest.empty()) {
        if (document.fields_.size() == kMaxFields) {
            return fail("too many fields");
        }
        if (const char* what = take_field(rest, document)) {
            return fail(what);
        }
    }
    return document;
}

Key key_of_text(std::string_view document) {
    return Key{sha256(document)};
}

}  // namespace ember

size_t std::hash<ember::Key>::operator()(const ember::Key& key) const noexcept {
    size_t hash;
    std::memcpy(&hash, key.bytes.data(), sizeof(hash));
    return hash;
}
