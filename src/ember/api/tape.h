// What stands behind a Variable: a tape, which wraps the graph builder of one thread, or of one region of if_() and
// loop(). A region's tape reads values of the tapes around it through parameters, which it makes when they are first
// used. Here too: the way from Result and InternalError to ember::Error. Tests: test/unit/api_test.cpp.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "ember/function.h"
#include "ember/ir/builder.h"
#include "ember/support/result.h"
#include "ember/variable.h"

namespace ember::api {

[[noreturn]] void raise(const Diagnostic& diagnostic);
[[noreturn]] void raise(ErrorCode code, const std::string& text);

template <class T>
T unwrap(Result<T> result) {
    if (!result.ok()) {
        raise(result.error());
    }
    return std::move(result).value();
}
inline void unwrap(const Status& status) {
    if (!status.ok()) {
        raise(status.error());
    }
}

/// Runs `body`; a bug of the compiler becomes an Error(kInternal).
template <class Body>
auto guarded(const Body& body) {
    try {
        return body();
    } catch (const InternalError& bug) {
        raise(ErrorCode::kInternal, std::string("a bug of Ember: ") + bug.what());
    }
}

inline ir::DType to_ir(DType dtype) {
    return static_cast<ir::DType>(dtype);
}
ir::TensorType to_ir(const Type& type);
Type from_ir(const ir::TensorType& type);
/// Bytes of a tensor; checks lengths, blocks and size.
int64_t checked_bytes(DType dtype, const std::vector<int64_t>& shape);

/// The value of a shared variable.
struct State {
    std::string name;
    ir::TensorType type;
    mutable std::shared_mutex mutex;  // calls that write it hold it exclusively, those that read it share it
    Tensor value;
};

/// Throws where a value is none of the type: Error(kType, kShape).
void check_value(const std::string& what, const ir::TensorType& type, const Tensor& value);

/// What is behind a parameter.
struct Leaf {
    ir::ParamKind kind = ir::ParamKind::kInput;
    std::string name;
    std::shared_ptr<State> state;  // of a shared variable
    Tensor data;                   // of a bound one
};

class Tape : public std::enable_shared_from_this<Tape> {
public:
    explicit Tape(std::shared_ptr<Tape> parent = nullptr) : parent_(std::move(parent)) {}

    /// The tape that this thread writes to: of the region that is being written, else the thread's own.
    static std::shared_ptr<Tape> current();
    /// The tape around all regions: where inputs and state belong.
    static std::shared_ptr<Tape> outermost();
    /// Where an op on these variables goes: constants go with the others.
    static std::shared_ptr<Tape> of(const std::vector<Variable>& variables);

    /// The value of a variable on this tape. Throws Error(kInvalidArgument) for one of an unrelated tape.
    ir::ValueId import(const Variable& variable);
    Variable variable(ir::ValueId id);
    std::vector<Variable> variables(const std::vector<ir::ValueId>& ids);

    Variable leaf(const ir::TensorType& type, Leaf leaf);
    const Leaf* find_leaf(ir::ValueId id) const;

    ir::GraphBuilder& builder() { return builder_; }
    std::recursive_mutex& mutex() { return mutex_; }

    /// The values of the surrounding tape that this one reads, in the order of the parameters made for them.
    std::vector<Variable> captured() const { return captured_; }

private:
    friend class RegionScope;
    ir::ValueId capture(const Variable& outer);

    ir::GraphBuilder builder_;
    std::shared_ptr<Tape> parent_;
    std::unordered_map<ir::ValueId, Leaf> leaves_;
    std::unordered_map<ir::ValueId, ir::ValueId> captures_;  // of the parent → here
    std::vector<Variable> captured_;
    std::recursive_mutex mutex_;
};

/// While it lives, this thread writes to a new region of its current tape.
class RegionScope {
public:
    RegionScope();
    ~RegionScope();
    RegionScope(const RegionScope&) = delete;
    RegionScope& operator=(const RegionScope&) = delete;

    Tape& tape() { return *tape_; }

private:
    std::shared_ptr<Tape> tape_;
    std::shared_ptr<Tape> outer_;
};

/// The private parts of the public classes.
struct Access {
    static const std::shared_ptr<Tape>& tape(const Variable& variable) { return variable.tape_; }
    static ir::ValueId id(const Variable& variable) { return variable.id_; }
    static Variable variable(std::shared_ptr<Tape> tape, ir::ValueId id) { return Variable(std::move(tape), id); }
    static SharedVariable shared(const Variable& variable, std::shared_ptr<State> state) {
        return SharedVariable(variable, std::move(state));
    }
    static const std::shared_ptr<State>& state(const SharedVariable& variable) { return variable.state_; }
    static Function function(std::shared_ptr<const Function::Impl> impl) { return Function(std::move(impl)); }
};

/// One node; its results.
std::vector<Variable> emit(ir::Op op, const std::vector<Variable>& operands, std::vector<ir::Attribute> attributes = {},
                           std::vector<std::shared_ptr<const ir::Graph>> regions = {});
Variable emit_one(ir::Op op, const std::vector<Variable>& operands, std::vector<ir::Attribute> attributes = {});
/// Operands as variables, numbers in the dtype of the variable among them.
std::vector<Variable> promote(std::string_view op, const std::vector<Operand>& operands);
/// A length, start or size: an i64 scalar.
Variable as_index(std::string_view op, const Operand& operand);
/// An axis counted from the front. Throws Error(kIndex).
int64_t normalize_axis(std::string_view op, int64_t axis, int64_t rank);

}  // namespace ember::api
