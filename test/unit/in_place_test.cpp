// Tests of updates in place: which parameters are written in their own memory, and that a call that fails, wherever it
// fails, leaves all of them as they were.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <filesystem>

#include "ember/driver/driver.h"
#include "ember/text/parse.h"

namespace ember::driver {
namespace {

/// A tensor of f32 or i64 in the form that artifacts take.
struct Given {
    std::vector<float> floats;
    std::vector<int64_t> integers;
    std::vector<int64_t> shape;
    EmberTensor tensor{};

    Given(std::vector<int64_t> lengths, std::vector<float> values) : floats(std::move(values)), shape(lengths) {
        tensor = driver::make_tensor(ir::DType::kF32, shape, floats.data());
    }
    Given(std::vector<int64_t> lengths, std::vector<int64_t> values) : integers(std::move(values)), shape(lengths) {
        tensor = driver::make_tensor(ir::DType::kI64, shape, integers.data());
    }
    Given(const Given&) = delete;
};

class InPlace : public ::testing::Test {
protected:
    InPlace() {
        folder_ = (std::filesystem::temp_directory_path() / "ember-in-place-XXXXXX").string();
        EXPECT_NE(mkdtemp(folder_.data()), nullptr);
    }
    ~InPlace() override { std::filesystem::remove_all(folder_); }

    [[nodiscard]] bool compile(std::string_view text) {
        CacheOptions cache;
        cache.dir = folder_;
        Options options;
        options.cache = Cache::open(cache);
        options.disabled_passes = {"inline_calls", "outline_layers"};
        auto module = text::parse(text, "test");
        EXPECT_TRUE(module.ok()) << (module.ok() ? "" : module.error().to_string());
        if (!module.ok()) {
            return false;
        }
        auto made = compile_or_load(*module, options);
        EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().to_string());
        made_ = made.ok() ? *made : nullptr;
        return made.ok();
    }

    Given& floats(std::vector<int64_t> shape, std::vector<float> values) {
        return given_.emplace_back(std::move(shape), std::move(values));
    }
    Given& integers(std::vector<int64_t> shape, std::vector<int64_t> values) {
        return given_.emplace_back(std::move(shape), std::move(values));
    }

    /// Calls with the tensors given so far; `outputs_it_gets`: how many outputs there is memory for.
    Status call(int outputs_it_gets = 100) {
        std::vector<const EmberTensor*> inputs;
        for (Given& one : given_) {
            inputs.push_back(&one.tensor);
        }
        EMBER_CHECKED(made_->check_inputs(inputs.data()));
        struct Host {
            std::deque<std::vector<char>> rooms;
            int left;
        } host{{}, outputs_it_gets};
        std::vector<std::vector<int64_t>> shapes;
        std::vector<EmberTensor> tensors(made_->outputs().size());
        std::vector<EmberTensor*> outputs;
        for (const ir::TensorType& type : made_->outputs()) {
            shapes.emplace_back(type.shape.size());
        }
        for (size_t k = 0; k < tensors.size(); ++k) {
            tensors[k].shape = shapes[k].data();
            outputs.push_back(&tensors[k]);
        }
        auto allocate = [](void* to, int32_t, int64_t bytes) -> void* {
            auto* room = static_cast<Host*>(to);
            return room->left-- <= 0 ? nullptr : room->rooms.emplace_back(static_cast<size_t>(bytes) + 1).data();
        };
        return made_->call(inputs.data(), outputs.data(), allocate, &host);
    }

