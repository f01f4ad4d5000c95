// `ember cache …` and `ember config`.
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/ember/commands.h"
#include "ember/cache/verbs.h"
#include "ember/driver/driver.h"
#include "ember/text/parse.h"

namespace ember::cli {
namespace {

using Json = nlohmann::ordered_json;

struct CacheCommand {
    bool json = false;
    bool repair = false;
    std::string key;
    std::string path;
    std::string max_size;
};

/// JSON as one line, or as lines of `name: value`.
void print(const Json& value, bool json) {
    if (json) {
        std::printf("%s\n", value.dump().c_str());
        return;
    }
    auto row = [](const Json& object) {
        std::string text;
        for (const auto& [name, item] : object.items()) {
            text +=
                (text.empty() ? "" : "  ") + name + ": " + (item.is_string() ? item.get<std::string>() : item.dump());
        }
        return text;
    };
    if (value.is_array()) {
        for (const Json& item : value) {
            std::printf("%s\n", row(item).c_str());
        }
        return;
    }
    for (const auto& [name, item] : value.items()) {
        std::printf("%s: %s\n", name.c_str(), item.is_string() ? item.get<std::string>().c_str() : item.dump().c_str());
    }
}

Json prune_report(const PruneReport& report) {
    return {{"removed", report.removed},
            {"removed_bytes", report.removed_bytes},
            {"leftovers", report.leftovers},
            {"kept", report.kept},
            {"kept_bytes", report.kept_bytes}};
}

Json config_rows(const std::vector<ConfigValue>& values) {
    Json rows = Json::array();
    for (const ConfigValue& value : values) {
        rows.push_back({{"name", value.name}, {"value", value.value}, {"origin", value.origin}});
    }
    return rows;
}

int info(const CacheCommand& c) {
    CacheInfo i = cache_info(*driver::default_cache());
    print({{"dir", i.dir},
           {"mode", cache_mode_name(i.mode)},
           {"entries", i.entries},
           {"bytes", i.bytes},
           {"max_size", i.limits.max_size},
           {"max_count", i.limits.max_count},
           {"free_bytes", i.free_bytes}},
          c.json);
    return 0;
}

int list(const CacheCommand& c) {
    Json rows = Json::array();
    for (const StoredEntry& entry : cache_list(*driver::default_cache())) {
        rows.push_back({{"key", entry.key.hex()}, {"bytes", entry.size}, {"path", entry.path}});
    }
    print(rows, c.json);
    return 0;
}

int show(const CacheCommand& c) {
    auto shown = cache_show(*driver::default_cache(), c.key);
    if (!shown.ok()) {
        return fail(shown.error());
    }
    Json value{{"key", shown->stored.key.hex()},
               {"path", shown->stored.path},
               {"state", reason_name(shown->state)},
               {"object_bytes", shown->object_size}};
    value["isa"] = shown->isa;
    for (const KeyField& field : shown->document.fields()) {
        value[field.name] = field.value;
    }
    value["metadata"] = Json::parse(shown->metadata, nullptr, false);
    print(value, c.json);
    return 0;
}

int verify(const CacheCommand& c) {
    VerifyReport report = cache_verify(*driver::default_cache(), c.repair ? Repair::kYes : Repair::kNo);
    Json damaged = Json::array();
    for (const DamagedEntry& entry : report.damaged) {
        damaged.push_back({{"path", entry.path}, {"reason", reason_name(entry.reason)}, {"removed", entry.removed}});
    }
    print({{"checked", report.checked}, {"damaged", damaged}}, c.json);
    return report.damaged.empty() ? 0 : 1;
}

int explain(const CacheCommand& c) {
    std::ifstream file(c.path, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!file) {
        return fail(error(Code::kIo, "cannot read the file", c.path));
    }
    auto module = text::parse(text, c.path);
    if (!module.ok()) {
        return fail(module.error());
    }
    auto document = driver::key_document(*module);
    if (!document.ok()) {
        return fail(document.error());
    }
    Explanation e = cache_explain(*driver::default_cache(), *document);
    if (!c.json) {
        std::printf("%s\n", e.to_string().c_str());
        return 0;
    }
    Json differences = Json::array();
    for (const FieldDifference& d : e.differences) {
        differences.push_back({{"field", d.name}, {"line", d.line}, {"stored", d.stored}, {"wanted", d.wanted}});
    }
    print({{"key", e.key.hex()},
           {"state", reason_name(e.state)},
           {"nearest", e.nearest ? Json(e.nearest->hex()) : Json()},
           {"differences", differences}},
          true);
    return 0;
}

int warm(const CacheCommand& c) {
    std::ifstream file(c.path, std::ios::binary);
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    auto module = text::parse(text, c.path);
    if (!module.ok()) {
        return fail(module.error());
    }
    auto made = driver::compile_or_load(*module);
    if (!made.ok()) {
        return fail(made.error());
    }
    print({{"key", (*made)->origin().key.hex()}, {"status", outcome_name((*made)->origin().status)}}, c.json);
    return 0;
}

}  // namespace

void add_cache(CLI::App& app, Command& chosen) {
    auto c = std::make_shared<CacheCommand>();
    CLI::App* verb = app.add_subcommand("cache", "Look after the cache of compiled graphs");
    verb->require_subcommand(1);
    auto add = [&](const char* name, const char* help, int (*run)(const CacheCommand&)) {
        CLI::App* sub = verb->add_subcommand(name, help);
        sub->add_flag("--json", c->json, "As JSON");
        sub->callback([c, run, &chosen] { chosen = [c, run] { return run(*c); }; });
        return sub;
    };
    add("dir", "The folder", [](const CacheCommand& command) {
        std::string dir = driver::default_cache()->config().dir;
        command.json ? print({{"dir", dir}}, true) : static_cast<void>(std::printf("%s\n", dir.c_str()));
        return 0;
    });
    add("info", "How much there is and what bounds it", info);
    add("ls", "All entries, most recently used first", list);
    add("show", "One entry's document and metadata", show)
        ->add_option("key", c->key, "Key or its beginning")
        ->required();
    add("verify", "Read and check every entry; exit code 1 where one is damaged", verify)
        ->add_flag("--repair", c->repair, "Remove damaged entries");
    add("prune", "Remove the least recently used down to the caps",
        [](const CacheCommand& command) {
            std::optional<uint64_t> size;
            if (!command.max_size.empty()) {
                size = std::stoull(command.max_size);
            }
            print(prune_report(cache_prune(*driver::default_cache(), size)), command.json);
            return 0;
        })
        ->add_option("--max-size", c->max_size, "Bytes to prune to")
        ->check(CLI::NonNegativeNumber);
    add("clear", "Remove everything", [](const CacheCommand& command) {
        print(prune_report(cache_clear(*driver::default_cache())), command.json);
        return 0;
    });
    add("explain", "Why would this graph miss?", explain)->add_option("graph", c->path, "Graph file")->required();
    add("warm", "Compile and keep a graph", warm)->add_option("graph", c->path, "Graph file")->required();
    CLI::App* exporting = add("export", "Write an entry to a file", [](const CacheCommand& command) {
        Status status = cache_export(*driver::default_cache(), command.key, command.path);
        return status.ok() ? 0 : fail(status.error());
    });
    exporting->add_option("key", c->key, "Key or its beginning")->required();
    exporting->add_option("file", c->path, "File to write")->required();
    add("import", "Take an entry from a file",
        [](const CacheCommand& command) {
            auto key = cache_import(*driver::default_cache(), command.path);
            if (!key.ok()) {
                return fail(key.error());
            }
            print({{"key", key->hex()}}, command.json);
            return 0;
        })
        ->add_option("file", c->path, "File to read")
        ->required();
}

void add_config(CLI::App& app, Command& chosen) {
    auto json = std::make_shared<bool>(false);
    CLI::App* verb = app.add_subcommand("config", "Each setting and where it comes from");
    verb->add_flag("--json", *json, "As JSON");
    verb->callback([json, &chosen] {
        chosen = [json] {
            Json rows = config_rows(driver::default_cache()->config().origins);
            const char* cpu = std::getenv("EMBER_CPU");
            auto target = driver::target_of({});
            if (!target.ok()) {
                return fail(target.error());
            }
            rows.push_back(
                {{"name", "cpu"}, {"value", target->cpu}, {"origin", cpu != nullptr ? "EMBER_CPU" : "host"}});
            print(rows, *json);
            return 0;
        };
    });
}

}  // namespace ember::cli
