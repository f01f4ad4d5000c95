// Functions of the runtime that artifacts call by number: see functions.def. The compiler knows them by name.
// Tests: test/unit/sort_test.cpp.
#pragma once

#include <cstdint>
#include <iterator>
#include <string_view>

#include "runtime/artifact_abi.h"

namespace ember::runtime {

/// What any function gives where memory is out.
inline constexpr int64_t kFunctionOutOfMemory = -1;

inline constexpr std::string_view kFunctionNames[] = {
#define EMBER_FUNCTION(name, arguments, summary) #name,
#include "runtime/functions.def"
#undef EMBER_FUNCTION
};

/// The number of the function of this name; -1: there is none.
constexpr int32_t function_number(std::string_view name) {
    for (size_t i = 0; i < std::size(kFunctionNames); ++i) {
        if (kFunctionNames[i] == name) {
            return static_cast<int32_t>(i);
        }
    }
    return -1;
}

/// Runs a function; the table's `call`.
int64_t call_function(int32_t number, const EmberSlot* arguments);

namespace functions {
#define EMBER_FUNCTION(name, arguments, summary) int64_t name(const EmberSlot* a);
#include "runtime/functions.def"
#undef EMBER_FUNCTION
}  // namespace functions

}  // namespace ember::runtime
