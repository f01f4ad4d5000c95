// Opaque ops: one function each, which appends the steps that do it.
// Long because each opaque op has its function here.
#include <algorithm>
#include <functional>

#include "ember/lower/lowering.h"

namespace ember::lower {

using ir::Dim;
using ir::DType;
using ir::Graph;
using ir::kNone;
using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::ValueId;

namespace {

/// Contractions of at most this many products, all lengths known, are generated inline.
constexpr int64_t kInlineProducts = 4096;

bool only_unit_axes_differ(const ir::Shape& from, const ir::Shape& to) {
    for (const ReshapeSegment& s : match_reshape(from, to)) {
        if (s.from_end - s.from_begin > 1 || s.to_end - s.to_begin > 1) {
            return false;
        }
    }
    return true;
}

}  // namespace

/// Finds the values that can be written straight into a concat or an updated slice.
void Lowering::plan_homes() {
    std::vector<int> producing(graph_.values.size(), -1);
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
        const Node& node = graph_.nodes[id];
        int group = grouping_.group[id];
        for (ValueId operand : node.operands) {
            group = std::max(group, producing[operand]);
        }
        for (uint32_t k = 0; k < node.result_count; ++k) {
            producing[node.result(k)] = group;
        }
    }
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
        const Node& node = graph_.nodes[id];
        bool concat = node.op == Op::k_concat;
        if (!concat && node.op != Op::k_update_slice) {
            continue;
        }
        for (size_t k = concat ? 0 : 1; k < (concat ? node.operands.size() : 2); ++k) {
            ValueId value = node.operands[k];
            bool single = grouping_.use_count[value] == 1;
            const Node* from = graph_.producer(value);
            while (single && from != nullptr && from->op == Op::k_reshape &&
                   only_unit_axes_differ(graph_.type(from->operands[0]).shape, graph_.type(value).shape)) {
                value = from->operands[0];
                single = grouping_.use_count[value] == 1;
                from = graph_.producer(value);
            }
            if (!single || from == nullptr ||
                grouping_.role[static_cast<size_t>(from - graph_.nodes.data())] != Role::kGrouped) {
                continue;
            }
            if (!only_unit_axes_differ(graph_.type(value).shape, graph_.type(node.operands[k]).shape)) {
                continue;
            }
            if (!concat && producing[node.operands[0]] >= grouping_.group[graph_.values[value].node]) {
                continue;
            }
            bool starts_known = grouping_.lengths_ready[id] < grouping_.group[graph_.values[value].node];
            for (size_t s = 2; !concat && s < node.operands.size(); ++s) {
                starts_known &= producing[node.operands[s]] < grouping_.group[graph_.values[value].node];
            }
            if (starts_known) {
                piece_of_.emplace(value, std::make_pair(id, k));
            }
        }
    }
}

bool Lowering::may_overwrite(ValueId value, const Node& reader) const {
    if (grouping_.use_count[value] != 1 || !outputs_of_[value].empty()) {
        return false;
    }
    const Node* producer = graph_.producer(value);
    if (producer == nullptr || buffer_[value] < 0 ||
        program_.buffers[static_cast<size_t>(buffer_[value])].kind == BufferKind::kParam) {
        if (!may_donate_ || reader.result_count == 0) {
            return false;
        }
        BufferId buffer = buffer_[value];
        if (buffer < 0 || program_.buffers[static_cast<size_t>(buffer)].kind != BufferKind::kParam) {
            return false;
        }
        auto param = static_cast<uint32_t>(program_.buffers[static_cast<size_t>(buffer)].index);
        // The new value must be what the parameter becomes, directly or after further updates of the same kind.
        ValueId next = reader.op == Op::k_call ? overwritten_result(reader, value) : reader.result();
        while (next != kNone) {
            if (outputs_of_[next].size() == 1 && grouping_.use_count[next] >= 1) {
                bool is_entry = &graph_ == &module_.entry();
                return !is_entry || graph_.outputs[outputs_of_[next][0]].updates == param;
            }
            if (!outputs_of_[next].empty() || grouping_.use_count[next] != 1) {
                return false;
            }
            const Node* user = only_user(next);
            bool goes_on = user != nullptr && (user->op == Op::k_update_slice || user->op == Op::k_scatter) &&
                           user->operands[0] == next;
            next = goes_on ? user->result() : kNone;
        }
        return false;
    }
    auto id = static_cast<size_t>(producer - graph_.nodes.data());
    bool owned = grouping_.role[id] == Role::kGrouped || producer->op == Op::k_concat ||
                 producer->op == Op::k_dot_general || producer->op == Op::k_update_slice ||
                 producer->op == Op::k_scatter || producer->op == Op::k_cumsum || producer->op == Op::k_cumprod;
    bool temporary = program_.buffers[static_cast<size_t>(buffer_[value])].kind == BufferKind::kTemp;
    return owned && temporary && reader.op != Op::k_call && outputs_of_[reader.result()].empty();
}

