// The public operations that sort and search.
#include "ember/api/tape.h"
#include "ember/ops.h"

namespace ember {

using api::as_index;
using api::emit;
using api::emit_one;
using api::normalize_axis;

namespace {

std::vector<ir::Attribute> along(std::string_view op, const Variable& x, int64_t axis, Order order) {
    return {{"axis", normalize_axis(op, axis, x.rank())}, {"descending", int64_t{order == Order::kDescending ? 1 : 0}}};
}

}  // namespace

Variable sort(const Variable& x, int64_t axis, Order order) {
    return emit_one(ir::Op::k_sort, {x}, along("sort", x, axis, order));
}

Variable argsort(const Variable& x, int64_t axis, Order order) {
    return emit_one(ir::Op::k_argsort, {x}, along("argsort", x, axis, order));
}

TopK topk(const Variable& x, const Operand& k, int64_t axis) {
    std::vector<Variable> results =
        emit(ir::Op::k_topk, {x, as_index("topk", k)}, {{"axis", normalize_axis("topk", axis, x.rank())}});
    return {results[0], results[1]};
}

Variable searchsorted(const Variable& sorted, const Variable& values, Side side) {
    std::string name = side == Side::kLeft ? "left" : "right";
    return emit_one(ir::Op::k_searchsorted, {sorted, values}, {{"side", std::move(name)}});
}

std::vector<Variable> nonzero(const Variable& x) {
    return emit(ir::Op::k_nonzero, {x});
}

Unique unique(const Variable& x, std::optional<int64_t> axis) {
    std::vector<ir::Attribute> attributes;
    if (axis) {
        attributes.push_back({"axis", normalize_axis("unique", *axis, x.rank())});
    }
    std::vector<Variable> results = emit(ir::Op::k_unique, {x}, std::move(attributes));
    return {results[0], results[1], results[2], results[3]};
}

Variable bincount(const Variable& x, const Operand& least) {
    return emit_one(ir::Op::k_bincount, {x, as_index("bincount", least)});
}

Variable bincount(const Variable& x, const Variable& weights, const Operand& least) {
    return emit_one(ir::Op::k_bincount, {x, as_index("bincount", least), weights});
}

}  // namespace ember
