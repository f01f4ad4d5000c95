// The rule table: what may stand in the place of an expression of map ops, as data (rules.def). simplify() applies it;
// test/unit/rules_test.cpp holds every row against the interpreter, on ordinary and special operands of each dtype.
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "ember/ir/formula.h"

namespace ember::rewrite {

/// How much of the result a rule keeps.
enum class Fp : uint8_t {
    kExact,          // every bit, but for which NaN it is
    kNoSignedZeros,  // all but the sign of a zero
    kReassociates,   // in real numbers the same; other roundings; NaN and infinities stay
    kContracts,      // rounded fewer times
    kImproves,       // as kContracts, and right where the original overflows or cancels
    kForgives,       // as kImproves, and a number where the original is none: 0*inf, 0/0 or inf/inf
};

struct Rule {
    std::string_view name;
    std::string_view from;  // a formula; equal letters stand for equal values, numbers for constants of that value
    std::string_view to;
    std::string_view when;  // "x:float c:const …", conditions on the letters; see kConditions in rules.cpp
    Fp fp;
    std::string_view why;
};

std::span<const Rule> rules();

/// Whether a letter of a rule may stand for a value.
using Condition = bool (*)(const ir::Graph& graph, ir::ValueId value);

struct CompiledRule {
    const Rule* rule;
    ir::Formula from;
    ir::Formula to;
    std::vector<std::pair<char, Condition>> conditions;
};

/// Rules by the op at the root of `from`.
class RuleSet {
public:
    explicit RuleSet(std::span<const Rule> rules);
    const std::vector<CompiledRule>& at(ir::Op root) const { return rules_[static_cast<size_t>(root)]; }

    /// All rows of the table.
    static const RuleSet& all();

private:
    std::array<std::vector<CompiledRule>, ir::kOpCount> rules_;
};

/// The constant behind a value, looked for through broadcasts, if all its elements are equal.
const ir::Literal* splat(const ir::Graph& graph, ir::ValueId value);

/// Does op(operands) have the form of the pattern? Fills in the letters.
bool matches(const ir::Graph& graph, const CompiledRule& rule, std::span<const ir::ValueId> operands,
             ir::FormulaVariables& letters);

/// Operands of these may change places.
bool is_commutative(ir::Op op);

}  // namespace ember::rewrite