const Node* Lowering::only_user(ValueId value) const {
    for (const Node& node : graph_.nodes) {
        if (std::find(node.operands.begin(), node.operands.end(), value) != node.operands.end()) {
            return &node;
        }
    }
    return nullptr;
}

ValueId Lowering::overwritten_result(const Node& call, ValueId argument) const {
    const Program& callee =
        tables_.module().programs[static_cast<size_t>(functions_.at(std::string(call.string("callee"))))];
    for (uint32_t k = 0; k < call.result_count; ++k) {
        int param = callee.in_place[k];
        if (param >= 0 && call.operands[static_cast<size_t>(param)] == argument) {
            return call.result(k);
        }
    }
    return kNone;
}

BufferId Lowering::target_of(const Node& node) {
    ValueId result = node.result();
    if (auto found = target_.find(result); found != target_.end()) {
        return found->second;
    }
    BufferId target = -1;
    if (node.op == Op::k_concat) {
        target = make_buffer_for(result);
    } else {
        BufferId from = buffer_of(node.operands[0]);
        if (may_overwrite(node.operands[0], node)) {
            target = from;
            const Buffer& buffer = program_.buffers[static_cast<size_t>(from)];
            if (buffer.kind == BufferKind::kParam && outputs_of_[result].size() == 1) {
                program_.outputs[outputs_of_[result][0]] = from;
                program_.in_place[outputs_of_[result][0]] = buffer.index;
            }
        } else {
            target = make_buffer_for(result);
            program_.steps.emplace_back(CopyBuffer{from, target});
        }
    }
    target_.emplace(result, target);
    return target;
}

Home Lowering::window(BufferId target, size_t rank, std::vector<ScalarId> start) {
    Home home{target, {}, std::move(start)};
    for (size_t axis = 0; axis < rank; ++axis) {
        home.axis_of.push_back(static_cast<int>(axis));
    }
    return home;
}

void Lowering::emit_opaque(const Node& node) {
    switch (node.op) {
        case Op::k_dot_general:
            return emit_contract(node);
        case Op::k_attention:
            return emit_attention(node);
        case Op::k_concat:
            return emit_concat(node);
        case Op::k_update_slice:
            return emit_update_slice(node);
        case Op::k_scatter:
            return emit_scatter(node);
        case Op::k_cumsum:
        case Op::k_cumprod:
            return emit_scan(node);
        case Op::k_sort:
        case Op::k_argsort:
        case Op::k_topk:
            return emit_sort(node);
        case Op::k_searchsorted:
            return emit_searchsorted(node);
        case Op::k_nonzero:
            return emit_nonzero(node);
        case Op::k_unique:
            return emit_unique(node);
        case Op::k_bincount:
            return emit_bincount(node);
        case Op::k_assert:
            return emit_assert(node);
        case Op::k_call:
            return emit_call(node);
        case Op::k_host_call:
            return emit_host_call(node);
        case Op::k_if:
            return emit_if(node);
        case Op::k_loop:
            return emit_loop(node);
        case Op::k_cast:
            return emit_dequantize(node);
        case Op::k_gather:
            return;  // of quantised rows: read by the cast that follows
        default:
            unsupported(node, "has no lowering");
    }
}

