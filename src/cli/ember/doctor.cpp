// `ember doctor`: does everything work here?
#include <nlohmann/json.hpp>

#include "cli/ember/commands.h"
#include "ember/artifact/isa.h"
#include "ember/cache/verbs.h"
#include "ember/driver/build_id.h"
#include "ember/driver/driver.h"
#include "ember/text/parse.h"
#include "runtime/isa.h"
#include "runtime/thread_pool.h"

namespace ember::cli {
namespace {

constexpr const char* kProbe = "func @probe(%0: f32[n]) {\n  %1 = exp(%0) : f32[n]\n  return %1\n}\n";

int doctor(bool json) {
    nlohmann::ordered_json report;
    report["build"] = driver::build_id();
    report["llvm"] = driver::llvm_id();
    auto target = driver::target_of({});
    report["target"] = target.ok() ? target->cpu : target.error().to_string();
    report["isa"] = host_isa();
    report["threads"] = runtime::thread_count();
    CacheInfo cache = cache_info(*driver::default_cache());
    report["cache_dir"] = cache.dir.empty() ? "memory only" : cache.dir;
    report["cache_mode"] = cache_mode_name(cache.mode);
    report["cache_entries"] = cache.entries;
    auto compiler = driver::compiler();
    report["compiler"] = compiler.ok() ? "loads" : compiler.error().to_string();
    bool fine = compiler.ok() && target.ok();
    if (fine) {
        auto module = text::parse(kProbe, "probe");
        auto made = driver::compile_or_load(*module);
        report["probe"] = made.ok() ? std::string(outcome_name((*made)->origin().status)) : made.error().to_string();
        fine = made.ok();
    }
    report["fine"] = fine;
    if (json) {
        std::printf("%s\n", report.dump().c_str());
    } else {
        for (const auto& [name, value] : report.items()) {
            std::printf("%-14s %s\n", name.c_str(),
                        value.is_string() ? value.get<std::string>().c_str() : value.dump().c_str());
        }
    }
    return fine ? 0 : 1;
}

}  // namespace

void add_doctor(CLI::App& app, Command& chosen) {
    auto json = std::make_shared<bool>(false);
    CLI::App* verb = app.add_subcommand("doctor", "What Ember finds on this machine, and whether it compiles");
    verb->add_flag("--json", *json, "As JSON");
    verb->callback([json, &chosen] { chosen = [json] { return doctor(*json); }; });
}

}  // namespace ember::cli
