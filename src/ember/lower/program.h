// A lowered function: what its driver does, step by step. Tensors live in buffers (row-major, contiguous); lengths and
// other rank-0 values that steer the run are scalars, computed by the driver in registers.
// Invariants: a scalar is computed by a step before any step uses it; buffers of kind kTemp have a slot of the
// workspace, and buffers that share a slot are never alive together.
// Tests: test/filetests/lower.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "ember/ir/graph.h"
#include "ember/lower/kernel.h"

namespace ember::lower {

using ScalarId = int;
using BufferId = int;

/// A rank-0 value in a register of the driver.
struct Scalar {
    enum class Kind : uint8_t { kConst, kParamDim, kLoad, kMap, kCast, kTrip, kActualTrips, kGiven };
    Kind kind;  // kGiven: a length that a step gives with its result
    ir::DType dtype = ir::DType::kI64;
    ir::Op map_op = ir::Op::k_add;
    std::vector<ScalarId> args = {};
    ir::Literal literal = {};
    int index = 0;  // parameter or buffer
    int axis = 0;
};

enum class BufferKind : uint8_t {
    kParam,   // index: parameter
    kOutput,  // index: output; the driver allocates it through the host, or it is written in place of a parameter
    kTemp,    // index: slot
    kGiven,   // memory that comes with the result of a step, as its lengths do
};

struct Buffer {
    BufferKind kind = BufferKind::kTemp;
    int index = 0;
    ir::DType dtype = ir::DType::kF32;
    std::vector<ScalarId> shape;
    /// kOutput only: the parameter whose memory it takes over, or -1.
    int in_place_of = -1;
    /// A second name, with another shape, for the memory of this buffer; -1: own memory.
    BufferId alias_of = -1;
};

/// A strided window on a buffer: what gemm and friends take. Strides and offset count elements.
struct View {
    BufferId buffer = -1;
    ScalarId offset = -1;
    std::vector<ScalarId> shape;
    std::vector<ScalarId> strides;
};

struct ComputeScalar {
    ScalarId scalar;
};
struct Launch {
    int kernel = 0;
    std::vector<BufferId> buffers;
    std::vector<ScalarId> scalars;
};
/// c[batch, m…, n…] = sum over k… of a·b; axes of the views in that order.
struct Gemm {
    View a;  // batch…, m…, k…
    View b;  // batch…, n…, k…
    View c;  // batch…, m…, n…
    int batch = 0;
    int m = 0;
    int n = 0;
    int k = 0;
};
struct QuantizedMatmul {
    View x;  // m…, k (contiguous)
    BufferId weights;
    BufferId result;
    std::vector<ScalarId> m;
    ScalarId n;
    ScalarId k;
};
/// Rows of a quantised tensor by index, dequantised: to[i, :] = f32(rows[index[i], :]).
struct DequantizeRows {
    BufferId rows;
    BufferId index;  // i32 or i64; -1: all rows in order
    BufferId to;
    ScalarId count;
    ScalarId length;
    ScalarId limit;
};
struct CopyBuffer {
    BufferId from;
    BufferId to;
};
/// Error `message` unless the two i64 scalars are equal (or, for kTrue, the bool scalar a holds; for kInside, 0 <= a <=
/// b).
struct Check {
    enum class Kind : uint8_t { kEqual, kTrue, kInside } kind;
    ScalarId a;
    ScalarId b;
    int message;
    ScalarId shown = -1;  // what the message shows in place of a
};
/// Error `message` unless every index lies in -limit … limit-1.
struct CheckIndices {
    BufferId index;
    ScalarId limit;
    int message;
};
/// A function of the runtime (runtime/functions.def). It gives an i64, which `result` (a kGiven scalar), if there is
/// one, becomes; -1 ends the run: memory is out.
struct CallRuntime {
    struct Argument {
        enum class Kind : uint8_t { kBuffer, kRead, kScalar, kNumber } kind;
        int64_t value;  // a BufferId, -1: none, one that is only read; a ScalarId of an i64; the number

