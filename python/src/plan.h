// A plan: an executable with what stays the same from call to call, and the road of one call. NumPy arrays in, NumPy
// arrays out; values of other Python types travel as handles, numbers of objects in a table of the call.
#pragma once

#include <Python.h>

#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ember/driver/driver.h"

namespace ember::python {

class Plan {
public:
    struct Settings {
        std::shared_ptr<const driver::Executable> executable;
        std::vector<PyObject*> fixed;       // arrays of the last parameters
        std::vector<PyObject*> objects;     // constants that are no arrays; handle -1 is the first
        std::vector<bool> object_inputs;    // by input: does it travel as a handle?
        std::vector<bool> object_outputs;   // by output
        std::vector<bool> scalar_outputs;   // by output: is it handed over as a scalar of NumPy?
        std::vector<PyObject*> exceptions;  // classes of failed asserts, by the number before the message's colon
        std::vector<PyObject*> host;        // (*arguments) -> sequence of results, by name in host_names
        std::vector<std::string> host_names;
        std::vector<std::vector<bool>> host_object_inputs;  // which arguments of a host function travel as handles
        std::vector<std::vector<bool>> host_object_outputs;
        std::vector<std::string> labels;  // by input: how errors name it
    };

    /// Takes over the references of `settings`.
    explicit Plan(Settings settings);
    ~Plan();
    Plan(const Plan&) = delete;
    Plan& operator=(const Plan&) = delete;

    size_t inputs() const { return settings_.executable->parameters().size() - settings_.fixed.size(); }
    size_t outputs() const { return settings_.executable->outputs().size(); }
    const Settings& settings() const { return settings_; }

    /// `inputs`: borrowed; `results`: new references. False with a Python error set, and no result is made. The GIL is
    /// held; it is released while compiled code runs.
    bool run(PyObject* const* inputs, PyObject** results) const;
    /// Would run() take these as its first inputs, as they are and without keywords?
    bool takes(PyObject* const* arguments, size_t count, PyObject* keywords) const;
    int traverse(visitproc visit, void* arg) const;

private:
    struct Frame;
    struct LengthCheck {
        uint32_t param;
        uint32_t axis;
        int64_t wanted;  // static length, or -1
        uint32_t first_param;
        uint32_t first_axis;
    };
    /// Where an output's length is known before the call: a number, or a parameter's axis.
    struct KnownLength {
        int64_t size;  // -1: of the parameter
        uint32_t param;
        uint32_t axis;
    };
    struct Output {
        int type_number;
        int in_place_of;
        bool known;  // are all lengths known before the call?
        std::vector<KnownLength> lengths;
    };

    /// Would run() take this object without a copy?
    bool fits(size_t input, PyObject* object) const;
    /// Has an array that fits() the lengths that its type states?
    bool has_static_lengths(size_t input, PyObject* array) const;
    Frame* take_frame() const;
    void give_back(Frame* frame) const;
    bool load_inputs(Frame& frame, PyObject* const* inputs) const;
    bool load_input(Frame& frame, size_t k, PyObject* object) const;
    bool check_lengths(const Frame& frame) const;
    bool protect_in_place(Frame& frame) const;
    bool make_known_outputs(Frame& frame) const;
    /// The results as new references.
    bool hand_over(Frame& frame, PyObject** results) const;
    void raise_failure(Frame& frame, const Diagnostic& diagnostic) const;
    PyObject* object_of(const Frame& frame, int64_t handle) const;
    bool call_host(Frame& frame, const driver::HostRequest& request) const;
    PyObject* host_arguments(const Frame& frame, size_t function, const driver::HostRequest& request) const;
    bool take_host_result(PyObject* result, EmberTensor& output, const driver::HostRequest& request) const;

    Settings settings_;
    std::vector<int> type_numbers_;  // by parameter
    std::vector<int> ranks_;
    std::vector<std::vector<int64_t>> static_lengths_;  // by parameter and axis, -1: any; empty: none is static
    std::vector<LengthCheck> checks_;
    std::vector<Output> outputs_;
    std::vector<size_t> host_of_;  // by number in the artifact: position in Settings::host
    bool writes_in_place_ = false;
    mutable std::mutex writing_;          // held by calls that write into shared arrays
    mutable std::vector<Frame*> spares_;  // guarded by the GIL
};

}  // namespace ember::python
