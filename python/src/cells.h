// What callables read their inputs from: lists of one element ("cells"), as PyTensor stores values, and room for the
// pointers of one call.
#pragma once

#include <Python.h>

#include <vector>

namespace ember::python {

constexpr size_t kFewValues = 16;

/// Room for some pointers, on the stack where they are few.
class Pointers {
public:
    explicit Pointers(size_t count) : many_(count > kFewValues ? count : 0) {}
    PyObject** data() { return many_.empty() ? few_ : many_.data(); }
    PyObject*& operator[](size_t k) { return data()[k]; }

private:
    PyObject* few_[kFewValues] = {};
    std::vector<PyObject*> many_;
};

/// The value in cell k of a tuple of cells, borrowed; null with a TypeError set.
inline PyObject* cell_value(PyObject* cells, size_t k) {
    PyObject* cell = PyTuple_GET_ITEM(cells, static_cast<Py_ssize_t>(k));
    if (!PyList_CheckExact(cell) || PyList_GET_SIZE(cell) == 0) {
        PyErr_SetString(PyExc_TypeError, "an input cell that is no list of one element");
        return nullptr;
    }
    return PyList_GET_ITEM(cell, 0);
}

}  // namespace ember::python
