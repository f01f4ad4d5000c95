// What a caller knows of a program: the checks it makes for it, and the workspace it takes, both said in scalars of the
// callee and made anew in those of the caller.
#include <algorithm>

#include "ember/lower/in_place.h"
#include "ember/lower/lowering.h"

namespace ember::lower {

using ir::DType;
using ir::Op;

namespace {

constexpr int64_t kArenaAlignment = 64;

/// Bytes of the largest user, -1 where a length is not known now.
int64_t static_bytes(const Program& program, const Program::Slot& slot) {
    int64_t most = 0;
    for (BufferId user : slot.users) {
        const Buffer& buffer = program.buffers[static_cast<size_t>(user)];
        int64_t bytes = ir::info(buffer.dtype).block_bytes;
        for (ScalarId dim : buffer.shape) {
            const Scalar& s = program.scalars[static_cast<size_t>(dim)];
            if (s.kind != Scalar::Kind::kConst) {
                return -1;
            }
            bytes *= ir::literal_as_int(s.literal);
        }
        most = std::max(most, bytes);
    }
    return most;
}

}  // namespace

ScalarId Lowering::later(Op op, ScalarId a, ScalarId b) {
    const Scalar& x = program_.scalars[static_cast<size_t>(a)];
    const Scalar& y = program_.scalars[static_cast<size_t>(b)];
    if (x.kind == Scalar::Kind::kConst && y.kind == Scalar::Kind::kConst) {
        int64_t p = ir::literal_as_int(x.literal);
        int64_t q = ir::literal_as_int(y.literal);
        return constant(op == Op::k_max ? std::max(p, q) : op == Op::k_add ? p + q : p * q);
    }
    return keep_later({Scalar::Kind::kMap, DType::kI64, op, {a, b}});
}

ScalarId Lowering::keep_later(Scalar scalar) {
    auto [entry, added] = later_scalars_.emplace(scalar_key(scalar), static_cast<ScalarId>(program_.scalars.size()));
    if (added) {
        program_.scalars.push_back(std::move(scalar));
    }
    return entry->second;
}

ScalarId Lowering::Import::operator()(ScalarId id) {
    if (auto found = made.find(id); found != made.end()) {
        return found->second;
    }
    const Scalar& s = from.scalars[static_cast<size_t>(id)];
    ScalarId result = -1;
    switch (s.kind) {
        case Scalar::Kind::kConst:
            result = to.constant(s.literal);
            break;
        case Scalar::Kind::kParamDim:
            result = dims[static_cast<size_t>(s.index)][static_cast<size_t>(s.axis)];
            break;
        case Scalar::Kind::kLoad: {
            auto param = static_cast<size_t>(from.buffers[static_cast<size_t>(s.index)].index);
            result = param < values.size() ? to.scalar_of(values[param]) : -1;
            break;
        }
        default: {
            Scalar copy = s;
            for (ScalarId& arg : copy.args) {
                arg = (*this)(arg);
            }
            bool known = std::none_of(copy.args.begin(), copy.args.end(), [](ScalarId arg) { return arg < 0; });
            result = !known                            ? -1
                     : when == When::kLater            ? to.keep_later(std::move(copy))
                     : copy.kind == Scalar::Kind::kMap ? to.compute(copy.map_op, copy.args, copy.dtype)
                                                       : to.keep(std::move(copy));
        }
    }
    made.emplace(id, result);
    return result;
}

/// The checks that a callee leaves to its callers; each is made once a program.
void Lowering::check_preconditions(const Program& callee, const ir::Node& node,
                                   const std::vector<std::vector<ScalarId>>& argument_dims) {
    Import import{*this, callee, argument_dims, node.operands, When::kNow, {}};
    for (const Step& step : callee.preconditions) {
        if (const auto* check = std::get_if<Check>(&step)) {
            ScalarId shown = check->shown < 0 ? -1 : import(check->shown);
            Check own{check->kind, import(check->a), import(check->b), check->message, shown};
            if (made_checks_.emplace(static_cast<int>(own.kind), own.a, own.b, own.message).second) {
                program_.steps.emplace_back(own);
            }
            continue;
        }
        const auto& indices = std::get<CheckIndices>(step);
        auto param = static_cast<size_t>(callee.buffers[static_cast<size_t>(indices.index)].index);
        CheckIndices own{buffer_of(node.operands[param]), import(indices.limit), indices.message};
        if (made_checks_.emplace(-1, own.index, own.limit, own.message).second) {
            program_.steps.emplace_back(own);
        }
    }
}

/// What a program takes of the workspace when it is called with arguments of these lengths; -1: only the call can tell.
ScalarId Lowering::callee_workspace(int function, const std::vector<std::vector<ScalarId>>& argument_dims,
                                    const std::vector<ir::ValueId>& values) {
    const Program& callee = tables_.module().programs[static_cast<size_t>(function)];
    return callee.workspace < 0 ? -1 : Import{*this, callee, argument_dims, values, When::kLater, {}}(callee.workspace);
}

void Lowering::measure_workspace() {
    ScalarId total = constant(0);
    for (const Program::Slot& slot : program_.slots) {
        const Buffer first = program_.buffers[static_cast<size_t>(slot.users[0])];
        int64_t known = static_bytes(program_, slot);
        ScalarId bytes = constant(known < 0 ? ir::info(first.dtype).block_bytes : known);
        for (size_t axis = 0; known < 0 && axis < first.shape.size(); ++axis) {
            bytes = later(Op::k_mul, bytes, first.shape[axis]);
        }
        total = later(Op::k_add, total, later(Op::k_add, bytes, constant(kArenaAlignment)));
    }
    ScalarId most = constant(0);
    for (const Step& step : program_.steps) {
        if (calls(step)) {
            ScalarId workspace = workspace_of(step);
            if (workspace < 0) {
                return;
            }
            most = later(Op::k_max, most, workspace);
        }
    }
    total = later(Op::k_add, total, most);
    program_.workspace = is_given(program_, total) ? total : -1;
}

}  // namespace ember::lower
