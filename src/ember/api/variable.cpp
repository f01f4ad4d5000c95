// Variables, state and constants: see variable.h among the public headers.
#include "ember/variable.h"

#include <cmath>

#include "ember/api/tape.h"
#include "ember/ir/literal.h"

namespace ember {
namespace {

Tensor owned(const Tensor& value, Ownership ownership) {
    return ownership == Ownership::kCopy ? value.copy() : value;
}

ir::TensorType type_of(const Tensor& value) {
    return {api::to_ir(value.dtype()), ir::Shape(value.shape().begin(), value.shape().end())};
}

Variable literal(ir::Literal value) {
    std::shared_ptr<api::Tape> tape = api::Tape::current();
    std::lock_guard lock(tape->mutex());
    return tape->variable(tape->builder().constant(std::move(value)));
}

ir::DType part_dtype(ir::DType dtype) {
    return dtype == ir::DType::kC64 ? ir::DType::kF32 : dtype == ir::DType::kC128 ? ir::DType::kF64 : dtype;
}

/// A number in a dtype; an error where the dtype cannot hold it.
ir::Literal number(std::string_view op, ir::DType dtype, const Operand& value) {
    bool integral = value.kind() != Operand::Kind::kFloat;
    auto impossible = [&] {
        bool exact = integral && !value.is_large();
        api::raise(ErrorCode::kType, std::string(op) + ": the number " +
                                         (exact ? std::to_string(value.integer()) : std::to_string(value.number())) +
                                         " is no " + std::string(ir::dtype_name(dtype)) + "; cast() the operands");
    };
    if (ir::is_quantized(dtype) || dtype == ir::DType::kRng) {
        impossible();
    }
    if (ir::is_float(dtype) || ir::is_complex(dtype)) {
        ir::Literal made{dtype, {}, {}};
        ir::append_element(made.bytes, part_dtype(dtype), value.number());
        if (ir::is_complex(dtype)) {
            ir::append_element(made.bytes, part_dtype(dtype), 0.0);
        }
        return made;
    }
    if (value.is_large() && dtype == ir::DType::kU64) {
        return ir::scalar_literal(dtype, value.integer());
    }
    bool whole = integral || (std::trunc(value.number()) == value.number() && std::abs(value.number()) < 0x1p62);
    if (!whole) {
        impossible();
    }
    int64_t wanted = integral ? value.integer() : static_cast<int64_t>(value.number());
    ir::Literal made = ir::scalar_literal(dtype, wanted);
    bool fits = !value.is_large() && ir::literal_as_int(made) == wanted && !(wanted < 0 && ir::is_unsigned_int(dtype));
    if (!fits) {
        impossible();
    }
    return made;
}

Variable as_variable(std::string_view op, const Operand& operand, ir::DType dtype) {
    return operand.kind() == Operand::Kind::kVariable ? operand.variable() : literal(number(op, dtype, operand));
}

}  // namespace

void api::check_value(const std::string& what, const ir::TensorType& type, const Tensor& value) {
    if (value.dtype() != static_cast<DType>(type.dtype)) {
        raise(ErrorCode::kType, what + " is " + type.to_string() + ", the value " + value.type_string());
    }
    bool fits = value.rank() == type.rank();
    for (size_t axis = 0; fits && axis < type.shape.size(); ++axis) {
        fits = type.shape[axis].is_symbol() || type.shape[axis].size() == value.shape()[axis];
    }
    if (!fits) {
        raise(ErrorCode::kShape, what + " is " + type.to_string() + ", the value " + value.type_string());
    }
}

Type Variable::type() const {
    std::lock_guard lock(tape_->mutex());
    return api::from_ir(tape_->builder().type(id_));
}

int64_t Variable::rank() const {
    std::lock_guard lock(tape_->mutex());
    return tape_->builder().type(id_).rank();
}

SharedVariable::SharedVariable(const Variable& variable, std::shared_ptr<api::State> state)
    : Variable(variable), state_(std::move(state)) {}

Tensor SharedVariable::get(Ownership ownership) const {
    std::shared_lock lock(state_->mutex);
    return owned(state_->value, ownership);
}

void SharedVariable::set(const Tensor& value, Ownership ownership) {
    api::check_value("shared '" + state_->name + "'", state_->type, value);
    Tensor next = owned(value, ownership);
    std::unique_lock lock(state_->mutex);
    state_->value = std::move(next);
}

const std::string& SharedVariable::name() const {
    return state_->name;
}

Variable input(const Type& type, const std::string& name) {
    return api::Tape::outermost()->leaf(api::to_ir(type), {ir::ParamKind::kInput, name, nullptr, {}});
}

namespace {

SharedVariable make_shared_variable(const Tensor& value, ir::TensorType type, const std::string& name,
                                    Ownership ownership) {
    api::check_value("shared '" + name + "'", type, value);
    auto state = std::make_shared<api::State>();
    state->name = name;
    state->type = std::move(type);
    state->value = owned(value, ownership);
    return api::Access::shared(api::Tape::outermost()->leaf(state->type, {ir::ParamKind::kShared, name, state, {}}),
                               state);
}

}  // namespace

SharedVariable shared(const Tensor& value, const std::string& name, Ownership ownership) {
    return make_shared_variable(value, type_of(value), name, ownership);
}

SharedVariable shared(const Tensor& value, const Type& type, const std::string& name, Ownership ownership) {
    return make_shared_variable(value, api::to_ir(type), name, ownership);
}

Variable bound(const Tensor& value, const std::string& name) {
    return api::Tape::outermost()->leaf(type_of(value), {ir::ParamKind::kBound, name, nullptr, value});
}

Variable constant(const Tensor& value) {
    if (value.bytes() > static_cast<int64_t>(ir::kMaxLiteralBytes) || ir::is_quantized(api::to_ir(value.dtype())) ||
        value.dtype() == DType::kRng) {
        return bound(value.copy());
    }
    std::string bytes(static_cast<const char*>(value.data()), static_cast<size_t>(value.bytes()));
    return literal({api::to_ir(value.dtype()), value.shape(), std::move(bytes)});
}

Variable constant(DType dtype, const Operand& value) {
    if (value.kind() == Operand::Kind::kVariable) {
        api::raise(ErrorCode::kInvalidArgument, "constant: a " + value.variable().type().to_string() +
                                                    " is a variable, no number; cast() converts it");
    }
    return literal(number("constant", api::to_ir(dtype), value));
}

std::vector<Variable> api::promote(std::string_view op, const std::vector<Operand>& operands) {
    const Variable* first = nullptr;
    bool any_float = false;
    bool all_bool = true;
    for (const Operand& operand : operands) {
        if (operand.kind() == Operand::Kind::kVariable && first == nullptr) {
            first = &operand.variable();
        }
        any_float = any_float || operand.kind() == Operand::Kind::kFloat;
        all_bool = all_bool && operand.kind() == Operand::Kind::kBool;
    }
    ir::DType dtype = first != nullptr ? to_ir(first->dtype())
                      : any_float      ? ir::DType::kF64
                      : all_bool       ? ir::DType::kBool
                                       : ir::DType::kI64;
    std::vector<Variable> made;
    for (const Operand& operand : operands) {
        made.push_back(as_variable(op, operand, dtype));
    }
    return made;
}

Variable api::as_index(std::string_view op, const Operand& operand) {
    return as_variable(op, operand, ir::DType::kI64);
}

}  // namespace ember
