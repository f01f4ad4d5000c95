// Types and tensors: see types.h and tensor.h among the public headers.
#include "ember/tensor.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "ember/api/tape.h"
#include "ember/driver/driver.h"
#include "ember/ir/literal.h"
#include "ember/text/lexer.h"

namespace ember {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 48;
constexpr std::align_val_t kAlignment{64};

std::shared_ptr<void> allocate(int64_t bytes) {
    auto room = static_cast<size_t>(std::max<int64_t>(bytes, 1));
    void* memory = ::operator new(room, kAlignment, std::nothrow);
    if (memory == nullptr) {
        api::raise(ErrorCode::kOutOfMemory, "no memory for a tensor of " + std::to_string(bytes) + " bytes");
    }
    return {memory, [](void* old) { ::operator delete(old, kAlignment); }};
}

/// What an element must be aligned to: its size, or a complex number's part.
uintptr_t alignment(DType dtype) {
    const ir::DTypeInfo& info = ir::info(api::to_ir(dtype));
    auto size = static_cast<uintptr_t>(info.block_bytes);
    switch (info.kind) {
        case ir::DTypeKind::kComplex:
            return size / 2;
        case ir::DTypeKind::kQuantized:
            return 2;
        case ir::DTypeKind::kRng:
            return 8;
        default:
            return size;
    }
}

bool is_aligned(const void* data, DType dtype) {
    return reinterpret_cast<uintptr_t>(data) % alignment(dtype) == 0;
}

std::string shape_text(const std::vector<int64_t>& shape) {
    std::string text = "[";
    for (size_t i = 0; i < shape.size(); ++i) {
        text += (i == 0 ? "" : ",") + std::to_string(shape[i]);
    }
    return text + "]";
}

DType dtype_of_dlpack(dlpack::DataType type) {
    if (auto dtype = ir::dtype_of_dlpack(type.code, type.bits); dtype && type.lanes == 1) {
        return static_cast<DType>(*dtype);
    }
    api::raise(ErrorCode::kUnsupported, "no dtype for DLPack's code " + std::to_string(type.code) + " with " +
                                            std::to_string(type.bits) + " bits and " + std::to_string(type.lanes) +
                                            " lanes");
}

bool is_row_major(const dlpack::Tensor& tensor) {
    int64_t expected = 1;
    for (int32_t axis = tensor.ndim - 1; tensor.strides != nullptr && axis >= 0; --axis) {
        if (tensor.shape[axis] != 1 && tensor.strides[axis] != expected) {
            return false;
        }
        expected *= tensor.shape[axis];
    }
    return true;
}

/// Copies elements in any strides to row-major memory.
void gather_strided(const dlpack::Tensor& from, int64_t element, int32_t axis, const char* source, char*& target) {
    if (axis == from.ndim) {
        std::memcpy(target, source, static_cast<size_t>(element));
        target += element;
        return;
    }
    for (int64_t i = 0; i < from.shape[axis]; ++i) {
        gather_strided(from, element, axis + 1, source + i * from.strides[axis] * element, target);
    }
}

template <class Managed>
void release(Managed* managed) {
    if (managed->deleter != nullptr) {
        managed->deleter(managed);
    }
}

/// What to_dlpack() hands out.
template <class Managed>
struct Exported {
    Managed managed{};
    Tensor tensor;
    std::vector<int64_t> shape;
};

template <class Managed>
Managed* export_tensor(const Tensor& tensor) {
    auto [code, bits] = driver::dlpack_type(api::to_ir(tensor.dtype()));
    if (bits == 0) {
        api::raise(ErrorCode::kUnsupported, "DLPack has no " + std::string(dtype_name(tensor.dtype())));
    }
    auto* made = new Exported<Managed>{{}, tensor, tensor.shape()};
    auto rank = static_cast<int32_t>(tensor.rank());
    made->managed.tensor = {tensor.data(), {dlpack::kCpu, 0}, rank, {code, bits, 1}, made->shape.data(), nullptr, 0};
    made->managed.manager = made;
    made->managed.deleter = [](Managed* self) { delete static_cast<Exported<Managed>*>(self->manager); };
    return &made->managed;
}

enum class Take { kShared, kCopied };

/// Takes a managed tensor over; on an error it stays its owner's.
template <class Managed>
Tensor import_tensor(Managed* managed, Take take) {
    const dlpack::Tensor& tensor = managed->tensor;
    if (tensor.device.type != dlpack::kCpu) {
        api::raise(ErrorCode::kUnsupported, "the DLPack tensor is on a device of type " +
                                                std::to_string(tensor.device.type) + ", not on the CPU");
    }
    DType dtype = dtype_of_dlpack(tensor.dtype);
    if (tensor.ndim < 0 || (tensor.ndim > 0 && tensor.shape == nullptr)) {
        api::raise(ErrorCode::kInvalidArgument, "the DLPack tensor has no shape");
    }
    std::vector<int64_t> shape(tensor.shape, tensor.shape + tensor.ndim);
    int64_t bytes = api::checked_bytes(dtype, shape);
    if (bytes != 0 && tensor.data == nullptr) {
        api::raise(ErrorCode::kInvalidArgument,
                   "the DLPack tensor, a " + std::string(dtype_name(dtype)) + shape_text(shape) + ", has no elements");
    }
    const char* data = bytes == 0 ? nullptr : static_cast<const char*>(tensor.data) + tensor.byte_offset;
    if (take == Take::kShared && bytes != 0 && is_row_major(tensor) && is_aligned(data, dtype)) {
        return Tensor::borrow(const_cast<char*>(data), dtype, std::move(shape),
                              std::shared_ptr<void>(managed, [](void* old) { release(static_cast<Managed*>(old)); }));
    }
    Tensor made = Tensor::empty(dtype, std::move(shape));
    if (bytes != 0 && tensor.strides == nullptr) {
        std::memcpy(made.data(), data, static_cast<size_t>(bytes));
    } else if (bytes != 0) {
        auto* target = static_cast<char*>(made.data());
        gather_strided(tensor, ir::element_bytes(api::to_ir(dtype)), 0, data, target);
    }
    release(managed);
    return made;
}

}  // namespace

