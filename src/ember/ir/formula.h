// Formulas: small expressions over ops, in which ops.def writes derivatives and the rewriting rules their two sides:
//
//   expression := term (('+' | '-') term)*
//   term       := unary (('*' | '/') unary)*
//   unary      := '-' unary | primary          a minus before a number is part of the number
//   primary    := number | variable | op '(' expression (',' expression)* ')' | '(' expression ')'
//   number     := digits ['.' digits] [('e' | 'E') ['-'] digits] | 'inf' | 'nan'
//   variable   := one lower-case letter
//   op         := the name of a map op
//
// A number takes the dtype of the operands it stands with, or else of the whole expression. Broadcasting is that of
// the map ops. Tests: test/unit/formula_test.cpp.
#pragma once

#include <array>
#include <functional>
#include <string_view>
#include <vector>

#include "ember/ir/builder.h"
#include "ember/support/result.h"

namespace ember::ir {

struct Formula {
    enum class Kind : uint8_t { kNumber, kVariable, kOp };
    struct Node {
        Kind kind;
        double number = 0;
        char variable = 0;
        Op op = Op::k_neg;
        std::vector<uint32_t> operands = {};  // indices of nodes; every one before its user
    };
    std::vector<Node> nodes;  // the last one is the root

    const Node& root() const { return nodes.back(); }
    bool is_number(double value) const {
        return nodes.size() == 1 && nodes[0].kind == Kind::kNumber && nodes[0].number == value;
    }
};

/// Values of the variables 'a' to 'z'; kNone where there is none.
class FormulaVariables {
public:
    FormulaVariables() { values_.fill(kNone); }
    ValueId& operator[](char name) { return values_.at(static_cast<size_t>(name - 'a')); }
    ValueId operator[](char name) const { return values_.at(static_cast<size_t>(name - 'a')); }

private:
    std::array<ValueId, 26> values_;
};

Result<Formula> parse_formula(std::string_view text);
/// The formulas of a list separated by ';'. Parsed once for each text, which must be right: those of the tables.
const std::vector<Formula>& formulas(std::string_view text);

/// Appends the nodes of a formula; `dtype` is that of numbers that stand alone.
ValueId build_formula(GraphBuilder& builder, const Formula& formula, const FormulaVariables& variables, DType dtype);
/// The same, its nodes made by `make`.
using MakeNode = std::function<ValueId(Op op, std::vector<ValueId> operands)>;
ValueId build_formula(GraphBuilder& builder, const Formula& formula, const FormulaVariables& variables, DType dtype,
                      const MakeNode& make);

}  // namespace ember::ir
