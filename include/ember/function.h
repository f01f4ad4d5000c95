// Functions: graphs that are compiled, or found compiled, and called. Part of ember.h, which says how it is used.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ember/variable.h"

namespace ember {

struct FunctionOptions {
    /// What to compile for: "" asks the environment (EMBER_CPU), else the host.
    std::string cpu;
    /// Rewriting passes to leave out; part of the key.
    std::vector<std::string> disabled_passes;
    /// Where compiled code is kept: "" asks the environment (EMBER_CACHE_DIR), else the user's cache folder.
    std::string cache_folder;
};

/// The value that a shared variable takes after every call.
struct Update {
    SharedVariable variable;
    Variable value;
};

/// How a function came about.
struct Origin {
    std::string cache_status;  // "hit", "miss", "bypass" or "error"
    std::string reason;        // why it is no hit; "none" on a hit
    std::string key;           // 64 hexadecimal digits; the same for graphs that differ in values or names only
    double compile_seconds = 0;
    double load_seconds = 0;
    int kernels = 0;
    int64_t artifact_bytes = 0;
};

/// Compiled code with the state it reads and writes. Cheap to copy. Any number of threads may call at once; calls that
/// update a shared variable wait for those that use it.
class Function {
public:
    /// One tensor for every input, in their order; gives the outputs, each in memory of its own. Updates are applied
    /// after all values are computed, in the state's own memory where the code can. Throws Error: kInvalidArgument for
    /// the number of tensors, kType and kShape naming the input, kIndex and kShape for what only the call can find,
    /// kAssert for assert_that(), kOutOfMemory. A call that throws leaves state that is replaced as it was; state that
    /// is written in its own memory may be half written.
    std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const;
    template <class... More>
        requires(std::is_convertible_v<More, Tensor> && ...)
    std::vector<Tensor> operator()(const Tensor& first, const More&... more) const {
        return (*this)(std::vector<Tensor>{first, more...});
    }
    std::vector<Tensor> operator()() const { return (*this)(std::vector<Tensor>{}); }

    /// "hit": no compiler ran. "miss": compiled and stored. "bypass", "error": compiled, the cache is off or broken.
    std::string cache_status() const { return origin().cache_status; }
    std::string key() const { return origin().key; }
    Origin origin() const;

    std::vector<Type> inputs() const;
    std::vector<Type> outputs() const;
    /// The graph as text; load_function() reads it.
    std::string text() const;
    /// The values of its shared and bound parameters, in their order: what load_function() takes. Shared ones are
    /// copied.
    std::vector<Tensor> state() const;
    /// Writes text(). Values of shared and bound variables are not in it. Throws Error(kIo).
    void save(const std::string& path) const;

    struct Impl;

private:
    friend struct api::Access;
    explicit Function(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

    std::shared_ptr<const Impl> impl_;
};

/// Compiles, or loads what was compiled before by any process. Throws Error(kInvalidArgument) where an input is not
/// one, comes twice, or is used and missing; where a variable is updated twice; Error(kType, kShape) where an update
/// does not have the type of its variable.
Function function(const std::vector<Variable>& inputs, const std::vector<Variable>& outputs,
                  const std::vector<Update>& updates = {}, const FunctionOptions& options = {});
Function function(const std::vector<Variable>& inputs, const Variable& output, const std::vector<Update>& updates = {},
                  const FunctionOptions& options = {});

/// A function from a saved graph. `state`: the values of its shared and bound parameters, in their order; it begins
/// with copies of the shared ones. Throws Error(kIo), Error(kParse) with file and line, Error(kInvalidArgument) where
/// the number of values is another, Error(kType, kShape) where one does not fit.
Function load_function(const std::string& path, const std::vector<Tensor>& state = {},
                       const FunctionOptions& options = {});

/// The gradients of a float scalar with respect to float variables, each of its variable's type; zeros where the cost
/// does not depend on it. Throws Error(kShape, kType) where the cost is no float scalar, Error(kUnsupported) naming an
/// op on the way that has no derivative.
std::vector<Variable> grad(const Variable& cost, const std::vector<Variable>& wrt);
Variable grad(const Variable& cost, const Variable& wrt);

/// Vector-Jacobian product: what `cotangents` of `of`, of equal types, become at `wrt`. Errors as grad().
std::vector<Variable> pull_back(const std::vector<Variable>& of, const std::vector<Variable>& cotangents,
                                const std::vector<Variable>& wrt);
/// Jacobian-vector product: what `tangents` of `wrt`, of equal types, become at `of`. Errors as grad().
std::vector<Variable> push_forward(const std::vector<Variable>& of, const std::vector<Variable>& wrt,
                                   const std::vector<Variable>& tangents);

}  // namespace ember