std::string_view dtype_name(DType dtype) {
    return ir::dtype_name(api::to_ir(dtype));
}

Dim::Dim(int64_t length) : length_(length) {
    if (length < 0 || length > ir::kMaxLength) {
        api::raise(ErrorCode::kShape, "no axis has length " + std::to_string(length));
    }
}

Dim::Dim(std::string symbol) : length_(-1), symbol_(std::move(symbol)) {
    bool good = !symbol_.empty() && text::is_name_start(symbol_[0]) &&
                std::all_of(symbol_.begin(), symbol_.end(), text::is_name_char);
    if (!good) {
        api::raise(ErrorCode::kInvalidArgument, "'" + symbol_ + "' is no name of a length: letters, digits, _ and .");
    }
}

std::string Type::to_string() const {
    std::string text = std::string(dtype_name(dtype)) + "[";
    for (size_t i = 0; i < shape.size(); ++i) {
        text += i == 0 ? "" : ",";
        text += shape[i].is_static() ? std::to_string(shape[i].length()) : shape[i].symbol();
    }
    return text + "]";
}

int64_t api::checked_bytes(DType dtype, const std::vector<int64_t>& shape) {
    auto impossible = [&](const std::string& why) {
        raise(ErrorCode::kShape, std::string(dtype_name(dtype)) + shape_text(shape) + " is no tensor: " + why);
    };
    const ir::DTypeInfo& info = ir::info(to_ir(dtype));
    int64_t elements = 1;
    bool overflow = false;
    bool empty = false;
    for (int64_t length : shape) {
        if (length < 0) {
            impossible("a negative length");
        }
        empty = empty || length == 0;
        overflow = overflow || __builtin_mul_overflow(elements, std::max<int64_t>(length, 1), &elements);
    }
    overflow = overflow || elements > kMaxBytes / info.block_bytes * info.block_elements;
    if (overflow) {
        impossible("too large");
    }
    if (info.block_elements > 1 && (shape.empty() || shape.back() % info.block_elements != 0)) {
        impossible("the last length must be a multiple of " + std::to_string(info.block_elements));
    }
    return empty ? 0 : elements / info.block_elements * info.block_bytes;
}

Tensor::Tensor() : Tensor(zeros(DType::kF32, {})) {}

Tensor::Tensor(DType dtype, std::vector<int64_t> shape, std::shared_ptr<void> data)
    : dtype_(dtype), shape_(std::move(shape)), data_(std::move(data)) {}

Tensor Tensor::empty(DType dtype, std::vector<int64_t> shape) {
    int64_t bytes = api::checked_bytes(dtype, shape);
    return {dtype, std::move(shape), allocate(bytes)};
}

