// Loading and calling: see driver.h.
#include "ember/driver/driver.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "ember/artifact/isa.h"
#include "ember/driver/build_id.h"
#include "ember/text/print.h"

namespace ember::driver {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::string compiler_path() {
    Dl_info info;
    static const int kAnchor = 0;
    if (dladdr(&kAnchor, &info) != 0 && info.dli_fname != nullptr) {
        std::string path = info.dli_fname;
        if (auto slash = path.rfind('/'); slash != std::string::npos) {
            return path.substr(0, slash + 1) + "libember-compiler.so";
        }
    }
    return "libember-compiler.so";
}

struct CompilerState {
    std::mutex mutex;
    const Compiler* loaded = nullptr;
};

CompilerState& compiler_state() {
    static CompilerState state;
    return state;
}

std::string parameter_label(size_t index, const ir::TensorType& type) {
    return "parameter " + std::to_string(index) + " (" + type.to_string() + ")";
}

std::string shape_text(const EmberTensor& tensor) {
    std::string text = "[";
    for (int32_t i = 0; i < tensor.ndim; ++i) {
        text += (i == 0 ? "" : ",") + std::to_string(tensor.shape[i]);
    }
    return text + "]";
}

/// Replaces %a and %b of a check's message by the two numbers, and %% by %.
std::string fill_in(const std::string& message, int64_t a, int64_t b) {
    std::string text;
    for (size_t i = 0; i < message.size(); ++i) {
        bool more = message[i] == '%' && i + 1 < message.size();
        if (more && message[i + 1] == '%') {
            text += message[++i];
        } else if (more && (message[i + 1] == 'a' || message[i + 1] == 'b')) {
            text += std::to_string(message[++i] == 'a' ? a : b);
        } else {
            text += message[i];
        }
    }
    return text;
}

Diagnostic failed_check(const std::string& message, int64_t a, int64_t b) {
    constexpr std::string_view kAssert = "assert:";
    if (message.starts_with(kAssert)) {
        return error(Code::kAssert, message.substr(kAssert.size()));
    }
    constexpr std::string_view kIndex = "index:";
    if (message.starts_with(kIndex)) {
        return error(Code::kIndex, fill_in(message.substr(kIndex.size()), a, b));
    }
    return error(Code::kShape, fill_in(message, a, b));
}

}  // namespace

Result<const Compiler*> compiler() {
    CompilerState& state = compiler_state();
    std::lock_guard lock(state.mutex);
    if (state.loaded == nullptr) {
        // Never closed: LLVM does not like to be unloaded.
        void* handle = dlopen(compiler_path().c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle == nullptr) {
            handle = dlopen("libember-compiler.so", RTLD_NOW | RTLD_LOCAL);
        }
        if (handle == nullptr) {
            return error(Code::kIo, std::string("cannot load the compiler: ") + dlerror());
        }
        void* table = dlsym(handle, "ember_compiler");
        if (table == nullptr) {
            return error(Code::kIo, "libember-compiler.so is not the one of this libember");
        }
        state.loaded = static_cast<const Compiler*>(table);
    }
    return state.loaded;
}

bool compiler_loaded() {
    CompilerState& state = compiler_state();
    std::lock_guard lock(state.mutex);
    return state.loaded != nullptr;
}

std::shared_ptr<Cache> default_cache() {
    static std::mutex mutex;
    static std::shared_ptr<Cache> cache;
    std::lock_guard lock(mutex);
    if (cache == nullptr) {
        cache = Cache::open();
    }
    return cache;
}

Result<Target> target_of(const Options& options) {
    std::string cpu = options.cpu;
    if (cpu.empty()) {
        const char* asked = std::getenv("EMBER_CPU");
        cpu = asked != nullptr && *asked != 0 ? asked : "host";
    }
    return make_target(cpu, host_isa());
}

Result<KeyDocument> key_document(const ir::Module& module, const Options& options) {
    EMBER_TRY(Target target, target_of(options));
    std::string disabled;
    for (const std::string& pass : options.disabled_passes) {
        disabled += pass + " ";
    }
    std::string features;
    for (const std::string& feature : target.features) {
        features += feature + " ";
    }
    std::shared_ptr<Cache> cache = options.cache != nullptr ? options.cache : default_cache();
    KeyDocument document;
    document.add("build", build_id())
        .add("llvm", llvm_id())
        .add("abi", std::to_string(runtime::kArtifactAbi))
        .add("target", target.triple + " " + target.cpu)
        .add("isa", features)
        .add("disabled_passes", disabled)
        .add("salt", cache->config().salt)
        .add("graph", text::canonical_text(module));
    return document;
}

/// Builds an Executable from an entry.
class Loader {
public:
    using Clock = std::chrono::steady_clock;
    /// `start`: from when load_seconds counts.
    static Result<std::shared_ptr<const Executable>> compile_or_load(const ir::Module& module,
                                                                     const KeyDocument& document,
                                                                     const Options& options, Clock::time_point start);

