// Function: a plan with the cells of its shared variables, called with the other inputs. A call whose arguments need no
// conversion costs a fraction of a microsecond; any other goes through the method `_inputs` of the Python class.
#include <nanobind/stl/shared_ptr.h>
#include <structmember.h>

#include <algorithm>
#include <mutex>

#include "binding.h"
#include "cells.h"
#include "plan.h"

namespace ember::python {
namespace {

struct Function {
    PyObject_HEAD vectorcallfunc vectorcall;
    std::shared_ptr<const Plan>* plan;
    // Held while a call that updates shared variables runs; copies of a function have it in common. Null: no updates.
    std::shared_ptr<std::recursive_mutex>* updating;
    PyObject* cells;      // a tuple: of the inputs that a call does not give
    PyObject* updated;    // a tuple of cells: they take the outputs after the returned ones
    Py_ssize_t given;     // inputs that a call gives, the first ones
    Py_ssize_t returned;  // outputs that a call returns; -1: the only one, as itself
    PyObject* dict;
    PyObject* weak_references;
};
PyTypeObject* function_type = nullptr;

Function* as_function(PyObject* self) {
    return reinterpret_cast<Function*>(self);
}

/// Holds a lock that calls of this thread may take again; whoever waits for it lets go of the GIL.
class Updating {
public:
    explicit Updating(std::recursive_mutex* mutex) : mutex_(mutex) {
        if (mutex_ != nullptr && !mutex_->try_lock()) {
            PyThreadState* thread = PyEval_SaveThread();
            mutex_->lock();
            PyEval_RestoreThread(thread);
        }
    }
    ~Updating() {
        if (mutex_ != nullptr) {
            mutex_->unlock();
        }
    }
    Updating(const Updating&) = delete;
    Updating& operator=(const Updating&) = delete;

private:
    std::recursive_mutex* mutex_;
};

/// `given`: as many as the function takes, converted; borrowed.
PyObject* run(const Function& function, PyObject* const* given) {
    const Plan& plan = **function.plan;
    Updating updating(function.updating == nullptr ? nullptr : function.updating->get());
    Pointers inputs(plan.inputs());
    auto count = static_cast<size_t>(function.given);
    std::copy(given, given + count, inputs.data());
    Pointers results(plan.outputs());
    if (!read_cells(function.cells, inputs.data() + count) || !plan.run(inputs.data(), results.data())) {
        return nullptr;
    }
    return hand_out(results.data(), function.returned, function.updated);
}

/// Through `_inputs(arguments, keywords)`, which gives a tuple of converted inputs or raises.
PyObject* convert_and_run(PyObject* self, PyObject* const* args, size_t given, PyObject* names) {
    auto [tuple, keywords] = packed(args, given, names);
    if (!tuple.is_valid() || !keywords.is_valid()) {
        return nullptr;
    }
    nb::object inputs = nb::steal(PyObject_CallMethod(self, "_inputs", "OO", tuple.ptr(), keywords.ptr()));
    if (!inputs.is_valid()) {
        return nullptr;
    }
    if (!PyTuple_Check(inputs.ptr()) || PyTuple_GET_SIZE(inputs.ptr()) != as_function(self)->given) {
        PyErr_SetString(PyExc_TypeError, "_inputs() gives a tuple of all inputs");
        return nullptr;
    }
    return run(*as_function(self), PySequence_Fast_ITEMS(inputs.ptr()));
}

PyObject* function_call(PyObject* self, PyObject* const* args, size_t nargsf, PyObject* names) {
    const Function& function = *as_function(self);
    auto given = static_cast<size_t>(PyVectorcall_NARGS(nargsf));
    bool fine = static_cast<Py_ssize_t>(given) == function.given && (*function.plan)->takes(args, given, names);
    return fine ? run(function, args) : convert_and_run(self, args, given, names);
}

bool all_cells(PyObject* tuple) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(tuple); ++k) {
        PyObject* cell = PyTuple_GET_ITEM(tuple, k);
        if (!PyList_CheckExact(cell) || PyList_GET_SIZE(cell) != 1) {
            PyErr_SetString(PyExc_TypeError, "cells are lists of one element");
            return false;
        }
    }
    return true;
}

