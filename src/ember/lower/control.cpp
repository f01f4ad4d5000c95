// Control flow: calls, branches and loops. Callees and regions become programs of their own. The caller gives memory
// for a result whose lengths follow from the arguments; any other result comes with its memory and lengths.
// Tests: test/filetests/run/control.ember, test/filetests/run/lengths.ember.
#include <algorithm>
#include <functional>
#include <optional>

#include "ember/lower/lowering.h"

namespace ember::lower {

using ir::Dim;
using ir::DType;
using ir::Graph;
using ir::Node;
using ir::Op;
using ir::ValueId;

namespace {

/// The parameter and axis that tell a symbol.
std::optional<std::pair<size_t, size_t>> find_in_params(const Graph& graph, Dim dim) {
    for (size_t p = 0; p < graph.params.size(); ++p) {
        const ir::Shape& shape = graph.type(graph.params[p].value).shape;
        auto found = std::find(shape.begin(), shape.end(), dim);
        if (found != shape.end()) {
            return std::make_pair(p, static_cast<size_t>(found - shape.begin()));
        }
    }
    return std::nullopt;
}

}  // namespace

std::vector<bool> open_outputs(const Graph& graph) {
    std::vector<bool> open;
    for (const ir::Output& output : graph.outputs) {
        const ir::Shape& shape = graph.type(output.value).shape;
        open.push_back(std::any_of(shape.begin(), shape.end(), [&](Dim dim) {
            return dim.is_symbol() && !find_in_params(graph, dim).has_value();
        }));
    }
    return open;
}

Lowering::Dims Lowering::result_dims(const Graph& callee, const ir::Output& output,
                                     const std::vector<Dims>& argument_dims) {
    Dims dims;
    for (Dim dim : callee.type(output.value).shape) {
        auto place = dim.is_static() ? std::nullopt : find_in_params(callee, dim);
        dims.push_back(dim.is_static() ? constant(dim.size())
                       : place         ? argument_dims[place->first][place->second]
                                       : -1);
    }
    return dims;
}

std::vector<Lowering::Dims> Lowering::all_dims(const std::vector<ValueId>& values) {
    std::vector<Dims> dims;
    for (ValueId value : values) {
        dims.push_back(dims_of(value));
    }
    return dims;
}

/// Equal symbols of the callee's parameters must have equal lengths here.
void Lowering::check_unified(const Graph& callee, const std::vector<Dims>& argument_dims, const Node& node) {
    std::unordered_map<int64_t, ScalarId> bound;
    for (size_t p = 0; p < callee.params.size(); ++p) {
        const ir::Shape& shape = callee.type(callee.params[p].value).shape;
        for (size_t axis = 0; axis < shape.size(); ++axis) {
            ScalarId have = argument_dims[p][axis];
            ScalarId want = shape[axis].is_static() ? constant(shape[axis].size())
                                                    : bound.emplace(shape[axis].code(), have).first->second;
            check_equal(have, want,
                        std::string(op_name(node.op)) + ": lengths %a and %b of operand " + std::to_string(p) +
                            " do not match");
        }
    }
}

/// A region may not run at all, so it checks by itself what its parameters must be and nobody has proved.
void Lowering::check_params() {
    for (auto [p, axis] : region_.unproved) {
        Scalar scalar{Scalar::Kind::kParamDim, DType::kI64};
        scalar.index = static_cast<int>(p);
        scalar.axis = static_cast<int>(axis);
        auto id = static_cast<ScalarId>(program_.scalars.size());
        program_.scalars.push_back(std::move(scalar));
        program_.steps.emplace_back(ComputeScalar{id});
        check_equal(id, dim_of(graph_.params[p].value, axis),
                    "parameter " + std::to_string(p) + " of a region: axis " + std::to_string(axis) +
                        " has length %a, its type asks for %b");
    }
}

/// Before a carried value is written: the memory is as long as the parameter.
void Lowering::check_carried(ValueId value) {
    for (auto [output, param] : region_.same_shape) {
        if (graph_.outputs[static_cast<size_t>(output)].value != value) {
            continue;
        }
        ValueId given = graph_.params[static_cast<size_t>(param)].value;
        for (size_t axis = 0; axis < graph_.type(value).shape.size(); ++axis) {
            check_equal(dim_of(value, axis), dim_of(given, axis),
                        "loop: a carried value changes its length from %b to %a");
        }
    }
}

int Lowering::lower_region(const Graph& region, Region how, const std::vector<Dims>& argument_dims) {
    // A region sees the enclosing function's symbols; those that no parameter carries come as hidden parameters would,
    // which regions do not have: they must be derivable, so a region is lowered like a function.
    std::unordered_map<int64_t, ScalarId> bound;
    for (size_t p = 0; p < region.params.size(); ++p) {
        const ir::Shape& shape = region.type(region.params[p].value).shape;
        for (size_t axis = 0; axis < shape.size(); ++axis) {
            ScalarId have = argument_dims[p][axis];
            bool proved = shape[axis].is_static() ? is_constant(have, shape[axis].size())
                                                  : bound.emplace(shape[axis].code(), have).first->second == have;
            if (!proved) {
                how.unproved.emplace_back(p, axis);
            }
        }
    }
    how.open.resize(region.outputs.size(), false);
    Lowering inner(region, module_, tables_, functions_);
    inner.may_donate_ = false;
    inner.region_ = std::move(how);
    Program program = inner.run();
    program.name = graph_.name + "." + std::to_string(tables_.module().programs.size());
    tables_.module().programs.push_back(std::move(program));
    return static_cast<int>(tables_.module().programs.size()) - 1;
}

/// Once a step has run: the lengths that came with those of its results that are open.
void Lowering::bind_given(const Node& node, const std::vector<bool>& open, const std::vector<Dims>& lengths) {
    for (uint32_t k = 0; k < node.result_count; ++k) {
        if (open[k]) {
            bind(node.result(k), lengths[k], std::string(op_name(node.op)) + ": result " + std::to_string(k));
        }
    }
}

void Lowering::emit_call(const Node& node) {
    auto function = functions_.find(std::string(node.string("callee")));
    check(function != functions_.end(), "callee is lowered before its caller");
    const Graph& callee = *module_.find(node.string("callee"));
    const std::vector<int> in_place = tables_.module().programs[static_cast<size_t>(function->second)].in_place;
    const std::vector<bool> open = tables_.module().programs[static_cast<size_t>(function->second)].open;
    std::vector<Dims> argument_dims = all_dims(node.operands);
    check_unified(callee, argument_dims, node);
    check_preconditions(tables_.module().programs[static_cast<size_t>(function->second)], node, argument_dims);
    CallFunction step{function->second, {}, {}, std::vector<Dims>(node.result_count)};
    step.workspace = callee_workspace(function->second, argument_dims, node.operands);
    for (ValueId operand : node.operands) {
        step.arguments.push_back(buffer_of(operand));
    }
    for (uint32_t k = 0; k < node.result_count; ++k) {
        ValueId result = node.result(k);
        if (open[k]) {
            step.results.push_back(given_result(result, step.lengths[k]));
            continue;
        }
        bind(result, result_dims(callee, callee.outputs[k], argument_dims), "call: result " + std::to_string(k));
        int param = in_place[k];
        if (param < 0) {
            step.results.push_back(make_buffer_for(result));
        } else {
            ValueId argument = node.operands[static_cast<size_t>(param)];
            BufferId from = step.arguments[static_cast<size_t>(param)];
            if (may_overwrite(argument, node)) {
                step.results.push_back(from);
                if (outputs_of_[result].size() == 1) {
                    program_.outputs[outputs_of_[result][0]] = from;
                    program_.in_place[outputs_of_[result][0]] = program_.buffers[static_cast<size_t>(from)].index;
                }
            } else {
                BufferId copy = make_buffer_for(result);
                program_.steps.emplace_back(CopyBuffer{from, copy});
                step.arguments[static_cast<size_t>(param)] = copy;
                step.results.push_back(copy);
            }
        }
        buffer_[result] = step.results.back();
    }
    std::vector<Dims> lengths = step.lengths;
    program_.steps.emplace_back(std::move(step));
    bind_given(node, open, lengths);
}

void Lowering::emit_if(const Node& node) {
    std::vector<ValueId> operands(node.operands.begin() + 1, node.operands.end());
    std::vector<Dims> argument_dims = all_dims(operands);
    std::vector<bool> open = open_outputs(*node.regions[0]);
    std::vector<bool> other = open_outputs(*node.regions[1]);
    std::transform(open.begin(), open.end(), other.begin(), open.begin(), std::logical_or<>());
    If step;
    step.condition = scalar_of(node.operands[0]);
    step.then_function = lower_region(*node.regions[0], {{}, open, {}}, argument_dims);
    step.else_function = lower_region(*node.regions[1], {{}, open, {}}, argument_dims);
    step.lengths.resize(node.result_count);
    for (ValueId operand : operands) {
        step.arguments.push_back(buffer_of(operand));
    }
    ScalarId then_workspace = callee_workspace(step.then_function, argument_dims, operands);
    ScalarId else_workspace = callee_workspace(step.else_function, argument_dims, operands);
    bool known = then_workspace >= 0 && else_workspace >= 0;
    step.workspace = known ? later(Op::k_max, then_workspace, else_workspace) : -1;
    for (uint32_t k = 0; k < node.result_count; ++k) {
        ValueId result = node.result(k);
        if (open[k]) {
            step.results.push_back(given_result(result, step.lengths[k]));
            continue;
        }
        Dims yes = result_dims(*node.regions[0], node.regions[0]->outputs[k], argument_dims);
        Dims no = result_dims(*node.regions[1], node.regions[1]->outputs[k], argument_dims);
        for (size_t axis = 0; axis < yes.size(); ++axis) {
            if (yes[axis] != no[axis]) {
                yes[axis] = compute(Op::k_select, {step.condition, yes[axis], no[axis]});
            }
        }
        bind(result, yes, "if: result " + std::to_string(k));
        step.results.push_back(make_buffer_for(result));
        buffer_[result] = step.results.back();
    }
    std::vector<Dims> lengths = step.lengths;
    program_.steps.emplace_back(std::move(step));
    bind_given(node, open, lengths);
}

/// The buffer of a stacked result. Its rows have the lengths that the arguments tell, or those that the first row has.
BufferId Lowering::stacked_buffer(const Node& node, uint32_t k, const std::vector<Dims>& argument_dims, Loop& step) {
    const Graph& body = *node.regions[0];
    ValueId result = node.result(k);
    Dims dims = result_dims(body, body.outputs[k], argument_dims);
    bool open = std::find(dims.begin(), dims.end(), -1) != dims.end();
    bool may_stop = step.actual >= 0;
    step.lengths.push_back(open ? given_lengths(dims.size()) : Dims());
    step.without_steps.emplace_back();
    if (open) {
        for (size_t axis = 0; axis < dims.size(); ++axis) {
            auto known = symbols_.find(body.type(body.outputs[k].value).shape[axis].code());
            ScalarId otherwise = known == symbols_.end() ? constant(0) : known->second;
            step.without_steps.back().push_back(dims[axis] < 0 ? otherwise : dims[axis]);
        }
        dims = step.lengths.back();
        dims.insert(dims.begin(), may_stop ? step.actual : step.trips);
        return given_buffer(result, std::move(dims));
    }
    dims.insert(dims.begin(), step.trips);
    if (may_stop) {
        return new_buffer(graph_.type(result).dtype, dims);
    }
    bind(result, dims, "loop: result " + std::to_string(k));
    return make_buffer_for(result);
}

// Long because it lists every field of one step in order.
void Lowering::emit_loop(const Node& node) {
    const Graph& body = *node.regions[0];
    auto carried = static_cast<uint32_t>(node.integer("carried"));
    bool may_stop = node.integer_or("while", 0) != 0;
    Loop step;
    step.trips = scalar_of(node.operands[0]);
    program_.steps.emplace_back(
        Check{Check::Kind::kInside, constant(0), step.trips, tables_.message("loop: a negative number of steps (%b)")});
    std::vector<Dims> argument_dims{{}};
    for (size_t k = 1; k < node.operands.size(); ++k) {
        argument_dims.push_back(dims_of(node.operands[k]));
        BufferId buffer = buffer_of(node.operands[k]);
        (k <= carried ? step.initial : step.invariants).push_back(buffer);
    }
    Region how{{}, open_outputs(body), {}};
    for (uint32_t i = 0; i < carried; ++i) {
        how.same_shape.emplace_back(i, i + 1);
        how.open[i] = false;
    }
    step.body = lower_region(body, std::move(how), argument_dims);
    step.workspace = callee_workspace(step.body, argument_dims, {});
    step.index = new_buffer(DType::kI64, {});
    step.changed = tables_.message("loop: a stacked result changes its length from %b to %a");
    for (uint32_t i = 0; i < carried; ++i) {
        ValueId result = node.result(i);
        bind(result, argument_dims[i + 1], "loop: result " + std::to_string(i));
        step.finals.push_back(make_buffer_for(result));
        step.ping.push_back(new_buffer(graph_.type(result).dtype, argument_dims[i + 1]));
    }
    if (may_stop) {
        step.go_on = new_buffer(DType::kBool, {});
        step.actual = static_cast<ScalarId>(program_.scalars.size());
        program_.scalars.push_back({Scalar::Kind::kActualTrips, DType::kI64});
    }
    for (uint32_t i = carried; i < node.result_count; ++i) {
        step.stacked.push_back(stacked_buffer(node, i, argument_dims, step));
        buffer_[node.result(i)] = step.stacked.back();
    }
    for (uint32_t i = 0; i < carried; ++i) {
        buffer_[node.result(i)] = step.finals[i];
    }
    std::vector<BufferId> stacked = step.stacked;
    ScalarId actual = step.actual;
    program_.steps.emplace_back(std::move(step));
    for (uint32_t i = carried; i < node.result_count; ++i) {
        Buffer made = program_.buffers[static_cast<size_t>(stacked[i - carried])];
        if (may_stop && made.kind != BufferKind::kGiven) {
            made.shape[0] = actual;
            made.alias_of = stacked[i - carried];
            program_.buffers.push_back(made);
            buffer_[node.result(i)] = static_cast<BufferId>(program_.buffers.size()) - 1;
        }
        bind(node.result(i), made.shape, "loop: result " + std::to_string(i));
    }
}

}  // namespace ember::lower
