// Targets, the bitcode, optimisation, objects: from LLVM IR to bytes.
#include <llvm/Analysis/TargetTransformInfo.h>
#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Linker/Linker.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/StandardInstrumentations.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/IPO/AlwaysInliner.h>
#include <llvm/Transforms/IPO/GlobalDCE.h>
#include <llvm/Transforms/IPO/Internalize.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <set>

#include "ember/codegen/emitter.h"
#include "ember/codegen/math/bitcode.h"

namespace ember::codegen {
namespace {

void initialize_llvm() {
    static const bool kDone = [] {
        llvm::InitializeNativeTarget();
        llvm::InitializeNativeTargetAsmPrinter();
        return true;
    }();
    (void)kDone;
}

/// Optimisers report loops that they did not vectorise as warnings; that is no news for a user.
struct SilentHandler : llvm::DiagnosticHandler {
    bool handleDiagnostics(const llvm::DiagnosticInfo& info) override { return info.getSeverity() != llvm::DS_Error; }
};

class StageTimer {
public:
    explicit StageTimer(const char* stage) : stage_(stage), start_(std::chrono::steady_clock::now()) {}
    ~StageTimer() {
        static const bool kOn = std::getenv("EMBER_TIME_PASSES") != nullptr;
        if (kOn) {
            std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start_;
            std::fprintf(stderr, "%-24s %8.2f ms\n", stage_, spent.count());
        }
    }

private:
    const char* stage_;
    std::chrono::steady_clock::time_point start_;
};

Status link_math(llvm::Module& module, bool has_fma) {
    bool needed = false;
    for (const llvm::Function& function : module) {
        needed |= function.isDeclaration() && function.getName().starts_with("ember_");
    }
    if (!needed) {
        return {};
    }
    llvm::StringRef bytes(reinterpret_cast<const char*>(ember_math_bitcode), ember_math_bitcode_size);
    auto math = llvm::getLazyBitcodeModule(llvm::MemoryBufferRef(bytes, "math"), module.getContext());
    if (!math) {
        return error(Code::kInternal, "math bitcode: " + llvm::toString(math.takeError()));
    }
    (*math)->setTargetTriple(module.getTargetTriple());
    (*math)->setDataLayout(module.getDataLayout());
    std::set<std::string> own;
    for (const llvm::Function& function : module) {
        if (!function.isDeclaration()) {
            own.insert(function.getName().str());
        }
    }
    if (llvm::Linker::linkModules(module, std::move(*math), llvm::Linker::Flags::LinkOnlyNeeded)) {
        return error(Code::kInternal, "math bitcode does not link");
    }
    // Which way error-free products are made; see math/scalar.h.
    if (llvm::GlobalVariable* fma = module.getNamedGlobal("ember_math_fma"); fma != nullptr && has_fma) {
        fma->setInitializer(llvm::ConstantInt::get(fma->getValueType(), 1));
    }
    for (llvm::Function& function : module) {
        if (!function.isDeclaration() && own.count(function.getName().str()) == 0) {
            function.setLinkage(llvm::GlobalValue::InternalLinkage);
            function.removeFnAttr(llvm::Attribute::NoInline);
            function.removeFnAttr(llvm::Attribute::OptimizeNone);
            function.addFnAttr(llvm::Attribute::AlwaysInline);
        }
    }
    return {};
}

void set_target_attributes(llvm::Module& module, const llvm::TargetMachine& machine, int vector_bits) {
    for (llvm::Function& function : module) {
        if (function.isDeclaration()) {
            continue;
        }
        function.addFnAttr("target-cpu", machine.getTargetCPU());
        if (!machine.getTargetFeatureString().empty()) {
            function.addFnAttr("target-features", machine.getTargetFeatureString());
        }
        function.addFnAttr("prefer-vector-width", std::to_string(vector_bits));
        function.addFnAttr("min-legal-vector-width", "0");
    }
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine) {
    llvm::PipelineTuningOptions tuning;
    tuning.LoopVectorization = true;
    tuning.LoopInterleaving = true;
    tuning.SLPVectorization = false;
    // Drivers marked optnone are passed over only because this asks before each pass.
    llvm::PassInstrumentationCallbacks callbacks;
    llvm::OptNoneInstrumentation pass_over(/*DebugLogging=*/false);
    pass_over.registerCallbacks(callbacks);
    llvm::PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager sccs;
    llvm::ModuleAnalysisManager modules;
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(sccs);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, sccs, modules);
    llvm::ModulePassManager passes = builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2);
    passes.run(module, modules);
}

}  // namespace

