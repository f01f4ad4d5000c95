// Sorting along an axis, and searching in what is sorted.
#include <algorithm>
#include <numeric>

#include "ember/interp/call.h"
#include "ember/interp/layout.h"
#include "ember/interp/number.h"

namespace ember::interp {
namespace {

using Positions = std::vector<int64_t>;

/// Does x come before y: a smaller number, or any number before NaN?
template <class W>
bool comes_before(W x, W y) {
    return is_nan(y) ? !is_nan(x) : x < y;
}

/// For each place of the kept axes, the row's positions in order.
template <class W>
std::vector<Positions> orders(const Tensor& x, const std::vector<int64_t>& bases, int64_t stride, int64_t length,
                              bool descending) {
    std::vector<W> values = widen<W>(x);
    std::vector<Positions> result;
    for (int64_t base : bases) {
        Positions order(static_cast<size_t>(length));
        std::iota(order.begin(), order.end(), 0);
        auto at = [&](int64_t k) { return values[static_cast<size_t>(base + k * stride)]; };
        std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
            return descending ? comes_before(at(j), at(i)) : comes_before(at(i), at(j));
        });
        result.push_back(std::move(order));
    }
    return result;
}

}  // namespace

Result<Results> evaluate_sort(const Call& call) {
    if (call.node.op == ir::Op::k_searchsorted) {
        return evaluate_searchsorted(call);
    }
    const Tensor& x = call.operand(0);
    auto axis = static_cast<size_t>(call.node.integer("axis"));
    bool top = call.node.op == ir::Op::k_topk;
    int64_t length = x.shape[axis];
    int64_t kept = top ? call.number(1) : length;
    if (kept < 0 || kept > length) {
        return call.fail(Code::kShape, std::to_string(kept) + " elements of axis " + std::to_string(axis) +
                                           " of length " + std::to_string(length));
    }
    Lengths shape = x.shape;
    shape[axis] = kept;
    EMBER_CHECKED(call.admit(ir::DType::kI64, x.shape));
    Lengths rest = x.shape;
    rest[axis] = 1;
    Lengths strides = row_major_strides(x.shape);
    std::vector<int64_t> bases = offsets(rest, strides);
    bool descending = top || call.node.integer_or("descending", 0) != 0;
    std::vector<Positions> rows;
    with_wide(x.dtype, [&]<class W>(W) {
        if constexpr (!is_complex_v<W>) {
            rows = orders<W>(x, bases, strides[axis], length, descending);
        }
    });
    std::vector<int64_t> targets = offsets(rest, row_major_strides(shape));
    int64_t stride = row_major_strides(shape)[axis];
    Tensor positions = zeros(ir::DType::kI64, shape);
    std::vector<int64_t> from(static_cast<size_t>(product(shape)));
    for (size_t row = 0; row < rows.size(); ++row) {
        for (int64_t k = 0; k < kept; ++k) {
            int64_t position = rows[row][static_cast<size_t>(k)];
            positions.set(targets[row] + k * stride, position);
            from[static_cast<size_t>(targets[row] + k * stride)] = bases[row] + position * strides[axis];
        }
    }
    if (call.node.op == ir::Op::k_argsort) {
        return Results{std::move(positions)};
    }
    Tensor values = pick(x, shape, from);
    return top ? Results{std::move(values), std::move(positions)} : Results{std::move(values)};
}

Result<Results> evaluate_searchsorted(const Call& call) {
    Tensor sorted = call.operand(0);
    if (call.operands.size() == 3) {
        const Tensor& sorter = call.operand(2);
        if (sorter.shape != sorted.shape) {
            return call.fail(Code::kShape, "the sorter must have the vector's length");
        }
        std::vector<int64_t> from;
        for (int64_t i = 0; i < sorter.elements(); ++i) {
            EMBER_TRY(int64_t at, resolve_index(call, 0, sorter, i));
            from.push_back(at);
        }
        sorted = pick(sorted, sorted.shape, from);
    }
    const Tensor& values = call.operand(1);
    EMBER_CHECKED(call.admit(ir::DType::kI64, values.shape));
    Tensor result = zeros(ir::DType::kI64, values.shape);
    bool right = call.node.string_or("side", "left") == "right";
    with_wide(sorted.dtype, [&]<class W>(W) {
        if constexpr (!is_complex_v<W>) {
            std::vector<W> row = widen<W>(sorted);
            std::vector<W> wanted = widen<W>(values);
            for (size_t i = 0; i < wanted.size(); ++i) {
                auto at = right ? std::upper_bound(row.begin(), row.end(), wanted[i], comes_before<W>)
                                : std::lower_bound(row.begin(), row.end(), wanted[i], comes_before<W>);
                result.set(static_cast<int64_t>(i), static_cast<int64_t>(at - row.begin()));
            }
        }
    });
    return Results{std::move(result)};
}

}  // namespace ember::interp
