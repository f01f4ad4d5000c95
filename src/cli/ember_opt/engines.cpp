// One function an engine.
#include "cli/ember_opt/engines.h"

#include <deque>

#include "ember/driver/driver.h"

namespace ember::opt {
namespace {

constexpr int64_t kMaxTensorBytes = int64_t{1} << 30;

/// A host tensor as an artifact takes it.
struct View {
    EmberTensor tensor{};
    std::vector<int64_t> shape;

    View(ir::DType dtype, std::vector<int64_t> lengths, void* data) : shape(std::move(lengths)) {
        auto [code, bits] = driver::dlpack_type(dtype);
        tensor.data = data;
        tensor.device_type = 1;
        tensor.ndim = static_cast<int32_t>(shape.size());
        tensor.dtype_code = code;
        tensor.dtype_bits = bits;
        tensor.dtype_lanes = 1;
        tensor.shape = shape.data();
    }
    View(const View&) = delete;
};

struct Outputs {
    std::deque<View> views;
    std::deque<std::string> bytes;
};

}  // namespace

Result<Tensors> evaluate_reference(const ir::Module& module, Tensors inputs) {
    interp::EvaluateOptions options;
    options.max_tensor_bytes = kMaxTensorBytes;
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
    EMBER_CHECKED(made->call(arguments.data(), results.data(), allocate, &outputs));
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
