// NumPy's .npy files (format versions 1 to 3), the way arrays enter and leave the command line. Read: C order, little
// endian, the dtypes below; all else is a clear error. Tests: test/unit/npy_test.cpp.
//
//     file   = "\x93NUMPY" major minor header_size header data
//     header = a Python dict in ASCII: {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
//     descr  = ("<" | "|" | "=") ("b1" | "i1" … "i8" | "u1" … "u8" | "f2" | "f4" | "f8" | "c8" | "c16")
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ember/support/result.h"

namespace ember {

struct NpyArray {
    char kind = 'f';  // 'b' bool, 'i', 'u', 'f', 'c': as in descr
    int item_bytes = 4;
    std::vector<int64_t> shape;
    std::string bytes;  // row-major
};

/// `name` is what errors call the file.
Result<NpyArray> parse_npy(std::string_view file, std::string_view name);
std::string format_npy(const NpyArray& array);

Result<NpyArray> read_npy(const std::string& path);
Status write_npy(const std::string& path, const NpyArray& array);

}  // namespace ember
