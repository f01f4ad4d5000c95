// The pass decompose: ops that others express. What remains after it: every op but square, reciprocal, clamp and
// those splits whose lengths are numbers; searchsorted without a sorter; nonzero and unique of vectors, unique of the
// rows of a matrix; attention of f32.
#include "ember/ir/attention.h"
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

using Values = std::vector<ValueId>;

/// The lengths of some axes as one.
ValueId product(ir::GraphBuilder& builder, ValueId value, int from, int to) {
    ValueId length = builder.constant_int(1);
    for (int axis = from; axis < to; ++axis) {
        length = builder.make(Op::k_mul, {length, builder.dim_value(value, axis)});
    }
    return length;
}

/// A value with the shape that a type states; its lengths are those of `like` along the axes of `like_axes`.
ValueId reshape_to(ir::GraphBuilder& builder, ValueId value, Values lengths, const ir::TensorType& stated) {
    lengths.insert(lengths.begin(), value);
    return builder.make_node({Op::k_reshape, std::move(lengths), {}, {}, {stated}}).at(0);
}

Values decompose_searchsorted(ir::GraphBuilder& builder, const ir::NodeSpec& spec) {
    if (spec.operands.size() == 2) {
        return {};
    }
    ValueId sorted = spec.operands[0];
    ir::NodeSpec gather{Op::k_gather, {sorted, spec.operands[2]}, {{"axes", std::vector<int64_t>{0}}}, {}, {}};
    gather.stated = {builder.type(sorted)};
    sorted = builder.make_node(std::move(gather)).at(0);
    return builder.make_node({spec.op, {sorted, spec.operands[1]}, spec.attributes, {}, spec.stated});
}

/// Positions among all elements first, then what they are along each axis.
Values decompose_nonzero(ir::GraphBuilder& builder, const ir::NodeSpec& spec) {
    ValueId x = spec.operands[0];
    int rank = builder.type(x).rank();
    if (rank == 1) {
        return {};
    }
    ValueId flat = builder.make(Op::k_reshape, {x, product(builder, x, 0, rank)});
    ValueId found = builder.make_node({spec.op, {flat}, {}, {}, {spec.stated[0]}}).at(0);
    Values results;
    for (int axis = 0; axis < rank; ++axis) {
        ValueId at = builder.make(Op::k_floor_div, {found, product(builder, x, axis + 1, rank)});
        results.push_back(axis == 0 ? at : builder.make(Op::k_mod, {at, builder.dim_value(x, axis)}));
    }
    return results;
}

/// Slices along an axis become rows, a tensor becomes a vector.
Values decompose_unique(ir::GraphBuilder& builder, const ir::NodeSpec& spec) {
    ValueId x = spec.operands[0];
    ir::TensorType type = builder.type(x);
    ir::Node probe{spec.op, {}, spec.attributes};
    bool by_slice = probe.find("axis") != nullptr;
    int64_t axis = probe.integer_or("axis", 0);
    if (by_slice && type.rank() == 1) {
        return builder.make_node({spec.op, {x}, {}, {}, spec.stated});
    }
    if (type.rank() == (by_slice ? 2 : 1) && axis == 0) {
        return {};
    }
    if (!by_slice) {
        ValueId flat = builder.make(Op::k_reshape, {x, product(builder, x, 0, type.rank())});
        ir::NodeSpec vector{spec.op, {flat}, {}, {}, spec.stated};
        vector.stated[2].shape = builder.type(flat).shape;
        Values results = builder.make_node(std::move(vector));
        Values lengths;
        for (int i = 0; i < type.rank(); ++i) {
            lengths.push_back(builder.dim_value(x, i));
        }
        results[2] = reshape_to(builder, results[2], std::move(lengths), spec.stated[2]);
        return results;
    }
    std::vector<int64_t> perm{axis};
    std::vector<int64_t> back;
    for (int64_t i = 0; i < type.rank(); ++i) {
        back.push_back(i == axis ? 0 : i + (i < axis ? 1 : 0));
        if (i != axis) {
            perm.push_back(i);
        }
    }
    ValueId moved = builder.make(Op::k_transpose, {x}, {{"perm", perm}});
    ValueId rows =
        builder.make(Op::k_reshape, {moved, builder.dim_value(moved, 0), product(builder, moved, 1, type.rank())});
    ir::NodeSpec unique{spec.op, {rows}, {{"axis", int64_t{0}}}, {}, spec.stated};
    ir::Dim count = spec.stated[1].shape[0];
    unique.stated[0].shape = {count, builder.type(rows).shape[1]};
    Values results = builder.make_node(std::move(unique));
    ir::TensorType shape{type.dtype, {count}};
    Values lengths{builder.dim_value(results[1], 0)};
    for (int i = 1; i < type.rank(); ++i) {
        lengths.push_back(builder.dim_value(moved, i));
        shape.shape.push_back(builder.type(moved).shape[static_cast<size_t>(i)]);
    }
    results[0] = reshape_to(builder, results[0], std::move(lengths), shape);
    results[0] = builder.make(Op::k_transpose, {results[0]}, {{"perm", back}});
    return results;
}

/// What the runtime's attention does not take.
Values decompose_attention(ir::GraphBuilder& builder, const ir::NodeSpec& spec) {
    ValueId q = spec.operands[0];
    ir::DType stored = builder.type(spec.operands[1]).dtype;
    if (builder.type(q).dtype == ir::DType::kF32 && (stored == ir::DType::kF32 || stored == ir::DType::kF16)) {
        return {};
    }
    ValueId first = spec.operands[3];
    ValueId end = builder.make(Op::k_add, {first, builder.dim_value(q, 0)});
    ValueId begins_inside = builder.make(Op::k_ge, {first, builder.constant_int(0)});
    ValueId ends_inside = builder.make(Op::k_le, {end, builder.dim_value(spec.operands[1], 1)});
    std::vector<ValueId> operands = spec.operands;
    operands[0] = builder.make(Op::k_assert, {q, begins_inside, ends_inside},
                               {{"message", std::string("attention: tokens outside the positions of keys")}});
    ir::AttentionParts parts = ir::attention_parts(builder, operands);
    return {ir::join_heads(builder, ir::weigh(builder, parts.weights, parts.values), q)};
}

Values decompose_node(ir::GraphBuilder& builder, const ir::NodeSpec& spec) {
    switch (spec.op) {
        case Op::k_split:
            return decompose_split(builder, spec);
        case Op::k_searchsorted:
            return decompose_searchsorted(builder, spec);
        case Op::k_nonzero:
            return decompose_nonzero(builder, spec);
        case Op::k_unique:
            return decompose_unique(builder, spec);
        case Op::k_attention:
            return decompose_attention(builder, spec);
        default:
            break;
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
