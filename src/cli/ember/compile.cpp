// `ember compile`: a graph in text to an artifact, or to the text of one of the stages on the way.
#include <array>
#include <filesystem>
#include <fstream>
#include <map>

#include "cli/ember/commands.h"
#include "ember/driver/driver.h"
#include "ember/text/parse.h"

namespace ember::cli {
namespace {

namespace fs = std::filesystem;

struct CompileOptions {
    std::string graph;
    std::string folder;
    std::string emit;
    std::string cpu;
};

const std::map<std::string, std::pair<driver::Emit, const char*>>& stages() {
    static const std::map<std::string, std::pair<driver::Emit, const char*>> kStages = {
        {"text", {driver::Emit::kText, ".ember"}},       {"rewritten", {driver::Emit::kRewritten, ".rewritten.ember"}},
        {"loops", {driver::Emit::kLoops, ".loops.txt"}}, {"llvm", {driver::Emit::kLlvm, ".ll"}},
        {"asm", {driver::Emit::kAssembly, ".s"}},
    };
    return kStages;
}

Result<std::string> read_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::array<char, 4> start{};
    file.read(start.data(), start.size());
    if (std::string_view(start.data(), start.size()) == "GGUF") {
        return error(Code::kInvalidArgument,
                     "a GGUF model, no graph in text form: `ember run` and `ember bench` take models", path);
    }
    file.clear();
    file.seekg(0);
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!file) {
        return error(Code::kIo, "cannot read the file", path);
    }
    return text;
}

Status write_file(const fs::path& path, std::string_view bytes) {
    std::error_code ignored;
    fs::create_directories(path.parent_path(), ignored);
    std::ofstream file(path, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.flush();
    return file ? Status() : Status(error(Code::kIo, "cannot write the file", path.string()));
}

Status compile_graph(const CompileOptions& o) {
    EMBER_TRY(std::string text, read_text(o.graph));
    EMBER_TRY(ir::Module module, text::parse(text, o.graph));
    driver::Options options;
    options.cpu = o.cpu;
    fs::path base = fs::path(o.folder) / fs::path(o.graph).stem();
    if (!o.emit.empty()) {
        EMBER_TRY(const driver::Compiler* compiler, driver::compiler());
        EMBER_TRY(Target target, driver::target_of(options));
        auto [stage, suffix] = stages().at(o.emit);
        EMBER_TRY(std::string made, compiler->emit(module, target, options, stage));
        if (o.folder.empty()) {
            std::fwrite(made.data(), 1, made.size(), stdout);
            return {};
        }
        return write_file(base.string() + suffix, made);
    }
    EMBER_TRY(KeyDocument document, driver::key_document(module, options));
    EMBER_TRY(std::shared_ptr<const driver::Executable> made, driver::compile_or_load(module, options));
    const driver::Origin& origin = made->origin();
    std::printf("%s %s: %s, %d kernels, %lld bytes, compiled in %.3f s\n", o.graph.c_str(),
                origin.key.hex().substr(0, 16).c_str(), std::string(outcome_name(origin.status)).c_str(),
                origin.kernels, static_cast<long long>(origin.artifact_bytes), origin.compile_seconds);
    if (o.folder.empty()) {
        return {};
    }
    LookUp entry = driver::default_cache()->peek(origin.key);
    if (!entry.hit()) {
        return error(Code::kIo, "the artifact is not in the cache; is EMBER_CACHE off?");
    }
    return write_file(base.string() + ".so", *entry.bytes);
}

}  // namespace

void add_compile(CLI::App& app, Command& chosen) {
    auto o = std::make_shared<CompileOptions>();
    CLI::App* verb = app.add_subcommand("compile", "Compile a graph in text form");
    verb->add_option("graph", o->graph, "Graph file (.ember)")->required();
    verb->add_option("-o,--output", o->folder, "Folder for what comes out");
    std::vector<std::string> names;
    for (const auto& [name, stage] : stages()) {
        names.push_back(name);
    }
    verb->add_option("--emit", o->emit, "A stage's text instead of the artifact")->check(CLI::IsMember(names));
    verb->add_option("--cpu", o->cpu, "host, x86-64, x86-64-v2, x86-64-v3, x86-64-v4");
    verb->callback([o, &chosen] {
        chosen = [o] {
            Status status = compile_graph(*o);
            return status.ok() ? 0 : fail(status.error());
        };
    });
}

}  // namespace ember::cli
