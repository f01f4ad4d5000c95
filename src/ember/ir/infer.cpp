// Type inference: one rule an op kind. A length that only the run knows becomes a fresh symbol; where the text states
// a symbol or a number in its place, that one is taken and checked at run time.
// Long because it is one rule an op.
#include <algorithm>
#include <set>
#include <unordered_map>

#include "ember/ir/builder.h"

namespace ember::ir {
namespace {

using Types = std::vector<TensorType>;

struct Inference {
    const Graph& graph;
    const NodeSpec& spec;
    const Module* module;
    Node probe{};  // the attributes, for their accessors

    const TensorType& operand(size_t k) const { return graph.type(spec.operands[k]); }
    size_t arity() const { return spec.operands.size(); }

    Diagnostic fail(Code code, const std::string& what) const {
        std::string text = std::string(op_name(spec.op)) + ": " + what + "; operands:";
        for (size_t k = 0; k < arity(); ++k) {
            text += " " + operand(k).to_string();
        }
        return error(code, text);
    }

    Result<Types> infer();

private:
    Result<Types> map();
    Result<Types> cast();
    Result<Types> source();
    Result<Types> reduce();
    Result<Types> along_axis();
    Result<Types> contract();
    Result<Types> view();
    Result<Types> transpose();
    Result<Types> reshape();
    Result<Types> broadcast();
    Result<Types> slice();
    Result<Types> pad();
    Result<Types> concat();
    Result<Types> split();
    Result<Types> gather();
    Result<Types> take_along();
    Result<Types> scatter();
    Result<Types> update_slice();
    Result<Types> attention();
    Result<Types> sort();
    Result<Types> searchsorted();
    Result<Types> find();
    Result<Types> unique();
    Result<Types> bincount();
    Result<Types> control();
    Result<Types> if_op();
    Result<Types> loop();
    Result<Types> call();
    Result<Types> assert_op();

