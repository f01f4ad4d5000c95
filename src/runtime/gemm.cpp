// How a product is carried out: `normalize` turns it into a plain form, `choose_method` picks a kernel from its shape,
// and `multiply` cuts C into blocks that threads compute with no common state but the operands. What an element's sum
// looks like is settled by the method and kStepsPerPass alone, never by how C was cut.
#include "runtime/gemm.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/kernels.h"
#include "runtime/scratch.h"
#include "runtime/thread_pool.h"

namespace ember::runtime {
namespace {

// Steps of k between two updates of a tile of C: a packed panel of each operand stays in the caches.
constexpr int64_t kStepsPerPass = 384;
// Packed blocks: rows of A in the second-level cache with the columns of B that they meet.
constexpr int64_t kPackedRows = 144;
constexpr int64_t kPackedBytesOfB = int64_t{1} << 20;
// Up to this many rows a product is limited by reading B, which is then read in place.
constexpr int64_t kFewRows = 16;
// A longer sum for few elements of C is cut into slices of this many steps, each a product of its own.
constexpr int64_t kSliceSteps = 16384;
constexpr int64_t kMaxSlices = 64;
constexpr int64_t kSlicedElements = 1024;
// A range of work worth handing to another thread, and the least total worth sharing.
constexpr double kRangeNanoseconds = 2500;
constexpr double kSharedNanoseconds = 7000;

template <class T>
struct Product {
    int64_t m, n, k;
    int64_t a_m, a_k, b_k, b_n, c_m, c_n;
    const T* a;
    const T* b;
    T* c;
};

struct Batch {
    int rank = 0;
    int64_t count = 1;
    int64_t extent[kMaxBatchRank], a[kMaxBatchRank], b[kMaxBatchRank], c[kMaxBatchRank];
};

template <class T>
void swap_operands(Product<T>& p) {
    std::swap(p.m, p.n);
    std::swap(p.a, p.b);
    std::swap(p.a_m, p.b_n);
    std::swap(p.a_k, p.b_k);
    std::swap(p.c_m, p.c_n);
}

// ---- batches ----

// Extents of one are dropped and neighbours that are one dimension in all three operands are joined.
Batch collapse_batch(const GemmArgs& args) {
    Batch batch;
    for (int d = 0; d < args.batch_rank; ++d) {
        const int64_t extent = args.batch[d];
        batch.count *= extent;
        if (extent == 1) {
            continue;
        }
        const int last = batch.rank - 1;
        if (last >= 0 && batch.a[last] == extent * args.a_batch[d] && batch.b[last] == extent * args.b_batch[d] &&
            batch.c[last] == extent * args.c_batch[d]) {
            batch.extent[last] *= extent;
        } else {
            batch.extent[++batch.rank - 1] = extent;
        }
        batch.a[batch.rank - 1] = args.a_batch[d];
        batch.b[batch.rank - 1] = args.b_batch[d];
        batch.c[batch.rank - 1] = args.c_batch[d];
    }
    return batch;
}

// The innermost batch dimension becomes rows (columns) where the other operand does not depend on it.
template <class T>
void join_batch_with_rows(Product<T>& p, Batch& batch) {
    if (batch.rank == 0) {
        return;
    }
    const int last = batch.rank - 1;
    const auto joins = [&](int64_t extent, int64_t stride, int64_t batch_stride) {
        return batch_stride == extent * stride;
    };
    if (batch.b[last] == 0 && joins(p.m, p.a_m, batch.a[last]) && joins(p.m, p.c_m, batch.c[last])) {
        p.m *= batch.extent[last];
    } else if (batch.a[last] == 0 && joins(p.n, p.b_n, batch.b[last]) && joins(p.n, p.c_n, batch.c[last])) {
        p.n *= batch.extent[last];
    } else {
        return;
    }
    batch.count /= batch.extent[last];
    batch.rank -= 1;
}

template <class T>
Product<T> product_at(const Product<T>& first, const Batch& batch, int64_t index) {
    Product<T> p = first;
    for (int d = batch.rank - 1; d >= 0; --d) {
        const int64_t i = index % batch.extent[d];
        index /= batch.extent[d];
        p.a += i * batch.a[d];
        p.b += i * batch.b[d];
        p.c += i * batch.c[d];
    }
    return p;
}

// ---- methods ----

enum class Method {
    kDot,     // both operands read along k
    kDirect,  // rows of B read in place
    kPacked,  // blocks of both operands copied into the order they are used in
};

template <class T>
Method choose_method(const Product<T>& p) {
    constexpr int64_t kCacheLine = 64 / sizeof(T);
    constexpr int64_t kSmallOperand = (64 << 10) / sizeof(T);
    const bool few = p.m <= kFewRows;
    if (p.b_k == 1 && p.k >= kCacheLine && (few || (p.a_k == 1 && p.m * p.k <= kSmallOperand))) {
        return Method::kDot;
    }
    if (p.b_n == 1 && (few || p.k * p.n <= kSmallOperand)) {
        return Method::kDirect;
    }
    return Method::kPacked;
}

// The operand with few rows comes first; otherwise C is walked along its contiguous side.
template <class T>
void normalize(Product<T>& p, Batch& batch) {
    const bool few_columns = p.n <= kFewRows && p.n < p.m;
    const bool few_rows = p.m <= kFewRows && p.m < p.n;
    const bool by_columns = p.c_m == 1 && p.c_n != 1;
    if (few_columns || (by_columns && !few_rows)) {
        swap_operands(p);
        std::swap(batch.a, batch.b);
    }
}

// Only for want of memory.
template <class T>
void multiply_plainly(const Product<T>& p) {
    for (int64_t i = 0; i < p.m; ++i) {
        for (int64_t j = 0; j < p.n; ++j) {
            T sum = 0;
            for (int64_t l = 0; l < p.k; ++l) {
                sum += p.a[i * p.a_m + l * p.a_k] * p.b[l * p.b_k + j * p.b_n];
            }
            p.c[i * p.c_m + j * p.c_n] = sum;
        }
    }
}

int64_t round_up(int64_t n, int64_t multiple) {
    return (n + multiple - 1) / multiple * multiple;
}

template <class T>
void multiply_dot(const Product<T>& p, Scratch& scratch) {
    const GemmKernels<T>& kernel = gemm_kernels<T>();
    if (p.a_k == 1) {
        return kernel.dot(p.m, p.n, p.k, p.a, p.a_m, p.b, p.b_n, p.c, p.c_m, p.c_n);
    }
    T* rows = scratch.reserve<T>(p.m * p.k);
    if (rows == nullptr) {
        return multiply_plainly(p);
    }
    for (int64_t i = 0; i < p.m; ++i) {
        for (int64_t l = 0; l < p.k; ++l) {
            rows[i * p.k + l] = p.a[i * p.a_m + l * p.a_k];
        }
    }
    kernel.dot(p.m, p.n, p.k, rows, p.k, p.b, p.b_n, p.c, p.c_m, p.c_n);
}

template <class T>
void multiply_direct(const Product<T>& p, Scratch& scratch) {
    const GemmKernels<T>& kernel = gemm_kernels<T>();
    const int64_t most_steps = std::min(p.k, kStepsPerPass);
    T* a = scratch.reserve<T>(round_up(p.m, kernel.panel_rows) * most_steps + kernel.lanes);
    if (a == nullptr) {
        return multiply_plainly(p);
    }
    for (int64_t l = 0; l < p.k; l += kStepsPerPass) {
        const int64_t steps = std::min(kStepsPerPass, p.k - l);
        kernel.pack_a(p.m, steps, p.a + l * p.a_k, p.a_m, p.a_k, a);
        kernel.direct(p.m, p.n, steps, a, p.b + l * p.b_k, p.b_k, p.c, p.c_m, p.c_n, l > 0);
    }
}

template <class T>
void multiply_packed(const Product<T>& p, Scratch& scratch) {
    const GemmKernels<T>& kernel = gemm_kernels<T>();
    const int64_t most_steps = std::min(p.k, kStepsPerPass);
    const int64_t most_rows = std::min(round_up(p.m, kernel.panel_rows), kPackedRows);
    const int64_t columns_at_once =
        kPackedBytesOfB / int64_t{sizeof(T)} / kStepsPerPass / kernel.panel_cols * kernel.panel_cols;
    const int64_t most_columns = std::min(round_up(p.n, kernel.panel_cols), columns_at_once);
    const int64_t a_size = round_up(most_rows * most_steps + kernel.lanes, kernel.lanes);
    T* a = scratch.reserve<T>(a_size + most_columns * most_steps + kernel.lanes);
    if (a == nullptr) {
        return multiply_plainly(p);
    }
    T* b = a + a_size;
    for (int64_t j = 0; j < p.n; j += most_columns) {
        const int64_t columns = std::min(most_columns, p.n - j);
        for (int64_t l = 0; l < p.k; l += kStepsPerPass) {
            const int64_t steps = std::min(kStepsPerPass, p.k - l);
            kernel.pack_b(columns, steps, p.b + l * p.b_k + j * p.b_n, p.b_n, p.b_k, b);
            for (int64_t i = 0; i < p.m; i += most_rows) {
                const int64_t rows = std::min(most_rows, p.m - i);
                kernel.pack_a(rows, steps, p.a + i * p.a_m + l * p.a_k, p.a_m, p.a_k, a);
                kernel.packed(rows, columns, steps, a, b, p.c + i * p.c_m + j * p.c_n, p.c_m, p.c_n, l > 0);
            }
        }
    }
}

template <class T>
void multiply_block(Method method, const Product<T>& p) {
    static thread_local Scratch scratch;
    switch (method) {
        case Method::kDot:
            return multiply_dot(p, scratch);
        case Method::kDirect:
            return multiply_direct(p, scratch);
        case Method::kPacked:
            return multiply_packed(p, scratch);
    }
}

// ---- threads ----

template <class T>
double nanoseconds(const Product<T>& p) {
    const double m = static_cast<double>(p.m), n = static_cast<double>(p.n), k = static_cast<double>(p.k);
    constexpr double kMultiplications = 160.0 / sizeof(T);  // a nanosecond
    constexpr double kBytes = 15;
    return m * n * k / kMultiplications + (m * k + n * k + m * n) * sizeof(T) / kBytes;
}

/// C cut into blocks of rows × columns, every batch index alike.
struct Grid {
    int64_t rows, columns;  // of a block
    int64_t down, across;   // blocks
    int64_t grain;          // blocks a range
};

int64_t blocks_of(int64_t extent, int64_t block) {
    return (extent + block - 1) / block;
}

template <class T>
Grid make_grid(Method method, const Product<T>& p, int64_t batch) {
    const GemmKernels<T>& kernel = gemm_kernels<T>();
    const double one = nanoseconds(p);
    const double all = one * static_cast<double>(batch);
    Grid grid = {p.m, p.n, 1, 1, 1};
    if (thread_count() > 1 && all >= kSharedNanoseconds && batch < 4 * thread_count()) {
        const double ranges = std::min(all / kRangeNanoseconds, 8.0 * thread_count());
        const double pieces = std::max(1.0, ranges / static_cast<double>(batch));
        const int64_t column_unit = method == Method::kDot ? kernel.dot_columns : kernel.panel_cols;
        double down = 1;
        if (method == Method::kPacked) {  // as square as the shape of C lets them be
            down = std::clamp(std::sqrt(pieces * static_cast<double>(p.m) / static_cast<double>(p.n)), 1.0, pieces);
        }
        const double across = std::max(1.0, pieces / down);
        grid.rows =
            std::min(p.m, round_up(static_cast<int64_t>(static_cast<double>(p.m) / down) + 1, kernel.panel_rows));
        grid.columns =
            std::min(p.n, round_up(static_cast<int64_t>(static_cast<double>(p.n) / across) + 1, column_unit));
        grid.down = blocks_of(p.m, grid.rows);
        grid.across = blocks_of(p.n, grid.columns);
    }
    const double block = one / static_cast<double>(grid.down * grid.across);
    grid.grain = all < kSharedNanoseconds ? std::numeric_limits<int64_t>::max()
                                          : static_cast<int64_t>(std::max(1.0, kRangeNanoseconds / block));
    return grid;
}

template <class T>
void multiply(const Product<T>& first, const Batch& batch) {
    const Method method = choose_method(first);
    const Grid grid = make_grid(method, first, batch.count);
    const int64_t blocks = grid.down * grid.across;
    parallel_for(batch.count * blocks, grid.grain, [&](int64_t begin, int64_t end) {
        for (int64_t unit = begin; unit < end; ++unit) {
            Product<T> p = product_at(first, batch, unit / blocks);
            const int64_t i = unit % blocks / grid.across * grid.rows;
            const int64_t j = unit % blocks % grid.across * grid.columns;
            p.m = std::min(grid.rows, p.m - i);
            p.n = std::min(grid.columns, p.n - j);
            p.a += i * p.a_m;
            p.b += j * p.b_n;
            p.c += i * p.c_m + j * p.c_n;
            multiply_block(method, p);
        }
    });
}

// ---- few elements, long sums ----

template <class T>
void add_slices(const Product<T>& p, const T* partial, int64_t slices) {
    for (int64_t i = 0; i < p.m; ++i) {
        for (int64_t j = 0; j < p.n; ++j) {
            T sum = 0;
            for (int64_t s = 0; s < slices; ++s) {
                sum += partial[(s * p.m + i) * p.n + j];
            }
            p.c[i * p.c_m + j * p.c_n] = sum;
        }
    }
}

// The slices are a batch whose results lie in scratch memory and are added up in order.
template <class T>
bool multiply_in_slices(const Product<T>& p) {
    static thread_local Scratch scratch;
    const int64_t steps = round_up(std::max(kSliceSteps, p.k / kMaxSlices), 64);
    const int64_t slices = p.k / steps;
    const int64_t rest = p.k % steps;
    T* partial = scratch.reserve<T>((slices + 1) * p.m * p.n);
    if (partial == nullptr) {
        return false;
    }
    Product<T> slice = p;
    slice.k = steps;
    slice.c = partial;
    slice.c_m = p.n;
    slice.c_n = 1;
    const Batch batch = {1, slices, {slices}, {steps * p.a_k}, {steps * p.b_k}, {p.m * p.n}};
    multiply(slice, batch);
    if (rest > 0) {
        slice.k = rest;
        slice.a += slices * steps * p.a_k;
        slice.b += slices * steps * p.b_k;
        slice.c += slices * p.m * p.n;
        multiply(slice, Batch{});
    }
    add_slices(p, partial, slices + (rest > 0 ? 1 : 0));
    return true;
}

template <class T>
void fill_zero(const Product<T>& first, const Batch& batch) {
    for (int64_t index = 0; index < batch.count; ++index) {
        const Product<T> p = product_at(first, batch, index);
        for (int64_t i = 0; i < p.m; ++i) {
            for (int64_t j = 0; j < p.n; ++j) {
                p.c[i * p.c_m + j * p.c_n] = 0;
            }
        }
    }
}

template <class T>
void gemm(const GemmArgs& args) {
    Product<T> p = {args.m,
                    args.n,
                    args.k,
                    args.a_m,
                    args.a_k,
                    args.b_k,
                    args.b_n,
                    args.c_m,
                    args.c_n,
                    static_cast<const T*>(args.a),
                    static_cast<const T*>(args.b),
                    static_cast<T*>(args.c)};
    Batch batch = collapse_batch(args);
    if (p.m <= 0 || p.n <= 0 || batch.count <= 0) {
        return;
    }
    if (p.k <= 0) {
        return fill_zero(p, batch);
    }
    join_batch_with_rows(p, batch);
    normalize(p, batch);
    const bool few_elements = batch.count == 1 && p.m * p.n <= kSlicedElements;
    if (few_elements && p.k >= 2 * kSliceSteps && multiply_in_slices(p)) {
        return;
    }
    multiply(p, batch);
}

}  // namespace

void gemm_f32(const GemmArgs& args) {
    gemm<float>(args);
}
void gemm_f64(const GemmArgs& args) {
    gemm<double>(args);
}

}  // namespace ember::runtime
