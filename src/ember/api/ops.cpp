// Every op but maps and control: see ops.h among the public headers.
#include "ember/ops.h"

#include <algorithm>
#include <numeric>

#include "ember/api/tape.h"

namespace ember {
namespace {

using api::as_index;
using api::emit;
using api::emit_one;
using api::normalize_axis;
using Ints = std::vector<int64_t>;

Ints normalize(std::string_view op, Ints axes, int64_t rank) {
    for (int64_t& axis : axes) {
        axis = normalize_axis(op, axis, rank);
    }
    return axes;
}

Ints all_axes(int64_t rank) {
    Ints axes(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
}

Ints chosen(std::string_view op, const Axes& axes, int64_t rank) {
    return axes.list() ? normalize(op, *axes.list(), rank) : all_axes(rank);
}

std::vector<Operand> lengths_of(const Variable& x) {
    std::vector<Operand> lengths;
    for (int64_t axis = 0; axis < x.rank(); ++axis) {
        lengths.emplace_back(dim(x, axis));
    }
    return lengths;
}

std::vector<Variable> with_indices(std::string_view op, std::vector<Variable> operands,
                                   const std::vector<Operand>& indices) {
    for (const Operand& index : indices) {
        operands.push_back(as_index(op, index));
    }
    return operands;
}

Variable reduce(ir::Op op, const Variable& x, const Axes& axes, KeepAxes keep) {
    Ints list = chosen(ir::op_name(op), axes, x.rank());
    std::sort(list.begin(), list.end());
    Variable reduced = emit_one(op, {x}, {{"axes", list}});
    if (keep == KeepAxes::kNo) {
        return reduced;
    }
    std::vector<Operand> lengths = lengths_of(x);
    for (int64_t axis : list) {
        lengths[static_cast<size_t>(axis)] = 1;
    }
    return reshape(reduced, lengths);
}

Variable along(ir::Op op, const Variable& x, int64_t axis) {
    return emit_one(op, {x}, {{"axis", normalize_axis(ir::op_name(op), axis, x.rank())}});
}

std::string bounds_name(Bounds bounds) {
    return bounds == Bounds::kRaise ? "raise" : bounds == Bounds::kWrap ? "wrap" : "clip";
}

std::string mode_name(ScatterMode mode) {
    static constexpr std::string_view kNames[] = {"set", "add", "mul", "max", "min"};
    return std::string(kNames[static_cast<size_t>(mode)]);
}

/// The product of lengths, folded where they are numbers.
Operand product(const std::vector<Operand>& lengths) {
    Operand total = 1;
    for (const Operand& length : lengths) {
        bool numbers = total.kind() == Operand::Kind::kInt && length.kind() == Operand::Kind::kInt;
        total = numbers ? Operand(total.integer() * length.integer()) : Operand(total * length);
    }
    return total;
}

/// The lengths of a shape as numbers where they are known.
std::vector<Operand> folded_lengths(const Variable& x) {
    std::vector<Operand> lengths = lengths_of(x);
    Type type = x.type();
    for (size_t axis = 0; axis < lengths.size(); ++axis) {
        if (type.shape[axis].is_static()) {
            lengths[axis] = type.shape[axis].length();
        }
    }
    return lengths;
}

bool is_number(const Operand& operand) {
    return operand.kind() == Operand::Kind::kInt;
}

Operand sum_of(const Operand& a, const Operand& b) {
    return is_number(a) && is_number(b) ? Operand(a.integer() + b.integer()) : Operand(a + b);
}

Operand difference(const Operand& a, const Operand& b) {
    return is_number(a) && is_number(b) ? Operand(a.integer() - b.integer()) : Operand(a - b);
}

/// A place of a range: counted from the front, and moved between the ends.
Operand place(const Operand& given, const Operand& length, const Operand& lowest, const Operand& highest) {
    if (is_number(given) && is_number(length)) {
        int64_t counted = given.integer() + (given.integer() < 0 ? length.integer() : 0);
        return std::clamp(counted, lowest.integer(), std::max(lowest.integer(), highest.integer()));
    }
    Operand counted = is_number(given) ? (given.integer() < 0 ? sum_of(length, given) : given)
                                       : Operand(select(lt(given, 0), given + length, given));
    return min(max(counted, lowest), highest);
}

void need_floats(std::string_view op, const Variable& x) {
    if (!ir::is_float(api::to_ir(x.dtype()))) {
        api::raise(ErrorCode::kType, std::string(op) + ": floats are wanted, the operand is " + x.type().to_string() +
                                         "; cast() converts it");
    }
}

Variable truth(const Variable& x) {
    return x.dtype() == DType::kBool ? x : ne(x, 0);
}

/// How many elements a reduction takes together, less `ddof`, in the dtype of x.
Operand count_of(std::string_view op, const Variable& x, const Axes& axes, int64_t ddof) {
    std::vector<Operand> lengths = folded_lengths(x);
    std::vector<Operand> reduced;
    for (int64_t axis : chosen(op, axes, x.rank())) {
        reduced.push_back(lengths[static_cast<size_t>(axis)]);
    }
    Operand count = product(reduced);
    if (is_number(count)) {
        return std::max<int64_t>(count.integer() - ddof, 0);
    }
    return cast(ddof == 0 ? count.variable() : max(count - ddof, 0), x.dtype());
}

bool is_rest(const Operand& length) {
    return length.kind() == Operand::Kind::kInt && length.integer() == -1;
}

/// What -1 stands for among the lengths of a reshape.
Operand rest(const Variable& x, std::vector<Operand> lengths) {
    std::erase_if(lengths, is_rest);
    Operand total = product(folded_lengths(x));
    Operand known = product(lengths);
    if (total.kind() != Operand::Kind::kInt || known.kind() != Operand::Kind::kInt) {
        return floor_div(total, known);
    }
    if (known.integer() <= 0 || total.integer() % known.integer() != 0) {
        api::raise(ErrorCode::kShape, "reshape: " + x.type().to_string() + " has no whole number of elements for -1");
    }
    return total.integer() / known.integer();
}

void need_pieces(std::string_view op, const std::vector<Variable>& pieces) {
    if (pieces.empty()) {
        api::raise(ErrorCode::kInvalidArgument, std::string(op) + ": nothing to join");
    }
}

/// The operands of gather and scatter after the first ones, and their attributes.
std::vector<ir::Attribute> index_attributes(std::string_view op, const Variable& x, const Ints& axes, Bounds bounds) {
    return {{"axes", normalize(op, axes, x.rank())}, {"bounds", bounds_name(bounds)}};
}

}  // namespace

Variable cast(const Variable& x, DType dtype) {
    return emit_one(ir::Op::k_cast, {x}, {{"dtype", api::to_ir(dtype)}});
}

Variable dot(const Variable& a, const Variable& b) {
    int64_t m = a.rank();
    int64_t n = b.rank();
    bool stacks = m > 2 && n > 2;
    if (m == 0 || n == 0 || (n > 2 && !(stacks && m == n))) {
        api::raise(ErrorCode::kShape, "dot: no matrix product of " + a.type().to_string() + " and " +
                                          b.type().to_string() + "; dot_general() names the axes");
    }
    std::vector<std::pair<int64_t, int64_t>> batch;
    for (int64_t axis = 0; stacks && axis < m - 2; ++axis) {
        batch.emplace_back(axis, axis);
    }
    return dot_general(a, b, {{m - 1, std::max<int64_t>(n - 2, 0)}}, batch);
}

Variable dot_general(const Variable& a, const Variable& b, const std::vector<std::pair<int64_t, int64_t>>& contract,
                     const std::vector<std::pair<int64_t, int64_t>>& batch) {
    auto flat = [&](const auto& pairs) {
        Ints list;
        for (auto [of_a, of_b] : pairs) {
            list.push_back(normalize_axis("dot_general", of_a, a.rank()));
            list.push_back(normalize_axis("dot_general", of_b, b.rank()));
        }
        return list;
    };
    return emit_one(ir::Op::k_dot_general, {a, b}, {{"contract", flat(contract)}, {"batch", flat(batch)}});
}

Variable reduce_sum(const Variable& x, const Axes& axes, KeepAxes keep) {
    return reduce(ir::Op::k_reduce_sum, x, axes, keep);
}
Variable reduce_prod(const Variable& x, const Axes& axes, KeepAxes keep) {
    return reduce(ir::Op::k_reduce_prod, x, axes, keep);
}
Variable reduce_max(const Variable& x, const Axes& axes, KeepAxes keep) {
    return reduce(ir::Op::k_reduce_max, x, axes, keep);
}
Variable reduce_min(const Variable& x, const Axes& axes, KeepAxes keep) {
    return reduce(ir::Op::k_reduce_min, x, axes, keep);
}
Variable reduce_and(const Variable& x, const Axes& axes, KeepAxes keep) {
    return reduce(ir::Op::k_reduce_and, x, axes, keep);
}
Variable reduce_or(const Variable& x, const Axes& axes, KeepAxes keep) {
    return reduce(ir::Op::k_reduce_or, x, axes, keep);
}
Variable reduce_xor(const Variable& x, const Axes& axes, KeepAxes keep) {
    return reduce(ir::Op::k_reduce_xor, x, axes, keep);
}
Variable sum(const Variable& x, const Axes& axes, KeepAxes keep) {
    return reduce_sum(x, axes, keep);
}
Variable prod(const Variable& x, const Axes& axes, KeepAxes keep) {
    return reduce_prod(x, axes, keep);
}
Variable all(const Variable& x, const Axes& axes, KeepAxes keep) {
    return reduce_and(truth(x), axes, keep);
}
Variable any(const Variable& x, const Axes& axes, KeepAxes keep) {
    return reduce_or(truth(x), axes, keep);
}

Variable mean(const Variable& x, const Axes& axes, KeepAxes keep) {
    need_floats("mean", x);
    return reduce_sum(x, axes, keep) / count_of("mean", x, axes, 0);
}

Variable var(const Variable& x, const Axes& axes, KeepAxes keep, int64_t ddof) {
    need_floats("var", x);
    Variable squares = square(x - mean(x, axes, KeepAxes::kYes));
    return reduce_sum(squares, axes, keep) / count_of("var", x, axes, ddof);
}

Variable stddev(const Variable& x, const Axes& axes, KeepAxes keep, int64_t ddof) {
    return sqrt(var(x, axes, keep, ddof));
}

Variable logsumexp(const Variable& x, const Axes& axes, KeepAxes keep) {
    need_floats("logsumexp", x);
    Variable top = reduce_max(x, axes, KeepAxes::kYes);
    Variable shift = select(is_finite(top), top, 0);  // nothing is taken from an infinity
    Variable result = log(reduce_sum(exp(x - shift), axes, KeepAxes::kYes)) + shift;
    if (keep == KeepAxes::kYes) {
        return result;
    }
    Ints list = chosen("logsumexp", axes, x.rank());
    std::vector<Operand> lengths;
    for (int64_t axis = 0; axis < x.rank(); ++axis) {
        if (std::find(list.begin(), list.end(), axis) == list.end()) {
            lengths.emplace_back(dim(x, axis));
        }
    }
    return reshape(result, lengths);
}

Variable argmax(const Variable& x, int64_t axis) {
    return along(ir::Op::k_argmax, x, axis);
}
Variable argmin(const Variable& x, int64_t axis) {
    return along(ir::Op::k_argmin, x, axis);
}
Variable argmax(const Variable& x) {
    return argmax(reshape(x, {-1}), 0);
}
Variable argmin(const Variable& x) {
    return argmin(reshape(x, {-1}), 0);
}
Variable cumsum(const Variable& x, int64_t axis) {
    return along(ir::Op::k_cumsum, x, axis);
}
Variable cumprod(const Variable& x, int64_t axis) {
    return along(ir::Op::k_cumprod, x, axis);
}

Variable softmax(const Variable& x, int64_t axis) {
    Variable weights = exp(x - reduce_max(x, axis, KeepAxes::kYes));
    return weights / reduce_sum(weights, axis, KeepAxes::kYes);
}

Variable log_softmax(const Variable& x, int64_t axis) {
    Variable shifted = x - reduce_max(x, axis, KeepAxes::kYes);
    return shifted - log(reduce_sum(exp(shifted), axis, KeepAxes::kYes));
}

Variable dim(const Variable& x, int64_t axis) {
    int64_t at = normalize_axis("dim", axis, x.rank());
    Type type = x.type();
    const Dim& length = type.shape[static_cast<size_t>(at)];
    return length.is_static() ? as_index("dim", length.length()) : emit_one(ir::Op::k_dim, {x}, {{"axis", at}});
}

Variable transpose(const Variable& x) {
    Ints order = all_axes(x.rank());
    std::reverse(order.begin(), order.end());
    return transpose(x, order);
}

Variable transpose(const Variable& x, const Ints& order) {
    return emit_one(ir::Op::k_transpose, {x}, {{"perm", normalize("transpose", order, x.rank())}});
}

Variable reshape(const Variable& x, const std::vector<Operand>& lengths) {
    std::vector<Operand> known = lengths;
    auto at = std::find_if(known.begin(), known.end(), is_rest);
    if (at != known.end()) {
        if (std::count_if(known.begin(), known.end(), is_rest) > 1) {
            api::raise(ErrorCode::kShape, "reshape: only one length may be -1");
        }
        *at = rest(x, lengths);
    }
    return emit_one(ir::Op::k_reshape, with_indices("reshape", {x}, known));
}

Variable expand_dims(const Variable& x, int64_t axis) {
    std::vector<Operand> lengths = lengths_of(x);
    lengths.insert(lengths.begin() + normalize_axis("expand_dims", axis, x.rank() + 1), Operand(1));
    return reshape(x, lengths);
}

Variable squeeze(const Variable& x, int64_t axis) {
    int64_t at = normalize_axis("squeeze", axis, x.rank());
    Type type = x.type();
    const Dim& length = type.shape[static_cast<size_t>(at)];
    if (length.is_static() && length.length() != 1) {
        api::raise(ErrorCode::kShape,
                   "squeeze: axis " + std::to_string(at) + " of " + type.to_string() + " has not the length 1");
    }
    std::vector<Operand> lengths = lengths_of(x);
    lengths.erase(lengths.begin() + at);
    return reshape(x, lengths);
}

Variable broadcast_to(const Variable& x, const std::vector<Operand>& lengths) {
    return emit_one(ir::Op::k_broadcast, with_indices("broadcast_to", {x}, lengths));
}

Variable full(const std::vector<Operand>& lengths, DType dtype, const Operand& value) {
    bool is_variable = value.kind() == Operand::Kind::kVariable;
    return broadcast_to(is_variable ? cast(value.variable(), dtype) : constant(dtype, value), lengths);
}

Variable slice(const Variable& x, int64_t axis, const Operand& start, const Operand& size, int64_t step) {
    int64_t at = normalize_axis("slice", axis, x.rank());
    return emit_one(ir::Op::k_slice, with_indices("slice", {x}, {start, size}), {{"axis", at}, {"step", step}});
}

Variable slice(const Variable& x, int64_t axis, const Range& range) {
    int64_t at = normalize_axis("slice", axis, x.rank());
    if (range.step == 0) {
        api::raise(ErrorCode::kInvalidArgument, "slice: the step of a range over " + x.type().to_string() + " is 0");
    }
    if (!range.start && !range.stop && (range.step == 1 || range.step == -1)) {
        return range.step == 1 ? x : reverse(x, at);
    }
    Operand length = folded_lengths(x)[static_cast<size_t>(at)];
    bool down = range.step < 0;
    Operand lowest = down ? -1 : 0;
    Operand highest = down ? sum_of(length, -1) : length;
    Operand start = range.start ? place(*range.start, length, lowest, highest) : down ? highest : lowest;
    Operand stop = range.stop ? place(*range.stop, length, lowest, highest) : down ? lowest : highest;
    Operand distance = down ? difference(start, stop) : difference(stop, start);
    int64_t stride = std::abs(range.step);
    if (is_number(distance)) {
        int64_t size = distance.integer() <= 0 ? 0 : (distance.integer() + stride - 1) / stride;
        return slice(x, at, size == 0 ? Operand(0) : start, size, range.step);
    }
    Variable size = max(floor_div(distance + (stride - 1), stride), 0);
    return slice(x, at, select(gt(size, 0), start, constant(int64_t{0})), size, range.step);
}

Variable reverse(const Variable& x, const Axes& axes) {
    return emit_one(ir::Op::k_reverse, {x}, {{"axes", chosen("reverse", axes, x.rank())}});
}

Variable pad(const Variable& x, int64_t axis, const Operand& value, const Operand& low, const Operand& high) {
    std::vector<Variable> operands = with_indices("pad", api::promote("pad", {x, value}), {low, high});
    return emit_one(ir::Op::k_pad, operands, {{"axis", normalize_axis("pad", axis, x.rank())}});
}

Variable concat(const std::vector<Variable>& pieces, int64_t axis) {
    need_pieces("concat", pieces);
    return emit_one(ir::Op::k_concat, pieces, {{"axis", normalize_axis("concat", axis, pieces[0].rank())}});
}

Variable stack(const std::vector<Variable>& pieces, int64_t axis) {
    need_pieces("stack", pieces);
    int64_t at = normalize_axis("stack", axis, pieces[0].rank() + 1);
    std::vector<Variable> expanded;
    for (const Variable& piece : pieces) {
        expanded.push_back(expand_dims(piece, at));
    }
    return concat(expanded, at);
}

std::vector<Variable> split(const Variable& x, const std::vector<Operand>& sizes, int64_t axis) {
    int64_t at = normalize_axis("split", axis, x.rank());
    return emit(ir::Op::k_split, with_indices("split", {x}, sizes), {{"axis", at}});
}

Variable iota(const Operand& n, DType dtype) {
    return emit_one(ir::Op::k_iota, {as_index("iota", n)}, {{"dtype", api::to_ir(dtype)}});
}

Variable gather(const Variable& x, const Variable& indices, int64_t axis, Bounds bounds) {
    return gather(x, std::vector<Variable>{indices}, Ints{axis}, bounds);
}

Variable at(const Variable& x, const Operand& index, int64_t axis, Bounds bounds) {
    bool is_variable = index.kind() == Operand::Kind::kVariable;
    return gather(x, is_variable ? index.variable() : as_index("at", index), axis, bounds);
}

Variable gather(const Variable& x, const std::vector<Variable>& indices, const Ints& axes, Bounds bounds) {
    std::vector<Variable> operands{x};
    operands.insert(operands.end(), indices.begin(), indices.end());
    return emit_one(ir::Op::k_gather, operands, index_attributes("gather", x, axes, bounds));
}

Variable scatter(const Variable& x, const Variable& updates, const std::vector<Variable>& indices, const Ints& axes,
                 ScatterMode mode, Bounds bounds) {
    std::vector<Variable> operands{x, updates};
    operands.insert(operands.end(), indices.begin(), indices.end());
    std::vector<ir::Attribute> attributes = index_attributes("scatter", x, axes, bounds);
    attributes.push_back({"mode", mode_name(mode)});
    return emit_one(ir::Op::k_scatter, operands, std::move(attributes));
}

Variable take_along(const Variable& x, const Variable& indices, int64_t axis, Bounds bounds) {
    int64_t at = normalize_axis("take_along", axis, x.rank());
    return emit_one(ir::Op::k_take_along, {x, indices}, {{"axis", at}, {"bounds", bounds_name(bounds)}});
}

Variable update_slice(const Variable& x, const Variable& u, const std::vector<Operand>& starts) {
    return emit_one(ir::Op::k_update_slice, with_indices("update_slice", {x, u}, starts));
}

Variable assert_that(const Variable& x, const std::vector<Variable>& conditions, const std::string& message) {
    std::vector<Variable> operands{x};
    operands.insert(operands.end(), conditions.begin(), conditions.end());
    return emit_one(ir::Op::k_assert, operands, {{"message", message}});
}

}  // namespace ember