// Long because it lists every field of one step in order.
View Lowering::view_of(ValueId value) {
    const Node* node = graph_.producer(value);
    auto contiguous = [&](BufferId buffer) {
        View view{buffer, constant(0), dims_of(value), {}};
        ScalarId stride = constant(1);
        view.strides.assign(view.shape.size(), stride);
        for (size_t axis = view.shape.size(); axis-- > 0;) {
            view.strides[axis] = stride;
            stride = compute(Op::k_mul, {stride, view.shape[axis]});
        }
        return view;
    };
    bool is_virtual = node != nullptr && buffer_[value] < 0 && !grouping_.is_host(graph_, value) &&
                      grouping_.role[static_cast<size_t>(node - graph_.nodes.data())] == Role::kVirtual;
    if (!is_virtual) {
        return contiguous(buffer_of(value));
    }
    switch (node->op) {
        case Op::k_transpose: {
            View from = view_of(node->operands[0]);
            View view{from.buffer, from.offset, {}, {}};
            for (int64_t axis : node->integers("perm")) {
                view.shape.push_back(from.shape[static_cast<size_t>(axis)]);
                view.strides.push_back(from.strides[static_cast<size_t>(axis)]);
            }
            return view;
        }
        case Op::k_slice: {
            View view = view_of(node->operands[0]);
            auto axis = static_cast<size_t>(node->integer("axis"));
            ScalarId skip = compute(Op::k_mul, {scalar_of(node->operands[1]), view.strides[axis]});
            view.offset = compute(Op::k_add, {view.offset, skip});
            view.strides[axis] = compute(Op::k_mul, {view.strides[axis], constant(node->integer_or("step", 1))});
            view.shape[axis] = scalar_of(node->operands[2]);
            return view;
        }
        case Op::k_reshape: {
            const ir::Shape& from_shape = graph_.type(node->operands[0]).shape;
            const ir::Shape& to_shape = graph_.type(value).shape;
            std::vector<ReshapeSegment> segments = match_reshape(from_shape, to_shape);
            bool splits_only = std::all_of(segments.begin(), segments.end(),
                                           [](const ReshapeSegment& s) { return s.from_end - s.from_begin <= 1; });
            if (!splits_only) {
                break;
            }
            View from = view_of(node->operands[0]);
            View view{from.buffer, from.offset, dims_of(value), std::vector<ScalarId>(to_shape.size(), constant(0))};
            for (const ReshapeSegment& s : segments) {
                if (s.from_end == s.from_begin) {
                    continue;
                }
                ScalarId stride = from.strides[s.from_begin];
                for (size_t j = s.to_end; j-- > s.to_begin;) {
                    view.strides[j] = stride;
                    stride = compute(Op::k_mul, {stride, view.shape[j]});
                }
            }
            return view;
        }
        case Op::k_broadcast: {
            View from = view_of(node->operands[0]);
            View view{from.buffer, from.offset, dims_of(value), {}};
            const ir::Shape& from_shape = graph_.type(node->operands[0]).shape;
            size_t missing = view.shape.size() - from.shape.size();
            for (size_t j = 0; j < view.shape.size(); ++j) {
                bool stretched = j < missing || from_shape[j - missing] == Dim(1);
                view.strides.push_back(stretched ? constant(0) : from.strides[j - missing]);
            }
            return view;
        }
        default:
            break;
    }
    return contiguous(buffer_of(value));
}

