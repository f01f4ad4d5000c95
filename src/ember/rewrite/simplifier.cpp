// The simplifying builder; see simplifier.h.
#include "ember/rewrite/simplifier.h"

#include <algorithm>

#include "ember/rewrite/fold.h"
#include "ember/support/check.h"

namespace ember::rewrite {

using ir::Dim;
using ir::Graph;
using ir::kNone;
using ir::Node;
using ir::Op;
using ir::TensorType;
using Values = std::vector<ValueId>;

namespace {

constexpr size_t kMaxDepth = 200;

bool is_constant(const Graph& graph, ValueId value) {
    return graph.literal(value) != nullptr || splat(graph, value) != nullptr;
}

/// Where two constants of different places would be found in different order. max and min keep the first of two zeros.
void constants_to_the_right(const Graph& graph, NodeSpec& spec) {
    bool ordered = spec.op == Op::k_max || spec.op == Op::k_min;
    if (!ordered && is_commutative(spec.op) && is_constant(graph, spec.operands[0]) &&
        !is_constant(graph, spec.operands[1])) {
        std::swap(spec.operands[0], spec.operands[1]);
    }
}

/// Does each element of the result stand somewhere in the first operand?
bool is_view_of_elements(Op op) {
    return op == Op::k_reshape || op == Op::k_transpose || op == Op::k_slice || op == Op::k_reverse ||
           op == Op::k_gather;
}

/// Is there a rule that computes a function of some other op's result more exactly?
bool improves_operand(std::span<const CompiledRule> rules) {
    return std::any_of(rules.begin(), rules.end(), [&](const CompiledRule& rule) {
        return rule.rule->fp == Fp::kImproves || rule.rule->fp == Fp::kContracts;
    });
}

}  // namespace

ValueId Simplifier::param(TensorType type, ir::ParamKind kind) {
    ValueId value = graph.param(std::move(type), kind);
    learn_symbols(value);
    return value;
}

void Simplifier::learn_symbols(ValueId value) {
    renames_.keep(graph.type(value));
    const ir::Shape& shape = graph.type(value).shape;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis].is_symbol()) {
            homes_.try_emplace(shape[axis].symbol_id(), value, static_cast<int>(axis));
        }
    }
}

ValueId Simplifier::make(Op op, Values operands, std::vector<ir::Attribute> attributes) {
    return add({op, std::move(operands), std::move(attributes), {}, {}}).at(0);
}

Values Simplifier::add(NodeSpec spec) {
    check(++depth_ < kMaxDepth, "rules that end");
    renames_.apply(spec.stated);
    std::vector<TensorType> stated = spec.stated;
    Values results;
    if (auto replaced = replace(spec)) {
        ++applied_;
        results = std::move(*replaced);
        renames_.learn(graph, stated, results);
    } else if (Values known = graph.find(spec); !known.empty()) {
        results = std::move(known);
        renames_.learn(graph, stated, results);
    } else {
        results = graph.make_node(std::move(spec));
        std::for_each(results.begin(), results.end(), [this](ValueId value) { learn_symbols(value); });
    }
    --depth_;
    return results;
}

std::optional<Values> Simplifier::replace(NodeSpec& spec) {
    if (auto literals = fold(graph.graph(), spec)) {
        Values results;
        for (ir::Literal& literal : *literals) {
            results.push_back(graph.constant(std::move(literal)));
        }
        return results;
    }
    if (ir::kind(spec.op) == ir::OpKind::kControl || spec.op == Op::k_assert) {
        return replace_control(*this, spec);
    }
    std::optional<ValueId> value;
    if (ir::is_map(spec.op)) {
        value = replace_map(spec);
    } else if (ViewRule rule = view_rule(spec.op)) {
        value = rule(*this, spec);
    }
    if (!value && spec.op == Op::k_cast) {
        value = move_broadcasts(spec);
    }
    return value ? std::optional(Values{*value}) : std::nullopt;
}

std::optional<ValueId> Simplifier::replace_map(NodeSpec& spec) {
    if (std::optional<ValueId> value = move_broadcasts(spec)) {
        return value;
    }
    if (spec.op == Op::k_add) {
        if (std::optional<ValueId> value = sum_of_pads(*this, spec)) {
            return value;
        }
    }
    constants_to_the_right(graph.graph(), spec);
    for (auto rules : {&Simplifier::apply_rules, &Simplifier::apply_behind_views, &Simplifier::apply_below_view}) {
        if (std::optional<ValueId> value = (this->*rules)(spec)) {
            return value;
        }
    }
    return product_rule(*this, spec);
}

