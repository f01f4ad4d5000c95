// Sorting along an axis, and searching in what is sorted. Elements are compared as keys (element.h). Long rows are
// sorted by radix, digit by digit from the lowest one, short ones by comparison; both leave equal elements as they
// stood.
#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "runtime/element.h"
#include "runtime/functions.h"
#include "runtime/thread_pool.h"

namespace ember::runtime {
namespace {

constexpr int64_t kChunkElements = 1 << 13;  // worth a thread's while
constexpr int64_t kPartsFrom = 1 << 17;      // elements of a row that several threads sort
constexpr int64_t kBlockBytes = 1 << 20;     // of columns that are sorted together

/// An element that remembers where it stood. Keys of up to 32 bits and positions share a word.
struct Place {
    uint64_t key;
    uint64_t position;

    friend bool operator<(const Place& a, const Place& b) {
        return a.key < b.key || (a.key == b.key && a.position < b.position);
    }
};
using Packed = uint64_t;

template <class Key, class Item>
Item make_item(Key key, int64_t position) {
    if constexpr (std::is_same_v<Item, Place>) {
        return {key, static_cast<uint64_t>(position)};
    } else {
        return static_cast<Item>(uint64_t{key} << 32 | static_cast<uint64_t>(position));
    }
}

inline int64_t position_of(const Place& item) {
    return static_cast<int64_t>(item.position);
}
inline int64_t position_of(Packed item) {
    return static_cast<int64_t>(item & 0xffffffff);
}

/// What an item holds: a key alone, a key and position in one word, or both in a word each.
enum class Layout : uint8_t { kKey, kPacked, kPlace };

template <Layout layout, class Item>
inline size_t digit(const Item& item, size_t number) {
    if constexpr (layout == Layout::kPlace) {
        return (item.key >> (8 * number)) & 0xff;
    } else {
        return (item >> (8 * number + (layout == Layout::kPacked ? 32 : 0))) & 0xff;
    }
}

using DigitCounts = std::array<int64_t, 256>;

/// Turns numbers of items into the places of the first of each.
void to_places(DigitCounts& counts) {
    int64_t start = 0;
    for (int64_t& count : counts) {
        start += std::exchange(count, start);
    }
}

/// Sorts by the digits of the key; gives the array, of the two, that holds the result.
template <Layout layout, class Key, class Item>
Item* radix_sort(Item* items, Item* spare, int64_t n) {
    std::array<DigitCounts, sizeof(Key)> counts{};
    for (int64_t i = 0; i < n; ++i) {
        for (size_t d = 0; d < sizeof(Key); ++d) {
            ++counts[d][digit<layout>(items[i], d)];
        }
    }
    for (size_t d = 0; d < sizeof(Key); ++d) {
        DigitCounts& places = counts[d];
        if (places[digit<layout>(items[0], d)] == n) {
            continue;
        }
        to_places(places);
        for (int64_t i = 0; i < n; ++i) {
            spare[places[digit<layout>(items[i], d)]++] = items[i];
        }
        std::swap(items, spare);
    }
    return items;
}

/// The same for very long rows, in parts that several threads take: what a part has of a digit stands behind what the
/// parts before it have.
template <Layout layout, class Key, class Item>
Item* radix_sort_in_parts(Item* items, Item* spare, int64_t n) {
    constexpr int64_t kParts = 16;
    std::array<DigitCounts, kParts> counts{};
    int64_t length = (n + kParts - 1) / kParts;
    auto for_each_part = [&](auto f) {
        parallel_for(kParts, 1, [&](int64_t begin, int64_t end) {
            for (int64_t part = begin; part < end; ++part) {
                f(counts[static_cast<size_t>(part)], part * length, std::min(n, (part + 1) * length));
            }
        });
    };
    for (size_t d = 0; d < sizeof(Key); ++d) {
        for_each_part([&](DigitCounts& own, int64_t begin, int64_t end) {
            DigitCounts sums{};
            for (int64_t i = begin; i < end; ++i) {
                ++sums[digit<layout>(items[i], d)];
            }
            own = sums;
        });
        int64_t start = 0;
        int64_t largest = 0;
        for (size_t k = 0; k < 256; ++k) {
            int64_t before = start;
            for (DigitCounts& part : counts) {
                start += std::exchange(part[k], start);
            }
            largest = std::max(largest, start - before);
        }
        if (largest == n) {
            continue;
        }
        for_each_part([&](DigitCounts& places, int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                spare[places[digit<layout>(items[i], d)]++] = items[i];
            }
        });
        std::swap(items, spare);
    }
    return items;
}

template <Layout layout, class Key, class Item>
Item* sort_items(Item* items, Item* spare, int64_t n, int64_t kept) {
    if (kept < n / 4) {
        std::nth_element(items, items + kept, items + n);
        std::sort(items, items + kept);
        return items;
    }
    constexpr int64_t kRadixFrom = sizeof(Key) == 1 ? 64 : 128 * static_cast<int64_t>(sizeof(Key));
    if (n < kRadixFrom) {
        std::sort(items, items + n);
        return items;
    }
    return n < kPartsFrom ? radix_sort<layout, Key>(items, spare, n)
                          : radix_sort_in_parts<layout, Key>(items, spare, n);
}

/// x[outer, length, inner], sorted along the middle.
struct Rows {
    int64_t type;
    bool descending;
    int64_t outer;
    int64_t length;
    int64_t inner;
    int64_t kept;
    const void* x;
    void* values;
    int64_t* positions;
};

/// One unit of work: neighbouring columns of one outer index. `first` is where the first one starts.
template <class T>
struct Columns {
    const Rows& rows;
    int64_t first;   // in x
    int64_t target;  // in the results
    int64_t count;

