// What a hostile GGUF file meets: everything that reads one, short of computing. Shared by the fuzzer and by the unit
// test that mutates a good file.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "model/chat.h"
#include "model/config.h"
#include "model/dequantize.h"
#include "model/gguf.h"
#include "model/tokenizer.h"

namespace ember::model {

enum class Exercise { kRefused, kLoaded };

/// Opens, configures and tokenizes. Whatever the bytes are, it returns, with every message on one line.
inline Exercise exercise_gguf(std::span<const std::byte> bytes) {
    auto check_message = [](const Diagnostic& error) {
        check(!error.message.empty() && error.to_string().find('\n') == std::string::npos, "a message of one line");
    };
    auto file = read_gguf(bytes, "fuzzed");
    if (!file) {
        check_message(file.error());
        return Exercise::kRefused;
    }
    for (const GgufEntry& entry : (*file)->entries()) {
        check((*file)->find_entry(entry.key) == &entry, "an entry is found by its key");
        check(!entry.value.type_name().empty(), "a value has a type");
    }
    for (const GgufTensor& tensor : (*file)->tensors()) {
        std::vector<float> row(static_cast<size_t>(tensor.dims[0]));
        dequantize_row(tensor, tensor.elements() / tensor.dims[0] - 1, row);
    }
    if (auto chat = read_chat_template(**file); !chat) {
        check_message(chat.error());
    }
    auto tokenizer = make_tokenizer(*file);
    if (!tokenizer) {
        check_message(tokenizer.error());
    } else {
        constexpr std::string_view kText = "hello <|im_start|>the\xff\xc3 12  x\n<|im_end|>";
        auto ids = (*tokenizer)->encode(kText, ControlTokens::kParse);
        check(ids.ok() && (*tokenizer)->decode(*ids, ShowControl::kShow).ok(), "text can be encoded and decoded");
    }
    auto config = read_llama_config(**file);
    if (!config) {
        check_message(config.error());
    }
    return config && tokenizer ? Exercise::kLoaded : Exercise::kRefused;
}

}  // namespace ember::model
