// ember.load_llm: a model, its tokenizer and one sequence, by the same functions as `ember run` (src/model). The loop
// over tokens is in Python (python/ember/llm.py), so that a signal ends it between two of them; each step lets go of
// the GIL.
#define PY_ARRAY_UNIQUE_SYMBOL ember_numpy
#define NO_IMPORT_ARRAY
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <numpy/arrayobject.h>

#include <algorithm>
#include <mutex>

#include "binding.h"
#include "model/chat.h"
#include "model/gguf.h"
#include "model/llama.h"
#include "model/sampling.h"
#include "model/tokenizer.h"
#include "plan.h"
#include "runtime/thread_pool.h"

namespace ember::python {
namespace {

using Messages = std::vector<std::pair<std::string, std::string>>;

nb::object float_array(std::span<const float> values) {
    npy_intp length = static_cast<npy_intp>(values.size());
    PyObject* array = PyArray_SimpleNew(1, &length, NPY_FLOAT32);
    if (array == nullptr) {
        throw nb::python_error();
    }
    std::copy(values.begin(), values.end(), static_cast<float*>(PyArray_DATA(reinterpret_cast<PyArrayObject*>(array))));
    return nb::steal(array);
}

std::vector<model::ChatMessage> chat_messages(const Messages& messages) {
    std::vector<model::ChatMessage> result;
    for (const auto& [role, content] : messages) {
        result.push_back({role, content});
    }
    return result;
}

/// A model and the sequence that it has seen. Any thread may call; calls take turns.
class Llm {
public:
    static Result<std::shared_ptr<Llm>> load(const std::string& path, int64_t context, int threads) {
        if (context < 0) {
            return error(Code::kInvalidArgument, "context: " + std::to_string(context) + " positions");
        }
        if (threads < 0 || threads > runtime::kMaxThreads) {
            return error(Code::kInvalidArgument, "threads: " + std::to_string(threads) + " is not in 0 to " +
                                                     std::to_string(runtime::kMaxThreads));
        }
        if (threads > 0) {
            runtime::set_thread_count(threads);
        }
        auto llm = std::make_shared<Llm>();
        EMBER_TRY(llm->file_, model::open_gguf(path));
        EMBER_TRY(llm->tokenizer_, model::make_tokenizer(llm->file_));
        EMBER_TRY(model::LlamaConfig config, model::read_llama_config(*llm->file_));
        model::LlamaSession::Options options;
        options.context = context == 0 ? config.context_length : std::min(context, config.context_length);
        EMBER_TRY(llm->session_, model::LlamaSession::make(llm->file_, options));
        return llm;
    }

    std::vector<int32_t> tokenize(const std::string& text, bool special, bool bos) const {
        auto control = special ? model::ControlTokens::kParse : model::ControlTokens::kAsText;
        std::vector<int32_t> ids = unwrap(tokenizer_->encode(text, control));
        if (bos && tokenizer_->adds_bos() && tokenizer_->bos()) {
            ids.insert(ids.begin(), *tokenizer_->bos());
        }
        return ids;
    }

    std::string detokenize(const std::vector<int32_t>& ids, bool special) const {
        auto control = special ? model::ShowControl::kShow : model::ShowControl::kHide;
        return model::to_valid_utf8(unwrap(tokenizer_->decode(ids, control)));
    }

    std::string render(const Messages& messages, bool add_prompt) const {
        auto prompt = add_prompt ? model::GenerationPrompt::kAdd : model::GenerationPrompt::kOmit;
        model::ChatTemplate chat = unwrap(model::read_chat_template(*file_));
        return model::to_valid_utf8(model::render_chat(chat, chat_messages(messages), prompt));
    }

    std::vector<int32_t> chat_tokens(const Messages& messages, bool add_prompt) const {
        auto prompt = add_prompt ? model::GenerationPrompt::kAdd : model::GenerationPrompt::kOmit;
        model::ChatTemplate chat = unwrap(model::read_chat_template(*file_));
        return unwrap(model::encode_chat(*tokenizer_, chat, chat_messages(messages), prompt));
    }

    /// Begins a new sequence; gives its number.
    uint64_t reset() {
        std::lock_guard lock(mutex_);
        session_->reset();
        return ++sequence_;
    }

    /// The logits of the last token of `ids`, appended to sequence number `sequence` (none: the one that there is).
    nb::object evaluate(const std::vector<int32_t>& ids, std::optional<uint64_t> sequence) {
        std::vector<float> logits;
        Status status;
        {
            nb::gil_scoped_release released;
            std::lock_guard lock(mutex_);
            status = append(ids, sequence, &logits);
        }
        if (!status.ok()) {
            raise(status.error());
        }
        return float_array(logits);
    }

    int64_t position() const {
        std::lock_guard lock(mutex_);
        return session_->position();
    }
    int64_t context() const { return session_->context(); }
    nb::dict config() const;
    nb::list origins() const;
    const std::shared_ptr<const model::Tokenizer>& tokenizer() const { return tokenizer_; }

    /// What one step of a generation does: evaluate, choose. Under the lock, without the GIL.
    Result<int32_t> step(const std::vector<int32_t>& ids, uint64_t sequence, model::Sampler& sampler,
                         const std::vector<int32_t>& recent) {
        std::lock_guard lock(mutex_);
        EMBER_CHECKED(check_sequence(sequence));
        EMBER_TRY(std::span<const float> logits, session_->evaluate(ids));
        return sampler.sample(logits, recent);
    }

private:
    Status check_sequence(std::optional<uint64_t> sequence) const {
        if (sequence && *sequence != sequence_) {
            return error(Code::kInvalidArgument, "the model has begun another sequence since");
        }
        return {};
    }

