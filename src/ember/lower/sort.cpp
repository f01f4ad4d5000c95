// Sorting, searching, and results whose lengths only the elements tell: calls of the runtime's functions. What has such
// a length is found in two calls: the first one gives the length, the second one fills the results.
#include "ember/lower/lowering.h"

namespace ember::lower {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::ValueId;

namespace {

using Argument = CallRuntime::Argument;

Argument buffer_argument(BufferId buffer) {
    return {Argument::Kind::kBuffer, buffer};
}
Argument scalar_argument(ScalarId scalar) {
    return {Argument::Kind::kScalar, scalar};
}
Argument number_argument(int64_t number) {
    return {Argument::Kind::kNumber, number};
}
Argument type_argument(DType dtype) {
    return number_argument(static_cast<int64_t>(dtype));
}

}  // namespace

ScalarId Lowering::call_for_length(std::string_view function, std::vector<CallRuntime::Argument> arguments) {
    auto result = static_cast<ScalarId>(program_.scalars.size());
    program_.scalars.push_back({Scalar::Kind::kGiven, DType::kI64});
    program_.steps.emplace_back(CallRuntime{function, std::move(arguments), result});
    return result;
}

ScalarId Lowering::product_of(ValueId value, size_t from, size_t to) {
    ScalarId product = constant(1);
    for (size_t axis = from; axis < to; ++axis) {
        product = compute(Op::k_mul, {product, dim_of(value, axis)});
    }
    return product;
}

BufferId Lowering::make_result(const Node& node, uint32_t k, const std::vector<ScalarId>& lengths) {
    ValueId result = node.result(k);
    resolve_symbols(result, node.result());
    name_symbols(result, lengths);
    for (size_t axis = 0; axis < lengths.size(); ++axis) {
        check_equal(lengths[axis], dim_of(result, axis),
                    describe(node) + ": length of axis " + std::to_string(axis) + " is not as stated: %a and %b");
    }
    return buffer_[result] = make_buffer_for(result);
}

void Lowering::emit_sort(const Node& node) {
    ValueId x = node.operands[0];
    auto axis = static_cast<size_t>(node.integer("axis"));
    ScalarId length = dim_of(x, axis);
    ScalarId kept = length;
    if (node.op == Op::k_topk) {
        kept = scalar_of(node.operands[1]);
        program_.steps.emplace_back(Check{Check::Kind::kInside, kept, length,
                                          tables_.message(describe(node) + ": %a elements of an axis of length %b")});
    }
    bool top = node.op == Op::k_topk;
    std::vector<Argument> arguments = {type_argument(graph_.type(x).dtype),
                                       number_argument(top ? 1 : node.integer_or("descending", 0)),
                                       scalar_argument(product_of(x, 0, axis)),
                                       scalar_argument(length),
                                       scalar_argument(product_of(x, axis + 1, graph_.type(x).shape.size())),
                                       scalar_argument(kept),
                                       buffer_argument(buffer_of(x))};
    std::vector<ScalarId> lengths = dims_of(x);
    lengths[axis] = kept;
    BufferId first = make_result(node, 0, lengths);
    BufferId second = top ? make_result(node, 1, lengths) : -1;
    arguments.push_back(buffer_argument(node.op == Op::k_argsort ? -1 : first));
    arguments.push_back(buffer_argument(node.op == Op::k_argsort ? first : second));
    program_.steps.emplace_back(CallRuntime{"sort_rows", std::move(arguments)});
}

void Lowering::emit_searchsorted(const Node& node) {
    ValueId sorted = node.operands[0];
    ValueId values = node.operands[1];
    check(node.operands.size() == 2, "decompose takes the sorter away");
    std::vector<Argument> arguments = {
        type_argument(graph_.type(sorted).dtype),
        number_argument(node.string_or("side", "left") == "right" ? 1 : 0),
        scalar_argument(dim_of(sorted, 0)),
        buffer_argument(buffer_of(sorted)),
        scalar_argument(product_of(values, 0, graph_.type(values).shape.size())),
        buffer_argument(buffer_of(values)),
    };
    arguments.push_back(buffer_argument(make_result(node, 0, dims_of(values))));
    program_.steps.emplace_back(CallRuntime{"search_sorted", std::move(arguments)});
}

void Lowering::emit_nonzero(const Node& node) {
    ValueId x = node.operands[0];
    check(graph_.type(x).rank() == 1, "decompose leaves vectors");
    if (ir::is_complex(graph_.type(x).dtype)) {
        unsupported(node, "has no lowering for complex numbers");
    }
    std::vector<Argument> arguments = {type_argument(graph_.type(x).dtype), scalar_argument(dim_of(x, 0)),
                                       buffer_argument(buffer_of(x))};
    ScalarId count = call_for_length("count_nonzero", arguments);
    arguments.push_back(buffer_argument(make_result(node, 0, {count})));
    program_.steps.emplace_back(CallRuntime{"find_nonzero", std::move(arguments)});
}

void Lowering::emit_unique(const Node& node) {
    ValueId x = node.operands[0];
    const ir::TensorType& type = graph_.type(x);
    bool by_slice = node.find("axis") != nullptr;
    check(type.rank() == (by_slice ? 2 : 1) && node.integer_or("axis", 0) == 0, "decompose leaves vectors and rows");
    ScalarId length = dim_of(x, 0);
    BufferId order = new_buffer(DType::kI64, {length});
    std::vector<Argument> arguments = {
        type_argument(type.dtype),     number_argument(by_slice ? 0 : 1),
        scalar_argument(length),       scalar_argument(product_of(x, 1, type.shape.size())),
        buffer_argument(buffer_of(x)), buffer_argument(order)};
    ScalarId count = call_for_length("unique_order", arguments);
    std::vector<ScalarId> lengths = dims_of(x);
    lengths[0] = count;
    const std::vector<ScalarId> shapes[] = {lengths, {count}, {length}, {count}};
    for (uint32_t k = 0; k < node.result_count; ++k) {
        arguments.push_back(buffer_argument(make_result(node, k, shapes[k])));
    }
    program_.steps.emplace_back(CallRuntime{"unique_slices", std::move(arguments)});
}

void Lowering::emit_bincount(const Node& node) {
    ValueId x = node.operands[0];
    BufferId weights = -1;
    if (node.operands.size() == 3) {
        check_equal(dim_of(x, 0), dim_of(node.operands[2], 0), describe(node) + ": lengths do not match: %a and %b");
        weights = buffer_of(node.operands[2]);
    }
    ScalarId least = scalar_of(node.operands[1]);
    program_.steps.emplace_back(
        Check{Check::Kind::kInside, constant(0), least, tables_.message(describe(node) + ": negative length %b")});
    std::vector<Argument> arguments = {type_argument(graph_.type(x).dtype), scalar_argument(dim_of(x, 0)),
                                       buffer_argument(buffer_of(x)), scalar_argument(least)};
    ScalarId bins = call_for_length("bincount_length", arguments);
    program_.steps.emplace_back(
        Check{Check::Kind::kInside, constant(0), bins, tables_.message(describe(node) + ": a negative number")});
    arguments.pop_back();
    arguments.push_back(buffer_argument(weights));
    arguments.push_back(scalar_argument(bins));
    arguments.push_back(buffer_argument(make_result(node, 0, {bins})));
    program_.steps.emplace_back(CallRuntime{"bincount", std::move(arguments)});
}

}  // namespace ember::lower
