// One function an engine.
#include "cli/ember_opt/engines.h"

#include <cstring>
#include <deque>

#include "cli/ember_opt/host_functions.h"
#include "ember/driver/driver.h"

namespace ember::opt {
namespace {

constexpr int64_t kMaxTensorBytes = int64_t{1} << 30;

/// A host tensor as an artifact takes it.
struct View {
    EmberTensor tensor{};
    std::vector<int64_t> shape;

    View(ir::DType dtype, std::vector<int64_t> lengths, void* data) : shape(std::move(lengths)) {
        tensor = driver::make_tensor(dtype, shape, data);
    }
    View(const View&) = delete;
};

struct Outputs {
    std::deque<View> views;
    std::deque<std::string> bytes;
};

Result<interp::Tensor> from_artifact(const EmberTensor& tensor) {
    std::optional<ir::DType> dtype = ir::dtype_of_dlpack(tensor.dtype_code, tensor.dtype_bits);
    if (!dtype.has_value()) {
        return error(Code::kUnsupported, "no dtype for an operand of host_call");
    }
    interp::Tensor result{*dtype, {tensor.shape, tensor.shape + tensor.ndim}, {}};
    EMBER_TRY(int64_t bytes, interp::tensor_bytes(*dtype, result.shape));
    const char* data = static_cast<const char*>(tensor.data);
    result.bytes.assign(data, data + bytes);
    return result;
}

/// The functions of the host, for compiled code.
Status call_host(void* /*host*/, const driver::HostRequest& request) {
    Tensors operands;
    for (const EmberTensor& input : request.inputs) {
        EMBER_TRY(interp::Tensor operand, from_artifact(input));
        operands.push_back(std::move(operand));
    }
    EMBER_TRY(Tensors results, call_host_function(request.id, operands));
    if (results.size() != request.outputs.size()) {
        return error(Code::kType, "host_call: gave " + std::to_string(results.size()) + " results");
    }
    for (size_t k = 0; k < results.size(); ++k) {
        EmberTensor& output = request.outputs[k];
        auto [code, bits] = ir::dlpack_type(results[k].dtype);
        if (results[k].rank() != output.ndim || code != output.dtype_code || bits != output.dtype_bits) {
            return error(Code::kType, "host_call: a result of another type");
        }
        std::copy(results[k].shape.begin(), results[k].shape.end(), output.shape);
        if (results[k].bytes.empty()) {
            continue;
        }
        output.data = request.allocate(static_cast<int64_t>(results[k].bytes.size()));
        if (output.data == nullptr) {
            return error(Code::kOutOfMemory, "host_call: no memory for a result");
        }
        std::memcpy(output.data, results[k].bytes.data(), results[k].bytes.size());
    }
    return {};
}

}  // namespace

Result<Tensors> evaluate_reference(const ir::Module& module, Tensors inputs) {
    interp::EvaluateOptions options;
    options.max_tensor_bytes = kMaxTensorBytes;
    options.host_call = call_host_function;
    return interp::evaluate(module, std::move(inputs), options);
}

bool has_compiled_engine() {
    return true;
}

Result<Tensors> evaluate_compiled(const ir::Module& module, Tensors inputs) {
    EMBER_TRY(std::shared_ptr<const driver::Executable> made, driver::compile_or_load(module));
    if (inputs.size() != made->parameters().size()) {
        return error(Code::kInvalidArgument, "the function takes " + std::to_string(made->parameters().size()) +
                                                 " inputs, not " + std::to_string(inputs.size()));
    }
    std::deque<View> given;
    std::vector<const EmberTensor*> arguments;
    for (interp::Tensor& input : inputs) {
        given.emplace_back(input.dtype, input.shape, input.bytes.data());
        arguments.push_back(&given.back().tensor);
    }
    EMBER_CHECKED(made->check_inputs(arguments.data()));
    Outputs outputs;
    std::vector<EmberTensor*> results;
    for (const ir::TensorType& type : made->outputs()) {
        outputs.views.emplace_back(type.dtype, std::vector<int64_t>(type.shape.size()), nullptr);
        outputs.bytes.emplace_back();
        results.push_back(&outputs.views.back().tensor);
    }
    auto allocate = [](void* host, int32_t output, int64_t bytes) -> void* {
        auto& room = static_cast<Outputs*>(host)->bytes[static_cast<size_t>(output)];
        if (bytes < 0 || bytes > kMaxTensorBytes) {
            return nullptr;
        }
        room.resize(static_cast<size_t>(bytes) + 1);  // never empty
        return room.data();
    };
    EMBER_CHECKED(made->call(arguments.data(), results.data(), {&outputs, allocate, call_host}));
    Tensors tensors;
    for (size_t k = 0; k < results.size(); ++k) {
        int taken = made->in_place(k);
        if (taken >= 0) {
            tensors.push_back(inputs[static_cast<size_t>(taken)]);
            continue;
        }
        interp::Tensor tensor;
        tensor.dtype = made->outputs()[k].dtype;
        tensor.shape = outputs.views[k].shape;
        tensor.bytes.assign(outputs.bytes[k].begin(), outputs.bytes[k].end() - 1);
        tensors.push_back(std::move(tensor));
    }
    return tensors;
}

}  // namespace ember::opt