void Lowering::emit_contract(const Node& node) {
    if (ir::is_quantized(graph_.type(node.operands[1]).dtype)) {
        return emit_quantized_matmul(node);
    }
    if (emit_gemm(node)) {
        return;
    }
    // A plain reduction over the contracted axes, with whatever makes the operands computed on the way.
    const ir::TensorType& type = graph_.type(node.result());
    const auto& batch = node.integers("batch");
    const auto& contract = node.integers("contract");
    ir::Shape space = type.shape;
    std::vector<int> columns;
    KernelBuilder builder(*this, nullptr);
    std::vector<ScalarId> lengths = dims_of(node.result());
    for (size_t i = 0; i < contract.size(); i += 2) {
        columns.push_back(static_cast<int>(space.size()));
        space.push_back(graph_.type(node.operands[0]).shape[static_cast<size_t>(contract[i])]);
        lengths.push_back(dim_of(node.operands[0], static_cast<size_t>(contract[i])));
    }
    builder.set_space_of(space, lengths, columns);
    std::vector<int> at[2];
    size_t free_axis = batch.size() / 2;
    for (size_t side = 0; side < 2; ++side) {
        size_t rank = graph_.type(node.operands[side]).shape.size();
        at[side].assign(rank, -1);
        for (size_t i = 0; i < batch.size(); i += 2) {
            at[side][static_cast<size_t>(batch[i + side])] = builder.axis_index(i / 2);
        }
        for (size_t i = 0; i < contract.size(); i += 2) {
            at[side][static_cast<size_t>(contract[i + side])] = builder.axis_index(type.shape.size() + i / 2);
        }
        for (int& index : at[side]) {
            if (index < 0) {
                index = builder.axis_index(free_axis++);
            }
        }
    }
    int a = builder.emit(node.operands[0], at[0]);
    int b = builder.emit(node.operands[1], at[1]);
    bool bits = type.dtype == DType::kBool;
    int product = builder.map(bits ? Op::k_and : Op::k_mul, {a, b}, type.dtype);
    int total = builder.add({KernelOp::kReduce, bits ? Op::k_or : Op::k_add, type.dtype, 0, {product}});
    BufferId target = make_buffer_for(node.result());
    builder.store(target, total, builder.row_indices());
    builder.finish();
    buffer_[node.result()] = target;
}

bool Lowering::emit_gemm(const Node& node) {
    const ir::TensorType& a_type = graph_.type(node.operands[0]);
    const ir::TensorType& b_type = graph_.type(node.operands[1]);
    const ir::TensorType& type = graph_.type(node.result());
    if (type.dtype != DType::kF32 && type.dtype != DType::kF64) {
        return false;
    }
    const auto& batch = node.integers("batch");
    const auto& contract = node.integers("contract");
    bool has_free_axes = static_cast<size_t>(type.rank()) > batch.size() / 2;
    if (!has_free_axes || contract.empty()) {
        return false;
    }
    if (type.is_static() && a_type.is_static()) {
        int64_t products = type.static_elements();
        for (size_t i = 0; i < contract.size(); i += 2) {
            products *= a_type.shape[static_cast<size_t>(contract[i])].size();
        }
        if (products <= kInlineProducts) {
            return false;
        }
    }
    Gemm gemm;
    gemm.batch = static_cast<int>(batch.size() / 2);
    gemm.k = static_cast<int>(contract.size() / 2);
    gemm.m = a_type.rank() - gemm.batch - gemm.k;
    gemm.n = b_type.rank() - gemm.batch - gemm.k;
    for (size_t side = 0; side < 2; ++side) {
        View whole = view_of(node.operands[side]);
        View& view = side == 0 ? gemm.a : gemm.b;
        view.buffer = whole.buffer;
        view.offset = whole.offset;
        std::vector<bool> used(whole.shape.size(), false);
        auto take = [&](size_t axis) {
            used[axis] = true;
            view.shape.push_back(whole.shape[axis]);
            view.strides.push_back(whole.strides[axis]);
        };
        for (size_t i = 0; i < batch.size(); i += 2) {
            take(static_cast<size_t>(batch[i + side]));
        }
        for (size_t i = 0; i < contract.size(); i += 2) {
            used[static_cast<size_t>(contract[i + side])] = true;
        }
        for (size_t axis = 0; axis < whole.shape.size(); ++axis) {
            if (!used[axis]) {
                take(axis);
            }
        }
        for (size_t i = 0; i < contract.size(); i += 2) {
            take(static_cast<size_t>(contract[i + side]));
        }
    }
    BufferId target = make_buffer_for(node.result());
    buffer_[node.result()] = target;
    gemm.c = view_of(node.result());
    program_.steps.emplace_back(std::move(gemm));
    return true;
}

