// The graph of a llama block by block, and sessions that run it: see llama.h.
#include "model/llama.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>

#include "ember/ir/builder.h"

namespace ember::model {
namespace {

using ir::Dim;
using ir::DType;
using ir::GraphBuilder;
using ir::Op;
using ir::ParamKind;
using ir::ValueId;

constexpr size_t kPlainTokens = 16;  // of a first call that weights are not packed for
constexpr DType kCacheType = DType::kF16;
constexpr size_t kCacheElementBytes = 2;
constexpr int64_t kPrefillChunk = 512;  // tokens of a prompt that go through the model at once

DType dtype_of_weight(const GgufTensor& tensor) {
    return *ir::dtype_from_name(tensor_type_info(tensor.type).name);
}

runtime::QType qtype_of_weight(const GgufTensor& tensor) {
    std::string_view name = tensor_type_info(tensor.type).name;
    for (int32_t i = 0; i < runtime::kQTypeCount; ++i) {
        if (runtime::kQTypes[i].name == name) {
            return static_cast<runtime::QType>(i);
        }
    }
    return runtime::QType::kF32;
}

class LlamaBuilder {
public:
    LlamaBuilder(const LlamaConfig& config, const LlamaGraphOptions& options)
        : config_(config), options_(options), b_("llama") {}

    LlamaGraph build() {
        Dim t = options_.tokens < 0 ? Dim::symbol("t") : Dim(options_.tokens);
        tokens_ = b_.param({DType::kI32, {t}});
        bool cached = options_.context != 0;
        Dim c = options_.context < 0 ? Dim::symbol("c") : Dim(options_.context);
        if (cached) {
            position_ = b_.param({DType::kI64, {}});
            for (int64_t i = 0; i < 2 * config_.block_count; ++i) {
                Dim heads(config_.head_count_kv);
                caches_.push_back(b_.param({kCacheType, {heads, c, Dim(config_.head_dim)}}, ParamKind::kShared));
            }
        }
        result_.inverse_frequencies = inverse_frequencies();
        frequencies_ = b_.param({DType::kF32, {Dim(config_.rope_dimension_count / 2)}}, ParamKind::kBound);
        result_.weights.push_back(nullptr);
        positions();
        ValueId x = embed();
        for (size_t i = 0; i < config_.layers.size(); ++i) {
            x = block(x, i);
        }
        if (cached) {
            ValueId last = b_.make(Op::k_sub, {length_, number(1)});
            x = b_.make(Op::k_slice, {x, last, number(1)}, {{"axis", int64_t{0}}});
        }
        x = rms_norm(x, config_.output_norm);
        ValueId logits = matmul(x, config_.tied_output ? config_.token_embd : config_.output);
        if (cached) {
            logits = b_.make(Op::k_reshape, {logits, number(config_.vocabulary_size)});
        }
        b_.output(logits);
        for (size_t i = 0; i < caches_.size(); ++i) {
            b_.output(caches_[i], static_cast<uint32_t>(2 + i));
        }
        result_.module.functions.push_back(b_.take());
        return std::move(result_);
    }

private:
    ValueId number(int64_t value) { return b_.constant_int(value); }
    ValueId scalar(double value) { return b_.constant(DType::kF32, value); }
    ValueId add(ValueId x, ValueId y) { return b_.make(Op::k_add, {x, y}); }
    ValueId mul(ValueId x, ValueId y) { return b_.make(Op::k_mul, {x, y}); }
    ValueId sub(ValueId x, ValueId y) { return b_.make(Op::k_sub, {x, y}); }

    std::vector<float> inverse_frequencies() const {
        std::vector<float> table;
        auto dims = static_cast<double>(config_.rope_dimension_count);
        const float* factors =
            config_.rope_freqs == nullptr ? nullptr : reinterpret_cast<const float*>(config_.rope_freqs->data);
        for (int64_t i = 0; i < config_.rope_dimension_count / 2; ++i) {
            double frequency =
                std::pow(static_cast<double>(config_.rope_freq_base), -2.0 * static_cast<double>(i) / dims);
            frequency *= config_.rope_scale;
            table.push_back(static_cast<float>(factors == nullptr ? frequency : frequency / factors[i]));
        }
        return table;
    }