    T at(int64_t column, int64_t i) const { return static_cast<const T*>(rows.x)[first + i * rows.inner + column]; }
    int64_t place(int64_t column, int64_t i) const { return target + i * rows.inner + column; }
};

/// On several threads where one row keeps them busy; inside a range of rows on that range's thread alone.
template <class F>
void for_each_element(int64_t n, F f) {
    parallel_for(n, kPartsFrom / 4, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            f(i);
        }
    });
}

template <class T>
KeyOf<T> ordered_key(T x, bool descending) {
    return descending ? static_cast<KeyOf<T>>(~key_of(x)) : key_of(x);
}

/// Elements that share a key but differ in bits, zeros and NaN, as they stand in x.
template <class T>
void restore(const Columns<T>& columns, int64_t column, std::span<const KeyOf<T>> sorted, T shared) {
    KeyOf<T> key = ordered_key(shared, columns.rows.descending);
    auto range = std::equal_range(sorted.begin(), sorted.end(), key);
    int64_t to = range.first - sorted.begin();
    int64_t end = range.second - sorted.begin();
    for (int64_t i = 0; to < end; ++i) {
        T x = columns.at(column, i);
        if (key_of(x) == key_of(shared)) {
            static_cast<T*>(columns.rows.values)[columns.place(column, to++)] = x;
        }
    }
}

template <class T>
void sort_values(const Columns<T>& columns, KeyOf<T>* room) {
    using Key = KeyOf<T>;
    const Rows& rows = columns.rows;
    int64_t n = rows.length;
    std::array<Key*, 64> sorted{};
    for_each_element(n, [&](int64_t i) {
        for (int64_t c = 0; c < columns.count; ++c) {
            room[c * n + i] = ordered_key(columns.at(c, i), rows.descending);
        }
    });
    Key* spare = room + columns.count * n;
    for (int64_t c = 0; c < columns.count; ++c) {
        Key* own = room + c * n;
        Key* made = sort_items<Layout::kKey, Key>(own, spare, n, n);
        if (made != own && columns.count > 1) {  // the next column needs the spare row
            made = std::copy(made, made + n, own) - n;
        }
        sorted[static_cast<size_t>(c)] = made;
    }
    for_each_element(n, [&](int64_t i) {
        for (int64_t c = 0; c < columns.count; ++c) {
            Key key = sorted[static_cast<size_t>(c)][i];
            key = rows.descending ? static_cast<Key>(~key) : key;
            static_cast<T*>(rows.values)[columns.place(c, i)] = from_key<T>(key);
        }
    });
    if constexpr (is_float_v<T>) {
        for (int64_t c = 0; c < columns.count; ++c) {
            std::span<const Key> row(sorted[static_cast<size_t>(c)], static_cast<size_t>(n));
            restore(columns, c, row, T{});
            restore(columns, c, row, from_key<T>(static_cast<Key>(~Key{0})));
        }
    }
}

