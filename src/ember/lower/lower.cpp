// Programs: parameters, buffers, checks, the order of steps: see lower.h.
#include "ember/lower/lower.h"

#include <algorithm>

#include "ember/lower/in_place.h"
#include "ember/lower/lowering.h"

namespace ember::lower {

using ir::DType;
using ir::Graph;
using ir::kNone;
using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::ValueId;

int ModuleTables::kernel(Kernel kernel) {
    auto [entry, added] = kernels_.emplace(kernel.to_string(), static_cast<int>(module_.kernels.size()));
    if (added) {
        module_.kernels.push_back(std::move(kernel));
    }
    return entry->second;
}

int ModuleTables::message(const std::string& text) {
    auto [entry, added] = messages_.emplace(text, static_cast<int>(module_.messages.size()));
    if (added) {
        module_.messages.push_back(text);
    }
    return entry->second;
}

Lowering::Lowering(const Graph& graph, const ir::Module& module, ModuleTables& tables,
                   const std::unordered_map<std::string, int>& functions)
    : graph_(graph), module_(module), tables_(tables), functions_(functions), grouping_(group_nodes(graph)) {
    program_.name = graph.name;
    buffer_.assign(graph.values.size(), -1);
    scalar_.assign(graph.values.size(), -1);
    checked_.assign(graph.nodes.size(), false);
    outputs_of_.resize(graph.values.size());
    for (uint32_t i = 0; i < graph.outputs.size(); ++i) {
        outputs_of_[graph.outputs[i].value].push_back(i);
    }
    for (const ir::Value& value : graph.values) {
        for (ir::Dim dim : value.type.shape) {
            if (dim.is_symbol()) {
                symbol_numbers_.emplace(dim.code(), symbol_numbers_.size());
            }
        }
    }
}

void Lowering::unsupported(const Node& node, const std::string& what) const {
    throw Unsupported{error(Code::kUnsupported, std::string(op_name(node.op)) + ": " + what)};
}

std::string Lowering::describe(const Node& node) const {
    std::string text(op_name(node.op));
    text += "(";
    for (size_t k = 0; k < node.operands.size(); ++k) {
        text += (k == 0 ? "" : ", ") + type_text(graph_.type(node.operands[k]));
    }
    return text + ")";
}

/// Symbols are called n0, n1, … in order of appearance: their own names are no part of the key, and so of no message.
std::string Lowering::type_text(const ir::TensorType& type) const {
    std::string text(ir::dtype_name(type.dtype));
    text += "[";
    for (size_t axis = 0; axis < type.shape.size(); ++axis) {
        ir::Dim dim = type.shape[axis];
        text += axis == 0 ? "" : ",";
        text += dim.is_static() ? std::to_string(dim.size()) : "n" + std::to_string(symbol_numbers_.at(dim.code()));
    }
    return text + "]";
}

Program Lowering::run() {
    prepare_params();
    check_params();
    plan_homes();
    emit_groups();
    for (const ir::Output& output : graph_.outputs) {
        check_carried(output.value);
    }
    emit_outputs();
    bool is_called = &graph_ != &module_.entry();
    if (is_called && may_donate_) {
        take_preconditions(program_);
    }
    protect_parameters(program_, tables_.module());
    plan_memory(program_);
    if (is_called) {
        measure_workspace();
    }
    program_.may_fail = std::any_of(program_.steps.begin(), program_.steps.end(),
                                    [&](const Step& step) { return may_fail(step, tables_.module()); });
    return std::move(program_);
}

void Lowering::prepare_params() {
    program_.outputs.assign(graph_.outputs.size(), -1);
    program_.in_place.assign(graph_.outputs.size(), -1);
    for (size_t i = 0; i < graph_.params.size(); ++i) {
        ValueId value = graph_.params[i].value;
        const ir::TensorType& type = graph_.type(value);
        program_.params.push_back(type);
        Buffer buffer{BufferKind::kParam, static_cast<int>(i), type.dtype, {}};
        for (size_t axis = 0; axis < type.shape.size(); ++axis) {
            ir::Dim dim = type.shape[axis];
            if (dim.is_static()) {
                buffer.shape.push_back(constant(dim.size()));
                continue;
            }
            auto [entry, added] = symbols_.emplace(dim.code(), static_cast<ScalarId>(program_.scalars.size()));
            if (added) {
                Scalar scalar{Scalar::Kind::kParamDim, DType::kI64};
                scalar.index = static_cast<int>(i);
                scalar.axis = static_cast<int>(axis);
                program_.scalars.push_back(std::move(scalar));
                program_.steps.emplace_back(ComputeScalar{entry->second});
            }
            buffer.shape.push_back(entry->second);
        }
        buffer_[value] = static_cast<BufferId>(program_.buffers.size());
        program_.param_buffers.push_back(buffer_[value]);
        program_.buffers.push_back(std::move(buffer));
    }
    bool is_function = region_.open.empty() && &graph_ != &module_.entry();
    program_.open = is_function ? open_outputs(graph_) : region_.open;
    program_.open.resize(graph_.outputs.size(), false);
    for (const ir::Output& output : graph_.outputs) {
        program_.output_types.push_back(graph_.type(output.value));
    }
}

BufferId Lowering::new_buffer(DType dtype, std::vector<ScalarId> shape) {
    program_.buffers.push_back({BufferKind::kTemp, -1, dtype, std::move(shape)});
    return static_cast<BufferId>(program_.buffers.size()) - 1;
}

BufferId Lowering::make_buffer_for(ValueId value) {
    BufferId id = new_buffer(graph_.type(value).dtype, dims_of(value));
    if (!outputs_of_[value].empty()) {
        check_carried(value);
        uint32_t output = outputs_of_[value].front();
        program_.buffers[static_cast<size_t>(id)].kind = BufferKind::kOutput;
        program_.buffers[static_cast<size_t>(id)].index = static_cast<int>(output);
        program_.outputs[output] = id;
    }
    return id;
}

BufferId Lowering::buffer_of(ValueId value) {
    if (buffer_[value] >= 0) {
        return buffer_[value];
    }
    const Node* node = graph_.producer(value);
    check(node != nullptr, "a parameter has a buffer");
    if (node->op == Op::k_reshape && graph_.type(node->operands[0]).rank() >= 0 && !grouping_.is_host(graph_, value) &&
        outputs_of_[value].empty()) {
        // The same elements: a second name for the operand's buffer.
        BufferId from = buffer_of(node->operands[0]);
        Buffer alias = program_.buffers[static_cast<size_t>(from)];
        alias.shape = dims_of(value);
        program_.buffers.push_back(std::move(alias));
        auto id = static_cast<BufferId>(program_.buffers.size()) - 1;
        program_.buffers[static_cast<size_t>(id)].alias_of = from;
        buffer_[value] = id;
        return id;
    }
    Role role = grouping_.role[static_cast<size_t>(node - graph_.nodes.data())];
    check(role == Role::kVirtual || role == Role::kHost, "the buffer of a value that is not made yet");
    launch({{value, {}, false, kNone}}, nullptr);
    return buffer_[value];
}

void Lowering::emit_groups() {
    // Nodes are checked in order: all of a group and what stands before its last node run, but for those whose lengths
    // a later group makes.
    std::vector<bool> checked(graph_.nodes.size(), false);
    size_t first = 0;
    auto check_before = [&](int g, NodeId last) {
        for (size_t id = first; id <= last && id < checked.size(); ++id) {
            int own = grouping_.group[id];
            if (!checked[id] && (own == g || (own < 0 && grouping_.lengths_ready[id] < g))) {
                check_node(graph_.nodes[id]);
                checked[id] = true;
            }
        }
        while (first < checked.size() && checked[first]) {
            ++first;
        }
    };
    for (size_t g = 0; g < grouping_.groups.size(); ++g) {
        const Group& group = grouping_.groups[g];
        check_before(static_cast<int>(g), group.opaque ? group.node : group.members.back());
        if (group.opaque) {
            emit_opaque(graph_.nodes[group.node]);
        } else {
            emit_kernel_group(static_cast<int>(g));
        }
    }
    check_before(INT32_MAX, kNone);
}

/// Have all who read the value done so once group g has run? Views read when they are read.
bool Lowering::is_read_by(ValueId value, int g) const {
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
        const Node& node = graph_.nodes[id];
        if (std::find(node.operands.begin(), node.operands.end(), value) == node.operands.end()) {
            continue;
        }
        bool grouped = grouping_.role[id] == Role::kGrouped && grouping_.group[id] <= g;
        bool passes_on = node.op == Op::k_assert || node.op == Op::k_gather;
        bool step = grouping_.role[id] == Role::kOpaque && grouping_.group[id] < g && !passes_on;
        if (!grouped && !step) {
            return false;
        }
    }
    return true;
}

