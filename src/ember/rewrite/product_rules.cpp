// Products and quotients of sums. Gradients of nested choices are sums of terms that a condition cuts off each in its
// own way; and a chain rule divides by what it multiplies with again, some terms and views later. One operand rules
// cannot see either, so these walk the sum.
#include <algorithm>

#include "ember/rewrite/view_rules.h"

namespace ember::rewrite {
namespace {

constexpr int kMaxWalk = 64;  // how many nodes of a sum are looked at

ValueId without_broadcasts(const Simplifier& s, ValueId value) {
    const Node* node = s.graph.graph().producer(value);
    while (node != nullptr && node->op == Op::k_broadcast) {
        value = node->operands[0];
        node = s.graph.graph().producer(value);
    }
    return value;
}

bool is_single(const Shape& shape) {
    return std::all_of(shape.begin(), shape.end(), [](Dim dim) { return dim == Dim(1); });
}

Shape without_ones(Shape shape) {
    std::erase(shape, Dim(1));
    return shape;
}

/// A factor as it is without being stretched, and without axes of length 1 in front.
ValueId bare(const Simplifier& s, ValueId value) {
    for (;;) {
        value = without_broadcasts(s, value);
        const Node* node = s.graph.graph().producer(value);
        if (node == nullptr || node->op != Op::k_reshape) {
            return value;
        }
        const Shape& to = shape_of(s, value);
        const Shape& from = shape_of(s, node->operands[0]);
        bool leading = to.size() >= from.size() && std::equal(from.rbegin(), from.rend(), to.rbegin()) &&
                       is_single({to.begin(), to.end() - static_cast<std::ptrdiff_t>(from.size())});
        if (!leading && !(is_single(to) && is_single(from))) {
            return value;
        }
        value = node->operands[0];
    }
}

bool is_zero(const Simplifier& s, ValueId value) {
    const ir::Literal* literal = splat(s.graph.graph(), value);
    return literal != nullptr && ir::is_float(literal->dtype) && literal_as_double(*literal) == 0;
}

bool is_constant(const Simplifier& s, ValueId value) {
    return splat(s.graph.graph(), value) != nullptr || s.graph.graph().literal(value) != nullptr;
}

/// Does a guard of all terms pass through this op?
bool is_walked(Op op) {
    return op == Op::k_select || op == Op::k_add || op == Op::k_sub || op == Op::k_neg || op == Op::k_mul ||
           op == Op::k_div;
}

// --- what conditions cut off

/// The value is 0 wherever the condition is `when`.
struct Guard {
    ValueId condition;
    bool when;
    bool operator==(const Guard&) const = default;
};
struct Guards {
    bool everywhere = false;  // the value is the constant 0
    std::vector<Guard> some;
};

/// A condition that is `when`, and what follows from that.
void add_atoms(const Simplifier& s, ValueId condition, bool when, std::vector<Guard>& found) {
    condition = without_broadcasts(s, condition);
    found.push_back({condition, when});
    const Node* node = s.graph.graph().producer(condition);
    if (node == nullptr || found.size() > 16) {
        return;
    }
    if (node->op == Op::k_not) {
        add_atoms(s, node->operands[0], !when, found);
    } else if (node->op == (when ? Op::k_or : Op::k_and)) {
        add_atoms(s, node->operands[0], when, found);
        add_atoms(s, node->operands[1], when, found);
    }
}

Guards both(const Guards& a, const Guards& b) {
    if (a.everywhere) {
        return b;
    }
    if (b.everywhere) {
        return a;
    }
    Guards common;
    std::copy_if(a.some.begin(), a.some.end(), std::back_inserter(common.some),
                 [&](const Guard& guard) { return std::find(b.some.begin(), b.some.end(), guard) != b.some.end(); });
    return common;
}

Guards guards_of(const Simplifier& s, ValueId value, int& budget) {
    if (is_zero(s, value)) {
        return {true, {}};
    }
    const Node* node = s.graph.graph().producer(value);
    if (node == nullptr || --budget < 0) {
        return {};
    }
    switch (node->op) {
        case Op::k_select: {
            Guards first = guards_of(s, node->operands[1], budget);
            Guards second = guards_of(s, node->operands[2], budget);
            Guards found = both(first, second);
            if (first.everywhere) {
                add_atoms(s, node->operands[0], true, found.some);
            }
            if (second.everywhere) {
                add_atoms(s, node->operands[0], false, found.some);
            }
            found.everywhere = first.everywhere && second.everywhere;
            return found;
        }
        case Op::k_add:
        case Op::k_sub:
            return both(guards_of(s, node->operands[0], budget), guards_of(s, node->operands[1], budget));
        case Op::k_mul: {
            Guards found = guards_of(s, node->operands[0], budget);
            Guards more = guards_of(s, node->operands[1], budget);
            found.everywhere = false;
            found.some.insert(found.some.end(), more.some.begin(), more.some.end());
            return found;
        }
        case Op::k_div: {
            Guards found = guards_of(s, node->operands[0], budget);
            found.everywhere = false;
            return found;
        }
        case Op::k_neg:
        case Op::k_broadcast:
            return guards_of(s, node->operands[0], budget);
        default:
            return {};
    }
}

Guards guards_of(const Simplifier& s, ValueId value) {
    int budget = kMaxWalk;
    return guards_of(s, value, budget);
}

/// The condition where a guard does not cut off.
ValueId open_condition(Simplifier& s, ValueId condition, const Guard& guard) {
    condition = without_broadcasts(s, condition);
    if (condition == guard.condition) {
        return s.graph.constant(DType::kBool, guard.when ? 0 : 1);
    }
    const Node* node = s.graph.graph().producer(condition);
    if (node == nullptr || (node->op != Op::k_not && node->op != Op::k_and && node->op != Op::k_or)) {
        return condition;
    }
    Op op = node->op;
    Values operands = node->operands;
    std::for_each(operands.begin(), operands.end(), [&](ValueId& v) { v = open_condition(s, v, guard); });
    return s.make(op, operands);
}

/// The value where a guard does not cut off.
ValueId open_value(Simplifier& s, ValueId value, const Guard& guard, int& budget) {
    const Node* found = s.graph.graph().producer(value);
    if (found == nullptr || --budget < 0) {
        return value;
    }
    Op op = found->op;
    if (!is_walked(op)) {
        return op == Op::k_broadcast ? open_value(s, found->operands[0], guard, budget) : value;
    }
    Values before = found->operands;
    Values operands = before;
    for (size_t k = 0; k < operands.size(); ++k) {
        bool condition = op == Op::k_select && k == 0;
        operands[k] = condition ? open_condition(s, operands[k], guard) : open_value(s, operands[k], guard, budget);
    }
    return operands == before ? value : s.make(op, std::move(operands));
}

/// The same view of another value of the same shape.
NodeSpec view_of(const Simplifier& s, const Node& view, ValueId value) {
    Values operands = view.operands;
    operands[0] = value;
    TensorType type{s.graph.type(value).dtype, shape_of(s, view.result())};
    return {view.op, std::move(operands), view.attributes, {}, {type}};
}

/// A constant factor of a view of guarded terms goes below the view, where other rules see the terms.
Replaced scaled_view(Simplifier& s, const NodeSpec& spec) {
    auto view = s.producer(spec.operands[0], Op::k_reshape);
    const ir::Literal* factor = spec.op == Op::k_neg ? nullptr : splat(s.graph.graph(), spec.operands[1]);
    if (!view || (spec.op != Op::k_neg && (factor == nullptr || !is_single(shape_of(s, spec.operands[1]))))) {
        return std::nullopt;
    }
    if (guards_of(s, view->operands[0]).some.empty()) {
        return std::nullopt;
    }
    Values operands = {view->operands[0]};
    if (factor != nullptr) {
        operands.push_back(s.graph.constant(factor->dtype, literal_as_double(*factor)));
    }
    return s.add(view_of(s, *view, s.make(spec.op, std::move(operands)))).at(0);
}

/// A sum of equal views of guarded terms is a view of their sum.
Replaced sum_of_views(Simplifier& s, const NodeSpec& spec) {
    auto first = s.producer(spec.operands[0], Op::k_reshape);
    auto second = s.producer(spec.operands[1], Op::k_reshape);
    bool same = first && second && tail(first->operands) == tail(second->operands) &&
                s.graph.type(first->operands[0]) == s.graph.type(second->operands[0]);
    if (!same || both(guards_of(s, first->operands[0]), guards_of(s, second->operands[0])).some.empty()) {
        return std::nullopt;
    }
    ValueId sum = s.make(spec.op, {first->operands[0], second->operands[0]});
    return s.add(view_of(s, *first, sum)).at(0);
}

Replaced guarded_sum(Simplifier& s, const NodeSpec& spec, size_t side) {
    ValueId terms = spec.operands[side];
    auto reshaped = s.producer(terms, Op::k_reshape);
    if (reshaped) {
        terms = reshaped->operands[0];
    }
    const Node* sum = s.graph.graph().producer(terms);
    bool walked = sum != nullptr && is_walked(sum->op);
    if (!walked || is_constant(s, spec.operands[1 - side])) {
        return std::nullopt;
    }
    Guards guards = guards_of(s, terms);
    if (guards.everywhere || guards.some.empty()) {
        return std::nullopt;
    }
    Guard guard = guards.some.front();
    int budget = kMaxWalk;
    ValueId open = open_value(s, terms, guard, budget);
    Guards left = guards_of(s, open);
    if (std::find(left.some.begin(), left.some.end(), guard) != left.some.end()) {
        return std::nullopt;
    }
    ValueId condition = guard.condition;
    if (reshaped) {
        const Shape shape = shape_of(s, terms);
        open = s.fit(open, s.graph.type(terms), std::span(&terms, 1));
        condition = s.fit(condition, {DType::kBool, shape}, std::span(&terms, 1));
        if (open == ir::kNone || condition == ir::kNone) {
            return std::nullopt;
        }
        open = s.add(view_of(s, *reshaped, open)).at(0);
        condition = s.add(view_of(s, *reshaped, condition)).at(0);
    }
    Values operands = spec.operands;
    operands[side] = open;
    ValueId product = s.make(spec.op, std::move(operands));
    ValueId zero = s.graph.constant(s.graph.type(product).dtype, 0.0);
    return guard.when ? s.make(Op::k_select, {condition, zero, product})
                      : s.make(Op::k_select, {condition, product, zero});
}

// --- factors that cancel

/// A factor (of a product, or the divisor of a quotient) against what undoes it.
struct Factor {
    ValueId value;
    Op op;  // mul or div
};

/// Are these lengths equal, or may they be?
bool may_be_equal(const Shape& a, const Shape& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](Dim x, Dim y) {
        return x == y || (x.is_symbol() && y != Dim(1)) || (y.is_symbol() && x != Dim(1));
    });
}

