// Convolutions as gathers of windows and a matrix product: see convolution.h.
#include "ember/ir/convolution.h"

#include <algorithm>

namespace ember::ir {
namespace {

using Values = std::vector<ValueId>;
using Axes = std::vector<int64_t>;

class Convolution {
public:
    Convolution(GraphBuilder& builder, ValueId x, ValueId kernel, const std::vector<ConvolutionAxis>& axes,
                int64_t groups)
        : b_(builder), x_(x), kernel_(kernel), axes_(axes), groups_(groups) {}

    Result<ValueId> run() {
        EMBER_CHECKED(check_operands());
        for (size_t i = 0; i < axes_.size(); ++i) {
            EMBER_CHECKED(place(i));
        }
        for (size_t i = axes_.size(); i-- > 0;) {
            EMBER_CHECKED(cut_windows(i));
        }
        return multiply();
    }

private:
    Diagnostic fail(Code code, const std::string& what) const {
        return error(code, "convolution: " + what + "; operands: " + b_.type(x_).to_string() + " " +
                               b_.type(kernel_).to_string());
    }

    Status check_operands() const {
        const TensorType& x = b_.type(x_);
        const TensorType& kernel = b_.type(kernel_);
        auto rank = static_cast<int>(axes_.size()) + 2;
        if (x.dtype != kernel.dtype || x.rank() != rank || kernel.rank() != rank) {
            return fail(Code::kType, "needs operands of one dtype and of rank " + std::to_string(rank));
        }
        for (const ConvolutionAxis& axis : axes_) {
            if (axis.stride < 1 || axis.dilation < 1 || axis.kernel_dilation < 1) {
                return fail(Code::kVerify, "strides and dilations are at least 1");
            }
        }
        Dim channels = x.shape[1];
        Dim depth = kernel.shape[1];
        if (channels.is_static() && depth.is_static() && channels.size() != depth.size() * groups_) {
            return fail(Code::kShape, std::to_string(groups_) + " groups of " + depth.to_string() +
                                          " channels are not the " + channels.to_string() + " of the left operand");
        }
        bool divides = groups_ >= 1;
        for (Dim dim : {x.shape[1], kernel.shape[0]}) {
            divides = divides && (dim.is_symbol() || dim.size() % groups_ == 0);
        }
        if (!divides) {
            return fail(Code::kVerify, std::to_string(groups_) + " groups do not divide channels and filters");
        }
        return {};
    }

    ValueId number(int64_t value) { return b_.constant_int(value); }
    ValueId scalar(Op op, ValueId a, ValueId b) {
        const Literal* x = b_.graph().literal(a);
        const Literal* y = b_.graph().literal(b);
        if (x == nullptr || y == nullptr) {
            return b_.make(op, {a, b});
        }
        int64_t p = literal_as_int(*x);
        int64_t q = literal_as_int(*y);
        switch (op) {
            case Op::k_add:
                return number(p + q);
            case Op::k_sub:
                return number(p - q);
            case Op::k_mul:
                return number(p * q);
            case Op::k_max:
                return number(std::max(p, q));
            default:
                check(op == Op::k_floor_div && q > 0, "lengths need no other op");
                return number(p >= 0 ? p / q : -((q - 1 - p) / q));
        }
    }
    ValueId zero() { return b_.constant(is_complex(b_.type(x_).dtype) ? complex_zero() : real_zero()); }
    Literal real_zero() const {
        DType dtype = b_.type(x_).dtype;
        return is_float(dtype) ? scalar_literal(dtype, 0.0) : scalar_literal(dtype, int64_t{0});
    }
    Literal complex_zero() const {
        DType dtype = b_.type(x_).dtype;
        return {dtype, {}, std::string(static_cast<size_t>(element_bytes(dtype)), '\0')};
    }
    Values shape(ValueId value) {
        Values lengths;
        for (int axis = 0; axis < b_.type(value).rank(); ++axis) {
            lengths.push_back(b_.dim_value(value, axis));
        }
        return lengths;
    }
    Result<ValueId> reshape(ValueId value, Values lengths) {
        lengths.insert(lengths.begin(), value);
        return b_.add_one({Op::k_reshape, std::move(lengths)});
    }
    Result<ValueId> pad(ValueId value, int64_t axis, ValueId low, ValueId high) {
        return b_.add_one({Op::k_pad, {value, zero(), low, high}, {{"axis", axis}}});
    }
    Result<ValueId> cut(ValueId value, int64_t axis, ValueId start, ValueId size) {
        return b_.add_one({Op::k_slice, {value, start, size}, {{"axis", axis}}});
    }

