// The loops of math_loops.cpp, in the order of functions.def: out[i] = f(x[i]) or f(x[i], y[i]).
#pragma once

struct MathLoops {
    void (*f32)(const float* x, const float* y, float* out, unsigned long n);
    void (*f64)(const double* x, const double* y, double* out, unsigned long n);
};

extern "C" {
extern const MathLoops math_loops_base[], math_loops_avx2[], math_loops_avx512[];
}
