// Conversions between host numbers and the bytes of literals; bit-exact for every dtype that has elements.
#pragma once

#include <cstdint>
#include <string>

#include "ember/ir/dtype.h"

namespace ember::ir {

/// IEEE half and bfloat16, round to nearest even.
uint16_t f16_bits(float value);
float f16_value(uint16_t bits);
uint16_t bf16_bits(float value);
float bf16_value(uint16_t bits);

/// Appends one element of a real dtype.
void append_element(std::string& bytes, DType dtype, double value);
void append_element(std::string& bytes, DType dtype, int64_t value);
double element_as_double(const char* bytes, DType dtype);
int64_t element_as_int(const char* bytes, DType dtype);

}  // namespace ember::ir
