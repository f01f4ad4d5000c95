// One loop a function of the math bitcode, as generated code has them: compiled by clang once for each instruction set
// that the tests look at (math_test.cmake) and linked with the bitcode, so that the loops inline and vectorise it.
#include "math_loops.h"

#define EMBER_JOIN(a, b, c) a##_##b##_##c
#define EMBER_LOOP_NAME(name, type, isa) EMBER_JOIN(name, type, isa)

#define EMBER_DECLARE_1(name, type, T) extern "C" T ember_##name##_##type(T);
#define EMBER_DECLARE_2(name, type, T) extern "C" T ember_##name##_##type(T, T);
#define EMBER_CALL_1(name, type) ember_##name##_##type(x[i])
#define EMBER_CALL_2(name, type) ember_##name##_##type(x[i], y[i])

#define EMBER_LOOP(name, arity, type, T)                                                                     \
    EMBER_DECLARE_##arity(name, type, T) static void loop_##name##_##type(                                   \
        const T* __restrict x, [[maybe_unused]] const T* __restrict y, T* __restrict out, unsigned long n) { \
        for (unsigned long i = 0; i < n; ++i)                                                                \
            out[i] = EMBER_CALL_##arity(name, type);                                                         \
    }

#define EMBER_MATH(name, arity, low, high, ulp_f32, ulp_f64, shape) \
    EMBER_LOOP(name, arity, f32, float)                             \
    EMBER_LOOP(name, arity, f64, double)
#include "ember/codegen/math/functions.def"

extern "C" const MathLoops EMBER_LOOP_NAME(math, loops, EMBER_ISA)[] = {
#define EMBER_MATH(name, arity, low, high, ulp_f32, ulp_f64, shape) {loop_##name##_f32, loop_##name##_f64},
#include "ember/codegen/math/functions.def"
};
