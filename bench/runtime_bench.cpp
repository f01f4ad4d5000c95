// Speed of the runtime's kernels: the matrices of SmolLM2-135M (30 layers and the head, weights distinct as in the
// model) for a number of tokens, single products, and the cost of handing work to the pool. The last argument of each
// is the thread count. JSON: --benchmark_format=json.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <vector>

#include "runtime/gemm.h"
#include "runtime/half.h"
#include "runtime/quantized.h"
#include "runtime/thread_pool.h"

namespace ember::runtime {
namespace {

struct Shape {
    int64_t n, k;
};
constexpr int kLayers = 30;
constexpr Shape kLayer[] = {{576, 576}, {192, 576}, {192, 576}, {576, 576}, {1536, 576}, {1536, 576}, {576, 1536}};
constexpr Shape kHead = {49152, 576};
constexpr int64_t kWidest = 49152;
constexpr int64_t kLongest = 1536;

/// Weights of any type: small numbers in the f16 places, noise elsewhere.
std::vector<uint8_t> random_weights(QType type, Shape shape) {
    std::mt19937 generator(1);
    std::vector<uint8_t> bytes(static_cast<size_t>(shape.n * row_bytes(type, shape.k)));
    if (type == QType::kF32) {
        for (size_t i = 0; i < bytes.size(); i += sizeof(float)) {
            const float value = static_cast<float>(generator() % 1000) * 1e-4F;
            std::memcpy(&bytes[i], &value, sizeof value);
        }
        return bytes;
    }
    for (uint8_t& byte : bytes) {
        byte = static_cast<uint8_t>(generator());
    }
    const auto block = static_cast<size_t>(qtype_info(type).bytes);
    const uint16_t scale = f32_to_f16(0.01F);
    for (size_t i = 0; i + block <= bytes.size(); i += block) {
        std::memcpy(&bytes[i + (type == QType::kQ6_K ? 208 : 0)], &scale, sizeof scale);
        if (type == QType::kQ4_1) {
            std::memcpy(&bytes[i + 2], &scale, sizeof scale);
        }
    }
    return bytes;
}

struct Model {
    Model(QType layers, QType head) : layer_type(layers), head_type(head) {
        for (int layer = 0; layer < kLayers; ++layer) {
            for (Shape shape : kLayer) {
                matrices.push_back(random_weights(layers, shape));
            }
        }
        matrices.push_back(random_weights(head, kHead));
    }
    QType layer_type, head_type;
    std::vector<std::vector<uint8_t>> matrices;
};

/// All layers for `tokens` tokens, and the head for `head_tokens` of them.
void run_model(const Model& model, int64_t tokens, int64_t head_tokens, const float* x, float* y) {
    size_t matrix = 0;
    for (int layer = 0; layer < kLayers; ++layer) {
        for (Shape shape : kLayer) {
            qmatmul(model.layer_type, tokens, shape.n, shape.k, x, shape.k, model.matrices[matrix++].data(), y,
                    shape.n);
        }
    }
    qmatmul(model.head_type, head_tokens, kHead.n, kHead.k, x, kHead.k, model.matrices[matrix].data(), y, kHead.n);
}

void model_matrices(benchmark::State& state, QType layers, QType head, bool head_for_all) {
    const Model model(layers, head);
    const int64_t tokens = state.range(0);
    const int64_t head_tokens = head_for_all ? tokens : 1;
    set_thread_count(static_cast<int>(state.range(1)));
    std::vector<float> x(static_cast<size_t>(tokens * kLongest), 0.5F);
    std::vector<float> y(static_cast<size_t>(std::max(tokens * kLongest, head_tokens * kWidest)));
    for (auto _ : state) {
        run_model(model, tokens, head_tokens, x.data(), y.data());
        benchmark::ClobberMemory();
    }
    state.counters["tokens_per_s"] =
        benchmark::Counter(static_cast<double>(tokens * state.iterations()), benchmark::Counter::kIsRate);
    set_thread_count(0);
}

void model_q4_1(benchmark::State& state) {
    model_matrices(state, QType::kQ4_1, QType::kQ8_0, false);
}

void model_q8_0(benchmark::State& state) {
    model_matrices(state, QType::kQ8_0, QType::kQ8_0, false);
}
void model_f32(benchmark::State& state) {
    model_matrices(state, QType::kF32, QType::kF32, true);
}
BENCHMARK(model_q4_1)->ArgsProduct({{1, 2, 4, 8, 30, 128, 512}, {1, 2}})->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(model_q8_0)->ArgsProduct({{1, 30}, {1, 2}})->UseRealTime()->Unit(benchmark::kMillisecond);
BENCHMARK(model_f32)->ArgsProduct({{1, 8, 30}, {1, 2}})->UseRealTime()->Unit(benchmark::kMillisecond);

void one_matrix(benchmark::State& state) {
    const auto type = static_cast<QType>(state.range(0));
    const Shape shape = {1536, 768};
    const std::vector<uint8_t> weights = random_weights(type, shape);
    const int64_t tokens = state.range(1);
    set_thread_count(1);
    std::vector<float> x(static_cast<size_t>(tokens * shape.k), 0.5F), y(static_cast<size_t>(tokens * shape.n));
    for (auto _ : state) {
        qmatmul(type, tokens, shape.n, shape.k, x.data(), shape.k, weights.data(), y.data(), shape.n);
        benchmark::ClobberMemory();
    }
    state.SetLabel(qtype_info(type).name);
    state.counters["multiplications_per_s"] = benchmark::Counter(
        static_cast<double>(tokens * shape.n * shape.k * state.iterations()), benchmark::Counter::kIsRate);
    set_thread_count(0);
}
BENCHMARK(one_matrix)->ArgsProduct({benchmark::CreateDenseRange(0, kQTypeCount - 1, 1), {1, 4, 30}});

template <class T>
void gemm(benchmark::State& state) {
    const int64_t m = state.range(0), n = state.range(1), k = state.range(2);
    const bool transposed = state.range(3) != 0;
    set_thread_count(static_cast<int>(state.range(4)));
    std::vector<T> a(static_cast<size_t>(m * k), T(0.5)), b(static_cast<size_t>(k * n), T(0.25)),
        c(static_cast<size_t>(m * n));
    GemmArgs args;
    args.m = m, args.n = n, args.k = k;
    args.a_m = k, args.a_k = 1;
    args.b_k = transposed ? 1 : n, args.b_n = transposed ? k : 1;
    args.c_m = n, args.c_n = 1;
    args.a = a.data(), args.b = b.data(), args.c = c.data();
    for (auto _ : state) {
        sizeof(T) == sizeof(float) ? gemm_f32(args) : gemm_f64(args);
        benchmark::ClobberMemory();
    }
    state.counters["multiplications_per_s"] =
        benchmark::Counter(static_cast<double>(m * n * k * state.iterations()), benchmark::Counter::kIsRate);
    set_thread_count(0);
}

// m, n, k, whether B is stored transposed, threads.
void gemm_shapes(benchmark::internal::Benchmark* bench) {
    for (const auto& [m, n, k, transposed] : {std::array<int64_t, 4>{1000, 1000, 1000, 0},
                                              {1000, 1000, 1000, 1},
                                              {2000, 2000, 2000, 0},
                                              {512, 512, 512, 0},
                                              {256, 256, 256, 0},
                                              {64, 64, 64, 0},
                                              {64, 64, 64, 1},
                                              {16, 16, 16, 0},
                                              {4, 4, 4, 0},
                                              {32, 1536, 576, 1},
                                              {128, 1536, 576, 1},
                                              {8, 1536, 576, 1},
                                              {8, 1536, 576, 0},
                                              {1, 4096, 4096, 1},
                                              {1, 4096, 4096, 0},
                                              {4096, 1, 4096, 0},
                                              {100000, 8, 64, 0},
                                              {8, 8, 100000, 0},
                                              {1, 1, 1000000, 0}}) {
        bench->Args({m, n, k, transposed, 1})->Args({m, n, k, transposed, 2});
    }
    bench->UseRealTime();
}
BENCHMARK(gemm<float>)->Apply(gemm_shapes);
BENCHMARK(gemm<double>)->Apply(gemm_shapes);

void hand_over(benchmark::State& state) {
    set_thread_count(static_cast<int>(state.range(0)));
    for (auto _ : state) {
        parallel_for([](void*, int64_t, int64_t) {}, nullptr, 2, 1);
    }
    set_thread_count(0);
}
BENCHMARK(hand_over)->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace ember::runtime

BENCHMARK_MAIN();
