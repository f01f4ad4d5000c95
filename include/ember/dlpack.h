// DLPack's structures, declared here so that the API needs no other header. Layout as in
// https://dmlc.github.io/dlpack/latest/c_api.html. Cast a `DLManagedTensor*` (behind a capsule named "dltensor") or a
// `DLManagedTensorVersioned*` ("dltensor_versioned") to and from these.
#pragma once

#include <cstdint>

namespace ember::dlpack {

/// DLDeviceType kDLCPU.
inline constexpr int32_t kCpu = 1;

struct Device {
    int32_t type;
    int32_t id;
};

/// code: 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool.
struct DataType {
    uint8_t code;
    uint8_t bits;
    uint16_t lanes;
};

struct Tensor {
    void* data;
    Device device;
    int32_t ndim;
    DataType dtype;
    int64_t* shape;
    int64_t* strides;  // in elements; null: row-major
    uint64_t byte_offset;
};

struct ManagedTensor {
    Tensor tensor;
    void* manager;
    void (*deleter)(ManagedTensor* self);  // may be null
};

struct Version {
    uint32_t major;
    uint32_t minor;
};

/// The elements must not be written.
inline constexpr uint64_t kReadOnly = 1;

/// Of version 1.
struct VersionedTensor {
    Version version;
    void* manager;
    void (*deleter)(VersionedTensor* self);  // may be null
    uint64_t flags;
    Tensor tensor;
};

}  // namespace ember::dlpack