    /// The weight as a bound parameter, in its own dtype or in f32. The same tensor is one parameter.
    ValueId weight(const GgufTensor* tensor) {
        auto& known = result_.weights;
        auto found = std::find(known.begin(), known.end(), tensor);
        if (found != known.end()) {
            return weight_values_[static_cast<size_t>(found - known.begin()) - 1];
        }
        ir::TensorType type{options_.f32_weights ? DType::kF32 : dtype_of_weight(*tensor), {}};
        for (int64_t size : tensor->shape) {
            type.shape.emplace_back(size);
        }
        known.push_back(tensor);
        weight_values_.push_back(b_.param(std::move(type), ParamKind::kBound));
        return weight_values_.back();
    }

    /// As f32, for what is not a matrix to multiply with.
    ValueId f32_weight(const GgufTensor* tensor) { return as_f32(weight(tensor)); }
    ValueId as_f32(ValueId value) {
        return b_.type(value).dtype == DType::kF32 ? value : b_.make(Op::k_cast, {value}, {{"dtype", DType::kF32}});
    }

    /// x · Wᵀ for a weight [out, in].
    ValueId matmul(ValueId x, const GgufTensor* tensor) {
        ValueId w = weight(tensor);
        bool plain = b_.type(w).dtype == DType::kF16 || b_.type(w).dtype == DType::kBF16;
        return b_.make(Op::k_dot_general, {x, plain ? as_f32(w) : w}, {{"contract", std::vector<int64_t>{1, 1}}});
    }

    void positions() {
        length_ = b_.dim_value(tokens_, 0);
        ValueId steps = b_.make(Op::k_iota, {length_}, {{"dtype", DType::kI64}});
        ValueId rows = options_.context == 0 ? steps : add(steps, position_);
        ValueId at = b_.make(Op::k_cast, {rows}, {{"dtype", DType::kF32}});
        int64_t half = config_.rope_dimension_count / 2;
        ValueId angles = mul(b_.make(Op::k_reshape, {at, length_, number(1)}), frequencies_);
        cos_ = b_.make(Op::k_reshape, {b_.make(Op::k_cos, {angles}), length_, number(1), number(half)});
        sin_ = b_.make(Op::k_reshape, {b_.make(Op::k_sin, {angles}), length_, number(1), number(half)});
    }

    ValueId embed() {
        ValueId table = weight(config_.token_embd);
        return as_f32(b_.make(Op::k_gather, {table, tokens_}, {{"axes", std::vector<int64_t>{0}}}));
    }

    ValueId rms_norm(ValueId x, const GgufTensor* gain) {
        ValueId rows = b_.dim_value(x, 0);
        ValueId sum = b_.make(Op::k_reduce_sum, {mul(x, x)}, {{"axes", std::vector<int64_t>{1}}});
        ValueId mean = mul(sum, scalar(1.0 / static_cast<double>(config_.embedding_length)));
        ValueId scale = b_.make(Op::k_rsqrt, {add(mean, scalar(config_.rms_epsilon))});
        return mul(mul(x, b_.make(Op::k_reshape, {scale, rows, number(1)})), f32_weight(gain));
    }

    ValueId project(ValueId x, const GgufTensor* w, const GgufTensor* bias) {
        ValueId y = matmul(x, w);
        return bias == nullptr ? y : add(y, f32_weight(bias));
    }

