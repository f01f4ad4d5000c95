// Variables: values of a graph that is being written. Part of ember.h, which says how it is used.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ember/tensor.h"
#include "ember/types.h"

namespace ember {

namespace api {
class Tape;
struct State;
struct Access;
}  // namespace api

/// A value of a graph. Cheap to copy. Every thread writes to a graph of its own, which lives as long as one of its
/// variables does; variables of two graphs do not mix (Error(kInvalidArgument)), but for constants, and inside if_()
/// and loop() those of the surrounding graph are used freely.
class Variable {
public:
    Type type() const;
    DType dtype() const { return type().dtype; }
    int64_t rank() const;

private:
    friend struct api::Access;
    Variable(std::shared_ptr<api::Tape> tape, uint32_t id) : tape_(std::move(tape)), id_(id) {}

    std::shared_ptr<api::Tape> tape_;
    uint32_t id_;
};

/// Does a value pass as a copy or as the same memory?
enum class Ownership { kCopy, kShare };

/// State that lives between calls: functions read it at every call and write it through updates. Thread-safe.
class SharedVariable : public Variable {
public:
    /// kShare: the memory itself, which later calls may write.
    Tensor get(Ownership ownership = Ownership::kCopy) const;
    /// Throws Error(kType, kShape) where the tensor does not fit the variable's type. Functions are not compiled again.
    void set(const Tensor& value, Ownership ownership = Ownership::kCopy);
    const std::string& name() const;

private:
    friend struct api::Access;
    SharedVariable(const Variable& variable, std::shared_ptr<api::State> state);

    std::shared_ptr<api::State> state_;
};

/// A value that is given at every call. `name` is for messages only.
Variable input(const Type& type, const std::string& name = "");
/// State with a first value. Its type has the tensor's dtype and lengths; the second form states another one, for state
/// whose lengths change. Throws Error(kType, kShape) where the value does not fit.
SharedVariable shared(const Tensor& value, const std::string& name = "", Ownership ownership = Ownership::kCopy);
SharedVariable shared(const Tensor& value, const Type& type, const std::string& name = "",
                      Ownership ownership = Ownership::kCopy);
/// Data that never changes, as a model's weights: not part of what is compiled or cached. The tensor is not copied and
/// must not be written any more.
Variable bound(const Tensor& value, const std::string& name = "");
/// A constant: part of the graph up to 64 bytes, else bound() of a copy.
Variable constant(const Tensor& value);
template <class T>
    requires std::is_arithmetic_v<T>
Variable constant(T value) {
    return constant(Tensor::scalar(value));
}
/// What most ops take: a variable, or a number that takes the dtype of the op's other operands. A number with a
/// fraction beside integers is an Error(kType); numbers without any variable are i64, f64 or bool.
class Operand {
public:
    enum class Kind : uint8_t { kVariable, kBool, kInt, kFloat };

    Operand(const Variable& variable) : kind_(Kind::kVariable), variable_(std::make_shared<Variable>(variable)) {}
    template <class T>
        requires std::is_arithmetic_v<T>
    Operand(T value)
        : kind_(std::is_same_v<T, bool>       ? Kind::kBool
                : std::is_floating_point_v<T> ? Kind::kFloat
                                              : Kind::kInt),
          integer_(std::is_floating_point_v<T> ? 0 : static_cast<int64_t>(value)),
          number_(static_cast<double>(value)),
          is_large_(std::is_unsigned_v<T> && integer_ < 0) {}

    Kind kind() const { return kind_; }
    /// Of a variable only.
    const Variable& variable() const { return *variable_; }
    int64_t integer() const { return integer_; }
    /// Is it an unsigned number over 2^63 - 1? integer() has its bits.
    bool is_large() const { return is_large_; }
    double number() const { return number_; }

private:
    Kind kind_;
    int64_t integer_ = 0;
    double number_ = 0;
    bool is_large_ = false;
    std::shared_ptr<Variable> variable_;
};

/// A number in a dtype that has numbers. Throws Error(kType) where the dtype cannot hold it.
Variable constant(DType dtype, const Operand& number);

}  // namespace ember