    static Result<std::shared_ptr<Executable>> load(const ir::Module& module, const CompileOutcome& outcome,
                                                    const Origin& origin) {
        auto made = std::make_shared<Executable>();
        std::string name = "ember-" + outcome.key.hex().substr(0, 16);
        EMBER_TRY(made->object_, load_object(outcome.view.object, name));
        made->entry_ = made->object_->function<Executable::EntryPoint>("ember_call");
        if (made->entry_ == nullptr) {
            return error(Code::kInternal, "an artifact without entry point");
        }
        const ir::Graph& entry = module.entry();
        for (const ir::Param& param : entry.params) {
            made->parameters_.push_back(entry.type(param.value));
        }
        for (const ir::Output& output : entry.outputs) {
            made->outputs_.push_back(entry.type(output.value));
        }
        nlohmann::json metadata = nlohmann::json::parse(outcome.view.metadata, nullptr, false);
        if (metadata.is_discarded() || metadata["in_place"].size() != entry.outputs.size()) {
            return error(Code::kInternal, "an artifact whose metadata does not fit its graph");
        }
        made->in_place_ = metadata["in_place"].get<std::vector<int>>();
        made->host_ids_ = metadata["host_ids"].get<std::vector<std::string>>();
        made->messages_ = metadata["messages"].get<std::vector<std::string>>();
        made->origin_ = origin;
        made->origin_.kernels = metadata["kernels"].get<int>();
        made->origin_.artifact_bytes = static_cast<int64_t>(outcome.bytes->size());
        return made;
    }
};

Result<std::shared_ptr<const Executable>> compile_or_load(const ir::Module& module, const Options& options) {
    auto start = std::chrono::steady_clock::now();
    EMBER_TRY(KeyDocument document, key_document(module, options));
    return Loader::compile_or_load(module, document, options, start);
}

Result<std::shared_ptr<const Executable>> compile_or_share(const ir::Module& module, const Options& options) {
    struct Shared {
        std::mutex mutex;
        std::unordered_map<std::string, std::weak_ptr<const Executable>> by_key;
    };
    static auto* shared = new Shared;  // executables may outlive the end of main
    auto start = std::chrono::steady_clock::now();
    EMBER_TRY(KeyDocument document, key_document(module, options));
    std::string key = document.key().hex();
    {
        std::lock_guard lock(shared->mutex);
        if (auto known = shared->by_key.find(key); known != shared->by_key.end()) {
            if (std::shared_ptr<const Executable> alive = known->second.lock()) {
                return alive;
            }
        }
    }
    EMBER_TRY(std::shared_ptr<const Executable> made, Loader::compile_or_load(module, document, options, start));
    std::lock_guard lock(shared->mutex);
    shared->by_key[key] = made;
    return made;
}

Result<std::shared_ptr<const Executable>> Loader::compile_or_load(const ir::Module& module, const KeyDocument& document,
                                                                  const Options& options, Clock::time_point start) {
    std::shared_ptr<Cache> cache = options.cache != nullptr ? options.cache : default_cache();
    EMBER_TRY(Target target, target_of(options));
    Origin origin;
    auto compile = [&]() -> Result<std::string> {
        EMBER_TRY(const Compiler* made, compiler());
        EMBER_TRY(Compiled compiled, made->compile(module, target, options));
        origin.llvm_modules = compiled.llvm_modules;
        std::string document_text = document.to_text();
        return pack_entry({compiled.object, compiled.metadata, target.features, document_text});
    };
    EMBER_TRY(CompileOutcome outcome, get_or_compile(*cache, document, compile));
    origin.status = outcome.status;
    origin.reason = outcome.reason;
    origin.key = outcome.key;
    origin.compile_seconds = outcome.compile_seconds;
    origin.load_seconds = 0;
    EMBER_TRY(std::shared_ptr<Executable> loaded, Loader::load(module, outcome, origin));
    loaded->origin_.load_seconds = seconds_since(start) - outcome.compile_seconds;
    return std::shared_ptr<const Executable>(std::move(loaded));
}

EmberTensor make_tensor(ir::DType dtype, std::span<int64_t> shape, void* data) {
    auto [code, bits] = ir::dlpack_type(dtype);
    EmberTensor tensor{};
    tensor.data = data;
    tensor.device_type = 1;  // DLPack's kDLCPU
    tensor.ndim = static_cast<int32_t>(shape.size());
    tensor.dtype_code = code;
    tensor.dtype_bits = bits;
    tensor.dtype_lanes = 1;
    tensor.shape = shape.data();
    return tensor;
}

