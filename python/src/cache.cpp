// ember.cache: what `ember cache …` does, as functions that return plain dicts and lists (python/ember/cache.py gives
// them their classes).
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "binding.h"
#include "ember/cache/verbs.h"
#include "ember/driver/driver.h"
#include "ember/support/env.h"

namespace ember::python {
namespace {

std::string text_of(std::string_view text) {
    return std::string(text);
}

/// What the verb gives, found without the GIL: all of them read files.
template <class F>
auto without_gil(F verb) {
    nb::gil_scoped_release released;
    return verb(*driver::default_cache());
}

nb::dict counters_of(const CacheCounters& counters) {
    nb::dict reasons;
    for (size_t k = 0; k < kReasonCount; ++k) {
        if (counters.reasons[k] > 0) {
            reasons[nb::cast(text_of(reason_name(static_cast<Reason>(k))))] = counters.reasons[k];
        }
    }
    nb::dict result;
    result["look_ups"] = counters.look_ups;
    result["hits"] = counters.hits;
    result["misses"] = counters.misses;
    result["bypasses"] = counters.bypasses;
    result["errors"] = counters.errors;
    result["puts"] = counters.puts;
    result["puts_memory"] = counters.puts_memory;
    result["compiles"] = counters.compiles;
    result["waits"] = counters.waits;
    result["reasons"] = reasons;
    return result;
}

nb::list settings_of(const std::vector<ConfigValue>& values) {
    nb::list rows;
    for (const ConfigValue& value : values) {
        nb::dict row;
        row["name"] = value.name;
        row["value"] = value.value;
        row["origin"] = value.origin;
        rows.append(row);
    }
    return rows;
}

nb::dict info() {
    CacheInfo found = without_gil([](Cache& cache) { return cache_info(cache); });
    nb::dict result;
    result["dir"] = found.dir;
    result["mode"] = text_of(cache_mode_name(found.mode));
    result["entries"] = found.entries;
    result["bytes"] = found.bytes;
    result["max_size"] = found.limits.max_size;
    result["max_count"] = found.limits.max_count;
    result["free_bytes"] = found.free_bytes;
    result["settings"] = settings_of(found.config);
    result["counters"] = counters_of(found.counters);
    return result;
}

nb::dict stored_entry(const StoredEntry& entry) {
    nb::dict row;
    row["key"] = entry.key.hex();
    row["path"] = entry.path;
    row["bytes"] = entry.size;
    row["used"] = static_cast<double>(entry.used_ns) * 1e-9;
    return row;
}

nb::list list() {
    nb::list rows;
    for (const StoredEntry& entry : without_gil([](Cache& cache) { return cache_list(cache); })) {
        rows.append(stored_entry(entry));
    }
    return rows;
}

nb::dict show(const std::string& key) {
    ShownEntry shown = unwrap(without_gil([&](Cache& cache) { return cache_show(cache, key); }));
    nb::dict result = stored_entry(shown.stored);
    nb::dict document;
    for (const KeyField& field : shown.document.fields()) {
        document[nb::cast(field.name)] = nb::bytes(field.value.data(), field.value.size());
    }
    nb::list isa;
    for (const std::string& feature : shown.isa) {
        isa.append(feature);
    }
    result["state"] = text_of(reason_name(shown.state));
    result["object_bytes"] = shown.object_size;
    result["isa"] = isa;
    result["document"] = document;
    result["metadata"] = shown.metadata;
    return result;
}

nb::dict verify(bool repair) {
    VerifyReport report =
        without_gil([&](Cache& cache) { return cache_verify(cache, repair ? Repair::kYes : Repair::kNo); });
    nb::list damaged;
    for (const DamagedEntry& entry : report.damaged) {
        nb::dict row;
        row["path"] = entry.path;
        row["reason"] = text_of(reason_name(entry.reason));
        row["removed"] = entry.removed;
        damaged.append(row);
    }
    nb::dict result;
    result["checked"] = report.checked;
    result["damaged"] = damaged;
    return result;
}

nb::dict prune_report(const PruneReport& report) {
    nb::dict result;
    result["removed"] = report.removed;
    result["removed_bytes"] = report.removed_bytes;
    result["leftovers"] = report.leftovers;
    result["kept"] = report.kept;
    result["kept_bytes"] = report.kept_bytes;
    return result;
}

nb::dict prune(std::optional<uint64_t> max_size, std::optional<uint64_t> max_count) {
    return prune_report(without_gil([&](Cache& cache) { return cache_prune(cache, max_size, max_count); }));
}

nb::dict clear() {
    return prune_report(without_gil([](Cache& cache) { return cache_clear(cache); }));
}

std::string kind_name(FieldDifference::Kind kind) {
    switch (kind) {
        case FieldDifference::Kind::kChanged:
            return "changed";
        case FieldDifference::Kind::kAdded:
            return "added";
        case FieldDifference::Kind::kRemoved:
            return "removed";
        case FieldDifference::Kind::kMoved:
            return "moved";
    }
    return "changed";
}

nb::dict explain(const ir::Module& module) {
    KeyDocument document = unwrap(driver::key_document(module));
    Explanation explanation = without_gil([&](Cache& cache) { return cache_explain(cache, document); });
    nb::list differences;
    for (const FieldDifference& difference : explanation.differences) {
        nb::dict row;
        row["field"] = difference.name;
        row["kind"] = kind_name(difference.kind);
        row["line"] = difference.line;
        row["stored"] = difference.stored;
        row["wanted"] = difference.wanted;
        differences.append(row);
    }
    nb::dict result;
    result["key"] = explanation.key.hex();
    result["state"] = text_of(reason_name(explanation.state));
    result["nearest"] = explanation.nearest ? nb::cast(explanation.nearest->hex()) : nb::none();
    result["differences"] = differences;
    result["text"] = explanation.to_string();
    return result;
}

nb::list config() {
    nb::list rows = settings_of(driver::default_cache()->config().origins);
    Target target = unwrap(driver::target_of({}));
    nb::dict row;
    row["name"] = "cpu";
    row["value"] = target.cpu;
    row["origin"] = std::getenv("EMBER_CPU") != nullptr ? "EMBER_CPU" : "host";
    rows.append(row);
    return rows;
}

void export_entry(const std::string& key, const std::string& path) {
    Status status = without_gil([&](Cache& cache) { return cache_export(cache, key, path); });
    if (!status.ok()) {
        raise(status.error());
    }
}

std::string import_entry(const std::string& path) {
    return unwrap(without_gil([&](Cache& cache) { return cache_import(cache, path); })).hex();
}

}  // namespace

void bind_cache(nb::module_& module) {
    nb::module_ cache = module.def_submodule("cache", "The process's cache; see ember.cache.");
    cache.def("info", &info);
    cache.def("list", &list);
    cache.def("show", &show, nb::arg("key"));
    cache.def("verify", &verify, nb::arg("repair"));
    cache.def("prune", &prune, nb::arg("max_size").none(), nb::arg("max_count").none());
    cache.def("clear", &clear);
    cache.def("explain", &explain, nb::arg("module"));
    cache.def("config", &config);
    cache.def("export_entry", &export_entry, nb::arg("key"), nb::arg("path"));
    cache.def("import_entry", &import_entry, nb::arg("path"));
    cache.def(
        "parse_size", [](const std::string& text) { return parse_size(text); }, nb::arg("text"),
        "The bytes that a size such as \"500M\" means, or None.");
}

}  // namespace ember::python
