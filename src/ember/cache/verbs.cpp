// What users ask of a cache, on top of its store. See verbs.h.
#include "ember/cache/verbs.h"

#include <algorithm>
#include <tuple>

namespace ember {
namespace {

/// explain() reads no more documents than this, the most recently used first.
constexpr size_t kMostExplained = 4096;

struct ReadEntry {
    Reason reason = Reason::kAbsent;
    std::string bytes;
    EntryView view;
};

ReadEntry read_entry(const Cache& cache, const Key& key) {
    ReadEntry entry;
    entry.reason = cache.store()->read(key, cache.config().isa, {}, &entry.bytes, &entry.view);
    return entry;
}

bool is_sound(Reason reason) {
    return reason == Reason::kNone || reason == Reason::kIsa;
}

/// The stored entry whose key begins with `prefix`.
Result<StoredEntry> find_entry(const Cache& cache, std::string_view prefix) {
    std::vector<StoredEntry> found = cache_list(cache);
    std::erase_if(found, [&](const StoredEntry& entry) { return !entry.key.hex().starts_with(prefix); });
    const std::string where(prefix);
    if (prefix.size() < 2 || found.empty()) {
        return error(Code::kInvalidArgument, "no entry has this key", where);
    }
    if (found.size() > 1) {
        return error(Code::kInvalidArgument, std::to_string(found.size()) + " entries have keys that begin so", where);
    }
    return found.front();
}

struct LinePair {
    uint64_t line = 0;
    std::string stored;
    std::string wanted;
};

std::string_view line_at(std::string_view text, size_t begin) {
    return begin < text.size() ? text.substr(begin, text.find('\n', begin) - begin) : std::string_view();
}

LinePair first_different_line(std::string_view stored, std::string_view wanted) {
    size_t same = static_cast<size_t>(std::ranges::mismatch(stored, wanted).in1 - stored.begin());
    size_t newline = stored.substr(0, same).rfind('\n');
    size_t begin = newline == std::string_view::npos ? 0 : newline + 1;
    auto line = 1 + static_cast<uint64_t>(std::ranges::count(stored.substr(0, begin), '\n'));
    return {line, std::string(line_at(stored, begin)), std::string(line_at(wanted, begin))};
}

FieldDifference difference(FieldDifference::Kind kind, const std::string& name, std::string_view stored,
                           std::string_view wanted) {
    LinePair lines = first_different_line(stored, wanted);
    return {name, kind, lines.line, lines.stored, lines.wanted};
}

/// How many bytes differ between what two texts begin with and what they end with in common.
size_t different_bytes(std::string_view a, std::string_view b) {
    auto begin = static_cast<size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
    a.remove_prefix(begin);
    b.remove_prefix(begin);
    auto end = static_cast<size_t>(std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin());
    return std::max(a.size(), b.size()) - end;
}

/// Less is nearer: fields that differ, then bytes in them.
std::tuple<size_t, size_t> distance(const std::vector<FieldDifference>& differences, const KeyDocument& stored,
                                    const KeyDocument& wanted) {
    size_t bytes = 0;
    for (const FieldDifference& d : differences) {
        const std::string* before = stored.find(d.name);
        const std::string* after = wanted.find(d.name);
        bytes += different_bytes(before ? *before : std::string_view(), after ? *after : std::string_view());
    }
    return {differences.size(), bytes};
}

std::string shorten(const std::string& line) {
    return line.size() <= 160 ? line : line.substr(0, 157) + "...";
}

}  // namespace

CacheInfo cache_info(const Cache& cache) {
    CacheInfo info;
    info.dir = cache.config().dir;
    info.mode = cache.config().mode;
    info.limits = {cache.config().max_size, cache.config().max_count};
    info.config = cache.config().origins;
    info.counters = cache.counters();
    if (const Store* store = cache.store()) {
        info.limits = store->limits();
        info.free_bytes = store->free_bytes();
        for (const StoredEntry& entry : store->list()) {
            info.entries += 1;
            info.bytes += entry.size;
        }
    }
    return info;
}

std::vector<StoredEntry> cache_list(const Cache& cache) {
    std::vector<StoredEntry> entries = cache.store() ? cache.store()->list() : std::vector<StoredEntry>();
    std::ranges::sort(entries, [](const StoredEntry& a, const StoredEntry& b) {
        return std::tie(b.used_ns, a.key) < std::tie(a.used_ns, b.key);
    });
    return entries;
}

Result<ShownEntry> cache_show(const Cache& cache, std::string_view key) {
    ShownEntry shown;
    EMBER_TRY(shown.stored, find_entry(cache, key));
    ReadEntry entry = read_entry(cache, shown.stored.key);
    shown.state = entry.reason;
    if (!is_sound(entry.reason)) {
        return shown;
    }
    EMBER_TRY(shown.document, KeyDocument::parse(entry.view.document));
    shown.metadata = entry.view.metadata;
    shown.isa = isa_features(entry.view);
    shown.object_size = entry.view.object.size();
    return shown;
}

VerifyReport cache_verify(Cache& cache, Repair repair) {
    VerifyReport report;
    for (const StoredEntry& stored : cache_list(cache)) {
        Reason reason = read_entry(cache, stored.key).reason;
        if (reason == Reason::kAbsent) {
            continue;  // removed meanwhile
        }
        report.checked += 1;
        if (!is_sound(reason)) {
            bool removed = repair == Repair::kYes && cache.store()->remove(stored.key) == Reason::kNone;
            report.damaged.push_back({stored.path, reason, removed});
        }
    }
    return report;
}

PruneReport cache_prune(Cache& cache, std::optional<uint64_t> max_size, std::optional<uint64_t> max_count) {
    if (!cache.store()) {
        return {};
    }
    StoreLimits limits = cache.store()->limits();
    return cache.store()->prune({max_size.value_or(limits.max_size), max_count.value_or(limits.max_count)});
}

PruneReport cache_clear(Cache& cache) {
    return cache.store() ? cache.store()->clear() : PruneReport();
}

std::vector<FieldDifference> compare_documents(const KeyDocument& stored, const KeyDocument& wanted) {
    using Kind = FieldDifference::Kind;
    std::vector<FieldDifference> differences;
    for (const KeyField& field : wanted.fields()) {
        const std::string* before = stored.find(field.name);
        if (before == nullptr) {
            differences.push_back(difference(Kind::kAdded, field.name, "", field.value));
        } else if (*before != field.value) {
            differences.push_back(difference(Kind::kChanged, field.name, *before, field.value));
        }
    }
    for (const KeyField& field : stored.fields()) {
        if (wanted.find(field.name) == nullptr) {
            differences.push_back(difference(Kind::kRemoved, field.name, field.value, ""));
        }
    }
    for (size_t i = 0; differences.empty() && i < wanted.fields().size(); ++i) {
        if (wanted.fields()[i] != stored.fields()[i]) {
            differences.push_back({wanted.fields()[i].name, Kind::kMoved, 0, "", ""});
        }
    }
    return differences;
}

Explanation cache_explain(const Cache& cache, const KeyDocument& document) {
    const std::string text = document.to_text();
    Explanation explanation;
    explanation.key = key_of_text(text);
    explanation.state = cache.peek(explanation.key).reason;
    if (explanation.state == Reason::kNone || !cache.store()) {
        return explanation;
    }
    std::vector<StoredEntry> entries = cache_list(cache);
    entries.resize(std::min(entries.size(), kMostExplained));
    std::tuple<size_t, size_t> best;
    for (const StoredEntry& stored : entries) {
        ReadEntry entry = read_entry(cache, stored.key);
        auto other = is_sound(entry.reason) && stored.key != explanation.key ? KeyDocument::parse(entry.view.document)
                                                                             : error(Code::kVerify, "damaged");
        if (!other.ok()) {
            continue;
        }
        std::vector<FieldDifference> differences = compare_documents(*other, document);
        auto now = distance(differences, *other, document);
        if (!explanation.nearest || now < best) {
            best = now;
            explanation.nearest = stored.key;
            explanation.differences = std::move(differences);
        }
    }
    return explanation;
}

std::string Explanation::to_string() const {
    static constexpr std::string_view kKinds[] = {"changed", "added", "removed", "moved"};
    std::string text = key.hex() + (state == Reason::kNone ? ": hit\n" : ": " + std::string(reason_name(state)) + "\n");
    if (nearest) {
        text += "nearest stored entry: " + nearest->hex() + "\n";
    }
    for (const FieldDifference& d : differences) {
        text += "  field " + d.name + " " + std::string(kKinds[static_cast<size_t>(d.kind)]);
        text += d.line > 0 ? ", line " + std::to_string(d.line) + ":\n" : "\n";
        if (d.line > 0) {
            text += "    stored: " + shorten(d.stored) + "\n    wanted: " + shorten(d.wanted) + "\n";
        }
    }
    return text;
}

Status cache_export(const Cache& cache, std::string_view key, const std::string& path) {
    EMBER_TRY(StoredEntry stored, find_entry(cache, key));
    ReadEntry entry = read_entry(cache, stored.key);
    if (!is_sound(entry.reason)) {
        return error(Code::kVerify, "entry is damaged (" + std::string(reason_name(entry.reason)) + ")", stored.path);
    }
    return write_file(path, entry.bytes, cache.file_system());
}

Result<Key> cache_import(Cache& cache, const std::string& path) {
    EMBER_TRY(std::string bytes, read_file(path, kMaxEntrySize, cache.file_system()));
    EntryView view;
    EntryFault fault = split_entry(bytes, &view);
    const Key key = view.key;
    if (fault == EntryFault::kNone) {
        fault = check_entry(bytes, key, cache.config().isa, &view);
    }
    if (!is_sound(reason_of(fault))) {
        return error(Code::kVerify, "is not a good cache entry (" + std::string(entry_fault_name(fault)) + ")", path);
    }
    Reason reason = cache.put(key, std::make_shared<const std::string>(std::move(bytes)));
    if (reason != Reason::kNone) {
        return error(Code::kIo, "cannot store the entry (" + std::string(reason_name(reason)) + ")", path);
    }
    return key;
}

}  // namespace ember
