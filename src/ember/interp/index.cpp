// gather, scatter and take_along.
#include <algorithm>
#include <limits>

#include "ember/interp/call.h"
#include "ember/interp/layout.h"
#include "ember/interp/number.h"

namespace ember::interp {
namespace {

/// Indices into one axis, checked and brought into 0..length-1 as `bounds` says.
class AxisIndex {
public:
    AxisIndex(const Call& call, int64_t axis)
        : call_(call),
          bounds_(call.node.string_or("bounds", "raise")),
          axis_(axis),
          length_(call.operand(0).shape[static_cast<size_t>(axis)]) {}

    Result<int64_t> resolve(const Tensor& indices, int64_t at) const {
        int64_t index = indices.at_int(at);
        bool beyond = indices.dtype == ir::DType::kU64 && index < 0;
        if (bounds_ == "wrap" && length_ > 0) {
            int64_t rest = beyond ? static_cast<int64_t>(static_cast<uint64_t>(index) % static_cast<uint64_t>(length_))
                                  : index % length_;
            return rest < 0 ? rest + length_ : rest;
        }
        index = beyond ? std::numeric_limits<int64_t>::max() : index;
        if (bounds_ == "clip" && length_ > 0) {
            return index < 0 ? 0 : std::min(index, length_ - 1);
        }
        int64_t from_start = index < 0 ? index + length_ : index;
        if (from_start < 0 || from_start >= length_) {
            std::string text =
                beyond ? std::to_string(static_cast<uint64_t>(indices.at_int(at))) : std::to_string(index);
            return call_.fail(Code::kIndex, "index " + text + " is out of bounds for axis " + std::to_string(axis_) +
                                                " of length " + std::to_string(length_));
        }
        return from_start;
    }

private:
    const Call& call_;
    std::string_view bounds_;
    int64_t axis_;
    int64_t length_;
};

/// Quantised rows are gathered block by block.
Lengths lengths_in_blocks(const Tensor& x) {
    Lengths lengths = x.shape;
    if (ir::is_quantized(x.dtype)) {
        lengths.back() /= ir::info(x.dtype).block_elements;
    }
    return lengths;
}

/// The window that gather reads and scatter writes: an element (or block) of x for each of the window's.
struct Window {
    Lengths shape;
    std::vector<int64_t> places;
};

/// For each place of the index tensors, the offset into x that the indices add up to.
Result<std::vector<int64_t>> indexed_offsets(const Call& call, size_t first, const Broadcast& indices,
                                             const Lengths& strides) {
    const std::vector<int64_t>& axes = call.node.integers("axes");
    std::vector<int64_t> result(indices.sources[0].size(), 0);
    for (size_t k = 0; k < axes.size(); ++k) {
        AxisIndex index(call, axes[k]);
        for (size_t i = 0; i < result.size(); ++i) {
            EMBER_TRY(int64_t at, index.resolve(call.operand(first + k), indices.sources[k][i]));
            result[i] += at * strides[static_cast<size_t>(axes[k])];
        }
    }
    return result;
}

/// The index tensors stand from operand `first` on.
Result<Window> window_of(const Call& call, size_t first) {
    const Tensor& x = call.operand(0);
    const std::vector<int64_t>& axes = call.node.integers("axes");
    std::vector<size_t> which;
    for (size_t k = first; k < call.operands.size(); ++k) {
        which.push_back(k);
    }
    EMBER_TRY(Broadcast indices, broadcast_operands(call, which));
    Lengths lengths = lengths_in_blocks(x);
    Lengths strides = row_major_strides(lengths);
    auto begin = axes.front();
    auto end = axes.back() + 1;
    auto part = [](const Lengths& list, int64_t from, int64_t to) {
        return Lengths(list.begin() + from, list.begin() + to);
    };
    Window window{part(x.shape, 0, begin), {}};
    window.shape.insert(window.shape.end(), indices.lengths.begin(), indices.lengths.end());
    window.shape.insert(window.shape.end(), x.shape.begin() + end, x.shape.end());
    EMBER_CHECKED(call.admit(x.dtype, window.shape));
    EMBER_TRY(std::vector<int64_t> indexed, indexed_offsets(call, first, indices, strides));
    if (product(window.shape) == 0) {
        return window;
    }
    std::vector<int64_t> before = offsets(part(lengths, 0, begin), part(strides, 0, begin));
    std::vector<int64_t> after = offsets(part(lengths, end, x.rank()), part(strides, end, x.rank()));
    for (int64_t i : before) {
        for (int64_t k : indexed) {
            for (int64_t j : after) {
                window.places.push_back(i + k + j);
            }
        }
    }
    return window;
}

Result<Results> take_along(const Call& call) {
    const Tensor& x = call.operand(0);
    const Tensor& indices = call.operand(1);
    int64_t axis = call.node.integer("axis");
    for (size_t i = 0; i < x.shape.size(); ++i) {
        if (static_cast<int64_t>(i) != axis && x.shape[i] != indices.shape[i]) {
            return call.fail(Code::kShape, "axis " + std::to_string(i) + " has lengths " + std::to_string(x.shape[i]) +
                                               " and " + std::to_string(indices.shape[i]));
        }
    }
    EMBER_CHECKED(call.admit(x.dtype, indices.shape));
    Lengths strides = row_major_strides(x.shape);
    int64_t stride = strides[static_cast<size_t>(axis)];
    strides[static_cast<size_t>(axis)] = 0;
    std::vector<int64_t> places = offsets(indices.shape, strides);
    AxisIndex index(call, axis);
    for (size_t i = 0; i < places.size(); ++i) {
        EMBER_TRY(int64_t at, index.resolve(indices, static_cast<int64_t>(i)));
        places[i] += at * stride;
    }
    return Results{pick(x, indices.shape, places)};
}

/// The update's element that goes to each place of the window; an axis that the type knows to be 1 stretches.
Result<std::vector<int64_t>> update_sources(const Call& call, const Lengths& window) {
    const Lengths& shape = call.operand(1).shape;
    Lengths strides = row_major_strides(shape);
    for (size_t i = 0; i < shape.size(); ++i) {
        if (call.type(1).shape[i] == ir::Dim(1)) {
            strides[i] = 0;
        } else if (shape[i] != window[i]) {
            return call.fail(Code::kShape, "updates must have shape " + lengths_to_string(window) + ", not " +
                                               lengths_to_string(shape));
        }
    }
    return offsets(window, strides);
}

template <class W>
W (*combine_of(std::string_view mode))(W, W) {
    if (mode == "add") {
        return wrapping_add<W>;
    }
    if (mode == "mul") {
        return wrapping_mul<W>;
    }
    if constexpr (!is_complex_v<W>) {
        if (mode == "max") {
            return larger<W>;
        }
        if (mode == "min") {
            return smaller<W>;
        }
    }
    return nullptr;
}

/// Combines numbers; elements that no update reaches keep their bits.
Result<Results> scatter_numbers(const Call& call, const Window& window, const std::vector<int64_t>& sources) {
    Tensor result = call.operand(0);
    return with_wide(result.dtype, [&]<class W>(W) -> Result<Results> {
        auto combine = combine_of<W>(call.node.string("mode"));
        if (combine == nullptr) {
            return call.unsupported();
        }
        std::vector<W> values = widen<W>(result);
        std::vector<W> updates = widen<W>(call.operand(1));
        for (size_t i = 0; i < window.places.size(); ++i) {
            W& value = values[static_cast<size_t>(window.places[i])];
            value = combine(value, updates[static_cast<size_t>(sources[i])]);
        }
        return Results{narrow(result.dtype, result.shape, values)};
    });
}

}  // namespace

Result<int64_t> resolve_index(const Call& call, int64_t axis, const Tensor& indices, int64_t at) {
    return AxisIndex(call, axis).resolve(indices, at);
}

Result<Results> evaluate_gather(const Call& call) {
    if (call.node.op == ir::Op::k_take_along) {
        return take_along(call);
    }
    EMBER_TRY(Window window, window_of(call, 1));
    return Results{pick(call.operand(0), window.shape, window.places)};
}

Result<Results> evaluate_scatter(const Call& call) {
    EMBER_TRY(Window window, window_of(call, 2));
    EMBER_TRY(std::vector<int64_t> sources, update_sources(call, window.shape));
    if (call.node.string("mode") != "set") {
        return scatter_numbers(call, window, sources);
    }
    Tensor result = call.operand(0);
    auto size = static_cast<size_t>(ir::element_bytes(result.dtype));
    for (size_t i = 0; i < window.places.size(); ++i) {
        std::memcpy(result.bytes.data() + static_cast<size_t>(window.places[i]) * size,
                    call.operand(1).bytes.data() + static_cast<size_t>(sources[i]) * size, size);
    }
    return Results{std::move(result)};
}

}  // namespace ember::interp