    Status append(const std::vector<int32_t>& ids, std::optional<uint64_t> sequence, std::vector<float>* logits) {
        EMBER_CHECKED(check_sequence(sequence));
        EMBER_TRY(std::span<const float> found, session_->evaluate(ids));
        logits->assign(found.begin(), found.end());
        return {};
    }

    std::shared_ptr<const model::GgufFile> file_;
    std::shared_ptr<const model::Tokenizer> tokenizer_;
    std::unique_ptr<model::LlamaSession> session_;
    mutable std::mutex mutex_;  // of session_ and sequence_; never waited for with the GIL held for longer than a step
    uint64_t sequence_ = 0;
};

nb::dict Llm::config() const {
    const model::LlamaConfig& c = session_->config();
    nb::dict result;
    result["architecture"] = c.architecture;
    result["block_count"] = c.block_count;
    result["context_length"] = c.context_length;
    result["embedding_length"] = c.embedding_length;
    result["feed_forward_length"] = c.feed_forward_length;
    result["head_count"] = c.head_count;
    result["head_count_kv"] = c.head_count_kv;
    result["head_dim"] = c.head_dim;
    result["vocabulary_size"] = c.vocabulary_size;
    result["bos"] = tokenizer_->bos() ? nb::cast(*tokenizer_->bos()) : nb::none();
    result["eos"] = tokenizer_->eos() ? nb::cast(*tokenizer_->eos()) : nb::none();
    return result;
}

nb::list Llm::origins() const {
    nb::list result;
    for (const driver::Origin& origin : session_->origins()) {
        result.append(origin_dict(origin));
    }
    return result;
}

/// A generation under way: what `ember run` does token by token.
class Generation {
public:
    Generation(std::shared_ptr<Llm> llm, std::vector<int32_t> prompt, const model::SamplingOptions& options)
        : llm_(std::move(llm)),
          sampler_(unwrap(model::Sampler::make(options))),
          decoder_(llm_->tokenizer()),
          recent_(prompt),
          pending_(std::move(prompt)),
          sequence_(llm_->reset()) {}

    /// The next token and the text that is complete with it; nothing where the model ends its text.
    std::optional<std::pair<int32_t, std::string>> next() {
        Result<int32_t> token = [&] {
            nb::gil_scoped_release released;
            return llm_->step(pending_, sequence_, sampler_, recent_);
        }();
        int32_t chosen = unwrap(std::move(token));
        pending_.assign(1, chosen);
        recent_.push_back(chosen);
        if (llm_->tokenizer()->ends_generation(chosen)) {
            return std::nullopt;
        }
        return std::pair(chosen, unwrap(decoder_.push(chosen)));
    }

    /// The text that still waits for the rest of a character.
    std::string finish() { return decoder_.finish(); }
    /// Can another token be appended to the sequence?
    bool has_room() const { return llm_->position() < llm_->context(); }

private:
    std::shared_ptr<Llm> llm_;
    model::Sampler sampler_;
    model::StreamDecoder decoder_;
    std::vector<int32_t> recent_;
    std::vector<int32_t> pending_;
    uint64_t sequence_;
};

std::shared_ptr<Generation> make_generation(std::shared_ptr<Llm> llm, std::vector<int32_t> prompt, float temperature,
                                            int32_t top_k, float top_p, float min_p, float repetition_penalty,
                                            uint64_t seed) {
    model::SamplingOptions options{temperature, top_k, top_p, min_p, repetition_penalty, seed};
    return std::make_shared<Generation>(std::move(llm), std::move(prompt), options);
}

std::shared_ptr<Llm> load(const std::string& path, int64_t context, int threads) {
    auto made = [&] {
        nb::gil_scoped_release released;
        return Llm::load(path, context, threads);
    }();
    return unwrap(std::move(made));
}

}  // namespace

void bind_llm(nb::module_& module) {
    nb::class_<Llm>(module, "Llm", "A language model and one sequence; see ember.llm.")
        .def_static("load", &load, nb::arg("path"), nb::arg("context"), nb::arg("threads"))
        .def("tokenize", &Llm::tokenize, nb::arg("text"), nb::arg("special"), nb::arg("bos"))
        .def("detokenize", &Llm::detokenize, nb::arg("ids"), nb::arg("special"))
        .def("render", &Llm::render, nb::arg("messages"), nb::arg("add_prompt"))
        .def("chat_tokens", &Llm::chat_tokens, nb::arg("messages"), nb::arg("add_prompt"))
        .def("reset", &Llm::reset, nb::call_guard<nb::gil_scoped_release>())
        .def("evaluate", &Llm::evaluate, nb::arg("ids"), nb::arg("sequence").none() = nb::none())
        .def_prop_ro("position", &Llm::position, nb::call_guard<nb::gil_scoped_release>())
        .def_prop_ro("context", &Llm::context)
        .def_prop_ro("config", &Llm::config)
        .def_prop_ro("origins", &Llm::origins);
    nb::class_<Generation>(module, "Generation", "A generation under way.")
        .def("next", &Generation::next)
        .def("finish", &Generation::finish)
        .def("has_room", &Generation::has_room, nb::call_guard<nb::gil_scoped_release>());
    module.def("generation", &make_generation, nb::arg("llm"), nb::arg("prompt"), nb::kw_only(), nb::arg("temperature"),
               nb::arg("top_k"), nb::arg("top_p"), nb::arg("min_p"), nb::arg("repetition_penalty"), nb::arg("seed"));
}

}  // namespace ember::python
