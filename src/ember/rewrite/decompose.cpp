// The pass decompose: ops that others express. What remains after it: every op but square, reciprocal, clamp and
// those splits whose lengths are numbers.
#include "ember/ir/formula.h"
#include "ember/rewrite/passes.h"
#include "ember/rewrite/rebuild.h"

namespace ember::rewrite {
namespace {

using ir::Op;
using ir::ValueId;

/// Maps by formulas over their operands x, y, z.
struct MapRow {
    Op op;
    std::string_view formula;
};
constexpr MapRow kMaps[] = {
    {Op::k_square, "x*x"},
    {Op::k_reciprocal, "1/x"},
    {Op::k_clamp, "min(max(x,y),z)"},
};

/// Slices, one a piece, where it is known that they add up: otherwise split checks it in the run.
std::vector<ValueId> decompose_split(ir::GraphBuilder& builder, const ir::NodeSpec& spec) {
    ir::Node node{spec.op, {}, spec.attributes};
    auto axis = static_cast<size_t>(node.integer("axis"));
    ir::Dim length = builder.type(spec.operands[0]).shape[axis];
    bool known = length.is_static();
    int64_t total = 0;
    for (const ir::TensorType& piece : spec.stated) {
        known = known && piece.shape[axis].is_static();
        total += known ? piece.shape[axis].size() : 0;
    }
    if (!known || total != length.size()) {
        return {};
    }
    std::vector<ValueId> pieces;
    ValueId start = builder.constant_int(0);
    for (size_t k = 1; k < spec.operands.size(); ++k) {
        ir::NodeSpec slice{Op::k_slice, {spec.operands[0], start, spec.operands[k]}, spec.attributes, {}, {}};
        slice.stated = {spec.stated[k - 1]};
        pieces.push_back(builder.make_node(std::move(slice)).at(0));
        start = builder.make(Op::k_add, {start, spec.operands[k]});
    }
    return pieces;
}

std::vector<ValueId> decompose_node(ir::GraphBuilder& builder, const ir::NodeSpec& spec) {
    if (spec.op == Op::k_split) {
        return decompose_split(builder, spec);
    }
    for (const MapRow& row : kMaps) {
        if (row.op != spec.op) {
            continue;
        }
        ir::FormulaVariables operands;
        for (size_t k = 0; k < spec.operands.size(); ++k) {
            operands[static_cast<char>('x' + k)] = spec.operands[k];
        }
        return {build_formula(builder, ir::formulas(row.formula)[0], operands, spec.stated[0].dtype)};
    }
    return {};
}

}  // namespace

ir::Module decompose(ir::Module module) {
    return rebuild_functions(std::move(module), [](const ir::Graph& graph, const ir::Module& all) {
        return rebuild_graph(graph, all, decompose_node);
    });
}

}  // namespace ember::rewrite
