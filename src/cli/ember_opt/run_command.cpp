// `ember-opt run`: a module on arrays of .npy files.
#include <cstdio>

#include "cli/ember_opt/commands.h"
#include "cli/ember_opt/engines.h"
#include "cli/ember_opt/tensor_text.h"
#include "ember/support/file.h"
#include "ember/support/npy.h"
#include "ember/text/parse.h"

namespace ember::opt {
namespace {

struct NpyDType {
    char kind;
    ir::DType dtype;
};
constexpr NpyDType kDTypes[] = {{'b', ir::DType::kBool}, {'i', ir::DType::kI8},  {'i', ir::DType::kI16},
                                {'i', ir::DType::kI32},  {'i', ir::DType::kI64}, {'u', ir::DType::kU8},
                                {'u', ir::DType::kU16},  {'u', ir::DType::kU32}, {'u', ir::DType::kU64},
                                {'f', ir::DType::kF16},  {'f', ir::DType::kF32}, {'f', ir::DType::kF64},
                                {'c', ir::DType::kC64},  {'c', ir::DType::kC128}};

Result<interp::Tensor> to_tensor(const NpyArray& array, const std::string& path) {
    for (NpyDType row : kDTypes) {
        if (row.kind == array.kind && ir::element_bytes(row.dtype) == array.item_bytes) {
            return interp::Tensor{row.dtype, array.shape, {array.bytes.begin(), array.bytes.end()}};
        }
    }
    return error(Code::kUnsupported, "no dtype for this array", path);
}

Result<NpyArray> to_array(const interp::Tensor& tensor) {
    for (NpyDType row : kDTypes) {
        if (row.dtype == tensor.dtype) {
            return NpyArray{row.kind,
                            static_cast<int>(ir::element_bytes(row.dtype)),
                            tensor.shape,
                            {tensor.bytes.begin(), tensor.bytes.end()}};
        }
    }
    return error(Code::kUnsupported, "NumPy has no dtype " + std::string(ir::dtype_name(tensor.dtype)));
}

Result<Tensors> read_inputs(const std::vector<std::string>& paths, const ir::Graph& entry) {
    if (paths.size() != entry.params.size()) {
        return error(Code::kInvalidArgument, "@" + entry.name + " has " + std::to_string(entry.params.size()) +
                                                 " parameters, " + std::to_string(paths.size()) + " inputs are given");
    }
    Tensors inputs;
    for (const std::string& path : paths) {
        EMBER_TRY(NpyArray array, read_npy(path));
        EMBER_TRY(interp::Tensor tensor, to_tensor(array, path));
        inputs.push_back(std::move(tensor));
    }
    return inputs;
}

Status write_outputs(const std::string& prefix, const Tensors& outputs) {
    for (size_t k = 0; k < outputs.size(); ++k) {
        if (prefix.empty()) {
            std::printf("%s\n", print_tensor(outputs[k]).c_str());
            continue;
        }
        EMBER_TRY(NpyArray array, to_array(outputs[k]));
        EMBER_CHECKED(write_npy(prefix + std::to_string(k) + ".npy", array));
    }
    return {};
}

}  // namespace

Status run(const RunOptions& options) {
    EMBER_TRY(std::string text, read_file(options.file, uint64_t{1} << 26));
    EMBER_TRY(ir::Module module, text::parse(text, options.file));
    EMBER_TRY(Tensors inputs, read_inputs(options.inputs, module.entry()));
    bool compiled = options.engine == "compiled";
    EMBER_TRY(Tensors outputs, compiled ? evaluate_compiled(module, inputs) : evaluate_reference(module, inputs));
    if (options.compare) {
        EMBER_TRY(Tensors others, compiled ? evaluate_reference(module, inputs) : evaluate_compiled(module, inputs));
        if (auto difference = find_difference(compiled ? others : outputs, compiled ? outputs : others)) {
            return error(Code::kAssert, "compiled code differs from the interpreter: " + *difference);
        }
    }
    return write_outputs(options.outputs, outputs);
}

}  // namespace ember::opt