/// The factor in the shape of a reshape's operand, once with that operand's lengths and once with its own, which may be
/// the same under other names.
Values reshaped_back(Simplifier& s, const Node& node, ValueId factor) {
    const Shape own = shape_of(s, factor);
    const Shape to = shape_of(s, node.result());
    const Shape from = shape_of(s, node.operands[0]);
    Values candidates;
    if (!may_be_equal(own, to)) {
        return candidates;
    }
    Values operands = {factor};
    for (size_t axis = 0; axis < from.size(); ++axis) {
        operands.push_back(s.length(node.operands[0], static_cast<int>(axis)));
    }
    candidates.push_back(s.add({Op::k_reshape, operands, {}, {}, {s.graph.type(node.operands[0])}}).at(0));
    if (!may_be_equal(without_ones(from), without_ones(to))) {
        return candidates;
    }
    size_t axis = 0;
    for (size_t k = 0; k < from.size(); ++k) {
        if (from[k] == Dim(1)) {
            continue;
        }
        while (to[axis] == Dim(1)) {
            ++axis;
        }
        operands[k + 1] = s.length(factor, static_cast<int>(axis++));
    }
    candidates.push_back(s.make(Op::k_reshape, std::move(operands)));
    return candidates;
}

/// What the factor may be for the operand of a reshape, a sum or a scatter: each element goes with those it came from.
Values factors_before(Simplifier& s, const Node& node, ValueId factor) {
    factor = bare(s, factor);
    if (s.graph.type(factor).is_scalar()) {
        return {factor};
    }
    if (node.op == Op::k_reshape) {
        return reshaped_back(s, node, factor);
    }
    if (!may_be_equal(shape_of(s, factor), shape_of(s, node.result()))) {
        return {};
    }
    Values operands = {factor};
    if (node.op == Op::k_scatter) {
        // What is added up at an index is divided by the factor's element there.
        if (node.string("mode") != "add" || !is_zero(s, node.operands[0])) {
            return {};
        }
        operands.insert(operands.end(), node.operands.begin() + 2, node.operands.end());
        return {s.make(Op::k_gather, std::move(operands), {{"axes", node.integers("axes")}})};
    }
    const Axes& axes = node.integers("axes");
    if (axes.back() == static_cast<int64_t>(axes.size()) - 1) {
        return {factor};
    }
    int own = 0;
    for (int axis = 0; axis < s.graph.type(node.operands[0]).rank(); ++axis) {
        operands.push_back(contains(axes, axis) ? s.graph.constant_int(1) : s.length(factor, own++));
    }
    return {s.make(Op::k_reshape, std::move(operands))};
}