int function_init(PyObject* self, PyObject* args, PyObject* keywords) {
    static const char* names[] = {"plan", "cells", "updated", "given", "returned", "together_with", nullptr};
    PyObject* plan = nullptr;
    PyObject* cells = nullptr;
    PyObject* updated = nullptr;
    PyObject* other = Py_None;
    Py_ssize_t given = 0;
    Py_ssize_t returned = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO!O!nn|O", const_cast<char**>(names), &plan, &PyTuple_Type,
                                     &cells, &PyTuple_Type, &updated, &given, &returned, &other)) {
        return -1;
    }
    std::shared_ptr<Plan> made;
    if (!nb::try_cast(nb::handle(plan), made) || made == nullptr ||
        (other != Py_None && !PyObject_TypeCheck(other, function_type))) {
        PyErr_SetString(PyExc_TypeError, "a Function is made of a Plan, and shares the updates of a Function");
        return -1;
    }
    if (!all_cells(cells) || !all_cells(updated)) {
        return -1;
    }
    Py_ssize_t own = returned < 0 ? 1 : returned;
    if (given < 0 || given + PyTuple_GET_SIZE(cells) != static_cast<Py_ssize_t>(made->inputs()) ||
        own + PyTuple_GET_SIZE(updated) != static_cast<Py_ssize_t>(made->outputs())) {
        PyErr_SetString(PyExc_ValueError, "inputs or outputs of a Function do not add up to its plan's");
        return -1;
    }
    Function& function = *as_function(self);
    delete function.plan;
    function.plan = new std::shared_ptr<const Plan>(std::move(made));
    delete std::exchange(function.updating, nullptr);
    if (PyTuple_GET_SIZE(updated) > 0) {
        bool together = other != Py_None && as_function(other)->updating != nullptr;
        function.updating = new std::shared_ptr<std::recursive_mutex>(
            together ? *as_function(other)->updating : std::make_shared<std::recursive_mutex>());
    }
    Py_XSETREF(function.cells, Py_NewRef(cells));
    Py_XSETREF(function.updated, Py_NewRef(updated));
    function.given = given;
    function.returned = returned;
    function.vectorcall = function_call;
    return 0;
}

int function_traverse(PyObject* self, visitproc visit, void* arg) {
    Function& function = *as_function(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(function.cells);
    Py_VISIT(function.updated);
    Py_VISIT(function.dict);
    return function.plan != nullptr && function.plan->use_count() == 1 ? (*function.plan)->traverse(visit, arg) : 0;
}

int function_clear(PyObject* self) {
    Function& function = *as_function(self);
    Py_CLEAR(function.dict);
    return 0;
}

void function_dealloc(PyObject* self) {
    PyObject_GC_UnTrack(self);
    Function& function = *as_function(self);
    if (function.weak_references != nullptr) {
        PyObject_ClearWeakRefs(self);
    }
    function_clear(self);
    Py_CLEAR(function.cells);
    Py_CLEAR(function.updated);
    delete function.plan;
    delete function.updating;
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyMemberDef function_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Function, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Function, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Function, weak_references), READONLY, nullptr},
    {nullptr},
};
PyGetSetDef function_properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr},
};
PyType_Slot function_slots[] = {
    {Py_tp_init, reinterpret_cast<void*>(function_init)},
    {Py_tp_new, reinterpret_cast<void*>(PyType_GenericNew)},
    {Py_tp_dealloc, reinterpret_cast<void*>(function_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(function_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(function_clear)},
    {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
    {Py_tp_members, function_members},
    {Py_tp_getset, function_properties},
    {Py_tp_doc,
     const_cast<char*>("Function(plan, cells, updated, given, returned, together_with=None)\n\n"
                       "A plan called with its first `given` inputs; `cells` hold the others, the cells `updated` take "
                       "the outputs after the `returned` ones (-1: one output, returned as itself). Functions that are "
                       "made together_with another one never run their updates at the same time.")},
    {0, nullptr},
};
PyType_Spec function_spec = {"ember._core.Function", sizeof(Function), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_BASETYPE,
                             function_slots};

}  // namespace

void bind_function(nb::module_& module) {
    PyObject* type = PyType_FromSpec(&function_spec);
    if (type == nullptr) {
        throw nb::python_error();
    }
    function_type = reinterpret_cast<PyTypeObject*>(type);
    module.attr("Function") = nb::steal(Py_NewRef(type));
}

}  // namespace ember::python
