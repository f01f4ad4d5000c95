// The .npy header is a Python literal; only the three entries that NumPy writes are understood.
#include "ember/support/npy.h"

#include <algorithm>
#include <charconv>

#include "ember/support/check.h"
#include "ember/support/file.h"

namespace ember {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr uint64_t kMaxFileBytes = uint64_t{1} << 36;
constexpr std::string_view kDtypes[] = {"b1", "i1", "i2", "i4", "i8", "u1", "u2",
                                        "u4", "u8", "f2", "f4", "f8", "c8", "c16"};

/// Reads the header's dict from left to right.
class HeaderReader {
public:
    HeaderReader(std::string_view text, std::string_view name) : text_(text), name_(name) {}

    Result<NpyArray> read() {
        if (!accept('{')) {
            return fail("a dict");
        }
        while (!accept('}')) {
            EMBER_CHECKED(read_entry());
            accept(',');
        }
        if (!has_descr_ || !has_order_ || !has_shape_) {
            return fail("'descr', 'fortran_order' and 'shape'");
        }
        return std::move(array_);
    }

private:
    Diagnostic fail(std::string_view expected) const {
        return error(Code::kIo, "bad .npy header: expected " + std::string(expected), std::string(name_));
    }

    void skip_spaces() {
        while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) {
            text_.remove_prefix(1);
        }
    }

    bool accept(char c) {
        skip_spaces();
        bool found = text_.starts_with(c);
        text_.remove_prefix(found ? 1 : 0);
        return found;
    }

    bool accept_word(std::string_view word) {
        skip_spaces();
        bool found = text_.starts_with(word);
        text_.remove_prefix(found ? word.size() : 0);
        return found;
    }

    Result<std::string_view> read_string() {
        skip_spaces();
        char quote = text_.empty() ? '\0' : text_[0];
        size_t end = quote == '\'' || quote == '"' ? text_.find(quote, 1) : std::string_view::npos;
        if (end == std::string_view::npos) {
            return fail("a string");
        }
        std::string_view inside = text_.substr(1, end - 1);
        text_.remove_prefix(end + 1);
        return inside;
    }

    Status read_entry() {
        EMBER_TRY(std::string_view key, read_string());
        if (!accept(':')) {
            return fail("':' after a key");
        }
        if (key == "descr") {
            return read_descr();
        }
        if (key == "fortran_order") {
            return read_order();
        }
        if (key == "shape") {
            return read_shape();
        }
        return fail("'descr', 'fortran_order' and 'shape', found '" + std::string(key.substr(0, 40)) + "'");
    }

    Status read_descr() {
        has_descr_ = true;
        EMBER_TRY(std::string_view descr, read_string());
        std::string_view dtype = descr.empty() ? descr : descr.substr(1);
        bool known = std::find(std::begin(kDtypes), std::end(kDtypes), dtype) != std::end(kDtypes);
        if (!known || descr.find_first_of("<|=") != 0) {
            return error(Code::kUnsupported,
                         "arrays of dtype '" + std::string(descr.substr(0, 40)) +
                             "' are not read: bool, integers, f2, f4, f8, c8 and c16 in little endian are",
                         std::string(name_));
        }
        array_.kind = dtype[0];
        array_.item_bytes = std::stoi(std::string(dtype.substr(1)));
        return {};
    }

    Status read_order() {
        has_order_ = true;
        if (accept_word("True")) {
            fortran_ = true;
        } else if (!accept_word("False")) {
            return fail("True or False");
        }
        return check_order();
    }

    Status read_shape() {
        has_shape_ = true;
        if (!accept('(')) {
            return fail("a tuple");
        }
        while (!accept(')')) {
            skip_spaces();
            int64_t length = 0;
            auto [end, problem] = std::from_chars(text_.data(), text_.data() + text_.size(), length);
            if (problem != std::errc() || length < 0 || array_.shape.size() == 64) {
                return fail("lengths of at most 64 axes");
            }
            text_.remove_prefix(static_cast<size_t>(end - text_.data()));
            array_.shape.push_back(length);
            accept(',');
        }
        return check_order();
    }

