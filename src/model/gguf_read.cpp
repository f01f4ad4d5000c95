// Opens GGUF files: one walk from start to end that checks everything before anything is used.
// Tests: test/unit/gguf_test.cpp, test/fuzz/gguf_fuzz.cpp.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "model/gguf.h"
#include "model/gguf_internal.h"

namespace ember::model {

namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint32_t kMaxRank = 4;
constexpr uint64_t kMaxKeyBytes = 65535;      // the specification's bound
constexpr uint64_t kMaxTensorNameBytes = 64;  // the specification's bound
constexpr int kMaxArrayDepth = 8;             // ours: arrays of arrays are rare, and the walk recurses
constexpr uint64_t kMinAlignment = 8;         // the specification's: a multiple of 8
constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
constexpr uint64_t kMostReserved = 4096;  // beyond it, memory grows with what is really there

/// Types of the format that we do not read, for the message.
struct UnsupportedType {
    uint32_t number;
    std::string_view name;
};
constexpr std::array<UnsupportedType, 21> kUnsupportedTypes = {{
    {9, "q8_1"},   {10, "q2_k"},   {11, "q3_k"},  {15, "q8_k"},  {16, "iq2_xxs"}, {17, "iq2_xs"}, {18, "iq3_xxs"},
    {19, "iq1_s"}, {20, "iq4_nl"}, {21, "iq3_s"}, {22, "iq2_s"}, {23, "iq4_xs"},  {24, "i8"},     {25, "i16"},
    {26, "i32"},   {27, "i64"},    {28, "f64"},   {29, "iq1_m"}, {34, "tq1_0"},   {35, "tq2_0"},  {39, "mxfp4"},
}};

std::string describe_unsupported_type(uint32_t number) {
    std::string text = "tensor type " + std::to_string(number);
    for (const UnsupportedType& row : kUnsupportedTypes) {
        if (row.number == number) {
            text += " (" + std::string(row.name) + ")";
        }
    }
    text += " is not supported: expected one of";
    for (const TensorTypeInfo& row : supported_tensor_types()) {
        text += ' ';
        text += row.name;
    }
    return text;
}

/// Sorted indices of rows, by the text `text_of` gives; the place of a repeated one through `repeated`.
template <class Row, class TextOf>
std::vector<uint32_t> sorted_indices(const std::vector<Row>& rows, TextOf text_of, const Row*& repeated) {
    std::vector<uint32_t> order(rows.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
        int by_text = text_of(rows[a]).compare(text_of(rows[b]));
        return by_text != 0 ? by_text < 0 : a < b;
    });
    repeated = nullptr;
    for (size_t i = 1; i < order.size() && !repeated; ++i) {
        if (text_of(rows[order[i - 1]]) == text_of(rows[order[i]])) {
            repeated = &rows[order[i]];
        }
    }
    return order;
}

}  // namespace

/// Walks a file once from start to end and fills a GgufFile; nothing is believed before it is compared with the bytes
/// that are left.
class GgufReader {
public:
    enum class Owns { kNo, kMapping };

    static Result<std::shared_ptr<const GgufFile>> read(std::string path, std::span<const std::byte> bytes, Owns owns) {
        std::shared_ptr<GgufFile> file(new GgufFile(std::move(path), bytes, owns == Owns::kMapping));
        EMBER_CHECKED(GgufReader(*file).read_all());
        return std::shared_ptr<const GgufFile>(std::move(file));
    }

private:
    explicit GgufReader(GgufFile& file) : file_(file), bytes_(file.bytes_) {}

    Status read_all() {
        EMBER_CHECKED(read_header());
        EMBER_CHECKED(read_entries());
        EMBER_CHECKED(read_alignment());
        EMBER_CHECKED(read_tensors());
        return place_tensors();
    }

    uint64_t left() const { return bytes_.size() - at_; }
    Diagnostic fail(uint64_t offset, std::string message, Code code = Code::kParse) const {
        return error(code, std::move(message), place(file_.path_, offset));
    }

    /// That `bytes` more are there for `what`.
    Status need(uint64_t bytes, std::string_view what) const {
        if (bytes > left()) {
            return fail(at_, "the file ends early: expected " + std::string(what) + " of " + std::to_string(bytes) +
                                 " bytes, " + std::to_string(left()) + " are left");
        }
        return {};
    }

    template <class T>
    Result<T> read_number(std::string_view what) {
        EMBER_CHECKED(need(sizeof(T), what));
        T value = read_as<T>(bytes_.data() + at_);
        at_ += sizeof(T);
        return value;
    }

