// The op attention by other ops: what derivatives are made of, and what the pass decompose makes of dtypes that the
// runtime's attention does not take. Tests: test/filetests/decompose, test/unit/autodiff_test.cpp.
#pragma once

#include <vector>

#include "ember/ir/builder.h"

namespace ember::ir {

/// With group = heads / kv_heads; keys and values in q's dtype.
struct AttentionParts {
    ValueId grouped;  // q [tokens, kv_heads, group, dim]
    ValueId keys;     // [kv_heads, capacity, dim]
    ValueId values;   // [kv_heads, capacity, value_dim]
    ValueId weights;  // [kv_heads, tokens, group, capacity], 0 where a token does not see a position
};

/// Of the operands (q, keys, values, first); whether positions lie inside is not checked.
AttentionParts attention_parts(GraphBuilder& builder, const std::vector<ValueId>& operands);

/// [kv_heads, tokens, group, width] as [tokens, heads, width], and back.
ValueId join_heads(GraphBuilder& builder, ValueId x, ValueId q);
ValueId split_heads(GraphBuilder& builder, ValueId x, const AttentionParts& parts);

/// weights · values, [kv_heads, tokens, group, value_dim].
ValueId weigh(GraphBuilder& builder, ValueId weights, ValueId values);
/// grouped · keysᵀ, [kv_heads, tokens, group, capacity].
ValueId score(GraphBuilder& builder, ValueId grouped, ValueId keys);
/// The same of values, for rows [kv_heads, tokens, group, value_dim].
ValueId score_of_values(GraphBuilder& builder, ValueId rows, ValueId values);
/// What a change of the scores does to the weights: weights * (scores - sum(weights * scores)). It is its own
/// transpose.
ValueId softmax_change(GraphBuilder& builder, ValueId weights, ValueId scores);

}  // namespace ember::ir
