// GGUF files, good ones and damaged ones, the configuration of a model, and what stored elements mean.
#include "model/gguf.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "fuzz/gguf_exercise.h"
#include "model/config.h"
#include "model/dequantize.h"
#include "unit/tiny_gguf.h"

namespace ember::model {
namespace {

using Json = nlohmann::json;

std::span<const std::byte> as_bytes(const std::string& text) {
    return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string error_of(const std::string& bytes) {
    auto file = read_gguf(as_bytes(bytes), "tiny.gguf");
    return file ? "" : file.error().to_string();
}

/// A file on disk that is gone at the end of the test.
class TemporaryFile {
public:
    explicit TemporaryFile(const std::string& bytes) {
        path_ = std::filesystem::temp_directory_path() /
                ("ember_gguf_test_" + std::to_string(getpid()) + "_" + std::to_string(++count_));
        std::ofstream(path_, std::ios::binary) << bytes;
    }
    ~TemporaryFile() { std::filesystem::remove(path_); }
    std::string path() const { return path_.string(); }

private:
    static inline int count_ = 0;
    std::filesystem::path path_;
};

TEST(Gguf, MapsAFile) {
    TemporaryFile on_disk(tiny_llama().bytes());
    auto file = open_gguf(on_disk.path());
    ASSERT_TRUE(file.ok()) << file.error().to_string();
    EXPECT_EQ((*file)->path(), on_disk.path());
    EXPECT_EQ((*file)->version(), 3u);
    EXPECT_EQ((*file)->tensors().size(), 11u);
    (*file)->prefetch();
    const GgufTensor* tensor = (*file)->find_tensor("blk.0.attn_k.weight");
    ASSERT_NE(tensor, nullptr);
    EXPECT_EQ(tensor->dims, (std::vector<int64_t>{32, 16}));
    EXPECT_EQ(tensor->shape, (std::vector<int64_t>{16, 32}));
    EXPECT_EQ(tensor->bytes, 16u * 32 * 4);
    EXPECT_EQ(tensor->offset % 32, 0u);
    EXPECT_EQ((*file)->find_tensor("blk.1.attn_k.weight"), nullptr);
}

TEST(Gguf, ReadsVersion2AndOtherAlignments) {
    for (uint64_t alignment : {8, 64, 4096}) {
        TinyGguf tiny = tiny_llama();
        tiny.version = 2;
        tiny.alignment = alignment;
        tiny.set_u32("general.alignment", static_cast<uint32_t>(alignment));
        std::string bytes = tiny.bytes();
        auto file = read_gguf(as_bytes(bytes), "tiny");
        ASSERT_TRUE(file.ok()) << file.error().to_string();
        EXPECT_EQ((*file)->alignment(), alignment);
        EXPECT_EQ((*file)->data_offset() % alignment, 0u);
        EXPECT_TRUE(read_llama_config(**file).ok());
    }
}

TEST(Gguf, AFileOfNothingIsAFile) {
    EXPECT_EQ(error_of("GGUF" + raw(uint32_t{3}) + raw(uint64_t{0}) + raw(uint64_t{0})), "");
}

TEST(Gguf, ReadsEveryValueType) {
    TinyGguf tiny;
    tiny.set("u8", ValueType::kU8, raw(uint8_t{200}));
    tiny.set("i8", ValueType::kI8, raw(int8_t{-100}));
    tiny.set("u16", ValueType::kU16, raw(uint16_t{60000}));
    tiny.set("i16", ValueType::kI16, raw(int16_t{-30000}));
    tiny.set("u32", ValueType::kU32, raw(uint32_t{4000000000}));
    tiny.set("i32", ValueType::kI32, raw(int32_t{-2000000000}));
    tiny.set("u64", ValueType::kU64, raw(uint64_t{1} << 62));
    tiny.set("u64.large", ValueType::kU64, raw(UINT64_MAX));
    tiny.set("i64", ValueType::kI64, raw(int64_t{-5}));
    tiny.set("f32", ValueType::kF32, raw(0.5f));
    tiny.set("f64", ValueType::kF64, raw(0.25));
    tiny.set("bool", ValueType::kBool, raw(uint8_t{1}));
    tiny.set_string("string", "text");
    std::string bytes = tiny.bytes();
    auto opened = read_gguf(as_bytes(bytes), "tiny");
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    const GgufFile& file = **opened;
    EXPECT_EQ(file.get_integer("u8").value(), 200);
    EXPECT_EQ(file.get_integer("i8").value(), -100);
    EXPECT_EQ(file.get_integer("u16").value(), 60000);
    EXPECT_EQ(file.get_integer("i16").value(), -30000);
    EXPECT_EQ(file.get_integer("u32").value(), 4000000000);
    EXPECT_EQ(file.get_integer("i32").value(), -2000000000);
    EXPECT_EQ(file.get_integer("u64").value(), int64_t{1} << 62);
    EXPECT_FALSE(file.get_integer("u64.large").ok());
    EXPECT_EQ(file.get_integer("i64").value(), -5);
    EXPECT_EQ(file.get_float("f32").value(), 0.5);
    EXPECT_EQ(file.get_float("f64").value(), 0.25);
    EXPECT_TRUE(file.get_bool("bool").value());
    EXPECT_EQ(file.get_string("string").value(), "text");
}

TEST(Gguf, ReadsArraysAndNestedArrays) {
    TinyGguf tiny;
    tiny.set_strings("texts", {"a", "", "ccc"});
    tiny.set_i32s("numbers", {1, -2, 3});
    std::string inner = raw(uint32_t{2}) + raw(uint64_t{2}) + raw(uint16_t{7}) + raw(uint16_t{8});
    std::string texts = raw(uint32_t{8}) + raw(uint64_t{1}) + gguf_string("deep");
    tiny.set("nested", ValueType::kArray, raw(uint32_t{9}) + raw(uint64_t{2}) + inner + texts);
    tiny.set_u32("after", 5);
    std::string bytes = tiny.bytes();
    auto opened = read_gguf(as_bytes(bytes), "tiny");
    ASSERT_TRUE(opened.ok()) << opened.error().to_string();
    const GgufFile& file = **opened;
    std::vector<std::string_view> found;
    GgufArray text_array = file.get_array("texts", ValueType::kString).value();
    for (GgufValue value : text_array) {
        found.push_back(*value.as_string());
    }
    EXPECT_EQ(found, (std::vector<std::string_view>{"a", "", "ccc"}));
    int64_t sum = 0;
    GgufArray numbers = file.get_array("numbers", ValueType::kI32).value();
    for (GgufValue value : numbers) {
        sum += *value.as_integer();
    }
    EXPECT_EQ(sum, 2);
    GgufArray nested = file.get_array("nested", ValueType::kArray).value();
    auto row = nested.begin();
    EXPECT_EQ((*row).type_name(), "array of u16");
    EXPECT_EQ((*(*row).as_array()->begin()).as_integer(), 7);
    ++row;
    EXPECT_EQ((*(*row).as_array()->begin()).as_string(), "deep");
    EXPECT_EQ(file.get_integer("after").value(), 5);
}

TEST(Gguf, GettersSayWhatIsWrong) {
    TinyGguf tiny;
    tiny.set_u32("count", 1);
    std::string bytes = tiny.bytes();
    auto opened = read_gguf(as_bytes(bytes), "tiny.gguf");
    ASSERT_TRUE(opened.ok());
    const GgufFile& file = **opened;
    EXPECT_EQ(file.get_integer("size").error().to_string(),
              "tiny.gguf: metadata key 'size' is missing: expected an integer");
    EXPECT_EQ(file.get_string("count").error().to_string(),
              "tiny.gguf: offset 24: metadata key 'count': expected a string, found u32");
    EXPECT_EQ(file.get_array("count", ValueType::kString).error().to_string(),
              "tiny.gguf: offset 24: metadata key 'count': expected an array of string, found u32");
    EXPECT_EQ(file.get_integer_or("size", 7).value(), 7);
    EXPECT_FALSE(file.get_string_or("count", "").ok());
}

TEST(Gguf, OpeningWhatIsNoFile) {
    EXPECT_NE(open_gguf("/nonexistent/x.gguf").error().message.find("cannot open"), std::string::npos);
    EXPECT_NE(open_gguf("/").error().message.find("not a regular file"), std::string::npos);
    TemporaryFile empty("");
    EXPECT_EQ(open_gguf(empty.path()).error().to_string(),
              empty.path() + ": offset 0: expected a GGUF file, found an empty file");
    std::string fifo = empty.path() + ".fifo";
    ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
    EXPECT_NE(open_gguf(fifo).error().message.find("not a regular file"), std::string::npos);
    unlink(fifo.c_str());
}

/// One way to damage the tiny model, and a part of the message that says so.
struct Damage {
    std::string name;
    std::function<void(TinyGguf&)> apply;
    std::string message;
};

std::string nested_arrays(int depth) {
    std::string value;
    for (int i = 0; i < depth; ++i) {
        value += raw(uint32_t{9}) + raw(uint64_t{1});
    }
    return value + raw(uint32_t{0}) + raw(uint64_t{0});
}

std::vector<Damage> container_damages() {
    return {
        {"version", [](TinyGguf& f) { f.version = 99; }, "offset 4: GGUF version 99: expected 2 or 3"},
        {"version 1", [](TinyGguf& f) { f.version = 1; }, "offset 4: GGUF version 1: expected 2 or 3"},
        {"big endian", [](TinyGguf& f) { f.version = 3u << 24; }, "offset 4: a big-endian GGUF file"},
        {"entry count", [](TinyGguf& f) { f.entry_count = INT64_MAX; }, "offset 16: expected at most"},
        {"tensor count", [](TinyGguf& f) { f.tensor_count = uint64_t{1} << 62; }, "offset 8: expected at most"},
        {"one tensor more", [](TinyGguf& f) { f.tensor_count = 12; }, "expected"},
        {"empty key", [](TinyGguf& f) { f.set_u32("", 1); }, "expected a metadata key of 1 to 65535 bytes"},
        {"long key", [](TinyGguf& f) { f.set_u32(std::string(70000, 'k'), 1); }, "found one of 70000"},
        {"key twice", [](TinyGguf& f) { f.entries.push_back(f.entries[2]); }, "'llama.block_count' is there twice"},
        {"value type", [](TinyGguf& f) { f.entries[0].type = 77; }, "value type 77 of 'general.architecture'"},
        {"string length", [](TinyGguf& f) { f.entries[0].value.replace(0, 8, raw(INT64_MAX)); }, "the file ends early"},
        {"array length", [](TinyGguf& f) { f.set("a", ValueType::kArray, raw(uint32_t{4}) + raw(uint64_t{1} << 61)); },
         "found a count of 2305843009213693952"},
        {"array type", [](TinyGguf& f) { f.set("a", ValueType::kArray, raw(uint32_t{13}) + raw(uint64_t{0})); },
         "value type 13 of 'a': expected 0 to 12"},
        {"array depth", [](TinyGguf& f) { f.set("a", ValueType::kArray, nested_arrays(100000)); },
         "nested deeper than 8"},
        {"bool", [](TinyGguf& f) { f.set("b", ValueType::kBool, raw(uint8_t{2})); }, "is a bool: expected 0 or 1"},
        {"alignment 0", [](TinyGguf& f) { f.set_u32("general.alignment", 0); }, "general.alignment is 0: expected"},
        {"alignment 24", [](TinyGguf& f) { f.set_u32("general.alignment", 24); }, "general.alignment is 24: expected"},
        {"alignment type", [](TinyGguf& f) { f.set_bool("general.alignment", true); },
         "expected an integer, found bool"},
        {"no dimension", [](TinyGguf& f) { f.tensors[0].dims = {}; }, "has 0 dimensions: expected 1 to 4"},
        {"five dimensions", [](TinyGguf& f) { f.tensors[0].dims = {32, 1, 1, 1, 1}; }, "has 5 dimensions"},
        {"dimension 0", [](TinyGguf& f) { f.tensors[0].dims[1] = 0; },
         "dimension 1 of tensor 'token_embd.weight' is 0"},
        {"negative", [](TinyGguf& f) { f.tensors[0].dims[1] = UINT64_MAX - 5; }, "dimension 1 of tensor"},
        {"product wraps", [](TinyGguf& f) { f.tensors[0].dims = {32, (uint64_t{1} << 42) + 1, uint64_t{1} << 20}; },
         "dimension 2 of tensor"},
        {"too large", [](TinyGguf& f) { f.tensors[0].dims[1] = uint64_t{1} << 40; }, "is larger than the file"},
        {"tensor name", [](TinyGguf& f) { f.tensors[0].name = ""; }, "expected a tensor name of 1 to 64 bytes"},
        {"tensor twice", [](TinyGguf& f) { f.tensors[1].name = f.tensors[0].name; }, "is there twice"},
        {"tensor type", [](TinyGguf& f) { f.tensors[0].type = 250; }, "tensor type 250 is not supported"},
        {"named type", [](TinyGguf& f) { f.tensors[0].type = 10; }, "tensor type 10 (q2_k) is not supported"},
        {"row of blocks",
         [](TinyGguf& f) {
             f.tensors[1].type = 8;
             f.tensors[1].dims = {33};
         },
         "has rows of 33: expected a multiple of 32"},
        {"offset unaligned", [](TinyGguf& f) { f.tensors[0].offset = 3; }, "expected a multiple of 32"},
        {"offset past end", [](TinyGguf& f) { f.tensors[0].offset = uint64_t{1} << 40; }, "expected it to end within"},
        {"offset wraps", [](TinyGguf& f) { f.tensors[0].offset = UINT64_MAX - 31; }, "expected it to end within"},
        {"overlap", [](TinyGguf& f) { f.tensors[1].offset = 0; }, "overlaps tensor 'token_embd.weight'"},
    };
}

TEST(Gguf, EveryDamageOfTheContainerIsNamed) {
    for (const Damage& damage : container_damages()) {
        TinyGguf tiny = tiny_llama();
        damage.apply(tiny);
        std::string message = error_of(tiny.bytes());
        EXPECT_NE(message.find(damage.message), std::string::npos) << damage.name << ": " << message;
        EXPECT_TRUE(message.starts_with("tiny.gguf: offset ")) << damage.name << ": " << message;
        EXPECT_EQ(message.find('\n'), std::string::npos) << damage.name << ": " << message;
    }
}

TEST(Gguf, EveryTruncationIsRefused) {
    std::string bytes = tiny_llama().bytes();
    size_t head = tiny_llama().head().size();
    for (size_t size = 0; size < bytes.size(); size += size < head ? 1 : 997) {
        std::string cut = bytes.substr(0, size);  // a copy of its own, so that a sanitizer sees the end
        std::string message = error_of(cut);
        EXPECT_FALSE(message.empty()) << "cut at " << size;
        EXPECT_EQ(message.find('\n'), std::string::npos) << message;
    }
}

TEST(Gguf, TextFromAFileStaysOnOneLine) {
    EXPECT_EQ(quote("a\nb\x1b[31m\xff'"), "'a\\x0ab\\x1b[31m\\xff''");
    EXPECT_EQ(quote(std::string(1000, 'x')).size(), 80u + 5);
}

/// The damages that leave a good container.
std::vector<Damage> config_damages() {
    return {
        {"architecture", [](TinyGguf& f) { f.set_string("general.architecture", "nosuch"); },
         "'nosuch' is not supported"},
        {"no architecture", [](TinyGguf& f) { f.remove("general.architecture"); }, "is missing: expected a string"},
        {"blocks", [](TinyGguf& f) { f.set_u32("llama.block_count", 100000); },
         "llama.block_count is 100000: expected"},
        {"no blocks", [](TinyGguf& f) { f.set_u32("llama.block_count", 0); }, "llama.block_count is 0: expected"},
        {"context", [](TinyGguf& f) { f.set_u32("llama.context_length", 0); }, "llama.context_length is 0: expected"},
        {"embedding", [](TinyGguf& f) { f.set_u32("llama.embedding_length", 64); },
         "has shape [263, 32]: expected [263, 64]"},
        {"huge sizes", [](TinyGguf& f) { f.set("llama.embedding_length", ValueType::kU64, raw(INT64_MAX)); },
         "llama.embedding_length is 9223372036854775807: expected"},
        {"feed forward", [](TinyGguf& f) { f.set_u32("llama.feed_forward_length", 65); }, "expected [65, 32]"},
        {"no heads", [](TinyGguf& f) { f.set_u32("llama.attention.head_count", 0); }, "head_count is 0: expected"},
        {"heads", [](TinyGguf& f) { f.set_u32("llama.attention.head_count", 5); },
         "head_count is 5: expected a divisor"},
        {"kv heads", [](TinyGguf& f) { f.set_u32("llama.attention.head_count_kv", 3); },
         "head_count_kv is 3: expected"},
        {"key length", [](TinyGguf& f) { f.set_u32("llama.attention.key_length", 8); }, "expected [16, 32]"},
        {"value length", [](TinyGguf& f) { f.set_u32("llama.attention.value_length", 8); }, "the length of the keys"},
        {"huge key", [](TinyGguf& f) { f.set_u32("llama.attention.key_length", UINT32_MAX); },
         "key_length is 4294967295"},
        {"rope dims", [](TinyGguf& f) { f.set_u32("llama.rope.dimension_count", 18); },
         "dimension_count is 18: expected"},
        {"odd rope", [](TinyGguf& f) { f.set_u32("llama.rope.dimension_count", 15); }, "an even number"},
        {"rope base", [](TinyGguf& f) { f.set_f32("llama.rope.freq_base", -1); }, "a finite number above 0"},
        {"NaN base", [](TinyGguf& f) { f.set_f32("llama.rope.freq_base", NAN); }, "a finite number above 0"},
        {"scaling", [](TinyGguf& f) { f.set_string("llama.rope.scaling.type", "yarn"); },
         "expected 'none' or 'linear'"},
        {"epsilon", [](TinyGguf& f) { f.set_f32("llama.attention.layer_norm_rms_epsilon", 0); }, "rms_epsilon is 0"},
        {"no epsilon", [](TinyGguf& f) { f.remove("llama.attention.layer_norm_rms_epsilon"); }, "expected a float"},
        {"experts", [](TinyGguf& f) { f.set_u32("llama.expert_count", 8); }, "models with it are not supported"},
        {"vocabulary size", [](TinyGguf& f) { f.set_u32("llama.vocab_size", 7); },
         "llama.vocab_size is 7: expected 263"},
        {"no vocabulary", [](TinyGguf& f) { f.remove("tokenizer.ggml.tokens"); }, "expected an array of string"},
        {"numbers as tokens", [](TinyGguf& f) { f.set_i32s("tokenizer.ggml.tokens", {1}); },
         "expected an array of string"},
        {"empty vocabulary", [](TinyGguf& f) { f.set_strings("tokenizer.ggml.tokens", {}); }, "has 0 tokens"},
        {"types", [](TinyGguf& f) { f.set_i32s("tokenizer.ggml.token_type", {3, 3}); }, "has 2 elements: expected 263"},
        {"types of strings", [](TinyGguf& f) { f.set_strings("tokenizer.ggml.token_type", {"a"}); },
         "expected an array of i32, found array of string"},
        {"eos", [](TinyGguf& f) { f.set_u32("tokenizer.ggml.eos_token_id", 1u << 31); },
         "expected a token of the vocabulary"},
        {"other special", [](TinyGguf& f) { f.set_u32("tokenizer.ggml.x_token_id", 263); }, "0 to 262"},
        {"missing tensor", [](TinyGguf& f) { f.tensors.pop_back(); }, "tensor 'blk.0.ffn_down.weight' is missing"},
        {"unknown tensor", [](TinyGguf& f) { f.add_f32("blk.0.extra", {32}); }, "tensor 'blk.0.extra' has no place"},
        {"shape", [](TinyGguf& f) { f.add_f32("blk.0.attn_k.weight", {32, 32}); },
         "has shape [32, 32]: expected [16, 32]"},
        {"bias shape", [](TinyGguf& f) { f.add_f32("blk.0.attn_q.bias", {31}); }, "has shape [31]: expected [32]"},
        {"norm type",
         [](TinyGguf& f) {
             f.tensor("output_norm.weight").type = 1;
             f.tensor("output_norm.weight").data.resize(64);
         },
         "is of type f16: expected f32"},
    };
}

TEST(LlamaConfig, EveryDamageIsNamed) {
    for (const Damage& damage : config_damages()) {
        TinyGguf tiny = tiny_llama();
        damage.apply(tiny);
        std::string bytes = tiny.bytes();
        auto file = read_gguf(as_bytes(bytes), "tiny.gguf");
        ASSERT_TRUE(file.ok()) << damage.name << ": " << file.error().to_string();
        auto config = read_llama_config(**file);
        ASSERT_FALSE(config.ok()) << damage.name;
        std::string message = config.error().to_string();
        EXPECT_NE(message.find(damage.message), std::string::npos) << damage.name << ": " << message;
        EXPECT_TRUE(message.starts_with("tiny.gguf: ")) << damage.name << ": " << message;
        EXPECT_EQ(message.find('\n'), std::string::npos) << damage.name << ": " << message;
    }
}

TEST(LlamaConfig, ReadsAGoodModel) {
    TinyGguf tiny = tiny_llama();
    tiny.add_f32("blk.0.attn_q.bias", {32});
    tiny.add_f32("rope_freqs.weight", {8});
    tiny.set_string("llama.rope.scaling.type", "linear");
    tiny.set_f32("llama.rope.scaling.factor", 4.0f);
    std::string bytes = tiny.bytes();
    auto file = read_gguf(as_bytes(bytes), "tiny").value();
    auto config = read_llama_config(*file);
    ASSERT_TRUE(config.ok()) << config.error().to_string();
    EXPECT_EQ(config->block_count, 1);
    EXPECT_EQ(config->head_dim, 16);
    EXPECT_EQ(config->rope_dimension_count, 16);
    EXPECT_EQ(config->vocabulary_size, 263);
    EXPECT_EQ(config->rope_scale, 0.25f);
    EXPECT_EQ(config->rms_epsilon, 1e-5f);
    EXPECT_TRUE(config->tied_output);
    EXPECT_EQ(config->output, config->token_embd);
    EXPECT_NE(config->rope_freqs, nullptr);
    EXPECT_NE(config->layers[0].attn_q_bias, nullptr);
    EXPECT_EQ(config->layers[0].attn_k_bias, nullptr);
    EXPECT_EQ(config->layers[0].ffn_down->shape, (std::vector<int64_t>{32, 64}));
}

TEST(LlamaConfig, HeadsMayBeLongerThanTheEmbeddingDivides) {
    TinyGguf tiny = tiny_llama();
    tiny.set_u32("llama.attention.head_count", 3);
    tiny.set_u32("llama.attention.key_length", 16);
    tiny.add_f32("blk.0.attn_q.weight", {32, 48});
    tiny.add_f32("blk.0.attn_output.weight", {48, 32});
    tiny.add_f32("output.weight", {32, 263});
    std::string bytes = tiny.bytes();
    auto config = read_llama_config(*read_gguf(as_bytes(bytes), "tiny").value());
    ASSERT_TRUE(config.ok()) << config.error().to_string();
    EXPECT_EQ(config->head_dim, 16);
    EXPECT_FALSE(config->tied_output);
}

/// Replaces bytes, 32-bit and 64-bit numbers at random places, cuts, and doubles parts.
std::string mutate(std::string bytes, std::mt19937_64& random) {
    constexpr uint64_t kNumbers[] = {0, 1, 255, 1u << 31, UINT32_MAX, uint64_t{1} << 62, INT64_MAX, UINT64_MAX};
    for (uint64_t count = 1 + random() % 3; count > 0; --count) {
        size_t at = random() % bytes.size();
        uint64_t number = random() % 2 ? kNumbers[random() % std::size(kNumbers)] : random();
        switch (random() % 5) {
            case 0:
                bytes[at] = static_cast<char>(random());
                break;
            case 1:
                bytes.replace(at, std::min<size_t>(4, bytes.size() - at), raw(static_cast<uint32_t>(number)));
                break;
            case 2:
                bytes.replace(at, std::min<size_t>(8, bytes.size() - at), raw(number));
                break;
            case 3:
                bytes.erase(at, random() % 40);
                break;
            default:
                bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 40));
        }
        if (bytes.empty()) {
            return "x";
        }
    }
    return bytes;
}

TEST(Gguf, MutationsOfAGoodModelAreRefusedOrLoaded) {
    TinyGguf tiny = tiny_llama();
    tiny.set_string("tokenizer.chat_template", "{% for m in messages %}{{'<|im_start|>' + m.content + '<|im_end|>'}}");
    std::string good = tiny.bytes();
    size_t head = tiny.head().size();
    std::mt19937_64 random(20240131);
    int refused = 0, loaded = 0;
    for (int i = 0; i < 4000; ++i) {
        // Most of the file is data, which is good whatever it holds: mutate the head, and keep the data behind it.
        std::string bytes = mutate(good.substr(0, head), random) + good.substr(head);
        (exercise_gguf(as_bytes(bytes)) == Exercise::kLoaded ? loaded : refused)++;
    }
    EXPECT_EQ(exercise_gguf(as_bytes(good)), Exercise::kLoaded);
    EXPECT_GT(refused, 1000);
    EXPECT_GT(loaded, 100);
}

std::string from_hex(const std::string& hex) {
    std::string bytes;
    for (size_t i = 0; i + 1 < hex.size(); i += 2) {
        bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
    }
    return bytes;
}

TEST(Dequantize, AgreesWithTheFormatsReference) {
    std::ifstream in(EMBER_TEST_DATA "/dequantize.json");
    ASSERT_TRUE(in.good());
    Json data = Json::parse(in);
    int checked = 0;
    for (const TensorTypeInfo& info : supported_tensor_types()) {
        if (!data.contains(info.name)) {
            continue;
        }
        ++checked;
        std::string blocks = from_hex(data[info.name]["blocks"]), expected = from_hex(data[info.name]["values"]);
        std::vector<float> values(blocks.size() / info.block_bytes * info.block_elements);
        ASSERT_EQ(expected.size(), values.size() * sizeof(float));
        dequantize(info.type, reinterpret_cast<const std::byte*>(blocks.data()), values);
        for (size_t i = 0; i < values.size(); ++i) {
            float wanted;
            std::memcpy(&wanted, expected.data() + i * sizeof wanted, sizeof wanted);
            // Exact but for one rounding, where the compiler contracts a product and a sum.
            ASSERT_NEAR(values[i], wanted, 1e-6 * (1 + std::fabs(wanted))) << info.name << " element " << i;
        }
    }
    EXPECT_EQ(checked, 8);
}

TEST(Dequantize, WidensShortFloats) {
    EXPECT_EQ(float_from_f16(0x3c00), 1.0f);
    EXPECT_EQ(float_from_f16(0xc000), -2.0f);
    EXPECT_EQ(float_from_f16(0x7bff), 65504.0f);
    EXPECT_EQ(float_from_f16(0x0001), 0x1p-24f);
    EXPECT_EQ(float_from_f16(0x0400), 0x1p-14f);
    EXPECT_TRUE(std::signbit(float_from_f16(0x8000)));
    EXPECT_EQ(float_from_f16(0xfc00), -INFINITY);
    EXPECT_TRUE(std::isnan(float_from_f16(0x7e00)));
    EXPECT_EQ(float_from_bf16(0x3f80), 1.0f);
    EXPECT_EQ(float_from_bf16(0xc040), -3.0f);
    uint16_t halves[] = {0x3c00, 0x4000};
    float out[2];
    dequantize(TensorType::kF16, reinterpret_cast<const std::byte*>(halves), out);
    EXPECT_EQ(out[1], 2.0f);
}

TEST(Dequantize, ReadsRowsAndWholeTensors) {
    std::string bytes = tiny_llama().bytes();
    auto file = read_gguf(as_bytes(bytes), "tiny").value();
    const GgufTensor& tensor = *file->find_tensor("blk.0.attn_k.weight");
    std::vector<float> all = dequantize(tensor), row(32);
    dequantize_row(tensor, 15, row);
    ASSERT_EQ(all.size(), 16u * 32);
    EXPECT_TRUE(std::equal(row.begin(), row.end(), all.end() - 32));
    EXPECT_THROW(dequantize_row(tensor, 16, row), InternalError);
}

}  // namespace
}  // namespace ember::model