void Lowering::emit_quantized_matmul(const Node& node) {
    const ir::TensorType& x = graph_.type(node.operands[0]);
    if (node.integers("contract")[0] != x.rank() - 1) {
        unsupported(node, "quantised weights need the contracted axis last on the left");
    }
    QuantizedMatmul step;
    BufferId from = buffer_of(node.operands[0]);
    step.x = View{from, constant(0), {}, {}};
    for (size_t axis = 0; axis + 1 < x.shape.size(); ++axis) {
        step.m.push_back(dim_of(node.operands[0], axis));
    }
    step.weights = buffer_of(node.operands[1]);
    step.n = dim_of(node.operands[1], 0);
    step.k = dim_of(node.operands[1], 1);
    step.result = make_buffer_for(node.result());
    buffer_[node.result()] = step.result;
    program_.steps.emplace_back(std::move(step));
}

void Lowering::emit_dequantize(const Node& node) {
    const Node* gather = graph_.producer(node.operands[0]);
    bool rows = gather != nullptr && gather->op == Op::k_gather;
    if (gather != nullptr && !rows) {
        unsupported(node, "quantised tensors are read whole or by rows");
    }
    if (rows && (gather->integers("axes") != std::vector<int64_t>{0} || graph_.type(gather->operands[0]).rank() != 2 ||
                 gather->string_or("bounds", "raise") != "raise")) {
        unsupported(*gather, "quantised rows are taken by one index tensor on axis 0");
    }
    ValueId source = rows ? gather->operands[0] : node.operands[0];
    const ir::TensorType& type = graph_.type(source);
    DequantizeRows step;
    step.rows = buffer_of(source);
    step.index = -1;
    step.count = constant(1);
    size_t last = type.shape.size() - 1;
    step.length = dim_of(source, last);
    step.limit = dim_of(source, 0);
    if (rows) {
        DType index_dtype = graph_.type(gather->operands[1]).dtype;
        if (index_dtype != DType::kI64 && index_dtype != DType::kI32) {
            unsupported(*gather, "row indices are i32 or i64");
        }
        check_gather_bounds(*gather, 1);
        step.index = buffer_of(gather->operands[1]);
        for (ScalarId dim : dims_of(gather->operands[1])) {
            step.count = compute(Op::k_mul, {step.count, dim});
        }
    } else {
        for (size_t axis = 0; axis < last; ++axis) {
            step.count = compute(Op::k_mul, {step.count, dim_of(source, axis)});
        }
    }
    bool direct = node.dtype() == DType::kF32;
    step.to = direct ? make_buffer_for(node.result()) : new_buffer(DType::kF32, dims_of(node.result()));
    program_.steps.emplace_back(step);
    buffer_[node.result()] = direct ? step.to : converted(step.to, node.result());
}

/// The elements of a buffer in the dtype of `value`, in a buffer of the value's own.
BufferId Lowering::converted(BufferId from, ValueId value) {
    KernelBuilder builder(*this, nullptr);
    builder.set_space(value, graph_.type(value).shape, {});
    std::vector<int> at = builder.space_indices();
    int element = builder.load(from, at);
    int cast = builder.add({KernelOp::kCast, Op::k_select, graph_.type(value).dtype, 0, {element}});
    BufferId to = make_buffer_for(value);
    builder.store(to, cast, std::move(at));
    builder.finish();
    return to;
}

void Lowering::emit_concat(const Node& node) {
    BufferId target = target_of(node);
    auto axis = static_cast<size_t>(node.integer("axis"));
    size_t rank = graph_.type(node.result()).shape.size();
    ScalarId offset = constant(0);
    for (size_t k = 0; k < node.operands.size(); ++k) {
        ValueId piece = node.operands[k];
        if (!is_home(piece, node, k)) {
            std::vector<ScalarId> start(rank, -1);
            start[axis] = offset;
            copy_into(piece, window(target, rank, std::move(start)));
        }
        offset = compute(Op::k_add, {offset, dim_of(piece, axis)});
    }
    buffer_[node.result()] = target;
}

