// `ember run` and `ember tokenize`.
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/ember/commands.h"
#include "ember/support/npy.h"
#include "model/chat.h"
#include "model/gguf.h"
#include "model/llama.h"
#include "model/sampling.h"
#include "model/tokenizer.h"
#include "runtime/thread_pool.h"

namespace ember::cli {
namespace {

using Json = nlohmann::ordered_json;

struct RunOptions {
    std::string path;
    std::string prompt;
    std::string prompt_tokens;
    std::string system;
    std::string logits;
    bool has_prompt = false;
    bool chat = false;
    bool special = false;
    bool json = false;
    int64_t max_tokens = 128;
    int64_t context = 0;
    int threads = 0;
    model::SamplingOptions sampling;
};

volatile std::sig_atomic_t interrupted = 0;

Result<std::vector<int32_t>> parse_ids(const std::string& text) {
    std::vector<int32_t> ids;
    for (size_t at = 0; at < text.size();) {
        size_t comma = std::min(text.find(',', at), text.size());
        std::string one = text.substr(at, comma - at);
        char* end = nullptr;
        long id = std::strtol(one.c_str(), &end, 10);
        if (one.empty() || *end != 0 || id < INT32_MIN || id > INT32_MAX) {
            return error(Code::kInvalidArgument, "--prompt-tokens: '" + one + "' is no token id");
        }
        ids.push_back(static_cast<int32_t>(id));
        at = comma + 1;
    }
    if (ids.empty()) {
        return error(Code::kInvalidArgument, "--prompt-tokens: no token ids");
    }
    return ids;
}

class Run {
public:
    explicit Run(RunOptions options) : o_(std::move(options)) {}

    Status start() {
        if (o_.threads > 0) {
            runtime::set_thread_count(o_.threads);
        }
        EMBER_TRY(file_, model::open_gguf(o_.path));
        EMBER_TRY(tokenizer_, model::make_tokenizer(file_));
        EMBER_TRY(model::Sampler sampler, model::Sampler::make(o_.sampling));
        sampler_ = std::make_unique<model::Sampler>(std::move(sampler));
        if (o_.chat) {
            EMBER_TRY(template_, model::read_chat_template(*file_));
        }
        return {};
    }

    Result<std::vector<int32_t>> prompt_ids() {
        if (!o_.prompt_tokens.empty()) {
            return parse_ids(o_.prompt_tokens);
        }
        if (o_.chat) {
            std::vector<model::ChatMessage> messages;
            if (!o_.system.empty()) {
                messages.push_back({"system", o_.system});
            }
            messages.push_back({"user", o_.prompt});
            return model::encode_chat(*tokenizer_, template_, messages);
        }
        auto control = o_.special ? model::ControlTokens::kParse : model::ControlTokens::kAsText;
        EMBER_TRY(std::vector<int32_t> ids, tokenizer_->encode(o_.prompt, control));
        if (tokenizer_->adds_bos() && tokenizer_->bos()) {
            ids.insert(ids.begin(), *tokenizer_->bos());
        }
        if (ids.empty()) {
            return error(Code::kInvalidArgument, "the prompt is empty");
        }
        return ids;
    }

    Status load(size_t prompt_tokens) {
        model::LlamaSession::Options options;
        int64_t wanted = static_cast<int64_t>(prompt_tokens) + o_.max_tokens;
        EMBER_TRY(model::LlamaConfig config, model::read_llama_config(*file_));
        int64_t limit = o_.context > 0 ? std::min(o_.context, config.context_length) : config.context_length;
        if (static_cast<int64_t>(prompt_tokens) > limit) {
            return error(Code::kInvalidArgument, "the prompt has " + std::to_string(prompt_tokens) +
                                                     " tokens, the context " + std::to_string(limit));
        }
        options.context = std::max<int64_t>(1, std::min(wanted, limit));
        options.pack_after_first_call = true;
        auto begin = process_seconds();
        EMBER_TRY(session_, model::LlamaSession::make(file_, options));
        load_seconds_ = process_seconds() - begin;
        for (const driver::Origin& origin : session_->origins()) {
            compile_seconds_ = std::max(compile_seconds_, origin.compile_seconds);  // they compile side by side
            llvm_modules_ += origin.llvm_modules;
            ++(origin.status == Outcome::kHit ? hits_ : misses_);
        }
        load_seconds_ -= compile_seconds_;
        if (misses_ > 0 && isatty(STDERR_FILENO) != 0) {
            std::fprintf(stderr, "compiled in %.2f s; kept in %s\n", compile_seconds_,
                         driver::default_cache()->config().dir.c_str());
        }
        return {};
    }

