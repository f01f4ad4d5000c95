// Tests of compiled code that calls the host: lengths of its own at every call, failures, what a host function may get
// wrong, calls within calls, and memory that goes back.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>

#include "ember/driver/driver.h"
#include "ember/text/parse.h"

namespace ember::driver {
namespace {

using Function = std::function<Status(const HostRequest&)>;

struct Tensor {
    std::vector<float> floats;
    std::vector<int64_t> shape;
    EmberTensor tensor{};

    void describe() { tensor = make_tensor(ir::DType::kF32, shape, floats.data()); }
};

Status give(const HostRequest& request, size_t k, std::vector<int64_t> shape, const std::vector<float>& values) {
    EmberTensor& output = request.outputs[k];
    std::copy(shape.begin(), shape.end(), output.shape);
    if (!values.empty()) {
        output.data = request.allocate(static_cast<int64_t>(values.size() * sizeof(float)));
        std::copy(values.begin(), values.end(), static_cast<float*>(output.data));
    }
    return {};
}

std::vector<float> values_of(const EmberTensor& tensor) {
    int64_t count = 1;
    for (int32_t axis = 0; axis < tensor.ndim; ++axis) {
        count *= tensor.shape[axis];
    }
    const float* data = static_cast<const float*>(tensor.data);
    return {data, data + count};
}

/// The elements above 0.
Status positive(const HostRequest& request) {
    std::vector<float> found;
    for (float x : values_of(request.inputs[0])) {
        if (x > 0) {
            found.push_back(x);
        }
    }
    return give(request, 0, {static_cast<int64_t>(found.size())}, found);
}

class HostTest : public ::testing::Test {
protected:
    HostTest() {
        folder_ = (std::filesystem::temp_directory_path() / "ember-host-XXXXXX").string();
        EXPECT_NE(mkdtemp(folder_.data()), nullptr);
        functions_["positive"] = positive;
    }
    ~HostTest() override { std::filesystem::remove_all(folder_); }

    /// Calls stay calls: small functions are not inlined.
    void compile(std::string_view text, std::vector<std::string> disabled = {"inline_calls"}) {
        auto module = text::parse(text, "test");
        ASSERT_TRUE(module.ok()) << module.error().to_string();
        CacheOptions cache;
        cache.dir = folder_;
        Options options;
        options.cache = Cache::open(cache);
        options.disabled_passes = std::move(disabled);
        auto made = compile_or_load(*module, options);
        ASSERT_TRUE(made.ok()) << made.error().to_string();
        made_ = *made;
    }

    static Tensor vector(std::vector<float> values) {
        auto length = static_cast<int64_t>(values.size());
        return {std::move(values), {length}};
    }

    Status call(std::vector<Tensor> inputs) {
        inputs_ = std::move(inputs);
        outputs_.clear();
        std::vector<const EmberTensor*> given;
        for (Tensor& input : inputs_) {
            input.describe();
            given.push_back(&input.tensor);
        }
        std::vector<EmberTensor*> wanted;
        for (const ir::TensorType& type : made_->outputs()) {
            outputs_.push_back({{}, std::vector<int64_t>(type.shape.size(), -7)});
            outputs_.back().describe();
            wanted.push_back(&outputs_.back().tensor);
        }
        auto allocate = [](void* self, int32_t output, int64_t bytes) -> void* {
            auto& room = static_cast<HostTest*>(self)->outputs_[static_cast<size_t>(output)].floats;
            room.reserve(static_cast<size_t>(bytes) / sizeof(float) + 1);
            room.resize(static_cast<size_t>(bytes) / sizeof(float));
            return room.data();
        };
        auto host_call = [](void* self, const HostRequest& request) -> Status {
            auto& test = *static_cast<HostTest*>(self);
            ++test.calls_;
            return test.functions_.at(std::string(request.id))(request);
        };
        return made_->call(given.data(), wanted.data(), {this, allocate, host_call});
    }