/// Operands that are one view of values of one shape, scalars aside: the rules on those values, then the view.
std::optional<ValueId> Simplifier::apply_behind_views(const NodeSpec& spec) {
    std::optional<Node> view;
    NodeSpec inner{spec.op, spec.operands, spec.attributes, {}, {}};
    for (ValueId& operand : inner.operands) {
        if (graph.type(operand).is_scalar()) {
            continue;
        }
        const Node* node = graph.graph().producer(operand);
        if (node == nullptr || !is_view_of_elements(node->op)) {
            return std::nullopt;
        }
        if (!view) {
            view = *node;
        }
        bool same = node->op == view->op && node->attributes == view->attributes &&
                    std::equal(node->operands.begin() + 1, node->operands.end(), view->operands.begin() + 1,
                               view->operands.end()) &&
                    graph.type(node->operands[0]).shape == graph.type(view->operands[0]).shape;
        if (!same) {
            return std::nullopt;
        }
        operand = node->operands[0];
    }
    if (!view || view->op == Op::k_gather) {
        return std::nullopt;
    }
    std::optional<ValueId> value = apply_rules(inner);
    if (!value) {
        value = product_rule(*this, inner);
    }
    if (!value) {
        return std::nullopt;
    }
    TensorType type = type_of(spec);
    Values operands = view->operands;
    operands[0] = *value;
    return add({view->op, std::move(operands), view->attributes, {}, {type}}).at(0);
}

/// A function of a view of a map: the rules on that function of the map of the view. Maps in between are passed.
std::optional<ValueId> Simplifier::apply_below_view(const NodeSpec& spec) {
    if (spec.operands.size() != 1 || !improves_operand(rules_.at(spec.op))) {
        return std::nullopt;
    }
    ValueId operand = below_view(spec.operands[0], 2);
    return operand == spec.operands[0] ? std::nullopt : apply_rules({spec.op, {operand}, spec.attributes, {}, {}});
}

/// The value as a map of views where it is a view of a map; itself where it is not, or not so within `depth` maps.
ValueId Simplifier::below_view(ValueId value, int depth) {
    const Node* found = graph.graph().producer(value);
    if (found == nullptr || depth == 0) {
        return value;
    }
    Node node = *found;
    if (ir::is_map(node.op)) {
        Values operands = node.operands;
        std::for_each(operands.begin(), operands.end(), [&](ValueId& v) { v = below_view(v, depth - 1); });
        return operands == node.operands ? value : add({node.op, std::move(operands), node.attributes, {}, {}}).at(0);
    }
    const Node* map = is_view_of_elements(node.op) ? graph.graph().producer(node.operands[0]) : nullptr;
    if (map == nullptr || !ir::is_map(map->op)) {
        return value;
    }
    Node inner = *map;
    for (ValueId& operand : inner.operands) {
        const TensorType type = graph.type(operand);
        if (type.is_scalar()) {
            continue;
        }
        if (type.shape != graph.type(node.operands[0]).shape) {
            return value;
        }
        Values operands = node.operands;
        operands[0] = operand;
        TensorType seen{type.dtype, graph.type(value).shape};
        operand = add({node.op, std::move(operands), node.attributes, {}, {seen}}).at(0);
    }
    return add({inner.op, std::move(inner.operands), inner.attributes, {}, {}}).at(0);
}

/// Maps stretch their operands themselves; what all operands would be stretched to, the result is instead.
std::optional<ValueId> Simplifier::move_broadcasts(NodeSpec& spec) {
    Values bare = spec.operands;
    for (ValueId& operand : bare) {
        if (std::optional<Node> node = producer(operand, Op::k_broadcast)) {
            operand = node->operands[0];
        }
    }
    if (bare == spec.operands) {
        return std::nullopt;
    }
    TensorType type = type_of(spec);
    NodeSpec inner{spec.op, bare, spec.attributes, {}, {}};
    if (type_of(inner).shape == type.shape) {
        return add(std::move(inner)).at(0);
    }
    ValueId value = fit(add(std::move(inner)).at(0), type, spec.operands);
    return value == kNone ? std::nullopt : std::optional(value);
}

std::optional<ValueId> Simplifier::apply_rules(const NodeSpec& spec) {
    for (const CompiledRule& rule : rules_.at(spec.op)) {
        ir::FormulaVariables letters;
        if (!matches(graph.graph(), rule, spec.operands, letters)) {
            continue;
        }
        TensorType type = type_of(spec);
        ValueId value = build_formula(graph, rule.to, letters, type.dtype,
                                      [this](Op op, Values operands) { return make(op, std::move(operands)); });
        value = fit(value, type, spec.operands);
        if (value != kNone) {
            applied_rules_.push_back(rule.rule->name);
            return value;
        }
    }
    return std::nullopt;
}

