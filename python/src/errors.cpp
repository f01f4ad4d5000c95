// From diagnostics to Python exceptions.
#include "binding.h"

namespace ember::python {
namespace {

PyObject* unsupported_class = nullptr;

}  // namespace

PyObject* exception_class(Code code) {
    switch (code) {
        case Code::kInvalidArgument:
        case Code::kShape:
        case Code::kParse:
        case Code::kVerify:
            return PyExc_ValueError;
        case Code::kType:
            return PyExc_TypeError;
        case Code::kIndex:
            return PyExc_IndexError;
        case Code::kAssert:
            return PyExc_AssertionError;
        case Code::kIo:
            return PyExc_OSError;
        case Code::kUnsupported:
            return unsupported_class;
        case Code::kOutOfMemory:
            return PyExc_MemoryError;
        case Code::kCancelled:
            return PyExc_KeyboardInterrupt;
        case Code::kInternal:
            return PyExc_RuntimeError;
    }
    return PyExc_RuntimeError;
}

void set_error(const Diagnostic& diagnostic) {
    PyErr_SetString(exception_class(diagnostic.code), diagnostic.to_string().c_str());
}

void raise(const Diagnostic& diagnostic) {
    set_error(diagnostic);
    throw nb::python_error();
}

void bind_errors(nb::module_& module) {
    unsupported_class = PyErr_NewExceptionWithDoc("ember.UnsupportedOp",
                                                  "An op that Ember can neither compile nor run; the message names it.",
                                                  PyExc_NotImplementedError, nullptr);
    module.attr("UnsupportedOp") = nb::borrow(unsupported_class);
}

}  // namespace ember::python