    Result<std::string_view> read_string(std::string_view what) {
        EMBER_TRY(uint64_t length, read_number<uint64_t>(std::string(what) + "'s length"));
        EMBER_CHECKED(need(length, what));
        std::string_view text(reinterpret_cast<const char*>(bytes_.data()) + at_, length);
        at_ += length;
        return text;
    }

    Status read_header() {
        EMBER_TRY(auto magic, read_number<uint32_t>("the magic"));
        if (magic != kMagic) {
            return fail(0, "not a GGUF file: expected the four bytes 'GGUF', found " +
                               quote({reinterpret_cast<const char*>(bytes_.data()), 4}));
        }
        EMBER_TRY(file_.version_, read_number<uint32_t>("the version"));
        if (file_.version_ != 0 && (file_.version_ & 0xffff) == 0) {
            return fail(4, "a big-endian GGUF file: only little-endian ones are supported", Code::kUnsupported);
        }
        if (file_.version_ != 2 && file_.version_ != 3) {
            return fail(4, "GGUF version " + std::to_string(file_.version_) + ": expected 2 or 3", Code::kUnsupported);
        }
        EMBER_TRY(tensor_count_, read_count("tensors", kMinTensorBytes));
        EMBER_TRY(entry_count_, read_count("metadata entries", kMinEntryBytes));
        return {};
    }

    /// A count of things of at least `least` bytes each, which what is left of the file must be able to hold.
    Result<uint64_t> read_count(const std::string& of_what, uint64_t least) {
        EMBER_TRY(auto count, read_number<uint64_t>("the number of " + of_what));
        if (count > left() / least) {
            return fail(at_ - 8, "expected at most " + std::to_string(left() / least) + " " + of_what +
                                     " in a file of this size, found a count of " + std::to_string(count));
        }
        return count;
    }

    Status read_entries() {
        file_.entries_.reserve(std::min(entry_count_, kMostReserved));
        for (uint64_t i = 0; i < entry_count_; ++i) {
            EMBER_CHECKED(read_entry());
        }
        const GgufEntry* repeated = nullptr;
        file_.entries_by_key_ = sorted_indices(file_.entries_, kKeyOf, repeated);
        if (repeated) {
            return fail(repeated->offset, "metadata key " + quote(repeated->key) + " is there twice");
        }
        return {};
    }

    Status read_entry() {
        uint64_t offset = at_;
        EMBER_TRY(std::string_view key, read_string("a metadata key"));
        if (key.empty() || key.size() > kMaxKeyBytes) {
            return fail(offset,
                        "expected a metadata key of 1 to 65535 bytes, found one of " + std::to_string(key.size()));
        }
        EMBER_TRY(ValueType type, read_value_type(key));
        const std::byte* data = bytes_.data() + at_;
        EMBER_CHECKED(skip_value(type, key, 0));
        file_.entries_.push_back({key, GgufValue(type, data), offset});
        return {};
    }

    Result<ValueType> read_value_type(std::string_view key) {
        EMBER_TRY(auto type, read_number<uint32_t>("the type of " + quote(key)));
        if (type >= kValueTypes) {
            return fail(at_ - 4, "value type " + std::to_string(type) + " of " + quote(key) + ": expected 0 to 12");
        }
        return ValueType{type};
    }

    Status skip_value(ValueType type, std::string_view key, int depth) {
        if (type == ValueType::kString) {
            EMBER_TRY([[maybe_unused]] auto text, read_string("the string of " + quote(key)));
            return {};
        }
        if (type == ValueType::kArray) {
            return skip_array(key, depth);
        }
        EMBER_CHECKED(need(least_bytes(type), "the value of " + quote(key)));
        if (type == ValueType::kBool && read_as<uint8_t>(bytes_.data() + at_) > 1) {
            return fail(at_, "the value of " + quote(key) + " is a bool: expected 0 or 1");
        }
        at_ += least_bytes(type);
        return {};
    }

    Status skip_array(std::string_view key, int depth) {
        if (depth == kMaxArrayDepth) {
            return fail(at_, "the array of " + quote(key) + " is nested deeper than " + std::to_string(kMaxArrayDepth));
        }
        EMBER_TRY(ValueType element, read_value_type(key));
        EMBER_TRY(uint64_t count, read_count("elements of " + quote(key), least_bytes(element)));
        if (has_fixed_size(element)) {
            at_ += count * least_bytes(element);
            return {};
        }
        if (element == ValueType::kString) {
            return skip_strings(key, count);
        }
        for (uint64_t i = 0; i < count; ++i) {
            EMBER_CHECKED(skip_value(element, key, depth + 1));
        }
        return {};
    }