Tensor Tensor::zeros(DType dtype, std::vector<int64_t> shape) {
    Tensor made = empty(dtype, std::move(shape));
    std::memset(made.data(), 0, static_cast<size_t>(made.bytes()));
    return made;
}

Tensor Tensor::copy_of(const void* elements, size_t count, DType dtype, std::vector<int64_t> shape) {
    Tensor made = empty(dtype, std::move(shape));
    if (static_cast<int64_t>(count) != made.size()) {
        api::raise(ErrorCode::kShape, std::to_string(count) + " elements for " + made.type_string());
    }
    if (count != 0) {
        std::memcpy(made.data(), elements, static_cast<size_t>(made.bytes()));
    }
    return made;
}

Tensor Tensor::borrow(void* elements, DType dtype, std::vector<int64_t> shape, std::shared_ptr<void> keep_alive) {
    int64_t bytes = api::checked_bytes(dtype, shape);
    if (bytes == 0) {
        return empty(dtype, std::move(shape));
    }
    if (elements == nullptr || !is_aligned(elements, dtype)) {
        api::raise(ErrorCode::kInvalidArgument, std::string(elements == nullptr ? "null" : "unaligned") +
                                                    " memory for " + std::string(dtype_name(dtype)) +
                                                    shape_text(shape));
    }
    // A pointer that owns nothing would count as no pointer: own an empty holder then.
    auto holder = std::make_shared<std::shared_ptr<void>>(std::move(keep_alive));
    return {dtype, std::move(shape), std::shared_ptr<void>(holder, elements)};
}

Tensor Tensor::from_dlpack(dlpack::ManagedTensor* managed) {
    return import_tensor(managed, Take::kShared);
}

Tensor Tensor::from_dlpack(dlpack::VersionedTensor* managed) {
    if (managed->version.major != 1) {
        api::raise(ErrorCode::kUnsupported, "the DLPack tensor is of version " +
                                                std::to_string(managed->version.major) + "." +
                                                std::to_string(managed->version.minor) + ", not 1");
    }
    return import_tensor(managed, (managed->flags & dlpack::kReadOnly) != 0 ? Take::kCopied : Take::kShared);
}

dlpack::ManagedTensor* Tensor::to_dlpack() const {
    return export_tensor<dlpack::ManagedTensor>(*this);
}

dlpack::VersionedTensor* Tensor::to_versioned_dlpack() const {
    auto* made = export_tensor<dlpack::VersionedTensor>(*this);
    made->version = {1, 0};
    return made;
}

int64_t Tensor::size() const {
    int64_t elements = 1;
    for (int64_t length : shape_) {
        elements *= length;
    }
    return elements;
}

int64_t Tensor::bytes() const {
    const ir::DTypeInfo& info = ir::info(api::to_ir(dtype_));
    return size() / info.block_elements * info.block_bytes;
}

Tensor Tensor::copy() const {
    Tensor made = empty(dtype_, shape_);
    std::memcpy(made.data(), data(), static_cast<size_t>(bytes()));
    return made;
}

Tensor Tensor::cast(DType dtype) const {
    ir::DType from = api::to_ir(dtype_);
    ir::DType to = api::to_ir(dtype);
    if (!ir::is_float(from) || !ir::is_float(to)) {
        api::raise(ErrorCode::kUnsupported, "Tensor::cast: " + type_string() + " to " + std::string(dtype_name(dtype)) +
                                                " is no conversion between floats; the op cast() has all");
    }
    if (from == to) {
        return copy();
    }
    std::string bytes;
    bytes.reserve(static_cast<size_t>(size() * ir::element_bytes(to)));
    const auto* element = static_cast<const char*>(data());
    for (int64_t i = 0; i < size(); ++i, element += ir::element_bytes(from)) {
        ir::append_element(bytes, to, ir::element_as_double(element, from));
    }
    Tensor made = empty(dtype, shape_);
    std::copy(bytes.begin(), bytes.end(), static_cast<char*>(made.data()));
    return made;
}

std::string Tensor::type_string() const {
    return std::string(dtype_name(dtype_)) + shape_text(shape_);
}

void Tensor::require(DType dtype) const {
    if (dtype != dtype_) {
        api::raise(ErrorCode::kType, "the tensor is " + type_string() + ", not " + std::string(dtype_name(dtype)));
    }
}

void Tensor::require_one() const {
    if (size() != 1) {
        api::raise(ErrorCode::kShape, "item() of " + type_string() + ": there is not exactly one element");
    }
}

}  // namespace ember
