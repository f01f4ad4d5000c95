// Attention: one call of the runtime's function.
#include "ember/lower/lowering.h"

namespace ember::lower {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::ValueId;

void Lowering::emit_attention(const Node& node) {
    using Argument = CallRuntime::Argument;
    ValueId q = node.operands[0];
    ValueId keys = node.operands[1];
    ValueId values = node.operands[2];
    check(graph_.type(q).dtype == DType::kF32, "decompose takes other dtypes away");
    check_equal(dim_of(q, 2), dim_of(keys, 2), describe(node) + ": queries have length %a, keys %b");
    check_equal(dim_of(keys, 1), dim_of(values, 1), describe(node) + ": %a keys and %b values");
    check_equal(dim_of(keys, 0), dim_of(values, 0), describe(node) + ": %a heads of keys and %b of values");
    check_equal(compute(Op::k_mod, {dim_of(q, 1), dim_of(keys, 0)}), constant(0),
                describe(node) + ": the number of heads is no multiple of that of keys; the rest is %a");
    ScalarId first = scalar_of(node.operands[3]);
    ScalarId room = compute(Op::k_sub, {dim_of(keys, 1), dim_of(q, 0)});
    program_.steps.emplace_back(
        Check{Check::Kind::kInside, first, room,
              tables_.message(describe(node) + ": the first position is %a, the last that leaves room is %b")});
    auto number = [](int64_t value) { return Argument{Argument::Kind::kNumber, value}; };
    auto scalar = [](ScalarId value) { return Argument{Argument::Kind::kScalar, value}; };
    auto read = [&](ValueId value) { return Argument{Argument::Kind::kRead, buffer_of(value)}; };
    std::vector<Argument> arguments = {number(graph_.type(keys).dtype == DType::kF16 ? 1 : 0),
                                       scalar(dim_of(q, 0)),
                                       scalar(dim_of(q, 1)),
                                       scalar(dim_of(keys, 0)),
                                       scalar(dim_of(q, 2)),
                                       scalar(dim_of(values, 2)),
                                       scalar(dim_of(keys, 1)),
                                       scalar(first),
                                       read(q),
                                       read(keys),
                                       read(values)};
    BufferId to = make_buffer_for(node.result());
    buffer_[node.result()] = to;
    arguments.push_back({Argument::Kind::kBuffer, to});
    program_.steps.emplace_back(CallRuntime{"attention", std::move(arguments), -1, false});
}

}  // namespace ember::lower
