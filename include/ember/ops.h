// Ops as functions. They infer the result's type at once and throw Error(kType, kShape) naming the op and its operands'
// types. No dtype is converted silently: cast() says so. Axes may be negative: -1 is the last one; Error(kIndex) where
// there is none. Part of ember.h, which says how it is used.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ember/variable.h"

namespace ember {

/// Axes to reduce: all of them, one, or a list.
class Axes {
public:
    Axes() = default;
    Axes(int axis) : list_(std::vector<int64_t>{axis}) {}
    Axes(int64_t axis) : list_(std::vector<int64_t>{axis}) {}
    Axes(std::initializer_list<int64_t> axes) : list_(axes) {}
    Axes(std::vector<int64_t> axes) : list_(std::move(axes)) {}

    /// Nothing: all axes.
    const std::optional<std::vector<int64_t>>& list() const { return list_; }

private:
    std::optional<std::vector<int64_t>> list_;
};

/// Does a reduced axis go away or stay with length 1?
enum class KeepAxes { kNo, kYes };

// Maps apply to every element. Shapes broadcast as in NumPy, but only an axis of known length 1 stretches. All
// variables of one op have one dtype.

// --- arithmetic
/// Negation. Operands: numbers.
Variable neg(const Variable& x);
/// Absolute value. Operands: numbers.
Variable abs(const Variable& x);
/// -1, 0 or 1; NaN stays NaN. Operands: numbers.
Variable sign(const Variable& x);
/// Sum; bool: or. Operands: any dtype.
Variable add(const Operand& x, const Operand& y);
/// Difference. Operands: numbers.
Variable sub(const Operand& x, const Operand& y);
/// Product; bool: and. Operands: any dtype.
Variable mul(const Operand& x, const Operand& y);
/// True division. Operands: floats.
Variable div(const Operand& x, const Operand& y);
/// Quotient rounded down; integer x//0 is 0. Operands: numbers.
Variable floor_div(const Operand& x, const Operand& y);
/// Remainder with the sign of the divisor; integer x%0 is 0. Operands: numbers.
Variable mod(const Operand& x, const Operand& y);
/// Remainder with the sign of the dividend. Operands: numbers.
Variable fmod(const Operand& x, const Operand& y);
/// Power; negative integer exponents give 0 but for bases 1 and -1. Operands: numbers.
Variable pow(const Operand& x, const Operand& y);
/// Larger one; NaN wins. Operands: any dtype.
Variable max(const Operand& x, const Operand& y);
/// Smaller one; NaN wins. Operands: any dtype.
Variable min(const Operand& x, const Operand& y);
/// X held between y and z. Operands: numbers.
Variable clamp(const Operand& x, const Operand& y, const Operand& z);
/// X*x. Operands: numbers.
Variable square(const Variable& x);
/// 1/x. Operands: floats.
Variable reciprocal(const Variable& x);
/// X*y + z, rounded once or twice. Operands: floats.
Variable fma(const Operand& x, const Operand& y, const Operand& z);
/// X with the sign of y. Operands: floats.
Variable copysign(const Operand& x, const Operand& y);
/// Sqrt(x*x + y*y) without overflow. Operands: floats.
Variable hypot(const Operand& x, const Operand& y);

// --- comparison
/// Equal. Operands: any dtype; gives bool.
Variable eq(const Operand& x, const Operand& y);
/// Not equal; true for NaN. Operands: any dtype; gives bool.
Variable ne(const Operand& x, const Operand& y);
/// Less. Operands: any dtype; gives bool.
Variable lt(const Operand& x, const Operand& y);
/// Less or equal. Operands: any dtype; gives bool.
Variable le(const Operand& x, const Operand& y);
/// Greater. Operands: any dtype; gives bool.
Variable gt(const Operand& x, const Operand& y);
/// Greater or equal. Operands: any dtype; gives bool.
Variable ge(const Operand& x, const Operand& y);
/// Is it NaN. Operands: floats; gives bool.
Variable is_nan(const Variable& x);
/// Is it infinite. Operands: floats; gives bool.
Variable is_inf(const Variable& x);
/// Is it neither infinite nor NaN. Operands: floats; gives bool.
Variable is_finite(const Variable& x);

// --- logical and bitwise
/// Bitwise and; bool: logical. Operands: integers or bool.
Variable bit_and(const Operand& x, const Operand& y);
/// Bitwise or; bool: logical. Operands: integers or bool.
Variable bit_or(const Operand& x, const Operand& y);
/// Bitwise exclusive or. Operands: integers or bool.
Variable bit_xor(const Operand& x, const Operand& y);
/// Bitwise complement; bool: logical not. Operands: integers or bool.
Variable bit_not(const Variable& x);
/// X * 2^y; y outside 0..bits-1 gives 0. Operands: integers.
Variable shift_left(const Operand& x, const Operand& y);
/// X / 2^y rounded down. Operands: integers.
Variable shift_right(const Operand& x, const Operand& y);

// --- rounding
/// Rounded down. Operands: floats.
Variable floor(const Variable& x);
/// Rounded up. Operands: floats.
Variable ceil(const Variable& x);
/// Rounded toward zero. Operands: floats.
Variable trunc(const Variable& x);
/// Rounded to nearest, ties to even. Operands: floats.
Variable round(const Variable& x);
/// Rounded to nearest, ties away from zero. Operands: floats.
Variable round_away(const Variable& x);

// --- powers, exponentials and logarithms
/// Square root. Operands: floats.
Variable sqrt(const Variable& x);
/// 1/sqrt(x). Operands: floats.
Variable rsqrt(const Variable& x);
/// Cube root. Operands: floats.
Variable cbrt(const Variable& x);
/// E^x. Operands: floats.
Variable exp(const Variable& x);
/// 2^x. Operands: floats.
Variable exp2(const Variable& x);
/// E^x - 1. Operands: floats.
Variable expm1(const Variable& x);
/// Natural logarithm. Operands: floats.
Variable log(const Variable& x);
/// Logarithm to base 2. Operands: floats.
Variable log2(const Variable& x);
/// Logarithm to base 10. Operands: floats.
Variable log10(const Variable& x);
/// Log(1+x). Operands: floats.
Variable log1p(const Variable& x);
/// Log(e^x + e^y). Operands: floats.
Variable logaddexp(const Operand& x, const Operand& y);
/// 1/(1+e^-x). Operands: floats.
Variable sigmoid(const Variable& x);
/// Log(1+e^x). Operands: floats.
Variable softplus(const Variable& x);
/// Log(sigmoid(x)). Operands: floats.
Variable log_sigmoid(const Variable& x);

// --- trigonometric and hyperbolic
/// Sine. Operands: floats.
Variable sin(const Variable& x);
/// Cosine. Operands: floats.
Variable cos(const Variable& x);
/// Tangent. Operands: floats.
Variable tan(const Variable& x);
/// Inverse sine. Operands: floats.
Variable asin(const Variable& x);
/// Inverse cosine. Operands: floats.
Variable acos(const Variable& x);
/// Inverse tangent. Operands: floats.
Variable atan(const Variable& x);
/// Angle of the point (y, x). Operands: floats.
Variable atan2(const Operand& x, const Operand& y);
/// Hyperbolic sine. Operands: floats.
Variable sinh(const Variable& x);
/// Hyperbolic cosine. Operands: floats.
Variable cosh(const Variable& x);
/// Hyperbolic tangent. Operands: floats.
Variable tanh(const Variable& x);
/// Inverse hyperbolic sine. Operands: floats.
Variable asinh(const Variable& x);
/// Inverse hyperbolic cosine. Operands: floats.
Variable acosh(const Variable& x);
/// Inverse hyperbolic tangent. Operands: floats.
Variable atanh(const Variable& x);

// --- error and gamma functions
/// Error function. Operands: floats.
Variable erf(const Variable& x);
/// 1 - erf(x). Operands: floats.
Variable erfc(const Variable& x);
/// Inverse of erf. Operands: floats.
Variable erfinv(const Variable& x);
/// Inverse of erfc. Operands: floats.
Variable erfcinv(const Variable& x);
/// Log of the absolute value of the gamma function. Operands: floats.
Variable lgamma(const Variable& x);
/// Derivative of lgamma. Operands: floats.
Variable digamma(const Variable& x);

// --- choice
/// y where x is true, else z. x: bool; y, z: any dtype.
Variable select(const Operand& x, const Operand& y, const Operand& z);

Variable operator-(const Variable& x);
Variable operator+(const Operand& x, const Operand& y);
Variable operator-(const Operand& x, const Operand& y);
Variable operator*(const Operand& x, const Operand& y);
/// True division of floats; floor_div() for integers.
Variable operator/(const Operand& x, const Operand& y);
Variable operator<(const Operand& x, const Operand& y);
Variable operator<=(const Operand& x, const Operand& y);
Variable operator>(const Operand& x, const Operand& y);
Variable operator>=(const Operand& x, const Operand& y);

/// As NumPy's astype; a quantised tensor is dequantised to floats.
Variable cast(const Variable& x, DType dtype);
/// max(x, 0).
Variable relu(const Variable& x);

// --- contractions
/// Matrix product, over the last axis of a and the last but one of b (of a vector: its only one). Leading axes of two
/// stacks of matrices of equal rank are batch axes; else b is a matrix or a vector. f32[n,k] · f32[k,m] → f32[n,m].
Variable dot(const Variable& a, const Variable& b);
/// Sum of products over pairs of axes of a and b; result axes: batch, rest of a, rest of b. b may be quantised where
/// its last axis is the only contracted one.
Variable dot_general(const Variable& a, const Variable& b, const std::vector<std::pair<int64_t, int64_t>>& contract,
                     const std::vector<std::pair<int64_t, int64_t>>& batch = {});

// --- reductions
/// An empty sum is 0, an empty product 1, an empty maximum the lowest value; NaN wins maxima and minima.
Variable reduce_sum(const Variable& x, const Axes& axes = {}, KeepAxes keep = KeepAxes::kNo);
Variable reduce_prod(const Variable& x, const Axes& axes = {}, KeepAxes keep = KeepAxes::kNo);
Variable reduce_max(const Variable& x, const Axes& axes = {}, KeepAxes keep = KeepAxes::kNo);
Variable reduce_min(const Variable& x, const Axes& axes = {}, KeepAxes keep = KeepAxes::kNo);
/// Bitwise; of bool: all, any, parity.
Variable reduce_and(const Variable& x, const Axes& axes = {}, KeepAxes keep = KeepAxes::kNo);
Variable reduce_or(const Variable& x, const Axes& axes = {}, KeepAxes keep = KeepAxes::kNo);
Variable reduce_xor(const Variable& x, const Axes& axes = {}, KeepAxes keep = KeepAxes::kNo);
/// reduce_sum() and reduce_prod().
Variable sum(const Variable& x, const Axes& axes = {}, KeepAxes keep = KeepAxes::kNo);
Variable prod(const Variable& x, const Axes& axes = {}, KeepAxes keep = KeepAxes::kNo);
/// Are all, is any of the elements other than 0? Gives bool.
Variable all(const Variable& x, const Axes& axes = {}, KeepAxes keep = KeepAxes::kNo);
Variable any(const Variable& x, const Axes& axes = {}, KeepAxes keep = KeepAxes::kNo);
/// Of floats; NaN where empty.
Variable mean(const Variable& x, const Axes& axes = {}, KeepAxes keep = KeepAxes::kNo);
/// The mean square of the distance to the mean, and its root. Of floats; the divisor is the number of elements less
/// `ddof`, NaN where that is 0 or less and the sum 0.
Variable var(const Variable& x, const Axes& axes = {}, KeepAxes keep = KeepAxes::kNo, int64_t ddof = 0);
Variable stddev(const Variable& x, const Axes& axes = {}, KeepAxes keep = KeepAxes::kNo, int64_t ddof = 0);
/// log(sum(exp(x))) without overflow; -inf where empty.
Variable logsumexp(const Variable& x, const Axes& axes = {}, KeepAxes keep = KeepAxes::kNo);
/// The i64 index of the first maximum or minimum along an axis, which goes away.
Variable argmax(const Variable& x, int64_t axis);
Variable argmin(const Variable& x, int64_t axis);
/// The same among all elements in row-major order.
Variable argmax(const Variable& x);
Variable argmin(const Variable& x);
/// Running sum or product along an axis.
Variable cumsum(const Variable& x, int64_t axis);
Variable cumprod(const Variable& x, int64_t axis);
/// exp(x) over its sum along an axis, and the logarithm of that; without overflow.
Variable softmax(const Variable& x, int64_t axis = -1);
Variable log_softmax(const Variable& x, int64_t axis = -1);

// --- shapes. Lengths, starts and sizes are numbers or i64 scalars.
/// The length of an axis, an i64 scalar.
Variable dim(const Variable& x, int64_t axis);
/// The axes turned round.
Variable transpose(const Variable& x);
/// Axis k of the result is axis order[k] of x.
Variable transpose(const Variable& x, const std::vector<int64_t>& order);
/// The same elements in row-major order. One length may be -1: what is left.
Variable reshape(const Variable& x, const std::vector<Operand>& lengths);
/// A new axis of length 1 before axis `axis` of the result.
Variable expand_dims(const Variable& x, int64_t axis);
/// Without an axis, whose length is 1.
Variable squeeze(const Variable& x, int64_t axis);
/// Stretched to these lengths, aligned to the right.
Variable broadcast_to(const Variable& x, const std::vector<Operand>& lengths);
/// A tensor full of one number, or of a scalar converted by cast().
Variable full(const std::vector<Operand>& lengths, DType dtype, const Operand& value);
/// Elements start, start+step, … of one axis, `size` of them; Error(kIndex) at the call where they are not inside.
Variable slice(const Variable& x, int64_t axis, const Operand& start, const Operand& size, int64_t step = 1);
/// Python's start:stop:step: negative places count from the end, those outside are moved to the next end; an absent one
/// is the end that the step comes from or goes to.
struct Range {
    std::optional<Operand> start{};
    std::optional<Operand> stop{};
    int64_t step = 1;
};
/// NumPy's x[…, start:stop:step, …] at one axis: slice(x, 0, Range{.start = 1, .stop = -1}).
Variable slice(const Variable& x, int64_t axis, const Range& range);
Variable reverse(const Variable& x, const Axes& axes = {});
/// `low` and `high` elements of `value` before and after.
Variable pad(const Variable& x, int64_t axis, const Operand& value, const Operand& low, const Operand& high);
/// Joined along an axis; at least one.
Variable concat(const std::vector<Variable>& pieces, int64_t axis);
/// Joined along a new axis; equal shapes, at least one.
Variable stack(const std::vector<Variable>& pieces, int64_t axis = 0);
/// Consecutive pieces along an axis; their sizes add up to its length.
std::vector<Variable> split(const Variable& x, const std::vector<Operand>& sizes, int64_t axis);
/// 0, 1, … n-1.
Variable iota(const Operand& n, DType dtype = DType::kI64);

// --- indices: integer tensors; negative ones count from the end
/// An index outside: Error(kIndex) at the call, taken modulo the length, or the nearest one inside.
enum class Bounds { kRaise, kWrap, kClip };
enum class ScatterMode { kSet, kAdd, kMul, kMax, kMin };

/// x[…, indices, …] at one axis: its place is taken by the axes of `indices`.
Variable gather(const Variable& x, const Variable& indices, int64_t axis = 0, Bounds bounds = Bounds::kRaise);
/// x[…, index, …] without that axis, for one index.
Variable at(const Variable& x, const Operand& index, int64_t axis = 0, Bounds bounds = Bounds::kRaise);
/// gather() at consecutive axes, with equally shaped indices, one an axis.
Variable gather(const Variable& x, const std::vector<Variable>& indices, const std::vector<int64_t>& axes,
                Bounds bounds = Bounds::kRaise);
/// x with the elements that gather() would read set, added to (duplicates add up), multiplied, or replaced by the
/// larger or smaller one. updates: of the shape that gather() would give.
Variable scatter(const Variable& x, const Variable& updates, const std::vector<Variable>& indices,
                 const std::vector<int64_t>& axes, ScatterMode mode = ScatterMode::kSet,
                 Bounds bounds = Bounds::kRaise);
/// NumPy's take_along_axis: indices of the rank of x.
Variable take_along(const Variable& x, const Variable& indices, int64_t axis, Bounds bounds = Bounds::kRaise);
/// x with the block at `starts`, one an axis, replaced by u; Error(kIndex) at the call where it is not inside.
Variable update_slice(const Variable& x, const Variable& u, const std::vector<Operand>& starts);

// --- sorting and searching. NaN is the largest number and equals itself; equal elements stay in their order
enum class Order { kAscending, kDescending };
enum class Side { kLeft, kRight };

/// The elements along an axis in order, and the i64 positions that they stand at in x.
Variable sort(const Variable& x, int64_t axis = -1, Order order = Order::kAscending);
Variable argsort(const Variable& x, int64_t axis = -1, Order order = Order::kAscending);
/// The k largest elements along an axis, the largest first, and their i64 positions; k is at most the length.
struct TopK {
    Variable values;
    Variable positions;
};
TopK topk(const Variable& x, const Operand& k, int64_t axis = -1);
/// Where values would be inserted into an ascending vector, before or after equal elements: i64.
Variable searchsorted(const Variable& sorted, const Variable& values, Side side = Side::kLeft);
/// The i64 indices of the elements that are not 0, one vector an axis, in row-major order.
std::vector<Variable> nonzero(const Variable& x);
/// The distinct elements of x (or slices along an axis) in ascending order, the position of the first occurrence of
/// each, for each element (slice) of x which of them it is, and how often each occurs; i64 but for the values.
struct Unique {
    Variable values;
    Variable first;
    Variable inverse;
    Variable counts;
};
Unique unique(const Variable& x, std::optional<int64_t> axis = std::nullopt);
/// How often each number from 0 on occurs in an integer vector (i64), or the sums of the f64 weights of its elements;
/// at least `least` results.
Variable bincount(const Variable& x, const Operand& least = int64_t{0});
Variable bincount(const Variable& x, const Variable& weights, const Operand& least);

// --- control
/// x; the call throws Error(kAssert) with the message where a bool condition does not hold everywhere.
Variable assert_that(const Variable& x, const std::vector<Variable>& conditions, const std::string& message);

using Branch = std::function<std::vector<Variable>()>;
/// The results of one branch, by a bool scalar; both give values of equal dtypes and ranks. The lambdas are called
/// once, while the graph is written, and may use any variable around them.
std::vector<Variable> if_(const Variable& condition, const Branch& then_branch, const Branch& else_branch);

/// What one round of a loop gives.
struct LoopStep {
    std::vector<Variable> carried;    // for the next round; types of the first values
    std::vector<Variable> stacked{};  // kept from every round
    std::optional<Variable> go_on{};  // a bool scalar: is there a next round?
};
struct LoopResult {
    std::vector<Variable> carried;  // after the last round
    std::vector<Variable> stacked;  // with a new first axis: the rounds
};
using LoopBody = std::function<LoopStep(const Variable& round, const std::vector<Variable>& carried)>;
/// At most n rounds (a number or an i64 scalar) from the first values of what is carried; `round` is an i64 scalar. The
/// lambda is called once, while the graph is written, and may use any variable around it.
LoopResult loop(const Operand& n, const std::vector<Variable>& first, const LoopBody& body);

}  // namespace ember