/// Was the operand written in place by the kernel that makes it?
bool Lowering::is_home(ValueId piece, const Node& reader, size_t k) const {
    auto reader_id = static_cast<NodeId>(&reader - graph_.nodes.data());
    for (ValueId value = piece;;) {
        auto found = piece_of_.find(value);
        if (found != piece_of_.end()) {
            return found->second == std::make_pair(reader_id, k);
        }
        const Node* node = graph_.producer(value);
        if (node == nullptr || node->op != Op::k_reshape) {
            return false;
        }
        value = node->operands[0];
    }
}

void Lowering::copy_into(ValueId value, const Home& home) {
    KernelBuilder builder(*this, nullptr);
    builder.set_space(value, graph_.type(value).shape, {});
    std::vector<int> at = builder.space_indices();
    int element = builder.emit(value, at);
    for (size_t axis = 0; axis < at.size(); ++axis) {
        if (home.start[axis] >= 0) {
            at[axis] = builder.index_add(at[axis], builder.scalar_argument(home.start[axis]));
        }
    }
    builder.store(home.buffer, element, std::move(at));
    builder.finish();
}

/// Before any kernel writes a piece into its place.
void Lowering::check_home(const Node& node) {
    auto id = static_cast<size_t>(&node - graph_.nodes.data());
    if (checked_[id]) {
        return;
    }
    checked_[id] = true;
    if (node.op != Op::k_update_slice) {
        return check_node(node);
    }
    const ir::TensorType& update = graph_.type(node.operands[1]);
    bool filled = update.is_static() && update.static_elements() > 0;
    ScalarId count = constant(1);
    for (size_t axis = 0; axis < update.shape.size() && !filled; ++axis) {
        count = compute(Op::k_mul, {count, dim_of(node.operands[1], axis)});
    }
    for (size_t axis = 0; axis < update.shape.size(); ++axis) {
        ScalarId at = scalar_of(node.operands[axis + 2]);
        ScalarId room = compute(Op::k_sub, {dim_of(node.operands[0], axis), dim_of(node.operands[1], axis)});
        if (is_constant(at, 0) && is_constant(room, 0)) {
            continue;
        }
        int message = tables_.message("index:" + describe(node) + ": start %a does not fit axis " +
                                      std::to_string(axis) + " (largest: %b)");
        if (filled) {
            program_.steps.emplace_back(Check{Check::Kind::kInside, at, room, message});
            continue;
        }
        // An empty update may be anywhere.
        auto holds = [&](Op op, ScalarId a, ScalarId b) { return compute(op, {a, b}, DType::kBool); };
        ScalarId inside = holds(Op::k_and, holds(Op::k_ge, at, constant(0)), holds(Op::k_le, at, room));
        ScalarId fine = holds(Op::k_or, inside, holds(Op::k_eq, count, constant(0)));
        program_.steps.emplace_back(Check{Check::Kind::kTrue, fine, room, message, at});
    }
}

void Lowering::emit_update_slice(const Node& node) {
    check_home(node);
    size_t rank = graph_.type(node.result()).shape.size();
    std::vector<ScalarId> start;
    for (size_t axis = 0; axis < rank; ++axis) {
        start.push_back(scalar_of(node.operands[axis + 2]));
    }
    BufferId target = target_of(node);
    if (!is_home(node.operands[1], node, 1)) {
        copy_into(node.operands[1], window(target, rank, std::move(start)));
    }
    buffer_[node.result()] = target;
}