    /// Rotates adjacent pairs of x [t, heads, head_dim].
    ValueId rope(ValueId x, int64_t heads) {
        int64_t rotated = config_.rope_dimension_count;
        auto part = [&](int64_t start, int64_t size, int64_t step) {
            return b_.make(Op::k_slice, {x, number(start), number(size)}, {{"axis", int64_t{2}}, {"step", step}});
        };
        ValueId even = part(0, rotated / 2, 2);
        ValueId odd = part(1, rotated / 2, 2);
        auto column = [&](ValueId value) {
            return b_.make(Op::k_reshape, {value, length_, number(heads), number(rotated / 2), number(1)});
        };
        ValueId turned_even = column(sub(mul(even, cos_), mul(odd, sin_)));
        ValueId turned_odd = column(add(mul(even, sin_), mul(odd, cos_)));
        ValueId pairs = b_.make(Op::k_concat, {turned_even, turned_odd}, {{"axis", int64_t{3}}});
        ValueId turned = b_.make(Op::k_reshape, {pairs, length_, number(heads), number(rotated)});
        if (rotated == config_.head_dim) {
            return turned;
        }
        return b_.make(Op::k_concat, {turned, part(rotated, config_.head_dim - rotated, 1)}, {{"axis", int64_t{2}}});
    }

    /// k or v [t, heads, head_dim] with what came before: [heads, positions, head_dim].
    ValueId remember(ValueId rows, size_t cache) {
        ValueId turned = b_.make(Op::k_transpose, {rows}, {{"perm", std::vector<int64_t>{1, 0, 2}}});
        if (options_.context == 0) {
            return turned;
        }
        ValueId stored = b_.make(Op::k_cast, {turned}, {{"dtype", kCacheType}});
        caches_[cache] = b_.make(Op::k_update_slice, {caches_[cache], stored, number(0), position_, number(0)});
        return caches_[cache];
    }

    ValueId attention(ValueId x, size_t i) {
        const LlamaLayer& layer = config_.layers[i];
        int64_t heads = config_.head_count;
        int64_t kv = config_.head_count_kv;
        int64_t dim = config_.head_dim;
        ValueId h = rms_norm(x, layer.attn_norm);
        auto split = [&](ValueId value, int64_t n) {
            return b_.make(Op::k_reshape, {value, length_, number(n), number(dim)});
        };
        ValueId q = rope(split(project(h, layer.attn_q, layer.attn_q_bias), heads), heads);
        ValueId k = rope(split(project(h, layer.attn_k, layer.attn_k_bias), kv), kv);
        ValueId v = split(project(h, layer.attn_v, layer.attn_v_bias), kv);
        ValueId keys = remember(k, 2 * i);
        ValueId values = remember(v, 2 * i + 1);
        ValueId first = options_.context == 0 ? number(0) : position_;
        ValueId scaled = mul(q, scalar(1.0 / std::sqrt(static_cast<double>(dim))));
        ValueId mixed = b_.make(Op::k_attention, {scaled, keys, values, first});
        return matmul(b_.make(Op::k_reshape, {mixed, length_, number(heads * dim)}), layer.attn_output);
    }

    ValueId block(ValueId x, size_t i) {
        const LlamaLayer& layer = config_.layers[i];
        x = add(x, attention(x, i));
        ValueId h = rms_norm(x, layer.ffn_norm);
        ValueId gate = matmul(h, layer.ffn_gate);
        ValueId active = mul(mul(gate, b_.make(Op::k_sigmoid, {gate})), matmul(h, layer.ffn_up));
        return add(x, matmul(active, layer.ffn_down));
    }

