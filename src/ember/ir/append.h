// Appending a whole graph to another one: what inlining, unrolling and differentiating through regions need.
// Tests: test/unit/rewrite_test.cpp, test/filetests/inline_calls.
#pragma once

#include <unordered_map>
#include <vector>

#include "ember/ir/builder.h"

namespace ember::ir {

/// What symbols become.
using SymbolMap = std::unordered_map<int64_t, Dim>;  // symbol_id() → dimension

Dim substitute(Dim dim, const SymbolMap& symbols);
TensorType substitute(TensorType type, const SymbolMap& symbols);
/// What becomes of symbols that `from`'s parameters do not have.
enum class Symbols {
    kKeep,   // a region of this graph: they mean the same
    kFresh,  // another function: each copy has its own
};

/// Appends the nodes of `from`, whose parameters become `arguments` and the symbols of their types those of the
/// arguments. Gives the value in `builder` of every value of `from`.
std::vector<ValueId> append_values(GraphBuilder& builder, const Graph& from, const std::vector<ValueId>& arguments,
                                   Symbols symbols);
/// The same; gives the values of the outputs of `from`.
std::vector<ValueId> append_graph(GraphBuilder& builder, const Graph& from, const std::vector<ValueId>& arguments,
                                  Symbols symbols);

}  // namespace ember::ir