Result<std::unique_ptr<llvm::TargetMachine>> make_machine(const Target& target) {
    initialize_llvm();
    std::string message;
    const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, message);
    if (found == nullptr) {
        return error(Code::kUnsupported, message);
    }
    llvm::TargetOptions options;
    options.AllowFPOpFusion = llvm::FPOpFusion::Standard;
    options.FunctionSections = true;
    std::unique_ptr<llvm::TargetMachine> machine(found->createTargetMachine(target.triple, target.cpu, "", options,
                                                                            llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                                            llvm::CodeGenOptLevel::Default));
    return machine;
}

Result<std::string> optimize_and_emit(llvm::Module& module, llvm::TargetMachine& machine, const Target& target,
                                      Emit emit) {
    {
        StageTimer timer("link_math");
        const std::vector<std::string>& features = target.features;
        EMBER_CHECKED(link_math(module, std::find(features.begin(), features.end(), "fma") != features.end()));
    }
    set_target_attributes(module, machine, target.vector_bits);
    std::string message;
    llvm::raw_string_ostream problems(message);
    check(!llvm::verifyModule(module, &problems), "invalid LLVM IR: " + message);
    {
        StageTimer timer("optimize");
        optimize(module, machine);
    }
    std::string text;
    if (emit == Emit::kLlvm) {
        llvm::raw_string_ostream stream(text);
        module.print(stream, nullptr);
        return text;
    }
    StageTimer timer("emit_object");
    llvm::SmallVector<char, 0> bytes;
    llvm::raw_svector_ostream stream(bytes);
    llvm::legacy::PassManager passes;
    auto type = emit == Emit::kObject ? llvm::CodeGenFileType::ObjectFile : llvm::CodeGenFileType::AssemblyFile;
    if (machine.addPassesToEmitFile(passes, stream, nullptr, type)) {
        return error(Code::kInternal, "this target emits no object files");
    }
    passes.run(module);
    return std::string(bytes.data(), bytes.size());
}

Result<Compiled> compile(const lower::LoweredModule& lowered, const Target& target, Emit emit) {
    EMBER_TRY(std::unique_ptr<llvm::TargetMachine> machine, make_machine(target));
    llvm::LLVMContext context;
    context.setDiagnosticHandler(std::make_unique<SilentHandler>());
    llvm::Module module("ember", context);
    module.setTargetTriple(target.triple);
    module.setDataLayout(machine->createDataLayout());
    module.setPICLevel(llvm::PICLevel::BigPIC);
    Compiled compiled;
    compiled.llvm_modules = 1;
    compiled.kernels = static_cast<int>(lowered.kernels.size());
    try {
        StageTimer timer("emit_llvm");
        Emitter(lowered, module).emit_all();
    } catch (const Unsupported& unsupported) {
        return unsupported.diagnostic;
    }
    EMBER_TRY(std::string bytes, optimize_and_emit(module, *machine, target, emit));
    if (emit != Emit::kObject) {
        compiled.object = std::move(bytes);
        return compiled;
    }
    StageTimer timer("link");
    EMBER_TRY(compiled.object, link_shared_object(bytes));
    return compiled;
}

std::string llvm_version() {
    return LLVM_VERSION_STRING;
}

}  // namespace ember::codegen
