// Row-major index arithmetic; see layout.h.
#include "ember/interp/layout.h"

#include <algorithm>
#include <cstring>

namespace ember::interp {

int64_t product(const Lengths& lengths) {
    int64_t result = 1;
    for (int64_t length : lengths) {
        result *= length;
    }
    return result;
}

Lengths row_major_strides(const Lengths& lengths) {
    Lengths strides(lengths.size(), 1);
    for (size_t i = lengths.size(); i-- > 1;) {
        strides[i - 1] = strides[i] * lengths[i];
    }
    return strides;
}

std::vector<int64_t> offsets(const Lengths& lengths, const Lengths& strides) {
    if (product(lengths) == 0) {
        return {};
    }
    std::vector<int64_t> result{0};
    for (size_t i = 0; i < lengths.size(); ++i) {
        std::vector<int64_t> longer;
        longer.reserve(result.size() * static_cast<size_t>(lengths[i]));
        for (int64_t base : result) {
            for (int64_t k = 0; k < lengths[i]; ++k) {
                longer.push_back(base + k * strides[i]);
            }
        }
        result = std::move(longer);
    }
    return result;
}

Lengths at_axes(const Lengths& list, const std::vector<int64_t>& axes) {
    Lengths result;
    for (int64_t axis : axes) {
        result.push_back(list[static_cast<size_t>(axis)]);
    }
    return result;
}

Lengths without_axes(const Lengths& list, const std::vector<int64_t>& axes) {
    Lengths result;
    for (size_t i = 0; i < list.size(); ++i) {
        if (std::find(axes.begin(), axes.end(), static_cast<int64_t>(i)) == axes.end()) {
            result.push_back(list[i]);
        }
    }
    return result;
}

Tensor pick(const Tensor& tensor, Lengths shape, const std::vector<int64_t>& from) {
    Tensor result{tensor.dtype, std::move(shape), {}};
    auto size = static_cast<size_t>(ir::info(tensor.dtype).block_bytes);
    result.bytes.resize(from.size() * size);
    for (size_t k = 0; k < from.size(); ++k) {
        std::memcpy(result.bytes.data() + k * size, tensor.bytes.data() + static_cast<size_t>(from[k]) * size, size);
    }
    return result;
}

}  // namespace ember::interp
