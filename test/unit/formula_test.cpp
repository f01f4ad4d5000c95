// The mini-language of formulas: precedence, numbers, dtypes of numbers, errors.
#include "ember/ir/formula.h"

#include <gtest/gtest.h>

#include <cmath>

namespace ember::ir {
namespace {

/// Fully bracketed.
std::string show(const Formula& formula, uint32_t at) {
    const Formula::Node& node = formula.nodes[at];
    switch (node.kind) {
        case Formula::Kind::kNumber: {
            std::string text = std::to_string(node.number);
            return text.substr(0, text.find_last_not_of('0') + 1);
        }
        case Formula::Kind::kVariable:
            return std::string(1, node.variable);
        default:
            break;
    }
    std::string text = std::string(op_name(node.op)) + "(";
    for (size_t k = 0; k < node.operands.size(); ++k) {
        text += (k == 0 ? "" : ",") + show(formula, node.operands[k]);
    }
    return text + ")";
}

std::string parsed(std::string_view text) {
    auto formula = parse_formula(text);
    return formula.ok() ? show(*formula, static_cast<uint32_t>(formula->nodes.size()) - 1) : formula.error().message;
}

TEST(Formula, Precedence) {
    EXPECT_EQ(parsed("x+y*z"), "add(x,mul(y,z))");
    EXPECT_EQ(parsed("x-y-z"), "sub(sub(x,y),z)");
    EXPECT_EQ(parsed("x/(y/z)"), "div(x,div(y,z))");
    EXPECT_EQ(parsed("-x*y"), "mul(neg(x),y)");
    EXPECT_EQ(parsed("--x"), "neg(neg(x))");
    EXPECT_EQ(parsed("select(lt(x, y), x, -y)"), "select(lt(x,y),x,neg(y))");
}

TEST(Formula, Numbers) {
    EXPECT_EQ(parsed("-0.5"), "-0.5");
    EXPECT_EQ(parsed("x+-1"), "add(x,-1.)");
    EXPECT_EQ(parsed("1e-2"), "0.01");
    EXPECT_EQ(parsed("-inf"), "-inf");
    EXPECT_TRUE(std::signbit(parse_formula("-0")->root().number));
}

TEST(Formula, Errors) {
    EXPECT_EQ(parsed("x+"), "formula 'x+', column 3: expected a number, a letter or a map op");
    EXPECT_EQ(parsed("x y"), "formula 'x y', column 3: expected an operator or the end");
    EXPECT_EQ(parsed("(x"), "formula '(x', column 3: expected ')'");
    EXPECT_EQ(parsed("sin(x,y)"), "formula 'sin(x,y)', column 8: expected 1 operands");
    EXPECT_EQ(parsed("reduce_sum(x)"), "formula 'reduce_sum(x)', column 11: expected a number, a letter or a map op");
    EXPECT_FALSE(parse_formula(std::string(500, '(')).ok());
    EXPECT_FALSE(parse_formula(std::string(500, '-')).ok());
    EXPECT_FALSE(parse_formula("").ok());
}

TEST(Formula, NumbersTakeTheDTypeOfTheirSiblings) {
    GraphBuilder builder;
    FormulaVariables variables;
    variables['x'] = builder.param({DType::kF32, {}});
    variables['i'] = builder.param({DType::kI64, {}});
    const Formula& formula = formulas("select(lt(i,2),x*0.5,1)")[0];
    ValueId value = build_formula(builder, formula, variables, DType::kF64);
    EXPECT_EQ(builder.type(value).dtype, DType::kF32);
    EXPECT_EQ(formulas("x;y;1").size(), 3);
    EXPECT_TRUE(formulas("x;y;0")[2].is_number(0));
    EXPECT_EQ(&formulas("x;y;0"), &formulas("x;y;0"));
}

}  // namespace
}  // namespace ember::ir
