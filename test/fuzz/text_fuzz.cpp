// libFuzzer: any bytes as graph text: an error with a place, or a module that survives printing and reading. Every
// other mutation puts in a word of the grammar; a short input is replaced by a good text, so the fuzzer needs no
// corpus. Run: build/fuzz/bin/text_fuzz -max_total_time=60
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "ember/ir/op.h"
#include "ember/text/parse.h"
#include "ember/text/print.h"

namespace ember::text {
namespace {

constexpr std::string_view kGood = R"(func @f(%0: f32[n,64], shared %1: f32[64,64], %2: bool[], %3: i64[]) {
  %4 = dot_general(%0, %1) {contract=[1,0]} : f32[n,64]
  %5 = const() {value=[1.5,nan]} : f32[2]
  %6, %7 = loop(%3, %4) {carried=1} do (%8: i64[], %9: f32[n,64]) {
    %10 = call(%9) {callee="g"} : f32[n,64]
    return %10, %8
  } : f32[n,64], i64[k]
  %11 = if(%2, %6) then (%12: f32[n,64]) { return %12 } else (%13: f32[n,64]) { %14 = exp(%13) return %14 }
  %15 = slice(%11, %3, %3) {axis=1, step=-2}
  return %15, %1 -> %1
}
func @g(%0: f32[m,64]) {
  %1 = is_nan(%0)
  %2 = assert(%0, %1) {message="no\n"} : f32[m,64]
  return %2
}
)";

void require(bool condition) {
    if (!condition) {
        std::abort();
    }
}

void try_text(std::string_view text) {
    auto module = parse(text, "fuzz");
    if (!module.ok()) {
        require(module.error().where.starts_with("fuzz:") && !module.error().message.empty());
        return;
    }
    std::string printed = print(*module);
    auto again = parse(printed, "printed");
    require(again.ok() && print(*again) == printed);
    std::string canonical = canonical_text(*module);
    again = parse(canonical, "canonical");
    require(again.ok() && canonical_text(*again) == canonical && print(*again) == canonical);
}

const std::vector<std::string>& words() {
    static const auto* kWords = [] {
        auto* list = new std::vector<std::string>{"func @",
                                                  "return ",
                                                  " then (",
                                                  " else (",
                                                  " do (",
                                                  "shared ",
                                                  "bound ",
                                                  "f32[n]",
                                                  "i64[]",
                                                  "bool[]",
                                                  "q8_0[32]",
                                                  "c64[]",
                                                  "{axis=0}",
                                                  "{axes=[0]}",
                                                  "{value=",
                                                  "\"",
                                                  "%0",
                                                  "%1",
                                                  "%2",
                                                  " -> ",
                                                  " : ",
                                                  "9223372036854775807",
                                                  "%n = const() {value=1} : i64[] ",
                                                  "carried=1",
                                                  "while=1"};
        for (const ir::OpInfo& row : ir::kOps) {
            list->push_back(std::string(row.name) + "(");
        }
        return list;
    }();
    return *kWords;
}

}  // namespace
}  // namespace ember::text

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned int seed) {
    std::string_view good = ember::text::kGood;
    if (size < 16 && good.size() <= max_size) {
        std::memcpy(data, good.data(), good.size());
        size = good.size();
    }
    const std::string& word = ember::text::words()[seed / 2 % ember::text::words().size()];
    if (seed % 2 == 0 || size + word.size() > max_size) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    size_t at = seed / 2 / ember::text::words().size() % (size + 1);
    std::memmove(data + at + word.size(), data + at, size - at);
    std::memcpy(data + at, word.data(), word.size());
    return size + word.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
    ember::text::try_text({reinterpret_cast<const char*>(bytes), size});
    return 0;
}