void Lowering::emit_kernel_group(int g) {
    const Group& group = grouping_.groups[static_cast<size_t>(g)];
    std::vector<Root> roots;
    for (NodeId id : group.members) {
        ValueId value = graph_.nodes[id].result();
        if (!grouping_.escapes[value]) {
            continue;
        }
        Root root{value, {}, false, kNone};
        if (auto piece = piece_of_.find(value); piece != piece_of_.end()) {
            const Node& reader = graph_.nodes[piece->second.first];
            check_home(reader);
            BufferId target = target_of(reader);
            size_t rank = program_.buffers[static_cast<size_t>(target)].shape.size();
            std::vector<ScalarId> start(rank, -1);
            if (reader.op == Op::k_concat) {
                ScalarId offset = constant(0);
                auto axis = static_cast<size_t>(reader.integer("axis"));
                for (size_t k = 0; k < piece->second.second; ++k) {
                    offset = compute(Op::k_add, {offset, dim_of(reader.operands[k], axis)});
                }
                start[axis] = offset;
            } else {
                for (size_t axis = 0; axis < rank; ++axis) {
                    start[axis] = scalar_of(reader.operands[axis + 2]);
                }
            }
            root.home = window(target, rank, std::move(start));
            // The piece may reach the reader through reshapes that only add axes of length 1.
            ValueId seen = reader.operands[piece->second.second];
            if (seen != value) {
                root.home.axis_of.assign(rank, -1);
                for (const ReshapeSegment& s : match_reshape(graph_.type(value).shape, graph_.type(seen).shape)) {
                    if (s.from_end > s.from_begin && s.to_end > s.to_begin) {
                        root.home.axis_of[s.to_begin] = static_cast<int>(s.from_begin);
                    }
                }
            }
        }
        for (uint32_t output : outputs_of_[value]) {
            if (graph_.outputs[output].updates != kNone && outputs_of_[value].size() == 1) {
                root.param = graph_.outputs[output].updates;
                ValueId param = graph_.params[root.param].value;
                bool same = graph_.type(param) == graph_.type(value);
                // Where there are reductions, a later pass may read what an earlier one has overwritten.
                root.may_take_param = same && !group.split && !grouping_.escapes[param] && outputs_of_[param].empty();
                root.may_take_param = root.may_take_param && is_read_by(param, g);
            }
        }
        roots.push_back(std::move(root));
    }
    if (!roots.empty()) {
        launch(roots, &group);
    }
}

