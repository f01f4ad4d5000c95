// What is found only by looking at all elements: those that are not 0, the distinct ones, how often numbers occur.
// Each comes as two functions: one says how much there is, so that the artifact can make room, the other one fills it.
#include <algorithm>
#include <cstring>

#include "runtime/element.h"
#include "runtime/functions.h"

namespace ember::runtime {
namespace {

/// The slices of x[length, width], compared element by element.
template <class T>
struct Slices {
    const T* x;
    int64_t width;
    bool same_nans;  // does NaN equal NaN?

    bool less(int64_t i, int64_t j) const {
        for (int64_t k = 0; k < width; ++k) {
            auto a = key_of(x[i * width + k]);
            auto b = key_of(x[j * width + k]);
            if (a != b) {
                return a < b;
            }
        }
        return false;
    }

    bool same(int64_t i, int64_t j) const {
        for (int64_t k = 0; k < width; ++k) {
            T a = x[i * width + k];
            if (key_of(a) != key_of(x[j * width + k]) || (!same_nans && is_nan(a))) {
                return false;
            }
        }
        return true;
    }
};

template <class T>
bool is_nonzero(T x) {
    return key_of(x) != key_of(T{});
}

/// 1 more than the largest element, 0 without elements, -2 for a negative one. Nothing has so many bins as to overflow.
template <class T>
int64_t bins_of(const T* x, int64_t length) {
    int64_t bins = 0;
    for (int64_t i = 0; i < length; ++i) {
        if constexpr (std::is_signed_v<T>) {
            if (x[i] < 0) {
                return -2;
            }
        }
        auto value = static_cast<uint64_t>(x[i]);
        bins = std::max(bins, static_cast<int64_t>(std::min(value, uint64_t{1} << 56)) + 1);
    }
    return bins;
}

/// Calls f with a value of an integer type.
template <class F>
auto with_integer(int64_t type, F f) {
    return with_element(type, [&]<class T>(T x) {
        if constexpr (std::is_integral_v<T>) {
            return f(x);
        } else {
            return f(int64_t{});  // inference takes integers only
        }
    });
}

}  // namespace

namespace functions {

int64_t count_nonzero(const EmberSlot* a) {
    return with_element(a[0].number, [&]<class T>(T) {
        const auto* x = static_cast<const T*>(a[2].pointer);
        int64_t count = 0;
        for (int64_t i = 0; i < a[1].number; ++i) {
            count += is_nonzero(x[i]) ? 1 : 0;
        }
        return count;
    });
}

int64_t find_nonzero(const EmberSlot* a) {
    auto* positions = static_cast<int64_t*>(a[3].pointer);
    with_element(a[0].number, [&]<class T>(T) {
        const auto* x = static_cast<const T*>(a[2].pointer);
        for (int64_t i = 0; i < a[1].number; ++i) {
            if (is_nonzero(x[i])) {
                *positions++ = i;
            }
        }
    });
    return 0;
}

int64_t unique_order(const EmberSlot* a) {
    int64_t length = a[2].number;
    int64_t width = a[3].number;
    auto* order = static_cast<int64_t*>(a[5].pointer);
    if (width == 1) {
        EmberSlot sort[9] = {a[0], {0}, {1}, {length}, {1}, {length}, a[4], {0}, a[5]};
        sort[7].pointer = nullptr;
        if (sort_rows(sort) == kFunctionOutOfMemory) {
            return kFunctionOutOfMemory;
        }
    }
    return with_element(a[0].number, [&]<class T>(T) {
        Slices<T> slices{static_cast<const T*>(a[4].pointer), width, a[1].number != 0};
        if (width != 1) {
            for (int64_t i = 0; i < length; ++i) {
                order[i] = i;
            }
            std::stable_sort(order, order + length, [&](int64_t i, int64_t j) { return slices.less(i, j); });
        }
        int64_t count = length > 0 ? 1 : 0;
        for (int64_t i = 1; i < length; ++i) {
            count += slices.same(order[i - 1], order[i]) ? 0 : 1;
        }
        return count;
    });
}

int64_t unique_slices(const EmberSlot* a) {
    int64_t length = a[2].number;
    int64_t width = a[3].number;
    const auto* order = static_cast<const int64_t*>(a[5].pointer);
    auto* first = static_cast<int64_t*>(a[7].pointer);
    auto* inverse = static_cast<int64_t*>(a[8].pointer);
    auto* counts = static_cast<int64_t*>(a[9].pointer);
    with_element(a[0].number, [&]<class T>(T) {
        Slices<T> slices{static_cast<const T*>(a[4].pointer), width, a[1].number != 0};
        auto* values = static_cast<T*>(a[6].pointer);
        int64_t at = -1;
        for (int64_t i = 0; i < length; ++i) {
            if (i == 0 || !slices.same(order[i - 1], order[i])) {
                ++at;
                first[at] = order[i];
                counts[at] = 0;
                std::copy_n(slices.x + order[i] * width, width, values + at * width);
            }
            ++counts[at];
            inverse[order[i]] = at;
        }
    });
    return 0;
}

int64_t bincount_length(const EmberSlot* a) {
    return with_integer(a[0].number, [&]<class T>(T) {
        int64_t bins = bins_of(static_cast<const T*>(a[2].pointer), a[1].number);
        return bins < 0 ? bins : std::max(bins, a[3].number);
    });
}

int64_t bincount(const EmberSlot* a) {
    const auto* weights = static_cast<const double*>(a[3].pointer);
    int64_t bins = a[4].number;
    std::memset(a[5].pointer, 0, static_cast<size_t>(bins) * 8);
    with_integer(a[0].number, [&]<class T>(T) {
        const auto* x = static_cast<const T*>(a[2].pointer);
        auto* counts = static_cast<int64_t*>(a[5].pointer);
        auto* sums = static_cast<double*>(a[5].pointer);
        for (int64_t i = 0; i < a[1].number; ++i) {
            if (weights == nullptr) {
                ++counts[x[i]];
            } else {
                sums[x[i]] += weights[i];
            }
        }
    });
    return 0;
}

}  // namespace functions
}  // namespace ember::runtime
