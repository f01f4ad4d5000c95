// Run-time checks: of lengths that types alone do not settle, of indices, and of places.
#include <algorithm>

#include "ember/lower/lowering.h"

namespace ember::lower {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::ValueId;

void Lowering::check_gather_bounds(const Node& node, size_t first_index) {
    auto id = static_cast<size_t>(&node - graph_.nodes.data());
    if (checked_[id]) {
        return;
    }
    checked_[id] = true;
    bool along = node.op == Op::k_take_along;
    if (node.string_or("bounds", "raise") != "raise") {
        return check_gather_has_elements(node, first_index);
    }
    for (size_t k = first_index; k < node.operands.size(); ++k) {
        size_t axis = along ? static_cast<size_t>(node.integer("axis"))
                            : static_cast<size_t>(node.integers("axes")[k - first_index]);
        std::string text = "index:" + std::string(op_name(node.op)) + ": index %a is out of range for axis " +
                           std::to_string(axis) + " of length %b";
        ScalarId limit = dim_of(node.operands[0], axis);
        program_.steps.emplace_back(CheckIndices{buffer_of(node.operands[k]), limit, tables_.message(text)});
    }
}

/// Every index fits where indices wrap or clip, unless there is nothing to read.
void Lowering::check_gather_has_elements(const Node& node, size_t first_index) {
    ScalarId zero = constant(0);
    for (size_t k = first_index; k < node.operands.size(); ++k) {
        size_t axis = static_cast<size_t>(node.op == Op::k_take_along ? node.integer("axis")
                                                                      : node.integers("axes")[k - first_index]);
        ScalarId count = constant(1);
        for (ScalarId length : dims_of(node.operands[k])) {
            count = compute(Op::k_mul, {count, length});
        }
        ScalarId limit = dim_of(node.operands[0], axis);
        ScalarId fine = compute(
            Op::k_or, {compute(Op::k_gt, {limit, zero}, DType::kBool), compute(Op::k_eq, {count, zero}, DType::kBool)},
            DType::kBool);
        program_.steps.emplace_back(
            Check{Check::Kind::kTrue, fine, limit,
                  tables_.message("index:" + std::string(op_name(node.op)) + ": indices into axis " +
                                  std::to_string(axis) + " of length %b")});
    }
}

void Lowering::check_length(const Node& node, ScalarId length) {
    program_.steps.emplace_back(
        Check{Check::Kind::kInside, constant(0), length, tables_.message(describe(node) + ": negative length %b")});
}

/// Lengths that must not be negative, and axes that must have elements.
void Lowering::check_extents(const Node& node) {
    if (node.op == Op::k_iota) {
        check_length(node, scalar_of(node.operands[0]));
    } else if (node.op == Op::k_pad) {
        check_length(node, scalar_of(node.operands[2]));
        check_length(node, scalar_of(node.operands[3]));
    } else if (node.op == Op::k_reshape || node.op == Op::k_broadcast) {
        for (size_t k = 1; k < node.operands.size(); ++k) {
            check_length(node, scalar_of(node.operands[k]));
        }
    } else if (ir::kind(node.op) == ir::OpKind::kArgReduce) {
        ScalarId length = dim_of(node.operands[0], static_cast<size_t>(node.integer("axis")));
        program_.steps.emplace_back(Check{Check::Kind::kTrue, compute(Op::k_gt, {length, constant(0)}, DType::kBool),
                                          length, tables_.message(describe(node) + ": an axis of length %b")});
    }
}

/// The window of a gather or scatter: what axes of the operand are before the indexed ones, the index tensors'
/// together, and those behind.
Lowering::Window Lowering::window_of(const Node& node, size_t first_index) {
    const auto& axes = node.integers("axes");
    const ir::Shape& x = graph_.type(node.operands[0]).shape;
    Window window;
    auto add = [&](ValueId value, size_t axis) {
        window.shape.push_back(graph_.type(value).shape[axis]);
        window.lengths.push_back(dim_of(value, axis));
    };
    for (size_t axis = 0; axis < static_cast<size_t>(axes.front()); ++axis) {
        add(node.operands[0], axis);
    }
    for (size_t i = 0; i < graph_.type(node.operands[first_index]).shape.size(); ++i) {
        size_t k = first_index;
        while (k + 1 < node.operands.size() && graph_.type(node.operands[k]).shape[i] == ir::Dim(1)) {
            ++k;
        }
        add(node.operands[k], i);
    }
    for (size_t axis = static_cast<size_t>(axes.back()) + 1; axis < x.size(); ++axis) {
        add(node.operands[0], axis);
    }
    return window;
}

/// Index tensors that go together, and updates, must have the window's lengths, or 1 as their types know.
void Lowering::check_window(const Node& node) {
    auto need = [&](ValueId value, size_t axis, ScalarId length) {
        if (graph_.type(value).shape[axis] != ir::Dim(1)) {
            check_equal(dim_of(value, axis), length,
                        describe(node) + ": lengths do not match: %a and %b, axis " + std::to_string(axis) + " of " +
                            graph_.type(value).to_string());
        }
    };
    if (node.op == Op::k_take_along) {
        for (size_t axis = 0; axis < graph_.type(node.operands[1]).shape.size(); ++axis) {
            if (static_cast<int64_t>(axis) != node.integer("axis")) {
                check_equal(dim_of(node.operands[1], axis), dim_of(node.operands[0], axis),
                            describe(node) + ": lengths of axis " + std::to_string(axis) + " do not match: %a and %b");
            }
        }
        return;
    }
    size_t first_index = node.op == Op::k_scatter ? 2 : 1;
    Window window = window_of(node, first_index);
    auto first = static_cast<size_t>(node.integers("axes").front());
    for (size_t k = first_index; k < node.operands.size(); ++k) {
        for (size_t i = 0; i < graph_.type(node.operands[k]).shape.size(); ++i) {
            need(node.operands[k], i, window.lengths[first + i]);
        }
    }
    for (size_t axis = 0; node.op == Op::k_scatter && axis < window.lengths.size(); ++axis) {
        need(node.operands[1], axis, window.lengths[axis]);
    }
}

/// Types may state numbers and symbols for lengths that only the run knows.
void Lowering::check_stated(const Node& node) {
    switch (ir::kind(node.op)) {
        case ir::OpKind::kMap:
            return;  // each operand has been compared
        case ir::OpKind::kCast:
        case ir::OpKind::kReduce:
        case ir::OpKind::kArgReduce:
        case ir::OpKind::kScan:
        case ir::OpKind::kContract:
        case ir::OpKind::kView:
        case ir::OpKind::kPad:
        case ir::OpKind::kConcat:
        case ir::OpKind::kSplit:
        case ir::OpKind::kGather:
        case ir::OpKind::kScatter:
        case ir::OpKind::kUpdate:
        case ir::OpKind::kAssert:
            break;
        default:
            if (node.op != Op::k_iota) {
                return;  // their steps name the lengths
            }
    }
    for (uint32_t k = 0; k < node.result_count; ++k) {
        ValueId result = node.result(k);
        for (size_t axis = 0; axis < graph_.type(result).shape.size(); ++axis) {
            check_equal(
                made_dim(result, axis), dim_of(result, axis),
                describe(node) + ": length %a of axis " + std::to_string(axis) + " of the result is not %b, as stated");
        }
    }
}

// Long because it is a switch with one case an op.
/// Run-time checks of lengths that types alone do not settle.
void Lowering::check_node(const Node& node) {
    auto need = [&](ScalarId a, ScalarId b, const std::string& what) {
        check_equal(a, b, describe(node) + ": " + what + ": %a and %b");
    };
    switch (ir::kind(node.op)) {
        case ir::OpKind::kMap: {
            const ir::Shape& shape = graph_.type(node.result()).shape;
            for (ValueId operand : node.operands) {
                const ir::Shape& own = graph_.type(operand).shape;
                for (size_t i = 0; i < own.size(); ++i) {
                    size_t axis = shape.size() - own.size() + i;
                    if (own[i] != ir::Dim(1) && own[i] != shape[axis]) {
                        need(dim_of(operand, i), dim_of(node.result(), axis),
                             "lengths of axis " + std::to_string(axis) + " do not match");
                    }
                }
            }
            break;
        }
        case ir::OpKind::kContract:
            for (std::string_view name : {"contract", "batch"}) {
                const auto& pairs = node.integers(name);
                for (size_t i = 0; i < pairs.size(); i += 2) {
                    need(dim_of(node.operands[0], static_cast<size_t>(pairs[i])),
                         dim_of(node.operands[1], static_cast<size_t>(pairs[i + 1])),
                         "lengths of axes " + std::to_string(pairs[i]) + " and " + std::to_string(pairs[i + 1]) +
                             " do not match");
                }
            }
            break;
        case ir::OpKind::kConcat:
            for (size_t k = 0; k < node.operands.size(); ++k) {
                for (size_t i = 0; i < graph_.type(node.result()).shape.size(); ++i) {
                    if (static_cast<int64_t>(i) != node.integer("axis")) {
                        need(dim_of(node.operands[k], i), dim_of(node.result(), i),
                             "lengths of axis " + std::to_string(i) + " do not match");
                    }
                }
            }
            break;
        case ir::OpKind::kGather:
        case ir::OpKind::kScatter:
            check_window(node);
            break;
        default:
            break;
    }
    if (node.op == Op::k_reshape) {
        ScalarId before = constant(1);
        ScalarId after = constant(1);
        std::vector<size_t> shared;  // axes of the operand that the result has, too
        const ir::Shape& from = graph_.type(node.operands[0]).shape;
        const ir::Shape& to = graph_.type(node.result()).shape;
        for (const ReshapeSegment& s : match_reshape(from, to)) {
            if (s.from_end - s.from_begin == 1 && s.to_end - s.to_begin == 1 && from[s.from_begin] == to[s.to_begin]) {
                shared.push_back(s.from_begin);
                continue;
            }
            for (size_t i = s.from_begin; i < s.from_end; ++i) {
                before = compute(Op::k_mul, {before, dim_of(node.operands[0], i)});
            }
            for (size_t j = s.to_begin; j < s.to_end; ++j) {
                after = compute(Op::k_mul, {after, scalar_of(node.operands[j + 1])});
            }
        }
        for (size_t i = 0; i < shared.size() && before != after; ++i) {  // both are 0 where one of these is
            before = compute(Op::k_mul, {before, dim_of(node.operands[0], shared[i])});
            after = compute(Op::k_mul, {after, dim_of(node.operands[0], shared[i])});
        }
        need(before, after, "numbers of elements do not match");
    }
    if (node.op == Op::k_split) {
        ScalarId length = dim_of(node.operands[0], static_cast<size_t>(node.integer("axis")));
        ScalarId total = constant(0);
        for (size_t k = 1; k < node.operands.size(); ++k) {
            ScalarId size = scalar_of(node.operands[k]);
            total = compute(Op::k_add, {total, size});
            program_.steps.emplace_back(
                Check{Check::Kind::kInside, size, length,
                      tables_.message(describe(node) + ": size %a does not fit an axis of length %b")});
        }
        need(total, length, "sizes do not add up to the length");
    }
    check_extents(node);
    check_stated(node);
    if (node.op == Op::k_broadcast) {
        const ir::Shape& from = graph_.type(node.operands[0]).shape;
        const ir::Shape& to = graph_.type(node.result()).shape;
        for (size_t i = 0; i < from.size(); ++i) {
            size_t j = to.size() - from.size() + i;
            if (from[i] != ir::Dim(1) && from[i] != to[j]) {
                need(dim_of(node.operands[0], i), dim_of(node.result(), j), "cannot broadcast");
            }
        }
    }
    if (node.op == Op::k_slice) {
        auto axis = static_cast<size_t>(node.integer("axis"));
        ScalarId start = scalar_of(node.operands[1]);
        ScalarId size = scalar_of(node.operands[2]);
        ScalarId length = dim_of(node.operands[0], axis);
        bool whole = is_constant(start, 0) && size == length && node.integer_or("step", 1) == 1;
        if (!whole) {
            int64_t step = node.integer_or("step", 1);
            check_length(node, size);
            ScalarId reach = compute(Op::k_mul, {compute(Op::k_sub, {size, constant(1)}), constant(step)});
            ScalarId last = compute(Op::k_add, {start, reach});
            ScalarId empty = compute(Op::k_le, {size, constant(0)}, DType::kBool);
            auto inside = [&](ScalarId at) {
                return compute(
                    Op::k_and,
                    {compute(Op::k_ge, {at, constant(0)}, DType::kBool), compute(Op::k_lt, {at, length}, DType::kBool)},
                    DType::kBool);
            };
            ScalarId both = compute(Op::k_and, {inside(start), inside(last)}, DType::kBool);
            ScalarId fine =
                compute(Op::k_or,
                        {compute(Op::k_eq, {size, constant(0)}, DType::kBool),
                         compute(Op::k_and, {compute(Op::k_not, {empty}, DType::kBool), both}, DType::kBool)},
                        DType::kBool);
            program_.steps.emplace_back(
                Check{Check::Kind::kTrue, fine, start,
                      tables_.message("index:" + describe(node) + ": %a elements from %b with step " +
                                      std::to_string(step) + " do not lie in axis " + std::to_string(axis)),
                      size});
        }
    }
}

}  // namespace ember::lower
