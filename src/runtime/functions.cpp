// The table of the functions that artifacts call by number: see functions.def.
#include "runtime/functions.h"

namespace ember::runtime {
namespace {

constexpr int64_t (*kFunctions[])(const EmberSlot*) = {
#define EMBER_FUNCTION(name, arguments, summary) functions::name,
#include "runtime/functions.def"
#undef EMBER_FUNCTION
};

}  // namespace

int64_t call_function(int32_t number, const EmberSlot* arguments) {
    return kFunctions[number](arguments);
}

}  // namespace ember::runtime
