// Functions of the host that `run` tests may call by host_call, the same ones for every engine.
#pragma once

#include <string_view>

#include "cli/ember_opt/engines.h"

namespace ember::opt {

/// Runs the function `id`; see the table in host_functions.cpp. kUnsupported: there is none of this name.
Result<Tensors> call_host_function(std::string_view id, const Tensors& operands);

}  // namespace ember::opt
