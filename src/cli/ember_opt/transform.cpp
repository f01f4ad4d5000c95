// `ember-opt FILE`: read, rewrite, print.
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <map>

#include "cli/ember_opt/commands.h"
#include "ember/ir/builder.h"
#include "ember/rewrite/passes.h"
#include "ember/support/file.h"
#include "ember/support/sha256.h"
#include "ember/text/parse.h"
#include "ember/text/print.h"
#include "ember/text/suggest.h"

namespace ember::opt {
namespace {

using Emit = std::string (*)(const ir::Module&);

std::string hash_text(const ir::Module& module) {
    Digest digest = sha256(text::canonical_text(module));
    return to_hex({reinterpret_cast<const char*>(digest.data()), digest.size()}) + "\n";
}

const std::map<std::string, Emit>& emits() {
    static const std::map<std::string, Emit> kEmits = {
        {"text", [](const ir::Module& module) { return text::print(module); }},
        {"canonical", text::canonical_text},
        {"key", hash_text},
        {"rewritten", [](const ir::Module& module) { return text::print(rewrite::rewrite(module)); }},
        {"none", [](const ir::Module&) { return std::string(); }},
    };
    return kEmits;
}

Result<std::string> read_text(const std::string& file) {
    if (file == "-") {
        return std::string(std::istreambuf_iterator<char>(std::cin), {});
    }
    return read_file(file, uint64_t{1} << 26);
}

Result<const rewrite::Pass*> find_pass(const std::string& name) {
    std::vector<std::string_view> known;
    for (const rewrite::Pass& pass : rewrite::passes()) {
        if (pass.name == name) {
            return &pass;
        }
        known.push_back(pass.name);
    }
    return error(Code::kInvalidArgument, "unknown pass '" + name + "'" + text::did_you_mean(name, known));
}

}  // namespace

std::vector<std::string> emit_kinds() {
    std::vector<std::string> kinds;
    for (const auto& [name, emit] : emits()) {
        kinds.push_back(name);
    }
    return kinds;
}

Status transform(const TransformOptions& options) {
    EMBER_TRY(std::string text, read_text(options.file));
    EMBER_TRY(ir::Module module, text::parse(text, options.file));
    for (const std::string& name : options.passes) {
        EMBER_TRY(const rewrite::Pass* pass, find_pass(name));
        module = pass->run(std::move(module));
        EMBER_CHECKED(ir::verify(module));
    }
    std::string out = emits().at(options.emit)(module);
    std::fwrite(out.data(), 1, out.size(), stdout);
    return {};
}

std::string list_passes() {
    std::string text;
    for (const rewrite::Pass& pass : rewrite::passes()) {
        text += std::string(pass.name) + std::string(18 - std::min<size_t>(pass.name.size(), 17), ' ');
        text += std::string(pass.why) + "\n";
    }
    return text;
}

}  // namespace ember::opt