    std::string folder_;
    std::map<std::string, Function> functions_;
    std::shared_ptr<const Executable> made_;
    std::vector<Tensor> inputs_;
    std::deque<Tensor> outputs_;
    int calls_ = 0;
};

constexpr std::string_view kPositive = R"(func @main(%x: f32[n]) {
  %y = host_call(%x) {id="positive"} : f32[m]
  %z = add(%y, %y)
  return %y, %z
})";

TEST_F(HostTest, OtherLengthsAtEveryCall) {
    compile(kPositive);
    EXPECT_EQ(made_->host_ids(), std::vector<std::string>{"positive"});
    for (const std::vector<float>& x : std::vector<std::vector<float>>{{1, -1, 2}, {}, {-1}, {5, 6, 7, 8}}) {
        ASSERT_TRUE(call({vector(x)}).ok());
        std::vector<float> found;
        std::copy_if(x.begin(), x.end(), std::back_inserter(found), [](float v) { return v > 0; });
        EXPECT_EQ(outputs_[0].floats, found);
        EXPECT_EQ(outputs_[0].shape, std::vector<int64_t>{static_cast<int64_t>(found.size())});
        std::transform(found.begin(), found.end(), found.begin(), [](float v) { return 2 * v; });
        EXPECT_EQ(outputs_[1].floats, found);
    }
    EXPECT_EQ(calls_, 4);
}

TEST_F(HostTest, IdsAreNumberedOnceAndPartOfTheKey) {
    compile(R"(func @main(%x: f32[n]) {
  %a = host_call(%x) {id="b%a"} : f32[n]
  %b = host_call(%a) {id="a"} : f32[n]
  %c = host_call(%b) {id="b%a"} : f32[n]
  return %c
})");
    EXPECT_EQ(made_->host_ids(), (std::vector<std::string>{"b%a", "a"}));
    functions_["a"] = [](const HostRequest& r) {
        EXPECT_EQ(r.number, 1);
        return give(r, 0, {1}, {values_of(r.inputs[0])[0] * 2});
    };
    functions_["b%a"] = [](const HostRequest& r) {
        EXPECT_EQ(r.number, 0);
        return give(r, 0, {1}, {values_of(r.inputs[0])[0] + 1});
    };
    ASSERT_TRUE(call({vector({3})}).ok());
    EXPECT_EQ(outputs_[0].floats, (std::vector<float>{9}));
    functions_["b%a"] = [](const HostRequest& r) { return give(r, 0, {2}, {1, 2}); };
    Status status = call({vector({3})});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "host_call \"b%a\": result 0: axis 0 has length 2, its type asks for 1");
    EXPECT_EQ(status.error().code, Code::kShape);
}

TEST_F(HostTest, WithoutFunctionsOfTheHostACallSaysSo) {
    compile(kPositive);
    Tensor x = vector({1});
    x.describe();
    const EmberTensor* inputs[] = {&x.tensor};
    Status status = made_->call(inputs, nullptr, nullptr, nullptr);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("\"positive\""), std::string::npos);
}

TEST_F(HostTest, AFailureIsTheCallsOwnAndUpdatesNothing) {
    compile(R"(func @main(%x: f32[n], shared %w: f32[n]) {
  %v = add(%w, %x)
  %y = host_call(%x) {id="may fail"} : f32[m]
  return %y, %v -> %w
})");
    bool fails = true;
    functions_["may fail"] = [&](const HostRequest& request) -> Status {
        return fails ? Status(error(Code::kIndex, "not today")) : positive(request);
    };
    Status status = call({vector({1, 2}), vector({10, 20})});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().code, Code::kIndex);
    EXPECT_EQ(status.error().message, "not today");
    EXPECT_EQ(inputs_[1].floats, (std::vector<float>{10, 20}));
    EXPECT_TRUE(outputs_[0].floats.empty());
    EXPECT_EQ(outputs_[0].shape, std::vector<int64_t>{-7});
    fails = false;
    ASSERT_TRUE(call({vector({1, 2}), vector({10, 20})}).ok());
    const Tensor& updated = made_->in_place(1) >= 0 ? inputs_[1] : outputs_[1];
    EXPECT_EQ(updated.floats, (std::vector<float>{11, 22}));
}