/// Which operand the terms are.
size_t terms_of(const Node& node) {
    return node.op == Op::k_scatter ? 1 : 0;
}

/// Does the factor cancel in a term of this value?
bool cancels(Simplifier& s, ValueId value, Factor factor, int& budget) {
    const Node* found = s.graph.graph().producer(value);
    if (found == nullptr || --budget < 0) {
        return false;
    }
    Node node = *found;
    ValueId own = bare(s, factor.value);
    auto inside = [&](size_t k) { return cancels(s, node.operands[k], factor, budget); };
    switch (node.op) {
        case Op::k_div:
            return (factor.op == Op::k_mul && bare(s, node.operands[1]) == own) || inside(0);
        case Op::k_mul:
            return (factor.op == Op::k_div && (bare(s, node.operands[0]) == own || bare(s, node.operands[1]) == own)) ||
                   inside(0) || inside(1);
        case Op::k_neg:
        case Op::k_broadcast:
            return inside(0);
        case Op::k_add:
        case Op::k_sub:
            return inside(0) || inside(1);
        case Op::k_select:
            return inside(1) || inside(2);
        case Op::k_reshape:
        case Op::k_reduce_sum:
        case Op::k_scatter: {
            Values before = factors_before(s, node, factor.value);
            return std::any_of(before.begin(), before.end(), [&](ValueId candidate) {
                return cancels(s, node.operands[terms_of(node)], {candidate, factor.op}, budget);
            });
        }
        default:
            return false;
    }
}

