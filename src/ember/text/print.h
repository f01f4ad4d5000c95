// The textual form, written. One form serves people, tests and the cache: canonical_text() is the part of a key's
// pre-image that stands for the graph, so equal graphs print equal bytes in any process. It is on the way of every hit
// and therefore made for speed: one growing string, no streams. The grammar stands in parse.h.
// Tests: test/unit/text_test.cpp, test/filetests/{parse,key,same}.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "ember/ir/graph.h"

namespace ember::text {

/// As it is: nodes in their order, symbols by their names; symbols without one are _0, _1, … in each function.
std::string print(const ir::Module& module);
std::string print(const ir::Graph& graph);

/// What the graph means and nothing else: nodes in canonical order, only those that outputs need; values %0, %1, …;
/// symbols n0, n1, … in order of appearance in each function; functions @f0 (the entry), @f1, … in order of first call.
/// parse() reads it, and prints it as the same text.
std::string canonical_text(const ir::Module& module);

/// What the symbols of one function are called in its text: no two of them alike.
class SymbolNames {
public:
    enum class Style { kNamed, kCanonical };
    explicit SymbolNames(Style style) : style_(style) {}

    const std::string& name(ir::Dim symbol);
    /// "f32[n,64]".
    std::string print(const ir::TensorType& type);
    void append(std::string& out, const ir::TensorType& type);

private:
    std::string make_name(ir::Dim symbol);

    Style style_;
    int64_t unnamed_ = 0;
    std::unordered_map<int64_t, std::string> names_;
    std::unordered_set<std::string> used_;
};

}  // namespace ember::text