    const LlamaConfig& config_;
    const LlamaGraphOptions& options_;
    GraphBuilder b_;
    LlamaGraph result_;
    std::vector<ValueId> weight_values_;
    std::vector<ValueId> caches_;
    ValueId tokens_ = ir::kNone;
    ValueId position_ = ir::kNone;
    ValueId frequencies_ = ir::kNone;
    ValueId length_ = ir::kNone;
    ValueId cos_ = ir::kNone;
    ValueId sin_ = ir::kNone;
};

}  // namespace

LlamaGraph make_llama_graph(const LlamaConfig& config, const LlamaGraphOptions& options) {
    return LlamaBuilder(config, options).build();
}

/// Caches, logits, and the argument lists of a call.
struct LlamaSession::Memory {
    struct Room {
        void* data = nullptr;
        size_t bytes = 0;
        ~Room() {
            if (data != nullptr) {
                munmap(data, bytes);
            }
        }
    };
    // Anonymous mappings: pages of positions that are never reached take no memory.
    std::vector<std::unique_ptr<Room>> caches;
    std::vector<float> logits;
    int64_t position = 0;
    std::vector<std::vector<int64_t>> shapes;
    std::vector<EmberTensor> tensors;
    std::vector<const EmberTensor*> inputs;
    std::vector<std::vector<int64_t>> output_shapes;
    std::vector<EmberTensor> results;
    std::vector<EmberTensor*> outputs;
};

// Long because it lays out every argument of a call once.
Result<std::unique_ptr<LlamaSession>> LlamaSession::make(std::shared_ptr<const GgufFile> file, const Options& options) {
    std::unique_ptr<LlamaSession> s(new LlamaSession);
    EMBER_TRY(s->config_, read_llama_config(*file));
    s->file_ = std::move(file);
    const LlamaConfig& config = s->config_;
    s->pack_after_first_call_ = options.pack_after_first_call;
    s->context_ = options.context == 0 ? config.context_length : options.context;
    if (s->context_ < 1 || s->context_ > config.context_length) {
        return error(Code::kInvalidArgument, "a context of " + std::to_string(s->context_) +
                                                 " positions; the model has " + std::to_string(config.context_length));
    }
    // Two functions, made at once: a miss compiles each on a thread of its own.
    auto decode = std::async(std::launch::async, [&config, &options] {
        return driver::compile_or_load(make_llama_graph(config, {1, -1, false}).module, options.driver);
    });
    LlamaGraph prefill = make_llama_graph(config, {-1, -1, false});
    s->weights_ = prefill.weights;
    s->inverse_frequencies_ = std::move(prefill.inverse_frequencies);
    auto prefill_made = driver::compile_or_load(prefill.module, options.driver);
    EMBER_TRY(s->decode_, decode.get());
    EMBER_TRY(s->prefill_, std::move(prefill_made));

    s->memory_ = std::make_shared<Memory>();
    Memory& m = *s->memory_;
    auto cache_count = static_cast<size_t>(2 * config.block_count);
    size_t bytes = static_cast<size_t>(config.head_count_kv * s->context_ * config.head_dim) * kCacheElementBytes;
    for (size_t i = 0; i < cache_count; ++i) {
        auto room = std::make_unique<Memory::Room>();
        void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (data == MAP_FAILED) {
            return error(Code::kOutOfMemory,
                         "no memory for a KV cache of " + std::to_string(s->context_) + " positions");
        }
        room->data = data;
        room->bytes = bytes;
        m.caches.push_back(std::move(room));
    }
    m.logits.resize(static_cast<size_t>(config.vocabulary_size));
    size_t count = 2 + cache_count + s->weights_.size();
    m.shapes.resize(count);
    m.tensors.resize(count);
    m.shapes[0] = {0};
    m.tensors[1] = driver::make_tensor(DType::kI64, m.shapes[1], &m.position);
    for (size_t i = 0; i < cache_count; ++i) {
        m.shapes[2 + i] = {config.head_count_kv, s->context_, config.head_dim};
        m.tensors[2 + i] = driver::make_tensor(kCacheType, m.shapes[2 + i], m.caches[i]->data);
    }
    for (size_t i = 0; i < s->weights_.size(); ++i) {
        const GgufTensor* tensor = s->weights_[i];
        size_t at = 2 + cache_count + i;
        if (tensor == nullptr) {
            m.shapes[at] = {static_cast<int64_t>(s->inverse_frequencies_.size())};
            m.tensors[at] = driver::make_tensor(DType::kF32, m.shapes[at], s->inverse_frequencies_.data());
        } else {
            m.shapes[at] = tensor->shape;
            m.tensors[at] =
                driver::make_tensor(dtype_of_weight(*tensor), m.shapes[at], const_cast<std::byte*>(tensor->data));
        }
    }
    for (const EmberTensor& tensor : m.tensors) {
        m.inputs.push_back(&tensor);
    }
    m.output_shapes.resize(1 + cache_count, std::vector<int64_t>(3));
    m.results.resize(1 + cache_count);
    for (size_t i = 0; i < m.results.size(); ++i) {
        m.results[i] = driver::make_tensor(i == 0 ? DType::kF32 : kCacheType, m.output_shapes[i], nullptr);
        m.outputs.push_back(&m.results[i]);
        bool in_place = i == 0 || (s->prefill_->in_place(i) >= 0 && s->decode_->in_place(i) >= 0);
        check(in_place, "caches are updated in place");
    }
    return s;
}

/// Every matrix that products read; an embedding's rows are still looked up in the file.
Status LlamaSession::pack_weights_if_worthwhile(size_t tokens) {
    if (packed_ != nullptr) {
        return {};
    }
    if (pack_after_first_call_ && tokens <= kPlainTokens) {
        pack_after_first_call_ = false;
        return {};
    }
    std::vector<runtime::PlainWeights> plain;
    std::vector<const GgufTensor*> tensors;
    for (const GgufTensor* tensor : weights_) {
        bool is_table = tensor == config_.token_embd && !config_.tied_output;
        if (tensor == nullptr || tensor->shape.size() != 2 || is_table) {
            continue;
        }
        if (auto type = qtype_of_weight(*tensor); runtime::can_pack(type)) {
            plain.push_back({type, tensor->shape[0], tensor->shape[1], tensor->data});
            tensors.push_back(tensor);
        }
    }
    packed_ = runtime::PackedWeights::make(plain, [&](size_t i) { file_->release(*tensors[i]); });
    return packed_ == nullptr ? error(Code::kOutOfMemory, "no memory for packed weights") : Status();
}

Status LlamaSession::call(const driver::Executable& function, std::span<const int32_t> tokens) {
    Memory& m = *memory_;
    m.shapes[0] = {static_cast<int64_t>(tokens.size())};
    m.position = position_;
    m.tensors[0] = driver::make_tensor(DType::kI32, m.shapes[0], const_cast<int32_t*>(tokens.data()));
    auto allocate = [](void* host, int32_t, int64_t) -> void* { return static_cast<Memory*>(host)->logits.data(); };
    EMBER_CHECKED(function.call(m.inputs.data(), m.outputs.data(), allocate, &m));
    position_ += static_cast<int64_t>(tokens.size());
    return {};
}

Result<std::span<const float>> LlamaSession::evaluate(std::span<const int32_t> tokens) {
    if (tokens.empty()) {
        return error(Code::kInvalidArgument, "no tokens to evaluate");
    }
    for (int32_t token : tokens) {
        if (token < 0 || token >= config_.vocabulary_size) {
            return error(Code::kInvalidArgument, "token " + std::to_string(token) + " is not in the vocabulary of " +
                                                     std::to_string(config_.vocabulary_size));
        }
    }
    if (position_ + static_cast<int64_t>(tokens.size()) > context_) {
        return error(Code::kInvalidArgument, std::to_string(position_ + static_cast<int64_t>(tokens.size())) +
                                                 " tokens do not fit the context of " + std::to_string(context_));
    }
    EMBER_CHECKED(pack_weights_if_worthwhile(tokens.size()));
    while (!tokens.empty()) {
        size_t step = std::min(tokens.size(), static_cast<size_t>(kPrefillChunk));
        EMBER_CHECKED(call(step == 1 ? *decode_ : *prefill_, tokens.first(step)));
        tokens = tokens.subspan(step);
    }
    return std::span<const float>(memory_->logits);
}

std::vector<driver::Origin> LlamaSession::origins() const {
    return {prefill_->origin(), decode_->origin()};
}

int64_t LlamaSession::cache_bytes() const {
    return 2 * config_.block_count * config_.head_count_kv * context_ * config_.head_dim *
           static_cast<int64_t>(kCacheElementBytes);
}

}  // namespace ember::model
