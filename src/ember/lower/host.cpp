// Results whose lengths only the step that makes them knows: of functions of the host, and of callees and regions. The
// step gives memory and lengths; lengths that the types know are checked, the others become known.
// Tests: test/filetests/run/host.ember, test/unit/host_test.cpp.
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

/// Lengths that a step gives with a result.
std::vector<ScalarId> Lowering::given_lengths(size_t rank) {
    std::vector<ScalarId> lengths;
    for (size_t axis = 0; axis < rank; ++axis) {
        lengths.push_back(static_cast<ScalarId>(program_.scalars.size()));
        program_.scalars.push_back({Scalar::Kind::kGiven, ir::DType::kI64});
    }
    return lengths;
}

/// The buffer of a result that comes with its memory.
BufferId Lowering::given_buffer(ValueId value, std::vector<ScalarId> lengths) {
    BufferId id = new_buffer(graph_.type(value).dtype, std::move(lengths));
    program_.buffers[static_cast<size_t>(id)].kind = BufferKind::kGiven;
    return id;
}

BufferId Lowering::given_result(ValueId value, std::vector<ScalarId>& lengths) {
    lengths = given_lengths(graph_.type(value).shape.size());
    return buffer_[value] = given_buffer(value, lengths);
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

/// What the type of a value knows of its lengths must be so, the rest is known from here on.
void Lowering::bind(ValueId value, const std::vector<ScalarId>& lengths, const std::string& what) {
    const ir::Shape& shape = graph_.type(value).shape;
    resolve_symbols(value, graph_.producer(value)->first_result);
    for (size_t axis = 0; axis < shape.size(); ++axis) {
        ScalarId known = lengths[axis];
        if (shape[axis].is_static()) {
            known = constant(shape[axis].size());
        } else {
            known = symbols_.emplace(shape[axis].code(), known).first->second;
        }
        check_equal(lengths[axis], known,
                    what + ": axis " + std::to_string(axis) + " has length %a, its type asks for %b");
    }
}

void Lowering::name_symbols(ValueId value, const std::vector<ScalarId>& dims) {
    bind(value, dims, describe(*graph_.producer(value)));
}

void Lowering::emit_host_call(const Node& node) {
    std::string id(node.string("id"));
    HostCall step{tables_.host_id(id), {}, {}, {}};
    for (ValueId operand : node.operands) {
        if (ir::is_quantized(graph_.type(operand).dtype)) {
            unsupported(node, "\"" + id + "\" takes a quantised tensor");
        }
        step.arguments.push_back(buffer_of(operand));
    }
    std::vector<std::vector<ScalarId>> lengths;
    for (uint32_t k = 0; k < node.result_count; ++k) {
        if (ir::is_quantized(graph_.type(node.result(k)).dtype)) {
            unsupported(node, "\"" + id + "\" gives a quantised tensor");
        }
        step.results.push_back(given_result(node.result(k), lengths.emplace_back()));
    }
    step.lengths = lengths;
    program_.steps.emplace_back(std::move(step));
    for (uint32_t k = 0; k < node.result_count; ++k) {
        bind(node.result(k), lengths[k], "host_call \"" + escaped(id) + "\": result " + std::to_string(k));
    }
}

}  // namespace ember::lower