void Lowering::launch(const std::vector<Root>& roots, const Group* group) {
    KernelBuilder builder(*this, group);
    std::vector<std::pair<ValueId, BufferId>> made;
    if (group != nullptr) {
        // A member of the full space lends it its lengths.
        const Node& first = graph_.nodes[group->members.front()];
        bool reduces = ir::kind(first.op) == ir::OpKind::kReduce || ir::kind(first.op) == ir::OpKind::kArgReduce;
        builder.set_space(reduces ? first.operands[0] : first.result(), group->space, group->column_axes);
    } else {
        builder.set_space(roots[0].value, graph_.type(roots[0].value).shape, {});
    }
    for (const Root& root : roots) {
        bool row = group != nullptr && graph_.type(root.value).shape != group->space;
        const Node& node = *graph_.producer(root.value);
        row |= ir::kind(node.op) == ir::OpKind::kReduce || ir::kind(node.op) == ir::OpKind::kArgReduce;
        std::vector<int> at = row ? builder.row_indices() : builder.space_indices();
        int value = builder.emit(root.value, at);
        BufferId target = root.home.buffer;
        std::vector<int> to = at;
        if (target >= 0) {
            to.clear();
            for (size_t axis = 0; axis < root.home.axis_of.size(); ++axis) {
                int from = root.home.axis_of[axis];
                int index = from < 0 ? builder.constant(0) : at[static_cast<size_t>(from)];
                if (root.home.start[axis] >= 0) {
                    index = builder.index_add(index, builder.scalar_argument(root.home.start[axis]));
                }
                to.push_back(index);
            }
        } else {
            target = make_buffer_for(root.value);
            if (root.may_take_param) {
                BufferId param = program_.param_buffers[root.param];
                if (builder.loads_only_at(param, at)) {
                    program_.in_place[outputs_of_[root.value].front()] = static_cast<int>(root.param);
                    program_.outputs[outputs_of_[root.value].front()] = param;
                    target = param;
                }
            }
            made.emplace_back(root.value, target);
        }
        builder.store(target, value, std::move(to));
    }
    builder.finish();
    for (auto [value, buffer] : made) {
        buffer_[value] = buffer;
    }
}

