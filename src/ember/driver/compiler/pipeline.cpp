// The pipeline of a miss, in libember-compiler: rewrite, lower, generate code, describe.
#include <chrono>
#include <nlohmann/json.hpp>

#include "ember/codegen/codegen.h"
#include "ember/driver/driver.h"
#include "ember/lower/lower.h"
#include "ember/rewrite/passes.h"
#include "ember/text/print.h"

namespace ember::driver {
namespace {

Result<lower::LoweredModule> lower_module(const ir::Module& module, const Options& options, ir::Module* rewritten) {
    rewrite::Options rewriting;
    rewriting.disabled = options.disabled_passes;
    *rewritten = rewrite::rewrite(module, rewriting);
    return lower::lower(*rewritten);
}

Result<Compiled> compile_module(const ir::Module& module, const Target& target, const Options& options) {
    ir::Module rewritten;
    EMBER_TRY(lower::LoweredModule lowered, lower_module(module, options, &rewritten));
    EMBER_TRY(codegen::Compiled code, codegen::compile(lowered, target));
    nlohmann::json metadata;
    metadata["in_place"] = lowered.programs.front().in_place;
    metadata["messages"] = lowered.messages;
    metadata["host_ids"] = lowered.host_ids;
    metadata["kernels"] = code.kernels;
    metadata["programs"] = lowered.programs.size();
    return Compiled{std::move(code.object), metadata.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                    code.kernels, code.llvm_modules};
}

Result<Compiled> compile(const ir::Module& module, const Target& target, const Options& options) {
    try {
        return compile_module(module, target, options);
    } catch (const InternalError& bug) {
        return error(Code::kInternal, bug.what());
    }
}

Result<std::string> emit(const ir::Module& module, const Target& target, const Options& options, Emit stage) {
    if (stage == Emit::kText) {
        return text::print(module);
    }
    try {
        ir::Module rewritten;
        auto lowered = lower_module(module, options, &rewritten);
        if (stage == Emit::kRewritten) {
            return text::print(rewritten);
        }
        if (!lowered.ok()) {
            return lowered.error();
        }
        if (stage == Emit::kLoops) {
            return lower::to_string(lowered.value());
        }
        codegen::Emit form = stage == Emit::kLlvm       ? codegen::Emit::kLlvm
                             : stage == Emit::kAssembly ? codegen::Emit::kAssembly
                                                        : codegen::Emit::kObject;
        EMBER_TRY(codegen::Compiled code, codegen::compile(lowered.value(), target, form));
        return std::move(code.object);
    } catch (const InternalError& bug) {
        return error(Code::kInternal, bug.what());
    }
}

}  // namespace
}  // namespace ember::driver

extern "C" {
extern const ember::driver::Compiler ember_compiler;
const ember::driver::Compiler ember_compiler = {ember::driver::compile, ember::driver::emit};
}
