// The road of one call: see plan.h.
#define PY_ARRAY_UNIQUE_SYMBOL ember_numpy
#define NO_IMPORT_ARRAY
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include "plan.h"

#include <numpy/arrayobject.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "binding.h"

namespace ember::python {
namespace {

bool is_plain(PyArrayObject* array) {
    return PyArray_CHKFLAGS(array, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED) && PyArray_ISNOTSWAPPED(array);
}

/// The same numbers as a plain array of this type; a new reference. Only casts that lose nothing.
PyObject* plain_array(PyObject* object, int type_number) {
    if (!PyArray_Check(object)) {
        // A scalar or a list: as NumPy reads it.
        PyObject* made = PyArray_FROM_O(object);
        if (made == nullptr) {
            return nullptr;
        }
        PyObject* plain = plain_array(made, type_number);
        Py_DECREF(made);
        return plain;
    }
    PyArray_Descr* descr = PyArray_DescrFromType(type_number);  // taken over below
    return PyArray_FromAny(object, descr, 0, 0, NPY_ARRAY_CARRAY_RO | NPY_ARRAY_ENSUREARRAY, nullptr);
}

void describe(PyArrayObject* array, EmberTensor& tensor) {
    tensor.data = PyArray_DATA(array);
    tensor.shape = reinterpret_cast<int64_t*>(PyArray_DIMS(array));
}

/// NumPy's type number of a tensor of the artifact.
int numpy_type(const EmberTensor& tensor) {
    return ember::python::numpy_type(*ir::dtype_of_dlpack(tensor.dtype_code, tensor.dtype_bits));
}

bool overlap(PyArrayObject* a, PyArrayObject* b) {
    const char* a_begin = PyArray_BYTES(a);
    const char* b_begin = PyArray_BYTES(b);
    return a_begin < b_begin + PyArray_NBYTES(b) && b_begin < a_begin + PyArray_NBYTES(a);
}

}  // namespace

/// What one call works in; kept for the next one.
struct Plan::Frame {
    std::vector<EmberTensor> params;
    std::vector<const EmberTensor*> param_pointers;
    std::vector<EmberTensor> outs;
    std::vector<EmberTensor*> out_pointers;
    std::vector<int64_t> shapes;      // room for all outputs' shapes
    std::vector<PyObject*> held;      // by input: the array that is read
    std::vector<PyObject*> results;   // by output: the array that is written
    std::vector<int64_t> handles;     // by input: the handle's memory
    std::vector<PyObject*> objects;   // of this call, by handle
    PyThreadState* thread = nullptr;  // while the GIL is released
    const Plan* plan = nullptr;
    bool raised = false;
    PyObject* error = nullptr;  // what a host function raised
};

Plan::Plan(Settings settings) : settings_(std::move(settings)) {
    const driver::Executable& code = *settings_.executable;
    std::vector<std::pair<int64_t, std::pair<uint32_t, uint32_t>>> symbols;
    auto find = [&](ir::Dim dim) {
        return std::find_if(symbols.begin(), symbols.end(), [&](const auto& s) { return s.first == dim.code(); });
    };
    for (uint32_t p = 0; p < code.parameters().size(); ++p) {
        const ir::TensorType& type = code.parameters()[p];
        type_numbers_.push_back(numpy_type(type.dtype));
        ranks_.push_back(type.rank());
        std::vector<int64_t> lengths;
        for (ir::Dim dim : type.shape) {
            lengths.push_back(dim.is_static() ? dim.size() : -1);
        }
        bool any = std::any_of(lengths.begin(), lengths.end(), [](int64_t length) { return length >= 0; });
        static_lengths_.push_back(any ? lengths : std::vector<int64_t>());
        for (uint32_t axis = 0; axis < type.shape.size(); ++axis) {
            ir::Dim dim = type.shape[axis];
            if (dim.is_static()) {
                checks_.push_back({p, axis, dim.size(), 0, 0});
            } else if (auto known = find(dim); known != symbols.end()) {
                checks_.push_back({p, axis, -1, known->second.first, known->second.second});
            } else {
                symbols.push_back({dim.code(), {p, axis}});
            }
        }
    }
    for (size_t k = 0; k < code.outputs().size(); ++k) {
        const ir::TensorType& type = code.outputs()[k];
        Output output{numpy_type(type.dtype), code.in_place(k), true, {}};
        for (ir::Dim dim : type.shape) {
            auto known = dim.is_static() ? symbols.end() : find(dim);
            output.known &= dim.is_static() || known != symbols.end();
            output.lengths.push_back(dim.is_static() ? KnownLength{dim.size(), 0, 0}
                                     : known != symbols.end()
                                         ? KnownLength{-1, known->second.first, known->second.second}
                                         : KnownLength{-1, 0, 0});
        }
        writes_in_place_ |= output.in_place_of >= 0;
        outputs_.push_back(std::move(output));
    }
    for (const std::string& id : code.host_ids()) {
        auto found = std::find(settings_.host_names.begin(), settings_.host_names.end(), id);
        check(found != settings_.host_names.end(), "a host function for every id of the artifact");
        host_of_.push_back(static_cast<size_t>(found - settings_.host_names.begin()));
    }
}

Plan::~Plan() {
    for (auto* list : {&settings_.fixed, &settings_.objects, &settings_.exceptions, &settings_.host}) {
        for (PyObject* object : *list) {
            Py_DECREF(object);
        }
    }
    for (Frame* frame : spares_) {
        delete frame;
    }
}

int Plan::traverse(visitproc visit, void* arg) const {
    for (const auto* list : {&settings_.objects, &settings_.exceptions, &settings_.host}) {
        for (PyObject* object : *list) {
            Py_VISIT(object);
        }
    }
    return 0;
}

Plan::Frame* Plan::take_frame() const {
    if (!spares_.empty()) {
        Frame* frame = spares_.back();
        spares_.pop_back();
        return frame;
    }
    auto* frame = new Frame;
    frame->plan = this;
    size_t params = settings_.executable->parameters().size();
    size_t room = 0;
    for (const ir::TensorType& type : settings_.executable->parameters()) {
        frame->params.push_back(driver::make_tensor(type.dtype, {}, nullptr));
        frame->params.back().ndim = type.rank();  // the shape is each array's own
    }
    for (const ir::TensorType& type : settings_.executable->outputs()) {
        room += type.shape.size();
    }
    frame->shapes.resize(room);
    int64_t* shape = frame->shapes.data();
    for (const ir::TensorType& type : settings_.executable->outputs()) {
        frame->outs.push_back(driver::make_tensor(type.dtype, {shape, type.shape.size()}, nullptr));
        shape += type.shape.size();
    }
    for (EmberTensor& out : frame->outs) {
        frame->out_pointers.push_back(&out);
    }
    for (size_t k = 0; k < params; ++k) {
        frame->param_pointers.push_back(&frame->params[k]);
    }
    for (size_t k = 0; k < settings_.fixed.size(); ++k) {
        describe(reinterpret_cast<PyArrayObject*>(settings_.fixed[k]), frame->params[inputs() + k]);
    }
    frame->held.assign(inputs(), nullptr);
    frame->handles.assign(inputs() + 1, 0);
    frame->results.assign(outputs(), nullptr);
    return frame;
}

void Plan::give_back(Frame* frame) const {
    for (auto* list : {&frame->held, &frame->results, &frame->objects}) {
        for (PyObject*& object : *list) {
            Py_CLEAR(object);
        }
    }
    frame->objects.clear();
    frame->raised = false;
    spares_.push_back(frame);
}

bool Plan::fits(size_t input, PyObject* object) const {
    if (!PyArray_CheckExact(object)) {
        return false;
    }
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    return PyArray_TYPE(array) == type_numbers_[input] && PyArray_NDIM(array) == ranks_[input] && is_plain(array);
}

bool Plan::has_static_lengths(size_t input, PyObject* array) const {
    const npy_intp* dims = PyArray_DIMS(reinterpret_cast<PyArrayObject*>(array));
    for (size_t axis = 0; axis < static_lengths_[input].size(); ++axis) {
        if (static_lengths_[input][axis] >= 0 && static_lengths_[input][axis] != dims[axis]) {
            return false;
        }
    }
    return true;
}

bool Plan::takes(PyObject* const* arguments, size_t count, PyObject* keywords) const {
    if (keywords != nullptr && PyTuple_GET_SIZE(keywords) != 0) {
        return false;
    }
    for (size_t k = 0; k < count; ++k) {
        if (!fits(k, arguments[k]) || !has_static_lengths(k, arguments[k])) {
            return false;
        }
    }
    return true;
}

bool Plan::load_input(Frame& frame, size_t k, PyObject* object) const {
    if (!settings_.object_inputs.empty() && settings_.object_inputs[k]) {
        frame.handles[k] = static_cast<int64_t>(frame.objects.size());
        frame.objects.push_back(Py_NewRef(object));
        frame.params[k].data = &frame.handles[k];
        return true;
    }
    if (fits(k, object)) {
        frame.held[k] = Py_NewRef(object);
    } else {
        frame.held[k] = plain_array(object, type_numbers_[k]);
        if (frame.held[k] == nullptr) {
            return false;
        }
    }
    auto* array = reinterpret_cast<PyArrayObject*>(frame.held[k]);
    if (PyArray_NDIM(array) != ranks_[k]) {
        PyErr_Format(PyExc_TypeError, "%s: it has %d dimensions, not %d", settings_.labels[k].c_str(), ranks_[k],
                     PyArray_NDIM(array));
        return false;
    }
    describe(array, frame.params[k]);
    return true;
}

bool Plan::load_inputs(Frame& frame, PyObject* const* inputs) const {
    for (size_t k = 0; k < frame.held.size(); ++k) {
        if (!load_input(frame, k, inputs[k])) {
            return false;
        }
    }
    return check_lengths(frame) && (!writes_in_place_ || protect_in_place(frame));
}

bool Plan::check_lengths(const Frame& frame) const {
    for (const LengthCheck& check : checks_) {
        int64_t length = frame.params[check.param].shape[check.axis];
        int64_t wanted = check.wanted >= 0 ? check.wanted : frame.params[check.first_param].shape[check.first_axis];
        if (length != wanted) {
            PyErr_Format(PyExc_TypeError, "%s: axis %u must have length %lld, not %lld",
                         check.param < settings_.labels.size() ? settings_.labels[check.param].c_str() : "constant",
                         check.axis, static_cast<long long>(wanted), static_cast<long long>(length));
            return false;
        }
    }
    return true;
}

/// State that is to be overwritten must be this call's alone.
bool Plan::protect_in_place(Frame& frame) const {
    for (const Output& output : outputs_) {
        if (output.in_place_of < 0) {
            continue;
        }
        auto k = static_cast<size_t>(output.in_place_of);
        auto* array = reinterpret_cast<PyArrayObject*>(frame.held[k]);
        bool copy = !PyArray_ISWRITEABLE(array);
        for (size_t other = 0; !copy && other < frame.held.size(); ++other) {
            copy = other != k && frame.held[other] != nullptr &&
                   overlap(array, reinterpret_cast<PyArrayObject*>(frame.held[other]));
        }
        for (size_t other = 0; !copy && other < settings_.fixed.size(); ++other) {
            copy = overlap(array, reinterpret_cast<PyArrayObject*>(settings_.fixed[other]));
        }
        if (copy) {
            PyObject* own = PyArray_NewCopy(array, NPY_CORDER);
            if (own == nullptr) {
                return false;
            }
            Py_SETREF(frame.held[k], own);
            describe(reinterpret_cast<PyArrayObject*>(own), frame.params[k]);
        }
    }
    return true;
}

bool Plan::make_known_outputs(Frame& frame) const {
    for (size_t k = 0; k < outputs_.size(); ++k) {
        const Output& output = outputs_[k];
        if (!output.known || output.in_place_of >= 0) {
            continue;
        }
        npy_intp lengths[NPY_MAXDIMS];
        for (size_t axis = 0; axis < output.lengths.size(); ++axis) {
            const KnownLength& known = output.lengths[axis];
            lengths[axis] = known.size >= 0 ? known.size : frame.params[known.param].shape[known.axis];
        }
        frame.results[k] = PyArray_SimpleNew(static_cast<int>(output.lengths.size()), lengths, output.type_number);
        if (frame.results[k] == nullptr) {
            return false;
        }
    }
    return true;
}

PyObject* Plan::object_of(const Frame& frame, int64_t handle) const {
    const std::vector<PyObject*>& table = handle >= 0 ? frame.objects : settings_.objects;
    auto index = static_cast<size_t>(handle >= 0 ? handle : -1 - handle);
    if (index >= table.size()) {
        PyErr_SetString(PyExc_RuntimeError, "a handle without object");
        return nullptr;
    }
    return table[index];
}

void Plan::raise_failure(Frame& frame, const Diagnostic& diagnostic) const {
    if (frame.raised) {
        PyErr_SetRaisedException(std::exchange(frame.error, nullptr));
        return;
    }
    if (diagnostic.code == Code::kAssert) {
        // "number:text": the frontend's own class of exception.
        size_t colon = diagnostic.message.find(':');
        if (colon != std::string::npos && colon < 9) {
            size_t number = std::strtoul(diagnostic.message.c_str(), nullptr, 10);
            if (number < settings_.exceptions.size()) {
                PyErr_SetString(settings_.exceptions[number], diagnostic.message.c_str() + colon + 1);
                return;
            }
        }
    }
    set_error(diagnostic);
}

/// Copies: a host function may keep what it is given, and write into it.
PyObject* Plan::host_arguments(const Frame& frame, size_t function, const driver::HostRequest& request) const {
    PyObject* arguments = PyTuple_New(static_cast<Py_ssize_t>(request.inputs.size()));
    for (size_t k = 0; arguments != nullptr && k < request.inputs.size(); ++k) {
        const EmberTensor& input = request.inputs[k];
        PyObject* value = nullptr;
        if (settings_.host_object_inputs[function][k]) {
            value = Py_XNewRef(object_of(frame, *static_cast<const int64_t*>(input.data)));
        } else {
            value = PyArray_SimpleNew(input.ndim, reinterpret_cast<npy_intp*>(input.shape), numpy_type(input));
            if (value != nullptr) {
                auto* array = reinterpret_cast<PyArrayObject*>(value);
                if (PyArray_NBYTES(array) > 0) {
                    std::memcpy(PyArray_DATA(array), static_cast<const char*>(input.data) + input.byte_offset,
                                static_cast<size_t>(PyArray_NBYTES(array)));
                }
            }
        }
        if (value == nullptr) {
            Py_CLEAR(arguments);
        } else {
            PyTuple_SET_ITEM(arguments, static_cast<Py_ssize_t>(k), value);
        }
    }
    return arguments;
}

bool Plan::take_host_result(PyObject* result, EmberTensor& output, const driver::HostRequest& request) const {
    int type = numpy_type(output);
    PyArray_Descr* descr = PyArray_DescrFromType(type);  // taken over below
    PyObject* plain = PyArray_FromAny(result, descr, 0, 0, NPY_ARRAY_CARRAY_RO | NPY_ARRAY_FORCECAST, nullptr);
    if (plain == nullptr) {
        return false;
    }
    auto* array = reinterpret_cast<PyArrayObject*>(plain);
    bool fits = PyArray_NDIM(array) == output.ndim;
    if (!fits) {
        PyErr_Format(PyExc_TypeError, "%.*s: a result has %d dimensions, not %d", static_cast<int>(request.id.size()),
                     request.id.data(), PyArray_NDIM(array), output.ndim);
    } else {
        output.data = request.allocate(std::max<int64_t>(PyArray_NBYTES(array), 1));
        fits = output.data != nullptr;
        if (!fits) {
            PyErr_NoMemory();
        }
    }
    if (fits) {
        std::copy_n(PyArray_DIMS(array), output.ndim, output.shape);
        std::memcpy(output.data, PyArray_DATA(array), static_cast<size_t>(PyArray_NBYTES(array)));
    }
    Py_DECREF(plain);
    return fits;
}

bool Plan::call_host(Frame& frame, const driver::HostRequest& request) const {
    size_t function = host_of_[static_cast<size_t>(request.number)];
    PyObject* arguments = host_arguments(frame, function, request);
    if (arguments == nullptr) {
        return false;
    }
    PyObject* given = PyObject_CallObject(settings_.host[function], arguments);
    Py_DECREF(arguments);
    PyObject* results = given == nullptr ? nullptr : PySequence_Fast(given, "a host function gives a sequence");
    Py_XDECREF(given);
    if (results == nullptr) {
        return false;
    }
    bool fine = static_cast<size_t>(PySequence_Fast_GET_SIZE(results)) == request.outputs.size();
    if (!fine) {
        PyErr_SetString(PyExc_RuntimeError, "a host function gave another number of results");
    }
    for (size_t k = 0; fine && k < request.outputs.size(); ++k) {
        PyObject* result = PySequence_Fast_GET_ITEM(results, static_cast<Py_ssize_t>(k));
        EmberTensor& output = request.outputs[k];
        if (settings_.host_object_outputs[function][k]) {
            output.data = request.allocate(sizeof(int64_t));
            fine = output.data != nullptr;
            if (fine) {
                *static_cast<int64_t*>(output.data) = static_cast<int64_t>(frame.objects.size());
                frame.objects.push_back(Py_NewRef(result));
            } else {
                PyErr_NoMemory();
            }
        } else {
            fine = take_host_result(result, output, request);
        }
    }
    Py_DECREF(results);
    return fine;
}

bool Plan::hand_over(Frame& frame, PyObject** results) const {
    for (size_t k = 0; k < outputs_.size(); ++k) {
        if (outputs_[k].in_place_of >= 0) {
            results[k] = Py_NewRef(frame.held[static_cast<size_t>(outputs_[k].in_place_of)]);
        } else if (!settings_.object_outputs.empty() && settings_.object_outputs[k]) {
            auto* handle = reinterpret_cast<PyArrayObject*>(frame.results[k]);
            PyObject* object = object_of(frame, *static_cast<int64_t*>(PyArray_DATA(handle)));
            if (object == nullptr) {
                while (k-- > 0) {
                    Py_CLEAR(results[k]);
                }
                return false;
            }
            results[k] = Py_NewRef(object);
        } else {
            results[k] = std::exchange(frame.results[k], nullptr);
        }
        if (!settings_.scalar_outputs.empty() && settings_.scalar_outputs[k] && PyArray_Check(results[k])) {
            results[k] = PyArray_Return(reinterpret_cast<PyArrayObject*>(results[k]));
        }
    }
    return true;
}

bool Plan::run(PyObject* const* inputs, PyObject** results) const {
    Frame* frame = take_frame();
    if (!load_inputs(*frame, inputs) || !make_known_outputs(*frame)) {
        give_back(frame);
        return false;
    }
    auto allocate = [](void* host, int32_t number, int64_t) -> void* {
        auto& self = *static_cast<Frame*>(host);
        auto k = static_cast<size_t>(number);
        if (self.results[k] == nullptr) {
            PyEval_RestoreThread(self.thread);
            const EmberTensor& out = self.outs[k];
            self.results[k] =
                PyArray_SimpleNew(out.ndim, reinterpret_cast<npy_intp*>(out.shape), self.plan->outputs_[k].type_number);
            PyErr_Clear();  // out of memory: reported by the null pointer
            self.thread = PyEval_SaveThread();
        }
        return self.results[k] == nullptr ? nullptr : PyArray_DATA(reinterpret_cast<PyArrayObject*>(self.results[k]));
    };
    auto host_call = [](void* host, const driver::HostRequest& request) -> Status {
        auto& self = *static_cast<Frame*>(host);
        PyEval_RestoreThread(self.thread);
        bool fine = self.plan->call_host(self, request);
        self.raised = !fine;
        if (!fine) {
            self.error = PyErr_GetRaisedException();
        }
        self.thread = PyEval_SaveThread();
        return fine ? Status() : Status(error(Code::kInternal, "a host function failed"));
    };
    driver::Executable::Host host{frame, allocate, host_call};
    Status status;
    frame->thread = PyEval_SaveThread();
    if (writes_in_place_) {
        std::lock_guard lock(writing_);
        status = settings_.executable->call(frame->param_pointers.data(), frame->out_pointers.data(), host);
    } else {
        status = settings_.executable->call(frame->param_pointers.data(), frame->out_pointers.data(), host);
    }
    PyEval_RestoreThread(frame->thread);
    if (!status.ok()) {
        raise_failure(*frame, status.error());
        give_back(frame);
        return false;
    }
    bool fine = hand_over(*frame, results);
    give_back(frame);
    return fine;
}

}  // namespace ember::python
