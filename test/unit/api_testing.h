// What the tests of the public API share: a cache folder of their own, and ways to evaluate graphs.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "ember/ember.h"

namespace ember::testing {

/// A folder that goes away with the process; the process-wide cache is in it.
class Folder {
public:
    Folder() : path_((std::filesystem::temp_directory_path() / "ember-api-XXXXXX").string()) {
        if (mkdtemp(path_.data()) != nullptr) {
            setenv("EMBER_CACHE_DIR", (path_ + "/cache").c_str(), 1);
        }
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;

    std::string file(const std::string& name) const { return path_ + "/" + name; }

private:
    std::string path_;
};

inline const Folder folder;

using Shape = std::vector<int64_t>;

/// The value of a graph without inputs.
inline Tensor value(const Variable& output) {
    return function({}, output)()[0];
}

template <class T>
std::vector<T> values(const Variable& output) {
    return value(output).to_vector<T>();
}

/// An input's type is the tensor's, with a symbol for each length: nothing is known when the graph is compiled.
inline Variable symbolic_input(const Tensor& tensor, const std::string& prefix) {
    Type type{tensor.dtype(), {}};
    for (size_t axis = 0; axis < tensor.shape().size(); ++axis) {
        type.shape.emplace_back(prefix + std::to_string(axis));
    }
    return input(type, prefix);
}

/// Have they the same type, and the same elements bit by bit, but for NaNs?
inline void expect_same(const Tensor& found, const Tensor& expected) {
    ASSERT_EQ(found.type_string(), expected.type_string());
    bool same = std::memcmp(found.data(), expected.data(), static_cast<size_t>(found.bytes())) == 0;
    if (!same && found.dtype() == DType::kF32) {
        std::vector<float> a = found.to_vector<float>();
        std::vector<float> b = expected.to_vector<float>();
        same = std::equal(a.begin(), a.end(), b.begin(), [](float x, float y) { return x == y || (x != x && y != y); });
    }
    EXPECT_TRUE(same) << "known and unknown lengths give different values";
}

/// Evaluates f twice: on a tensor of known lengths, and on one whose lengths only the call knows. Both must agree.
template <class F>
Tensor on(const Tensor& x, const F& f) {
    Variable known = input({x.dtype(), {x.shape().begin(), x.shape().end()}}, "x");
    Tensor expected = function({known}, f(known))(x)[0];
    Variable unknown = symbolic_input(x, "n");
    Tensor found = function({unknown}, f(unknown))(x)[0];
    expect_same(found, expected);
    return expected;
}

/// The error that f throws must have this code, and its text these parts.
template <class F>
void expect_error(ErrorCode code, const std::vector<std::string>& parts, const F& f) {
    try {
        f();
        ADD_FAILURE() << "no error; expected one that says " << (parts.empty() ? "" : parts[0]);
    } catch (const Error& error) {
        EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
        for (const std::string& part : parts) {
            EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what() << "\nlacks: " << part;
        }
    }
}

}  // namespace ember::testing
