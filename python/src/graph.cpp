// Building graphs from Python: one call a node, nothing is computed or hashed on the Python side.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <unordered_map>

#include "binding.h"
#include "ember/driver/driver.h"
#include "ember/ir/builder.h"
#include "ember/text/parse.h"
#include "ember/text/print.h"

namespace ember::python {
namespace {

using ir::AttributeKind;

ir::TensorType type_of(std::string_view dtype, nb::handle shape) {
    ir::TensorType type{dtype_of(dtype), {}};
    for (nb::handle length : nb::borrow<nb::sequence>(shape)) {
        // A negative number is the code of a symbol, as Builder.type() gives it.
        type.shape.push_back(length.is_none() ? ir::Dim::fresh() : ir::Dim(nb::cast<int64_t>(length)));
    }
    return type;
}

nb::tuple to_python(const ir::TensorType& type) {
    nb::list shape;
    for (ir::Dim dim : type.shape) {
        shape.append(dim.code());
    }
    return nb::make_tuple(numpy_name(type.dtype), nb::tuple(shape));
}

ir::AttributeValue attribute_value(AttributeKind kind, nb::handle value) {
    switch (kind) {
        case AttributeKind::kInt:
            return nb::cast<int64_t>(value);
        case AttributeKind::kInts:
            return nb::cast<std::vector<int64_t>>(value);
        case AttributeKind::kString:
            return nb::cast<std::string>(value);
        case AttributeKind::kDType:
            return dtype_of(nb::cast<std::string>(value));
        case AttributeKind::kLiteral:
            throw nb::type_error("constants are made by Builder.constant()");
    }
    throw nb::type_error("an unknown kind of attribute");
}

std::vector<ir::Attribute> attributes_of(ir::Op op, const nb::dict& given) {
    std::vector<ir::Attribute> attributes;
    for (auto [key, value] : given) {
        std::string name = nb::cast<std::string>(key);
        bool found = false;
        for (const ir::AttributeInfo& info : ir::attributes(op)) {
            if (info.name == name) {
                attributes.push_back({info.name, attribute_value(info.kind, value)});
                found = true;
            }
        }
        if (!found) {
            raise(error(Code::kInvalidArgument, std::string(op_name(op)) + ": no attribute '" + name + "'"));
        }
    }
    return attributes;
}

/// A graph under construction: a function, or a region of `if` and `loop`.
class Builder {
public:
    explicit Builder(const std::string& name, const ir::Module* module) : builder_(name, module) {}

    uint32_t param(const std::string& dtype, nb::handle shape, int kind) {
        return builder_.param(type_of(dtype, shape), static_cast<ir::ParamKind>(kind));
    }

    std::vector<ir::ValueId> node(const std::string& name, std::vector<ir::ValueId> operands,
                                  const std::optional<nb::dict>& attributes,
                                  const std::optional<std::vector<std::shared_ptr<ir::Graph>>>& regions,
                                  const std::optional<nb::list>& stated) {
        std::optional<ir::Op> op = ir::op_from_name(name);
        if (!op.has_value()) {
            raise(error(Code::kInvalidArgument, "no op '" + name + "'"));
        }
        for (ir::ValueId operand : operands) {
            if (operand >= builder_.graph().values.size()) {
                raise(error(Code::kInvalidArgument, name + ": an operand that is no value of this graph"));
            }
        }
        ir::NodeSpec spec{*op, std::move(operands)};
        if (attributes.has_value()) {
            spec.attributes = attributes_of(*op, *attributes);
        }
        if (regions.has_value()) {
            spec.regions.assign(regions->begin(), regions->end());
        }
        if (stated.has_value()) {
            for (nb::handle pair : *stated) {
                spec.stated.push_back(type_of(nb::cast<std::string>(pair[0]), pair[1]));
            }
        }
        return unwrap(builder_.add(std::move(spec)));
    }

    ir::ValueId one(const std::string& name, std::vector<ir::ValueId> operands,
                    const std::optional<nb::dict>& attributes) {
        return node(name, std::move(operands), attributes, std::nullopt, std::nullopt).front();
    }

    /// `bytes`: the elements in row-major order.
    ir::ValueId constant(const std::string& dtype, const std::vector<int64_t>& shape, const nb::bytes& bytes) {
        ir::Literal literal{dtype_of(dtype), shape, std::string(bytes.c_str(), bytes.size())};
        ir::NodeSpec spec{ir::Op::k_const, {}, {{"value", std::move(literal)}}};
        return unwrap(builder_.add_one(std::move(spec)));
    }

    ir::ValueId integer(int64_t value) { return builder_.constant_int(value); }
    ir::ValueId length(ir::ValueId value, int axis) { return builder_.dim_value(value, axis); }
    nb::tuple type(ir::ValueId value) const { return to_python(checked(value)); }
    int rank(ir::ValueId value) const { return checked(value).rank(); }
    /// A length, or the code of its symbol, which is negative.
    int64_t dim(ir::ValueId value, size_t axis) const { return checked(value).shape.at(axis).code(); }
    std::string dtype(ir::ValueId value) const { return numpy_name(checked(value).dtype); }
    void output(ir::ValueId value, std::optional<uint32_t> updates) {
        checked(value);
        builder_.output(value, updates.value_or(ir::kNone));
    }
    std::shared_ptr<ir::Graph> finish() { return std::make_shared<ir::Graph>(builder_.take()); }

private:
    const ir::TensorType& checked(ir::ValueId value) const {
        if (value >= builder_.graph().values.size()) {
            raise(error(Code::kInvalidArgument, "no such value in this graph"));
        }
        return builder_.type(value);
    }

