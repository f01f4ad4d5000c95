// Results whose lengths only the step that makes them knows: host functions. The step gives memory and lengths; lengths
// that the types know are checked, the others become known. Tests: test/unit/driver_test.cpp.
#include <algorithm>

#include "ember/lower/lowering.h"

namespace ember::lower {

using ir::Node;
using ir::ValueId;

namespace {

/// A text of the user's inside a message, where % has a meaning.
std::string escaped(const std::string& text) {
    std::string safe;
    for (char c : text) {
        safe += c == '%' ? "%%" : std::string(1, c);
    }
    return safe;
}

}  // namespace

int ModuleTables::host_id(std::string_view id) {
    auto& ids = module_.host_ids;
    auto found = std::find(ids.begin(), ids.end(), id);
    if (found == ids.end()) {
        found = ids.emplace(ids.end(), id);
    }
    return static_cast<int>(found - ids.begin());
}

/// A buffer for a result that comes with its lengths; `lengths` gets a scalar for each.
BufferId Lowering::given_buffer(ValueId value, std::vector<ScalarId>& lengths) {
    const ir::TensorType& type = graph_.type(value);
    for (size_t axis = 0; axis < type.shape.size(); ++axis) {
        lengths.push_back(static_cast<ScalarId>(program_.scalars.size()));
        program_.scalars.push_back({Scalar::Kind::kGiven, ir::DType::kI64});
    }
    BufferId id = new_buffer(type.dtype, lengths);
    program_.buffers[static_cast<size_t>(id)].kind = BufferKind::kGiven;
    return id;
}

/// Symbols of a type that earlier values carry are resolved before the step names the rest.
void Lowering::resolve_symbols(ValueId value, ValueId end) {
    for (ir::Dim dim : graph_.type(value).shape) {
        for (ValueId earlier = 0; earlier < end && dim.is_symbol() && symbols_.count(dim.code()) == 0; ++earlier) {
            const ir::Shape& shape = graph_.type(earlier).shape;
            auto found = std::find(shape.begin(), shape.end(), dim);
            if (found != shape.end()) {
                dim_of(earlier, static_cast<size_t>(found - shape.begin()));
            }
        }
    }
}

/// After the step: what the type knows of the lengths must be so, the rest is known from here on.
void Lowering::bind_given(ValueId value, const std::vector<ScalarId>& lengths, const std::string& what) {
    const ir::Shape& shape = graph_.type(value).shape;
    auto buffer = static_cast<size_t>(buffer_[value]);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
        ScalarId known = lengths[axis];
        if (shape[axis].is_static()) {
            known = constant(shape[axis].size());
        } else {
            known = symbols_.emplace(shape[axis].code(), known).first->second;
        }
        check_equal(lengths[axis], known,
                    what + ": axis " + std::to_string(axis) + " has length %a, its type asks for %b");
        program_.buffers[buffer].shape[axis] = known;
    }
}

void Lowering::emit_host_call(const Node& node) {
    std::string id(node.string("id"));
    for (ValueId result = node.result(0); result < node.result(node.result_count); ++result) {
        resolve_symbols(result, node.first_result);
    }
    HostCall step{tables_.host_id(id), {}, {}, {}};
    for (ValueId operand : node.operands) {
        if (ir::is_quantized(graph_.type(operand).dtype)) {
            unsupported(node, "\"" + id + "\" takes a quantised tensor");
        }
        step.arguments.push_back(buffer_of(operand));
    }
    std::vector<std::vector<ScalarId>> lengths(node.result_count);
    for (uint32_t k = 0; k < node.result_count; ++k) {
        if (ir::is_quantized(graph_.type(node.result(k)).dtype)) {
            unsupported(node, "\"" + id + "\" gives a quantised tensor");
        }
        buffer_[node.result(k)] = given_buffer(node.result(k), lengths[k]);
        step.results.push_back(buffer_[node.result(k)]);
    }
    step.lengths = lengths;
    program_.steps.emplace_back(std::move(step));
    for (uint32_t k = 0; k < node.result_count; ++k) {
        bind_given(node.result(k), lengths[k], "host_call \"" + escaped(id) + "\": result " + std::to_string(k));
    }
}

}  // namespace ember::lower
