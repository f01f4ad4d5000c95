// `ember bench compile`, `ember bench call`, `ember bench speed`: figures for comparisons with peers, as one JSON line.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/ember/commands.h"
#include "ember/driver/driver.h"
#include "model/dequantize.h"
#include "model/llama.h"
#include "runtime/thread_pool.h"

namespace ember::cli {
namespace {

struct BenchOptions {
    std::string path;
    std::string dtype = "f32";
    int64_t layers = 0;
    int64_t tokens = 8;
    int threads = 0;
    bool json = false;
};

Result<model::LlamaConfig> config_with_layers(const model::GgufFile& file, int64_t layers) {
    EMBER_TRY(model::LlamaConfig config, model::read_llama_config(file));
    if (layers > 0) {  // more than the file has: its layers again
        std::vector<model::LlamaLayer> own = config.layers;
        config.layers.clear();
        for (int64_t i = 0; i < layers; ++i) {
            config.layers.push_back(own[static_cast<size_t>(i) % own.size()]);
        }
        config.block_count = layers;
    }
    return config;
}

/// An empty cache of its own, gone afterwards.
class ColdCache {
public:
    ColdCache() {
        path_ = (std::filesystem::temp_directory_path() / "ember-bench-XXXXXX").string();
        made_ = mkdtemp(path_.data()) != nullptr;
        CacheOptions options;
        options.dir = path_;
        cache_ = Cache::open(options);
    }
    ~ColdCache() {
        std::error_code ignored;
        if (made_) {
            std::filesystem::remove_all(path_, ignored);
        }
    }
    std::shared_ptr<Cache> cache() const { return cache_; }

private:
    std::string path_;
    bool made_ = false;
    std::shared_ptr<Cache> cache_;
};

Status bench_compile(const BenchOptions& o) {
    EMBER_TRY(auto file, model::open_gguf(o.path));
    EMBER_TRY(model::LlamaConfig config, config_with_layers(*file, o.layers));
    ColdCache cold;
    driver::Options options;
    options.cache = cold.cache();
    std::vector<model::LlamaGraphOptions> graphs;
    if (o.dtype == "f32") {
        graphs.push_back({-1, 0, true});
    } else {
        graphs.push_back({-1, -1, false});
        graphs.push_back({1, -1, false});
    }
    int modules = 0;
    int kernels = 0;
    int64_t bytes = 0;
    auto start = std::chrono::steady_clock::now();
    for (const model::LlamaGraphOptions& graph : graphs) {
        EMBER_TRY(auto made, driver::compile_or_load(model::make_llama_graph(config, graph).module, options));
        modules += made->origin().llvm_modules;
        kernels += made->origin().kernels;
        bytes += made->origin().artifact_bytes;
    }
    std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    nlohmann::ordered_json line{{"layers", config.block_count}, {"dtype", o.dtype},   {"compile_s", spent.count()},
                                {"llvm_modules", modules},      {"kernels", kernels}, {"artifact_bytes", bytes},
                                {"functions", graphs.size()}};
    std::printf("%s\n", line.dump().c_str());
    return {};
}

struct Held {
    std::vector<std::vector<float>> weights;
    std::vector<std::vector<int64_t>> shapes;
    std::vector<EmberTensor> tensors;
};

void add_tensor(Held& held, ir::DType dtype, void* data, std::vector<int64_t> shape) {
    held.shapes.push_back(std::move(shape));
    held.tensors.push_back(driver::make_tensor(dtype, held.shapes.back(), data));
}

// Long because it prepares, runs and prints one measurement.
Status bench_call(const BenchOptions& o) {
    if (o.threads > 0) {
        runtime::set_thread_count(o.threads);
    }
    EMBER_TRY(auto file, model::open_gguf(o.path));
    EMBER_TRY(model::LlamaConfig config, config_with_layers(*file, o.layers));
    if (o.dtype != "f32") {
        return error(Code::kInvalidArgument, "bench call runs the f32 graph; see run --json for the model's own types");
    }
    model::LlamaGraph graph = model::make_llama_graph(config, {-1, 0, true});
    EMBER_TRY(auto made, driver::compile_or_load(graph.module));
    std::vector<int32_t> ids{1, 9690, 198, 2683, 359, 253, 5356, 5646};
    for (int32_t& id : ids) {
        id %= static_cast<int32_t>(config.vocabulary_size);
    }
    ids.resize(static_cast<size_t>(o.tokens), 1);
    Held held;
    add_tensor(held, ir::DType::kI32, ids.data(), {o.tokens});
    for (const model::GgufTensor* tensor : graph.weights) {
        if (tensor == nullptr) {
            held.weights.push_back(graph.inverse_frequencies);
            add_tensor(held, ir::DType::kF32, held.weights.back().data(),
                       {static_cast<int64_t>(held.weights.back().size())});
            continue;
        }
        held.weights.push_back(model::dequantize(*tensor));
        add_tensor(held, ir::DType::kF32, held.weights.back().data(), tensor->shape);
    }
    std::vector<const EmberTensor*> inputs;
    for (const EmberTensor& tensor : held.tensors) {
        inputs.push_back(&tensor);
    }
    EMBER_CHECKED(made->check_inputs(inputs.data()));
    std::vector<float> logits;
    std::vector<int64_t> shape(2);
    EmberTensor output{};
    output.ndim = 2;
    output.shape = shape.data();
    EmberTensor* outputs[] = {&output};
    auto allocate = [](void* host, int32_t, int64_t bytes) -> void* {
        auto& room = *static_cast<std::vector<float>*>(host);
        room.resize(static_cast<size_t>(bytes) / sizeof(float));
        return room.data();
    };
    std::vector<double> times;
    for (int round = 0; round < 12; ++round) {
        auto start = std::chrono::steady_clock::now();
        EMBER_CHECKED(made->call(inputs.data(), outputs, allocate, &logits));
        times.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    const float* last = logits.data() + (shape[0] - 1) * shape[1];
    auto argmax = std::max_element(last, last + shape[1]) - last;
    double first = times.front();
    std::sort(times.begin(), times.end());
    nlohmann::ordered_json line{{"dtype", o.dtype},
                                {"tokens", o.tokens},
                                {"layers", config.block_count},
                                {"first_call_s", first},
                                {"call_s", times.front()},
                                {"median_call_s", times[times.size() / 2]},
                                {"argmax", argmax},
                                {"status", outcome_name(made->origin().status)}};
    std::printf("%s\n", line.dump().c_str());
    return {};
}

double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

/// Tokens a second of prompts of some lengths, and of single tokens behind contexts of some lengths.
Status bench_speed(const BenchOptions& o) {
    if (o.threads > 0) {
        runtime::set_thread_count(o.threads);
    }
    EMBER_TRY(auto file, model::open_gguf(o.path));
    EMBER_TRY(auto session, model::LlamaSession::make(file, {}));
    std::vector<int32_t> ids(static_cast<size_t>(session->context()));
    for (size_t i = 0; i < ids.size(); ++i) {
        ids[i] =
            static_cast<int32_t>((1000 + i * 7919 % 40000) % static_cast<size_t>(session->config().vocabulary_size));
    }
    std::span<const int32_t> all(ids);
    nlohmann::ordered_json line{{"threads", runtime::thread_count()}};
    EMBER_CHECKED(session->evaluate(all.first(std::min<size_t>(64, all.size()))));
    for (int64_t tokens : {32, 128, 512}) {
        if (tokens > session->context()) {
            continue;
        }
        std::vector<double> times;
        for (int round = 0; round < 4; ++round) {
            session->reset();
            auto start = std::chrono::steady_clock::now();
            EMBER_CHECKED(session->evaluate(all.first(static_cast<size_t>(tokens))));
            times.push_back(seconds_since(start));
        }
        line["prefill_" + std::to_string(tokens)] = static_cast<double>(tokens) / median(times);
    }
    constexpr int64_t kSteps = 64;
    for (int64_t context : {32, 512, 1900}) {
        if (context + kSteps > session->context()) {
            continue;
        }
        session->reset();
        EMBER_CHECKED(session->evaluate(all.first(static_cast<size_t>(context))));
        std::vector<double> times;
        for (size_t i = 0; i < kSteps; ++i) {
            auto start = std::chrono::steady_clock::now();
            EMBER_CHECKED(session->evaluate(all.subspan(i, 1)));
            times.push_back(seconds_since(start));
        }
        line["decode_" + std::to_string(context)] = 1 / median(times);
        line["decode_best_" + std::to_string(context)] = 1 / *std::min_element(times.begin(), times.end());
    }
    std::printf("%s\n", line.dump().c_str());
    return {};
}

}  // namespace

void add_bench(CLI::App& app, Command& chosen) {
    auto o = std::make_shared<BenchOptions>();
    CLI::App* verb = app.add_subcommand("bench", "Measure compiling and calling");
    verb->require_subcommand(1);
    auto add = [&](const char* name, const char* help, Status (*run)(const BenchOptions&)) {
        CLI::App* sub = verb->add_subcommand(name, help);
        sub->add_option("model", o->path, "GGUF file")->required();
        sub->add_option("--layers", o->layers, "Layers; 0: the model's")->check(CLI::NonNegativeNumber);
        sub->add_option("--dtype", o->dtype, "f32: dequantised weights, no cache; native: the model's own functions")
            ->check(CLI::IsMember({"f32", "native"}));
        sub->add_option("--tokens", o->tokens, "Tokens a call")->check(CLI::PositiveNumber);
        sub->add_option("--threads", o->threads, "0: one for each CPU")->check(CLI::NonNegativeNumber);
        sub->add_flag("--json", o->json, "As JSON (always on)");
        sub->callback([o, run, &chosen] {
            chosen = [o, run] {
                Status status = run(*o);
                return status.ok() ? 0 : fail(status.error());
            };
        });
    };
    add("compile", "Compile the model's graph from an empty cache", bench_compile);
    add("call", "Call the model's graph", bench_call);
    add("speed", "Tokens a second of prompts and of generation, in the model's own types", bench_speed);
}

}  // namespace ember::cli