    ir::GraphBuilder builder_;
};

std::shared_ptr<const driver::Executable> compile(const ir::Module& module, const driver::Options& options) {
    auto made = [&] {
        nb::gil_scoped_release released;
        return driver::compile_or_share(module, options);
    }();
    return unwrap(std::move(made));
}

driver::Options options_of(const std::string& cpu, const std::vector<std::string>& disabled_passes) {
    driver::Options options;
    options.cpu = cpu;
    options.disabled_passes = disabled_passes;
    return options;
}

std::string emit(const ir::Module& module, const std::string& stage, const driver::Options& options) {
    using driver::Emit;
    if (stage == "text") {
        return text::print(module);
    }
    if (stage == "canonical") {
        return text::canonical_text(module);
    }
    static const std::unordered_map<std::string, Emit> stages{
        {"rewritten", Emit::kRewritten}, {"loops", Emit::kLoops}, {"llvm", Emit::kLlvm}, {"assembly", Emit::kAssembly}};
    auto found = stages.find(stage);
    if (found == stages.end()) {
        raise(error(Code::kInvalidArgument,
                    "no stage '" + stage + "'; there are text, canonical, rewritten, loops, llvm, assembly"));
    }
    const driver::Compiler* compiler = unwrap(driver::compiler());
    return unwrap(compiler->emit(module, unwrap(driver::target_of(options)), options, found->second));
}

}  // namespace

nb::dict origin_dict(const driver::Origin& origin) {
    nb::dict result;
    result["status"] = std::string(outcome_name(origin.status));
    result["reason"] = std::string(reason_name(origin.reason));
    result["key"] = origin.key.hex();
    result["compile_s"] = origin.compile_seconds;
    result["load_s"] = origin.load_seconds;
    result["kernels"] = origin.kernels;
    result["llvm_modules"] = origin.llvm_modules;
    result["artifact_bytes"] = origin.artifact_bytes;
    return result;
}

void bind_graph(nb::module_& module) {
    nb::class_<ir::Graph>(module, "Graph", "A finished function or region.");
    nb::class_<ir::Module>(module, "Module", "Functions; the first one is the entry.")
        .def(nb::init<>())
        .def("add", [](ir::Module& self, const ir::Graph& graph) { self.functions.push_back(graph); })
        .def("set_entry",
             [](ir::Module& self, const ir::Graph& graph) { self.functions.insert(self.functions.begin(), graph); })
        .def_static(
            "parse", [](const std::string& text, const std::string& name) { return unwrap(text::parse(text, name)); },
            nb::arg("text"), nb::arg("name") = "text")
        .def(
            "emit",
            [](const ir::Module& self, const std::string& stage, const std::string& cpu,
               const std::vector<std::string>& disabled) { return emit(self, stage, options_of(cpu, disabled)); },
            nb::arg("stage"), nb::arg("cpu") = "", nb::arg("disabled_passes") = std::vector<std::string>())
        .def(
            "compile",
            [](const ir::Module& self, const std::string& cpu, const std::vector<std::string>& disabled) {
                return compile(self, options_of(cpu, disabled));
            },
            nb::arg("cpu") = "", nb::arg("disabled_passes") = std::vector<std::string>(),
            "The executable, compiled or found compiled.");
    nb::class_<driver::Executable>(module, "Executable", "Loaded code; immutable and re-entrant.")
        .def_prop_ro("origin", [](const driver::Executable& self) { return origin_dict(self.origin()); });
    nb::class_<Builder>(module, "Builder", "Makes a graph, node by node; values are numbers.")
        .def(nb::init<const std::string&, const ir::Module*>(), nb::arg("name") = "main",
             nb::arg("module").none() = nb::none(), nb::keep_alive<1, 3>())
        .def("param", &Builder::param, nb::arg("dtype"), nb::arg("shape"), nb::arg("kind") = 0,
             "A parameter; kind 0: input, 1: shared state, 2: bound data. A length is a number, None for a fresh "
             "symbol, or the negative code of a symbol.")
        .def("node", &Builder::node, nb::arg("op"), nb::arg("operands"), nb::arg("attributes").none() = nb::none(),
             nb::arg("regions").none() = nb::none(), nb::arg("stated").none() = nb::none(), "The results of a node.")
        .def("one", &Builder::one, nb::arg("op"), nb::arg("operands"), nb::arg("attributes").none() = nb::none(),
             "The only result of a node.")
        .def("constant", &Builder::constant, nb::arg("dtype"), nb::arg("shape"), nb::arg("bytes"))
        .def("integer", &Builder::integer, "An int64 constant.")
        .def("length", &Builder::length, nb::arg("value"), nb::arg("axis"), "The length of an axis, an int64 scalar.")
        .def("type", &Builder::type, "(dtype, shape); a negative length is the code of a symbol.")
        .def("rank", &Builder::rank)
        .def("dim", &Builder::dim, nb::arg("value"), nb::arg("axis"))
        .def("dtype", &Builder::dtype)
        .def("output", &Builder::output, nb::arg("value"), nb::arg("updates").none() = nb::none())
        .def("finish", &Builder::finish);
    module.def("compiler_loaded", &driver::compiler_loaded,
               "Has this process loaded the compiler? Not where all was found compiled.");
}

}  // namespace ember::python
