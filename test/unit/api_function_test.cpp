// Tests of the public API's tensors and functions: elements in and out, DLPack, shared state and its updates, threads,
// errors of calls, keys, save and load. Ops: api_test.cpp. Two processes with other weights: examples/seed_test.cmake.
#include <atomic>
#include <complex>
#include <cstring>
#include <fstream>
#include <numeric>
#include <thread>

#include "api_testing.h"

namespace ember {
namespace {

using testing::expect_error;
using testing::folder;
using testing::Shape;
using Floats = std::vector<float>;

Tensor counted(Shape shape) {
    Tensor made = Tensor::empty(DType::kF32, std::move(shape));
    std::iota(made.data_as<float>(), made.data_as<float>() + made.size(), 0.0F);
    return made;
}

TEST(Tensors, ElementsInAndOut) {
    EXPECT_EQ(Tensor::from<int8_t>({-1, 2}).to_vector<int8_t>(), (std::vector<int8_t>{-1, 2}));
    EXPECT_EQ(Tensor::from<uint64_t>({~uint64_t{0}}).item<uint64_t>(), ~uint64_t{0});
    EXPECT_EQ(Tensor::from(std::vector<bool>{true, false}).to_vector<bool>(), (std::vector<bool>{true, false}));
    EXPECT_EQ(Tensor::scalar(std::complex<double>(1, 2)).item<std::complex<double>>(), std::complex<double>(1, 2));
    EXPECT_EQ(Tensor::from<int16_t>({1, 2, 3, 4, 5, 6}, {2, 3}).type_string(), "i16[2,3]");
    EXPECT_EQ(Tensor().type_string(), "f32[]");
    EXPECT_EQ(Tensor::zeros(DType::kF64, {0, 4}).to_vector<double>(), std::vector<double>{});
    EXPECT_EQ(Tensor::zeros(DType::kQ8_0, {2, 32}).bytes(), 68);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(Tensor::empty(DType::kF32, {0}).data()) % 64, 0U);
    Tensor first = counted({2});
    Tensor same = first;
    Tensor other = first.copy();
    first.data_as<float>()[0] = 9;
    EXPECT_EQ(same.to_vector<float>()[0], 9);
    EXPECT_EQ(other.to_vector<float>()[0], 0);
    expect_error(ErrorCode::kShape, {"3", "f32[2,2]"}, [] { Tensor::from<float>({1, 2, 3}, {2, 2}); });
    expect_error(ErrorCode::kShape, {"-1"}, [] { Tensor::empty(DType::kF32, {-1}); });
    expect_error(ErrorCode::kShape, {"too large"}, [] { Tensor::empty(DType::kF32, {1 << 30, 1 << 30, 1 << 30}); });
    expect_error(ErrorCode::kShape, {"32"}, [] { Tensor::empty(DType::kQ4_0, {3, 31}); });
    expect_error(ErrorCode::kType, {"f32[2]", "f64"}, [&] { first.to_vector<double>(); });
    expect_error(ErrorCode::kShape, {"f32[2]"}, [&] { first.item<float>(); });
    expect_error(ErrorCode::kInvalidArgument, {"null"}, [] { Tensor::borrow(nullptr, DType::kF32, {2}, nullptr); });
    expect_error(ErrorCode::kInvalidArgument, {"unaligned"},
                 [&] { Tensor::borrow(static_cast<char*>(first.data()) + 1, DType::kF32, {1}, nullptr); });
    EXPECT_THROW(Dim(-1), Error);
    EXPECT_THROW(Dim(""), Error);
    EXPECT_THROW(Dim("a b"), Error);
}

TEST(Tensors, Halves) {
    Tensor x = Tensor::from<float>({1, 65504, 1e6F, -0.1F});
    EXPECT_EQ(x.cast(DType::kF16).cast(DType::kF64).to_vector<double>(),
              (std::vector<double>{1, 65504, std::numeric_limits<double>::infinity(), -0.0999755859375}));
    EXPECT_EQ(x.cast(DType::kBF16).cast(DType::kF32).to_vector<float>()[3], -0.10009765625F);
    expect_error(ErrorCode::kUnsupported, {"f32[4]", "i8"}, [&] { x.cast(DType::kI8); });
}

int deleted = 0;

/// A tensor as another library hands it out; it counts its deleter's calls.
template <class Managed>
struct Foreign {
    Floats data = {0, 1, 2, 3, 4, 5, 6, 7};
    std::vector<int64_t> shape;
    std::vector<int64_t> strides;
    Managed managed{};

