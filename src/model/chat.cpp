// Recognises chat templates by their marks, and renders messages as control tokens and texts in turns.
#include "model/chat.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace ember::model {

namespace {

/// A rendered chat is control tokens and text in turns; what users write is only ever in the text.
struct Part {
    enum class Kind { kControl, kText } kind;
    std::string text;
};
using enum Part::Kind;

/// Neighbouring texts are one text, as the tokenizer would see them.
class Parts {
public:
    Parts& control(std::string_view name) {
        parts_.push_back({kControl, std::string(name)});
        return *this;
    }
    Parts& text(std::string_view text) {
        if (parts_.empty() || parts_.back().kind != kText) {
            parts_.push_back({kText, {}});
        }
        parts_.back().text += text;
        return *this;
    }
    std::vector<Part> take() { return std::move(parts_); }

private:
    std::vector<Part> parts_;
};

constexpr std::string_view kSystem = "system";
constexpr std::string_view kAssistant = "assistant";

void add_chat_ml(Parts& parts, std::string_view role, std::string_view content) {
    parts.control("<|im_start|>").text(role).text("\n").text(content).control("<|im_end|>").text("\n");
}

/// Jinja's trim: white space at both ends.
std::string_view trim(std::string_view text) {
    constexpr std::string_view kSpace = " \t\n\r\f\v";
    size_t first = text.find_first_not_of(kSpace);
    return first == std::string_view::npos ? "" : text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

Parts& open_llama3(Parts& parts, std::string_view role) {
    return parts.control("<|start_header_id|>").text(role).control("<|end_header_id|>").text("\n\n");
}

void add_llama3(Parts& parts, std::string_view role, std::string_view content) {
    open_llama3(parts, role).text(content).control("<|eot_id|>");
}

std::vector<Part> make_parts(const ChatTemplate& chat, std::span<const ChatMessage> messages, GenerationPrompt prompt) {
    Parts parts;
    bool chat_ml = chat.family == ChatTemplate::Family::kChatMl;
    auto add = chat_ml ? add_chat_ml : add_llama3;
    if (!chat_ml) {
        parts.control("<|begin_of_text|>");
    }
    bool own_system = !messages.empty() && messages[0].role == kSystem;
    if (chat.default_system && !messages.empty() && !own_system) {
        add(parts, kSystem, *chat.default_system);
    }
    for (const ChatMessage& message : messages) {
        add(parts, message.role, chat.trims_content ? trim(message.content) : message.content);
    }
    if (prompt == GenerationPrompt::kAdd && chat_ml) {
        parts.control("<|im_start|>").text(kAssistant).text("\n");
    } else if (prompt == GenerationPrompt::kAdd) {
        open_llama3(parts, kAssistant);
    }
    return parts.take();
}

/// The texts that a template's Jinja source can print: its string literals, escapes resolved, and what stands outside
/// of {{ }}, {% %} and {# #}.
class TemplateTexts {
public:
    explicit TemplateTexts(std::string_view source) : source_(source) {}

    std::vector<std::string> read() {
        while (at_ < source_.size()) {
            size_t tag = find_tag();
            texts_.emplace_back(source_.substr(at_, tag - at_));
            at_ = tag;
            if (at_ < source_.size()) {
                read_tag();
            }
        }
        return std::move(texts_);
    }

private:
    size_t find_tag() const {
        for (size_t at = at_; at + 1 < source_.size(); ++at) {
            char next = source_[at + 1];
            if (source_[at] == '{' && (next == '{' || next == '%' || next == '#')) {
                return at;
            }
        }
        return source_.size();
    }

    void read_tag() {
        char kind = source_[at_ + 1];
        std::string_view end = kind == '{' ? "}}" : kind == '%' ? "%}" : "#}";
        at_ += 2;
        while (at_ < source_.size() && !source_.substr(at_).starts_with(end)) {
            char c = source_[at_++];
            if (kind != '#' && (c == '\'' || c == '"')) {
                read_literal(c);
            }
        }
        at_ = std::min(at_ + 2, source_.size());
    }

    void read_literal(char quote) {
        std::string text;
        while (at_ < source_.size() && source_[at_] != quote) {
            char c = source_[at_++];
            if (c == '\\' && at_ < source_.size()) {
                c = source_[at_++];
                c = c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
            }
            text += c;
        }
        ++at_;
        texts_.push_back(std::move(text));
    }

    std::string_view source_;
    size_t at_ = 0;
    std::vector<std::string> texts_;
};

/// The message of a text that is one whole ChatML system message.
std::optional<std::string> find_default_system(std::string_view source) {
    constexpr std::string_view kStart = "<|im_start|>system\n", kEnd = "<|im_end|>";
    for (const std::string& text : TemplateTexts(source).read()) {
        size_t start = text.find(kStart),
               end = text.find(kEnd, start == std::string::npos ? start : start + kStart.size());
        if (start != std::string::npos && end != std::string::npos) {
            return text.substr(start + kStart.size(), end - start - kStart.size());
        }
    }
    return std::nullopt;
}

/// Marks of templates that print more, or something else, than the families do for the same messages.
constexpr std::array<std::string_view, 7> kUnsupportedMarks = {
    "<think>", "reasoning_content", "enable_thinking", "strftime_now", "Cutting Knowledge Date",
    "[INST]",  "<|channel|>"};

Diagnostic fail_unsupported(std::string_view source, std::string_view why) {
    return error(Code::kUnsupported, "chat template not supported (" + std::string(why) +
                                         "): expected ChatML (<|im_start|>role, with or without a default system "
                                         "message) or Llama 3 (<|start_header_id|>role), found " +
                                         quote(source));
}

}  // namespace

Result<ChatTemplate> parse_chat_template(std::string_view source) {
    auto has = [&](std::string_view mark) { return source.find(mark) != std::string_view::npos; };
    for (std::string_view mark : kUnsupportedMarks) {
        if (has(mark)) {
            return fail_unsupported(source, "it uses " + std::string(mark));
        }
    }
    bool trims = has("| trim") || has("|trim") || has(".strip()");
    bool chat_ml = has("<|im_start|>") && has("<|im_end|>");
    bool llama3 = has("<|start_header_id|>") && has("<|end_header_id|>") && has("<|eot_id|>");
    if (chat_ml == llama3 || !has("messages")) {
        return fail_unsupported(source, "its control tokens are of no known family");
    }
    if (llama3) {
        return ChatTemplate{ChatTemplate::Family::kLlama3, std::nullopt, trims};
    }
    return ChatTemplate{ChatTemplate::Family::kChatMl, find_default_system(source), trims};
}

Result<ChatTemplate> read_chat_template(const GgufFile& file) {
    constexpr std::string_view kKey = "tokenizer.chat_template";
    EMBER_TRY(std::string_view source, file.get_string(kKey));
    Result<ChatTemplate> chat = parse_chat_template(source);
    return chat ? chat : file.error_at(kKey, chat.error().code, chat.error().message);
}

std::string render_chat(const ChatTemplate& chat, std::span<const ChatMessage> messages, GenerationPrompt prompt) {
    std::string text;
    for (const Part& part : make_parts(chat, messages, prompt)) {
        text += part.text;
    }
    return text;
}

Result<std::vector<int32_t>> encode_chat(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                         std::span<const ChatMessage> messages, GenerationPrompt prompt) {
    std::vector<int32_t> ids;
    for (const Part& part : make_parts(chat, messages, prompt)) {
        if (part.kind == kControl) {
            auto id = tokenizer.find_control(part.text);
            if (!id) {
                return error(Code::kInvalidArgument, "the chat template needs the control token " + quote(part.text) +
                                                         ": the vocabulary has none");
            }
            ids.push_back(*id);
            continue;
        }
        EMBER_TRY(std::vector<int32_t> more, tokenizer.encode(part.text, ControlTokens::kAsText));
        ids.insert(ids.end(), more.begin(), more.end());
    }
    return ids;
}

}  // namespace ember::model
