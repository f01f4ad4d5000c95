// Simplification of what moves elements rather than computes them: one function an op, each a few cases tried in order.
// Lengths are compared as dimensions, so equal symbols count as equal.
#include <algorithm>
#include <array>
#include <numeric>

#include "ember/rewrite/view_rules.h"

namespace ember::rewrite {
namespace {

/// Axes of length 1 aside, does the permutation keep the order?
bool moves_only_ones(const Simplifier& s, ValueId value, const Axes& perm) {
    int64_t last = -1;
    for (int64_t axis : perm) {
        if (dim_of(s, value, axis) == Dim(1)) {
            continue;
        }
        if (axis < last) {
            return false;
        }
        last = axis;
    }
    return true;
}

Replaced transpose_rule(Simplifier& s, const NodeSpec& spec) {
    ValueId x = spec.operands[0];
    Axes perm = attributes_of(spec).integers("perm");
    if (std::is_sorted(perm.begin(), perm.end())) {
        return x;
    }
    if (auto inner = s.producer(x, Op::k_transpose)) {
        for (int64_t& axis : perm) {
            axis = inner->integers("perm")[static_cast<size_t>(axis)];
        }
        return again(s, spec, {inner->operands[0]}, {{"perm", perm}});
    }
    if (auto inner = s.producer(x, Op::k_broadcast); inner && s.graph.type(inner->operands[0]).is_scalar()) {
        Values operands = {inner->operands[0]};
        for (int64_t axis : perm) {
            operands.push_back(inner->operands[static_cast<size_t>(axis) + 1]);
        }
        return s.add({Op::k_broadcast, std::move(operands), {}, {}, spec.stated}).at(0);
    }
    if (moves_only_ones(s, x, perm)) {
        Values operands = {x};
        for (int64_t axis : perm) {
            operands.push_back(s.length(x, static_cast<int>(axis)));
        }
        return s.add({Op::k_reshape, std::move(operands), {}, {}, spec.stated}).at(0);
    }
    return std::nullopt;
}

Replaced reshape_rule(Simplifier& s, const NodeSpec& spec) {
    ValueId x = spec.operands[0];
    if (s.type_of(spec) == s.graph.type(x)) {
        return x;
    }
    if (auto inner = s.producer(x, Op::k_reshape)) {
        return again(s, spec, with_front(inner->operands[0], tail(spec.operands)), {});
    }
    if (auto inner = s.producer(x, Op::k_broadcast); inner && s.graph.type(inner->operands[0]).is_scalar()) {
        Values operands = with_front(inner->operands[0], tail(spec.operands));
        return s.add({Op::k_broadcast, std::move(operands), {}, {}, spec.stated}).at(0);
    }
    return std::nullopt;
}

/// Does `longer` have the axes of `shorter` behind axes of length 1?
bool adds_leading_ones(const Shape& shorter, const Shape& longer) {
    if (longer.size() < shorter.size()) {
        return false;
    }
    size_t extra = longer.size() - shorter.size();
    return std::equal(shorter.begin(), shorter.end(), longer.begin() + static_cast<std::ptrdiff_t>(extra)) &&
           std::all_of(longer.begin(), longer.begin() + static_cast<std::ptrdiff_t>(extra),
                       [](Dim dim) { return dim == Dim(1); });
}

Replaced broadcast_rule(Simplifier& s, const NodeSpec& spec) {
    ValueId x = spec.operands[0];
    if (s.type_of(spec) == s.graph.type(x)) {
        return x;
    }
    auto reshaped = s.producer(x, Op::k_reshape);
    auto stretched = s.producer(x, Op::k_broadcast);
    if (reshaped && adds_leading_ones(shape_of(s, reshaped->operands[0]), shape_of(s, x))) {
        return again(s, spec, with_front(reshaped->operands[0], tail(spec.operands)), {});
    }
    if (stretched) {
        return again(s, spec, with_front(stretched->operands[0], tail(spec.operands)), {});
    }
    const ir::Literal* literal = splat(s.graph.graph(), x);
    if (literal != nullptr && !s.graph.type(x).is_scalar()) {
        auto size = static_cast<size_t>(ir::element_bytes(literal->dtype));
        ValueId number = s.graph.constant(ir::Literal{literal->dtype, {}, literal->bytes.substr(0, size)});
        return again(s, spec, with_front(number, tail(spec.operands)), {});
    }
    return std::nullopt;
}

// --- slices

/// start + k*step, k < size, along one axis.
struct Slice {
    int64_t axis;
    int64_t step;
    ValueId x;
    ValueId start;
    ValueId size;
};

Slice as_slice(const Node& node, const Values& operands) {
    return {node.integer("axis"), node.integer_or("step", 1), operands[0], operands[1], operands[2]};
}

Replaced make_slice(Simplifier& s, const NodeSpec& spec, const Slice& slice) {
    return again(s, spec, {slice.x, slice.start, slice.size}, {{"axis", slice.axis}, {"step", slice.step}});
}

Replaced slice_of_slice(Simplifier& s, const NodeSpec& spec, const Slice& outer) {
    auto node = s.producer(outer.x, Op::k_slice);
    if (!node || node->integer("axis") != outer.axis) {
        return std::nullopt;
    }
    Slice inner = as_slice(*node, node->operands);
    ValueId offset = s.make(Op::k_mul, {outer.start, s.graph.constant_int(inner.step)});
    ValueId start = s.make(Op::k_add, {inner.start, offset});
    return make_slice(s, spec, {outer.axis, inner.step * outer.step, inner.x, start, outer.size});
}

/// A slice that is one piece of a concat, or lies in one. Places are compared as the scalars that compute them.
Replaced slice_of_concat(Simplifier& s, const NodeSpec& spec, const Slice& outer) {
    auto node = s.producer(outer.x, Op::k_concat);
    if (!node || node->integer("axis") != outer.axis || outer.step != 1) {
        return std::nullopt;
    }
    auto start = s.number(outer.start);
    auto size = s.number(outer.size);
    auto axis = static_cast<int>(outer.axis);
    ValueId offset = s.graph.constant_int(0);
    for (ValueId piece : node->operands) {
        ValueId length = s.length(piece, axis);
        if (outer.start == offset && outer.size == length) {
            return piece;
        }
        auto low = s.number(offset);
        auto have = s.number(length);
        if (start && size && low && have && *start >= *low && *start + *size <= *low + *have) {
            return make_slice(s, spec, {outer.axis, 1, piece, s.graph.constant_int(*start - *low), outer.size});
        }
        offset = s.make(Op::k_add, {offset, length});
    }
    return std::nullopt;
}

Replaced slice_of_pad(Simplifier& s, const NodeSpec& spec, const Slice& outer) {
    auto node = s.producer(outer.x, Op::k_pad);
    auto start = s.number(outer.start);
    auto size = s.number(outer.size);
    if (!node || node->integer("axis") != outer.axis || outer.step != 1 || !start || !size) {
        return std::nullopt;
    }
    auto low = s.number(node->operands[2]);
    Dim length = dim_of(s, node->operands[0], outer.axis);
    if (!low || length.is_symbol() || *start < *low || *start + *size > *low + length.size()) {
        return std::nullopt;
    }
    return make_slice(s, spec, {outer.axis, 1, node->operands[0], s.graph.constant_int(*start - *low), outer.size});
}

Replaced slice_of_broadcast(Simplifier& s, const NodeSpec& spec, const Slice& outer) {
    auto node = s.producer(outer.x, Op::k_broadcast);
    if (!node) {
        return std::nullopt;
    }
    ValueId inner = node->operands[0];
    int64_t axis = outer.axis - (s.graph.type(outer.x).rank() - s.graph.type(inner).rank());
    if (axis >= 0 && dim_of(s, inner, axis) != Dim(1)) {
        return std::nullopt;
    }
    Values operands = node->operands;
    operands[static_cast<size_t>(outer.axis) + 1] = outer.size;
    return s.add({Op::k_broadcast, std::move(operands), {}, {}, spec.stated}).at(0);
}

Replaced slice_rule(Simplifier& s, const NodeSpec& spec) {
    Slice slice = as_slice(attributes_of(spec), spec.operands);
    if (slice.step == 1 && s.number(slice.start) == 0 && s.type_of(spec) == s.graph.type(slice.x)) {
        return slice.x;
    }
    for (auto rule : {slice_of_slice, slice_of_concat, slice_of_pad, slice_of_broadcast}) {
        if (Replaced value = rule(s, spec, slice)) {
            return value;
        }
    }
    return std::nullopt;
}

Replaced reverse_rule(Simplifier& s, const NodeSpec& spec) {
    ValueId x = spec.operands[0];
    Axes axes = attributes_of(spec).integers("axes");
    size_t count = axes.size();
    std::erase_if(axes, [&](int64_t axis) { return dim_of(s, x, axis) == Dim(1); });
    if (axes.empty()) {
        return x;
    }
    if (auto inner = s.producer(x, Op::k_reverse)) {
        Axes both;
        std::set_symmetric_difference(axes.begin(), axes.end(), inner->integers("axes").begin(),
                                      inner->integers("axes").end(), std::back_inserter(both));
        return again(s, spec, {inner->operands[0]}, {{"axes", both}});
    }
    return axes.size() == count ? std::nullopt : again(s, spec, {x}, {{"axes", axes}});
}

Replaced pad_rule(Simplifier& s, const NodeSpec& spec) {
    bool nothing = s.number(spec.operands[2]) == 0 && s.number(spec.operands[3]) == 0;
    return nothing ? Replaced(spec.operands[0]) : std::nullopt;
}

/// Two slices of one value, the second where the first ends: one slice.
Replaced join_slices(Simplifier& s, ValueId a, ValueId b, int64_t axis) {
    auto first = s.producer(a, Op::k_slice);
    auto second = s.producer(b, Op::k_slice);
    if (!first || !second) {
        return std::nullopt;
    }
    Slice x = as_slice(*first, first->operands);
    Slice y = as_slice(*second, second->operands);
    auto start = s.number(x.start);
    auto size = s.number(x.size);
    auto next = s.number(y.start);
    auto more = s.number(y.size);
    bool adjacent = x.x == y.x && x.axis == axis && y.axis == axis && x.step == 1 && y.step == 1 && start && size &&
                    next && more && *start + *size == *next;
    if (!adjacent) {
        return std::nullopt;
    }
    return s.make(Op::k_slice, {x.x, x.start, s.graph.constant_int(*size + *more)}, {{"axis", axis}});
}

Replaced concat_rule(Simplifier& s, const NodeSpec& spec) {
    int64_t axis = attributes_of(spec).integer("axis");
    Values pieces;
    auto append = [&](ValueId piece) {
        if (dim_of(s, piece, axis) == Dim(0)) {
            return;
        }
        Replaced joined = pieces.empty() ? std::nullopt : join_slices(s, pieces.back(), piece, axis);
        if (joined) {
            pieces.back() = *joined;
        } else {
            pieces.push_back(piece);
        }
    };
    for (ValueId piece : spec.operands) {
        auto nested = s.producer(piece, Op::k_concat);
        if (nested && nested->integer("axis") == axis) {
            std::for_each(nested->operands.begin(), nested->operands.end(), append);
        } else {
            append(piece);
        }
    }
    if (pieces.empty()) {
        return spec.operands[0];
    }
    if (pieces.size() == 1) {
        return pieces[0];
    }
    return pieces == spec.operands ? std::nullopt : again(s, spec, std::move(pieces), spec.attributes);
}

/// A value at a known place among zeros.
struct Placed {
    ValueId value;
    int64_t axis;
    int64_t low;
    int64_t high;
    int64_t length;
};

std::optional<Placed> as_placed(const Simplifier& s, ValueId padded) {
    auto node = s.producer(padded, Op::k_pad);
    if (!node) {
        return std::nullopt;
    }
    const ir::Literal* filler = s.graph.graph().literal(node->operands[1]);
    auto low = s.number(node->operands[2]);
    auto high = s.number(node->operands[3]);
    int64_t axis = node->integer("axis");
    Dim length = dim_of(s, node->operands[0], axis);
    if (filler == nullptr || literal_as_double(*filler) != 0 || !low || !high || length.is_symbol()) {
        return std::nullopt;
    }
    return Placed{node->operands[0], axis, *low, *high, length.size()};
}

// --- indexing

/// One known row: a view.
Replaced gather_rule(Simplifier& s, const NodeSpec& spec) {
    Node node = attributes_of(spec);
    const Axes& axes = node.integers("axes");
    ValueId x = spec.operands[0];
    const ir::Literal* index = s.graph.graph().literal(spec.operands[1]);
    if (axes.size() != 1 || index == nullptr || !index->shape.empty() || ir::is_quantized(s.graph.type(x).dtype)) {
        return std::nullopt;
    }
    Dim length = dim_of(s, x, axes[0]);
    int64_t at = literal_as_int(*index);
    if (length.is_symbol() || at >= length.size() || at < -length.size() || node.find("bounds") != nullptr) {
        return std::nullopt;
    }
    at = at < 0 ? at + length.size() : at;
    Values shape;
    for (int axis = 0; axis < s.graph.type(x).rank(); ++axis) {
        if (axis != axes[0]) {
            shape.push_back(s.length(x, axis));
        }
    }
    ValueId row = s.make(Op::k_slice, {x, s.graph.constant_int(at), s.graph.constant_int(1)}, {{"axis", axes[0]}});
    return s.add({Op::k_reshape, with_front(row, std::move(shape)), {}, {}, spec.stated}).at(0);
}

Replaced update_slice_rule(Simplifier& s, const NodeSpec& spec) {
    ValueId x = spec.operands[0];
    ValueId update = spec.operands[1];
    bool at_zero = std::all_of(spec.operands.begin() + 2, spec.operands.end(),
                               [&](ValueId start) { return s.number(start) == 0; });
    if (at_zero && s.graph.type(x) == s.graph.type(update)) {
        return update;
    }
    const Shape& shape = shape_of(s, update);
    bool empty = std::find(shape.begin(), shape.end(), Dim(0)) != shape.end();
    return empty ? Replaced(x) : std::nullopt;
}

// --- lengths

Replaced dim_rule(Simplifier& s, const NodeSpec& spec) {
    ValueId x = spec.operands[0];
    auto axis = static_cast<int>(attributes_of(spec).integer("axis"));
    ValueId length = s.length(x, axis);
    auto same = s.producer(length, Op::k_dim);
    bool itself = same && same->operands[0] == x && same->integer("axis") == axis;
    return itself ? std::nullopt : Replaced(length);
}

struct Row {
    Op op;
    ViewRule rule;
};
constexpr Row kRows[] = {
    {Op::k_transpose, transpose_rule},
    {Op::k_reshape, reshape_rule},
    {Op::k_broadcast, broadcast_rule},
    {Op::k_slice, slice_rule},
    {Op::k_reverse, reverse_rule},
    {Op::k_pad, pad_rule},
    {Op::k_concat, concat_rule},
    {Op::k_gather, gather_rule},
    {Op::k_update_slice, update_slice_rule},

    {Op::k_dim, dim_rule},
};

constexpr auto kRules = [] {
    std::array<ViewRule, ir::kOpCount> rules{};
    for (const Row& row : kRows) {
        rules[static_cast<size_t>(row.op)] = row.rule;
    }
    return rules;
}();

}  // namespace

/// The gradients of pieces, side by side among zeros: one concatenation.
Replaced sum_of_pads(Simplifier& s, const NodeSpec& spec) {
    auto first = as_placed(s, spec.operands[0]);
    auto second = as_placed(s, spec.operands[1]);
    if (!first || !second || first->axis != second->axis) {
        return std::nullopt;
    }
    if (second->low < first->low) {
        std::swap(first, second);
    }
    bool same_length = first->low + first->length + first->high == second->low + second->length + second->high;
    if (!same_length || first->low + first->length != second->low) {
        return std::nullopt;
    }
    ValueId both = s.make(Op::k_concat, {first->value, second->value}, {{"axis", first->axis}});
    ValueId zero = s.graph.constant(s.graph.type(both).dtype, 0.0);
    Values operands = {both, zero, s.graph.constant_int(first->low), s.graph.constant_int(second->high)};
    return s.add({Op::k_pad, std::move(operands), {{"axis", first->axis}}, {}, spec.stated}).at(0);
}

ViewRule view_rule(Op op) {
    ViewRule rule = kRules[static_cast<size_t>(op)];
    return rule != nullptr ? rule : reduction_rule(op);
}

}  // namespace ember::rewrite
