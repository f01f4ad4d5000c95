// The driver: from a module to something that can be called. A hit reads an entry, checks and loads it; a miss loads
// libember-compiler, compiles, stores, and goes on with the stored bytes through the same loader.
// Invariants: on a hit no LLVM is loaded and nothing is rewritten (compiler_loaded() proves it); the key is made from
// the module's canonical text, the target, the options and the build ids only. Tests: test/unit/driver_test.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ember/artifact/load.h"
#include "ember/cache/cache.h"
#include "ember/ir/graph.h"
#include "ember/support/target.h"
#include "runtime/artifact_abi.h"

namespace ember::driver {

struct Options {
    /// "" asks EMBER_CPU, else the host.
    std::string cpu;
    /// Names of rewriting passes that are left out; part of the key.
    std::vector<std::string> disabled_passes;
    /// nullptr: the process-wide cache, opened at the first use.
    std::shared_ptr<Cache> cache;
};

/// How an executable came about.
struct Origin {
    Outcome status = Outcome::kMiss;
    Reason reason = Reason::kNone;
    Key key;
    double compile_seconds = 0;  // 0 on a hit
    double load_seconds = 0;     // from the module to something callable, without compiling
    int kernels = 0;
    int llvm_modules = 0;  // made in this process: 0 on a hit
    int64_t artifact_bytes = 0;
};

/// One host_call while it runs.
struct HostRequest {
    int32_t number;  // of Executable::host_ids()
    std::string_view id;
    /// Contiguous, row-major, on the CPU; to be read only, and only until the function returns. An empty one may have
    /// no data.
    std::span<const EmberTensor> inputs;
    /// dtype and ndim are set. The function sets the lengths (`shape` points to room) and `data`: contiguous memory
    /// that lives until the call ends and is nobody else's, as allocate() gives it. An empty one needs none.
    std::span<EmberTensor> outputs;
    EmberContext* context;

    /// 64-byte aligned; null when memory is out.
    void* allocate(int64_t bytes) const { return context->runtime->keep(context, bytes); }
};

/// A tensor as an artifact takes it: on the CPU, row-major. It looks into `shape` and `data`.
EmberTensor make_tensor(ir::DType dtype, std::span<int64_t> shape, void* data);

/// One loaded artifact. Immutable and re-entrant: any number of threads may call at once.
class Executable {
public:
    /// Gives the memory for an output: number, bytes; null ends the call with kOutOfMemory. The shape has been written.
    using Allocate = void* (*)(void* host, int32_t output, int64_t bytes);

    /// Runs the host's functions. A Diagnostic ends the call and is what the call gives. An exception becomes one.
    using HostCall = Status (*)(void* host, const HostRequest& request);
    /// What a call asks of its caller; `data` is handed to both.
    struct Host {
        void* data = nullptr;
        Allocate allocate = nullptr;
        HostCall host_call = nullptr;  // needed where there are host_ids()
    };

    /// inputs: one for every parameter, contiguous, checked by check_inputs(). outputs: `shape` points to room for the
    /// output's rank. Outputs that are written in place of a parameter are neither
    /// allocated nor touched: they are that parameter's tensor.
    Status call(const EmberTensor* const* inputs, EmberTensor* const* outputs, const Host& host) const;
    Status call(const EmberTensor* const* inputs, EmberTensor* const* outputs, Allocate allocate, void* host) const {
        return call(inputs, outputs, {host, allocate, nullptr});
    }

    /// Do these tensors fit the parameters' types: dtype, rank, lengths, equal symbols? Names the parameter if not.
    Status check_inputs(const EmberTensor* const* inputs) const;

    const std::vector<ir::TensorType>& parameters() const { return parameters_; }
    const std::vector<ir::TensorType>& outputs() const { return outputs_; }
    /// The functions of the host that a call may ask for.
    const std::vector<std::string>& host_ids() const { return host_ids_; }
    /// The parameter whose memory output k takes over, or -1.
    int in_place(size_t k) const { return in_place_[k]; }
    const Origin& origin() const { return origin_; }

private:
    friend class Loader;
    using EntryPoint = int32_t(EmberContext*, const EmberTensor* const*, EmberTensor* const*);

    std::shared_ptr<LoadedObject> object_;
    EntryPoint* entry_ = nullptr;
    std::vector<ir::TensorType> parameters_;
    std::vector<ir::TensorType> outputs_;
    std::vector<int> in_place_;
    std::vector<std::string> messages_;
    std::vector<std::string> host_ids_;
    std::vector<std::string> parameter_names_;
    Origin origin_;
};

Result<std::shared_ptr<const Executable>> compile_or_load(const ir::Module& module, const Options& options = {});

/// As compile_or_load(), but what this process holds already under the same key is given again: copies of a function
/// share their code.
Result<std::shared_ptr<const Executable>> compile_or_share(const ir::Module& module, const Options& options = {});

/// The key document of a module: what compile_or_load() looks up.
Result<KeyDocument> key_document(const ir::Module& module, const Options& options = {});

/// The process-wide cache, opened with the environment at the first use.
std::shared_ptr<Cache> default_cache();

/// Has this process loaded libember-compiler?
bool compiler_loaded();

using ir::dlpack_type;

/// What libember-compiler offers. `compiler()` loads it: next to libember, or where the loader finds it.
struct Compiled {
    std::string object;
    std::string metadata;
    int kernels = 0;
    int llvm_modules = 0;
};
enum class Emit { kObject, kText, kRewritten, kLoops, kLlvm, kAssembly };
struct Compiler {
    Result<Compiled> (*compile)(const ir::Module& module, const Target& target, const Options& options);
    /// One of the stages as text.
    Result<std::string> (*emit)(const ir::Module& module, const Target& target, const Options& options, Emit stage);
};
Result<const Compiler*> compiler();
Result<Target> target_of(const Options& options);

}  // namespace ember::driver
