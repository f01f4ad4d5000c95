// The key document (everything that decides what code comes out, as text) and the key (its SHA-256). The document is
// stored in the entry, so "why did it miss?" is a comparison of two texts.
//
//     document = "ember-key 1\n" *field
//     field    = name " " length "\n" bytes "\n"       ; `bytes` has exactly `length` bytes, any values
//     name     = lower *62(lower / digit / "_" / ".")  ; each name once
//     length   = "0" / nonzero *digit                  ; decimal
//
// The order of the fields is the caller's and part of the key: what differs most often (the graph's text) comes last.
// Lengths come first so that no value can be mistaken for another field.
// Tests: test/unit/artifact_test.cpp (with golden vectors).
#pragma once

#include <compare>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ember/support/result.h"
#include "ember/support/sha256.h"

namespace ember {

struct Key {
    Digest bytes{};

    std::string hex() const;
    /// Nothing unless `text` is 64 lower-case hexadecimal digits.
    static std::optional<Key> from_hex(std::string_view text);

    auto operator<=>(const Key&) const = default;
};

struct KeyField {
    std::string name;
    std::string value;

    bool operator==(const KeyField&) const = default;
};

class KeyDocument {
public:
    /// Appends a field. A name that breaks the grammar or comes twice is a bug of the caller.
    KeyDocument& add(std::string_view name, std::string_view value);

    const std::vector<KeyField>& fields() const { return fields_; }
    /// Null when there is no such field.
    const std::string* find(std::string_view name) const;

    std::string to_text() const;
    Key key() const;

    /// Reads exactly what to_text() writes; an error names the offset.
    static Result<KeyDocument> parse(std::string_view text);

    bool operator==(const KeyDocument&) const = default;

private:
    std::vector<KeyField> fields_;
};

/// The key of a document given as text.
Key key_of_text(std::string_view document);

}  // namespace ember

template <>
struct std::hash<ember::Key> {
    size_t operator()(const ember::Key& key) const noexcept;
};