    Status check_order() const {
        if (has_order_ && has_shape_ && fortran_ && array_.shape.size() > 1) {
            return error(Code::kUnsupported, "the array is in Fortran order; save it as np.ascontiguousarray(a)",
                         std::string(name_));
        }
        return {};
    }

    std::string_view text_;
    std::string_view name_;
    NpyArray array_;
    bool has_descr_ = false;
    bool has_order_ = false;
    bool has_shape_ = false;
    bool fortran_ = false;
};

uint32_t little_endian(std::string_view bytes) {
    uint32_t value = 0;
    for (size_t i = bytes.size(); i-- > 0;) {
        value = value << 8 | static_cast<unsigned char>(bytes[i]);
    }
    return value;
}

/// Bytes that the header promises; nothing where they are more than a file can have.
Result<uint64_t> promised_bytes(const NpyArray& array, std::string_view name) {
    uint64_t bytes = static_cast<uint64_t>(array.item_bytes);
    bool too_large = false;
    for (int64_t length : array.shape) {
        too_large |= __builtin_mul_overflow(bytes, static_cast<uint64_t>(length), &bytes);
    }
    bool is_empty = std::find(array.shape.begin(), array.shape.end(), 0) != array.shape.end();
    if (too_large && !is_empty) {
        return error(Code::kIo, "the .npy header promises more elements than a file can have", std::string(name));
    }
    return is_empty ? 0 : bytes;
}

}  // namespace

Result<NpyArray> parse_npy(std::string_view file, std::string_view name) {
    std::string where(name);
    if (!file.starts_with(kMagic) || file.size() < 10) {
        return error(Code::kIo, "no .npy file: it does not start with \\x93NUMPY", where);
    }
    int major = file[6];
    size_t size_bytes = major == 1 ? 2 : 4;
    if (major < 1 || major > 3) {
        return error(Code::kUnsupported, ".npy format version " + std::to_string(major), where);
    }
    size_t start = 8 + size_bytes;
    size_t header = file.size() < start ? 0 : little_endian(file.substr(8, size_bytes));
    if (file.size() < start || file.size() - start < header) {
        return error(Code::kIo, "the .npy file ends in its header", where);
    }
    EMBER_TRY(NpyArray array, HeaderReader(file.substr(start, header), name).read());
    EMBER_TRY(uint64_t bytes, promised_bytes(array, name));
    std::string_view data = file.substr(start + header);
    if (data.size() != bytes) {
        return error(Code::kIo,
                     "the .npy file has " + std::to_string(data.size()) + " bytes of data, its header promises " +
                         std::to_string(bytes),
                     where);
    }
    array.bytes = data;
    return array;
}

std::string format_npy(const NpyArray& array) {
    std::string header = "{'descr': '";
    header += array.item_bytes == 1 ? '|' : '<';
    header += array.kind + std::to_string(array.item_bytes) + "', 'fortran_order': False, 'shape': (";
    for (int64_t length : array.shape) {
        header += std::to_string(length) + (array.shape.size() == 1 ? "," : ", ");
    }
    if (array.shape.size() > 1) {
        header.resize(header.size() - 2);
    }
    header += "), }";
    constexpr size_t kPrefix = 10;
    header.append(63 - (kPrefix + header.size()) % 64, ' ');
    header += '\n';
    check(header.size() <= 0xffff, "a .npy header of version 1");
    std::string file(kMagic);
    file += {'\1', '\0', static_cast<char>(header.size() & 0xff), static_cast<char>(header.size() >> 8)};
    return file + header + array.bytes;
}

Result<NpyArray> read_npy(const std::string& path) {
    EMBER_TRY(std::string file, read_file(path, kMaxFileBytes));
    return parse_npy(file, path);
}

Status write_npy(const std::string& path, const NpyArray& array) {
    return write_file(path, format_npy(array));
}

}  // namespace ember
