// The table of the host's functions: see host_functions.h. Lengths of results follow from values, as only such calls
// show.
#include "cli/ember_opt/host_functions.h"

#include <algorithm>

namespace ember::opt {
namespace {

using interp::Tensor;

/// The elements at these indices of the first axis.
Tensor rows(const Tensor& x, const std::vector<int64_t>& indices) {
    Tensor result{x.dtype, x.shape, {}};
    result.shape[0] = static_cast<int64_t>(indices.size());
    size_t bytes = x.shape[0] == 0 ? 0 : x.bytes.size() / static_cast<size_t>(x.shape[0]);
    for (int64_t index : indices) {
        auto begin = x.bytes.begin() + index * static_cast<int64_t>(bytes);
        result.bytes.insert(result.bytes.end(), begin, begin + static_cast<int64_t>(bytes));
    }
    return result;
}

Result<Tensors> copy(const Tensors& operands) {
    return operands;
}

/// The indices of the elements of a vector that are not 0.
Result<Tensors> nonzero(const Tensors& operands) {
    std::vector<int64_t> found;
    for (int64_t i = 0; i < operands[0].elements(); ++i) {
        if (operands[0].at_double(i) != 0) {
            found.push_back(i);
        }
    }
    auto count = static_cast<int64_t>(found.size());
    return Tensors{interp::from_values(ir::DType::kI64, {count}, found)};
}

/// (x, k): the first k rows, and how many others there are.
Result<Tensors> head(const Tensors& operands) {
    int64_t length = operands[0].shape[0];
    int64_t count = std::clamp<int64_t>(operands[1].at_int(0), 0, length);
    std::vector<int64_t> indices;
    for (int64_t i = 0; i < count; ++i) {
        indices.push_back(i);
    }
    return Tensors{rows(operands[0], indices), interp::scalar(ir::DType::kI64, length - count)};
}

Result<Tensors> total(const Tensors& operands) {
    double sum = 0;
    for (int64_t i = 0; i < operands[0].elements(); ++i) {
        sum += operands[0].at_double(i);
    }
    return Tensors{interp::scalar(operands[0].dtype, sum)};
}

Result<Tensors> nothing(const Tensors& /*operands*/) {
    return Tensors{};
}

Result<Tensors> fail(const Tensors& operands) {
    return error(Code::kInvalidArgument, "test.fail was called with " + std::to_string(operands.size()) + " operands");
}

struct Row {
    std::string_view id;
    Result<Tensors> (*function)(const Tensors& operands);
};
constexpr Row kFunctions[] = {
    {"test.copy", copy},   {"test.nonzero", nonzero}, {"test.head", head},
    {"test.total", total}, {"test.nothing", nothing}, {"test.fail", fail},
};

}  // namespace

Result<Tensors> call_host_function(std::string_view id, const Tensors& operands) {
    for (const Row& row : kFunctions) {
        if (row.id == id) {
            return row.function(operands);
        }
    }
    return error(Code::kUnsupported, "no function \"" + std::string(id) + "\" of the host");
}

}  // namespace ember::opt
