// Tapes and conversions: see tape.h.
#include "ember/api/tape.h"

#include <optional>

namespace ember::api {
namespace {

thread_local std::shared_ptr<Tape> region;
thread_local std::weak_ptr<Tape> root;

static_assert(static_cast<int>(DType::kF32) == static_cast<int>(ir::DType::kF32));
static_assert(static_cast<int>(DType::kRng) + 1 == ir::kDTypeCount);
static_assert(static_cast<int>(ErrorCode::kInternal) == static_cast<int>(Code::kInternal));
static_assert(static_cast<int>(ErrorCode::kIo) == static_cast<int>(Code::kIo));

/// The value of a constant.
std::optional<ir::Literal> literal_of(const Variable& variable) {
    Tape& tape = *Access::tape(variable);
    std::lock_guard lock(tape.mutex());
    const ir::Node* node = tape.builder().graph().producer(Access::id(variable));
    bool is_constant = node != nullptr && node->op == ir::Op::k_const;
    return is_constant ? std::optional(node->literal()) : std::nullopt;
}

/// The values of constants that stand on another tape. Read before this one is locked: no two locks of unrelated tapes
/// are ever held together.
std::vector<std::optional<ir::Literal>> foreign_literals(const Tape& tape, const std::vector<Variable>& operands) {
    std::vector<std::optional<ir::Literal>> literals(operands.size());
    for (size_t k = 0; k < operands.size(); ++k) {
        if (Access::tape(operands[k]).get() != &tape) {
            literals[k] = literal_of(operands[k]);
        }
    }
    return literals;
}

}  // namespace

void raise(const Diagnostic& diagnostic) {
    raise(static_cast<ErrorCode>(diagnostic.code), diagnostic.to_string());
}

void raise(ErrorCode code, const std::string& text) {
    throw Error(code, text);
}

ir::TensorType to_ir(const Type& type) {
    ir::TensorType made{to_ir(type.dtype), {}};
    for (const Dim& dim : type.shape) {
        made.shape.push_back(dim.is_static() ? ir::Dim(dim.length()) : ir::Dim::symbol(dim.symbol()));
    }
    return made;
}

Type from_ir(const ir::TensorType& type) {
    Type made{static_cast<DType>(type.dtype), {}};
    for (ir::Dim dim : type.shape) {
        made.shape.push_back(dim.is_static() ? Dim(dim.size()) : Dim(dim.to_string()));
    }
    return made;
}

std::shared_ptr<Tape> Tape::current() {
    if (region != nullptr) {
        return region;
    }
    std::shared_ptr<Tape> tape = root.lock();
    if (tape == nullptr) {
        tape = std::make_shared<Tape>();
        root = tape;
    }
    return tape;
}

std::shared_ptr<Tape> Tape::outermost() {
    std::shared_ptr<Tape> tape = current();
    while (tape->parent_ != nullptr) {
        tape = tape->parent_;
    }
    return tape;
}

std::shared_ptr<Tape> Tape::of(const std::vector<Variable>& variables) {
    if (region != nullptr || variables.empty()) {
        return current();
    }
    for (const Variable& variable : variables) {
        if (!literal_of(variable)) {
            return Access::tape(variable);
        }
    }
    return Access::tape(variables.front());
}

ir::ValueId Tape::import(const Variable& variable) {
    if (Access::tape(variable).get() == this) {
        return Access::id(variable);
    }
    if (parent_ == nullptr) {
        raise(ErrorCode::kInvalidArgument, "a variable of type " + variable.type().to_string() +
                                               " belongs to another graph: of another thread, or of a branch or loop "
                                               "that is already written");
    }
    std::lock_guard lock(parent_->mutex());
    return capture(parent_->variable(parent_->import(variable)));
}

/// Constants and lengths are made again rather than handed in: inference wants to see them.
ir::ValueId Tape::capture(const Variable& outer) {
    auto [place, is_new] = captures_.try_emplace(Access::id(outer), ir::kNone);
    if (!is_new) {
        return place->second;
    }
    const ir::Graph& graph = parent_->builder().graph();
    const ir::Node* node = graph.producer(Access::id(outer));
    ir::ValueId id = ir::kNone;
    if (node != nullptr && node->op == ir::Op::k_const) {
        id = builder_.constant(node->literal());
    } else if (node != nullptr && node->op == ir::Op::k_dim) {
        id = builder_.make(ir::Op::k_dim, {capture(parent_->variable(node->operands[0]))}, node->attributes);
    } else {
        id = builder_.param(graph.type(Access::id(outer)));
        captured_.push_back(outer);
    }
    captures_[Access::id(outer)] = id;
    return id;
}

Variable Tape::variable(ir::ValueId id) {
    return Access::variable(shared_from_this(), id);
}

std::vector<Variable> Tape::variables(const std::vector<ir::ValueId>& ids) {
    std::vector<Variable> made;
    for (ir::ValueId id : ids) {
        made.push_back(variable(id));
    }
    return made;
}

Variable Tape::leaf(const ir::TensorType& type, Leaf leaf) {
    std::lock_guard lock(mutex_);
    ir::ValueId id = builder_.param(type, leaf.kind);
    leaves_.emplace(id, std::move(leaf));
    return variable(id);
}

const Leaf* Tape::find_leaf(ir::ValueId id) const {
    auto found = leaves_.find(id);
    return found == leaves_.end() ? nullptr : &found->second;
}

RegionScope::RegionScope() : tape_(std::make_shared<Tape>(Tape::current())), outer_(region) {
    region = tape_;
}

RegionScope::~RegionScope() {
    region = outer_;
}

std::vector<Variable> emit(ir::Op op, const std::vector<Variable>& operands, std::vector<ir::Attribute> attributes,
                           std::vector<std::shared_ptr<const ir::Graph>> regions) {
    return guarded([&] {
        std::shared_ptr<Tape> tape = Tape::of(operands);
        std::vector<std::optional<ir::Literal>> literals = foreign_literals(*tape, operands);
        std::lock_guard lock(tape->mutex());
        ir::NodeSpec spec{op, {}, std::move(attributes), std::move(regions), {}};
        for (size_t k = 0; k < operands.size(); ++k) {
            spec.operands.push_back(literals[k] ? tape->builder().constant(std::move(*literals[k]))
                                                : tape->import(operands[k]));
        }
        return tape->variables(unwrap(tape->builder().add(std::move(spec))));
    });
}

Variable emit_one(ir::Op op, const std::vector<Variable>& operands, std::vector<ir::Attribute> attributes) {
    return emit(op, operands, std::move(attributes)).at(0);
}

int64_t normalize_axis(std::string_view op, int64_t axis, int64_t rank) {
    if (axis < -rank || axis >= rank) {
        raise(ErrorCode::kIndex, std::string(op) + ": there is no axis " + std::to_string(axis) + ", the operand has " +
                                     std::to_string(rank));
    }
    return axis < 0 ? axis + rank : axis;
}

}  // namespace ember::api
