// The .npy reader and writer. NumPy itself reads and writes them in test/python/test_ember_opt.py.
#include "ember/support/npy.h"

#include <gtest/gtest.h>

namespace ember {
namespace {

std::string file_of(const std::string& header, const std::string& data) {
    std::string file("\x93NUMPY\x01\x00", 8);
    file += static_cast<char>(header.size() & 0xff);
    file += static_cast<char>(header.size() >> 8);
    return file + header + data;
}

std::string problem(const std::string& header, const std::string& data) {
    auto array = parse_npy(file_of(header, data), "a.npy");
    return array.ok() ? "" : array.error().to_string();
}

TEST(Npy, RoundTrip) {
    for (std::vector<int64_t> shape : {std::vector<int64_t>{}, {3}, {2, 3}, {0, 4}}) {
        NpyArray array{'f', 4, shape, {}};
        size_t elements = 1;
        for (int64_t length : shape) {
            elements *= static_cast<size_t>(length);
        }
        array.bytes.assign(elements * 4, 'x');
        std::string file = format_npy(array);
        EXPECT_EQ((file.size() - array.bytes.size()) % 64, 0U);
        auto back = parse_npy(file, "a.npy");
        ASSERT_TRUE(back.ok()) << back.error().to_string();
        EXPECT_EQ(back->shape, shape);
        EXPECT_EQ(back->bytes, array.bytes);
        EXPECT_EQ(back->kind, 'f');
        EXPECT_EQ(back->item_bytes, 4);
    }
}

TEST(Npy, RefusesWhatItCannotRead) {
    EXPECT_EQ(problem("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "12345678"), "");
    EXPECT_EQ(problem("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", "1234567"),
              "a.npy: the .npy file has 7 bytes of data, its header promises 8");
    EXPECT_NE(problem("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", "12345678").find("'>f4'"),
              std::string::npos);
    EXPECT_NE(problem("{'descr': '|O', 'fortran_order': False, 'shape': (2,), }", "").find("'|O'"), std::string::npos);
    EXPECT_NE(problem("{'descr': '<f4', 'fortran_order': True, 'shape': (2,1), }", "12345678").find("Fortran"),
              std::string::npos);
    EXPECT_NE(problem("{'descr': '<f4', 'shape': (2,1), }", "12345678"), "");
    EXPECT_NE(problem("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", ""), "");
    EXPECT_NE(problem("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,4), }", ""), "");
    EXPECT_EQ(problem("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904,4,0), }", ""), "");
    EXPECT_NE(problem("{'descr", ""), "");
    EXPECT_NE(problem("{" + std::string(60000, 'x'), ""), "");
}

TEST(Npy, CutFilesAreErrors) {
    std::string file = format_npy({'i', 8, {4}, std::string(32, '\1')});
    for (size_t size = 0; size < file.size(); ++size) {
        EXPECT_FALSE(parse_npy(std::string_view(file).substr(0, size), "a.npy").ok()) << size;
    }
    EXPECT_NE(read_npy("/nowhere/a.npy").error().to_string().find("/nowhere/a.npy"), std::string::npos);
}

}  // namespace
}  // namespace ember