TEST_F(HostTest, AnExceptionBecomesADiagnostic) {
    compile(kPositive);
    functions_["positive"] = [](const HostRequest&) -> Status { throw std::runtime_error("burst"); };
    Status status = call({vector({1})});
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "host_call \"positive\": burst");
    functions_["positive"] = [](const HostRequest&) -> Status { throw 1; };
    EXPECT_FALSE(call({vector({1})}).ok());
}

TEST_F(HostTest, WhatAFunctionGetsWrongIsAnError) {
    compile(kPositive);
    const std::pair<Function, std::string_view> wrong[] = {
        {[](const HostRequest&) { return Status(); }, "has no lengths: [-1]"},
        {[](const HostRequest& r) { return give(r, 0, {-3}, {}); }, "has no lengths: [-3]"},
        {[](const HostRequest& r) { return give(r, 0, {int64_t{1} << 50}, {1}); }, "has no lengths"},
        {[](const HostRequest& r) { return give(r, 0, {3}, {}); }, "has no data"},
        {[](const HostRequest& r) {
             r.outputs[0].ndim = 2;
             return give(r, 0, {1}, {1});
         },
         "has another dtype or rank"},
        {[](const HostRequest& r) {
             r.outputs[0].dtype_bits = 64;
             return give(r, 0, {1}, {1});
         },
         "has another dtype or rank"},
    };
    for (const auto& [function, message] : wrong) {
        functions_["positive"] = function;
        Status status = call({vector({1})});
        ASSERT_FALSE(status.ok());
        EXPECT_NE(status.error().message.find(message), std::string::npos) << status.error().message;
        EXPECT_TRUE(outputs_[0].floats.empty());
    }
}

TEST_F(HostTest, OfRank0AndWithoutOperandsOrResults) {
    compile(R"(func @main(%x: f32[n]) {
  %s = host_call() {id="number"} : f32[]
  %t, %u = host_call(%s, %x) {id="two"} : f32[], f32[0,k]
  %y = mul(%x, %t)
  return %s, %y, %u
})");
    functions_["number"] = [](const HostRequest& r) {
        EXPECT_TRUE(r.inputs.empty());
        return give(r, 0, {}, {3});
    };
    functions_["two"] = [](const HostRequest& r) {
        EXPECT_EQ(r.inputs[0].ndim, 0);
        EXPECT_EQ(r.inputs[1].shape[0], 2);
        EXPECT_TRUE(give(r, 1, {0, 5}, {}).ok());
        return give(r, 0, {}, {values_of(r.inputs[0])[0] + 1});
    };
    ASSERT_TRUE(call({vector({1, 2})}).ok());
    EXPECT_EQ(outputs_[0].floats, (std::vector<float>{3}));
    EXPECT_EQ(outputs_[1].floats, (std::vector<float>{4, 8}));
    EXPECT_EQ(outputs_[2].shape, (std::vector<int64_t>{0, 5}));
}

TEST_F(HostTest, OperandsAreContiguous) {
    compile(R"(func @main(%x: f32[n,2]) {
  %t = transpose(%x) {perm=[1,0]}
  %y = host_call(%t) {id="look"} : f32[m]
  return %y
})");
    functions_["look"] = [](const HostRequest& r) {
        EXPECT_EQ(r.inputs[0].strides, nullptr);
        EXPECT_EQ(r.inputs[0].byte_offset, 0U);
        EXPECT_EQ(r.inputs[0].shape[0], 2);
        std::vector<float> values = values_of(r.inputs[0]);
        return give(r, 0, {static_cast<int64_t>(values.size())}, values);
    };
    ASSERT_TRUE(call({{{1, 2, 3, 4, 5, 6}, {3, 2}}}).ok());
    EXPECT_EQ(outputs_[0].floats, (std::vector<float>{1, 3, 5, 2, 4, 6}));
}

