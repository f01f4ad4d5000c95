// What callables have in common: they read inputs from lists of one element ("cells"), as PyTensor stores values, and
// hand results out into such.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>
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

/// The values in a tuple of cells, borrowed; false with a TypeError set where a cell is none.
inline bool read_cells(PyObject* cells, PyObject** values) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(cells); ++k) {
        PyObject* cell = PyTuple_GET_ITEM(cells, k);
        if (!PyList_CheckExact(cell) || PyList_GET_SIZE(cell) == 0) {
            PyErr_SetString(PyExc_TypeError, "an input cell that is no list of one element");
            return false;
        }
        values[k] = PyList_GET_ITEM(cell, 0);
    }
    return true;
}

/// A list of results. Takes over the references; null with an error set.
inline PyObject* list_of(PyObject** results, Py_ssize_t count) {
    PyObject* list = PyList_New(count);
    for (Py_ssize_t k = 0; k < count; ++k) {
        if (list != nullptr) {
            PyList_SET_ITEM(list, k, results[k]);
        } else {
            Py_DECREF(results[k]);
        }
    }
    return list;
}

/// Puts the results after the returned ones into the cells `updated` (null: none) and gives the others back, as a list
/// or, where `returned` is -1, the only one itself. Takes over all references.
inline PyObject* hand_out(PyObject** results, Py_ssize_t returned, PyObject* updated) {
    PyObject** after = results + (returned < 0 ? 1 : returned);
    for (Py_ssize_t k = 0; updated != nullptr && k < PyTuple_GET_SIZE(updated); ++k) {
        PyList_SetItem(PyTuple_GET_ITEM(updated, k), 0, after[k]);
    }
    return returned < 0 ? results[0] : list_of(results, returned);
}

/// What a vectorcall was given, as a tuple and a dict; an invalid object with an error set.
inline std::pair<nanobind::object, nanobind::object> packed(PyObject* const* args, size_t given, PyObject* names) {
    nanobind::object tuple = nanobind::steal(PyTuple_New(static_cast<Py_ssize_t>(given)));
    nanobind::object keywords = nanobind::steal(PyDict_New());
    for (size_t k = 0; tuple.is_valid() && k < given; ++k) {
        PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(k), Py_NewRef(args[k]));
    }
    for (Py_ssize_t k = 0; keywords.is_valid() && names != nullptr && k < PyTuple_GET_SIZE(names); ++k) {
        if (PyDict_SetItem(keywords.ptr(), PyTuple_GET_ITEM(names, k), args[given + static_cast<size_t>(k)]) < 0) {
            keywords.reset();
        }
    }
    return {std::move(tuple), std::move(keywords)};
}

}  // namespace ember::python
