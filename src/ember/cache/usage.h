// How much a cache folder holds, without listing it: a small file of changes that every put and removal appends to.
//
//     DIR/usage = base *change
//     base      = "= " bytes " " count "\n"     ; from a listing
//     change    = ("+" / "-") bytes "\n"        ; one appended write: "+" before a put, "-" after a removal
//
// An estimate: a killed writer leaves it too high, which leads to a listing and a new base. A file that is missing,
// does not parse or has grown long is replaced after a listing as well.
//
// Tests: test/unit/cache_test.cpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "ember/support/file.h"

namespace ember {

struct Totals {
    uint64_t bytes = 0;
    uint64_t count = 0;
};

class UsageFile {
public:
    UsageFile(const FileSystem& fs, const std::string& dir) : fs_(&fs), path_(dir + "/usage") {}

    /// Nothing when a listing is needed.
    std::optional<Totals> load() const;
    void add(uint64_t bytes) const { append('+', bytes); }
    void subtract(uint64_t bytes) const { append('-', bytes); }

    /// Between start_listing() and store_base(), changes that others append are carried over: counted twice at worst.
    void start_listing();
    void store_base(Totals listed);

private:
    void append(char sign, uint64_t bytes) const;
    void carry_over(int to);

    const FileSystem* fs_;
    std::string path_;
    Fd listed_from_;
    off_t listed_size_ = 0;
};

}  // namespace ember
