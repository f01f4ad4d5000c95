// The graph: SSA over typed values, held in plain arrays and addressed by index. Nodes stand in an order in which every
// operand comes before its user. A Graph is a function's body or a region of `if` and `loop`; regions are isolated:
// what they need comes in through parameters. Passes build a new Graph through GraphBuilder (builder.h) rather than
// edit one. Tests: test/unit/ir_test.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ember/ir/op.h"
#include "ember/ir/type.h"

namespace ember::ir {

using ValueId = uint32_t;
using NodeId = uint32_t;
inline constexpr uint32_t kNone = UINT32_MAX;

/// A constant's elements in row-major order, at most kMaxLiteralBytes of them.
struct Literal {
    DType dtype = DType::kF32;
    std::vector<int64_t> shape;
    std::string bytes;

    friend bool operator==(const Literal&, const Literal&) = default;
};
inline constexpr size_t kMaxLiteralBytes = 64;

/// A literal of one element, converted to `dtype`.
Literal scalar_literal(DType dtype, double value);
Literal scalar_literal(DType dtype, int64_t value);
/// The only element of a literal of one element; bool is 0 or 1.
double literal_as_double(const Literal& literal, size_t index = 0);
int64_t literal_as_int(const Literal& literal, size_t index = 0);

using AttributeValue = std::variant<int64_t, std::vector<int64_t>, std::string, DType, Literal>;

struct Attribute {
    std::string_view name;  // one of the op table's, so it has static storage
    AttributeValue value;

    friend bool operator==(const Attribute&, const Attribute&) = default;
};

class Graph;

struct Node {
    Op op;
    std::vector<ValueId> operands;
    std::vector<Attribute> attributes;  // in the order of the op table
    ValueId first_result = kNone;
    uint32_t result_count = 0;
    std::vector<std::shared_ptr<const Graph>> regions;

    ValueId result(uint32_t k = 0) const { return first_result + k; }
    const AttributeValue* find(std::string_view name) const;
    int64_t integer(std::string_view name) const;
    int64_t integer_or(std::string_view name, int64_t fallback) const;
    const std::vector<int64_t>& integers(std::string_view name) const;
    std::string_view string(std::string_view name) const;
    std::string_view string_or(std::string_view name, std::string_view fallback) const;
    DType dtype() const { return std::get<DType>(*find("dtype")); }
    const Literal& literal() const { return std::get<Literal>(*find("value")); }
};

struct Value {
    TensorType type;
    NodeId node = kNone;  // kNone: a parameter
    uint32_t index = 0;   // which result, or which parameter
};

enum class ParamKind : uint8_t {
    kInput,   // given at every call
    kShared,  // state that lives between calls and may change at any time; updates write it
    kBound,   // immutable data bound at load: constants over 64 bytes, a model's weights
};

struct Param {
    ValueId value;
    ParamKind kind = ParamKind::kInput;
};

struct Output {
    ValueId value;
    uint32_t updates = kNone;  // index of the shared parameter that takes this value after the call
};

class Graph {
public:
    std::string name = "main";
    std::vector<Param> params;
    std::vector<Node> nodes;
    std::vector<Value> values;
    std::vector<Output> outputs;

    const TensorType& type(ValueId id) const { return values[id].type; }
    /// The node that makes a value; nullptr for a parameter.
    const Node* producer(ValueId id) const;
    /// The literal behind a value made by `const`, else nullptr.
    const Literal* literal(ValueId id) const;
};

/// Functions; the first one is the entry.
struct Module {
    std::vector<Graph> functions;

    Graph& entry() { return functions.front(); }
    const Graph& entry() const { return functions.front(); }
    const Graph* find(std::string_view name) const;
};

}  // namespace ember::ir