TensorType Simplifier::type_of(const NodeSpec& spec) const {
    auto types = infer_types(graph.graph(), spec, graph.module());
    if (!types.ok()) {
        ir::fail_types(types.error());
    }
    return std::move(types).value().at(0);
}

ValueId Simplifier::fit(ValueId value, const TensorType& type, std::span<const ValueId> sources) {
    const TensorType have = graph.type(value);
    if (have == type) {
        return value;
    }
    if (have.dtype != type.dtype || have.rank() > type.rank()) {
        return kNone;
    }
    size_t extra = type.shape.size() - have.shape.size();
    for (size_t i = 0; i < have.shape.size(); ++i) {
        if (have.shape[i] != type.shape[extra + i] && have.shape[i] != Dim(1)) {
            return kNone;
        }
    }
    Values operands = {value};
    for (Dim dim : type.shape) {
        if (dim.is_static()) {
            operands.push_back(graph.constant_int(dim.size()));
            continue;
        }
        for (ValueId source : sources) {
            const ir::Shape& shape = graph.type(source).shape;
            auto at = std::find(shape.begin(), shape.end(), dim);
            if (at != shape.end()) {
                operands.push_back(length(source, static_cast<int>(at - shape.begin())));
                break;
            }
        }
    }
    if (operands.size() != type.shape.size() + 1) {
        return kNone;
    }
    return add({Op::k_broadcast, std::move(operands), {}, {}, {type}}).at(0);
}

ValueId Simplifier::length(ValueId value, int axis) {
    Dim dim = graph.type(value).shape.at(static_cast<size_t>(axis));
    if (dim.is_static()) {
        return graph.constant_int(dim.size());
    }
    auto home = homes_.find(dim.symbol_id());
    return home == homes_.end() ? graph.dim_value(value, axis)
                                : graph.dim_value(home->second.first, home->second.second);
}

std::optional<Node> Simplifier::producer(ValueId value, Op op) const {
    const Node* node = graph.graph().producer(value);
    return node != nullptr && node->op == op ? std::optional(*node) : std::nullopt;
}

std::optional<int64_t> Simplifier::number(ValueId value) const {
    const ir::Literal* literal = graph.graph().literal(value);
    bool scalar = literal != nullptr && literal->dtype == ir::DType::kI64 && literal->shape.empty();
    return scalar ? std::optional(literal_as_int(*literal)) : std::nullopt;
}

std::shared_ptr<const Graph> Simplifier::simplify_region(const Graph& region) {
    Simplified inner = simplify_graph(region, graph.module(), rules_);
    applied_ += inner.applied;
    return std::make_shared<const Graph>(std::move(inner.graph));
}

Values Simplifier::append(const Graph& from, const Values& arguments) {
    Values map(from.values.size(), kNone);
    std::vector<TensorType> types;
    for (size_t i = 0; i < from.params.size(); ++i) {
        map[from.params[i].value] = arguments.at(i);
        types.push_back(from.type(from.params[i].value));
    }
    renames_.apply(types);
    renames_.learn(graph, types, arguments);
    for (const Node& node : from.nodes) {
        NodeSpec spec{node.op, {}, node.attributes, {}, {}};
        for (ValueId operand : node.operands) {
            spec.operands.push_back(map[operand]);
        }
        for (const auto& region : node.regions) {
            spec.regions.push_back(simplify_region(*region));
        }
        for (uint32_t k = 0; k < node.result_count; ++k) {
            spec.stated.push_back(from.type(node.result(k)));
        }
        Values results = add(std::move(spec));
        for (uint32_t k = 0; k < node.result_count; ++k) {
            map[node.result(k)] = results[k];
        }
    }
    Values outputs;
    for (const ir::Output& output : from.outputs) {
        outputs.push_back(map[output.value]);
    }
    return outputs;
}

Simplified simplify_graph(const Graph& graph, const ir::Module* module, const RuleSet& rules) {
    GraphBuilder builder(graph.name, module);
    Simplifier simplifier(builder, rules);
    Values params;
    for (const ir::Param& param : graph.params) {
        params.push_back(simplifier.param(graph.type(param.value), param.kind));
    }
    Values outputs = simplifier.append(graph, params);
    for (size_t i = 0; i < outputs.size(); ++i) {
        builder.output(outputs[i], graph.outputs[i].updates);
    }
    return {builder.take(), simplifier.applied(), simplifier.applied_rules()};
}

}  // namespace ember::rewrite
