// Attention by other ops: see attention.h.
#include "ember/ir/attention.h"

#include <limits>

namespace ember::ir {
namespace {

using Axes = std::vector<int64_t>;

ValueId dot(GraphBuilder& b, ValueId x, ValueId y, Axes contract, Axes batch) {
    return b.make(Op::k_dot_general, {x, y}, {{"contract", std::move(contract)}, {"batch", std::move(batch)}});
}

/// x with its last axis reduced to length 1.
ValueId reduced(GraphBuilder& b, Op op, ValueId x) {
    ValueId r = b.make(op, {x}, {{"axes", Axes{3}}});
    return b.make(Op::k_reshape, {r, b.dim_value(r, 0), b.dim_value(r, 1), b.dim_value(r, 2), b.constant_int(1)});
}

ValueId in_dtype(GraphBuilder& b, ValueId x, DType dtype) {
    return b.type(x).dtype == dtype ? x : b.make(Op::k_cast, {x}, {{"dtype", dtype}});
}

}  // namespace

ValueId score(GraphBuilder& b, ValueId grouped, ValueId keys) {
    return dot(b, grouped, keys, {3, 2}, {1, 0});
}

ValueId score_of_values(GraphBuilder& b, ValueId rows, ValueId values) {
    return dot(b, rows, values, {3, 2}, {0, 0});
}

ValueId weigh(GraphBuilder& b, ValueId weights, ValueId values) {
    return dot(b, weights, values, {3, 1}, {0, 0});
}

ValueId softmax_change(GraphBuilder& b, ValueId weights, ValueId scores) {
    ValueId sum = reduced(b, Op::k_reduce_sum, b.make(Op::k_mul, {weights, scores}));
    return b.make(Op::k_mul, {weights, b.make(Op::k_sub, {scores, sum})});
}

AttentionParts attention_parts(GraphBuilder& b, const std::vector<ValueId>& operands) {
    ValueId q = operands[0];
    DType dtype = b.type(q).dtype;
    AttentionParts parts{};
    parts.keys = in_dtype(b, operands[1], dtype);
    parts.values = in_dtype(b, operands[2], dtype);
    ValueId tokens = b.dim_value(q, 0);
    ValueId kv_heads = b.dim_value(parts.keys, 0);
    Dim heads = b.type(q).shape[1];
    Dim shared = b.type(parts.keys).shape[0];
    bool known = heads.is_static() && shared.is_static();
    ValueId group =
        known ? b.constant_int(heads.size() / shared.size()) : b.make(Op::k_floor_div, {b.dim_value(q, 1), kv_heads});
    parts.grouped = b.make(Op::k_reshape, {q, tokens, kv_heads, group, b.dim_value(q, 2)});
    ValueId scores = score(b, parts.grouped, parts.keys);
    std::vector<Attribute> whole{{"dtype", DType::kI64}};
    ValueId columns = b.make(Op::k_iota, {b.dim_value(parts.keys, 1)}, whole);
    ValueId rows = b.make(Op::k_add, {b.make(Op::k_iota, {tokens}, whole), operands[3]});
    rows = b.make(Op::k_reshape, {rows, tokens, b.constant_int(1), b.constant_int(1)});
    ValueId lowest = b.constant(dtype, -std::numeric_limits<double>::infinity());
    ValueId masked = b.make(Op::k_select, {b.make(Op::k_le, {columns, rows}), scores, lowest});
    ValueId e = b.make(Op::k_exp, {b.make(Op::k_sub, {masked, reduced(b, Op::k_reduce_max, masked)})});
    parts.weights = b.make(Op::k_div, {e, reduced(b, Op::k_reduce_sum, e)});
    return parts;
}

ValueId join_heads(GraphBuilder& b, ValueId x, ValueId q) {
    ValueId turned = b.make(Op::k_transpose, {x}, {{"perm", Axes{1, 0, 2, 3}}});
    return b.make(Op::k_reshape, {turned, b.dim_value(q, 0), b.dim_value(q, 1), b.dim_value(x, 3)});
}

ValueId split_heads(GraphBuilder& b, ValueId x, const AttentionParts& parts) {
    ValueId grouped = b.make(Op::k_reshape, {x, b.dim_value(parts.grouped, 0), b.dim_value(parts.grouped, 1),
                                             b.dim_value(parts.grouped, 2), b.dim_value(x, 2)});
    return b.make(Op::k_transpose, {grouped}, {{"perm", Axes{1, 0, 2, 3}}});
}

}  // namespace ember::ir
