// The services of call.h: messages, limits, broadcasting.
#include "ember/interp/call.h"

#include <algorithm>

#include "ember/interp/layout.h"

namespace ember::interp {

Diagnostic Call::fail(Code code, const std::string& what) const {
    std::string text = std::string(ir::op_name(node.op)) + ": " + what + "; operands:";
    for (const Tensor* tensor : operands) {
        text += " " + std::string(ir::dtype_name(tensor->dtype)) + lengths_to_string(tensor->shape);
    }
    return error(code, text);
}

Diagnostic Call::unsupported() const {
    return fail(Code::kUnsupported, "not supported by the reference evaluator for these dtypes");
}

Status Call::admit(ir::DType dtype, const Lengths& shape) const {
    Result<int64_t> bytes = tensor_bytes(dtype, shape);
    if (!bytes.ok()) {
        return fail(bytes.error().code, bytes.error().message);
    }
    if (*bytes > options.max_tensor_bytes) {
        return fail(Code::kOutOfMemory, "a result of shape " + lengths_to_string(shape) + " takes " +
                                            std::to_string(*bytes) + " bytes, more than the limit of " +
                                            std::to_string(options.max_tensor_bytes));
    }
    return {};
}

Result<Lengths> Call::lengths_from(size_t first) const {
    Lengths lengths;
    for (size_t k = first; k < operands.size(); ++k) {
        lengths.push_back(number(k));
        if (lengths.back() < 0) {
            return fail(Code::kShape, "negative length " + std::to_string(lengths.back()));
        }
    }
    return lengths;
}

Result<Broadcast> broadcast_operands(const Call& call, const std::vector<size_t>& which) {
    size_t rank = 0;
    for (size_t k : which) {
        rank = std::max(rank, call.operand(k).shape.size());
    }
    Broadcast result{Lengths(rank, 1), {}};
    std::vector<bool> known(rank, false);
    auto stretches = [&](size_t k, size_t axis) { return call.type(k).shape[axis] == ir::Dim(1); };
    for (size_t k : which) {
        const Lengths& shape = call.operand(k).shape;
        for (size_t i = 0; i < shape.size(); ++i) {
            size_t axis = rank - shape.size() + i;
            if (stretches(k, i)) {
                continue;
            }
            if (known[axis] && result.lengths[axis] != shape[i]) {
                return call.fail(Code::kShape, "axis " + std::to_string(axis) + " has lengths " +
                                                   std::to_string(result.lengths[axis]) + " and " +
                                                   std::to_string(shape[i]));
            }
            known[axis] = true;
            result.lengths[axis] = shape[i];
        }
    }
    EMBER_CHECKED(call.admit(ir::DType::kU8, result.lengths));
    for (size_t k : which) {
        const Lengths& shape = call.operand(k).shape;
        Lengths strides = row_major_strides(shape);
        for (size_t i = 0; i < shape.size(); ++i) {
            strides[i] = stretches(k, i) ? 0 : strides[i];
        }
        strides.insert(strides.begin(), rank - shape.size(), 0);
        result.sources.push_back(offsets(result.lengths, strides));
    }
    return result;
}

}  // namespace ember::interp