    Foreign(std::vector<int64_t> lengths, std::vector<int64_t> steps)
        : shape(std::move(lengths)), strides(std::move(steps)) {
        deleted = 0;
        managed.tensor = {data.data(),
                          {dlpack::kCpu, 0},
                          static_cast<int32_t>(shape.size()),
                          {2, 32, 1},
                          shape.data(),
                          strides.empty() ? nullptr : strides.data(),
                          0};
        managed.deleter = [](Managed*) { ++deleted; };
    }
};
using Plain = Foreign<dlpack::ManagedTensor>;
using Versioned = Foreign<dlpack::VersionedTensor>;

TEST(DlPack, InWithoutACopy) {
    Plain foreign({2, 3}, {});
    foreign.managed.tensor.byte_offset = 8;
    {
        Tensor taken = Tensor::from_dlpack(&foreign.managed);
        EXPECT_EQ(taken.to_vector<float>(), (Floats{2, 3, 4, 5, 6, 7}));
        EXPECT_EQ(taken.data(), &foreign.data[2]);
        Tensor second = taken;
        taken = Tensor();
        EXPECT_EQ(deleted, 0);
    }
    EXPECT_EQ(deleted, 1);
}

TEST(DlPack, InByACopy) {
    struct Case {
        std::vector<int64_t> shape;
        std::vector<int64_t> strides;
        uint64_t offset;
        Floats expected;
    };
    for (const Case& c : std::vector<Case>{{{3, 2}, {1, 3}, 0, {0, 3, 1, 4, 2, 5}},  // transposed
                                           {{4}, {2}, 0, {0, 2, 4, 6}},              // every second one
                                           {{3}, {-1}, 28, {7, 6, 5}},               // backwards from the last one
                                           {{2, 2}, {0, 1}, 4, {1, 2, 1, 2}},        // broadcast
                                           {{0, 3}, {3, 1}, 0, {}}}) {               // empty
        Plain foreign(c.shape, c.strides);
        foreign.managed.tensor.byte_offset = c.offset;
        Tensor taken = Tensor::from_dlpack(&foreign.managed);
        EXPECT_EQ(deleted, 1);
        EXPECT_EQ(taken.shape(), c.shape);
        EXPECT_EQ(taken.to_vector<float>(), c.expected);
    }
    Plain unaligned({1}, {});
    unaligned.managed.tensor.byte_offset = 2;
    EXPECT_EQ(Tensor::from_dlpack(&unaligned.managed).size(), 1);
    EXPECT_EQ(deleted, 1);
    Plain no_deleter({8}, {});
    no_deleter.managed.deleter = nullptr;
    EXPECT_EQ(Tensor::from_dlpack(&no_deleter.managed).to_vector<float>(), no_deleter.data);
}

TEST(DlPack, Versions) {
    Versioned shared({8}, {});
    shared.managed.version = {1, 2};
    EXPECT_EQ(Tensor::from_dlpack(&shared.managed).data(), shared.data.data());
    EXPECT_EQ(deleted, 1);
    Versioned read_only({8}, {});
    read_only.managed.version = {1, 0};
    read_only.managed.flags = dlpack::kReadOnly;
    Tensor taken = Tensor::from_dlpack(&read_only.managed);
    EXPECT_NE(taken.data(), read_only.data.data());
    EXPECT_EQ(taken.to_vector<float>(), read_only.data);
    EXPECT_EQ(deleted, 1);
    Versioned later({8}, {});
    later.managed.version = {2, 0};
    expect_error(ErrorCode::kUnsupported, {"2.0"}, [&] { Tensor::from_dlpack(&later.managed); });
    EXPECT_EQ(deleted, 0);
}

TEST(DlPack, WhatIsRefusedStaysItsOwners) {
    auto refused = [](ErrorCode code, const std::string& part, auto change) {
        Plain foreign({8}, {});
        change(foreign.managed.tensor);
        expect_error(code, {part}, [&] { Tensor::from_dlpack(&foreign.managed); });
        EXPECT_EQ(deleted, 0) << part;
    };
    refused(ErrorCode::kUnsupported, "device of type 2", [](auto& t) { t.device.type = 2; });
    refused(ErrorCode::kUnsupported, "64 lanes", [](auto& t) { t.dtype.lanes = 64; });
    refused(ErrorCode::kUnsupported, "code 9", [](auto& t) { t.dtype.code = 9; });
    refused(ErrorCode::kShape, "negative", [](auto& t) { t.shape[0] = -8; });
    refused(ErrorCode::kInvalidArgument, "no elements", [](auto& t) { t.data = nullptr; });
    refused(ErrorCode::kInvalidArgument, "no shape", [](auto& t) { t.shape = nullptr; });
}

TEST(DlPack, Out) {
    Tensor x = counted({2, 3});
    dlpack::ManagedTensor* plain = x.to_dlpack();
    dlpack::VersionedTensor* versioned = x.to_versioned_dlpack();
    void* data = x.data();
    x = Tensor();
    EXPECT_EQ(plain->tensor.data, data);
    EXPECT_EQ(versioned->version.major, 1U);
    EXPECT_EQ(versioned->flags, 0U);
    EXPECT_EQ(plain->tensor.shape[1], 3);
    EXPECT_EQ(static_cast<float*>(versioned->tensor.data)[5], 5);
    plain->deleter(plain);
    Tensor back = Tensor::from_dlpack(versioned);
    EXPECT_EQ(back.data(), data);
    EXPECT_EQ(back.to_vector<float>(), (Floats{0, 1, 2, 3, 4, 5}));
    for (DType dtype : {DType::kBool, DType::kU8, DType::kI64, DType::kF16, DType::kBF16, DType::kF64, DType::kC128}) {
        EXPECT_EQ(Tensor::from_dlpack(Tensor::zeros(dtype, {3}).to_dlpack()).dtype(), dtype);
    }
    expect_error(ErrorCode::kUnsupported, {"q8_0"}, [] { Tensor::zeros(DType::kQ8_0, {32}).to_dlpack(); });
}

TEST(State, UpdatesAreSimultaneous) {
    SharedVariable a = shared(Tensor::from<float>({1, 2}), "a");
    SharedVariable b = shared(Tensor::from<float>({10, 20}), "b");
    Function swap = function({}, {Variable(a), a + b}, {{a, b}, {b, a}});
    std::vector<Tensor> old = swap();
    EXPECT_EQ(old[0].to_vector<float>(), (Floats{1, 2}));
    EXPECT_EQ(old[1].to_vector<float>(), (Floats{11, 22}));
    EXPECT_EQ(a.get().to_vector<float>(), (Floats{10, 20}));
    EXPECT_EQ(b.get().to_vector<float>(), (Floats{1, 2}));
    Function add = function({}, std::vector<Variable>{a}, {{a, a + b}, {b, b + a}});
    EXPECT_EQ(add()[0].to_vector<float>(), (Floats{10, 20}));
    EXPECT_EQ(a.get().to_vector<float>(), (Floats{11, 22}));
    EXPECT_EQ(b.get().to_vector<float>(), (Floats{11, 22}));
    swap();
    EXPECT_EQ(old[0].to_vector<float>(), (Floats{1, 2})) << "a result is memory of its own";
}

TEST(State, AResultAndAnUpdateOfOneValueAreTwoTensors) {
    SharedVariable w = shared(Tensor::from<float>({1, 2}), "w");
    Function f = function({}, w * 2, {{w, w * 2}});
    Tensor result = f()[0];
    result.data_as<float>()[0] = 100;
    EXPECT_EQ(w.get().to_vector<float>(), (Floats{2, 4}));
    Tensor handed = w.get(Ownership::kShare);
    EXPECT_EQ(f()[0].to_vector<float>(), (Floats{4, 8}));
    // An input that is the state's own memory is read before it is written.
    Variable x = input({DType::kF32, {2}});
    Function g = function({x}, x + 0, {{w, w + x}});
    EXPECT_EQ(g(w.get(Ownership::kShare))[0].to_vector<float>(), (Floats{4, 8}));
    EXPECT_EQ(w.get().to_vector<float>(), (Floats{8, 16}));
}

TEST(State, SetAndLengthsThatChange) {
    SharedVariable w = shared(Tensor::zeros(DType::kF32, {0, 2}), {DType::kF32, {"n", 2}}, "w");
    Variable x = input({DType::kF32, {1, 2}}, "x");
    Function push = function({x}, dim(w, 0), {{w, concat({w, x}, 0)}});
    EXPECT_EQ(push(counted({1, 2}))[0].item<int64_t>(), 0);
    EXPECT_EQ(push(counted({1, 2}))[0].item<int64_t>(), 1);
    EXPECT_EQ(w.get().shape(), (Shape{2, 2}));
    w.set(counted({3, 2}));
    EXPECT_EQ(push(counted({1, 2}))[0].item<int64_t>(), 3);
    expect_error(ErrorCode::kShape, {"w", "f32[n,2]", "f32[3,3]"}, [&] { w.set(counted({3, 3})); });
    expect_error(ErrorCode::kType, {"w", "f64"}, [&] { w.set(Tensor::zeros(DType::kF64, {3, 2})); });
    expect_error(ErrorCode::kShape, {"f32[4]"}, [&] { shared(counted({4}), {DType::kF32, {5}}); });
    Tensor mine = counted({1, 2});
    SharedVariable kept = shared(mine, "kept", Ownership::kShare);
    EXPECT_EQ(kept.get(Ownership::kShare).data(), mine.data());
    EXPECT_NE(kept.get().data(), mine.data());
}

TEST(State, AFailedCallLeavesReplacedStateAsItWas) {
    SharedVariable w = shared(counted({2}), {DType::kF32, {"n"}}, "w");
    Variable x = input({DType::kF32, {"m"}}, "x");
    Function f = function({x}, std::vector<Variable>{}, {{w, assert_that(concat({w, x}, 0), {x > 0}, "positive")}});
    expect_error(ErrorCode::kAssert, {"positive"}, [&] { f(Tensor::zeros(DType::kF32, {3})); });
    EXPECT_EQ(w.get().shape(), (Shape{2}));
}

TEST(Functions, ErrorsOfMakingOne) {
    Variable x = input({DType::kF32, {2}}, "x");
    Variable y = input({DType::kF32, {2}}, "y");
    SharedVariable w = shared(counted({2}), "w");
    expect_error(ErrorCode::kInvalidArgument, {"'y'", "f32[2]"}, [&] { function({x}, x + y); });
    expect_error(ErrorCode::kInvalidArgument, {"'x'", "twice"}, [&] { function({x, x}, x); });
    expect_error(ErrorCode::kInvalidArgument, {"f32[2]", "input()"}, [&] { function({x + y}, x); });
    expect_error(ErrorCode::kInvalidArgument, {"'w'", "twice"}, [&] { function({}, {}, {{w, w}, {w, w + 1}}); });
    expect_error(ErrorCode::kShape, {"'w'", "f32[2]", "f32[]"}, [&] { function({}, {}, {{w, sum(w)}}); });
    expect_error(ErrorCode::kType, {"'w'", "f64[2]"}, [&] { function({}, {}, {{w, cast(w, DType::kF64)}}); });
    expect_error(ErrorCode::kInvalidArgument, {"pdp-11"}, [&] { function({x}, x, {}, {.cpu = "pdp-11"}); });
}

TEST(Functions, ErrorsOfACall) {
    Variable x = input({DType::kF32, {"n", 2}}, "x");
    Variable y = input({DType::kF32, {"n"}}, "y");
    Function f = function({x, y}, {sum(x, 1) + y, constant(1.0F)});
    EXPECT_EQ(f.inputs()[0], (Type{DType::kF32, {"n", 2}}));
    EXPECT_EQ(f.outputs()[1].to_string(), "f32[]");
    EXPECT_EQ(f(counted({0, 2}), counted({0}))[0].shape(), (Shape{0}));
    expect_error(ErrorCode::kInvalidArgument, {"2 inputs", "1"}, [&] { f(counted({1, 2})); });
    expect_error(ErrorCode::kType, {"input 0 'x'", "f32[n,2]", "f64[3,2]"},
                 [&] { f(Tensor::zeros(DType::kF64, {3, 2}), counted({3})); });
    expect_error(ErrorCode::kShape, {"input 0 'x'", "f32[3]"}, [&] { f(counted({3}), counted({3})); });
    expect_error(ErrorCode::kShape, {"input 1 'y'", "3", "f32[4]"}, [&] { f(counted({3, 2}), counted({4})); });
}

TEST(Functions, BoundAndQuantisedWeights) {
    Tensor weights = Tensor::zeros(DType::kQ8_0, {2, 32});
    auto* bytes = static_cast<uint8_t*>(weights.data());
    bytes[1] = 0x3c;       // scale 1 of the first row
    bytes[2 + 5] = 3;      // its sixth number
    bytes[34 + 1] = 0x40;  // scale 2 of the second row
    bytes[34 + 2] = 1;
    Variable w = bound(weights, "w");
    Variable x = input({DType::kF32, {"n", 32}}, "x");
    Function f = function({x}, dot_general(x, w, {{1, 1}}));
    EXPECT_EQ(f(counted({1, 32}))[0].to_vector<float>(), (Floats{15, 0}));
    EXPECT_EQ(testing::value(cast(w, DType::kF32)).to_vector<float>()[32], 2);
    expect_error(ErrorCode::kType, {"add", "q8_0[2,32]"}, [&] { w + w; });
}

TEST(Functions, KeysAndCacheStatus) {
    auto make = [](float scale, const std::string& name, int64_t rows) {
        Variable x = input({DType::kF32, {"n", rows}}, name);
        Tensor weights = counted({rows, 3});
        weights.data_as<float>()[4] = scale;
        return function({x}, dot(x, bound(weights)) + constant(Tensor::zeros(DType::kF32, {3})));
    };
    Function first = make(1, "x", 4);
    EXPECT_EQ(first.cache_status(), "miss");
    EXPECT_GT(first.origin().compile_seconds, 0);
    Function second = make(2, "other", 4);
    EXPECT_EQ(second.key(), first.key());
    EXPECT_EQ(second.cache_status(), "hit");
    EXPECT_EQ(second.origin().compile_seconds, 0);
    EXPECT_NE(first(counted({1, 4}))[0].to_vector<float>(), second(counted({1, 4}))[0].to_vector<float>());
    EXPECT_NE(make(1, "x", 5).key(), first.key());
    Variable y = input({DType::kF32, {2}});
    EXPECT_NE(function({y}, y + 1).key(), function({y}, y + 2).key()) << "a small constant is part of the graph";
}

/// Marks in a folder's files.
bool any_file_holds(const std::string& path, const std::string& mark) {
    int files = 0;
    bool found = false;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
        if (entry.is_regular_file()) {
            ++files;
            std::ifstream file(entry.path(), std::ios::binary);
            std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
            found = found || bytes.find(mark) != std::string::npos;
        }
    }
    EXPECT_GT(files, 0);
    return found;
}

