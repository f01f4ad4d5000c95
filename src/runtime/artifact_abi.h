// The contract between a compiled artifact and the process that runs it. An artifact imports no symbol of Ember: all it
// needs comes through the table below, so it can be loaded in any scope. Layouts are part of the artifact's format: a
// change here changes kArtifactAbi, which is part of every key.
//
//     int32_t ember_call(EmberContext*, const EmberTensor* const* inputs, EmberTensor* const* outputs);
//         inputs: every parameter in order; outputs: every result in order, `shape` pointing to room for its rank.
//         Returns 0, or the number of the failed check plus 1 (its text is in the metadata), or kArtifactOutOfMemory,
//         or kArtifactHostFailed when the host's function of a host_call gave something other than 0.
//
// EmberTensor has the layout of DLPack's DLTensor. Data is on the CPU, contiguous and row-major, aligned to its
// element.
#pragma once

#include <cstdint>
#include <unordered_set>

extern "C" {

struct EmberTensor {
    void* data;
    int32_t device_type;
    int32_t device_id;
    int32_t ndim;
    uint8_t dtype_code;
    uint8_t dtype_bits;
    uint16_t dtype_lanes;
    int64_t* shape;
    int64_t* strides;
    uint64_t byte_offset;
};

/// An argument of a function that is called by number.
union EmberSlot {
    int64_t number;
    void* pointer;
};

struct EmberContext;
using EmberRange = void (*)(void* arguments, int64_t begin, int64_t end);

struct EmberRuntime {
    /// Runs a kernel over [0, total) on the thread pool.
    void (*parallel_for)(EmberRange kernel, void* arguments, int64_t total, int64_t grain);
    /// 64-byte aligned room until the mark that was taken before is released; null when memory is out.
    void* (*arena_allocate)(EmberContext* context, int64_t bytes);
    int64_t (*arena_mark)(EmberContext* context);
    void (*arena_release)(EmberContext* context, int64_t mark);
    /// 64-byte aligned memory for a result whose length only the step that makes it knows: lives until it is dropped or
    /// the call ends; null when memory is out. Memory that is not of keep() may be dropped: nothing happens.
    void* (*keep)(EmberContext* context, int64_t bytes);
    void (*drop)(EmberContext* context, void* memory);
    /// Room of a kernel's own thread, valid until its next call; number: which of several.
    void* (*scratch)(int32_t number, int64_t bytes);
    /// c[b…, m…, n…] = sum over k… of a[b…, m…, k…] * b[b…, n…, k…]. table: ranks of b, m, n, k; then the lengths of
    /// b…, m…, n…, k…; then the element strides of a (b…, m…, k…), of b (b…, n…, k…) and of c (b…, m…, n…).
    void (*contract)(int32_t is_f64, const int64_t* table, const void* a, const void* b, void* c);
    void (*quantized_matmul)(int32_t type, int64_t m, int64_t n, int64_t k, const float* x, const void* w, float* y);
    /// to[i, :] = rows[index[i], :]; index_bytes 0: row i; 4 or 8: i32 or i64 indices, negative ones from the end.
    void (*dequantize_rows)(int32_t type, const void* rows, const void* index, int32_t index_bytes, int64_t count,
                            int64_t length, int64_t limit, float* to);
    /// The position of the first index outside -limit … limit-1, or -1. kind: bytes of an index, negative if unsigned.
    int64_t (*check_indices)(const void* index, int32_t kind, int64_t count, int64_t limit);
    /// The function of this number (runtime/functions.def) and what it gives, -1 where memory is out.
    int64_t (*call)(int32_t function, const EmberSlot* arguments);
};

struct EmberContext {
    const EmberRuntime* runtime;
    /// Memory for output `number`; the artifact calls it once for each output that it does not write in place.
    void* (*allocate_output)(EmberContext* context, int32_t number, int64_t bytes);
    void* arena;
    int64_t error_a;  // the two scalars of the failed check
    int64_t error_b;
    void* host;  // the caller's own
    void* kept;  // behind keep() and drop()
    /// Runs the host's function `number` (of the metadata's list). inputs: contiguous tensors, to be read only.
    /// outputs: dtype and ndim are set, shape points to room; the function sets lengths and data, memory that lives
    /// until the call ends and is nobody else's: keep() gives such. Anything but 0 ends the call with
    /// kArtifactHostFailed.
    int32_t (*host_call)(EmberContext* context, int32_t number, const EmberTensor* inputs, int32_t input_count,
                         EmberTensor* outputs, int32_t output_count);
};

}  // extern "C"

namespace ember::runtime {

inline constexpr int kArtifactAbi = 4;
inline constexpr int32_t kArtifactOutOfMemory = -1;
inline constexpr int32_t kArtifactHostFailed = -2;

/// The table of this process.
const EmberRuntime* artifact_runtime();

/// A context's memory for temporaries: a stack of blocks that grows and is kept between calls. Not thread-safe.
class Arena {
public:
    ~Arena();
    void* allocate(int64_t bytes);
    int64_t mark() const;
    void release(int64_t mark);

private:
    struct Block {
        char* memory;
        int64_t size;
        int64_t used;
    };
    static constexpr int kMaxBlocks = 64;
    Block blocks_[kMaxBlocks] = {};
    int current_ = -1;
};

/// What keep() has given in one call. Not thread-safe.
class Kept {
public:
    Kept() = default;
    Kept(const Kept&) = delete;
    ~Kept();
    void* keep(int64_t bytes);
    void drop(void* memory);

private:
    std::unordered_set<void*> memory_;
};

}  // namespace ember::runtime
