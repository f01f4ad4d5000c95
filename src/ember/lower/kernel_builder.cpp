// Kernel bodies, pulled from what must be stored: each value is asked for at an index, views turn indices into indices,
// and equal requests share an instruction.
#include <algorithm>

#include "ember/lower/lowering.h"

namespace ember::lower {

using ir::Dim;
using ir::DType;
using ir::kNone;
using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::OpKind;
using ir::ValueId;

namespace {

std::string instruction_key(const Instruction& i) {
    std::string key;
    auto put = [&key](int64_t value) { key.append(reinterpret_cast<const char*>(&value), sizeof value); };
    put(static_cast<int64_t>(i.op));
    put(static_cast<int64_t>(i.map_op));
    put(static_cast<int64_t>(i.dtype));
    put(i.index);
    for (int arg : i.args) {
        put(arg);
    }
    return key + "|" + i.literal.bytes;
}

Op combiner(Op reduce) {
    switch (reduce) {
        case Op::k_reduce_sum:
            return Op::k_add;
        case Op::k_reduce_prod:
            return Op::k_mul;
        case Op::k_reduce_max:
            return Op::k_max;
        case Op::k_reduce_min:
            return Op::k_min;
        case Op::k_reduce_and:
            return Op::k_and;
        case Op::k_reduce_or:
            return Op::k_or;
        case Op::k_reduce_xor:
            return Op::k_xor;
        default:
            unreachable("combiner of no reduction");
    }
}

}  // namespace

int KernelBuilder::add(Instruction instruction) {
    bool shared = instruction.op != KernelOp::kStore;
    std::string key = shared ? instruction_key(instruction) : std::string();
    if (shared) {
        if (auto found = known_.find(key); found != known_.end()) {
            return found->second;
        }
    }
    int id = static_cast<int>(kernel_.body.size());
    kernel_.body.push_back(std::move(instruction));
    if (shared) {
        known_.emplace(std::move(key), id);
    }
    return id;
}

int KernelBuilder::constant(int64_t value) {
    return add({KernelOp::kConst, Op::k_select, DType::kI64, 0, {}, ir::scalar_literal(DType::kI64, value)});
}

int KernelBuilder::map(Op op, std::vector<int> args, DType dtype) {
    return add({KernelOp::kMap, op, dtype, 0, std::move(args)});
}

int KernelBuilder::index_add(int a, int b) {
    int zero = constant(0);
    if (a == zero) {
        return b;
    }
    return b == zero ? a : map(Op::k_add, {a, b}, DType::kI64);
}

int KernelBuilder::index_mul(int a, int b) {
    int zero = constant(0);
    int one = constant(1);
    if (a == zero || b == zero) {
        return zero;
    }
    if (a == one) {
        return b;
    }
    return b == one ? a : map(Op::k_mul, {a, b}, DType::kI64);
}

int KernelBuilder::scalar_argument(ScalarId scalar) {
    const Scalar& s = lowering_.program().scalars[static_cast<size_t>(scalar)];
    if (s.kind == Scalar::Kind::kConst) {
        return add({KernelOp::kConst, Op::k_select, s.dtype, 0, {}, s.literal});
    }
    auto found = std::find(scalars_.begin(), scalars_.end(), scalar);
    int index = static_cast<int>(found - scalars_.begin());
    if (found == scalars_.end()) {
        scalars_.push_back(scalar);
        kernel_.scalars.push_back(s.dtype);
    }
    return add({KernelOp::kScalar, Op::k_select, s.dtype, index});
}

Extent KernelBuilder::extent_of(ScalarId scalar) {
    const Scalar& s = lowering_.program().scalars[static_cast<size_t>(scalar)];
    if (s.kind == Scalar::Kind::kConst) {
        return {ir::literal_as_int(s.literal), -1};
    }
    return {-1, kernel_.body[static_cast<size_t>(scalar_argument(scalar))].index};
}

int KernelBuilder::extent_value(Extent extent) {
    return extent.is_static() ? constant(extent.size)
                              : add({KernelOp::kScalar, Op::k_select, DType::kI64, extent.scalar});
}

int KernelBuilder::buffer_argument(BufferId buffer, bool written) {
    auto found = std::find(buffers_.begin(), buffers_.end(), buffer);
    auto index = static_cast<size_t>(found - buffers_.begin());
    if (found == buffers_.end()) {
        buffers_.push_back(buffer);
        const Buffer& b = lowering_.program().buffers[static_cast<size_t>(buffer)];
        KernelBuffer argument{b.dtype, {}, false};
        std::vector<ScalarId> shape = b.shape;
        for (ScalarId dim : shape) {
            argument.shape.push_back(extent_of(dim));
        }
        kernel_.buffers.push_back(std::move(argument));
    }
    kernel_.buffers[index].written |= written;
    return static_cast<int>(index);
}

int KernelBuilder::load(BufferId buffer, std::vector<int> at) {
    int index = buffer_argument(buffer, false);
    return add(
        {KernelOp::kLoad, Op::k_select, kernel_.buffers[static_cast<size_t>(index)].dtype, index, std::move(at)});
}

void KernelBuilder::store(BufferId buffer, int value, std::vector<int> at, Op combine) {
    int index = buffer_argument(buffer, true);
    at.insert(at.begin(), value);
    add({KernelOp::kStore, combine, kernel_.buffers[static_cast<size_t>(index)].dtype, index, std::move(at)});
}

void KernelBuilder::set_space(ValueId like, const ir::Shape& space, const std::vector<int>& columns) {
    set_space_of(space, lowering_.dims_of(like), columns);
}

void KernelBuilder::set_space_of(const ir::Shape& space, const std::vector<ScalarId>& lengths,
                                 const std::vector<int>& columns) {
    column_axes_ = columns;
    space_.assign(space.size(), 0);
    auto add_axis = [&](size_t axis) {
        if (space[axis] == Dim(1)) {
            space_[axis] = constant(0);
            return;
        }
        space_[axis] = add({KernelOp::kIndex, Op::k_select, DType::kI64, static_cast<int>(kernel_.extents.size())});
        kernel_.extents.push_back(extent_of(lengths[axis]));
    };
    for (size_t axis = 0; axis < space.size(); ++axis) {
        if (std::find(columns.begin(), columns.end(), static_cast<int>(axis)) == columns.end()) {
            add_axis(axis);
        }
    }
    kernel_.row_rank = static_cast<int>(kernel_.extents.size());
    for (int axis : columns) {
        add_axis(static_cast<size_t>(axis));
    }
}

std::vector<int> KernelBuilder::row_indices() const {
    std::vector<int> rows;
    for (size_t axis = 0; axis < space_.size(); ++axis) {
        if (std::find(column_axes_.begin(), column_axes_.end(), static_cast<int>(axis)) == column_axes_.end()) {
            rows.push_back(space_[axis]);
        }
    }
    return rows;
}

std::vector<int> KernelBuilder::broadcast_at(const std::vector<int>& at, const ir::Shape& shape) {
    std::vector<int> result(at.end() - static_cast<std::ptrdiff_t>(shape.size()), at.end());
    for (size_t i = 0; i < shape.size(); ++i) {
        if (shape[i] == Dim(1)) {
            result[i] = constant(0);
        }
    }
    return result;
}

int KernelBuilder::emit(ValueId value, std::vector<int> at) {
    const ir::Shape& shape = lowering_.graph().type(value).shape;
    check(at.size() == shape.size(), "one index an axis");
    for (size_t i = 0; i < at.size(); ++i) {
        if (shape[i] == Dim(1)) {
            at[i] = constant(0);
        }
    }
    if (auto found = memo_.find({value, at}); found != memo_.end()) {
        return found->second;
    }
    const Node* node = lowering_.graph().producer(value);
    const Grouping& grouping = lowering_.grouping();
    int result = -1;
    if (grouping.is_host(lowering_.graph(), value)) {
        result = scalar_argument(lowering_.scalar_of(value));
    } else if (lowering_.has_buffer(value)) {
        result = load(lowering_.buffer_of(value), at);
    } else {
        check(node != nullptr, "a parameter has a buffer");
        auto id = static_cast<NodeId>(node - lowering_.graph().nodes.data());
        Role role = grouping.role[id];
        bool here = group_ != nullptr && role == Role::kGrouped &&
                    std::find(group_->members.begin(), group_->members.end(), id) != group_->members.end();
        if (role == Role::kVirtual || here) {
            result = emit_node(value, *node, at);
        } else {
            result = load(lowering_.buffer_of(value), at);
        }
    }
    memo_.emplace(std::make_pair(value, std::move(at)), result);
    return result;
}

// Long because it is one case analysis.
int KernelBuilder::emit_node(ValueId value, const Node& node, const std::vector<int>& at) {
    const ir::Graph& graph = lowering_.graph();
    switch (ir::kind(node.op)) {
        case OpKind::kMap:
            return emit_map(node, at);
        case OpKind::kCast: {
            int arg = emit(node.operands[0], at);
            return add({KernelOp::kCast, Op::k_select, node.dtype(), 0, {arg}});
        }
        case OpKind::kReduce:
        case OpKind::kArgReduce:
            return emit_reduce(node);
        case OpKind::kPad:
            return emit_pad(node, at);
        case OpKind::kGather:
            return node.op == Op::k_gather ? emit_gather(node, at) : emit_take_along(node, at);
        default:
            break;
    }
    switch (node.op) {
        case Op::k_const: {
            Instruction table{KernelOp::kTable, Op::k_select, node.literal().dtype, 0, at, node.literal()};
            return add(std::move(table));
        }
        case Op::k_iota:
            return node.dtype() == DType::kI64 ? at[0] : add({KernelOp::kCast, Op::k_select, node.dtype(), 0, {at[0]}});
        case Op::k_transpose: {
            std::vector<int> from(at.size());
            for (size_t i = 0; i < at.size(); ++i) {
                from[static_cast<size_t>(node.integers("perm")[i])] = at[i];
            }
            return emit(node.operands[0], std::move(from));
        }
        case Op::k_broadcast:
            return emit(node.operands[0], broadcast_at(at, graph.type(node.operands[0]).shape));
        case Op::k_slice: {
            std::vector<int> from = at;
            auto axis = static_cast<size_t>(node.integer("axis"));
            int scaled = index_mul(from[axis], constant(node.integer_or("step", 1)));
            from[axis] = index_add(scaled, scalar_argument(lowering_.scalar_of(node.operands[1])));
            return emit(node.operands[0], std::move(from));
        }
        case Op::k_split: {
            std::vector<int> from = at;
            auto axis = static_cast<size_t>(node.integer("axis"));
            ScalarId start = lowering_.constant(0);
            for (uint32_t k = 0; k < graph.values[value].index; ++k) {
                start = lowering_.compute(Op::k_add, {start, lowering_.scalar_of(node.operands[k + 1])});
            }
            from[axis] = index_add(from[axis], scalar_argument(start));
            return emit(node.operands[0], std::move(from));
        }
        case Op::k_reverse: {
            std::vector<int> from = at;
            for (int64_t axis : node.integers("axes")) {
                auto k = static_cast<size_t>(axis);
                int last = index_add(scalar_argument(lowering_.dim_of(node.operands[0], k)), constant(-1));
                from[k] = map(Op::k_sub, {last, from[k]}, DType::kI64);
            }
            return emit(node.operands[0], std::move(from));
        }
        case Op::k_reshape:
            return emit_reshape(node, at);
        default:
            lowering_.unsupported(node, "has no kernel form");
    }
}

int KernelBuilder::emit_map(const Node& node, const std::vector<int>& at) {
    const ir::Graph& graph = lowering_.graph();
    std::vector<int> args;
    for (ValueId operand : node.operands) {
        args.push_back(emit(operand, broadcast_at(at, graph.type(operand).shape)));
    }
    return map(node.op, std::move(args), graph.type(node.result()).dtype);
}

int KernelBuilder::emit_reduce(const Node& node) {
    int arg = emit(node.operands[0], space_);
    DType dtype = lowering_.graph().type(node.result()).dtype;
    if (ir::kind(node.op) == OpKind::kArgReduce) {
        return add({KernelOp::kArgReduce, node.op == Op::k_argmax ? Op::k_gt : Op::k_lt, dtype, 0, {arg}});
    }
    return add({KernelOp::kReduce, combiner(node.op), dtype, 0, {arg}});
}

int KernelBuilder::linear(const std::vector<int>& at, const std::vector<Extent>& shape) {
    int offset = constant(0);
    for (size_t i = 0; i < at.size(); ++i) {
        offset = index_add(index_mul(offset, extent_value(shape[i])), at[i]);
    }
    return offset;
}

int KernelBuilder::emit_reshape(const Node& node, const std::vector<int>& at) {
    const ir::Graph& graph = lowering_.graph();
    ValueId source = node.operands[0];
    const ir::Shape& from = graph.type(source).shape;
    const ir::Shape& to = graph.type(node.result()).shape;
    std::vector<int> inner(from.size(), constant(0));
    for (const ReshapeSegment& s : match_reshape(from, to)) {
        if (s.from_end == s.from_begin) {
            continue;
        }
        if (s.from_end - s.from_begin == 1 && s.to_end - s.to_begin == 1) {
            inner[s.from_begin] = at[s.to_begin];
            continue;
        }
        std::vector<int> part(at.begin() + static_cast<std::ptrdiff_t>(s.to_begin),
                              at.begin() + static_cast<std::ptrdiff_t>(s.to_end));
        std::vector<Extent> lengths;
        for (size_t j = s.to_begin; j < s.to_end; ++j) {
            lengths.push_back(extent_of(lowering_.dim_of(node.result(), j)));
        }
        int rest = linear(part, lengths);
        for (size_t i = s.from_end; i-- > s.from_begin;) {
            if (i == s.from_begin) {
                inner[i] = rest;
                break;
            }
            int length = extent_value(extent_of(lowering_.dim_of(source, i)));
            inner[i] = add({KernelOp::kMap, Op::k_mod, DType::kI64, 1, {rest, length}});
            rest = add({KernelOp::kMap, Op::k_floor_div, DType::kI64, 1, {rest, length}});
        }
    }
    bool direct = lowering_.has_buffer(source) && !lowering_.grouping().is_host(graph, source);
    bool plain = true;
    for (const ReshapeSegment& s : match_reshape(from, to)) {
        plain &= s.from_end - s.from_begin <= 1;
    }
    if (direct && !plain) {
        BufferId buffer = lowering_.buffer_of(source);
        std::vector<Extent> lengths;
        for (size_t j = 0; j < to.size(); ++j) {
            lengths.push_back(extent_of(lowering_.dim_of(node.result(), j)));
        }
        return load(buffer, {linear(at, lengths)});
    }
    return emit(source, std::move(inner));
}

int KernelBuilder::wrapped_index(int index, DType dtype, int extent, std::string_view bounds) {
    if (dtype != DType::kI64) {
        index = add({KernelOp::kCast, Op::k_select, DType::kI64, 0, {index}});
    }
    int zero = constant(0);
    if (bounds == "wrap") {
        return map(Op::k_mod, {index, extent}, DType::kI64);
    }
    if (bounds == "clip") {
        int last = index_add(extent, constant(-1));
        return map(Op::k_max, {map(Op::k_min, {index, last}, DType::kI64), zero}, DType::kI64);
    }
    int negative = map(Op::k_lt, {index, zero}, DType::kBool);
    int turned = map(Op::k_select, {negative, index_add(index, extent), index}, DType::kI64);
    return turned;
}

int KernelBuilder::emit_gather(const Node& node, const std::vector<int>& at) {
    const ir::Graph& graph = lowering_.graph();
    lowering_.check_gather_bounds(node, 1);
    const auto& axes = node.integers("axes");
    auto first = static_cast<size_t>(axes.front());
    size_t index_rank = graph.type(node.operands[1]).shape.size();
    std::vector<int> from(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(first));
    std::vector<int> index_at(at.begin() + static_cast<std::ptrdiff_t>(first),
                              at.begin() + static_cast<std::ptrdiff_t>(first + index_rank));
    for (size_t k = 0; k < axes.size(); ++k) {
        ValueId indices = node.operands[k + 1];
        int extent = extent_value(extent_of(lowering_.dim_of(node.operands[0], first + k)));
        int index = emit(indices, broadcast_at(index_at, graph.type(indices).shape));
        from.push_back(wrapped_index(index, graph.type(indices).dtype, extent, node.string_or("bounds", "raise")));
    }
    from.insert(from.end(), at.begin() + static_cast<std::ptrdiff_t>(first + index_rank), at.end());
    return emit(node.operands[0], std::move(from));
}

int KernelBuilder::emit_take_along(const Node& node, const std::vector<int>& at) {
    lowering_.check_gather_bounds(node, 1);
    auto axis = static_cast<size_t>(node.integer("axis"));
    std::vector<int> from = at;
    int extent = extent_value(extent_of(lowering_.dim_of(node.operands[0], axis)));
    from[axis] = wrapped_index(emit(node.operands[1], at), lowering_.graph().type(node.operands[1]).dtype, extent,
                               node.string_or("bounds", "raise"));
    return emit(node.operands[0], std::move(from));
}

int KernelBuilder::emit_pad(const Node& node, const std::vector<int>& at) {
    auto axis = static_cast<size_t>(node.integer("axis"));
    int low = scalar_argument(lowering_.scalar_of(node.operands[2]));
    int extent = extent_value(extent_of(lowering_.dim_of(node.operands[0], axis)));
    int zero = constant(0);
    std::vector<int> from = at;
    int inner = low == zero ? at[axis] : map(Op::k_sub, {at[axis], low}, DType::kI64);
    int inside =
        map(Op::k_and, {map(Op::k_ge, {inner, zero}, DType::kBool), map(Op::k_lt, {inner, extent}, DType::kBool)},
            DType::kBool);
    from[axis] =
        map(Op::k_max, {map(Op::k_min, {inner, index_add(extent, constant(-1))}, DType::kI64), zero}, DType::kI64);
    int value = emit(node.operands[1], {});
    return map(Op::k_select, {inside, emit(node.operands[0], std::move(from)), value},
               lowering_.graph().type(node.result()).dtype);
}

bool KernelBuilder::loads_only_at(BufferId buffer, const std::vector<int>& at) const {
    auto found = std::find(buffers_.begin(), buffers_.end(), buffer);
    if (found == buffers_.end()) {
        return true;
    }
    auto index = static_cast<int>(found - buffers_.begin());
    return std::all_of(kernel_.body.begin(), kernel_.body.end(), [&](const Instruction& i) {
        return i.op != KernelOp::kLoad || i.index != index || i.args == at;
    });
}

// Long because it is one case analysis.
/// Joins axes k and k+1 of the space into one where every access walks them as one.
bool KernelBuilder::collapse_pair(int k) {
    int first = -1;
    int second = -1;
    for (size_t i = 0; i < kernel_.body.size(); ++i) {
        if (kernel_.body[i].op == KernelOp::kIndex) {
            // Of several with one number, the first is in use, the others were joined into it.
            first = first < 0 && kernel_.body[i].index == k ? static_cast<int>(i) : first;
            second = second < 0 && kernel_.body[i].index == k + 1 ? static_cast<int>(i) : second;
        }
    }
    if (first < 0 || second < 0) {
        return false;
    }
    Extent outer = kernel_.extents[static_cast<size_t>(k)];
    Extent inner = kernel_.extents[static_cast<size_t>(k) + 1];
    std::vector<size_t> joint(kernel_.buffers.size(), SIZE_MAX);  // position of the outer axis
    std::vector<bool> seen(kernel_.buffers.size(), false);
    for (const Instruction& i : kernel_.body) {
        bool access = i.op == KernelOp::kLoad || i.op == KernelOp::kStore;
        size_t skip = i.op == KernelOp::kStore ? 1 : 0;
        size_t position = SIZE_MAX;
        for (size_t a = 0; a < i.args.size(); ++a) {
            if (i.args[a] != first && i.args[a] != second) {
                continue;
            }
            if (!access || a < skip) {
                return false;
            }
            const KernelBuffer& buffer = kernel_.buffers[static_cast<size_t>(i.index)];
            if (i.args.size() - skip != buffer.shape.size()) {
                return false;
            }
            if (i.args[a] == second) {
                if (position == SIZE_MAX || position + 1 != a) {
                    return false;
                }
                continue;
            }
            bool fits = a + 1 < i.args.size() && i.args[a + 1] == second && buffer.shape[a + 1 - skip] == inner &&
                        buffer.shape[a - skip] == outer;
            if (!fits || position != SIZE_MAX) {
                return false;
            }
            position = a;
        }
        if (access) {
            auto b = static_cast<size_t>(i.index);
            size_t axis = position == SIZE_MAX ? SIZE_MAX : position - skip;
            if (seen[b] && joint[b] != axis) {
                return false;
            }
            seen[b] = true;
            joint[b] = axis;
        }
    }
    Extent product;
    if (outer.is_static() && inner.is_static()) {
        product.size = outer.size * inner.size;
    } else {
        auto as_scalar = [&](Extent e) {
            return e.is_static() ? lowering_.constant(e.size) : scalars_[static_cast<size_t>(e.scalar)];
        };
        product = extent_of(lowering_.compute(Op::k_mul, {as_scalar(outer), as_scalar(inner)}));
    }
    for (Instruction& i : kernel_.body) {
        bool access = i.op == KernelOp::kLoad || i.op == KernelOp::kStore;
        if (access && joint[static_cast<size_t>(i.index)] != SIZE_MAX) {
            i.args.erase(std::find(i.args.begin(), i.args.end(), second));
        }
        if (i.op == KernelOp::kIndex && i.index > k) {
            --i.index;  // the second index, now unused, is a duplicate of the first
        }
    }
    for (size_t b = 0; b < kernel_.buffers.size(); ++b) {
        if (joint[b] != SIZE_MAX) {
            auto& shape = kernel_.buffers[b].shape;
            shape[joint[b]] = product;
            shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(joint[b]) + 1);
        }
    }
    kernel_.extents[static_cast<size_t>(k)] = product;
    kernel_.extents.erase(kernel_.extents.begin() + k + 1);
    if (k + 1 < kernel_.row_rank) {
        --kernel_.row_rank;
    }
    return true;
}

