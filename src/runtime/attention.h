// Causal attention of query heads that share keys and values: softmax(q·kᵀ)·v without ever holding all scores.
// Positions are taken in chunks whose length depends on nothing, each with its own maximum and sum, and put together in
// order: results depend neither on the thread count nor on who computes which chunk.
// Tests: test/unit/attention_test.cpp.
#pragma once

#include <cstdint>

namespace ember::runtime {

enum class KeyType : int32_t { kF32 = 0, kF16 = 1 };

/// out[t, h, :] = the sum over j <= first + t of softmax_j(q[t, h, :]·keys[h', j, :]) * values[h', j, :], where
/// h' = h / (heads / kv_heads). All arrays are row-major and contiguous. Positions below 0 and from `capacity` on are
/// not read: the caller makes sure that none is asked for.
struct AttentionArgs {
    KeyType type;  // of keys and values
    int64_t tokens, heads, kv_heads, dim, value_dim;
    int64_t capacity;    // positions that there is room for
    int64_t first;       // position of the first token
    const float* q;      // [tokens, heads, dim]
    const void* keys;    // [kv_heads, capacity, dim]
    const void* values;  // [kv_heads, capacity, value_dim]
    float* out;          // [tokens, heads, value_dim]
};

/// Needs some memory a thread; where there is none, it is slow.
void attention(const AttentionArgs& args);

}  // namespace ember::runtime
