// Folding of constants; see fold.h.
#include "ember/rewrite/fold.h"

#include <algorithm>

#include "ember/interp/evaluate.h"

namespace ember::rewrite {
namespace {

using ir::DType;
using ir::Literal;
using ir::NodeSpec;
using ir::Op;
using ir::OpKind;

bool is_foldable(const NodeSpec& spec) {
    switch (ir::kind(spec.op)) {
        case OpKind::kSource:
        case OpKind::kControl:
        case OpKind::kAssert:
        case OpKind::kHost:
            return false;
        default:
            return spec.op != Op::k_broadcast && !spec.operands.empty() && spec.regions.empty();
    }
}

/// Arithmetic of lengths, by far the most common case.
std::optional<int64_t> fold_integers(Op op, int64_t a, int64_t b) {
    auto wrap = [](uint64_t value) { return static_cast<int64_t>(value); };
    auto x = static_cast<uint64_t>(a);
    auto y = static_cast<uint64_t>(b);
    switch (op) {
        case Op::k_add:
            return wrap(x + y);
        case Op::k_sub:
            return wrap(x - y);
        case Op::k_mul:
            return wrap(x * y);
        case Op::k_max:
            return std::max(a, b);
        case Op::k_min:
            return std::min(a, b);
        default:
            return std::nullopt;
    }
}

std::optional<int64_t> fold_scalar(const ir::Graph& graph, const NodeSpec& spec) {
    if (spec.operands.size() != 2) {
        return std::nullopt;
    }
    const Literal& a = *graph.literal(spec.operands[0]);
    const Literal& b = *graph.literal(spec.operands[1]);
    bool integers = a.dtype == DType::kI64 && b.dtype == DType::kI64 && a.shape.empty() && b.shape.empty();
    return integers ? fold_integers(spec.op, literal_as_int(a), literal_as_int(b)) : std::nullopt;
}

std::optional<std::vector<Literal>> evaluate(const ir::Graph& graph, const NodeSpec& spec) {
    ir::GraphBuilder builder("folded");
    NodeSpec alone = spec;
    alone.stated.clear();
    for (ir::ValueId& operand : alone.operands) {
        operand = builder.constant(*graph.literal(operand));
    }
    auto results = builder.add(std::move(alone));
    if (!results.ok()) {
        return std::nullopt;
    }
    for (ir::ValueId result : results.value()) {
        const ir::TensorType& type = builder.type(result);
        if (!type.is_static() || type.static_elements() > static_cast<int64_t>(ir::kMaxLiteralBytes) ||
            type.static_elements() * ir::element_bytes(type.dtype) > static_cast<int64_t>(ir::kMaxLiteralBytes)) {
            return std::nullopt;
        }
        builder.output(result);
    }
    auto tensors = interp::evaluate(builder.take(), nullptr, {});
    if (!tensors.ok()) {
        return std::nullopt;
    }
    std::vector<Literal> literals;
    for (const interp::Tensor& tensor : tensors.value()) {
        literals.push_back({tensor.dtype, tensor.shape, std::string(tensor.bytes.begin(), tensor.bytes.end())});
    }
    return literals;
}

}  // namespace

std::optional<std::vector<Literal>> fold(const ir::Graph& graph, const NodeSpec& spec) {
    auto is_constant = [&](ir::ValueId operand) { return graph.literal(operand) != nullptr; };
    if (!is_foldable(spec) || !std::all_of(spec.operands.begin(), spec.operands.end(), is_constant)) {
        return std::nullopt;
    }
    if (std::optional<int64_t> number = fold_scalar(graph, spec)) {
        return std::vector<Literal>{ir::scalar_literal(DType::kI64, *number)};
    }
    return evaluate(graph, spec);
}

}  // namespace ember::rewrite
