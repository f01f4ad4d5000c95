// Scalars: the driver's rank-0 values and the lengths of every axis. Both are emitted on demand, at the end of the
// steps so far, and kept; a length is computed from operands by the rule of its op.
#include <algorithm>

#include "ember/lower/lowering.h"

namespace ember::lower {

using ir::Dim;
using ir::DType;
using ir::kNone;
using ir::Node;
using ir::Op;
using ir::OpKind;
using ir::ValueId;

std::string scalar_key(const Scalar& scalar) {
    std::string key;
    auto put = [&key](int64_t value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
    put(static_cast<int64_t>(scalar.kind));
    put(static_cast<int64_t>(scalar.dtype));
    put(static_cast<int64_t>(scalar.map_op));
    put(scalar.index);
    put(scalar.axis);
    for (ScalarId arg : scalar.args) {
        put(arg);
    }
    return key + scalar.literal.bytes;
}

ScalarId Lowering::constant(ir::Literal literal) {
    Scalar scalar{Scalar::Kind::kConst, literal.dtype};
    literal.shape.clear();
    scalar.literal = std::move(literal);
    auto [entry, added] = known_scalars_.emplace(scalar_key(scalar), static_cast<ScalarId>(program_.scalars.size()));
    if (added) {
        program_.scalars.push_back(std::move(scalar));
    }
    return entry->second;
}

ScalarId Lowering::constant(int64_t value) {
    return constant(ir::scalar_literal(DType::kI64, value));
}

bool Lowering::is_constant(ScalarId scalar, int64_t value) const {
    const Scalar& s = program_.scalars[static_cast<size_t>(scalar)];
    return s.kind == Scalar::Kind::kConst && s.dtype == DType::kI64 && ir::literal_as_int(s.literal) == value;
}

ScalarId Lowering::compute(Op op, std::vector<ScalarId> args, DType dtype) {
    bool lengths = dtype == DType::kI64 && args.size() == 2;
    if (lengths) {
        const Scalar& a = program_.scalars[static_cast<size_t>(args[0])];
        const Scalar& b = program_.scalars[static_cast<size_t>(args[1])];
        bool both = a.kind == Scalar::Kind::kConst && b.kind == Scalar::Kind::kConst;
        if (both && (op == Op::k_add || op == Op::k_mul || op == Op::k_sub)) {
            int64_t x = ir::literal_as_int(a.literal);
            int64_t y = ir::literal_as_int(b.literal);
            return constant(op == Op::k_add ? x + y : op == Op::k_mul ? x * y : x - y);
        }
        int64_t neutral = op == Op::k_mul ? 1 : 0;
        if (op == Op::k_add || op == Op::k_mul || op == Op::k_sub) {
            if (is_constant(args[1], neutral)) {
                return args[0];
            }
            if (op != Op::k_sub && is_constant(args[0], neutral)) {
                return args[1];
            }
        }
    }
    return keep({Scalar::Kind::kMap, dtype, op, std::move(args)});
}

ScalarId Lowering::keep(Scalar scalar) {
    auto [entry, added] = known_scalars_.emplace(scalar_key(scalar), static_cast<ScalarId>(program_.scalars.size()));
    if (added) {
        program_.scalars.push_back(std::move(scalar));
        program_.steps.emplace_back(ComputeScalar{entry->second});
    }
    return entry->second;
}

void Lowering::check_equal(ScalarId a, ScalarId b, const std::string& message) {
    if (a != b) {
        program_.steps.emplace_back(Check{Check::Kind::kEqual, a, b, tables_.message(message)});
    }
}

ScalarId Lowering::scalar_of(ValueId value) {
    if (scalar_[value] >= 0) {
        return scalar_[value];
    }
    const Node* node = graph_.producer(value);
    ScalarId id = -1;
    if (node == nullptr || !grouping_.is_host(graph_, value)) {
        Scalar scalar{Scalar::Kind::kLoad, graph_.type(value).dtype};
        scalar.index = buffer_of(value);
        id = static_cast<ScalarId>(program_.scalars.size());
        program_.scalars.push_back(std::move(scalar));
        program_.steps.emplace_back(ComputeScalar{id});
    } else if (node->op == Op::k_const) {
        id = constant(node->literal());
    } else if (node->op == Op::k_dim) {
        id = dim_of(node->operands[0], static_cast<size_t>(node->integer("axis")));
    } else {
        std::vector<ScalarId> args;
        for (ValueId operand : node->operands) {
            args.push_back(scalar_of(operand));
        }
        DType dtype = graph_.type(value).dtype;
        if (node->op == Op::k_cast) {
            id = keep({Scalar::Kind::kCast, dtype, Op::k_add, args});
        } else {
            id = compute(node->op, std::move(args), dtype);
        }
    }
    scalar_[value] = id;
    return id;
}

std::vector<ScalarId> Lowering::dims_of(ValueId value) {
    std::vector<ScalarId> dims;
    for (size_t axis = 0; axis < graph_.type(value).shape.size(); ++axis) {
        dims.push_back(dim_of(value, axis));
    }
    return dims;
}

ScalarId Lowering::dim_of(ValueId value, size_t axis) {
    Dim dim = graph_.type(value).shape[axis];
    if (dim.is_static()) {
        return constant(dim.size());
    }
    auto found = symbols_.find(dim.code());
    return found != symbols_.end() ? found->second : symbols_.emplace(dim.code(), made_dim(value, axis)).first->second;
}

// Long because it is a switch with one rule an op.
ScalarId Lowering::made_dim(ValueId value, size_t axis) {
    const Node* node = graph_.producer(value);
    check(node != nullptr, "a parameter's symbol is known");
    auto operand_dim = [&](size_t operand, size_t at) { return dim_of(node->operands[operand], at); };
    auto by_operand_symbol = [&]() {
        // The operand axis that carries this symbol, or the first aligned axis that does not stretch.
        size_t rank = graph_.type(value).shape.size();
        for (ValueId operand : node->operands) {
            const ir::Shape& shape = graph_.type(operand).shape;
            size_t missing = rank - shape.size();
            if (axis >= missing && shape[axis - missing] != Dim(1)) {
                return dim_of(operand, axis - missing);
            }
        }
        unreachable("a length without an origin");
    };
    auto kept_axis = [&](const std::vector<int64_t>& gone) {
        size_t seen = 0;
        for (size_t i = 0;; ++i) {
            bool is_gone = std::find(gone.begin(), gone.end(), static_cast<int64_t>(i)) != gone.end();
            if (!is_gone && seen++ == axis) {
                return i;
            }
        }
    };
    ScalarId id = -1;
    switch (node->op) {
        case Op::k_reshape:
        case Op::k_broadcast:
            id = scalar_of(node->operands[axis + 1]);
            break;
        case Op::k_iota:
            id = scalar_of(node->operands[0]);
            break;
        case Op::k_transpose:
            id = operand_dim(0, static_cast<size_t>(node->integers("perm")[axis]));
            break;
        case Op::k_topk:
            id = node->integer("axis") == static_cast<int64_t>(axis) ? scalar_of(node->operands[1])
                                                                     : operand_dim(0, axis);
            break;
        case Op::k_slice:
            id = node->integer("axis") == static_cast<int64_t>(axis) ? scalar_of(node->operands[2])
                                                                     : operand_dim(0, axis);
            break;
        case Op::k_split: {
            uint32_t piece = graph_.values[value].index;
            id = node->integer("axis") == static_cast<int64_t>(axis) ? scalar_of(node->operands[piece + 1])
                                                                     : operand_dim(0, axis);
            break;
        }
        case Op::k_pad:
            id = operand_dim(0, axis);
            if (node->integer("axis") == static_cast<int64_t>(axis)) {
                id = compute(Op::k_add, {id, scalar_of(node->operands[2])});
                id = compute(Op::k_add, {id, scalar_of(node->operands[3])});
            }
            break;
        case Op::k_concat:
            id = operand_dim(0, axis);
            if (node->integer("axis") == static_cast<int64_t>(axis)) {
                for (size_t k = 1; k < node->operands.size(); ++k) {
                    id = compute(Op::k_add, {id, operand_dim(k, axis)});
                }
            }
            break;
        case Op::k_gather: {
            const auto& axes = node->integers("axes");
            auto first = static_cast<size_t>(axes.front());
            size_t index_rank = graph_.type(node->operands[1]).shape.size();
            if (axis < first) {
                id = operand_dim(0, axis);
            } else if (axis >= first + index_rank) {
                id = operand_dim(0, axis - index_rank + axes.size());
            } else {
                size_t k = 1;
                while (k + 1 < node->operands.size() && graph_.type(node->operands[k]).shape[axis - first] == Dim(1)) {
                    ++k;
                }
                id = operand_dim(k, axis - first);
            }
            break;
        }
        case Op::k_attention:
            id = operand_dim(axis == 2 ? 2 : 0, axis);
            break;
        case Op::k_take_along:
        case Op::k_searchsorted:
            id = operand_dim(1, axis);
            break;
        case Op::k_dot_general: {
            const auto& batch = node->integers("batch");
            const auto& contract = node->integers("contract");
            if (axis < batch.size() / 2) {
                id = operand_dim(0, static_cast<size_t>(batch[2 * axis]));
                break;
            }
            size_t at = axis - batch.size() / 2;
            for (size_t side = 0; side < 2 && id < 0; ++side) {
                const ir::Shape& shape = graph_.type(node->operands[side]).shape;
                for (size_t i = 0; i < shape.size(); ++i) {
                    bool used = false;
                    for (const auto* pairs : {&batch, &contract}) {
                        for (size_t p = side; p < pairs->size(); p += 2) {
                            used |= (*pairs)[p] == static_cast<int64_t>(i);
                        }
                    }
                    if (!used && at-- == 0) {
                        id = operand_dim(side, i);
                        break;
                    }
                }
            }
            break;
        }
        default:
            switch (ir::kind(node->op)) {
                case OpKind::kReduce:
                    id = operand_dim(0, kept_axis(node->integers("axes")));
                    break;
                case OpKind::kArgReduce:
                    id = operand_dim(0, kept_axis({node->integer("axis")}));
                    break;
                case OpKind::kControl:
                case OpKind::kFind:
                case OpKind::kHost:
                    buffer_of(value);  // emits the step, which makes its lengths known
                    return symbols_.at(graph_.type(value).shape[axis].code());
                case OpKind::kMap:
                    id = by_operand_symbol();
                    break;
                default:
                    id = operand_dim(0, axis);
                    break;
            }
    }
    check(id >= 0, "a length without an origin");
    return id;
}

}  // namespace ember::lower