    /// The same as skip_value() for each, without a message made for each: vocabularies are long.
    Status skip_strings(std::string_view key, uint64_t count) {
        for (uint64_t i = 0; i < count; ++i) {
            uint64_t length = left() < 8 ? 0 : read_as<uint64_t>(bytes_.data() + at_);
            if (left() < 8 || length > left() - 8) {
                EMBER_TRY([[maybe_unused]] auto text, read_string("string " + std::to_string(i) + " of " + quote(key)));
            }
            at_ += 8 + length;
        }
        return {};
    }

    Status read_alignment() {
        EMBER_TRY(int64_t alignment, file_.get_integer_or("general.alignment", 32));
        if (alignment < static_cast<int64_t>(kMinAlignment) || !std::has_single_bit(static_cast<uint64_t>(alignment))) {
            return file_.error_at("general.alignment", Code::kParse,
                                  "general.alignment is " + std::to_string(alignment) +
                                      ": expected a power of two of at least " + std::to_string(kMinAlignment));
        }
        file_.alignment_ = static_cast<uint64_t>(alignment);
        return {};
    }

    Status read_tensors() {
        file_.tensors_.reserve(std::min(tensor_count_, kMostReserved));

        for (uint64_t i = 0; i < tensor_count_; ++i) {
            EMBER_CHECKED(read_tensor());
        }
        const GgufTensor* repeated = nullptr;
        file_.tensors_by_name_ = sorted_indices(file_.tensors_, kNameOf, repeated);
        if (repeated) {
            return fail(tensor_offsets_[static_cast<size_t>(repeated - file_.tensors_.data())],
                        "tensor " + quote(repeated->name) + " is there twice");
        }
        return {};
    }

    Status read_tensor() {
        uint64_t offset = at_;
        tensor_offsets_.push_back(offset);
        GgufTensor tensor;
        EMBER_TRY(tensor.name, read_string("a tensor's name"));
        if (tensor.name.empty() || tensor.name.size() > kMaxTensorNameBytes) {
            return fail(offset,
                        "expected a tensor name of 1 to 64 bytes, found one of " + std::to_string(tensor.name.size()));
        }
        EMBER_CHECKED(read_dims(tensor));
        EMBER_TRY(auto number, read_number<uint32_t>("the type of tensor " + quote(tensor.name)));
        const TensorTypeInfo* info = find_tensor_type(number);
        if (!info) {
            return fail(at_ - 4, "tensor " + quote(tensor.name) + ": " + describe_unsupported_type(number),
                        Code::kUnsupported);
        }
        tensor.type = info->type;
        EMBER_TRY(tensor.offset, read_number<uint64_t>("the offset of tensor " + quote(tensor.name)));
        EMBER_CHECKED(set_tensor_bytes(tensor, *info, offset));
        file_.tensors_.push_back(std::move(tensor));
        return {};
    }

    Status read_dims(GgufTensor& tensor) {
        EMBER_TRY(auto rank, read_number<uint32_t>("the rank of tensor " + quote(tensor.name)));
        if (rank < 1 || rank > kMaxRank) {
            return fail(at_ - 4, "tensor " + quote(tensor.name) + " has " + std::to_string(rank) +
                                     " dimensions: expected 1 to 4");
        }
        uint64_t most = INT64_MAX;  // what the dimensions still to come may multiply to
        for (uint32_t i = 0; i < rank; ++i) {
            EMBER_TRY(auto dim, read_number<uint64_t>("a dimension of tensor " + quote(tensor.name)));
            if (dim == 0 || dim > most) {
                return fail(at_ - 8, "dimension " + std::to_string(i) + " of tensor " + quote(tensor.name) + " is " +
                                         std::to_string(dim) + ": expected 1 to " + std::to_string(most));
            }
            most /= dim;
            tensor.dims.push_back(static_cast<int64_t>(dim));
        }
        tensor.shape.assign(tensor.dims.rbegin(), tensor.dims.rend());
        return {};
    }

