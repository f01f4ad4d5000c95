// Chat messages to the text and tokens of a model. The template in the file (tokenizer.chat_template) is Jinja source;
// we recognise its family and render that: ChatML, with the default system message that the template may carry, and
// Llama 3. What a user writes never becomes a control token: encode_chat() places control tokens itself and encodes
// roles and contents as text. Tests: test/unit/tokenizer_test.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ember/support/result.h"
#include "model/gguf.h"
#include "model/tokenizer.h"

namespace ember::model {

struct ChatMessage {
    std::string role;  // "system", "user" or "assistant"
    std::string content;
};

struct ChatTemplate {
    enum class Family { kChatMl, kLlama3 };

    Family family = Family::kChatMl;
    /// Put first unless the first message is a system one.
    std::optional<std::string> default_system;
    /// Whether white space at both ends of a content is left out.
    bool trims_content = false;
};

enum class GenerationPrompt { kOmit, kAdd };

/// From the template's Jinja source; an unknown one is an error that names what is supported.
Result<ChatTemplate> parse_chat_template(std::string_view source);
/// From the file's tokenizer.chat_template.
Result<ChatTemplate> read_chat_template(const GgufFile& file);

std::string render_chat(const ChatTemplate& chat, std::span<const ChatMessage> messages,
                        GenerationPrompt prompt = GenerationPrompt::kAdd);

/// The ids of render_chat()'s text, with control tokens only where the template puts them.
Result<std::vector<int32_t>> encode_chat(const Tokenizer& tokenizer, const ChatTemplate& chat,
                                         std::span<const ChatMessage> messages,
                                         GenerationPrompt prompt = GenerationPrompt::kAdd);

}  // namespace ember::model