    /// Spatial axis i dilated, with zeros around or elements cut off.
    Status place(size_t i) {
        const ConvolutionAxis& row = axes_[i];
        auto axis = static_cast<int64_t>(i) + 2;
        ValueId length = b_.dim_value(x_, static_cast<int>(axis));
        if (row.dilation > 1) {
            Values lengths = shape(x_);
            Values apart = lengths;
            apart.insert(apart.begin() + axis + 1, number(1));
            EMBER_TRY(ValueId wide, reshape(x_, std::move(apart)));
            EMBER_TRY(wide, pad(wide, axis + 1, number(0), number(row.dilation - 1)));
            lengths[static_cast<size_t>(axis)] = scalar(Op::k_mul, length, number(row.dilation));
            EMBER_TRY(wide, reshape(wide, std::move(lengths)));
            ValueId behind = number(row.dilation - 1);
            length =
                scalar(Op::k_max, scalar(Op::k_sub, b_.dim_value(wide, static_cast<int>(axis)), behind), number(0));
            EMBER_TRY(x_, cut(wide, axis, number(0), length));
        }
        ValueId low = row.low == kNone ? number(0) : row.low;
        ValueId high = row.high == kNone ? number(0) : row.high;
        EMBER_TRY(x_, pad(x_, axis, scalar(Op::k_max, low, number(0)), scalar(Op::k_max, high, number(0))));
        ValueId start = scalar(Op::k_max, scalar(Op::k_sub, number(0), low), number(0));
        ValueId left = scalar(Op::k_add, scalar(Op::k_add, length, low), high);
        EMBER_TRY(x_, cut(x_, axis, start, left));
        return {};
    }

    /// Spatial axis i becomes two: elements of the kernel, positions.
    Status cut_windows(size_t i) {
        const ConvolutionAxis& row = axes_[i];
        auto axis = static_cast<int>(i) + 2;
        ValueId taps = b_.dim_value(kernel_, axis);
        ValueId step = number(row.kernel_dilation);
        ValueId span = scalar(Op::k_add, scalar(Op::k_mul, scalar(Op::k_sub, taps, number(1)), step), number(1));
        ValueId room = scalar(Op::k_sub, b_.dim_value(x_, axis), span);
        ValueId positions = scalar(Op::k_add, scalar(Op::k_floor_div, room, number(row.stride)), number(1));
        positions = scalar(Op::k_max, positions, number(0));
        std::vector<Attribute> i64 = {{"dtype", DType::kI64}};
        EMBER_TRY(ValueId tap, b_.add_one({Op::k_iota, {taps}, i64}));
        EMBER_TRY(ValueId position, b_.add_one({Op::k_iota, {positions}, i64}));
        EMBER_TRY(tap, reshape(b_.make(Op::k_mul, {tap, step}), {taps, number(1)}));
        position = b_.make(Op::k_mul, {position, number(row.stride)});
        ValueId index = b_.make(Op::k_add, {tap, position});
        EMBER_TRY(x_, b_.add_one({Op::k_gather, {x_, index}, {{"axes", Axes{axis}}}}));
        return {};
    }

    /// x is [batch, channels, (taps, positions)…] now.
    Result<ValueId> multiply() {
        size_t spatial = axes_.size();
        Values lengths = shape(x_);
        ValueId filters = scalar(Op::k_floor_div, b_.dim_value(kernel_, 0), number(groups_));
        ValueId depth = b_.dim_value(kernel_, 1);
        Values kernel_shape = {number(groups_), filters, depth};
        Values x_shape = {lengths[0], number(groups_), depth};
        Axes perm = {0, 1, 2};
        ValueId terms = depth;
        ValueId positions = number(1);
        Values result_shape = {lengths[0], b_.dim_value(kernel_, 0)};
        for (size_t i = 0; i < spatial; ++i) {
            ValueId taps = lengths[2 + 2 * i];
            ValueId count = lengths[3 + 2 * i];
            x_shape.insert(x_shape.end(), {taps, count});
            perm.push_back(static_cast<int64_t>(3 + 2 * i));
            terms = scalar(Op::k_mul, terms, taps);
            positions = scalar(Op::k_mul, positions, count);
            result_shape.push_back(count);
        }
        for (size_t i = 0; i < spatial; ++i) {
            perm.push_back(static_cast<int64_t>(4 + 2 * i));
        }
        EMBER_TRY(ValueId columns, reshape(x_, std::move(x_shape)));
        columns = b_.make(Op::k_transpose, {columns}, {{"perm", perm}});
        EMBER_TRY(columns, reshape(columns, {lengths[0], number(groups_), terms, positions}));
        EMBER_TRY(ValueId rows, reshape(kernel_, {number(groups_), filters, terms}));
        Values stretched = {rows, lengths[0], number(groups_), filters, terms};
        EMBER_TRY(rows, b_.add_one({Op::k_broadcast, std::move(stretched)}));
        EMBER_TRY(
            ValueId product,
            b_.add_one({Op::k_dot_general, {rows, columns}, {{"contract", Axes{3, 2}}, {"batch", Axes{0, 0, 1, 1}}}}));
        return reshape(product, std::move(result_shape));
    }

    GraphBuilder& b_;
    ValueId x_;
    ValueId kernel_;
    const std::vector<ConvolutionAxis>& axes_;
    int64_t groups_;
};

}  // namespace

Result<ValueId> convolve(GraphBuilder& builder, ValueId x, ValueId kernel, const std::vector<ConvolutionAxis>& axes,
                         int64_t groups) {
    return Convolution(builder, x, kernel, axes, groups).run();
}

}  // namespace ember::ir
