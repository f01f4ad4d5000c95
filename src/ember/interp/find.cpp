// nonzero, unique and bincount: results whose lengths only the elements tell.
#include <algorithm>
#include <numeric>

#include "ember/interp/call.h"
#include "ember/interp/layout.h"
#include "ember/interp/number.h"

namespace ember::interp {
namespace {

Tensor vector_of(const std::vector<int64_t>& values) {
    return from_values(ir::DType::kI64, {static_cast<int64_t>(values.size())}, values);
}

Result<Results> nonzero(const Call& call) {
    const Tensor& x = call.operand(0);
    std::vector<int64_t> found;
    with_wide(x.dtype, [&]<class W>(W) {
        std::vector<W> values = widen<W>(x);
        for (size_t i = 0; i < values.size(); ++i) {
            if (values[i] != W{}) {
                found.push_back(static_cast<int64_t>(i));
            }
        }
    });
    EMBER_CHECKED(call.admit(ir::DType::kI64, {static_cast<int64_t>(found.size())}));
    Results results;
    Lengths strides = row_major_strides(x.shape);
    for (size_t axis = 0; axis < x.shape.size(); ++axis) {
        std::vector<int64_t> index;
        for (int64_t at : found) {
            index.push_back(at / strides[axis] % x.shape[axis]);
        }
        results.push_back(vector_of(index));
    }
    return results;
}

/// The slices of a tensor along an axis, or its elements, as lists of offsets.
std::vector<std::vector<int64_t>> slices_of(const Tensor& x, const Call& call) {
    std::vector<std::vector<int64_t>> slices;
    if (call.node.find("axis") == nullptr) {
        for (int64_t i = 0; i < x.elements(); ++i) {
            slices.push_back({i});
        }
        return slices;
    }
    auto axis = static_cast<size_t>(call.node.integer("axis"));
    Lengths rest = x.shape;
    rest[axis] = 1;
    Lengths strides = row_major_strides(x.shape);
    for (int64_t i = 0; i < x.shape[axis]; ++i) {
        slices.push_back(offsets(rest, strides));
        for (int64_t& at : slices.back()) {
            at += i * strides[axis];
        }
    }
    return slices;
}

/// -1, 0 or 1. NaN comes last.
template <class W>
int compare(W x, W y) {
    if (is_nan(x) || is_nan(y)) {
        return static_cast<int>(is_nan(x)) - static_cast<int>(is_nan(y));
    }
    return x < y ? -1 : x > y ? 1 : 0;
}

/// Positions of equal slices, group by group in ascending order.
template <class W>
std::vector<std::vector<int64_t>> group(const Tensor& x, const std::vector<std::vector<int64_t>>& slices,
                                        bool same_nans) {
    std::vector<W> values = widen<W>(x);
    auto at = [&](int64_t slice, size_t k) {
        return values[static_cast<size_t>(slices[static_cast<size_t>(slice)][k])];
    };
    auto compare_slices = [&](int64_t i, int64_t j) {
        int sign = 0;
        for (size_t k = 0; k < slices[static_cast<size_t>(i)].size() && sign == 0; ++k) {
            sign = compare(at(i, k), at(j, k));
        }
        return sign;
    };
    auto has_nan = [&](int64_t i) {
        bool any = false;
        for (size_t k = 0; k < slices[static_cast<size_t>(i)].size(); ++k) {
            any = any || is_nan(at(i, k));
        }
        return any;
    };
    std::vector<int64_t> order(slices.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return compare_slices(i, j) < 0; });
    std::vector<std::vector<int64_t>> groups;
    for (int64_t i : order) {
        bool same = !groups.empty() && compare_slices(groups.back()[0], i) == 0 && (same_nans || !has_nan(i));
        if (!same) {
            groups.emplace_back();
        }
        groups.back().push_back(i);
    }
    return groups;
}

Result<Results> unique(const Call& call) {
    const Tensor& x = call.operand(0);
    EMBER_CHECKED(call.admit(ir::DType::kI64, x.shape));
    bool by_slice = call.node.find("axis") != nullptr;
    std::vector<std::vector<int64_t>> slices = slices_of(x, call);
    std::vector<std::vector<int64_t>> groups;
    with_wide(x.dtype, [&]<class W>(W) {
        if constexpr (!is_complex_v<W>) {
            groups = group<W>(x, slices, !by_slice || x.rank() == 1);
        }
    });
    auto count = static_cast<int64_t>(groups.size());
    Lengths shape = by_slice ? x.shape : Lengths{count};
    auto axis = static_cast<size_t>(call.node.integer_or("axis", 0));
    shape[axis] = count;
    std::vector<int64_t> from(static_cast<size_t>(product(shape)));
    Lengths rest = shape;
    rest[axis] = 1;
    Lengths strides = row_major_strides(shape);
    std::vector<int64_t> targets = offsets(rest, strides);
    std::vector<int64_t> first;
    std::vector<int64_t> counts;
    Tensor inverse = zeros(ir::DType::kI64, by_slice ? Lengths{x.shape[axis]} : x.shape);
    for (size_t g = 0; g < groups.size(); ++g) {
        first.push_back(groups[g][0]);
        counts.push_back(static_cast<int64_t>(groups[g].size()));
        for (int64_t member : groups[g]) {
            inverse.set(member, static_cast<int64_t>(g));
        }
        const std::vector<int64_t>& slice = slices[static_cast<size_t>(groups[g][0])];
        for (size_t k = 0; k < slice.size(); ++k) {
            from[static_cast<size_t>(targets[k] + static_cast<int64_t>(g) * strides[axis])] = slice[k];
        }
    }
    return Results{pick(x, shape, from), vector_of(first), std::move(inverse), vector_of(counts)};
}

Result<Results> bincount(const Call& call) {
    const Tensor& x = call.operand(0);
    int64_t bins = call.number(1);
    if (bins < 0) {
        return call.fail(Code::kShape, "negative length " + std::to_string(bins));
    }
    bool weighted = call.operands.size() == 3;
    if (weighted && call.operand(2).shape != x.shape) {
        return call.fail(Code::kShape, "lengths do not match");
    }
    for (int64_t i = 0; i < x.elements(); ++i) {
        int64_t value = x.at_int(i);
        if (value < 0 && x.dtype != ir::DType::kU64) {
            return call.fail(Code::kShape, "a negative number " + std::to_string(value));
        }
        bins = value < 0 || value >= ir::kMaxLength ? ir::kMaxLength : std::max(bins, value + 1);
    }
    EMBER_CHECKED(call.admit(ir::DType::kI64, {bins}));
    if (!weighted) {
        std::vector<int64_t> counts(static_cast<size_t>(bins));
        for (int64_t i = 0; i < x.elements(); ++i) {
            ++counts[static_cast<size_t>(x.at_int(i))];
        }
        return Results{vector_of(counts)};
    }
    std::vector<long double> sums(static_cast<size_t>(bins));
    for (int64_t i = 0; i < x.elements(); ++i) {
        sums[static_cast<size_t>(x.at_int(i))] += call.operand(2).at_double(i);
    }
    return Results{narrow(ir::DType::kF64, {bins}, sums)};
}

}  // namespace

Result<Results> evaluate_find(const Call& call) {
    switch (call.node.op) {
        case ir::Op::k_nonzero:
            return nonzero(call);
        case ir::Op::k_unique:
            return unique(call);
        default:
            return bincount(call);
    }
}

}  // namespace ember::interp
