// Register-tiled kernels of the matrix product, for the vectors of vec.h. Included by kernels_<isa>.cpp only.
//   tile   R rows of packed A times V vectors of columns of B: R*V running sums, one broadcast and V loads a step
//   dot    R rows of B times Q rows of A, both contiguous: R*Q running vectors, their lanes added up at the end
// Tests: test/unit/runtime_test.cpp.
#pragma once

#include "runtime/kernels.h"
#include "runtime/vec.h"

namespace ember::runtime {
namespace {

// 24 running sums in 32 registers, 12 in 16.
constexpr int kTileRows = kVecRegisters == 32 ? 8 : 4;
constexpr int kTileVecs = 3;
// A product with one or two rows has registers for more columns, and longer runs of each row of B.
constexpr int kWideVecs1 = 8;
constexpr int kWideVecs2 = kVecRegisters == 32 ? 8 : 6;

template <class T>
struct Tile {
    int64_t k;
    const T* a;  // packed: kTileRows elements a step
    const T* b;
    int64_t b_k;
    T* c;
    int64_t c_m, c_n;
    int rows;  // to store, <= R
    int cols;  // to store, in the last of the V vectors alone; the ones before are full
    bool add;
};

enum class LastVec { kFull, kPartial };

template <class T, int V>
EMBER_INLINE void store_strided(const Vec<T>* sums, const Tile<T>& t, T* c) {
    T row[V * kLanes<T>];
    __builtin_memcpy(row, sums, sizeof row);
    for (int j = 0; j < (V - 1) * kLanes<T> + t.cols; ++j) {
        T& place = c[j * t.c_n];
        place = t.add ? place + row[j] : row[j];
    }
}

template <class T, int V>
EMBER_INLINE void store_row(Vec<T>* sums, const Tile<T>& t, T* c) {
    if (t.c_n != 1) {
        return store_strided<T, V>(sums, t, c);
    }
    EMBER_UNROLL
    for (int v = 0; v < V; ++v) {
        T* to = c + v * kLanes<T>;
        if (v + 1 < V || t.cols == kLanes<T>) {
            store<T>(to, t.add ? load(to) + sums[v] : sums[v]);
        } else {
            store_first(to, t.add ? load_first(to, t.cols) + sums[v] : sums[v], t.cols);
        }
    }
}

template <class T, int R, int V, LastVec last>
void tile(const Tile<T>& t) {
    constexpr int64_t kPrefetchSteps = 8;
    Vec<T> sums[R][V] = {};
    const T* a = t.a;
    const T* b = t.b;
    for (int64_t l = 0; l < t.k; ++l) {
        Vec<T> columns[V];
        EMBER_UNROLL
        for (int v = 0; v < V; ++v) {
            const T* from = b + v * kLanes<T>;
            columns[v] = v + 1 == V && last == LastVec::kPartial ? load_first(from, t.cols) : load(from);
            __builtin_prefetch(from + kPrefetchSteps * t.b_k);
        }
        EMBER_UNROLL
        for (int r = 0; r < R; ++r) {
            EMBER_UNROLL
            for (int v = 0; v < V; ++v) {
                sums[r][v] += a[r] * columns[v];
            }
        }
        a += kTileRows;
        b += t.b_k;
    }
    EMBER_UNROLL
    for (int r = 0; r < R; ++r) {
        if (r < t.rows) {
            store_row<T, V>(sums[r], t, t.c + r * t.c_m);
        }
    }
}

template <class T, int R>
void tile_columns(const Tile<T>& t, int vecs) {
    const bool full = t.cols == kLanes<T>;
    switch (vecs) {
        case 1:
            return full ? tile<T, R, 1, LastVec::kFull>(t) : tile<T, R, 1, LastVec::kPartial>(t);
        case 2:
            return full ? tile<T, R, 2, LastVec::kFull>(t) : tile<T, R, 2, LastVec::kPartial>(t);
        default:
            return full ? tile<T, R, 3, LastVec::kFull>(t) : tile<T, R, 3, LastVec::kPartial>(t);
    }
}

template <class T>
void tile_rows(const Tile<T>& t, int vecs) {
    if (t.rows == 1) {
        tile_columns<T, 1>(t, vecs);
    } else if (t.rows == 2) {
        tile_columns<T, 2>(t, vecs);
    } else if (t.rows <= 4) {
        tile_columns<T, 4>(t, vecs);
    } else if (kTileRows > 4 && t.rows <= 6) {
        tile_columns<T, kTileRows <= 4 ? 4 : 6>(t, vecs);
    } else {
        tile_columns<T, kTileRows>(t, vecs);
    }
}

/// All rows against the columns [j, j + width) of c; width is at most a panel.
template <class T>
EMBER_INLINE void panel_of_columns(Tile<T> t, int64_t m, int64_t width) {
    const int vecs = static_cast<int>((width + kLanes<T> - 1) / kLanes<T>);
    t.cols = static_cast<int>(width - (vecs - 1) * kLanes<T>);
    for (int64_t i = 0; i < m; i += kTileRows) {
        t.rows = static_cast<int>(m - i < kTileRows ? m - i : kTileRows);
        tile_rows(t, vecs);
        t.a += kTileRows * t.k;
        t.c += kTileRows * t.c_m;
    }
}

template <class T>
void packed(int64_t m, int64_t n, int64_t k, const T* a, const T* b, T* c, int64_t c_m, int64_t c_n, bool add) {
    constexpr int64_t kCols = kTileVecs * kLanes<T>;
    for (int64_t j = 0; j < n; j += kCols) {
        const Tile<T> t = {k, a, b + j * k, kCols, c + j * c_n, c_m, c_n, 0, 0, add};
        panel_of_columns(t, m, n - j < kCols ? n - j : kCols);
    }
}

template <class T>
void direct(int64_t m, int64_t n, int64_t k, const T* a, const T* b, int64_t b_k, T* c, int64_t c_m, int64_t c_n,
            bool add) {
    int64_t j = 0;
    if (m <= 2) {
        const int64_t wide = (m == 1 ? kWideVecs1 : kWideVecs2) * kLanes<T>;
        for (; n - j >= wide; j += wide) {
            const Tile<T> t = {k, a, b + j, b_k, c + j * c_n, c_m, c_n, static_cast<int>(m), kLanes<T>, add};
            m == 1 ? tile<T, 1, kWideVecs1, LastVec::kFull>(t) : tile<T, 2, kWideVecs2, LastVec::kFull>(t);
        }
    }
    constexpr int64_t kCols = kTileVecs * kLanes<T>;
    for (; j < n; j += kCols) {
        const Tile<T> t = {k, a, b + j, b_k, c + j * c_n, c_m, c_n, 0, 0, add};
        panel_of_columns(t, m, n - j < kCols ? n - j : kCols);
    }
}

// ---- packing ----

template <class T, int P>
EMBER_INLINE void pack_any(int64_t rows, int64_t k, const T* from, int64_t stride, int64_t stride_k, T* to) {
    for (int64_t l = 0; l < k; ++l) {
        for (int64_t i = 0; i < rows; ++i) {
            to[l * P + i] = from[i * stride + l * stride_k];
        }
        for (int64_t i = rows; i < P; ++i) {
            to[l * P + i] = 0;
        }
    }
}

template <class T, int P>
EMBER_INLINE void pack_contiguous_rows_of_panel(int64_t k, const T* from, int64_t stride_k, T* to) {
    for (int64_t l = 0; l < k; ++l) {
        __builtin_memcpy(to + l * P, from + l * stride_k, P * sizeof(T));
    }
}

template <class T, int b, int... i>
EMBER_INLINE void exchange_lanes(Vec<T>& x, Vec<T>& y) {
    const Vec<T> low = __builtin_shufflevector(x, y, ((i & b) ? kLanes<T> + i - b : i)...);
    y = __builtin_shufflevector(x, y, ((i & b) ? kLanes<T> + i : i + b)...);
    x = low;
}

template <class T, int b>
EMBER_INLINE void exchange(Vec<T>& x, Vec<T>& y) {
    if constexpr (kLanes<T> == 16) {
        exchange_lanes<T, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15>(x, y);
    } else if constexpr (kLanes<T> == 8) {
        exchange_lanes<T, b, 0, 1, 2, 3, 4, 5, 6, 7>(x, y);
    } else if constexpr (kLanes<T> == 4) {
        exchange_lanes<T, b, 0, 1, 2, 3>(x, y);
    } else {
        exchange_lanes<T, b, 0, 1>(x, y);
    }
}

/// v[i] lane j becomes v[j] lane i.
template <class T, int b = 1>
EMBER_INLINE void transpose(Vec<T>* v) {
    if constexpr (b < kLanes<T>) {
        EMBER_UNROLL
        for (int i = 0; i < kLanes<T>; ++i) {
            if ((i & b) == 0) {
                exchange<T, b>(v[i], v[i + b]);
            }
        }
        transpose<T, 2 * b>(v);
    }
}

// Lanes past P spill over into the next step's place, which is written after: hence the room behind the last panel, and
// steps in rising order for panels narrower than a vector.
template <class T, int P>
void pack_contiguous_k(int64_t k, const T* from, int64_t stride, T* to) {
    static_assert(P % kLanes<T> == 0 || P < kLanes<T>);
    int64_t l = 0;
    for (; l + kLanes<T> <= k; l += kLanes<T>) {
        EMBER_UNROLL
        for (int first = 0; first < P; first += kLanes<T>) {
            Vec<T> v[kLanes<T>] = {};
            EMBER_UNROLL
            for (int i = 0; i < kLanes<T>; ++i) {
                if (first + i < P) {
                    v[i] = load(from + (first + i) * stride + l);
                }
            }
            transpose<T>(v);
            EMBER_UNROLL
            for (int i = 0; i < kLanes<T>; ++i) {
                store(to + (l + i) * P + first, v[i]);
            }
        }
    }
    pack_any<T, P>(P, k - l, from + l, stride, 1, to + l * P);
}

template <class T, int P>
void pack(int64_t count, int64_t k, const T* from, int64_t stride, int64_t stride_k, T* to) {
    for (; count > 0; count -= P, from += P * stride, to += P * k) {
        if (count < P) {
            pack_any<T, P>(count, k, from, stride, stride_k, to);
        } else if (stride == 1) {
            pack_contiguous_rows_of_panel<T, P>(k, from, stride_k, to);
        } else if (stride_k == 1) {
            pack_contiguous_k<T, P>(k, from, stride, to);
        } else {
            pack_any<T, P>(P, k, from, stride, stride_k, to);
        }
    }
}

// ---- dot ----

template <class T>
struct DotTile {
    int64_t k;
    const T* a;
    int64_t a_m;
    const T* b;
    int64_t b_n;
    T* c;
    int64_t c_m, c_n;
};

// The first tile that reads some rows fetches the next ones, which lie R rows further on.
enum class NextRows { kFetch, kLeave };

template <class T, int R, int Q, NextRows next>
void dot_tile(const DotTile<T>& t) {
    Vec<T> sums[R * Q] = {};
    const auto step = [&](int64_t l, auto load_part) __attribute__((always_inline)) {
        Vec<T> x[Q];
        EMBER_UNROLL
        for (int q = 0; q < Q; ++q) {
            x[q] = load_part(t.a + q * t.a_m + l);
        }
        EMBER_UNROLL
        for (int r = 0; r < R; ++r) {
            const T* row = t.b + r * t.b_n + l;
            const Vec<T> w = load_part(row);
            if constexpr (next == NextRows::kFetch) {
                __builtin_prefetch(row + R * t.b_n);
            }
            EMBER_UNROLL
            for (int q = 0; q < Q; ++q) {
                sums[r * Q + q] += w * x[q];
            }
        }
    };
    int64_t l = 0;
    for (; l + kLanes<T> <= t.k; l += kLanes<T>) {
        step(l, [](const T* p) __attribute__((always_inline)) { return load(p); });
    }
    if (const int rest = static_cast<int>(t.k - l); rest > 0) {
        step(l, [rest](const T* p) __attribute__((always_inline)) { return load_first(p, rest); });
    }
    T total[R * Q];
    sum_lanes<T, R * Q>(sums, total);
    EMBER_UNROLL
    for (int r = 0; r < R; ++r) {
        EMBER_UNROLL
        for (int q = 0; q < Q; ++q) {
            t.c[q * t.c_m + r * t.c_n] = total[r * Q + q];
        }
    }
}

constexpr int kDotRows = 4;
constexpr int kDotTokens = kVecRegisters == 32 ? 6 : 2;

template <class T, int R, NextRows next>
void dot_tile(const DotTile<T>& t, int64_t tokens) {
    switch (tokens) {
        case 1:
            return dot_tile<T, R, 1, next>(t);
        case 2:
            return dot_tile<T, R, 2, next>(t);
        case 3:
            return dot_tile < T, R, kDotTokens<3 ? 1 : 3, next>(t);
        case 4:
            return dot_tile < T, R, kDotTokens<4 ? 1 : 4, next>(t);
        case 5:
            return dot_tile < T, R, kDotTokens<5 ? 1 : 5, next>(t);
        default:
            return dot_tile<T, R, kDotTokens, next>(t);
    }
}

/// R rows of b times all of a, in tiles of about equal size.
template <class T, int R>
void dot_rows(DotTile<T> t, int64_t m) {
    const int64_t tiles = (m + kDotTokens - 1) / kDotTokens;
    for (int64_t left = tiles; left > 0; --left) {
        const int64_t tokens = (m + left - 1) / left;
        left == tiles ? dot_tile<T, R, NextRows::kFetch>(t, tokens) : dot_tile<T, R, NextRows::kLeave>(t, tokens);
        t.a += tokens * t.a_m;
        t.c += tokens * t.c_m;
        m -= tokens;
    }
}

template <class T>
void dot(int64_t m, int64_t n, int64_t k, const T* a, int64_t a_m, const T* b, int64_t b_n, T* c, int64_t c_m,
         int64_t c_n) {
    DotTile<T> t = {k, a, a_m, b, b_n, c, c_m, c_n};
    const auto rows = [&]<int R>() {
        for (; n >= R; n -= R) {
            dot_rows<T, R>(t, m);
            t.b += R * b_n;
            t.c += R * c_n;
        }
    };
    rows.template operator()<kDotRows>();
    rows.template operator()<1>();
}

template <class T>
constexpr GemmKernels<T> make_gemm_kernels() {
    constexpr int kCols = kTileVecs * kLanes<T>;
    return {kLanes<T>, kTileRows, kCols, kDotRows, pack<T, kTileRows>, pack<T, kCols>, packed<T>, direct<T>, dot<T>};
}

}  // namespace
}  // namespace ember::runtime
