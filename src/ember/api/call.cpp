// One call of a function: arguments, checks, locks, outputs, updates. See function.h.
#include <algorithm>
#include <new>

#include "ember/api/function.h"

namespace ember {
namespace {

/// A tensor as compiled code takes it.
EmberTensor view_of(const Tensor& tensor) {
    auto* lengths = const_cast<int64_t*>(tensor.shape().data());  // only read
    return driver::make_tensor(api::to_ir(tensor.dtype()), {lengths, tensor.shape().size()}, tensor.data());
}

/// The outputs of a running call.
struct Outputs {
    std::vector<std::vector<int64_t>> shapes;
    std::vector<std::shared_ptr<void>> memory;
    std::vector<EmberTensor> views;

    explicit Outputs(const std::vector<ir::TensorType>& types) : memory(types.size()) {
        for (const ir::TensorType& type : types) {
            shapes.emplace_back(type.shape.size());
        }
        for (std::vector<int64_t>& shape : shapes) {
            EmberTensor view{};
            view.ndim = static_cast<int32_t>(shape.size());
            view.shape = shape.data();
            views.push_back(view);
        }
    }

    /// Called by compiled code: must not throw.
    static void* allocate(void* host, int32_t output, int64_t bytes) {
        try {
            std::shared_ptr<void>& room = static_cast<Outputs*>(host)->memory.at(static_cast<size_t>(output));
            Tensor tensor = Tensor::empty(DType::kU8, {bytes});
            room = std::shared_ptr<void>(std::make_shared<Tensor>(tensor), tensor.data());
            return room.get();
        } catch (...) {
            return nullptr;
        }
    }
};

bool overlap(const Tensor& a, const Tensor& b) {
    auto* from_a = static_cast<char*>(a.data());
    auto* from_b = static_cast<char*>(b.data());
    return from_a < from_b + b.bytes() && from_b < from_a + a.bytes();
}

class Locked {
public:
    explicit Locked(const std::vector<Function::Impl::Lock>& locks) : locks_(locks) {
        for (const auto& lock : locks_) {
            lock.writes ? lock.state->mutex.lock() : lock.state->mutex.lock_shared();
        }
    }
    ~Locked() {
        for (const auto& lock : locks_) {
            lock.writes ? lock.state->mutex.unlock() : lock.state->mutex.unlock_shared();
        }
    }
    Locked(const Locked&) = delete;
    Locked& operator=(const Locked&) = delete;

private:
    const std::vector<Function::Impl::Lock>& locks_;
};

}  // namespace

std::string Function::Impl::describe(size_t param) const {
    const ir::Graph& entry = module.entry();
    const api::Leaf& leaf = params[param];
    std::string text;
    if (leaf.kind == ir::ParamKind::kInput) {
        auto at = std::find(inputs.begin(), inputs.end(), param);
        text = "input " + std::to_string(at - inputs.begin());
    } else {
        text = leaf.kind == ir::ParamKind::kShared ? "shared" : "bound";
    }
    return text + (leaf.name.empty() ? "" : " '" + leaf.name + "'") + ", a " +
           entry.type(entry.params[param].value).to_string();
}

bool Function::Impl::writes_in_place(size_t param) const {
    for (size_t k = 0; k < code->outputs().size(); ++k) {
        if (code->in_place(k) == static_cast<int>(param)) {
            return true;
        }
    }
    return false;
}

std::vector<Tensor> Function::Impl::arguments(const std::vector<Tensor>& given) const {
    if (given.size() != inputs.size()) {
        api::raise(ErrorCode::kInvalidArgument, "the function takes " + std::to_string(inputs.size()) +
                                                    " inputs, not " + std::to_string(given.size()));
    }
    std::vector<Tensor> all;
    all.reserve(params.size());
    size_t next = 0;
    for (const api::Leaf& leaf : params) {
        if (leaf.kind == ir::ParamKind::kInput) {
            all.push_back(given[next++]);
        } else {
            all.push_back(leaf.kind == ir::ParamKind::kShared ? leaf.state->value : leaf.data);
        }
    }
    return all;
}

void Function::Impl::check_arguments(const std::vector<Tensor>& arguments) const {
    std::vector<std::pair<ir::Dim, int64_t>> symbols;
    for (size_t k = 0; k < arguments.size(); ++k) {
        const Tensor& tensor = arguments[k];
        const ir::TensorType& type = code->parameters()[k];
        if (api::to_ir(tensor.dtype()) != type.dtype) {
            api::raise(ErrorCode::kType, describe(k) + ": the tensor is " + tensor.type_string());
        }
        if (tensor.rank() != type.rank()) {
            api::raise(ErrorCode::kShape, describe(k) + ": the tensor is " + tensor.type_string());
        }
        for (size_t axis = 0; axis < type.shape.size(); ++axis) {
            int64_t length = tensor.shape()[axis];
            ir::Dim wanted = type.shape[axis];
            auto known = std::find_if(symbols.begin(), symbols.end(), [&](auto& pair) { return pair.first == wanted; });
            if (wanted.is_symbol() && known == symbols.end()) {
                symbols.emplace_back(wanted, length);
                continue;
            }
            int64_t expected = wanted.is_static() ? wanted.size() : known->second;
            if (length != expected) {
                api::raise(ErrorCode::kShape, describe(k) + ": axis " + std::to_string(axis) + " must have length " +
                                                  std::to_string(expected) + ", the tensor is " + tensor.type_string());
            }
        }
    }
}

std::vector<Tensor> Function::Impl::run(std::vector<Tensor>& arguments) const {
    // State that is written in its own memory must not be an input's memory as well.
    for (size_t k = 0; k < arguments.size(); ++k) {
        for (size_t other = 0; other < arguments.size() && params[k].kind != ir::ParamKind::kShared; ++other) {
            if (writes_in_place(other) && overlap(arguments[k], arguments[other])) {
                arguments[k] = arguments[k].copy();
            }
        }
    }
    std::vector<EmberTensor> views;
    std::vector<const EmberTensor*> given;
    views.reserve(arguments.size());
    for (const Tensor& argument : arguments) {
        views.push_back(view_of(argument));
        given.push_back(&views.back());
    }
    Outputs outputs(code->outputs());
    std::vector<EmberTensor*> wanted;
    for (EmberTensor& view : outputs.views) {
        wanted.push_back(&view);
    }
    api::unwrap(code->call(given.data(), wanted.data(), Outputs::allocate, &outputs));
    std::vector<Tensor> made;
    for (size_t k = 0; k < wanted.size(); ++k) {
        int taken = code->in_place(k);
        made.push_back(taken >= 0
                           ? arguments[static_cast<size_t>(taken)]
                           : Tensor::borrow(outputs.memory[k].get(), static_cast<DType>(code->outputs()[k].dtype),
                                            outputs.shapes[k], outputs.memory[k]));
    }
    return made;
}

void Function::Impl::apply_updates(const std::vector<Tensor>& outputs) const {
    for (size_t k = 0; k < outputs.size(); ++k) {
        if (updated_by(k) == ir::kNone || code->in_place(k) >= 0) {
            continue;
        }
        const ir::TensorType& type = params[updated_by(k)].state->type;
        for (size_t axis = 0; axis < type.shape.size(); ++axis) {
            if (type.shape[axis].is_static() && type.shape[axis].size() != outputs[k].shape()[axis]) {
                api::raise(ErrorCode::kShape,
                           "the update of " + describe(updated_by(k)) + ", gives " + outputs[k].type_string());
            }
        }
    }
    for (size_t k = 0; k < outputs.size(); ++k) {
        if (updated_by(k) != ir::kNone && code->in_place(k) != static_cast<int>(updated_by(k))) {
            params[updated_by(k)].state->value = outputs[k];
        }
    }
}

std::vector<Tensor> Function::Impl::call(const std::vector<Tensor>& given) const {
    Locked locked(locks);
    std::vector<Tensor> all = arguments(given);
    check_arguments(all);
    std::vector<Tensor> outputs = run(all);
    apply_updates(outputs);
    std::vector<Tensor> wanted;
    for (size_t k : results) {
        wanted.push_back(code->in_place(k) >= 0 ? outputs[k].copy() : outputs[k]);
    }
    return wanted;
}

}  // namespace ember
