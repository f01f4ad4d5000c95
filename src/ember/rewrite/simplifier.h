// A graph builder that simplifies every node as it is made: constants are folded, rules of the table applied, views
// collapsed. What a rule makes is simplified in its turn, so one walk over a graph mostly reaches the fixpoint.
// Tests: test/unit/rules_test.cpp, test/filetests/simplify.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ember/ir/builder.h"
#include "ember/rewrite/rebuild.h"
#include "ember/rewrite/rules.h"

namespace ember::rewrite {

using ir::GraphBuilder;
using ir::NodeSpec;
using ir::ValueId;

class Simplifier {
public:
    Simplifier(GraphBuilder& graph, const RuleSet& rules) : graph(graph), rules_(rules) {}

    GraphBuilder& graph;

    ValueId param(ir::TensorType type, ir::ParamKind kind);
    /// The values that stand for the node's results: new, or known before.
    std::vector<ValueId> add(NodeSpec spec);
    ValueId make(ir::Op op, std::vector<ValueId> operands, std::vector<ir::Attribute> attributes = {});

    /// Adds the nodes of a graph, whose parameters become `arguments`; gives the values of its outputs.
    std::vector<ValueId> append(const ir::Graph& from, const std::vector<ValueId>& arguments);
    /// A region, simplified by the same rules.
    std::shared_ptr<const ir::Graph> simplify_region(const ir::Graph& region);

    /// The type that the node would have.
    ir::TensorType type_of(const NodeSpec& spec) const;
    /// Stretches a value to a type, with lengths from the given values; kNone where it cannot be.
    ValueId fit(ValueId value, const ir::TensorType& type, std::span<const ValueId> sources);
    /// A dimension as an i64 scalar: a constant, or `dim` of the first value that has the symbol.
    ValueId length(ValueId value, int axis);
    /// The node behind a value if it is this op. A copy: the graph grows.
    std::optional<ir::Node> producer(ValueId value, ir::Op op) const;
    /// The number of a constant i64 scalar.
    std::optional<int64_t> number(ValueId value) const;

    /// How often something was replaced.
    size_t applied() const { return applied_; }
    /// The names of the rules that were applied, in order.
    const std::vector<std::string_view>& applied_rules() const { return applied_rules_; }

private:
    std::optional<std::vector<ValueId>> replace(NodeSpec& spec);
    std::optional<ValueId> replace_map(NodeSpec& spec);
    std::optional<ValueId> move_broadcasts(NodeSpec& spec);
    std::optional<ValueId> apply_rules(const NodeSpec& spec);
    std::optional<ValueId> apply_behind_views(const NodeSpec& spec);
    std::optional<ValueId> apply_below_view(const NodeSpec& spec);
    ValueId below_view(ValueId value, int depth);
    void learn_symbols(ValueId value);

    const RuleSet& rules_;
    std::unordered_map<int64_t, std::pair<ValueId, int>> homes_;  // where a symbol is seen first
    SymbolRenames renames_;
    size_t applied_ = 0;
    size_t depth_ = 0;
    std::vector<std::string_view> applied_rules_;
};

/// The rules of one op outside of maps; nullptr: none. They give the value that stands for the only result.
using ViewRule = std::optional<ValueId> (*)(Simplifier& simplifier, const NodeSpec& spec);
ViewRule view_rule(ir::Op op);

/// add(pad(x), pad(y)) where x and y lie side by side.
std::optional<ValueId> sum_of_pads(Simplifier& simplifier, const NodeSpec& spec);

/// mul, div, neg, add and sub of sums whose terms a condition cuts off, or in which a factor cancels.
std::optional<ValueId> product_rule(Simplifier& simplifier, const NodeSpec& spec);

/// Control flow whose way is known, and asserts that hold: all results.
std::optional<std::vector<ValueId>> replace_control(Simplifier& simplifier, NodeSpec& spec);

struct Simplified {
    ir::Graph graph;
    size_t applied;
    std::vector<std::string_view> applied_rules;
};
/// One walk over a graph and its regions.
Simplified simplify_graph(const ir::Graph& graph, const ir::Module* module, const RuleSet& rules);

}  // namespace ember::rewrite