    Status check_attributes();
    Status check_storage() const;
    Result<int> axis(std::string_view name, const TensorType& type) const;
    Status need_scalar_int(size_t k) const;
    Result<Dim> length(size_t k) const;
    Result<Shape> gathered_shape(size_t first_index) const;
    Result<Shape> broadcast_shapes(const std::vector<Shape>& shapes) const;
    Status match_region(const Graph& region, size_t params, const Types& types) const;
};

Diagnostic bad_attribute(std::string_view op, std::string_view name, std::string_view expected) {
    return error(Code::kVerify,
                 std::string(op) + ": attribute '" + std::string(name) + "' must be " + std::string(expected));
}

Status Inference::check_attributes() {
    size_t used = 0;
    for (const AttributeInfo& row : attributes(spec.op)) {
        const AttributeValue* value = probe.find(row.name);
        if (value == nullptr && row.optional) {
            continue;
        }
        if (value == nullptr) {
            return bad_attribute(op_name(spec.op), row.name, "given");
        }
        if (value->index() != static_cast<size_t>(row.kind)) {
            return bad_attribute(op_name(spec.op), row.name, attribute_kind_name(row.kind));
        }
        ++used;
    }
    if (used != spec.attributes.size()) {
        return error(Code::kVerify, std::string(op_name(spec.op)) + ": an attribute that the op does not have");
    }
    return {};
}

bool takes_quantized(OpKind kind) {
    switch (kind) {
        case OpKind::kCast:
        case OpKind::kContract:
        case OpKind::kScalar:
        case OpKind::kGather:
        case OpKind::kControl:
        case OpKind::kAssert:
        case OpKind::kHost:
            return true;
        default:
            return false;
    }
}

/// Blocks cannot be cut: quantised tensors are contracted, gathered by rows, cast or passed on.
Status Inference::check_storage() const {
    for (size_t k = 0; k < arity(); ++k) {
        if (!is_quantized(operand(k).dtype)) {
            continue;
        }
        bool whole_rows = spec.op == Op::k_gather && !probe.integers("axes").empty() &&
                          probe.integers("axes").back() != operand(0).rank() - 1;
        if (!takes_quantized(kind(spec.op)) || (kind(spec.op) == OpKind::kGather && !whole_rows)) {
            return fail(Code::kType, "does not take quantised operands; cast them first");
        }
    }
    return {};
}

Result<Types> Inference::infer() {
    const OpInfo& row = info(spec.op);
    if (static_cast<int>(arity()) < row.min_arity ||
        (row.max_arity >= 0 && static_cast<int>(arity()) > row.max_arity)) {
        return fail(Code::kVerify, "takes " + std::to_string(row.min_arity) + (row.max_arity < 0 ? " or more" : "") +
                                       " operands, not " + std::to_string(arity()));
    }
    probe.op = spec.op;
    probe.attributes = spec.attributes;
    EMBER_CHECKED(check_attributes());
    EMBER_CHECKED(check_storage());
    switch (row.kind) {
        case OpKind::kMap:
            return map();
        case OpKind::kCast:
            return cast();
        case OpKind::kSource:
        case OpKind::kScalar:
            return source();
        case OpKind::kReduce:
            return reduce();
        case OpKind::kArgReduce:
        case OpKind::kScan:
            return along_axis();
        case OpKind::kContract:
            return contract();
        case OpKind::kAttention:
            return attention();
        case OpKind::kView:
            return view();
        case OpKind::kPad:
            return pad();
        case OpKind::kConcat:
            return concat();
        case OpKind::kSplit:
            return split();
        case OpKind::kGather:
            return spec.op == Op::k_gather ? gather() : take_along();
        case OpKind::kScatter:
            return scatter();
        case OpKind::kUpdate:
            return update_slice();
        case OpKind::kSort:
            return spec.op == Op::k_searchsorted ? searchsorted() : sort();
        case OpKind::kFind:
            return find();
        case OpKind::kControl:
            return control();
        case OpKind::kAssert:
            return assert_op();
        case OpKind::kHost:
            return spec.stated;
    }
    unreachable("op kind");
}

Result<Shape> Inference::broadcast_shapes(const std::vector<Shape>& shapes) const {
    size_t rank = 0;
    for (const Shape& shape : shapes) {
        rank = std::max(rank, shape.size());
    }
    Shape result(rank, Dim(1));
    for (const Shape& shape : shapes) {
        for (size_t i = 0; i < shape.size(); ++i) {
            Dim& mine = result[rank - shape.size() + i];
            Dim other = shape[i];
            if (other == Dim(1) || mine == other) {
                continue;
            }
            if (mine == Dim(1) || (mine.is_symbol() && other.is_static())) {
                mine = other;
            } else if (mine.is_static() && other.is_static()) {
                return fail(Code::kShape, "shapes do not match: axis " + std::to_string(rank - shape.size() + i) +
                                              " has lengths " + mine.to_string() + " and " + other.to_string());
            }
        }
    }
    return result;
}

bool in_domain(DType dtype, Domain domain) {
    bool real = is_bool(dtype) || is_int(dtype) || is_float(dtype);
    switch (domain) {
        case Domain::kAny:
            return real || is_complex(dtype);
        case Domain::kNumber:
            return (real && !is_bool(dtype)) || is_complex(dtype);
        case Domain::kFloat:
            return is_float(dtype) || is_complex(dtype);
        case Domain::kInt:
            return is_int(dtype);
        case Domain::kBits:
            return is_int(dtype) || is_bool(dtype);
    }
    return false;
}

std::string_view domain_name(Domain domain) {
    static constexpr std::string_view kNames[] = {"any", "number", "float", "integer", "integer or bool"};
    return kNames[static_cast<int>(domain)];
}

Result<Types> Inference::map() {
    const OpInfo& row = info(spec.op);
    size_t first = spec.op == Op::k_select ? 1 : 0;
    if (first == 1 && !is_bool(operand(0).dtype)) {
        return fail(Code::kType, "the condition must be bool");
    }
    DType dtype = operand(first).dtype;
    std::vector<Shape> shapes;
    for (size_t k = 0; k < arity(); ++k) {
        if (k >= first && operand(k).dtype != dtype) {
            return fail(Code::kType, "operands must have one dtype");
        }
        shapes.push_back(operand(k).shape);
    }
    if (!in_domain(dtype, row.domain)) {
        return fail(Code::kType, "needs a dtype of kind " + std::string(domain_name(row.domain)));
    }
    EMBER_TRY(Shape shape, broadcast_shapes(shapes));
    return Types{{row.result == MapResult::kBool ? DType::kBool : dtype, std::move(shape)}};
}

Result<Types> Inference::cast() {
    DType to = probe.dtype();
    if (is_quantized(to) || to == DType::kRng || operand(0).dtype == DType::kRng) {
        return fail(Code::kType, "no conversion to " + std::string(dtype_name(to)));
    }
    if (is_complex(operand(0).dtype) && !is_complex(to)) {
        return fail(Code::kType, "a complex tensor has no conversion to a real dtype");
    }
    return Types{{to, operand(0).shape}};
}

Status Inference::need_scalar_int(size_t k) const {
    if (operand(k).dtype != DType::kI64 || !operand(k).is_scalar()) {
        return fail(Code::kType, "operand " + std::to_string(k) + " must be an i64 scalar");
    }
    return {};
}

Result<Dim> Inference::length(size_t k) const {
    EMBER_CHECKED(need_scalar_int(k));
    const Node* node = graph.producer(spec.operands[k]);
    if (node != nullptr && node->op == Op::k_const) {
        int64_t value = literal_as_int(node->literal());
        if (value < 0) {
            return fail(Code::kShape, "negative length " + std::to_string(value));
        }
        if (value > kMaxLength) {
            return fail(Code::kShape, "length " + std::to_string(value) + " is too large");
        }
        return Dim(value);
    }
    if (node != nullptr && node->op == Op::k_dim) {
        return graph.type(node->operands[0]).shape[static_cast<size_t>(node->integer("axis"))];
    }
    return Dim::fresh();
}

Result<int> Inference::axis(std::string_view name, const TensorType& type) const {
    int64_t value = probe.integer(name);
    if (value < 0 || value >= type.rank()) {
        return fail(Code::kShape, "axis " + std::to_string(value) + " is not an axis of " + type.to_string());
    }
    return static_cast<int>(value);
}

Result<Types> Inference::source() {
    if (spec.op == Op::k_const) {
        const Literal& literal = probe.literal();
        TensorType type{literal.dtype, {}};
        if (!in_domain(literal.dtype, Domain::kAny)) {
            return fail(Code::kType, "no constants of dtype " + std::string(dtype_name(literal.dtype)));
        }
        for (int64_t size : literal.shape) {
            if (size < 0 || size > kMaxLength) {
                return fail(Code::kShape, "a literal has no axis of length " + std::to_string(size));
            }
            type.shape.emplace_back(size);
        }
        int64_t bytes = element_bytes(literal.dtype);
        auto given = static_cast<int64_t>(literal.bytes.size());
        if (literal.bytes.size() > kMaxLiteralBytes || given % bytes != 0 || given / bytes != type.static_elements()) {
            return fail(Code::kVerify, "a literal's bytes must fit its type and be at most 64");
        }
        if (is_bool(literal.dtype) &&
            literal.bytes.find_first_not_of(std::string_view("\0\1", 2)) != std::string::npos) {
            return fail(Code::kVerify, "elements of a bool literal are 0 or 1");
        }
        return Types{std::move(type)};
    }
    if (spec.op == Op::k_iota) {
        if (!is_int(probe.dtype()) && !is_float(probe.dtype())) {
            return fail(Code::kType, "iota has a number dtype");
        }
        EMBER_TRY(Dim size, length(0));
        return Types{{probe.dtype(), {size}}};
    }
    EMBER_CHECKED(axis("axis", operand(0)));
    return Types{{DType::kI64, {}}};
}

/// Are these distinct, ascending axes of the type?
bool ascending_axes(const std::vector<int64_t>& axes, int rank) {
    for (size_t i = 0; i < axes.size(); ++i) {
        if (axes[i] < 0 || axes[i] >= rank || (i > 0 && axes[i] <= axes[i - 1])) {
            return false;
        }
    }
    return true;
}

Shape without_axes(const Shape& shape, const std::vector<int64_t>& axes) {
    Shape rest;
    for (size_t i = 0; i < shape.size(); ++i) {
        if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end()) {
            rest.push_back(shape[i]);
        }
    }
    return rest;
}

Result<Types> Inference::reduce() {
    const std::vector<int64_t>& axes = probe.integers("axes");
    if (!ascending_axes(axes, operand(0).rank())) {
        return fail(Code::kShape, "axes must be ascending axes of the operand");
    }
    bool bits = spec.op == Op::k_reduce_and || spec.op == Op::k_reduce_or || spec.op == Op::k_reduce_xor;
    if (!in_domain(operand(0).dtype, bits ? Domain::kBits : Domain::kAny)) {
        return fail(Code::kType, bits ? "needs integers or bool" : "needs numbers or bool");
    }
    return Types{{operand(0).dtype, without_axes(operand(0).shape, axes)}};
}

Result<Types> Inference::along_axis() {
    EMBER_TRY(int at, axis("axis", operand(0)));
    if (!in_domain(operand(0).dtype, kind(spec.op) == OpKind::kScan ? Domain::kNumber : Domain::kAny)) {
        return fail(Code::kType, "needs numbers");
    }
    if (kind(spec.op) == OpKind::kScan) {
        return Types{operand(0)};
    }
    return Types{{DType::kI64, without_axes(operand(0).shape, {at})}};
}

Result<Types> Inference::contract() {
    const TensorType& a = operand(0);
    const TensorType& b = operand(1);
    const std::vector<int64_t>& contract = probe.integers("contract");
    const std::vector<int64_t>& batch = probe.integers("batch");
    std::set<int64_t> a_axes;
    std::set<int64_t> b_axes;
    std::vector<int64_t> a_gone;
    std::vector<int64_t> b_gone;
    Shape shape;
    auto take = [&](const std::vector<int64_t>& pairs, bool is_batch) -> Status {
        if (pairs.size() % 2 != 0) {
            return fail(Code::kVerify, "axes must come in pairs");
        }
        for (size_t i = 0; i < pairs.size(); i += 2) {
            int64_t x = pairs[i];
            int64_t y = pairs[i + 1];
            if (x < 0 || x >= a.rank() || y < 0 || y >= b.rank() || !a_axes.insert(x).second ||
                !b_axes.insert(y).second) {
                return fail(Code::kShape, "axes must be distinct axes of the operands");
            }
            Dim p = a.shape[static_cast<size_t>(x)];
            Dim q = b.shape[static_cast<size_t>(y)];
            if (p.is_static() && q.is_static() && p != q) {
                return fail(Code::kShape, "axis " + std::to_string(x) + " of the left operand has length " +
                                              p.to_string() + ", axis " + std::to_string(y) + " of the right one " +
                                              q.to_string());
            }
            a_gone.push_back(x);
            b_gone.push_back(y);
            if (is_batch) {
                shape.push_back(p.is_static() ? p : q.is_static() ? q : p);
            }
        }
        return {};
    };
    EMBER_CHECKED(take(batch, true));
    EMBER_CHECKED(take(contract, false));
    for (Dim dim : without_axes(a.shape, a_gone)) {
        shape.push_back(dim);
    }
    for (Dim dim : without_axes(b.shape, b_gone)) {
        shape.push_back(dim);
    }
    if (is_quantized(b.dtype)) {
        bool rows = b.rank() == 2 && batch.empty() && contract.size() == 2 && contract[1] == 1;
        if (a.dtype != DType::kF32 || !rows) {
            return fail(Code::kType, "quantised weights take f32 on the left and are contracted over their last axis");
        }
        return Types{{DType::kF32, std::move(shape)}};
    }
    if (a.dtype != b.dtype) {
        return fail(Code::kType, "operands must have one dtype");
    }
    if (!in_domain(a.dtype, Domain::kAny)) {
        return fail(Code::kType, "needs numbers or bool");
    }
    return Types{{a.dtype, std::move(shape)}};
}

Result<Types> Inference::view() {
    switch (spec.op) {
        case Op::k_transpose:
            return transpose();
        case Op::k_reshape:
            return reshape();
        case Op::k_broadcast:
            return broadcast();
        case Op::k_slice:
            return slice();
        default:
            break;
    }
    if (!ascending_axes(probe.integers("axes"), operand(0).rank())) {
        return fail(Code::kShape, "axes must be ascending axes of the operand");
    }
    return Types{operand(0)};
}

Result<Types> Inference::transpose() {
    const std::vector<int64_t>& perm = probe.integers("perm");
    std::vector<int64_t> sorted = perm;
    std::sort(sorted.begin(), sorted.end());
    TensorType type{operand(0).dtype, {}};
    for (size_t i = 0; i < sorted.size(); ++i) {
        if (sorted[i] != static_cast<int64_t>(i)) {
            return fail(Code::kShape, "perm must be a permutation of the axes");
        }
    }
    if (static_cast<int>(perm.size()) != operand(0).rank()) {
        return fail(Code::kShape, "perm must name every axis once");
    }
    for (int64_t from : perm) {
        type.shape.push_back(operand(0).shape[static_cast<size_t>(from)]);
    }
    return Types{std::move(type)};
}

Result<Types> Inference::reshape() {
    TensorType type{operand(0).dtype, {}};
    for (size_t k = 1; k < arity(); ++k) {
        EMBER_TRY(Dim size, length(k));
        type.shape.push_back(size);
    }
    if (type.is_static() && operand(0).is_static() && type.static_elements() != operand(0).static_elements()) {
        return fail(Code::kShape, "cannot reshape to " + shape_to_string(type.shape));
    }
    return Types{std::move(type)};
}

Result<Types> Inference::broadcast() {
    const Shape& from = operand(0).shape;
    TensorType type{operand(0).dtype, {}};
    for (size_t k = 1; k < arity(); ++k) {
        EMBER_TRY(Dim size, length(k));
        type.shape.push_back(size);
    }
    if (type.shape.size() < from.size()) {
        return fail(Code::kShape, "cannot broadcast to a lower rank");
    }
    for (size_t i = 0; i < from.size(); ++i) {
        Dim& to = type.shape[type.shape.size() - from.size() + i];
        if (from[i] == Dim(1) || from[i] == to) {
            continue;
        }
        if (from[i].is_static() && to.is_static()) {
            return fail(Code::kShape, "cannot broadcast to " + shape_to_string(type.shape));
        }
        to = from[i].is_static() ? from[i] : to;
    }
    return Types{std::move(type)};
}

Result<Types> Inference::slice() {
    EMBER_TRY(int at, axis("axis", operand(0)));
    EMBER_CHECKED(need_scalar_int(1));
    EMBER_TRY(Dim size, length(2));
    if (probe.integer_or("step", 1) == 0) {
        return fail(Code::kVerify, "step must not be 0");
    }
    TensorType type = operand(0);
    type.shape[static_cast<size_t>(at)] = size;
    return Types{std::move(type)};
}

Dim sum(const std::vector<Dim>& dims) {
    int64_t total = 0;
    Dim only_symbol = Dim(0);
    int symbols = 0;
    for (Dim dim : dims) {
        if (dim.is_symbol()) {
            only_symbol = dim;
            ++symbols;
        } else {
            total = std::min(total + dim.size(), kMaxLength);
        }
    }
    if (symbols == 0) {
        return Dim(total);
    }
    return symbols == 1 && total == 0 ? only_symbol : Dim::fresh();
}

Result<Types> Inference::pad() {
    EMBER_TRY(int at, axis("axis", operand(0)));
    if (operand(1).dtype != operand(0).dtype || !operand(1).is_scalar()) {
        return fail(Code::kType, "the value must be a scalar of the operand's dtype");
    }
    EMBER_TRY(Dim low, length(2));
    EMBER_TRY(Dim high, length(3));
    TensorType type = operand(0);
    Dim& size = type.shape[static_cast<size_t>(at)];
    size = sum({size, low, high});
    return Types{std::move(type)};
}

Result<Types> Inference::concat() {
    EMBER_TRY(int at, axis("axis", operand(0)));
    TensorType type = operand(0);
    std::vector<Dim> lengths;
    for (size_t k = 0; k < arity(); ++k) {
        if (operand(k).dtype != type.dtype || operand(k).rank() != type.rank()) {
            return fail(Code::kType, "operands must have one dtype and rank");
        }
        lengths.push_back(operand(k).shape[static_cast<size_t>(at)]);
        for (int i = 0; i < type.rank(); ++i) {
            Dim& mine = type.shape[static_cast<size_t>(i)];
            Dim other = operand(k).shape[static_cast<size_t>(i)];
            if (i == at || mine == other) {
                continue;
            }
            if (mine.is_static() && other.is_static()) {
                return fail(Code::kShape, "axis " + std::to_string(i) + " has lengths " + mine.to_string() + " and " +
                                              other.to_string());
            }
            mine = mine.is_static() ? mine : other.is_static() ? other : mine;
        }
    }
    type.shape[static_cast<size_t>(at)] = sum(lengths);
    return Types{std::move(type)};
}

Result<Types> Inference::split() {
    EMBER_TRY(int at, axis("axis", operand(0)));
    Types types;
    for (size_t k = 1; k < arity(); ++k) {
        EMBER_TRY(Dim size, length(k));
        types.push_back(operand(0));
        types.back().shape[static_cast<size_t>(at)] = size;
    }
    return types;
}

Result<Shape> Inference::gathered_shape(size_t first_index) const {
    const std::vector<int64_t>& axes = probe.integers("axes");
    const TensorType& x = operand(0);
    if (axes.empty() || axes.size() != arity() - first_index || !ascending_axes(axes, x.rank()) ||
        axes.back() - axes.front() + 1 != static_cast<int64_t>(axes.size())) {
        return fail(Code::kShape, "axes must be consecutive axes of the operand, one for each index tensor");
    }
    std::vector<Shape> shapes;
    for (size_t k = first_index; k < arity(); ++k) {
        if (!is_int(operand(k).dtype)) {
            return fail(Code::kType, "indices must be integers");
        }
        if (operand(k).rank() != operand(first_index).rank()) {
            return fail(Code::kShape, "index tensors must have one shape");
        }
        shapes.push_back(operand(k).shape);
    }
    EMBER_TRY(Shape index_shape, broadcast_shapes(shapes));
    Shape shape(x.shape.begin(), x.shape.begin() + axes.front());
    shape.insert(shape.end(), index_shape.begin(), index_shape.end());
    shape.insert(shape.end(), x.shape.begin() + axes.back() + 1, x.shape.end());
    return shape;
}

Status check_bounds(const Node& probe) {
    std::string_view bounds = probe.string_or("bounds", "raise");
    if (bounds != "raise" && bounds != "wrap" && bounds != "clip") {
        return bad_attribute(op_name(probe.op), "bounds", "\"raise\", \"wrap\" or \"clip\"");
    }
    return {};
}

Result<Types> Inference::gather() {
    EMBER_CHECKED(check_bounds(probe));
    EMBER_TRY(Shape shape, gathered_shape(1));
    return Types{{operand(0).dtype, std::move(shape)}};
}

Result<Types> Inference::take_along() {
    EMBER_CHECKED(check_bounds(probe));
    EMBER_TRY(int at, axis("axis", operand(0)));
    const TensorType& index = operand(1);
    if (!is_int(index.dtype) || index.rank() != operand(0).rank()) {
        return fail(Code::kType, "indices must be integers of the operand's rank");
    }
    for (int i = 0; i < index.rank(); ++i) {
        Dim a = operand(0).shape[static_cast<size_t>(i)];
        Dim b = index.shape[static_cast<size_t>(i)];
        if (i != at && a.is_static() && b.is_static() && a != b) {
            return fail(Code::kShape,
                        "axis " + std::to_string(i) + " has lengths " + a.to_string() + " and " + b.to_string());
        }
    }
    return Types{{operand(0).dtype, index.shape}};
}

Result<Types> Inference::scatter() {
    EMBER_CHECKED(check_bounds(probe));
    std::string_view mode = probe.string("mode");
    if (mode != "set" && mode != "add" && mode != "mul" && mode != "max" && mode != "min") {
        return bad_attribute("scatter", "mode", "\"set\", \"add\", \"mul\", \"max\" or \"min\"");
    }
    EMBER_TRY(Shape window, gathered_shape(2));
    if (operand(1).dtype != operand(0).dtype || operand(1).shape.size() != window.size()) {
        return fail(Code::kShape, "updates must have the operand's dtype and shape " + shape_to_string(window));
    }
    for (size_t i = 0; i < window.size(); ++i) {
        Dim given = operand(1).shape[i];
        if (given.is_static() && given != Dim(1) && window[i].is_static() && given != window[i]) {
            return fail(Code::kShape, "updates must have shape " + shape_to_string(window));
        }
    }
    return Types{operand(0)};
}

Result<Types> Inference::update_slice() {
    const TensorType& x = operand(0);
    const TensorType& u = operand(1);
    if (x.dtype != u.dtype || x.rank() != u.rank() || static_cast<int>(arity()) != x.rank() + 2) {
        return fail(Code::kShape, "takes an update of the operand's dtype and rank and one start an axis");
    }
    for (size_t k = 2; k < arity(); ++k) {
        EMBER_CHECKED(need_scalar_int(k));
        Dim a = x.shape[k - 2];
        Dim b = u.shape[k - 2];
        if (a.is_static() && b.is_static() && b.size() > a.size()) {
            return fail(Code::kShape, "the update is longer than axis " + std::to_string(k - 2));
        }
    }
    return Types{x};
}

Result<Types> Inference::attention() {
    const TensorType& q = operand(0);
    const TensorType& keys = operand(1);
    const TensorType& values = operand(2);
    EMBER_CHECKED(need_scalar_int(3));
    bool stored = keys.dtype == q.dtype || keys.dtype == DType::kF16;
    if (!is_float(q.dtype) || !stored || values.dtype != keys.dtype) {
        return fail(Code::kType, "needs floating-point queries, and keys and values of their dtype or f16");
    }
    if (q.rank() != 3 || keys.rank() != 3 || values.rank() != 3) {
        return fail(Code::kShape, "needs three axes of q, keys and values");
    }
    Dim heads = q.shape[1];
    Dim kv_heads = keys.shape[0];
    auto differ = [](Dim a, Dim b) { return a.is_static() && b.is_static() && a != b; };
    bool divides =
        !heads.is_static() || !kv_heads.is_static() || (kv_heads.size() > 0 && heads.size() % kv_heads.size() == 0);
    if (!divides || differ(kv_heads, values.shape[0])) {
        return fail(Code::kShape, "the number of heads must be a multiple of that of keys and values");
    }
    if (differ(q.shape[2], keys.shape[2]) || differ(keys.shape[1], values.shape[1])) {
        return fail(Code::kShape, "keys must be as long as queries, and as many as values");
    }
    return Types{{q.dtype, {q.shape[0], heads, values.shape[2]}}};
}

bool compatible(const TensorType& a, const TensorType& b) {
    if (a.dtype != b.dtype || a.rank() != b.rank()) {
        return false;
    }
    for (size_t i = 0; i < a.shape.size(); ++i) {
        if (a.shape[i].is_static() && b.shape[i].is_static() && a.shape[i] != b.shape[i]) {
            return false;
        }
    }
    return true;
}

bool is_ordered(DType dtype) {
    return is_bool(dtype) || is_int(dtype) || is_float(dtype);
}

Result<Types> Inference::sort() {
    EMBER_TRY(int at, axis("axis", operand(0)));
    if (!is_ordered(operand(0).dtype)) {
        return fail(Code::kType, "needs real numbers or bool");
    }
    TensorType values = operand(0);
    if (spec.op != Op::k_topk) {
        return Types{{spec.op == Op::k_sort ? values.dtype : DType::kI64, values.shape}};
    }
    EMBER_TRY(Dim count, length(1));
    Dim& size = values.shape[static_cast<size_t>(at)];
    if (count.is_static() && size.is_static() && count.size() > size.size()) {
        return fail(Code::kShape, "axis " + std::to_string(at) + " has no " + count.to_string() + " elements");
    }
    size = count;
    return Types{values, {DType::kI64, values.shape}};
}

Result<Types> Inference::searchsorted() {
    std::string_view side = probe.string_or("side", "left");
    if (side != "left" && side != "right") {
        return bad_attribute("searchsorted", "side", "\"left\" or \"right\"");
    }
    const TensorType& sorted = operand(0);
    if (sorted.rank() != 1 || !is_ordered(sorted.dtype) || operand(1).dtype != sorted.dtype) {
        return fail(Code::kType, "needs a vector of real numbers or bool, and values of its dtype");
    }
    if (arity() == 3) {
        const TensorType& sorter = operand(2);
        if (!is_int(sorter.dtype) || sorter.rank() != 1) {
            return fail(Code::kType, "the sorter must be an integer vector");
        }
        if (!compatible({DType::kI64, sorted.shape}, {DType::kI64, sorter.shape})) {
            return fail(Code::kShape, "the sorter must have the vector's length");
        }
    }
    return Types{{DType::kI64, operand(1).shape}};
}

Result<Types> Inference::find() {
    if (spec.op == Op::k_unique) {
        return unique();
    }
    if (spec.op == Op::k_bincount) {
        return bincount();
    }
    if (operand(0).rank() == 0 || !in_domain(operand(0).dtype, Domain::kAny)) {
        return fail(Code::kType, "needs a tensor of numbers or bool that has an axis");
    }
    return Types(operand(0).shape.size(), {DType::kI64, {Dim::fresh()}});
}

Result<Types> Inference::unique() {
    const TensorType& x = operand(0);
    if (!is_ordered(x.dtype)) {
        return fail(Code::kType, "needs real numbers or bool");
    }
    Dim count = Dim::fresh();
    Types types{{x.dtype, {count}}, {DType::kI64, {count}}, {DType::kI64, x.shape}, {DType::kI64, {count}}};
    if (probe.find("axis") != nullptr) {
        EMBER_TRY(int at, axis("axis", x));
        types[0].shape = x.shape;
        types[0].shape[static_cast<size_t>(at)] = count;
        types[2].shape = {x.shape[static_cast<size_t>(at)]};
    }
    return types;
}

Result<Types> Inference::bincount() {
    if (operand(0).rank() != 1 || !is_int(operand(0).dtype)) {
        return fail(Code::kType, "needs an integer vector");
    }
    EMBER_CHECKED(need_scalar_int(1));
    if (arity() == 3 && !compatible(operand(2), {DType::kF64, operand(0).shape})) {
        return fail(Code::kType, "needs a weight of dtype f64 for each element");
    }
    return Types{{arity() == 3 ? DType::kF64 : DType::kI64, {Dim::fresh()}}};
}

Result<Types> Inference::control() {
    switch (spec.op) {
        case Op::k_if:
            return if_op();
        case Op::k_loop:
            return loop();
        default:
            return call();
    }
}

Status Inference::match_region(const Graph& region, size_t params, const Types& types) const {
    if (region.params.size() != params) {
        return fail(Code::kVerify, "a region takes " + std::to_string(region.params.size()) + " parameters, not " +
                                       std::to_string(params));
    }
    for (size_t i = 0; i < params; ++i) {
        const TensorType& have = region.type(region.params[i].value);
        if (!compatible(have, types[i])) {
            return fail(Code::kType, "parameter " + std::to_string(i) + " of a region has type " + have.to_string() +
                                         ", the operand " + types[i].to_string());
        }
    }
    return {};
}

/// What is known of a type that is either of two: a symbol where they differ.
TensorType merge(const TensorType& a, const TensorType& b) {
    TensorType type = a;
    for (size_t i = 0; i < type.shape.size(); ++i) {
        if (a.shape[i] != b.shape[i]) {
            type.shape[i] = Dim::fresh();
        }
    }
    return type;
}

Result<Types> Inference::if_op() {
    if (spec.regions.size() != 2) {
        return fail(Code::kVerify, "takes two regions");
    }
    if (operand(0).dtype != DType::kBool || !operand(0).is_scalar()) {
        return fail(Code::kType, "the condition must be a bool scalar");
    }
    Types rest;
    for (size_t k = 1; k < arity(); ++k) {
        rest.push_back(operand(k));
    }
    const Graph& yes = *spec.regions[0];
    const Graph& no = *spec.regions[1];
    EMBER_CHECKED(match_region(yes, rest.size(), rest));
    EMBER_CHECKED(match_region(no, rest.size(), rest));
    if (yes.outputs.size() != no.outputs.size()) {
        return fail(Code::kVerify, "the regions give different numbers of results");
    }
    Types types;
    for (size_t i = 0; i < yes.outputs.size(); ++i) {
        const TensorType& a = yes.type(yes.outputs[i].value);
        const TensorType& b = no.type(no.outputs[i].value);
        if (a.dtype != b.dtype || a.rank() != b.rank()) {
            return fail(Code::kType, "the regions give " + a.to_string() + " and " + b.to_string());
        }
        types.push_back(merge(a, b));
    }
    return types;
}

Result<Types> Inference::loop() {
    if (spec.regions.size() != 1) {
        return fail(Code::kVerify, "takes one region");
    }
    EMBER_CHECKED(need_scalar_int(0));
    const Graph& body = *spec.regions[0];
    auto carried = static_cast<size_t>(probe.integer("carried"));
    bool may_stop = probe.integer_or("while", 0) != 0;
    if (carried >= arity() || body.outputs.size() < carried + (may_stop ? 1 : 0)) {
        return fail(Code::kVerify, "has fewer operands or results than carried values");
    }
    Types rest{{DType::kI64, {}}};
    for (size_t k = 1; k < arity(); ++k) {
        rest.push_back(operand(k));
    }
    EMBER_CHECKED(match_region(body, rest.size(), rest));
    Types types;
    for (size_t i = 0; i < carried; ++i) {
        const TensorType& next = body.type(body.outputs[i].value);
        const TensorType& param = body.type(body.params[i + 1].value);
        if (!compatible(next, param)) {
            return fail(Code::kType, "carried value " + std::to_string(i) + " turns from " + param.to_string() +
                                         " into " + next.to_string());
        }
        types.push_back(operand(i + 1));
    }
    EMBER_TRY(Dim trips, length(0));
    if (may_stop) {
        const TensorType& go_on = body.type(body.outputs.back().value);
        if (go_on.dtype != DType::kBool || !go_on.is_scalar()) {
            return fail(Code::kType, "the last result of a while loop must be a bool scalar");
        }
        trips = Dim::fresh();
    }
    for (size_t i = carried; i < body.outputs.size() - (may_stop ? 1 : 0); ++i) {
        TensorType stacked = body.type(body.outputs[i].value);
        stacked.shape.insert(stacked.shape.begin(), trips);
        types.push_back(std::move(stacked));
    }
    return types;
}

/// What a callee's symbols are for the caller, by symbol id.
using Bound = std::unordered_map<int64_t, Dim>;

/// Binds the symbols of a callee's parameter to the dimensions of an argument.
bool unify(const TensorType& param, const TensorType& argument, Bound& bound) {
    if (!compatible(param, argument)) {
        return false;
    }
    for (size_t i = 0; i < param.shape.size(); ++i) {
        if (param.shape[i].is_static()) {
            continue;
        }
        Dim& known = bound.try_emplace(param.shape[i].symbol_id(), argument.shape[i]).first->second;
        if (known.is_symbol()) {
            known = argument.shape[i].is_static() ? argument.shape[i] : known;
        } else if (argument.shape[i].is_static() && argument.shape[i] != known) {
            return false;
        }
    }
    return true;
}

Result<Types> Inference::call() {
    const Graph* callee = module == nullptr ? nullptr : module->find(probe.string("callee"));
    if (callee == nullptr) {
        if (!spec.stated.empty()) {
            return spec.stated;
        }
        return fail(Code::kVerify, "no function @" + std::string(probe.string("callee")) + " before this one");
    }
    if (callee->params.size() != arity()) {
        return fail(Code::kVerify, "@" + callee->name + " takes " + std::to_string(callee->params.size()) +
                                       " operands, not " + std::to_string(arity()));
    }
    Bound bound;
    for (size_t k = 0; k < arity(); ++k) {
        const TensorType& param = callee->type(callee->params[k].value);
        if (!unify(param, operand(k), bound)) {
            return fail(Code::kType,
                        "operand " + std::to_string(k) + " of @" + callee->name + " must be " + param.to_string());
        }
    }
    Types types;
    for (const Output& out : callee->outputs) {
        TensorType type = callee->type(out.value);
        for (Dim& dim : type.shape) {
            if (dim.is_static()) {
                continue;
            }
            auto [place, is_new] = bound.try_emplace(dim.symbol_id());
            if (is_new) {
                place->second = Dim::fresh();
            }
            dim = place->second;
        }
        types.push_back(std::move(type));
    }
    return types;
}

Result<Types> Inference::assert_op() {
    for (size_t k = 1; k < arity(); ++k) {
        if (operand(k).dtype != DType::kBool) {
            return fail(Code::kType, "conditions must be bool");
        }
    }
    return Types{operand(0)};
}

/// Takes the stated symbols and numbers where inference has none of its own.
Status apply_stated(const Inference& inference, const Types& stated, Types& types) {
    if (stated.size() != types.size()) {
        return inference.fail(Code::kVerify, "has " + std::to_string(types.size()) + " results, the text states " +
                                                 std::to_string(stated.size()));
    }
    for (size_t k = 0; k < types.size(); ++k) {
        if (!compatible(stated[k], types[k])) {
            return inference.fail(Code::kType,
                                  "gives " + types[k].to_string() + ", the text states " + stated[k].to_string());
        }
        for (size_t i = 0; i < types[k].shape.size(); ++i) {
            if (types[k].shape[i].is_symbol()) {
                types[k].shape[i] = stated[k].shape[i];
            }
        }
    }
    return {};
}

}  // namespace

Result<std::vector<TensorType>> infer_types(const Graph& graph, const NodeSpec& spec, const Module* module) {
    Inference inference{graph, spec, module};
    EMBER_TRY(Types types, inference.infer());
    if (!spec.stated.empty() && spec.op != Op::k_host_call) {
        EMBER_CHECKED(apply_stated(inference, spec.stated, types));
    }
    return types;
}

}  // namespace ember::ir