bool cancels(Simplifier& s, ValueId value, Factor factor) {
    int budget = kMaxWalk;
    return cancels(s, value, factor, budget);
}

ValueId with_factor(Simplifier& s, ValueId value, Factor factor);

/// with_factor() of what a reshape, a sum or a scatter takes, which keeps its shape.
ValueId with_factor_before(Simplifier& s, const Node& node, Factor factor) {
    ValueId terms = node.operands[terms_of(node)];
    Values before = factors_before(s, node, factor.value);
    auto good = std::find_if(before.begin(), before.end(),
                             [&](ValueId candidate) { return cancels(s, terms, {candidate, factor.op}); });
    ValueId inner = good == before.end() ? ir::kNone : with_factor(s, terms, {*good, factor.op});
    inner = inner == ir::kNone ? inner : s.fit(inner, s.graph.type(terms), node.operands);
    if (inner == ir::kNone) {
        return ir::kNone;
    }
    Values operands = node.operands;
    operands[terms_of(node)] = inner;
    return s.add({node.op, std::move(operands), node.attributes, {}, {s.graph.type(node.result())}}).at(0);
}

/// The product or quotient with the factor, which cancels in one of the terms. kNone: shapes are in the way.
ValueId with_factor(Simplifier& s, ValueId value, Factor factor) {
    if (is_zero(s, value)) {
        return value;
    }
    if (!cancels(s, value, factor)) {
        return s.make(factor.op, {value, factor.value});
    }
    Node node = *s.graph.graph().producer(value);
    ValueId own = bare(s, factor.value);
    Values operands = node.operands;
    auto go_into = [&](size_t k) {
        operands[k] = with_factor(s, operands[k], factor);
        return operands[k] != ir::kNone;
    };
    bool fine = true;
    switch (node.op) {
        case Op::k_div:
            if (factor.op == Op::k_mul && bare(s, operands[1]) == own) {
                return operands[0];
            }
            fine = go_into(0);
            break;
        case Op::k_mul:
            for (size_t k = 0; k < 2; ++k) {
                if (factor.op == Op::k_div && bare(s, operands[k]) == own) {
                    return operands[1 - k];
                }
            }
            fine = go_into(cancels(s, operands[0], factor) ? 0 : 1);
            break;
        case Op::k_neg:
        case Op::k_broadcast:
            fine = go_into(0);
            break;
        case Op::k_add:
        case Op::k_sub:
            fine = go_into(0) && go_into(1);
            break;
        case Op::k_select:
            fine = go_into(1) && go_into(2);
            break;
        default:
            return with_factor_before(s, node, factor);
    }
    if (!fine) {
        return ir::kNone;
    }
    return node.op == Op::k_broadcast ? operands[0] : s.make(node.op, std::move(operands));
}

