// One function a map of the op table. A row without a declaration in ops.h does not compile: definitions are qualified.
#include "ember/api/tape.h"
#include "ember/ops.h"

namespace ember::api {
namespace {

Variable map(ir::Op op, const std::vector<Operand>& operands) {
    if (op != ir::Op::k_select) {
        return emit_one(op, promote(ir::op_name(op), operands));
    }
    // The condition is bool whatever the dtype of the rest.
    std::vector<Variable> condition = promote("select", {operands[0]});
    std::vector<Variable> choices = promote("select", {operands[1], operands[2]});
    return emit_one(op, {condition[0], choices[0], choices[1]});
}

}  // namespace
}  // namespace ember::api

// The second argument is the name: a row's own, but for those that C++ has taken.
#define EMBER_SECOND(first, second, ...) second
#define EMBER_PICK(...) EMBER_SECOND(__VA_ARGS__)
#define EMBER_TAKEN_and , bit_and
#define EMBER_TAKEN_or , bit_or
#define EMBER_TAKEN_xor , bit_xor
#define EMBER_TAKEN_not , bit_not

#define EMBER_DEFINE(arity, ...) EMBER_DEFINE_##arity(__VA_ARGS__)
#define EMBER_DEFINE_1(op, name)                     \
    ember::Variable ember::name(const Variable& x) { \
        return api::map(op, {x});                    \
    }
#define EMBER_DEFINE_2(op, name)                                      \
    ember::Variable ember::name(const Operand& x, const Operand& y) { \
        return api::map(op, {x, y});                                  \
    }
#define EMBER_DEFINE_3(op, name)                                                        \
    ember::Variable ember::name(const Operand& x, const Operand& y, const Operand& z) { \
        return api::map(op, {x, y, z});                                                 \
    }
#define EMBER_MAP(name, arity, ...) \
    EMBER_DEFINE(arity, ember::ir::Op::k_##name, EMBER_PICK(EMBER_TAKEN_##name, name, ~))
#define EMBER_OP(...)
#include "ember/ir/ops.def"
#undef EMBER_MAP
#undef EMBER_OP

namespace ember {

Variable operator-(const Variable& x) {
    return neg(x);
}
Variable operator+(const Operand& x, const Operand& y) {
    return add(x, y);
}
Variable operator-(const Operand& x, const Operand& y) {
    return sub(x, y);
}
Variable operator*(const Operand& x, const Operand& y) {
    return mul(x, y);
}
Variable operator/(const Operand& x, const Operand& y) {
    return div(x, y);
}
Variable operator<(const Operand& x, const Operand& y) {
    return lt(x, y);
}
Variable operator<=(const Operand& x, const Operand& y) {
    return le(x, y);
}
Variable operator>(const Operand& x, const Operand& y) {
    return gt(x, y);
}
Variable operator>=(const Operand& x, const Operand& y) {
    return ge(x, y);
}

Variable relu(const Variable& x) {
    return max(x, 0);
}

}  // namespace ember