TEST(Functions, NoWeightIsStored) {
    std::string mark = "\xd3\x91\x5e\x27\xa8\x6f\x1c\xe4\x70\x3b\xc6\x89\x52\xfd\x14\x9a";
    auto marked = [&](DType dtype, int64_t elements) {
        Tensor made = Tensor::zeros(dtype, {elements});
        for (int64_t at = 0; at + 16 <= made.bytes(); at += 16) {
            std::memcpy(static_cast<char*>(made.data()) + at, mark.data(), mark.size());
        }
        return made;
    };
    FunctionOptions options{.cache_folder = folder.file("weights")};
    auto make = [&](const Tensor& weights, const Tensor& large) {
        Variable w = bound(weights);
        SharedVariable s = shared(weights);
        return function({}, w + s + constant(large), {{s, s * 2}}, options);
    };
    Function first = make(marked(DType::kF32, 64), marked(DType::kF32, 64));
    EXPECT_EQ(first.cache_status(), "miss");
    EXPECT_FALSE(any_file_holds(options.cache_folder, mark));
    Function second = make(counted({64}), counted({64}));
    EXPECT_EQ(second.key(), first.key());
    EXPECT_EQ(second.cache_status(), "hit");
    // The search does find what is stored: a constant of 64 bytes is.
    Function small = function({}, constant(marked(DType::kI32, 16)) + iota(16, DType::kI32), {}, options);
    EXPECT_TRUE(any_file_holds(options.cache_folder, "i32[16]"));
}