Replaced cancelled_factor(Simplifier& s, const NodeSpec& spec, size_t side) {
    Factor factor{spec.operands[1 - side], spec.op};
    if (is_constant(s, factor.value) || !cancels(s, spec.operands[side], factor)) {
        return std::nullopt;
    }
    ValueId value = with_factor(s, spec.operands[side], factor);
    return value == ir::kNone ? std::nullopt : Replaced(value);
}

}  // namespace

Replaced product_rule(Simplifier& s, const NodeSpec& spec) {
    if (!is_walked(spec.op) || spec.op == Op::k_select) {
        return std::nullopt;
    }
    TensorType type = s.type_of(spec);
    if (!ir::is_float(type.dtype)) {
        return std::nullopt;
    }
    bool sum = spec.op == Op::k_add || spec.op == Op::k_sub;
    if (Replaced value = sum ? sum_of_views(s, spec) : scaled_view(s, spec)) {
        return s.graph.type(*value) == type ? value : std::nullopt;
    }
    if (sum || spec.op == Op::k_neg) {
        return std::nullopt;
    }
    for (auto rule : {guarded_sum, cancelled_factor}) {
        for (size_t side = 0; side < (spec.op == Op::k_mul ? 2U : 1U); ++side) {
            if (Replaced value = rule(s, spec, side)) {
                ValueId fitted = s.fit(*value, type, spec.operands);
                return fitted == ir::kNone ? std::nullopt : Replaced(fitted);
            }
        }
    }
    return std::nullopt;
}

}  // namespace ember::rewrite
