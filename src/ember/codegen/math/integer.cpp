// Integer powers, as NumPy has them but for negative exponents, which give 0 unless the base is 1 or -1.
// Tests: test/filetests/run, test/python/test_numpy_oracle.py.
extern "C" {

unsigned long long ember_pow_u64(unsigned long long x, unsigned long long y) {
    unsigned long long result = 1;
    for (; y != 0; y >>= 1) {
        result *= (y & 1) != 0 ? x : 1;
        x *= x;
    }
    return result;
}

long long ember_pow_i64(long long x, long long y) {
    if (y < 0) {
        return x == 1 ? 1 : x == -1 ? ((y & 1) != 0 ? -1 : 1) : 0;
    }
    return static_cast<long long>(
        ember_pow_u64(static_cast<unsigned long long>(x), static_cast<unsigned long long>(y)));
}

}  // extern "C"
