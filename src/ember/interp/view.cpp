// Ops that move elements: views, pad, concat, split, update_slice; and the sources and casts. They work on whole blocks
// of quantised tensors as long as these stay whole.
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

/// May the op cut or move elements along the axis? Not where it runs through quantised blocks.
Status need_whole_blocks(const Call& call, size_t axis) {
    const Tensor& x = call.operand(0);
    bool cuts = ir::is_quantized(x.dtype) && axis + 1 == x.shape.size();
    return cuts ? Status(call.unsupported()) : Status();
}

Result<Results> transpose(const Call& call) {
    const Tensor& x = call.operand(0);
    const std::vector<int64_t>& perm = call.node.integers("perm");
    if (ir::is_quantized(x.dtype) && perm.back() + 1 != x.rank()) {
        return call.unsupported();
    }
    Units units = units_of(x);
    std::vector<int64_t> from = offsets(at_axes(units.lengths, perm), at_axes(row_major_strides(units.lengths), perm));
    return Results{pick(x, at_axes(x.shape, perm), from)};
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
    Units units = units_of(x);
    Lengths strides = row_major_strides(units.lengths);
    Lengths places = shape;
    for (size_t i = 0; i < x.shape.size(); ++i) {
        int64_t& to = places[extra + i];
        if (call.type(0).shape[i] == ir::Dim(1)) {
            strides[i] = 0;
        } else if (to != x.shape[i]) {
            return call.fail(Code::kShape,
                             "cannot broadcast " + lengths_to_string(x.shape) + " to " + lengths_to_string(shape));
        } else {
            to = units.lengths[i];
        }
    }
    strides.insert(strides.begin(), extra, 0);
    return Results{pick(x, shape, offsets(places, strides))};
}

/// Elements of one axis that a new axis is made of.
Tensor take_positions(const Tensor& x, size_t axis, const std::vector<int64_t>& positions) {
    Units units = units_of(x);
    Lengths strides = row_major_strides(units.lengths);
    Lengths shape = x.shape;
    shape[axis] = static_cast<int64_t>(positions.size());
    units.lengths[axis] = shape[axis];
    std::vector<int64_t> from = offsets(units.lengths, strides);
    // `from` counts the new axis 0, 1, ...; its inner run is strides[axis] units long.
    for (size_t i = 0; i < from.size(); ++i) {
        size_t k = i / static_cast<size_t>(strides[axis]) % positions.size();
        from[i] += (positions[k] - static_cast<int64_t>(k)) * strides[axis];
    }
    return pick(x, shape, from);
}

std::vector<int64_t> arithmetic(int64_t start, int64_t size, int64_t step) {
    std::vector<int64_t> result;
    result.reserve(static_cast<size_t>(size));
    for (int64_t k = 0; k < size; ++k) {
        result.push_back(start + k * step);
    }
    return result;
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
    EMBER_CHECKED(need_whole_blocks(call, axis));
    int64_t start = call.number(1);
    int64_t step = call.node.integer_or("step", 1);
    EMBER_TRY(Lengths size, call.lengths_from(2));
    if (!lies_inside(start, size[0], step, x.shape[axis])) {
        return call.fail(Code::kIndex, std::to_string(size[0]) + " elements from " + std::to_string(start) +
                                           " with step " + std::to_string(step) + " do not lie in axis " +
                                           std::to_string(axis) + " of length " + std::to_string(x.shape[axis]));
    }
    return Results{take_positions(x, axis, arithmetic(start, size[0], step))};
}

Result<Results> reverse(const Call& call) {
    Tensor result = call.operand(0);
    for (int64_t axis : call.node.integers("axes")) {
        EMBER_CHECKED(need_whole_blocks(call, static_cast<size_t>(axis)));
        int64_t length = result.shape[static_cast<size_t>(axis)];
        result = take_positions(result, static_cast<size_t>(axis), arithmetic(length - 1, length, -1));
    }
    return Results{std::move(result)};
}

/// Puts `part` over the units of `whole` from index `start` of each axis on.
void overlay(Tensor& whole, const Tensor& part, const Lengths& start) {
    Units units = units_of(whole);
    Lengths strides = row_major_strides(units.lengths);
    int64_t base = std::inner_product(start.begin(), start.end(), strides.begin(), int64_t{0});
    std::vector<int64_t> to = offsets(units_of(part).lengths, strides);
    auto size = static_cast<size_t>(units.bytes);
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
    EMBER_CHECKED(need_whole_blocks(call, axis));
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
        EMBER_CHECKED(need_whole_blocks(call, axis));
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
    EMBER_CHECKED(need_whole_blocks(call, axis));
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
        results.push_back(take_positions(x, axis, arithmetic(position, size, 1)));
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
    if (ir::is_quantized(result.dtype)) {
        int64_t block = ir::info(result.dtype).block_elements;
        if (start.back() % block != 0) {
            return call.unsupported();
        }
        start.back() /= block;
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
    return Results{narrow(call.node.dtype(), shape, arithmetic(0, shape[0], 1))};
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
