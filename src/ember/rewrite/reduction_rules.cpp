// Simplification of reductions, scans, contractions and casts: one function an op, each a few cases tried in order.
#include <algorithm>
#include <array>
#include <numeric>

#include "ember/rewrite/view_rules.h"

namespace ember::rewrite {
namespace {

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

// --- casts

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

struct Row {
    Op op;
    ViewRule rule;
};
constexpr Row kRows[] = {
    {Op::k_reduce_sum, reduce_rule}, {Op::k_reduce_prod, reduce_rule}, {Op::k_reduce_max, reduce_rule},
    {Op::k_reduce_min, reduce_rule}, {Op::k_reduce_and, reduce_rule},  {Op::k_reduce_or, reduce_rule},
    {Op::k_reduce_xor, reduce_rule}, {Op::k_cumsum, scan_rule},        {Op::k_cumprod, scan_rule},
    {Op::k_dot_general, dot_rule},   {Op::k_cast, cast_rule},
};

constexpr auto kRules = [] {
    std::array<ViewRule, ir::kOpCount> rules{};
    for (const Row& row : kRows) {
        rules[static_cast<size_t>(row.op)] = row.rule;
    }
    return rules;
}();

}  // namespace

ViewRule reduction_rule(Op op) {
    return kRules[static_cast<size_t>(op)];
}

}  // namespace ember::rewrite