Status Executable::check_inputs(const EmberTensor* const* inputs) const {
    std::vector<std::pair<int64_t, int64_t>> symbols;  // code, length
    for (size_t i = 0; i < parameters_.size(); ++i) {
        const ir::TensorType& type = parameters_[i];
        const EmberTensor& tensor = *inputs[i];
        auto [code, bits] = ir::dlpack_type(type.dtype);
        if (bits != 0 && (tensor.dtype_code != code || tensor.dtype_bits != bits)) {
            return error(Code::kType, parameter_label(i, type) + ": the tensor has another dtype");
        }
        if (tensor.ndim != type.rank()) {
            return error(Code::kShape,
                         parameter_label(i, type) + ": the tensor has " + std::to_string(tensor.ndim) + " axes");
        }
        for (size_t axis = 0; axis < type.shape.size(); ++axis) {
            int64_t length = tensor.shape[axis];
            ir::Dim dim = type.shape[axis];
            int64_t wanted = length;
            if (dim.is_static()) {
                wanted = dim.size();
            } else {
                auto known = std::find_if(symbols.begin(), symbols.end(),
                                          [&](const auto& pair) { return pair.first == dim.code(); });
                if (known == symbols.end()) {
                    symbols.emplace_back(dim.code(), length);
                } else {
                    wanted = known->second;
                }
            }
            if (length != wanted || length < 0) {
                return error(Code::kShape, parameter_label(i, type) + ": axis " + std::to_string(axis) +
                                               " must have length " + std::to_string(wanted) + ", the tensor is " +
                                               shape_text(tensor));
            }
        }
    }
    return {};
}

namespace {

/// What an artifact's context leads to.
struct Call {
    EmberContext context{};
    const Executable::Host* host = nullptr;
    const std::vector<std::string>* host_ids = nullptr;
    runtime::Kept kept;
    Diagnostic failure;  // of a host_call
};

/// Did the host's function set what it must?
Status check_given(const HostRequest& request, std::span<const EmberTensor> before) {
    for (size_t k = 0; k < request.outputs.size(); ++k) {
        const EmberTensor& given = request.outputs[k];
        const EmberTensor& asked = before[k];
        std::string label = "host_call \"" + std::string(request.id) + "\": result " + std::to_string(k);
        if (given.ndim != asked.ndim || given.shape != asked.shape || given.dtype_code != asked.dtype_code ||
            given.dtype_bits != asked.dtype_bits) {
            return error(Code::kType, label + " has another dtype or rank than the one asked for");
        }
        bool empty = false;
        for (int32_t axis = 0; axis < given.ndim; ++axis) {
            if (given.shape[axis] < 0 || given.shape[axis] > ir::kMaxLength) {
                return error(Code::kShape, label + " has no lengths: " + shape_text(given));
            }
            empty = empty || given.shape[axis] == 0;
        }
        if (given.data == nullptr && !empty) {
            return error(Code::kInvalidArgument, label + " has no data");
        }
    }
    return {};
}

Status run_host_call(Call& call, const HostRequest& request) {
    try {
        const std::vector<EmberTensor> before(request.outputs.begin(), request.outputs.end());
        EMBER_CHECKED(call.host->host_call(call.host->data, request));
        return check_given(request, before);
    } catch (const std::exception& thrown) {
        return error(Code::kInternal, "host_call \"" + std::string(request.id) + "\": " + thrown.what());
    } catch (...) {
        return error(Code::kInternal, "host_call \"" + std::string(request.id) + "\" threw");
    }
}

int32_t host_call(EmberContext* context, int32_t number, const EmberTensor* inputs, int32_t input_count,
                  EmberTensor* outputs, int32_t output_count) {
    auto& call = *static_cast<Call*>(context->host);
    HostRequest request{number,
                        (*call.host_ids)[static_cast<size_t>(number)],
                        {inputs, static_cast<size_t>(input_count)},
                        {outputs, static_cast<size_t>(output_count)},
                        context};
    Status status = run_host_call(call, request);
    if (!status.ok()) {
        call.failure = status.error();
    }
    return status.ok() ? 0 : 1;
}

}  // namespace

Status Executable::call(const EmberTensor* const* inputs, EmberTensor* const* outputs, const Host& host) const {
    if (!host_ids_.empty() && host.host_call == nullptr) {
        return error(Code::kInvalidArgument, "the graph calls the host's \"" + host_ids_.front() +
                                                 "\", and the caller has no functions of the host");
    }
    // One arena a thread; calls within calls (a host function that calls again) stack on it.
    thread_local runtime::Arena arena;
    Call call;
    call.host = &host;
    call.host_ids = &host_ids_;
    call.context.runtime = runtime::artifact_runtime();
    call.context.arena = &arena;
    call.context.kept = &call.kept;
    call.context.host = &call;
    call.context.allocate_output = [](EmberContext* context, int32_t output, int64_t bytes) {
        const Host& own = *static_cast<Call*>(context->host)->host;
        return own.allocate(own.data, output, bytes);
    };
    call.context.host_call = host_call;
    int32_t status = entry_(&call.context, inputs, outputs);
    if (status == 0) {
        return {};
    }
    if (status == runtime::kArtifactOutOfMemory) {
        return error(Code::kOutOfMemory, "no memory for a tensor of this call");
    }
    if (status == runtime::kArtifactHostFailed) {
        return std::move(call.failure);
    }
    return failed_check(messages_.at(static_cast<size_t>(status) - 1), call.context.error_a, call.context.error_b);
}

}  // namespace ember::driver
