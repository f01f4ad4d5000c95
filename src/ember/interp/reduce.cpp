// Reductions, scans and contractions. Floats are accumulated in double (f64: long double) and rounded once.
#include <limits>

#include "ember/interp/call.h"
#include "ember/interp/layout.h"
#include "ember/interp/number.h"

namespace ember::interp {
namespace {

using ir::Op;

/// The least and greatest value of a real dtype.
template <class W>
W lowest(ir::DType dtype) {
    if constexpr (std::is_floating_point_v<W>) {
        return -std::numeric_limits<W>::infinity();
    } else {
        return ir::is_signed_int(dtype) ? static_cast<W>(-(int64_t{1} << (ir::element_bytes(dtype) * 8 - 2)) * 2)
                                        : W{0};
    }
}
template <class W>
W highest(ir::DType dtype) {
    if constexpr (std::is_floating_point_v<W>) {
        return std::numeric_limits<W>::infinity();
    } else {
        return ir::is_bool(dtype) ? W{1} : ~lowest<W>(dtype);
    }
}

template <class W>
struct Fold {
    W start;
    W (*step)(W so_far, W next);
};

/// How a reduction or scan goes; nothing where the dtype has no such op.
template <class W>
std::optional<Fold<W>> fold_of(Op op, ir::DType dtype) {
    switch (op) {
        case Op::k_reduce_sum:
        case Op::k_cumsum:
            return Fold<W>{W{0}, wrapping_add<W>};
        case Op::k_reduce_prod:
        case Op::k_cumprod:
            return Fold<W>{W{1}, wrapping_mul<W>};
        default:
            break;
    }
    if constexpr (!is_complex_v<W>) {
        if (op == Op::k_reduce_max) {
            return Fold<W>{lowest<W>(dtype), larger<W>};
        }
        if (op == Op::k_reduce_min) {
            return Fold<W>{highest<W>(dtype), smaller<W>};
        }
    }
    if constexpr (std::is_integral_v<W>) {
        switch (op) {
            case Op::k_reduce_and:
                return Fold<W>{static_cast<W>(-1), [](W x, W y) { return x & y; }};
            case Op::k_reduce_or:
                return Fold<W>{W{0}, [](W x, W y) { return x | y; }};
            case Op::k_reduce_xor:
                return Fold<W>{W{0}, [](W x, W y) { return x ^ y; }};
            default:
                break;
        }
    }
    return std::nullopt;
}

/// Offsets of a tensor's elements along some axes, and along the others.
struct Split {
    std::vector<int64_t> kept;
    std::vector<int64_t> along;

    Split(const Tensor& x, const std::vector<int64_t>& axes) {
        Lengths strides = row_major_strides(x.shape);
        kept = offsets(without_axes(x.shape, axes), without_axes(strides, axes));
        if (!kept.empty()) {
            along = offsets(at_axes(x.shape, axes), at_axes(strides, axes));
        }
    }
};

}  // namespace

Result<Results> evaluate_reduce(const Call& call) {
    const Tensor& x = call.operand(0);
    const std::vector<int64_t>& axes = call.node.integers("axes");
    EMBER_CHECKED(call.admit(x.dtype, without_axes(x.shape, axes)));
    return with_wide(x.dtype, [&]<class W>(W) -> Result<Results> {
        std::optional<Fold<W>> fold = fold_of<W>(call.node.op, x.dtype);
        if (!fold.has_value()) {
            return call.unsupported();
        }
        std::vector<W> values = widen<W>(x);
        Split split(x, axes);
        std::vector<W> result;
        for (int64_t base : split.kept) {
            W so_far = fold->start;
            for (int64_t offset : split.along) {
                so_far = fold->step(so_far, values[static_cast<size_t>(base + offset)]);
            }
            result.push_back(so_far);
        }
        return Results{narrow(x.dtype, without_axes(x.shape, axes), result)};
    });
}

Result<Results> evaluate_scan(const Call& call) {
    const Tensor& x = call.operand(0);
    return with_wide(x.dtype, [&]<class W>(W) -> Result<Results> {
        std::optional<Fold<W>> fold = fold_of<W>(call.node.op, x.dtype);
        if (!fold.has_value()) {
            return call.unsupported();
        }
        if (x.bytes.empty()) {
            return Results{x};
        }
        std::vector<W> values = widen<W>(x);
        Split split(x, {call.node.integer("axis")});
        for (int64_t base : split.kept) {
            W so_far = fold->start;
            for (int64_t offset : split.along) {
                W& value = values[static_cast<size_t>(base + offset)];
                so_far = fold->step(so_far, value);
                value = so_far;
            }
        }
        return Results{narrow(x.dtype, x.shape, values)};
    });
}

Result<Results> evaluate_arg_reduce(const Call& call) {
    const Tensor& x = call.operand(0);
    int64_t axis = call.node.integer("axis");
    EMBER_CHECKED(call.admit(ir::DType::kI64, without_axes(x.shape, {axis})));
    Split split(x, {axis});
    if (x.shape[static_cast<size_t>(axis)] == 0) {
        return call.fail(Code::kShape, "axis " + std::to_string(axis) + " is empty");
    }
    if (ir::is_complex(x.dtype)) {
        return call.unsupported();
    }
    std::vector<int64_t> result;
    with_wide(x.dtype, [&]<class W>(W) {
        if constexpr (!is_complex_v<W>) {
            std::vector<W> values = widen<W>(x);
            bool greatest = call.node.op == Op::k_argmax;
            for (int64_t base : split.kept) {
                size_t best = 0;
                auto at = [&](size_t k) { return values[static_cast<size_t>(base + split.along[k])]; };
                for (size_t k = 1; k < split.along.size() && !is_nan(at(best)); ++k) {
                    bool better = greatest ? at(k) > at(best) : at(k) < at(best);
                    best = better || is_nan(at(k)) ? k : best;
                }
                result.push_back(static_cast<int64_t>(best));
            }
        }
    });
    return Results{narrow(ir::DType::kI64, without_axes(x.shape, {axis}), result)};
}

namespace {

/// One operand of a contraction: its batch axes, its contracted ones and the rest, and the offsets along them.
struct Side {
    std::vector<int64_t> batch_axes;
    std::vector<int64_t> contracted_axes;
    std::vector<int64_t> gone;
    Lengths rest_lengths;
    std::vector<int64_t> batch;
    std::vector<int64_t> contracted;
    std::vector<int64_t> rest;

