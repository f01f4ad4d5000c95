// What is behind a Function: the module as it was written, the code, and what every parameter stands for.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ember/api/tape.h"
#include "ember/driver/driver.h"

namespace ember {

struct Function::Impl {
    /// A state's lock during a call: shared, or exclusive where an update writes it.
    struct Lock {
        api::State* state;
        bool writes;
    };

    ir::Module module;
    std::shared_ptr<const driver::Executable> code;
    std::vector<api::Leaf> params;  // one a parameter
    std::vector<size_t> inputs;     // the parameters that are inputs, in the order of the call
    std::vector<size_t> results;    // the outputs that a call gives back
    std::vector<Lock> locks;        // by address, so that calls cannot wait for each other in a ring

    std::vector<Tensor> call(const std::vector<Tensor>& given) const;
    std::vector<Tensor> arguments(const std::vector<Tensor>& given) const;
    void check_arguments(const std::vector<Tensor>& arguments) const;
    std::vector<Tensor> run(std::vector<Tensor>& arguments) const;
    void apply_updates(const std::vector<Tensor>& outputs) const;
    bool writes_in_place(size_t param) const;
    std::string describe(size_t param) const;
    uint32_t updated_by(size_t output) const { return module.entry().outputs[output].updates; }
};

namespace api {
/// Compiles or loads; `params` stands for the parameters of the module's entry.
Function make_function(ir::Module module, std::vector<Leaf> params, const FunctionOptions& options);
}  // namespace api

}  // namespace ember
