// GraphBuilder: the one way to make nodes. It infers result types, checks operands and attributes, and gives back the
// node it already has for equal op, operands and attributes (so common sub-graphs merge as they are built).
// Tests: test/unit/ir_test.cpp.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <unordered_map>
#include <vector>

#include "ember/ir/graph.h"
#include "ember/support/result.h"

namespace ember::ir {

/// What a node is to be, before it is one.
struct NodeSpec {
    Op op;
    std::vector<ValueId> operands;
    std::vector<Attribute> attributes = {};
    std::vector<std::shared_ptr<const Graph>> regions = {};
    /// Types that the text states: names for fresh symbols; required for host_call, and for call when no module is
    /// given.
    std::vector<TensorType> stated = {};
};

/// What a pass has found out of lengths contradicts what the graph states, so the node fails whenever it runs. The pass
/// leaves the graph as it was, and the run reports the error.
class Contradiction : public InternalError {
public:
    using InternalError::InternalError;
};
/// Throws a Contradiction for an error of types or shapes, else an InternalError.
[[noreturn]] void fail_types(const Diagnostic& diagnostic);

class GraphBuilder {
public:
    /// `module`: where `call` finds the types of its callees.
    explicit GraphBuilder(std::string name = "main", const Module* module = nullptr);

    ValueId param(TensorType type, ParamKind kind = ParamKind::kInput);
    /// Errors name the op, the operands' types and what was expected. Attributes are brought into the order of the
    /// table; optional ones that say what their absence says are left out.
    Result<std::vector<ValueId>> add(NodeSpec spec);
    Result<ValueId> add_one(NodeSpec spec);
    /// The results of the node that has this op, operands and attributes, whatever types are stated; empty: none yet.
    std::vector<ValueId> find(NodeSpec spec) const;
    /// For compiler passes, whose nodes are right by construction: a Diagnostic becomes an InternalError, or a
    /// Contradiction where it is one of types.
    ValueId make(Op op, std::vector<ValueId> operands, std::vector<Attribute> attributes = {});
    std::vector<ValueId> make_node(NodeSpec spec);

    ValueId constant(Literal literal);
    ValueId constant(DType dtype, double value) { return constant(scalar_literal(dtype, value)); }
    ValueId constant_int(int64_t value, DType dtype = DType::kI64) { return constant(scalar_literal(dtype, value)); }
    /// An i64 scalar that holds a dimension: a constant, or `dim` of a value that has the symbol.
    ValueId dim_value(ValueId value, int axis);

    void output(ValueId value, uint32_t updates = kNone) { graph_.outputs.push_back({value, updates}); }

    const Graph& graph() const { return graph_; }
    const TensorType& type(ValueId id) const { return graph_.type(id); }
    const Module* module() const { return module_; }
    Graph take() { return std::move(graph_); }

private:
    enum class Stated { kMustAgree, kIgnored };
    const Node* find_node(const NodeSpec& spec, size_t hash, Stated stated) const;

    Graph graph_;
    const Module* module_;
    std::unordered_map<size_t, std::vector<NodeId>> known_;
};

/// The types of a node's results, fresh symbols where a length is known only at run time.
Result<std::vector<TensorType>> infer_types(const Graph& graph, const NodeSpec& spec, const Module* module);

/// Copies `node` of `from` into `builder`, operands given by `map` (value of `from` → value of `builder`), results
/// added to it.
void copy_node(const Graph& from, const Node& node, GraphBuilder& builder, std::vector<ValueId>& map);

/// What a function or graph must be: operands before users, types as inferred, attributes of the table, symbols known.
Status verify(const Graph& graph, const Module* module = nullptr);
Status verify(const Module& module);

/// Only the nodes that the outputs need, in depth-first order from the outputs.
std::vector<NodeId> canonical_order(const Graph& graph);
/// The graph of these nodes, its regions included.
Graph canonicalize_order(const Graph& graph);

}  // namespace ember::ir
