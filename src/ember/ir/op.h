// The op table as data: every pass, the verifier, the interpreter, the code generator and the tests read it.
// Rows stand in ops.def. Tests: test/unit/ir_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace ember::ir {

enum class Op : uint8_t {
#define EMBER_MAP(name, ...) k_##name,
#define EMBER_OP(name, ...) k_##name,
#include "ember/ir/ops.def"
#undef EMBER_MAP
#undef EMBER_OP
};

enum class OpKind : uint8_t {
    kMap,
    kCast,
    kSource,
    kScalar,
    kReduce,
    kArgReduce,
    kScan,
    kContract,
    kAttention,
    kView,
    kPad,
    kConcat,
    kSplit,
    kGather,
    kScatter,
    kUpdate,
    kSort,
    kFind,  // results whose lengths only the elements tell
    kControl,
    kAssert,
    kHost,
};

/// Which dtypes the operands of a map may have.
enum class Domain : uint8_t { kAny, kNumber, kFloat, kInt, kBits };
enum class MapResult : uint8_t { kSame, kBool };

struct OpInfo {
    std::string_view name;
    OpKind kind;
    int min_arity;
    int max_arity;  // -1: any number
    std::string_view attributes;
    std::string_view summary;
    Domain domain = Domain::kAny;
    MapResult result = MapResult::kSame;
    std::string_view derivative = {};
    std::string_view numpy = {};
};

inline constexpr OpInfo kOps[] = {
#define EMBER_MAP(name, arity, domain, result, derivative, numpy, summary) \
    {#name, OpKind::kMap, arity, arity, "", summary, Domain::domain, MapResult::result, derivative, numpy},
#define EMBER_OP(name, kind, min_arity, max_arity, attributes, summary) \
    {#name, OpKind::kind, min_arity, max_arity, attributes, summary},
#include "ember/ir/ops.def"
#undef EMBER_MAP
#undef EMBER_OP
};
inline constexpr int kOpCount = static_cast<int>(sizeof(kOps) / sizeof(kOps[0]));

inline const OpInfo& info(Op op) {
    return kOps[static_cast<int>(op)];
}
inline std::string_view op_name(Op op) {
    return info(op).name;
}
inline OpKind kind(Op op) {
    return info(op).kind;
}
inline bool is_map(Op op) {
    return kind(op) == OpKind::kMap;
}
std::optional<Op> op_from_name(std::string_view name);

/// In the order of the alternatives of AttributeValue (graph.h).
enum class AttributeKind : uint8_t { kInt, kInts, kString, kDType, kLiteral };
std::string_view attribute_kind_name(AttributeKind kind);

struct AttributeInfo {
    std::string_view name;
    AttributeKind kind;
    bool optional;
};

/// The attributes that an op's row lists, in its order.
std::span<const AttributeInfo> attributes(Op op);

}  // namespace ember::ir