    std::string folder_;
    std::shared_ptr<const Executable> made_;
    std::deque<Given> given_;
};

const std::vector<float> kOld = {1, 2, 3};

TEST_F(InPlace, AnIndexThatIsOutOfRange) {
    ASSERT_TRUE(compile(R"(func @f(shared %x: f32[n], %y: f32[m], %i: i64[k]) {
      %one = const() {value=1} : f32[]
      %new = add(%x, %one)
      %rows = gather(%y, %i) {axes=[0]}
      %twice = mul(%rows, %rows)
      return %twice, %new -> %x
    })"));
    EXPECT_EQ(made_->in_place(1), 0);
    Given& x = floats({3}, kOld);
    floats({2}, {5, 6});
    Given& i = integers({1}, {2});
    EXPECT_EQ(call().error().code, Code::kIndex);
    EXPECT_EQ(x.floats, kOld);
    i.integers[0] = 1;
    EXPECT_TRUE(call().ok());
    EXPECT_EQ(x.floats, (std::vector<float>{2, 3, 4}));
}

TEST_F(InPlace, AnAssertionOfTheNewValue) {
    ASSERT_TRUE(compile(R"(func @f(shared %x: f32[n]) {
      %one = const() {value=1} : f32[]
      %new = add(%x, %one)
      %most = reduce_max(%new) {axes=[0]}
      %limit = const() {value=4.5} : f32[]
      %fine = lt(%most, %limit)
      %sure = assert(%most, %fine) {message="too large"}
      return %sure, %new -> %x
    })"));
    Given& x = floats({3}, kOld);
    EXPECT_TRUE(call().ok());
    if (made_->in_place(1) < 0) {
        EXPECT_EQ(x.floats, kOld) << "the caller takes the new value over";
        x.floats = {2, 3, 4};
    }
    EXPECT_EQ(call().error().code, Code::kAssert);
    EXPECT_EQ(x.floats, (std::vector<float>{2, 3, 4}));
}

TEST_F(InPlace, AWindowOfALaterUpdate) {
    ASSERT_TRUE(compile(R"(func @f(shared %x: f32[4], shared %y: f32[n], %v: f32[2], %p: i64[], %q: i64[]) {
      %a = update_slice(%x, %v, %p)
      %w = exp(%v)
      %b = update_slice(%y, %w, %q)
      return %a -> %x, %b -> %y
    })"));
    EXPECT_EQ(made_->in_place(0), 0);
    EXPECT_EQ(made_->in_place(1), 1);
    Given& x = floats({4}, {1, 2, 3, 4});
    Given& y = floats({3}, kOld);
    floats({2}, {0, 0});
    integers({}, {1});
    Given& q = integers({}, {2});
    EXPECT_EQ(call().error().code, Code::kIndex);
    EXPECT_EQ(x.floats, (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(y.floats, kOld);
    q.integers[0] = 1;
    EXPECT_TRUE(call().ok());
    EXPECT_EQ(x.floats, (std::vector<float>{1, 0, 0, 4}));
    EXPECT_EQ(y.floats, (std::vector<float>{1, 1, 1}));
}

constexpr std::string_view kLayers = R"(
    func @layer(%x: f32[1,d], %cache: f32[c,d], %at: i64[], %row: i64[k]) {
      %zero = const() {value=0} : i64[]
      %new = update_slice(%cache, %x, %at, %zero)
      %read = gather(%new, %row) {axes=[0]}
      %sum = reduce_sum(%read) {axes=[0]}
      %next = add(%x, %sum)
      return %next, %new
    })";

TEST_F(InPlace, CalleesThatUpdateOneAfterTheOther) {
    ASSERT_TRUE(compile(R"(func @f(%x: f32[1,d], shared %p: f32[n,d], shared %q: f32[m,d], %at: i64[], %row: i64[k]) {
      %a, %p2 = call(%x, %p, %at, %row) {callee="layer"} : f32[1,d], f32[n,d]
      %b, %q2 = call(%a, %q, %at, %row) {callee="layer"} : f32[1,d], f32[m,d]
      return %b, %p2 -> %p, %q2 -> %q
    })" + std::string(kLayers)));
    EXPECT_EQ(made_->in_place(1), 1);
    EXPECT_EQ(made_->in_place(2), 2);
    floats({1, 1}, {7});
    Given& p = floats({4, 1}, {1, 2, 3, 4});
    Given& q = floats({3, 1}, kOld);
    Given& at = integers({}, {3});
    Given& row = integers({1}, {0});
    EXPECT_EQ(call().error().code, Code::kIndex);  // the second cache is shorter
    EXPECT_EQ(p.floats, (std::vector<float>{1, 2, 3, 4}));
    at.integers[0] = 2;
    row.integers[0] = 3;
    EXPECT_EQ(call().error().code, Code::kIndex);
    EXPECT_EQ(p.floats, (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(call(0).error().code, Code::kIndex);
    row.integers[0] = 2;
    EXPECT_EQ(call(0).error().code, Code::kOutOfMemory);
    EXPECT_EQ(p.floats, (std::vector<float>{1, 2, 3, 4}));
    EXPECT_TRUE(call().ok());
    EXPECT_EQ(p.floats, (std::vector<float>{1, 2, 7, 4}));
    EXPECT_EQ(q.floats, (std::vector<float>{1, 2, 14}));
}

TEST_F(InPlace, ALoopThatFailsInAStep) {
    ASSERT_TRUE(compile(R"(func @f(shared %x: f32[n], %y: f32[m], %steps: i64[]) {
      %one = const() {value=1} : f32[]
      %new = add(%x, %one)
      %start = reduce_sum(%new) {axes=[0]}
      %sum = loop(%steps, %start, %y) {carried=1} do (%i: i64[], %c: f32[], %v: f32[m]) {
        %e = gather(%v, %i) {axes=[0]}
        %d = add(%c, %e)
        return %d
      }
      return %sum, %new -> %x
    })"));
    Given& x = floats({3}, kOld);
    floats({2}, {5, 6});
    Given& steps = integers({}, {3});
    EXPECT_EQ(call().error().code, Code::kIndex);
    EXPECT_EQ(x.floats, kOld);
    steps.integers[0] = 2;
    EXPECT_TRUE(call().ok());
}

TEST_F(InPlace, MemoryThatIsNotThere) {
    ASSERT_TRUE(compile(R"(func @f(shared %x: f32[n], %m: i64[]) {
      %one = const() {value=1} : f32[]
      %new = add(%x, %one)
      %i = iota(%m) {dtype=f32}
      %s = sin(%i)
      %c = cumsum(%s) {axis=0}
      %d = cumprod(%c) {axis=0}
      return %d, %new -> %x
    })"));
    EXPECT_EQ(made_->in_place(1), 0);
    Given& x = floats({3}, kOld);
    Given& m = integers({}, {4});
    EXPECT_EQ(call(0).error().code, Code::kOutOfMemory);
    EXPECT_EQ(x.floats, kOld);
    m.integers[0] = int64_t{1} << 50;  // more than any workspace
    EXPECT_EQ(call(0).error().code, Code::kOutOfMemory);
    EXPECT_EQ(x.floats, kOld);
    m.integers[0] = -1;
    EXPECT_EQ(call().error().code, Code::kShape);
    EXPECT_EQ(x.floats, kOld);
    m.integers[0] = 4;
    EXPECT_TRUE(call().ok());
    EXPECT_EQ(x.floats, (std::vector<float>{2, 3, 4}));
}

TEST_F(InPlace, WorkspaceOfACallee) {
    ASSERT_TRUE(compile(R"(func @f(shared %x: f32[n], %m: f32[k,2]) {
      %one = const() {value=1} : f32[]
      %new = add(%x, %one)
      %a = call(%m) {callee="sums"} : f32[k,2]
      %b = call(%a) {callee="sums"} : f32[k,2]
      %c = reduce_sum(%b) {axes=[0]}
      return %c, %new -> %x
    }
    func @sums(%m: f32[k,2]) {
      %a = cumsum(%m) {axis=0}
      %b = cumsum(%a) {axis=1}
      return %b
    })"));
    EXPECT_EQ(made_->in_place(1), 0);
    Given& x = floats({3}, kOld);
    Given& m = floats({1, 2}, {1, 2});
    m.shape[0] = int64_t{1} << 46;  // nothing is read before memory is had
    EXPECT_EQ(call().error().code, Code::kOutOfMemory);
    EXPECT_EQ(x.floats, kOld);
    m.shape[0] = 1;
    EXPECT_TRUE(call().ok());
    EXPECT_EQ(x.floats, (std::vector<float>{2, 3, 4}));
}

TEST_F(InPlace, AStepOfGradientDescentThatCannotFail) {
    ASSERT_TRUE(compile(R"(func @f(%x: f32[b,n], %y: f32[b], shared %w: f32[n], shared %c: f32[]) {
      %p = dot_general(%x, %w) {contract=[1,0]}
      %q = add(%p, %c)
      %e = sub(%q, %y)
      %g = dot_general(%e, %x) {contract=[0,0]}
      %rate = const() {value=0.5} : f32[]
      %step = mul(%g, %rate)
      %new = sub(%w, %step)
      %sum = reduce_sum(%e) {axes=[0]}
      %small = mul(%sum, %rate)
      %bias = sub(%c, %small)
      return %e, %new -> %w, %bias -> %c
    })"));
    EXPECT_EQ(made_->in_place(1), 2);
    floats({1, 2}, {1, 1});
    floats({1}, {3});
    Given& w = floats({2}, {1, 1});
    floats({}, {0});
    EXPECT_EQ(call(0).error().code, Code::kOutOfMemory);
    EXPECT_EQ(w.floats, (std::vector<float>{1, 1}));
    EXPECT_TRUE(call().ok());
    EXPECT_EQ(w.floats, (std::vector<float>{1.5, 1.5}));
}

}  // namespace
}  // namespace ember::driver
