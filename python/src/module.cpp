// The extension module ember._core.
#define PY_ARRAY_UNIQUE_SYMBOL ember_numpy
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <nanobind/nanobind.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <numpy/arrayobject.h>

#include "binding.h"
#include "plan.h"

namespace ember::python {

ir::DType dtype_of(std::string_view name) {
    static constexpr std::pair<std::string_view, ir::DType> kNames[] = {
        {"bool", ir::DType::kBool},     {"int8", ir::DType::kI8},         {"int16", ir::DType::kI16},
        {"int32", ir::DType::kI32},     {"int64", ir::DType::kI64},       {"uint8", ir::DType::kU8},
        {"uint16", ir::DType::kU16},    {"uint32", ir::DType::kU32},      {"uint64", ir::DType::kU64},
        {"float16", ir::DType::kF16},   {"float32", ir::DType::kF32},     {"float64", ir::DType::kF64},
        {"complex64", ir::DType::kC64}, {"complex128", ir::DType::kC128},
    };
    for (const auto& [known, dtype] : kNames) {
        if (known == name) {
            return dtype;
        }
    }
    if (auto dtype = ir::dtype_from_name(name)) {
        return *dtype;
    }
    raise(error(Code::kInvalidArgument, "no dtype '" + std::string(name) + "'"));
}

int numpy_type(ir::DType dtype) {
    switch (dtype) {
        case ir::DType::kBool:
            return NPY_BOOL;
        case ir::DType::kI8:
            return NPY_INT8;
        case ir::DType::kI16:
            return NPY_INT16;
        case ir::DType::kI32:
            return NPY_INT32;
        case ir::DType::kI64:
            return NPY_INT64;
        case ir::DType::kU8:
            return NPY_UINT8;
        case ir::DType::kU16:
            return NPY_UINT16;
        case ir::DType::kU32:
            return NPY_UINT32;
        case ir::DType::kU64:
            return NPY_UINT64;
        case ir::DType::kF16:
            return NPY_FLOAT16;
        case ir::DType::kF32:
            return NPY_FLOAT32;
        case ir::DType::kF64:
            return NPY_FLOAT64;
        case ir::DType::kC64:
            return NPY_COMPLEX64;
        case ir::DType::kC128:
            return NPY_COMPLEX128;
        default:
            return -1;
    }
}

std::string numpy_name(ir::DType dtype) {
    int number = numpy_type(dtype);
    std::string name(ir::dtype_name(dtype));
    if (number < 0 || dtype == ir::DType::kBool) {
        return name;
    }
    const char* kind = name[0] == 'i' ? "int" : name[0] == 'u' ? "uint" : name[0] == 'f' ? "float" : "complex";
    return kind + name.substr(1);
}

namespace {

/// New references of a Python sequence's items.
std::vector<PyObject*> references(const nb::sequence& items) {
    std::vector<PyObject*> taken;
    for (nb::handle item : items) {
        taken.push_back(item.inc_ref().ptr());
    }
    return taken;
}

std::shared_ptr<Plan> make_plan(std::shared_ptr<driver::Executable> executable, const nb::sequence& fixed,
                                const nb::sequence& objects, const std::vector<bool>& object_inputs,
                                const std::vector<bool>& object_outputs, const std::vector<bool>& scalar_outputs,
                                const nb::sequence& exceptions, const nb::dict& host,
                                const std::vector<std::string>& labels) {
    Plan::Settings settings;
    settings.executable = std::move(executable);
    settings.object_inputs = object_inputs;
    settings.object_outputs = object_outputs;
    settings.scalar_outputs = scalar_outputs;
    settings.labels = labels;
    size_t params = settings.executable->parameters().size();
    size_t constants = nb::len(fixed);
    if (constants > params || labels.size() != params - constants ||
        (!object_inputs.empty() && object_inputs.size() != labels.size()) ||
        (!object_outputs.empty() && object_outputs.size() != settings.executable->outputs().size()) ||
        (!scalar_outputs.empty() && scalar_outputs.size() != settings.executable->outputs().size())) {
        throw nb::value_error("a plan's inputs, constants and labels do not add up to the parameters");
    }
    for (size_t k = 0; k < constants; ++k) {
        const ir::TensorType& type = settings.executable->parameters()[params - constants + k];
        nb::object array = fixed[k];
        if (!PyArray_CheckExact(array.ptr())) {
            throw nb::type_error("constants of a plan are plain arrays");
        }
        auto* plain = reinterpret_cast<PyArrayObject*>(array.ptr());
        if (!PyArray_ISCARRAY_RO(plain) || PyArray_TYPE(plain) != numpy_type(type.dtype) ||
            PyArray_NDIM(plain) != type.rank()) {
            throw nb::type_error("a constant of a plan is not of its parameter's type");
        }
        for (int axis = 0; axis < type.rank(); ++axis) {
            ir::Dim dim = type.shape[static_cast<size_t>(axis)];
            if (dim.is_static() && dim.size() != PyArray_DIM(plain, axis)) {
                throw nb::type_error("a constant of a plan is not of its parameter's shape");
            }
        }
    }
    settings.fixed = references(fixed);
    settings.objects = references(objects);
    settings.exceptions = references(exceptions);
    for (auto [name, entry] : host) {
        settings.host_names.push_back(nb::cast<std::string>(name));
        settings.host_object_inputs.push_back(nb::cast<std::vector<bool>>(entry[1]));
        settings.host_object_outputs.push_back(nb::cast<std::vector<bool>>(entry[2]));
        settings.host.push_back(nb::object(entry[0]).release().ptr());
    }
    return std::make_shared<Plan>(std::move(settings));
}

nb::list call_plan(const Plan& plan, const nb::args& arguments) {
    if (arguments.size() != plan.inputs()) {
        throw nb::type_error("a plan is called with all its inputs");
    }
    std::vector<PyObject*> inputs;
    for (nb::handle argument : arguments) {
        inputs.push_back(argument.ptr());
    }
    std::vector<PyObject*> results(plan.outputs());
    if (!plan.run(inputs.data(), results.data())) {
        throw nb::python_error();
    }
    nb::list list;
    for (PyObject* result : results) {
        list.append(nb::steal(result));
    }
    return list;
}

}  // namespace

void bind_vm(nb::module_& module);

void bind_plan(nb::module_& module) {
    nb::class_<Plan>(module, "Plan", "An executable with its constants: how it is called.")
        .def("__init__", [](nb::handle, nb::args) { throw nb::type_error("plans are made by _core.plan()"); })
        .def_prop_ro("inputs", &Plan::inputs)
        .def_prop_ro("outputs", &Plan::outputs)
        .def("__call__", &call_plan);
    module.def(
        "plan", &make_plan, nb::arg("executable"), nb::kw_only(), nb::arg("fixed"), nb::arg("objects"),
        nb::arg("object_inputs"), nb::arg("object_outputs"), nb::arg("scalar_outputs"), nb::arg("exceptions"),
        nb::arg("host"), nb::arg("labels"),
        "fixed: arrays of the last parameters, bound; objects: constants that are no arrays, handle -1 is the "
        "first; object_inputs, object_outputs: which travel as handles ([]: none); scalar_outputs: which are "
        "handed over as scalars of NumPy; exceptions: classes of failed "
        "asserts by the number before the message's colon; host: by id of a host call (function, which arguments "
        "travel as handles, which results do); labels: names "
        "of the inputs in errors.");
    bind_vm(module);
}

}  // namespace ember::python

namespace {

int import_numpy() {
    import_array1(-1);
    return 0;
}

}  // namespace

NB_MODULE(_core, module) {
    if (import_numpy() < 0) {
        throw nanobind::python_error();
    }
    nanobind::set_leak_warnings(false);
    module.doc() = "Ember's compiler as the Python package uses it.";
    ember::python::bind_errors(module);
    ember::python::bind_graph(module);
    ember::python::bind_plan(module);
    ember::python::bind_function(module);
    ember::python::bind_cache(module);
    ember::python::bind_llm(module);
}
