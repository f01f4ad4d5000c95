// What the files of the extension module share: errors, dtypes, the parts that module.cpp puts together.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "ember/driver/driver.h"
#include "ember/ir/dtype.h"
#include "ember/support/result.h"

namespace ember::python {

namespace nb = nanobind;

/// The exception class that users of Python expect for an error of this kind. A borrowed reference.
PyObject* exception_class(Code code);
/// Sets the Python error.
void set_error(const Diagnostic& diagnostic);
/// Throws it.
[[noreturn]] void raise(const Diagnostic& diagnostic);

template <class T>
T unwrap(Result<T> result) {
    if (!result.ok()) {
        raise(result.error());
    }
    return std::move(result).value();
}

/// How an executable came about, as a dict.
nb::dict origin_dict(const driver::Origin& origin);

/// "float32" or "f32"; ValueError for a name that is neither.
ir::DType dtype_of(std::string_view name);
/// NumPy's name of a dtype; Ember's where NumPy has none.
std::string numpy_name(ir::DType dtype);
/// NumPy's type number of a dtype, or -1.
int numpy_type(ir::DType dtype);

void bind_errors(nb::module_& module);
void bind_graph(nb::module_& module);
void bind_plan(nb::module_& module);
void bind_cache(nb::module_& module);
void bind_llm(nb::module_& module);
void bind_function(nb::module_& module);
/// The class of functions that are called without PyTensor's own overhead; false with a Python error set.
PyObject* make_function_class(PyObject* base);

}  // namespace ember::python
