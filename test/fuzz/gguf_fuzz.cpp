// libFuzzer: any bytes as a GGUF file. An input that is no GGUF file is replaced by a tiny good model before it is
// mutated, so the fuzzer needs no corpus to get past the magic. Run: build/fuzz/bin/gguf_fuzz -max_total_time=60
#include <cstdint>
#include <cstring>
#include <string>

#include "fuzz/gguf_exercise.h"
#include "unit/tiny_gguf.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int) {
    static const std::string kGood = ember::model::tiny_llama().bytes();
    if ((size < 4 || std::memcmp(data, "GGUF", 4) != 0) && kGood.size() <= max_size) {
        std::memcpy(data, kGood.data(), kGood.size());
        size = kGood.size();
    }
    return LLVMFuzzerMutate(data, size, max_size);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    (void)ember::model::exercise_gguf({reinterpret_cast<const std::byte*>(data), size});
    return 0;
}
