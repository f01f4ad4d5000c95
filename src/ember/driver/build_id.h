// Which Ember and which LLVM make the code: fields of every key. The definitions are generated (cmake/build_id.cmake).
#pragma once

#include <string_view>

namespace ember::driver {

/// SHA-256 over every source that decides what code comes out, hexadecimal.
std::string_view build_id();
/// LLVM's version.
std::string_view llvm_id();

}  // namespace ember::driver
