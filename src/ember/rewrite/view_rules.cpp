// Simplification of what moves elements rather than computes them, of reductions and casts: one function an op, each a
// few cases tried in order. Lengths are compared as dimensions, so equal symbols count as equal.
// Long because it is one rule a view.
#include <algorithm>
#include <array>
#include <numeric>

#include "ember/rewrite/simplifier.h"

namespace ember::rewrite {
namespace {

using ir::Dim;
using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;
using ir::TensorType;
using Axes = std::vector<int64_t>;
using Values = std::vector<ValueId>;
using Replaced = std::optional<ValueId>;

/// A spec's attributes by name.
Node attributes_of(const NodeSpec& spec) {
    Node node{spec.op, {}, spec.attributes};
    return node;
}

const Shape& shape_of(const Simplifier& s, ValueId value) {
    return s.graph.type(value).shape;
}
Dim dim_of(const Simplifier& s, ValueId value, int64_t axis) {
    return shape_of(s, value).at(static_cast<size_t>(axis));
}

bool contains(const Axes& axes, int64_t axis) {
    return std::find(axes.begin(), axes.end(), axis) != axes.end();
}

Values tail(const Values& operands) {
    return {operands.begin() + 1, operands.end()};
}
Values with_front(ValueId first, Values rest) {
    rest.insert(rest.begin(), first);
    return rest;
}

Replaced again(Simplifier& s, const NodeSpec& spec, Values operands, std::vector<ir::Attribute> attributes) {
    return s.add({spec.op, std::move(operands), std::move(attributes), {}, spec.stated}).at(0);
}

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

/// A slice that lies in one piece of a concat.
Replaced slice_of_concat(Simplifier& s, const NodeSpec& spec, const Slice& outer) {
    auto node = s.producer(outer.x, Op::k_concat);
    auto start = s.number(outer.start);
    auto size = s.number(outer.size);
    if (!node || node->integer("axis") != outer.axis || outer.step != 1 || !start || !size) {
        return std::nullopt;
    }
    int64_t offset = 0;
    for (ValueId piece : node->operands) {
        Dim length = dim_of(s, piece, outer.axis);
        if (length.is_symbol() || *start < offset) {
            return std::nullopt;
        }
        if (*start + *size <= offset + length.size()) {
            return make_slice(s, spec, {outer.axis, 1, piece, s.graph.constant_int(*start - offset), outer.size});
        }
        offset += length.size();
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

// --- reductions

std::optional<Op> repeated(Op reduction) {
    switch (reduction) {
        case Op::k_reduce_max:
        case Op::k_reduce_min:
        case Op::k_reduce_and:
        case Op::k_reduce_or:
            return reduction;  // of equal elements: one of them
        case Op::k_reduce_sum:
            return Op::k_mul;  // by their count
        default:
            return std::nullopt;
    }
}

bool is_logical(Op reduction) {
    return reduction == Op::k_reduce_and || reduction == Op::k_reduce_or;
}

/// Which axes of a broadcast's result are reduced and were made by it.
std::vector<bool> made_and_gone(const Simplifier& s, const NodeSpec& spec, const Axes& axes, ValueId inner) {
    const Shape& whole = shape_of(s, spec.operands[0]);
    const Shape& part = shape_of(s, inner);
    size_t extra = whole.size() - part.size();
    std::vector<bool> gone(whole.size(), false);
    for (int64_t axis : axes) {
        auto i = static_cast<size_t>(axis);
        bool made = i < extra || (part[i - extra] == Dim(1) && whole[i] != Dim(1));
        bool some = whole[i].is_static() ? whole[i].size() > 0 : spec.op == Op::k_reduce_sum;
        gone[i] = made && some;
    }
    return gone;
}

/// Axes that a broadcast made need no reduction; the others are reduced before they are stretched.
Replaced reduce_broadcast(Simplifier& s, const NodeSpec& spec, const Axes& axes) {
    auto node = s.producer(spec.operands[0], Op::k_broadcast);
    ValueId inner = node ? node->operands[0] : ir::kNone;
    if (!node || !repeated(spec.op) || ir::is_bool(s.graph.type(inner).dtype) != is_logical(spec.op)) {
        return std::nullopt;
    }
    std::vector<bool> gone = made_and_gone(s, spec, axes, inner);
    size_t extra = gone.size() - shape_of(s, inner).size();
    Values squeezed = {inner};  // without its axes of length 1 that were stretched and are gone
    Values stretched;           // lengths of the result
    Axes rest;                  // what is left to reduce, in the squeezed value
    ValueId count = s.graph.constant_int(1);
    for (size_t axis = 0; axis < gone.size(); ++axis) {
        ValueId length = node->operands[axis + 1];
        bool reduced = contains(axes, static_cast<int64_t>(axis));
        bool made = axis < extra || dim_of(s, inner, static_cast<int64_t>(axis - extra)) !=
                                        dim_of(s, spec.operands[0], static_cast<int64_t>(axis));
        if (gone[axis]) {
            count = s.make(Op::k_mul, {count, length});
            continue;
        }
        if (reduced && made) {
            return std::nullopt;
        }
        if (reduced) {
            rest.push_back(static_cast<int64_t>(squeezed.size()) - 1);
        } else {
            stretched.push_back(length);
        }
        if (axis >= extra) {
            squeezed.push_back(s.length(inner, static_cast<int>(axis - extra)));
        }
    }
    ValueId value = s.make(spec.op, {s.make(Op::k_reshape, std::move(squeezed))}, {{"axes", rest}});
    if (spec.op == Op::k_reduce_sum) {
        DType dtype = s.graph.type(value).dtype;
        value = s.make(Op::k_mul, {value, s.make(Op::k_cast, {count}, {{"dtype", dtype}})});
    }
    return s.add({Op::k_broadcast, with_front(value, std::move(stretched)), {}, {}, spec.stated}).at(0);
}

Replaced reduce_reduce(Simplifier& s, const NodeSpec& spec, const Axes& axes) {
    auto inner = s.producer(spec.operands[0], spec.op);
    if (!inner) {
        return std::nullopt;
    }
    const Axes& first = inner->integers("axes");
    Axes all = first;
    int64_t at = 0;  // axis of the inner result
    for (int64_t axis = 0; axis < s.graph.type(inner->operands[0]).rank(); ++axis) {
        if (contains(first, axis)) {
            continue;
        }
        if (contains(axes, at++)) {
            all.push_back(axis);
        }
    }
    std::sort(all.begin(), all.end());
    return again(s, spec, {inner->operands[0]}, {{"axes", all}});
}

Replaced reduce_transpose(Simplifier& s, const NodeSpec& spec, const Axes& axes) {
    auto inner = s.producer(spec.operands[0], Op::k_transpose);
    if (!inner) {
        return std::nullopt;
    }
    const Axes& perm = inner->integers("perm");
    Axes gone;
    Axes rest;
    for (size_t k = 0; k < perm.size(); ++k) {
        (contains(axes, static_cast<int64_t>(k)) ? gone : rest).push_back(perm[k]);
    }
    std::sort(gone.begin(), gone.end());
    Axes order = rest;
    std::sort(order.begin(), order.end());
    for (int64_t& axis : rest) {
        axis = std::lower_bound(order.begin(), order.end(), axis) - order.begin();
    }
    ValueId reduced = s.make(spec.op, {inner->operands[0]}, {{"axes", gone}});
    return s.make(Op::k_transpose, {reduced}, {{"perm", rest}});
}

Replaced reduce_rule(Simplifier& s, const NodeSpec& spec) {
    ValueId x = spec.operands[0];
    Axes axes = attributes_of(spec).integers("axes");
    if (axes.empty()) {
        return x;
    }
    if (std::all_of(axes.begin(), axes.end(), [&](int64_t axis) { return dim_of(s, x, axis) == Dim(1); })) {
        Values operands = {x};
        for (int axis = 0; axis < s.graph.type(x).rank(); ++axis) {
            if (!contains(axes, axis)) {
                operands.push_back(s.length(x, axis));
            }
        }
        return s.add({Op::k_reshape, std::move(operands), {}, {}, spec.stated}).at(0);
    }
    for (auto rule : {reduce_broadcast, reduce_reduce, reduce_transpose}) {
        if (Replaced value = rule(s, spec, axes)) {
            return value;
        }
    }
    auto reshaped = s.producer(x, Op::k_reshape);
    if (reshaped && static_cast<int>(axes.size()) == s.graph.type(x).rank()) {
        Axes all(shape_of(s, reshaped->operands[0]).size());
        std::iota(all.begin(), all.end(), 0);
        return again(s, spec, {reshaped->operands[0]}, {{"axes", all}});
    }
    return std::nullopt;
}

Replaced scan_rule(Simplifier& s, const NodeSpec& spec) {
    bool one = dim_of(s, spec.operands[0], attributes_of(spec).integer("axis")) == Dim(1);
    return one ? Replaced(spec.operands[0]) : std::nullopt;
}

// --- contraction

/// Takes a transpose into the axes of the contraction, if the free axes keep their order.
Replaced dot_side(Simplifier& s, const NodeSpec& spec, size_t side) {
    auto inner = s.producer(spec.operands[side], Op::k_transpose);
    if (!inner) {
        return std::nullopt;
    }
    const Axes& perm = inner->integers("perm");
    Node node = attributes_of(spec);
    Axes contract = node.integers("contract");
    Axes batch = node.integers("batch");
    Axes used;
    for (Axes* pairs : {&contract, &batch}) {
        for (size_t i = side; i < pairs->size(); i += 2) {
            used.push_back((*pairs)[i]);
            (*pairs)[i] = perm[static_cast<size_t>((*pairs)[i])];
        }
    }
    int64_t last = -1;
    for (size_t k = 0; k < perm.size(); ++k) {
        if (contains(used, static_cast<int64_t>(k))) {
            continue;
        }
        if (perm[k] < last) {
            return std::nullopt;
        }
        last = perm[k];
    }
    Values operands = spec.operands;
    operands[side] = inner->operands[0];
    return again(s, spec, std::move(operands), {{"contract", contract}, {"batch", batch}});
}

Replaced dot_rule(Simplifier& s, const NodeSpec& spec) {
    if (ir::is_quantized(s.graph.type(spec.operands[1]).dtype)) {
        return dot_side(s, spec, 0);
    }
    Replaced value = dot_side(s, spec, 0);
    return value ? value : dot_side(s, spec, 1);
}

// --- casts and lengths

/// Bits of the largest integer range, and of the mantissa, that a dtype holds exactly.
struct Exactness {
    bool is_signed;
    int integer_bits;  // all integers below 2^bits
    int fraction_bits;
    int exponent_bits;
};

std::optional<Exactness> exactness(DType dtype) {
    switch (dtype) {
        case DType::kF16:
            return Exactness{true, 11, 11, 5};
        case DType::kBF16:
            return Exactness{true, 8, 8, 8};
        case DType::kF32:
            return Exactness{true, 24, 24, 8};
        case DType::kF64:
            return Exactness{true, 53, 53, 11};
        case DType::kBool:
            return Exactness{false, 1, 0, 0};
        default:
            break;
    }
    if (!ir::is_int(dtype)) {
        return std::nullopt;
    }
    int bits = static_cast<int>(ir::element_bytes(dtype)) * 8;
    return Exactness{ir::is_signed_int(dtype), ir::is_signed_int(dtype) ? bits - 1 : bits, 0, 0};
}

/// Does every value of one dtype have an equal one of the other?
bool holds_all(DType wide, DType narrow) {
    auto w = exactness(wide);
    auto n = exactness(narrow);
    if (!w || !n || wide == DType::kBool) {
        return wide == narrow;
    }
    return w->integer_bits >= n->integer_bits && w->fraction_bits >= n->fraction_bits &&
           w->exponent_bits >= n->exponent_bits && (w->is_signed || !n->is_signed);
}

Replaced cast_rule(Simplifier& s, const NodeSpec& spec) {
    ValueId x = spec.operands[0];
    DType to = attributes_of(spec).dtype();
    if (s.graph.type(x).dtype == to) {
        return x;
    }
    auto inner = s.producer(x, Op::k_cast);
    if (inner && holds_all(inner->dtype(), s.graph.type(inner->operands[0]).dtype)) {
        return again(s, spec, {inner->operands[0]}, spec.attributes);
    }
    return std::nullopt;
}

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
    {Op::k_transpose, transpose_rule}, {Op::k_reshape, reshape_rule},    {Op::k_broadcast, broadcast_rule},
    {Op::k_slice, slice_rule},         {Op::k_reverse, reverse_rule},    {Op::k_pad, pad_rule},
    {Op::k_concat, concat_rule},       {Op::k_gather, gather_rule},      {Op::k_update_slice, update_slice_rule},
    {Op::k_reduce_sum, reduce_rule},   {Op::k_reduce_prod, reduce_rule}, {Op::k_reduce_max, reduce_rule},
    {Op::k_reduce_min, reduce_rule},   {Op::k_reduce_and, reduce_rule},  {Op::k_reduce_or, reduce_rule},
    {Op::k_reduce_xor, reduce_rule},   {Op::k_cumsum, scan_rule},        {Op::k_cumprod, scan_rule},
    {Op::k_dot_general, dot_rule},     {Op::k_cast, cast_rule},          {Op::k_dim, dim_rule},
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
    return kRules[static_cast<size_t>(op)];
}

}  // namespace ember::rewrite