void KernelBuilder::collapse() {
    // Axes of length 1 say nothing about where an element is.
    for (size_t b = 0; b < kernel_.buffers.size(); ++b) {
        std::vector<Extent>& shape = kernel_.buffers[b].shape;
        for (size_t axis = shape.size(); axis-- > 0;) {
            if (!shape[axis].is_one()) {
                continue;
            }
            bool plain = true;
            for (const Instruction& i : kernel_.body) {
                bool access = (i.op == KernelOp::kLoad || i.op == KernelOp::kStore) && i.index == static_cast<int>(b);
                size_t skip = i.op == KernelOp::kStore ? 1 : 0;
                plain &= !access || i.args.size() - skip == shape.size();
            }
            if (!plain) {
                continue;
            }
            for (Instruction& i : kernel_.body) {
                if ((i.op == KernelOp::kLoad || i.op == KernelOp::kStore) && i.index == static_cast<int>(b)) {
                    i.args.erase(i.args.begin() + static_cast<std::ptrdiff_t>(axis + (i.op == KernelOp::kStore)));
                }
            }
            shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(axis));
        }
    }
    if (kernel_.serial) {
        return;
    }
    for (int k = static_cast<int>(kernel_.extents.size()) - 2; k >= 0; --k) {
        bool same_side = k + 1 < kernel_.row_rank || k >= kernel_.row_rank;
        if (same_side && collapse_pair(k) && k + 1 < static_cast<int>(kernel_.extents.size())) {
            ++k;  // the joined axis may join with the next one too
        }
    }
}

void KernelBuilder::finish() {
    bool reduces = std::any_of(kernel_.body.begin(), kernel_.body.end(), [](const Instruction& i) {
        return i.op == KernelOp::kReduce || i.op == KernelOp::kArgReduce || i.op == KernelOp::kScan;
    });
    if (!reduces) {
        kernel_.row_rank = static_cast<int>(kernel_.extents.size());  // all axes are alike: they may join freely
    }
    collapse();
    if (!reduces && kernel_.row_rank > 0) {
        kernel_.row_rank = static_cast<int>(kernel_.extents.size()) - 1;
    }
    Launch launch;
    launch.buffers = buffers_;
    launch.scalars = scalars_;
    launch.kernel = lowering_.tables().kernel(std::move(kernel_));
    lowering_.program().steps.emplace_back(std::move(launch));
}

}  // namespace ember::lower
