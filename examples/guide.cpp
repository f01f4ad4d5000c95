// The examples of docs/cpp-api.md, each a function; test/python/test_cpp_guide.py compares the two. Ends with status 1
// where one does not do what the guide says.
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "ember/ember.h"

using namespace ember;

namespace {

int failures = 0;

void expect(bool holds) {
    failures += holds ? 0 : 1;
}

void first_function() {
    Variable x = input({DType::kF32, {"n", 3}}, "x");  // any number of rows
    SharedVariable w = shared(Tensor::from<float>({1, 2, 3}), "w");
    Function f = function({x}, dot(x, w));

    Tensor rows = Tensor::from<float>({1, 0, 0, 0, 1, 1}, {2, 3});
    expect(f(rows)[0].to_vector<float>() == std::vector<float>{1, 5});
    w.set(Tensor::from<float>({10, 20, 30}));  // nothing is compiled again
    expect(f(rows)[0].to_vector<float>() == std::vector<float>{10, 50});
    expect(f.cache_status() == "miss" || f.cache_status() == "hit");
}

void ops() {
    Variable x = input({DType::kF32, {"n", "m"}}, "x");
    Variable centred = x - mean(x, 0, KeepAxes::kYes);
    Variable last_two = slice(x, 1, Range{.start = -2});    // x[:, -2:]
    Variable every_second = slice(x, 1, Range{.step = 2});  // x[:, ::2]
    Variable first_row = at(x, 0);                          // x[0]
    Variable picked = gather(x, constant(Tensor::from<int64_t>({-1, 0})));
    Variable positive = select(x > 0, x, 0);
    Function f = function({x}, {centred, last_two, every_second, first_row, picked, positive, argmax(x, 1)});

    std::vector<Tensor> made = f(Tensor::from<float>({1, 2, 3, -4, -5, -6}, {2, 3}));
    expect(made[1].to_vector<float>() == std::vector<float>{2, 3, -5, -6});
    expect(made[2].to_vector<float>() == std::vector<float>{1, 3, -4, -6});
    expect(made[4].to_vector<float>() == std::vector<float>{-4, -5, -6, 1, 2, 3});
    expect(made[6].to_vector<int64_t>() == std::vector<int64_t>{2, 0});
}

void gradient_step() {
    Variable x = input({DType::kF64, {"n"}}, "x");
    SharedVariable w = shared(Tensor::scalar(3.0), "w");
    Variable loss = mean(square(w * x));
    Function step = function({x}, loss, {{w, w - 0.1 * grad(loss, w)}});

    expect(step(Tensor::from<double>({1, -1}))[0].item<double>() == 9);
    expect(std::abs(w.get().item<double>() - 2.4) < 1e-12);
}

void control() {
    Variable n = input({DType::kI64}, "n");
    LoopResult powers = loop(n, {constant(1.0)}, [](const Variable& round, const std::vector<Variable>& carried) {
        Variable next = carried[0] * cast(round + 1, DType::kF64);
        return LoopStep{.carried = {next}, .stacked = {next}};
    });
    Variable result = if_(
        n > 3, [&] { return std::vector<Variable>{powers.carried[0]}; },
        [&] { return std::vector<Variable>{constant(-1.0)}; })[0];
    Function f = function({n}, {result, powers.stacked[0]});

    expect(f(Tensor::scalar(int64_t{4}))[0].item<double>() == 24);
    expect(f(Tensor::scalar(int64_t{3}))[0].item<double>() == -1);
    expect(f(Tensor::scalar(int64_t{3}))[1].to_vector<double>() == std::vector<double>{1, 2, 6});
}

void errors() {
    Variable x = input({DType::kF32, {"n", 4}}, "x");
    try {
        x + input({DType::kF64, {4}}, "y");
        expect(false);
    } catch (const Error& error) {
        expect(error.code() == ErrorCode::kType);
        expect(std::string(error.what()).find("f32[n,4]") != std::string::npos);
    }
}

void borrowed() {
    auto mine = std::make_shared<std::vector<float>>(std::vector<float>{1, 4, 9});
    Tensor seen = Tensor::borrow(mine->data(), DType::kF32, {3}, mine);
    Variable x = input({DType::kF32, {3}}, "x");
    expect(function({x}, sqrt(x))(seen)[0].to_vector<float>() == std::vector<float>{1, 2, 3});
    Tensor back = Tensor::from_dlpack(seen.to_dlpack());
    expect(back.data() == mine->data());
}

void save_and_load() {
    Variable x = input({DType::kF32, {2}}, "x");
    Function f = function({x}, x * shared(Tensor::from<float>({2, 3})));
    std::string path = (std::filesystem::temp_directory_path() / "ember-guide.ember").string();
    f.save(path);
    Function g = load_function(path, f.state());
    expect(g.key() == f.key());
    expect(g(Tensor::from<float>({1, 1}))[0].to_vector<float>() == std::vector<float>{2, 3});
    std::filesystem::remove(path);
}

}  // namespace

int main() {
    try {
        first_function();
        ops();
        gradient_step();
        control();
        errors();
        borrowed();
        save_and_load();
    } catch (const Error& error) {
        std::fprintf(stderr, "guide: %s\n", error.what());
        return 1;
    }
    std::printf("%d of the guide's statements do not hold\n", failures);
    return failures == 0 ? 0 : 1;
}