    Status set_tensor_bytes(GgufTensor& tensor, const TensorTypeInfo& info, uint64_t offset) {
        if (tensor.dims[0] % info.block_elements != 0) {
            return fail(offset, "tensor " + quote(tensor.name) + " of type " + std::string(info.name) +
                                    " has rows of " + std::to_string(tensor.dims[0]) + ": expected a multiple of " +
                                    std::to_string(info.block_elements));
        }
        uint64_t blocks = static_cast<uint64_t>(tensor.elements()) / info.block_elements;
        if (blocks > bytes_.size() / info.block_bytes) {
            return fail(offset, "tensor " + quote(tensor.name) + " of " + std::to_string(tensor.elements()) +
                                    " elements is larger than the file of " + std::to_string(bytes_.size()) + " bytes");
        }
        tensor.bytes = blocks * info.block_bytes;
        if (tensor.offset % file_.alignment_ != 0) {
            return fail(at_ - 8, "tensor " + quote(tensor.name) + " is at " + std::to_string(tensor.offset) +
                                     " in the data: expected a multiple of " + std::to_string(file_.alignment_));
        }
        return {};
    }

    /// Offsets are relative to the data until here; they must lie in it, and not on one another.
    Status place_tensors() {
        uint64_t padding = (file_.alignment_ - at_ % file_.alignment_) % file_.alignment_;
        uint64_t data_bytes = left() > padding ? left() - padding : 0;
        file_.data_offset_ = at_ + std::min(padding, left());
        std::vector<uint32_t> order(file_.tensors_.size());
        std::iota(order.begin(), order.end(), 0u);
        std::sort(order.begin(), order.end(),
                  [&](uint32_t a, uint32_t b) { return file_.tensors_[a].offset < file_.tensors_[b].offset; });
        const GgufTensor* before = nullptr;
        for (uint32_t index : order) {
            GgufTensor& tensor = file_.tensors_[index];
            if (tensor.bytes > data_bytes || tensor.offset > data_bytes - tensor.bytes) {
                return fail(tensor_offsets_[index], "tensor " + quote(tensor.name) + " is at " +
                                                        std::to_string(tensor.offset) + " in the data, " +
                                                        std::to_string(tensor.bytes) +
                                                        " bytes long: expected it to end within " +
                                                        std::to_string(data_bytes) + " bytes of data");
            }
            tensor.offset += file_.data_offset_;
            tensor.data = bytes_.data() + tensor.offset;
            if (before && tensor.offset < before->offset + before->bytes) {
                return fail(tensor_offsets_[index], "tensor " + quote(tensor.name) + " overlaps tensor " +
                                                        quote(before->name) + ": expected it to start at " +
                                                        std::to_string(before->offset + before->bytes) +
                                                        " or later, found " + std::to_string(tensor.offset));
            }
            before = &tensor;
        }
        return {};
    }

    GgufFile& file_;
    std::span<const std::byte> bytes_;
    uint64_t at_ = 0;
    uint64_t tensor_count_ = 0;
    uint64_t entry_count_ = 0;
    std::vector<uint64_t> tensor_offsets_;  // of each description in the file, for messages
};

Result<std::shared_ptr<const GgufFile>> read_gguf(std::span<const std::byte> bytes, std::string name) {
    return GgufReader::read(std::move(name), bytes, GgufReader::Owns::kNo);
}

namespace {

Diagnostic system_error(const std::string& path, std::string_view what) {
    return error(Code::kIo, std::string(what) + ": " + std::strerror(errno), path);
}

class Descriptor {
public:
    explicit Descriptor(int number) : number_(number) {}
    ~Descriptor() {
        if (number_ >= 0) {
            close(number_);
        }
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return number_; }

private:
    int number_;
};

}  // namespace

Result<std::shared_ptr<const GgufFile>> open_gguf(const std::string& path) {
    Descriptor descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a FIFO must not block us
    if (descriptor.get() < 0) {
        return system_error(path, "cannot open");
    }
    struct stat info{};
    if (fstat(descriptor.get(), &info) != 0) {
        return system_error(path, "cannot read its size");
    }
    if (!S_ISREG(info.st_mode)) {
        return error(Code::kIo, "expected a GGUF file, found something that is not a regular file", path);
    }
    if (info.st_size == 0) {
        return error(Code::kParse, "expected a GGUF file, found an empty file", place(path, 0));
    }
    auto size = static_cast<size_t>(info.st_size);
    void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor.get(), 0);
    if (data == MAP_FAILED) {
        return system_error(path, "cannot map");
    }
    return GgufReader::read(path, {static_cast<const std::byte*>(data), size}, GgufReader::Owns::kMapping);
}

}  // namespace ember::model