TEST_F(HostTest, CalleesGiveLengthsOfTheirOwn) {
    compile(R"(func @main(%x: f32[n]) {
  %a, %b = call(%x) {callee="outer"} : f32[m], f32[m]
  %s = sub(%b, %a)
  return %a, %s
}
func @outer(%x: f32[n]) {
  %a = call(%x) {callee="inner"} : f32[m]
  %y = neg(%x)
  %n = call(%y) {callee="inner"} : f32[k]
  %b = add(%a, %a)
  %t = reduce_sum(%n) {axes=[0]}
  %c = add(%b, %t)
  return %a, %c
}
func @inner(%x: f32[n]) {
  %y = host_call(%x) {id="positive"} : f32[m]
  return %y
})");
    ASSERT_TRUE(call({vector({1, -2, 3, -4})}).ok());
    EXPECT_EQ(calls_, 2);
    EXPECT_EQ(outputs_[0].floats, (std::vector<float>{1, 3}));
    EXPECT_EQ(outputs_[1].floats, (std::vector<float>{7, 9}));
    ASSERT_TRUE(call({vector({-1})}).ok());
    EXPECT_EQ(outputs_[1].shape, std::vector<int64_t>{0});
}

TEST_F(HostTest, InALoopMemoryGoesBack) {
    compile(R"(func @main(%x: f32[n], %count: f32[]) {
  %trips = cast(%count) {dtype=i64}
  %y = loop(%trips, %x) {carried=1} do (%i: i64[], %v: f32[n]) {
    %a = call(%v) {callee="inner"} : f32[m]
    %s = reduce_sum(%a) {axes=[0]}
    %w = add(%v, %s)
    return %w
  }
  return %y
}
func @inner(%x: f32[n]) {
  %y = host_call(%x) {id="big"} : f32[m]
  %z = exp(%y)
  return %z
})");
    // Were the memory of a step kept until the end of the call, every step would see another place.
    constexpr int64_t kLength = int64_t{1} << 20;
    std::vector<void*> seen;
    functions_["big"] = [&](const HostRequest& r) -> Status {
        r.outputs[0].shape[0] = kLength;
        r.outputs[0].data = r.allocate(kLength * 4);
        seen.push_back(r.outputs[0].data);
        std::fill_n(static_cast<float*>(r.outputs[0].data), kLength, -200.0F);
        return {};
    };
    ASSERT_TRUE(call({vector({1, 2}), {{12}, {}}}).ok());
    EXPECT_EQ(outputs_[0].floats, (std::vector<float>{1, 2}));
    std::sort(seen.begin(), seen.end());
    EXPECT_LT(std::unique(seen.begin(), seen.end()) - seen.begin(), 12);
}

TEST_F(HostTest, ACallWithinACall) {
    compile(kPositive);
    int depth = 0;
    functions_["positive"] = [&](const HostRequest& request) -> Status {
        if (depth++ > 0) {
            return positive(request);
        }
        std::vector<Tensor> inputs = std::exchange(inputs_, {});
        std::deque<Tensor> outputs = std::exchange(outputs_, {});
        EMBER_CHECKED(call({vector({-1, 4, 5})}));
        Tensor made = outputs_[1];
        inputs_ = std::move(inputs);
        outputs_ = std::move(outputs);
        return give(request, 0, made.shape, made.floats);
    };
    ASSERT_TRUE(call({vector({1})}).ok());
    EXPECT_EQ(outputs_[0].floats, (std::vector<float>{8, 10}));
    EXPECT_EQ(outputs_[1].floats, (std::vector<float>{16, 20}));
}

TEST_F(HostTest, MessagesHoldNoNamesOfSymbols) {
    compile(R"(func @main(%x: f32[secret], %y: f32[other]) {
  %z = add(%x, %y) : f32[secret]
  return %z
})");
    Status status = call({vector({1, 2}), vector({1, 2, 3})});
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.error().message.find("add(f32[n0], f32[n1])"), std::string::npos) << status.error().message;
}

}  // namespace
}  // namespace ember::driver