        bool is_buffer() const { return (kind == Kind::kBuffer || kind == Kind::kRead) && value >= 0; }
    };
    std::string_view function;
    std::vector<Argument> arguments;
    ScalarId result = -1;
    bool may_fail = true;
};
/// `lengths`: of each result that comes with its memory the kGiven scalar of each axis, of others nothing.
struct CallFunction {
    int function;  // of the lowered module
    std::vector<BufferId> arguments;
    std::vector<BufferId> results;
    std::vector<std::vector<ScalarId>> lengths;
    ScalarId workspace = -1;  // bytes that the callee takes, -1: only the callee knows
};
/// The host's function `number`. `lengths`: of each result the kGiven scalar of each axis.
struct HostCall {
    int number;
    std::vector<BufferId> arguments;
    std::vector<BufferId> results;
    std::vector<std::vector<ScalarId>> lengths;
};
struct If {
    ScalarId condition;
    int then_function;
    int else_function;
    std::vector<BufferId> arguments;
    std::vector<BufferId> results;
    std::vector<std::vector<ScalarId>> lengths;  // as of CallFunction
    ScalarId workspace = -1;
};
/// for i < trips: body(i, carried…, invariants…). Carried values alternate between two buffers; `finals` get the last
/// ones. Stacked results are written row by row into `stacked`. `actual` (a kActualTrips scalar) says how many steps
/// ran.
struct Loop {
    ScalarId trips;
    int body;
    BufferId index;
    std::vector<BufferId> initial;
    std::vector<BufferId> ping;
    std::vector<BufferId> finals;
    std::vector<BufferId> invariants;
    std::vector<BufferId> stacked;
    /// Of stacked results whose rows come with their memory: the kGiven scalar of each axis of a row, and what the
    /// lengths are when no step runs.
    std::vector<std::vector<ScalarId>> lengths;
    std::vector<std::vector<ScalarId>> without_steps;
    int changed = -1;  // the message for a row of other lengths
    BufferId go_on = -1;
    ScalarId actual = -1;
    ScalarId workspace = -1;
};

using Step = std::variant<ComputeScalar, Launch, Gemm, QuantizedMatmul, DequantizeRows, CopyBuffer, Check, CheckIndices,
                          CallRuntime, CallFunction, HostCall, If, Loop>;

struct Program {
    std::string name;
    std::vector<ir::TensorType> params;
    std::vector<BufferId> param_buffers;
    std::vector<BufferId> outputs;
    std::vector<ir::TensorType> output_types;
    /// Outputs that come with their memory and lengths: the caller gives room for the pointer and the lengths instead
    /// of the result's memory. None of the entry's.
    std::vector<bool> open;
    /// Outputs that a callee writes into a parameter's own memory: parameter index or -1.
    std::vector<int> in_place;
    std::vector<Scalar> scalars;
    std::vector<Buffer> buffers;
    std::vector<Step> steps;
    /// Size of each workspace slot: the largest of these products of lengths times bytes.
    struct Slot {
        std::vector<BufferId> users;
    };
    std::vector<Slot> slots;
    /// The first step that writes into a parameter's memory, -1 if none does. From it on nothing fails: before it,
    /// memory is had for the buffers in `prepared`, and `reserve` bytes (a scalar, or -1) are seen to be there for
    /// callees.
    int commit = -1;
    std::vector<BufferId> prepared;
    ScalarId reserve = -1;
    /// Checks and CheckIndices of arguments that callers make before the call. Their scalars follow from the parameters
    /// alone, as does `workspace`: the bytes that a call takes, itself and its callees; -1 if only the call can tell.
    std::vector<Step> preconditions;
    ScalarId workspace = -1;
    bool may_fail = false;  // for want of memory apart
};

/// Everything that code is generated from. programs.front() is the entry.
struct LoweredModule {
    std::vector<Program> programs;
    std::vector<Kernel> kernels;
    /// Of checks. "%a" and "%b" stand for the scalars, "index:" before the text for an index error instead of one of
    /// shapes, and "assert:" before a text that is the user's own.
    std::vector<std::string> messages;
    std::vector<std::string> host_ids;  // of host_call
};

std::string to_string(const LoweredModule& module);

}  // namespace ember::lower