    Side(const Call& call, const Tensor& x, size_t which)
        : batch_axes(every_other(call.node.integers("batch"), which)),
          contracted_axes(every_other(call.node.integers("contract"), which)),
          gone(batch_axes) {
        gone.insert(gone.end(), contracted_axes.begin(), contracted_axes.end());
        rest_lengths = without_axes(x.shape, gone);
    }

    void find_offsets(const Tensor& x) {
        Lengths strides = row_major_strides(x.shape);
        batch = offsets(at_axes(x.shape, batch_axes), at_axes(strides, batch_axes));
        contracted = offsets(at_axes(x.shape, contracted_axes), at_axes(strides, contracted_axes));
        rest = offsets(rest_lengths, without_axes(strides, gone));
    }

    static std::vector<int64_t> every_other(const std::vector<int64_t>& pairs, size_t which) {
        std::vector<int64_t> result;
        for (size_t i = which; i < pairs.size(); i += 2) {
            result.push_back(pairs[i]);
        }
        return result;
    }
};

Status match_lengths(const Call& call, const Tensor& x, const Tensor& y, const std::vector<int64_t>& x_axes,
                     const std::vector<int64_t>& y_axes) {
    for (size_t i = 0; i < x_axes.size(); ++i) {
        int64_t mine = x.shape[static_cast<size_t>(x_axes[i])];
        int64_t other = y.shape[static_cast<size_t>(y_axes[i])];
        if (mine != other) {
            return call.fail(Code::kShape, "axis " + std::to_string(x_axes[i]) + " of the left operand has length " +
                                               std::to_string(mine) + ", axis " + std::to_string(y_axes[i]) +
                                               " of the right one " + std::to_string(other));
        }
    }
    return {};
}

template <class W>
std::vector<W> contract(const Tensor& x, const Tensor& y, const Side& a, const Side& b) {
    std::vector<W> left = widen<W>(x);
    std::vector<W> right = widen<W>(y);
    std::vector<W> result;
    result.reserve(a.batch.size() * a.rest.size() * b.rest.size());
    std::vector<W> row(a.contracted.size());
    for (size_t i = 0; i < a.batch.size(); ++i) {
        for (int64_t m : a.rest) {
            for (size_t k = 0; k < row.size(); ++k) {
                row[k] = left[static_cast<size_t>(a.batch[i] + m + a.contracted[k])];
            }
            for (int64_t n : b.rest) {
                W sum{};
                int64_t column = b.batch[i] + n;
                for (size_t k = 0; k < row.size(); ++k) {
                    sum = wrapping_add(sum, wrapping_mul(row[k], right[static_cast<size_t>(column + b.contracted[k])]));
                }
                result.push_back(sum);
            }
        }
    }
    return result;
}

}  // namespace

Result<Results> evaluate_contract(const Call& call) {
    const Tensor& x = call.operand(0);
    Tensor dequantized;
    bool quantized = ir::is_quantized(call.operand(1).dtype);
    if (quantized) {
        EMBER_CHECKED(call.admit(ir::DType::kF32, call.operand(1).shape));
        dequantized = dequantize(call.operand(1));
    }
    const Tensor& y = quantized ? dequantized : call.operand(1);
    if (x.dtype != y.dtype) {
        return call.unsupported();
    }
    Side a(call, x, 0);
    Side b(call, y, 1);
    EMBER_CHECKED(match_lengths(call, x, y, a.batch_axes, b.batch_axes));
    EMBER_CHECKED(match_lengths(call, x, y, a.contracted_axes, b.contracted_axes));
    Lengths shape = at_axes(x.shape, a.batch_axes);
    shape.insert(shape.end(), a.rest_lengths.begin(), a.rest_lengths.end());
    shape.insert(shape.end(), b.rest_lengths.begin(), b.rest_lengths.end());
    EMBER_CHECKED(call.admit(x.dtype, shape));
    if (product(shape) == 0) {
        return Results{zeros(x.dtype, shape)};
    }
    a.find_offsets(x);
    b.find_offsets(y);
    return with_wide(x.dtype, [&]<class W>(W) -> Result<Results> {
        return Results{narrow(x.dtype, shape, contract<W>(x, y, a, b))};
    });
}

}  // namespace ember::interp