void Lowering::emit_outputs() {
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
        if (program_.outputs[i] >= 0) {
            continue;
        }
        ValueId value = graph_.outputs[i].value;
        if (buffer_[value] < 0 && graph_.producer(value) != nullptr && outputs_of_[value].front() == i) {
            Role role = grouping_.role[graph_.values[value].node];
            if (role == Role::kVirtual || role == Role::kHost) {
                launch({{value, {}, false, kNone}}, nullptr);
                continue;
            }
        }
        BufferId from = buffer_of(value);
        const Buffer& made = program_.buffers[static_cast<size_t>(from)];
        if (program_.open[i] && made.kind == BufferKind::kGiven && made.alias_of < 0 &&
            outputs_of_[value].front() == i) {
            program_.outputs[i] = from;  // handed on as it is
            continue;
        }
        BufferId to = new_buffer(graph_.type(value).dtype, dims_of(value));
        program_.buffers[static_cast<size_t>(to)].kind = BufferKind::kOutput;
        program_.buffers[static_cast<size_t>(to)].index = static_cast<int>(i);
        program_.outputs[i] = to;
        program_.steps.emplace_back(CopyBuffer{from, to});
    }
}

Result<LoweredModule> lower(const ir::Module& module) {
    LoweredModule lowered;
    ModuleTables tables(lowered);
    std::unordered_map<std::string, int> functions;
    // Callees come first when lowered, so that callers know which results they write in place; the entry takes number
    // 0.
    lowered.programs.emplace_back();
    try {
        std::vector<const Graph*> order;
        for (size_t f = module.functions.size(); f-- > 1;) {
            order.push_back(&module.functions[f]);
        }
        // A callee may stand anywhere; lower each after those it calls.
        std::vector<const Graph*> pending = order;
        auto calls_known = [&](const Graph& graph) {
            return std::all_of(graph.nodes.begin(), graph.nodes.end(), [&](const Node& node) {
                return node.op != Op::k_call || functions.count(std::string(node.string("callee"))) != 0;
            });
        };
        while (!pending.empty()) {
            size_t before = pending.size();
            for (size_t i = 0; i < pending.size();) {
                if (!calls_known(*pending[i])) {
                    ++i;
                    continue;
                }
                Program program = Lowering(*pending[i], module, tables, functions).run();
                functions.emplace(pending[i]->name, static_cast<int>(lowered.programs.size()));
                lowered.programs.push_back(std::move(program));
                pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i));
            }
            if (pending.size() == before) {
                return error(Code::kUnsupported, "functions call each other in a circle");
            }
        }
        lowered.programs[0] = Lowering(module.entry(), module, tables, functions).run();
    } catch (const Unsupported& unsupported) {
        return unsupported.diagnostic;
    }
    return lowered;
}

}  // namespace ember::lower