void Lowering::emit_scatter(const Node& node) {
    check_gather_bounds(node, 2);
    BufferId target = target_of(node);
    const ir::TensorType& updates = graph_.type(node.operands[1]);
    const auto& axes = node.integers("axes");
    auto first = static_cast<size_t>(axes.front());
    size_t index_rank = graph_.type(node.operands[2]).shape.size();
    Window space = window_of(node, 2);
    KernelBuilder builder(*this, nullptr);
    builder.set_space_of(space.shape, space.lengths, {});
    builder.kernel().serial = true;
    const std::vector<int> at = builder.space_indices();
    std::vector<int> to(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(first));
    std::vector<int> index_at(at.begin() + static_cast<std::ptrdiff_t>(first),
                              at.begin() + static_cast<std::ptrdiff_t>(first + index_rank));
    for (size_t k = 0; k < axes.size(); ++k) {
        ValueId indices = node.operands[k + 2];
        const ir::Shape& own = graph_.type(indices).shape;
        std::vector<int> own_at = index_at;
        for (size_t i = 0; i < own.size(); ++i) {
            own_at[i] = own[i] == Dim(1) ? builder.constant(0) : own_at[i];
        }
        int extent = builder.extent_value(builder.extent_of(dim_of(node.operands[0], first + k)));
        to.push_back(builder.wrapped_index(builder.emit(indices, own_at), graph_.type(indices).dtype, extent,
                                           node.string_or("bounds", "raise")));
    }
    to.insert(to.end(), at.begin() + static_cast<std::ptrdiff_t>(first + index_rank), at.end());
    static constexpr std::pair<std::string_view, Op> kCombine[] = {
        {"set", Op::k_select}, {"add", Op::k_add}, {"mul", Op::k_mul}, {"max", Op::k_max}, {"min", Op::k_min}};
    Op combine = Op::k_select;
    for (const auto& [name, op] : kCombine) {
        combine = name == node.string("mode") ? op : combine;
    }
    int value = builder.emit(node.operands[1], builder.broadcast_at(at, updates.shape));
    builder.store(target, value, std::move(to), combine);
    builder.finish();
    buffer_[node.result()] = target;
}

void Lowering::emit_scan(const Node& node) {
    KernelBuilder builder(*this, nullptr);
    ValueId x = node.operands[0];
    builder.set_space(x, graph_.type(x).shape, {static_cast<int>(node.integer("axis"))});
    std::vector<int> at = builder.space_indices();
    int element = builder.emit(x, at);
    int running = builder.add(
        {KernelOp::kScan, node.op == Op::k_cumsum ? Op::k_add : Op::k_mul, graph_.type(x).dtype, 0, {element}});
    BufferId target = make_buffer_for(node.result());
    builder.store(target, running, std::move(at));
    builder.finish();
    buffer_[node.result()] = target;
}

void Lowering::emit_assert(const Node& node) {
    std::string message = std::string(node.string("message"));
    for (size_t k = 1; k < node.operands.size(); ++k) {
        ValueId cond = node.operands[k];
        const ir::TensorType& type = graph_.type(cond);
        ScalarId holds = -1;
        if (type.is_scalar()) {
            holds = scalar_of(cond);
        } else {
            KernelBuilder builder(*this, nullptr);
            std::vector<int> columns;
            for (int axis = 0; axis < type.rank(); ++axis) {
                columns.push_back(axis);
            }
            builder.set_space(cond, type.shape, columns);
            int element = builder.emit(cond, builder.space_indices());
            int all = builder.add({KernelOp::kReduce, Op::k_and, DType::kBool, 0, {element}});
            BufferId flag = new_buffer(DType::kBool, {});
            builder.store(flag, all, {});
            builder.finish();
            Scalar load{Scalar::Kind::kLoad, DType::kBool};
            load.index = flag;
            holds = static_cast<ScalarId>(program_.scalars.size());
            program_.scalars.push_back(std::move(load));
            program_.steps.emplace_back(ComputeScalar{holds});
        }
        // The message is the user's: its text is not a pattern.
        program_.steps.emplace_back(Check{Check::Kind::kTrue, holds, holds, tables_.message("assert:" + message)});
    }
    buffer_[node.result()] = buffer_of(node.operands[0]);
}

}  // namespace ember::lower
