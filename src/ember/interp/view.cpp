// Ops that move elements: views, pad, concat, split, update_slice; and the sources and casts.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "ember/interp/call.h"
#include "ember/interp/layout.h"
#include "ember/interp/number.h"

namespace ember::interp {
namespace {

using ir::Op;

size_t axis_of(const Call& call) {
    return static_cast<size_t>(call.node.integer("axis"));
}

Result<Results> transpose(const Call& call) {
    const Tensor& x = call.operand(0);
    const std::vector<int64_t>& perm = call.node.integers("perm");
    Lengths shape = at_axes(x.shape, perm);
    return Results{pick(x, shape, offsets(shape, at_axes(row_major_strides(x.shape), perm)))};
}

Result<Results> reshape(const Call& call) {
    Tensor result = call.operand(0);
    EMBER_TRY(result.shape, call.lengths_from(1));
    Result<int64_t> bytes = tensor_bytes(result.dtype, result.shape);
    if (!bytes.ok() || static_cast<size_t>(*bytes) != result.bytes.size()) {
        return call.fail(Code::kShape, "cannot reshape " + lengths_to_string(call.operand(0).shape) + " to " +
                                           lengths_to_string(result.shape));
    }
    return Results{std::move(result)};
}

Result<Results> broadcast(const Call& call) {
    const Tensor& x = call.operand(0);
    EMBER_TRY(Lengths shape, call.lengths_from(1));
    EMBER_CHECKED(call.admit(x.dtype, shape));
    size_t extra = shape.size() - x.shape.size();
    Lengths strides = row_major_strides(x.shape);
    for (size_t i = 0; i < x.shape.size(); ++i) {
        if (call.type(0).shape[i] == ir::Dim(1)) {
            strides[i] = 0;
        } else if (shape[extra + i] != x.shape[i]) {
            return call.fail(Code::kShape,
                             "cannot broadcast " + lengths_to_string(x.shape) + " to " + lengths_to_string(shape));
        }
    }
    strides.insert(strides.begin(), extra, 0);
    return Results{pick(x, shape, offsets(shape, strides))};
}

/// Elements start, start + step, ..., `size` of them, of one axis.
Tensor take(const Tensor& x, size_t axis, int64_t start, int64_t size, int64_t step) {
    Lengths shape = x.shape;
    Lengths strides = row_major_strides(x.shape);
    int64_t base = size == 0 ? 0 : start * strides[axis];
    shape[axis] = size;
    strides[axis] *= size > 1 ? step : 1;
    std::vector<int64_t> from = offsets(shape, strides);
    for (int64_t& offset : from) {
        offset += base;
    }
    return pick(x, shape, from);
}

/// Do start, start + step, ..., `size` of them, lie in 0..length-1? No product may overflow.
bool lies_inside(int64_t start, int64_t size, int64_t step, int64_t length) {
    if (size == 0) {
        return true;
    }
    if (start < 0 || start >= length) {
        return false;
    }
    uint64_t room = static_cast<uint64_t>(step > 0 ? length - 1 - start : start);
    uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : uint64_t{0} - static_cast<uint64_t>(step);
    return static_cast<uint64_t>(size - 1) <= room / stride;
}

Result<Results> slice(const Call& call) {
    const Tensor& x = call.operand(0);
    size_t axis = axis_of(call);
    int64_t start = call.number(1);
    int64_t step = call.node.integer_or("step", 1);
    EMBER_TRY(Lengths size, call.lengths_from(2));
    if (!lies_inside(start, size[0], step, x.shape[axis])) {
        return call.fail(Code::kIndex, std::to_string(size[0]) + " elements from " + std::to_string(start) +
                                           " with step " + std::to_string(step) + " do not lie in axis " +
                                           std::to_string(axis) + " of length " + std::to_string(x.shape[axis]));
    }
    return Results{take(x, axis, start, size[0], step)};
}

Result<Results> reverse(const Call& call) {
    Tensor result = call.operand(0);
    for (int64_t axis : call.node.integers("axes")) {
        int64_t length = result.shape[static_cast<size_t>(axis)];
        result = take(result, static_cast<size_t>(axis), length - 1, length, -1);
    }
    return Results{std::move(result)};
}

/// Puts `part` over the elements of `whole` from index `start` of each axis on.
void overlay(Tensor& whole, const Tensor& part, const Lengths& start) {
    Lengths strides = row_major_strides(whole.shape);
    int64_t base = std::inner_product(start.begin(), start.end(), strides.begin(), int64_t{0});
    std::vector<int64_t> to = offsets(part.shape, strides);
    auto size = static_cast<size_t>(ir::element_bytes(whole.dtype));
    for (size_t i = 0; i < to.size(); ++i) {
        std::memcpy(whole.bytes.data() + static_cast<size_t>(base + to[i]) * size, part.bytes.data() + i * size, size);
    }
}

Lengths start_on(const Tensor& x, size_t axis, int64_t position) {
    Lengths start(x.shape.size(), 0);
    start[axis] = position;
    return start;
}

}  // namespace

Result<Results> evaluate_view(const Call& call) {
    switch (call.node.op) {
        case Op::k_transpose:
            return transpose(call);
        case Op::k_reshape:
            return reshape(call);
        case Op::k_broadcast:
            return broadcast(call);
        case Op::k_slice:
            return slice(call);
        case Op::k_reverse:
            return reverse(call);
        default:
            return call.unsupported();
    }
}

/// More than any tensor has, so that sums of lengths do not overflow.
constexpr int64_t kMostPadding = int64_t{1} << 61;

Result<Results> evaluate_pad(const Call& call) {
    const Tensor& x = call.operand(0);
    size_t axis = axis_of(call);
    EMBER_TRY(Lengths added, call.lengths_from(2));
    Lengths shape = x.shape;
    for (int64_t length : added) {
        shape[axis] += std::min(length, kMostPadding);
        EMBER_CHECKED(call.admit(x.dtype, shape));
    }
    Tensor result = pick(call.operand(1), shape, std::vector<int64_t>(static_cast<size_t>(product(shape)), 0));
    overlay(result, x, start_on(x, axis, added[0]));
    return Results{std::move(result)};
}

Result<Results> evaluate_concat(const Call& call) {
    size_t axis = axis_of(call);
    Lengths shape = call.operand(0).shape;
    shape[axis] = 0;
    for (const Tensor* part : call.operands) {
        for (size_t i = 0; i < shape.size(); ++i) {
            if (i != axis && part->shape[i] != shape[i]) {
                return call.fail(Code::kShape, "axis " + std::to_string(i) + " has lengths " +
                                                   std::to_string(shape[i]) + " and " + std::to_string(part->shape[i]));
            }
        }
        shape[axis] += part->shape[axis];
        EMBER_CHECKED(call.admit(part->dtype, shape));
    }
    Tensor result = zeros(call.operand(0).dtype, shape);
    int64_t position = 0;
    for (const Tensor* part : call.operands) {
        overlay(result, *part, start_on(result, axis, position));
        position += part->shape[axis];
    }
    return Results{std::move(result)};
}

Result<Results> evaluate_split(const Call& call) {
    const Tensor& x = call.operand(0);
    size_t axis = axis_of(call);
    EMBER_TRY(Lengths sizes, call.lengths_from(1));
    int64_t rest = x.shape[axis];
    for (int64_t size : sizes) {
        rest = size <= rest ? rest - size : -1;
        if (rest < 0) {
            break;
        }
    }
    if (rest != 0) {
        return call.fail(Code::kShape, "the sizes " + lengths_to_string(sizes) + " do not add up to axis " +
                                           std::to_string(axis) + " of length " + std::to_string(x.shape[axis]));
    }
    Results results;
    int64_t position = 0;
    for (int64_t size : sizes) {
        results.push_back(take(x, axis, position, size, 1));
        position += size;
    }
    return results;
}

Result<Results> evaluate_update_slice(const Call& call) {
    Tensor result = call.operand(0);
    const Tensor& update = call.operand(1);
    if (update.bytes.empty()) {
        return Results{std::move(result)};
    }
    Lengths start;
    for (size_t i = 0; i < result.shape.size(); ++i) {
        start.push_back(call.number(i + 2));
        if (!lies_inside(start[i], update.shape[i], 1, result.shape[i])) {
            return call.fail(Code::kIndex, "an update of length " + std::to_string(update.shape[i]) + " at " +
                                               std::to_string(start[i]) + " does not lie in axis " + std::to_string(i) +
                                               " of length " + std::to_string(result.shape[i]));
        }
    }
    overlay(result, update, start);
    return Results{std::move(result)};
}

Result<Results> evaluate_source(const Call& call) {
    if (call.node.op == Op::k_const) {
        return Results{from_literal(call.node.literal())};
    }
    if (call.node.op == Op::k_dim) {
        return Results{scalar(ir::DType::kI64, call.operand(0).shape[axis_of(call)])};
    }
    EMBER_TRY(Lengths shape, call.lengths_from(0));
    EMBER_CHECKED(call.admit(ir::DType::kI64, shape));
    std::vector<int64_t> counted(static_cast<size_t>(shape[0]));
    std::iota(counted.begin(), counted.end(), 0);
    return Results{narrow(call.node.dtype(), shape, counted)};
}

Result<Results> evaluate_cast(const Call& call) {
    ir::DType to = call.node.dtype();
    EMBER_CHECKED(call.admit(to, call.operand(0).shape));
    bool quantized = ir::is_quantized(call.operand(0).dtype);
    Tensor x = quantized ? dequantize(call.operand(0)) : call.operand(0);
    if (x.dtype == to) {
        return Results{std::move(x)};
    }
    return with_wide(x.dtype, [&]<class W>(W) -> Result<Results> { return Results{narrow(to, x.shape, widen<W>(x))}; });
}

}  // namespace ember::interp