    Status generate(const std::vector<int32_t>& prompt) {
        double begin = process_seconds();
        EMBER_TRY(std::span<const float> logits, session_->evaluate(prompt));
        prefill_seconds_ = process_seconds() - begin;
        if (!o_.logits.empty()) {
            EMBER_CHECKED(write_logits(logits));
        }
        model::StreamDecoder decoder(tokenizer_);
        std::vector<int32_t> recent = prompt;
        double decode_begin = process_seconds();
        while (static_cast<int64_t>(tokens_.size()) < o_.max_tokens && interrupted == 0) {
            EMBER_TRY(int32_t token, sampler_->sample(logits, recent));
            if (tokens_.empty()) {
                first_token_seconds_ = process_seconds();
            }
            if (tokenizer_->ends_generation(token)) {
                break;
            }
            tokens_.push_back(token);
            recent.push_back(token);
            EMBER_TRY(std::string piece, decoder.push(token));
            show(piece);
            if (static_cast<int64_t>(tokens_.size()) == o_.max_tokens || session_->position() == session_->context()) {
                break;
            }
            EMBER_TRY(logits, session_->evaluate(std::span<const int32_t>(&token, 1)));
            ++decoded_;
        }
        decode_seconds_ = process_seconds() - decode_begin;
        show(decoder.finish());
        return {};
    }

