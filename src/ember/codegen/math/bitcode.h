// The math library as LLVM bitcode, embedded by ember_embed_bitcode() of cmake/ember_bitcode.cmake.
//
// The module has neither triple nor data layout: set them before linking. Its functions are those of functions.def.
// Link with "only needed", make the linked functions internal and alwaysinline; each is self-contained but for constant
// tables.
// `@ember_math_fma`, where it comes along, is an i8 constant 0: set its initializer to 1 for a target with FMA, before
// optimising, and error-free products take two instructions instead of nine. Results differ in the last place at most.
// TargetOptions::AllowFPOpFusion must be Standard: `Fast` fuses what the error-free sums and products need apart.
#pragma once

#include <cstddef>

extern "C" {
extern const unsigned char ember_math_bitcode[];
extern const std::size_t ember_math_bitcode_size;
}