template <class T, Layout layout, class Item>
void sort_positions(const Columns<T>& columns, Item* room) {
    using Key = KeyOf<T>;
    const Rows& rows = columns.rows;
    int64_t n = rows.length;
    for_each_element(n, [&](int64_t i) {
        for (int64_t c = 0; c < columns.count; ++c) {
            room[c * n + i] = make_item<Key, Item>(ordered_key(columns.at(c, i), rows.descending), i);
        }
    });
    Item* spare = room + columns.count * n;
    for (int64_t c = 0; c < columns.count; ++c) {
        const Item* made = sort_items<layout, Key>(room + c * n, spare, n, rows.kept);
        for_each_element(rows.kept, [&](int64_t i) {
            int64_t position = position_of(made[i]);
            int64_t place = columns.place(c, i);
            rows.positions[place] = position;
            if (rows.values != nullptr) {
                static_cast<T*>(rows.values)[place] = columns.at(c, position);
            }
        });
    }
}

/// Sorts all rows with `sort`, which gets its columns and room for its items and one spare row.
template <class T, class Item, class Sort>
int64_t for_each_block(const Rows& rows, Sort sort) {
    int64_t fits = kBlockBytes / std::max<int64_t>(rows.length * static_cast<int64_t>(sizeof(Item)), 1);
    int64_t width = std::min(rows.inner, std::clamp<int64_t>(fits, 1, 64 / static_cast<int64_t>(sizeof(T))));
    int64_t blocks = (rows.inner + width - 1) / width;
    std::atomic<bool> failed{false};
    int64_t grain = std::max<int64_t>(1, kChunkElements / (rows.length * width));
    parallel_for(rows.outer * blocks, grain, [&](int64_t begin, int64_t end) {
        size_t items = static_cast<size_t>((width + 1) * rows.length);
        std::unique_ptr<Item[]> room(new (std::nothrow) Item[items]);
        if (room == nullptr) {
            failed = true;
            return;
        }
        for (int64_t unit = begin; unit < end; ++unit) {
            int64_t o = unit / blocks;
            int64_t column = unit % blocks * width;
            Columns<T> columns{rows, o * rows.length * rows.inner + column, o * rows.kept * rows.inner + column,
                               std::min(width, rows.inner - column)};
            sort(columns, room.get());
        }
    });
    return failed ? kFunctionOutOfMemory : 0;
}

template <class T>
int64_t sort_all(const Rows& rows) {
    if (rows.positions == nullptr) {
        return for_each_block<T, KeyOf<T>>(rows, sort_values<T>);
    }
    if constexpr (sizeof(T) <= 4) {
        if (rows.length <= int64_t{UINT32_MAX}) {
            return for_each_block<T, Packed>(rows, sort_positions<T, Layout::kPacked, Packed>);
        }
    }
    return for_each_block<T, Place>(rows, sort_positions<T, Layout::kPlace, Place>);
}

/// The first element that is not less than `key`, or with kAfter, that is greater.
enum class Side : uint8_t { kBefore, kAfter };

template <Side side, class T>
int64_t search(const T* sorted, int64_t length, KeyOf<T> key) {
    auto goes_before = [&](T x) { return side == Side::kBefore ? key_of(x) < key : key_of(x) <= key; };
    const T* base = sorted;
    while (length > 1) {
        int64_t half = length / 2;
        base += goes_before(base[half - 1]) ? half : 0;
        length -= half;
    }
    return base - sorted + (length == 1 && goes_before(*base) ? 1 : 0);
}

}  // namespace

namespace functions {

int64_t sort_rows(const EmberSlot* a) {
    Rows rows{a[0].number,  a[1].number != 0, a[2].number,
              a[3].number,  a[4].number,      a[5].number,
              a[6].pointer, a[7].pointer,     static_cast<int64_t*>(a[8].pointer)};
    if (rows.outer == 0 || rows.inner == 0 || rows.kept == 0) {
        return 0;
    }
    return with_element(rows.type, [&]<class T>(T) { return sort_all<T>(rows); });
}

int64_t search_sorted(const EmberSlot* a) {
    bool right = a[1].number != 0;
    int64_t length = a[2].number;
    int64_t count = a[4].number;
    auto* positions = static_cast<int64_t*>(a[6].pointer);
    with_element(a[0].number, [&]<class T>(T) {
        const auto* sorted = static_cast<const T*>(a[3].pointer);
        const auto* values = static_cast<const T*>(a[5].pointer);
        parallel_for(count, 1 << 10, [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end; ++i) {
                KeyOf<T> key = key_of(values[i]);
                positions[i] =
                    right ? search<Side::kAfter>(sorted, length, key) : search<Side::kBefore>(sorted, length, key);
            }
        });
    });
    return 0;
}

}  // namespace functions
}  // namespace ember::runtime