    void report(size_t prompt_tokens) const {
        if (!o_.json) {
            std::fputs("\n", stdout);
            return;
        }
        auto rate = [](double count, double seconds) { return seconds > 0 ? count / seconds : 0; };
        Json line;
        line["text"] = text_;
        line["tokens"] = tokens_;
        line["prompt_tokens"] = prompt_tokens;
        line["cache"] = {{"hits", hits_}, {"misses", misses_}};
        line["compile_s"] = compile_seconds_;
        line["load_s"] = load_seconds_;
        line["first_token_s"] = first_token_seconds_;
        line["prefill_tokens_per_s"] = rate(static_cast<double>(prompt_tokens), prefill_seconds_);
        line["decode_tokens_per_s"] = rate(static_cast<double>(decoded_), decode_seconds_);
        line["peak_bytes"] = peak_bytes();
        line["llvm_modules"] = llvm_modules_;
        std::fputs((line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n").c_str(), stdout);
    }

private:
    void show(const std::string& piece) {
        text_ += piece;
        if (!o_.json) {
            std::fputs(piece.c_str(), stdout);
            std::fflush(stdout);
        }
    }

    Status write_logits(std::span<const float> logits) const {
        NpyArray array;
        array.shape = {static_cast<int64_t>(logits.size())};
        array.bytes.assign(reinterpret_cast<const char*>(logits.data()), logits.size_bytes());
        return write_npy(o_.logits, array);
    }

    RunOptions o_;
    std::shared_ptr<const model::GgufFile> file_;
    std::shared_ptr<const model::Tokenizer> tokenizer_;
    std::unique_ptr<model::Sampler> sampler_;
    model::ChatTemplate template_;
    std::unique_ptr<model::LlamaSession> session_;
    std::string text_;
    std::vector<int32_t> tokens_;
    int hits_ = 0;
    int misses_ = 0;
    int llvm_modules_ = 0;
    int64_t decoded_ = 0;
    double compile_seconds_ = 0;
    double load_seconds_ = 0;
    double prefill_seconds_ = 0;
    double decode_seconds_ = 0;
    double first_token_seconds_ = 0;
};

int run(const RunOptions& options) {
    std::signal(SIGINT, [](int) { interrupted = 1; });
    Run run(options);
    if (Status status = run.start(); !status.ok()) {
        return fail(status.error());
    }
    auto ids = run.prompt_ids();
    if (!ids.ok()) {
        return fail(ids.error());
    }
    if (Status status = run.load(ids->size()); !status.ok()) {
        return fail(status.error());
    }
    if (Status status = run.generate(*ids); !status.ok()) {
        return fail(status.error());
    }
    run.report(ids->size());
    return interrupted != 0 ? 130 : 0;
}

/// Lines of JSON strings to lines of id lists.
int tokenize(const std::string& path, bool special) {
    auto file = model::open_gguf(path);
    if (!file.ok()) {
        return fail(file.error());
    }
    auto tokenizer = model::make_tokenizer(*file);
    if (!tokenizer.ok()) {
        return fail(tokenizer.error());
    }
    std::string line;
    for (size_t number = 1; std::getline(std::cin, line); ++number) {
        Json text = Json::parse(line, nullptr, false);
        if (!text.is_string()) {
            return fail(error(Code::kParse, "expected a JSON string", "standard input:" + std::to_string(number)));
        }
        auto control = special ? model::ControlTokens::kParse : model::ControlTokens::kAsText;
        auto ids = (*tokenizer)->encode(text.get<std::string>(), control);
        if (!ids.ok()) {
            return fail(ids.error());
        }
        std::cout << Json(*ids).dump() << "\n";
    }
    return 0;
}

}  // namespace

void add_run(CLI::App& app, Command& chosen) {
    auto o = std::make_shared<RunOptions>();
    CLI::App* verb = app.add_subcommand("run", "Generate text with a GGUF model");
    verb->add_option("model", o->path, "GGUF file")->required();
    auto* prompt = verb->add_option("-p,--prompt", o->prompt, "Text to go on from, or the user's message with --chat");
    auto* ids =
        verb->add_option("--prompt-tokens", o->prompt_tokens, "Token ids, separated by commas")->excludes(prompt);
    verb->add_flag("--chat", o->chat, "Put the prompt into the model's chat template");
    verb->add_option("--system", o->system, "System message of the chat");
    verb->add_flag("--special", o->special, "Control tokens written out in the prompt count as such");
    verb->add_option("-n,--max-tokens", o->max_tokens, "Most tokens to generate")->check(CLI::NonNegativeNumber);
    verb->add_option("-t,--temperature", o->sampling.temperature, "0: greedy");
    verb->add_option("--top-k", o->sampling.top_k, "Keep the k likeliest; 0: all");
    verb->add_option("--top-p", o->sampling.top_p, "Keep the likeliest that reach this probability");
    verb->add_option("--min-p", o->sampling.min_p, "Keep what has this share of the likeliest's probability");
    verb->add_option("--repetition-penalty", o->sampling.repetition_penalty, "Above 1: less repetition");
    verb->add_option("--seed", o->sampling.seed, "Of sampling");
    verb->add_option("--threads", o->threads, "0: one for each CPU")->check(CLI::NonNegativeNumber);
    verb->add_option("--context", o->context, "Most positions")->check(CLI::NonNegativeNumber);
    verb->add_flag("--json", o->json, "One JSON line at the end instead of text");
    verb->add_option("--logits", o->logits, "Write the logits of the last prompt position, float32, to this .npy file");
    verb->callback([o, prompt, ids, &chosen] {
        if (prompt->empty() && ids->empty()) {
            std::string line;
            std::string all;
            while (std::getline(std::cin, line)) {
                all += (all.empty() ? "" : "\n") + line;
            }
            o->prompt = all;
        }
        chosen = [o] { return run(*o); };
    });
}

void add_tokenize(CLI::App& app, Command& chosen) {
    struct Options {
        std::string path;
        bool json = false;
        bool special = false;
    };
    auto o = std::make_shared<Options>();
    CLI::App* verb = app.add_subcommand("tokenize", "Token ids of each line of standard input, a JSON string a line");
    verb->add_option("model", o->path, "GGUF file")->required();
    verb->add_flag("--json", o->json, "Lists of ids as JSON (always on)");
    verb->add_flag("--special", o->special, "Control tokens written out in the text count as such");
    verb->callback([o, &chosen] { chosen = [o] { return tokenize(o->path, o->special); }; });
}

}  // namespace ember::cli
