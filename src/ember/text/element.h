// Elements of literals as text: decimal numbers that read back to the same bits. Floats are the shortest such decimals;
// "nan" is the quiet NaN without payload, other NaNs are their bits in hexadecimal; complex numbers are (re,im).
// Tests: test/unit/text_test.cpp.
#pragma once

#include <string>
#include <string_view>

#include "ember/ir/dtype.h"

namespace ember::text {

void append_number(std::string& out, int64_t value);
/// One element, read from its bytes. Not for quantised types and generator states.
void append_element(std::string& out, ir::DType dtype, const char* bytes);

/// Appends the bytes of a real element to `bytes`; false where the text is no number that the dtype can hold.
bool parse_element(std::string_view text, ir::DType dtype, std::string& bytes);

/// The real dtype of the two parts of a complex one.
ir::DType part_dtype(ir::DType complex);

/// In double quotes, with escapes: \" \\ \n \t \r, and \xNN for other control characters and for what is not UTF-8.
void append_quoted(std::string& out, std::string_view text);

}  // namespace ember::text
