// Scalar functions that the C++ library lacks, in long double. Right to well below an ulp of f64.
// Tests: test/unit/interp_test.cpp, test/python/test_numpy_oracle.py.
#pragma once

namespace ember::interp {

long double sigmoid(long double x);
long double softplus(long double x);
long double logaddexp(long double x, long double y);
long double erfinv(long double x);
/// Inverse of erfc: infinity at 0, -infinity at 2.
long double erfcinv(long double x);
/// -infinity at 0, infinity at -0, NaN at the negative integers.
long double digamma(long double x);

}  // namespace ember::interp