TEST(Functions, ThreadsShareOne) {
    Variable x = input({DType::kF32, {"n"}});
    SharedVariable calls = shared(Tensor::scalar(int64_t{0}), "calls");
    Function f = function({x}, sum(exp(x) * 0 + x), {{calls, calls + 1}});
    constexpr int kThreads = 4;
    constexpr int kCalls = 200;
    std::atomic<int> wrong = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
        threads.emplace_back([&, t] {
            Tensor mine = counted({t + 2});
            float expected = static_cast<float>((t + 1) * (t + 2)) / 2;
            for (int k = 0; k < kCalls; ++k) {
                wrong += f(mine)[0].item<float>() == expected ? 0 : 1;
            }
            Variable own = input({DType::kF32, {2}});  // threads write graphs of their own
            wrong += function({own}, own + static_cast<float>(t))(counted({2}))[0].to_vector<float>()[1] ==
                             static_cast<float>(t) + 1
                         ? 0
                         : 1;
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(calls.get().item<int64_t>(), kThreads * kCalls);
}

TEST(Functions, SaveAndLoad) {
    Variable x = input({DType::kF32, {"n", 2}}, "x");
    SharedVariable w = shared(counted({2, 2}), "w");
    Function f = function({x}, dot(x, w) + bound(counted({2})), {{w, w * 2}});
    f.save(folder.file("f.ember"));
    Function g = load_function(folder.file("f.ember"), f.state());
    EXPECT_EQ(g.key(), f.key());
    EXPECT_EQ(g.text(), f.text());
    EXPECT_EQ(g.cache_status(), "hit");
    Tensor ones = Tensor::from<float>({1, 1}, {1, 2});
    EXPECT_EQ(g(ones)[0].to_vector<float>(), (Floats{2, 5}));
    EXPECT_EQ(g(ones)[0].to_vector<float>(), (Floats{4, 9}));
    EXPECT_EQ(g.state()[0].to_vector<float>(), (Floats{0, 4, 8, 12}));
    EXPECT_EQ(f(ones)[0].to_vector<float>(), (Floats{2, 5})) << "the loaded one has state of its own";
    std::string path = folder.file("f.ember");
    expect_error(ErrorCode::kInvalidArgument, {path, "2", "0"}, [&] { load_function(path); });
    expect_error(ErrorCode::kShape, {path, "f32[2,2]", "f32[3]"}, [&] { load_function(path, {counted({3}), ones}); });
    expect_error(ErrorCode::kIo, {"nowhere"}, [] { load_function(folder.file("nowhere")); });
    std::ofstream(folder.file("bad.ember")) << "func @f(%0: f32[2]) {\n  return %1\n}\n";
    expect_error(ErrorCode::kParse, {"bad.ember:2:"}, [] { load_function(folder.file("bad.ember")); });
    expect_error(ErrorCode::kIo, {"no/such"}, [&] { f.save(folder.file("no/such")); });
}

TEST(Functions, LevelsAgree) {
    Variable x = input({DType::kF32, {"n"}});
    Tensor at = counted({37});
    Tensor expected = function({x}, softmax(x * 0.1F), {}, {.cpu = "x86-64"})(at)[0];
    Tensor found = function({x}, softmax(x * 0.1F))(at)[0];
    for (size_t k = 0; k < 37; ++k) {
        EXPECT_FLOAT_EQ(found.to_vector<float>()[k], expected.to_vector<float>()[k]);
    }
}

}  // namespace
}  // namespace ember
