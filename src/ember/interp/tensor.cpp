// Elements, sizes and factories of tensors; see tensor.h. Random ones are made in random.cpp.
#include "ember/interp/tensor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <sstream>

#include "ember/interp/layout.h"
#include "ember/interp/number.h"
#include "ember/support/check.h"

namespace ember::interp {

int64_t Tensor::elements() const {
    return product(shape);
}

namespace {

template <class W>
W element(const Tensor& tensor, int64_t index) {
    check(index >= 0 && index < tensor.elements(), "index of an element");
    return with_stored(tensor.dtype, [&]<class T>(T stored) {
        std::memcpy(&stored, tensor.bytes.data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
        return widened<W>(stored);
    });
}

template <class W>
void set_element(Tensor& tensor, int64_t index, W value) {
    check(index >= 0 && index < tensor.elements(), "index of an element");
    with_stored(tensor.dtype, [&]<class T>(T stored) {
        stored = narrowed<T>(value);
        std::memcpy(tensor.bytes.data() + static_cast<size_t>(index) * sizeof(T), &stored, sizeof(T));
    });
}

}  // namespace

double Tensor::at_double(int64_t index) const {
    return element<double>(*this, index);
}
int64_t Tensor::at_int(int64_t index) const {
    return element<int64_t>(*this, index);
}
std::complex<double> Tensor::at_complex(int64_t index) const {
    return element<std::complex<double>>(*this, index);
}
void Tensor::set(int64_t index, double value) {
    set_element(*this, index, value);
}
void Tensor::set(int64_t index, int64_t value) {
    set_element(*this, index, value);
}
void Tensor::set(int64_t index, std::complex<double> value) {
    set_element(*this, index, value);
}

std::string lengths_to_string(const Lengths& shape) {
    std::string text = "[";
    for (size_t i = 0; i < shape.size(); ++i) {
        text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
    }
    return text + "]";
}

std::string Tensor::to_string(int64_t limit) const {
    std::ostringstream text;
    text << ir::dtype_name(dtype) << lengths_to_string(shape);
    if (ir::is_quantized(dtype) || dtype == ir::DType::kRng) {
        return text.str();
    }
    text << " {";
    text.precision(dtype == ir::DType::kF64 || dtype == ir::DType::kC128 ? 17 : 9);
    for (int64_t i = 0; i < elements(); ++i) {
        text << (i == 0 ? "" : ", ");
        if (i == limit) {
            text << "...";
            break;
        }
        if (ir::is_complex(dtype)) {
            text << at_complex(i);
        } else if (dtype == ir::DType::kU64) {
            text << static_cast<uint64_t>(at_int(i));
        } else if (ir::is_float(dtype)) {
            text << at_double(i);
        } else {
            text << at_int(i);
        }
    }
    text << "}";
    return text.str();
}

Result<int64_t> tensor_bytes(ir::DType dtype, const Lengths& shape) {
    constexpr int64_t kMost = int64_t{1} << 60;
    const ir::DTypeInfo& row = ir::info(dtype);
    std::string name = std::string(ir::dtype_name(dtype)) + lengths_to_string(shape);
    bool empty = false;
    for (int64_t length : shape) {
        if (length < 0) {
            return error(Code::kShape, "negative length in " + name);
        }
        empty = empty || length == 0;
    }
    if (row.block_elements > 1 && (shape.empty() || shape.back() % row.block_elements != 0)) {
        return error(Code::kShape,
                     "the last axis of " + name + " must be a multiple of " + std::to_string(row.block_elements));
    }
    int64_t bytes = row.block_bytes;
    for (size_t i = 0; i < shape.size(); ++i) {
        int64_t length = i + 1 == shape.size() ? shape[i] / row.block_elements : shape[i];
        if (length > kMost / bytes) {
            return error(Code::kShape, name + " is too large");
        }
        bytes *= std::max<int64_t>(length, 1);
    }
    return empty ? 0 : bytes;
}

Status verify(const Tensor& tensor) {
    EMBER_TRY(int64_t bytes, tensor_bytes(tensor.dtype, tensor.shape));
    if (static_cast<uint64_t>(bytes) != tensor.bytes.size()) {
        return error(Code::kInvalidArgument, std::string(ir::dtype_name(tensor.dtype)) +
                                                 lengths_to_string(tensor.shape) + " has " + std::to_string(bytes) +
                                                 " bytes, not " + std::to_string(tensor.bytes.size()));
    }
    return {};
}

Tensor zeros(ir::DType dtype, Lengths shape) {
    Result<int64_t> bytes = tensor_bytes(dtype, shape);
    check(bytes.ok(), bytes.ok() ? "" : bytes.error().message);
    return {dtype, std::move(shape), std::vector<char>(static_cast<size_t>(*bytes))};
}

Tensor from_values(ir::DType dtype, Lengths shape, const std::vector<double>& values) {
    return narrow(dtype, std::move(shape), values);
}
Tensor from_values(ir::DType dtype, Lengths shape, const std::vector<int64_t>& values) {
    return narrow(dtype, std::move(shape), values);
}
Tensor scalar(ir::DType dtype, double value) {
    return from_values(dtype, {}, std::vector<double>{value});
}
Tensor scalar(ir::DType dtype, int64_t value) {
    return from_values(dtype, {}, std::vector<int64_t>{value});
}

Tensor from_literal(const ir::Literal& literal) {
    return {literal.dtype, literal.shape, {literal.bytes.begin(), literal.bytes.end()}};
}

}  // namespace ember::interp
