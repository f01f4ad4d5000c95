// Vm: what a linker gives to PyTensor: called without arguments it reads the input cells (lists of one element) and
// gives a list of all outputs. And the class of functions that PyTensor's own Function.__call__ is left out of where
// nothing needs it. Both speak CPython's C API: a call costs a fraction of a microsecond.
#include "plan.h"

#include <nanobind/stl/shared_ptr.h>
#include <structmember.h>

#include <algorithm>

#include "binding.h"
#include "cells.h"

namespace ember::python {
namespace {

struct Vm {
    PyObject_HEAD vectorcallfunc vectorcall;
    std::shared_ptr<const Plan>* plan;
    PyObject* cells;  // a tuple of lists
    PyObject* dict;
};

PyObject* run_cells(const Plan& plan, PyObject* cells) {
    Pointers inputs(plan.inputs());
    Pointers results(plan.outputs());
    if (!read_cells(cells, inputs.data()) || !plan.run(inputs.data(), results.data())) {
        return nullptr;
    }
    return list_of(results.data(), static_cast<Py_ssize_t>(plan.outputs()));
}

PyObject* vm_call(PyObject* self, PyObject* const*, size_t nargsf, PyObject* names) {
    auto* vm = reinterpret_cast<Vm*>(self);
    if (PyVectorcall_NARGS(nargsf) != 0 || (names != nullptr && PyTuple_GET_SIZE(names) != 0)) {
        PyErr_SetString(PyExc_TypeError, "a Vm takes no arguments: inputs are in its cells");
        return nullptr;
    }
    return run_cells(**vm->plan, vm->cells);
}

int vm_init(PyObject* self, PyObject* args, PyObject* keywords) {
    auto* vm = reinterpret_cast<Vm*>(self);
    static const char* names[] = {"plan", "cells", nullptr};
    PyObject* plan = nullptr;
    PyObject* cells = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO", const_cast<char**>(names), &plan, &cells)) {
        return -1;
    }
    std::shared_ptr<Plan> made;
    if (!nb::try_cast(nb::handle(plan), made) || made == nullptr) {
        PyErr_SetString(PyExc_TypeError, "a Vm is made of a Plan and its input cells");
        return -1;
    }
    PyObject* tuple = PySequence_Tuple(cells);
    if (tuple == nullptr) {
        return -1;
    }
    if (static_cast<size_t>(PyTuple_GET_SIZE(tuple)) != made->inputs()) {
        Py_DECREF(tuple);
        PyErr_Format(PyExc_ValueError, "the plan has %zu inputs, there are %zd cells", made->inputs(),
                     PyTuple_GET_SIZE(tuple));
        return -1;
    }
    delete vm->plan;
    vm->plan = new std::shared_ptr<const Plan>(std::move(made));
    Py_XSETREF(vm->cells, tuple);
    vm->vectorcall = vm_call;
    return 0;
}

int vm_traverse(PyObject* self, visitproc visit, void* arg) {
    auto* vm = reinterpret_cast<Vm*>(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(vm->cells);
    Py_VISIT(vm->dict);
    return vm->plan != nullptr && vm->plan->use_count() == 1 ? (*vm->plan)->traverse(visit, arg) : 0;
}

int vm_clear(PyObject* self) {
    auto* vm = reinterpret_cast<Vm*>(self);
    Py_CLEAR(vm->cells);
    Py_CLEAR(vm->dict);
    return 0;
}

void vm_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    vm_clear(self);
    delete reinterpret_cast<Vm*>(self)->plan;
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMemberDef vm_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Vm, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Vm, dict), READONLY, nullptr},
    {"cells", T_OBJECT, offsetof(Vm, cells), READONLY, nullptr},
    {nullptr},
};
PyType_Slot vm_slots[] = {
    {Py_tp_init, reinterpret_cast<void*>(vm_init)},
    {Py_tp_new, reinterpret_cast<void*>(PyType_GenericNew)},
    {Py_tp_dealloc, reinterpret_cast<void*>(vm_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(vm_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(vm_clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_members, vm_members},
    {Py_tp_doc, const_cast<char*>("Vm(plan, cells): reads its input cells, gives a list of all outputs.")},
    {0, nullptr},
};
PyType_Spec vm_spec = {"ember._core.Vm", sizeof(Vm), 0,
                       Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE,
                       vm_slots};

// --- functions

/// What a quick call needs; lies behind the fields of PyTensor's Function.
struct Quick {
    vectorcallfunc vectorcall;
    std::shared_ptr<const Plan>* plan;
    PyObject* cells;    // a tuple: the cells of the inputs that are not given at a call, after the explicit ones
    PyObject* updated;  // a tuple of cells: they take the results after the returned ones
    Py_ssize_t explicit_inputs;
    Py_ssize_t returned;  // -1: the only output itself
};
PyTypeObject* quick_type = nullptr;
Py_ssize_t quick_offset = 0;

Quick* quick_of(PyObject* self) {
    return reinterpret_cast<Quick*>(reinterpret_cast<char*>(self) + quick_offset);
}

/// The class's own __call__.
PyObject* slow_call(PyObject* self, PyObject* const* args, size_t given, PyObject* names) {
    auto [tuple, keywords] = packed(args, given, names);
    return tuple.is_valid() && keywords.is_valid() ? Py_TYPE(self)->tp_call(self, tuple.ptr(), keywords.ptr())
                                                   : nullptr;
}

PyObject* quick_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
    Quick* quick = quick_of(self);
    const Plan& plan = **quick->plan;
    auto given = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
    if (given != static_cast<size_t>(quick->explicit_inputs) || !plan.takes(args, given, names)) {
        return slow_call(self, args, given, names);
    }
    Pointers inputs(plan.inputs());
    std::copy(args, args + given, inputs.data());
    Pointers results(plan.outputs());
    if (!read_cells(quick->cells, inputs.data() + given) || !plan.run(inputs.data(), results.data())) {
        return nullptr;
    }
    return hand_out(results.data(), quick->returned, quick->updated);
}

/// arm(function, plan, cells, updated, explicit_inputs, returned)
PyObject* arm(PyObject*, PyObject* args) {
    PyObject* self = nullptr;
    PyObject* plan = nullptr;
    PyObject* cells = nullptr;
    PyObject* updated = nullptr;
    Py_ssize_t explicit_inputs = 0;
    Py_ssize_t returned = 0;
    if (!PyArg_ParseTuple(args, "OOO!O!nn", &self, &plan, &PyTuple_Type, &cells, &PyTuple_Type, &updated,
                          &explicit_inputs, &returned)) {
        return nullptr;
    }
    std::shared_ptr<Plan> made;
    if (quick_type == nullptr || !PyObject_TypeCheck(self, quick_type) || !nb::try_cast(nb::handle(plan), made)) {
        PyErr_SetString(PyExc_TypeError, "arm() takes a quick function and its plan");
        return nullptr;
    }
    auto outputs = static_cast<Py_ssize_t>(made->outputs());
    if (explicit_inputs + PyTuple_GET_SIZE(cells) != static_cast<Py_ssize_t>(made->inputs()) ||
        std::max<Py_ssize_t>(returned, returned < 0 ? 1 : 0) + PyTuple_GET_SIZE(updated) != outputs) {
        PyErr_SetString(PyExc_ValueError, "arm(): inputs or outputs do not add up to the plan's");
        return nullptr;
    }
    Quick* quick = quick_of(self);
    delete quick->plan;
    quick->plan = new std::shared_ptr<const Plan>(std::move(made));
    Py_XSETREF(quick->cells, Py_NewRef(cells));
    Py_XSETREF(quick->updated, PyTuple_GET_SIZE(updated) == 0 ? nullptr : Py_NewRef(updated));
    quick->explicit_inputs = explicit_inputs;
    quick->returned = returned;
    quick->vectorcall = quick_call;
    Py_RETURN_NONE;
}

/// Not tp_dealloc, tp_traverse or tp_clear: those of a class written in Python start at the object's own type, so
/// calling them from here would come back here. What is held here (lists and a plan) refers to no function.
void quick_finalize(PyObject* self) {
    PyObject* raised = PyErr_GetRaisedException();
    Quick* quick = quick_of(self);
    quick->vectorcall = nullptr;
    Py_CLEAR(quick->cells);
    Py_CLEAR(quick->updated);
    delete std::exchange(quick->plan, nullptr);
    PyErr_SetRaisedException(raised);
}

PyMethodDef arm_method = {"arm", arm, METH_VARARGS,
                          "arm(function, plan, cells, updated, explicit_inputs, returned): opens the short cut of a "
                          "quick function. Cells: of the inputs that are not given at a call; updated: cells that take "
                          "the outputs after the returned ones; returned: their number, -1: the only output itself."};

}  // namespace

PyObject* make_function_class(PyObject* base) {
    auto* base_type = reinterpret_cast<PyTypeObject*>(base);
    constexpr Py_ssize_t kAlign = alignof(std::max_align_t);
    quick_offset = (base_type->tp_basicsize + kAlign - 1) / kAlign * kAlign;
    static PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, 0, READONLY, nullptr}, {nullptr}};
    members[0].offset = quick_offset + static_cast<Py_ssize_t>(offsetof(Quick, vectorcall));
    static PyType_Slot slots[] = {
        {Py_tp_finalize, reinterpret_cast<void*>(quick_finalize)},
        {Py_tp_members, members},
        {Py_tp_doc, const_cast<char*>("PyTensor's Function with a short cut for calls that need no conversion.")},
        {0, nullptr},
    };
    static PyType_Spec spec = {"ember.pytensor.EmberFunction", 0, 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE, slots};
    spec.basicsize = static_cast<int>(quick_offset + static_cast<Py_ssize_t>(sizeof(Quick)));
    PyObject* type = PyType_FromSpecWithBases(&spec, base);
    quick_type = reinterpret_cast<PyTypeObject*>(type);
    return type;
}

void bind_vm(nb::module_& module) {
    PyObject* type = PyType_FromSpec(&vm_spec);
    if (type == nullptr) {
        throw nb::python_error();
    }
    module.attr("Vm") = nb::steal(type);
    module.attr("arm") = nb::steal(PyCFunction_New(&arm_method, nullptr));
    module.def("function_class", [](nb::handle base) {
        PyObject* made = make_function_class(base.ptr());
        if (made == nullptr) {
            throw nb::python_error();
        }
        return nb::steal(made);
    });
}

}  // namespace ember::python
