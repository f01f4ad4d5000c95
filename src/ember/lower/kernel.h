// Kernels: one loop nest each, over an iteration space of rows × columns. The rows are the parallel loop; inside a row
// the columns are walked in as many passes as reductions depend on each other (softmax: three), so a row stays in
// cache. A kernel is pure data with local numbering: equal kernels have equal texts and are compiled once. Invariants:
// instructions stand before their users; a load or store gives one index an axis of its buffer; a value that uses no
// column index is computed once a row. Tests: test/filetests/lower.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ember/ir/graph.h"

namespace ember::lower {

/// A length inside a kernel: a number, or one of its i64 scalar arguments.
struct Extent {
    int64_t size = -1;
    int scalar = -1;

    bool is_static() const { return scalar < 0; }
    bool is_one() const { return is_static() && size == 1; }
    friend bool operator==(const Extent&, const Extent&) = default;
};

enum class KernelOp : uint8_t {
    kConst,      // literal of one element
    kTable,      // element of a literal by linear index: args = one index an axis
    kScalar,     // scalar argument `index`
    kIndex,      // iteration variable of axis `index`, i64
    kMap,        // map_op of args
    kCast,       // args[0] converted to dtype
    kLoad,       // element of buffer `index` at args
    kReduce,     // args[0] combined over all columns by map_op (add, mul, max, min, and, or, xor)
    kArgReduce,  // i64 column index of the first extreme of args[0]; map_op gt (max) or lt (min)
    kScan,       // running map_op (add, mul) of args[0] along the only column axis
    kStore,      // args[0] to buffer `index` at args[1…]; map_op, if not select, combines with what is there
};

struct Instruction {
    KernelOp op;
    ir::Op map_op = ir::Op::k_select;
    ir::DType dtype = ir::DType::kF32;
    int index = 0;
    std::vector<int> args = {};
    ir::Literal literal = {};

    friend bool operator==(const Instruction&, const Instruction&) = default;
};

struct KernelBuffer {
    ir::DType dtype;
    std::vector<Extent> shape;
    bool written = false;
};

struct Kernel {
    std::vector<Extent> extents;  // rows first
    int row_rank = 0;
    std::vector<KernelBuffer> buffers;
    std::vector<ir::DType> scalars;
    std::vector<Instruction> body;
    bool serial = false;  // rows must be walked in order by one thread (scatter)

    /// Canonical text: the kernel's identity.
    std::string to_string() const;
    /// Rough cost of one element of the space, in simple instructions.
    int64_t cost() const;
};

}  // namespace ember::lower
