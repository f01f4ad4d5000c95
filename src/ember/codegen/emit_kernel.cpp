// Kernels: rows in a parallel loop; in each row, passes over the columns. Pass p computes what depends on the
// reductions of the passes before it; a value of an earlier pass is computed again where that is cheap, else kept in a
// scratch row.
// Long because the passes of a row share the state of one kernel.
#include <llvm/IR/Intrinsics.h>

#include <algorithm>
#include <cstddef>

#include "ember/codegen/emitter.h"
#include "ember/lower/group.h"
#include "runtime/artifact_abi.h"

namespace ember::codegen {

using ir::DType;
using ir::Op;
using lower::Extent;
using lower::Instruction;
using lower::Kernel;
using lower::KernelOp;

namespace {

constexpr int kRecomputeCost = 12;
constexpr int kMaxCost = 1 << 20;
constexpr int64_t kRowBlock = 256;        // rows that a column-wise reduction holds at once
constexpr int64_t kStackScratch = 16384;  // bytes
constexpr int kScratchRows = 8;           // of the runtime, for longer rows

bool is_reduction(const Instruction& i) {
    return i.op == KernelOp::kReduce || i.op == KernelOp::kArgReduce;
}

/// Where each instruction stands: full (it depends on a column) in pass `when`, or row-wide in the gap before pass
/// `when`.
struct Placement {
    std::vector<bool> full;
    std::vector<int> when;
    std::vector<int> cost;  // of computing a full value from loads, in its pass
    int passes = 0;
};

Placement place(const Kernel& kernel, int first_column) {
    Placement p;
    size_t n = kernel.body.size();
    p.full.assign(n, false);
    p.when.assign(n, 0);
    p.cost.assign(n, 0);
    for (size_t i = 0; i < n; ++i) {
        const Instruction& instruction = kernel.body[i];
        for (int arg : instruction.args) {
            auto a = static_cast<size_t>(arg);
            p.full[i] = p.full[i] || p.full[a];
            p.when[i] = std::max(p.when[i], p.when[a]);
            p.cost[i] = std::min(p.cost[i] + (p.full[a] ? p.cost[a] : 0), kMaxCost);
        }
        if (instruction.op == KernelOp::kIndex) {
            p.full[i] = instruction.index >= first_column;
        } else if (is_reduction(instruction)) {
            p.passes = std::max(p.passes, p.when[i] + 1);
            p.full[i] = false;
            ++p.when[i];
        } else if (instruction.op == KernelOp::kScan) {
            p.full[i] = true;
            p.passes = std::max(p.passes, p.when[i] + 1);
        } else if (instruction.op == KernelOp::kMap && instruction.dtype != DType::kI64) {
            p.cost[i] += lower::map_cost(instruction.map_op);
        }
        if (instruction.op == KernelOp::kStore && p.full[i]) {
            p.passes = std::max(p.passes, p.when[i] + 1);
        }
    }
    return p;
}

class KernelEmitter {
public:
    KernelEmitter(Emitter& emitter, const Kernel& kernel, llvm::Function* function)
        : e_(emitter), kernel_(kernel), function_(function), b_(emitter.context()) {
        reduces_ = std::any_of(kernel.body.begin(), kernel.body.end(),
                               [](const Instruction& i) { return is_reduction(i) || i.op == KernelOp::kScan; });
        // Without reductions and rows, the only axis is what the parallel range runs over.
        range_is_column_ = !reduces_ && kernel.row_rank == 0 && kernel.extents.size() == 1;
        placement_ = place(kernel, kernel.row_rank);
    }

    void run() {
        start();
        if (kernel_.row_rank == 0) {
            row();
        } else if (columnwise()) {
            blocked_rows();
        } else {
            emit_loop(b_, begin_, end_, pure_rows() ? LoopKind::kVector : LoopKind::kPlain, [&](Value* r) {
                set_row_indices(r);
                row();
            });
        }
        b_.CreateRetVoid();
    }

    // --- reductions of everything, in parts. Partials are in slots of 8 bytes, in order of the parts, then of the
    // reductions, in the type of the accumulator.

    /// One pass without rows, whose parts are only joined by plain reductions.
    static size_t reductions_in_parts(const Kernel& kernel) {
        if (kernel.row_rank != 0 || kernel.extents.empty() || kernel.serial) {
            return 0;
        }
        if (place(kernel, 0).passes != 1) {
            return 0;
        }
        size_t count = 0;
        for (const Instruction& i : kernel.body) {
            bool combines = i.op == KernelOp::kStore && i.map_op != Op::k_select;
            if (i.op == KernelOp::kArgReduce || i.op == KernelOp::kScan || combines) {
                return 0;
            }
            count += i.op == KernelOp::kReduce ? 1 : 0;
        }
        return count;
    }

    /// The function's last arguments are the length of a part and the partials, after begin and end.
    void run_parts() {
        start();
        size_t more = function_->arg_size() - 2;
        Value* length = function_->getArg(static_cast<unsigned>(more));
        partials_ = function_->getArg(static_cast<unsigned>(more) + 1);
        emit_loop(b_, begin_, end_, LoopKind::kPlain, [&](Value* part) {
            part_ = part;
            part_begin_ = b_.CreateMul(part, length);
            part_end_ = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateAdd(part_begin_, length),
                                                 extent(kernel_.extents[0]));
            pass(0);
        });
        b_.CreateRetVoid();
    }

    /// `begin` and `end` are the first part and how many there are; the partials are the last argument.
    void run_finish() {
        start();
        partials_ = function_->getArg(static_cast<unsigned>(function_->arg_size()) - 1);
        gap(0);
        size_t k = 0;
        for (size_t i = 0; i < kernel_.body.size(); ++i) {
            if (!is_reduction(kernel_.body[i])) {
                continue;
            }
            Accumulator a = make_accumulator(i);
            emit_loop(b_, begin_, end_, LoopKind::kPlain, [&](Value* part) {
                part_ = part;
                combine_into(a, b_.CreateLoad(accumulator_type(kernel_.body[i].dtype), partial(k)));
            });
            values_[i] = read_accumulator(a);
            ++k;
        }
        gap(1);
        b_.CreateRetVoid();
    }

private:
    void start() {
        b_.SetInsertPoint(llvm::BasicBlock::Create(e_.context(), "entry", function_));
        b_.setFastMathFlags(contract_flags());
        arguments();
        values_.assign(kernel_.body.size(), nullptr);
        scratch_.assign(kernel_.body.size(), nullptr);
    }

    /// The slot of reduction number k of the part.
    Value* partial(size_t k) {
        uint64_t count = reductions_in_parts(kernel_);
        Value* slot = b_.CreateAdd(b_.CreateMul(part_, b_.getInt64(count)), b_.getInt64(k));
        return b_.CreateInBoundsGEP(b_.getInt64Ty(), partials_, {slot});
    }

    static llvm::FastMathFlags contract_flags() {
        llvm::FastMathFlags flags;
        flags.setAllowContract();
        return flags;
    }

    void arguments() {
        unsigned at = 0;
        runtime_ = function_->getArg(at++);
        for (size_t k = 0; k < kernel_.buffers.size(); ++k) {
            buffers_.push_back(function_->getArg(at++));
        }
        for (size_t k = 0; k < kernel_.scalars.size(); ++k) {
            scalars_.push_back(function_->getArg(at++));
        }
        begin_ = function_->getArg(at++);
        end_ = function_->getArg(at++);
        row_index_.assign(kernel_.extents.size(), nullptr);
    }

    Value* extent(Extent e) {
        return e.is_static() ? b_.getInt64(static_cast<uint64_t>(e.size)) : scalars_[static_cast<size_t>(e.scalar)];
    }

    bool pure_rows() const { return static_cast<int>(kernel_.extents.size()) == kernel_.row_rank && !kernel_.serial; }

    void set_row_indices(Value* r) {
        for (int k = kernel_.row_rank - 1; k >= 0; --k) {
            auto at = static_cast<size_t>(k);
            if (k == 0) {
                row_index_[at] = r;
                break;
            }
            Value* length = extent(kernel_.extents[at]);
            row_index_[at] = b_.CreateURem(r, length);
            r = b_.CreateUDiv(r, length);
        }
    }

    // --- one row
    void row() {
        std::fill(values_.begin(), values_.end(), nullptr);
        scratch_.assign(kernel_.body.size(), nullptr);
        for (int p = 0; p < placement_.passes; ++p) {
            gap(p);
            plan_scratch(p);
            pass(p);
        }
        gap(placement_.passes);
    }

    /// Row-wide stores that are ready before pass p.
    void gap(int p) {
        for (size_t i = 0; i < kernel_.body.size(); ++i) {
            if (kernel_.body[i].op == KernelOp::kStore && !placement_.full[i] && placement_.when[i] == p) {
                store(i);
            }
        }
    }

    /// Is instruction i, of pass q, needed again in a later pass and dear to compute? Then pass q keeps it in a row.
    void plan_scratch(int pass) {
        for (size_t i = 0; i < kernel_.body.size(); ++i) {
            bool dear = placement_.full[i] && placement_.when[i] == pass && placement_.cost[i] > kRecomputeCost &&
                        kernel_.body[i].op == KernelOp::kMap;
            if (!dear || scratch_[i] != nullptr) {
                continue;
            }
            bool later = false;
            for (size_t u = i + 1; u < kernel_.body.size() && !later; ++u) {
                const auto& args = kernel_.body[u].args;
                bool uses = std::find(args.begin(), args.end(), static_cast<int>(i)) != args.end();
                later = uses && placement_.full[u] && placement_.when[u] > pass;
            }
            if (later) {
                scratch_[i] = scratch_row(i);
            }
        }
    }

    /// Null where the runtime has no more rows: the instruction is computed again instead.
    Value* scratch_row(size_t i) {
        Value* count = b_.getInt64(1);
        bool is_static = true;
        int64_t elements = 1;
        for (size_t k = static_cast<size_t>(kernel_.row_rank); k < kernel_.extents.size(); ++k) {
            is_static &= kernel_.extents[k].is_static();
            elements *= is_static ? kernel_.extents[k].size : 1;
            count = b_.CreateMul(count, extent(kernel_.extents[k]));
        }
        llvm::Type* type = e_.value_type(kernel_.body[i].dtype);
        auto bytes = static_cast<int64_t>(e_.module().getDataLayout().getTypeAllocSize(type));
        if (is_static && elements * bytes <= kStackScratch) {
            Builder entry(&function_->getEntryBlock(), function_->getEntryBlock().begin());
            auto* room = entry.CreateAlloca(llvm::ArrayType::get(type, static_cast<uint64_t>(elements)));
            room->setAlignment(llvm::Align(64));
            return room;
        }
        if (scratch_count_ == kScratchRows) {
            return nullptr;
        }
        auto* get = llvm::FunctionType::get(b_.getPtrTy(), {b_.getInt32Ty(), b_.getInt64Ty()}, false);
        Value* slot = b_.CreateConstInBoundsGEP1_64(b_.getPtrTy(), runtime_, kScratchSlot);
        Value* callee = b_.CreateLoad(b_.getPtrTy(), slot);
        return b_.CreateCall(get, callee,
                             {b_.getInt32(static_cast<uint32_t>(scratch_count_++)),
                              b_.CreateMul(count, b_.getInt64(static_cast<uint64_t>(bytes)))});
    }

    // --- one pass over the columns
    struct Accumulator {
        size_t instruction;
        Value* slot;
        Value* index_slot = nullptr;
    };

    void pass(int p) {
        std::vector<Accumulator> accumulators;
        std::vector<size_t> roots;
        for (size_t i = 0; i < kernel_.body.size(); ++i) {
            const Instruction& instruction = kernel_.body[i];
            bool mine = is_reduction(instruction)            ? placement_.when[i] == p + 1
                        : instruction.op == KernelOp::kScan  ? placement_.when[i] == p
                        : instruction.op == KernelOp::kStore ? placement_.full[i] && placement_.when[i] == p
                                                             : scratch_[i] != nullptr && placement_.when[i] == p;
            if (mine) {
                roots.push_back(i);
            }
            if (mine && (is_reduction(instruction) || instruction.op == KernelOp::kScan)) {
                accumulators.push_back(make_accumulator(i));
            }
        }
        // What a pass needs row-wide is computed before its loop.
        std::vector<bool> seen(kernel_.body.size(), false);
        for (size_t i : roots) {
            prepare_row_values(i, seen);
        }
        linear_ = nullptr;
        std::vector<Value*> kept = values_;
        pass_ = p;
        columns(static_cast<size_t>(kernel_.row_rank), [&] {
            for (size_t i : roots) {
                root(i, accumulators);
            }
        });
        values_ = std::move(kept);
        for (size_t k = 0; partials_ != nullptr && k < accumulators.size(); ++k) {
            llvm::Type* type = accumulator_type(kernel_.body[accumulators[k].instruction].dtype);
            b_.CreateStore(b_.CreateLoad(type, accumulators[k].slot), partial(k));
        }
        if (partials_ != nullptr) {
            return;
        }
        for (const Accumulator& a : accumulators) {
            if (is_reduction(kernel_.body[a.instruction])) {
                values_[a.instruction] = read_accumulator(a);
            }
        }
    }

    void prepare_row_values(size_t i, std::vector<bool>& seen) {
        if (seen[i]) {
            return;
        }
        seen[i] = true;
        for (int arg : kernel_.body[i].args) {
            auto a = static_cast<size_t>(arg);
            if (placement_.full[a]) {
                prepare_row_values(a, seen);
            } else if (values_[a] == nullptr) {
                value(a);
            }
        }
    }

    void columns(size_t axis, const std::function<void()>& body) {
        if (axis >= kernel_.extents.size()) {
            body();
            return;
        }
        bool last = axis + 1 == kernel_.extents.size();
        bool ranged = range_is_column_;
        bool part = partials_ != nullptr && axis == 0;
        Value* from = ranged ? begin_ : part ? part_begin_ : b_.getInt64(0);
        Value* to = ranged ? end_ : part ? part_end_ : extent(kernel_.extents[axis]);
        emit_loop(b_, from, to, last && !kernel_.serial ? LoopKind::kVector : LoopKind::kPlain, [&](Value* index) {
            row_index_[axis] = index;
            Value* outer = linear_;
            linear_ =
                outer == nullptr ? index : b_.CreateAdd(b_.CreateMul(outer, to, "", true, true), index, "", true, true);
            std::vector<Value*> kept = values_;
            columns(axis + 1, body);
            values_ = std::move(kept);
            linear_ = outer;
        });
    }

    void root(size_t i, std::vector<Accumulator>& accumulators) {
        const Instruction& instruction = kernel_.body[i];
        if (instruction.op == KernelOp::kStore) {
            return store(i);
        }
        if (is_reduction(instruction) || instruction.op == KernelOp::kScan) {
            auto a = std::find_if(accumulators.begin(), accumulators.end(),
                                  [i](const Accumulator& x) { return x.instruction == i; });
            return accumulate(*a);
        }
        Value* made = compute(i);
        llvm::Type* type = made->getType();
        b_.CreateAlignedStore(made, b_.CreateInBoundsGEP(type, scratch_[i], {linear_}), natural_alignment(type));
    }

    llvm::Align natural_alignment(llvm::Type* type) { return e_.module().getDataLayout().getABITypeAlign(type); }

    // --- reductions. Accumulators of bool are bytes.
    llvm::Type* accumulator_type(DType dtype) {
        return ir::is_bool(dtype) ? static_cast<llvm::Type*>(b_.getInt8Ty()) : e_.value_type(dtype);
    }

    Value* stack_slot(llvm::Type* type) {
        Builder entry(&function_->getEntryBlock(), function_->getEntryBlock().begin());
        return entry.CreateAlloca(type);
    }

    Accumulator make_accumulator(size_t i) {
        const Instruction& instruction = kernel_.body[i];
        Accumulator a{i, nullptr, nullptr};
        if (instruction.op == KernelOp::kArgReduce) {
            DType dtype = kernel_.body[static_cast<size_t>(instruction.args[0])].dtype;
            a.slot = stack_slot(accumulator_type(dtype));
            a.index_slot = stack_slot(b_.getInt64Ty());
            init_slot(a.slot, instruction.map_op == Op::k_gt ? Op::k_max : Op::k_min, dtype);
            b_.CreateStore(b_.getInt64(static_cast<uint64_t>(-1)), a.index_slot);
            return a;
        }
        a.slot = stack_slot(accumulator_type(instruction.dtype));
        init_slot(a.slot, instruction.map_op, instruction.dtype);
        return a;
    }

    void init_slot(Value* slot, Op op, DType dtype) {
        Value* start = e_.neutral(op, dtype);
        b_.CreateStore(ir::is_bool(dtype) ? b_.CreateZExt(start, b_.getInt8Ty()) : start, slot);
    }

    Value* read_accumulator(const Accumulator& a) {
        const Instruction& instruction = kernel_.body[a.instruction];
        if (instruction.op == KernelOp::kArgReduce) {
            Value* index = b_.CreateLoad(b_.getInt64Ty(), a.index_slot);
            return b_.CreateSelect(b_.CreateICmpSLT(index, b_.getInt64(0)), b_.getInt64(0), index);
        }
        Value* raw = b_.CreateLoad(accumulator_type(instruction.dtype), a.slot);
        bool half = instruction.dtype == DType::kF16 || instruction.dtype == DType::kBF16;
        return half                             ? e_.cast(b_, raw, DType::kF32, instruction.dtype)
               : ir::is_bool(instruction.dtype) ? b_.CreateICmpNE(raw, b_.getInt8(0))
                                                : raw;
    }

    void accumulate(const Accumulator& a) {
        const Instruction& instruction = kernel_.body[a.instruction];
        Value* x = value(static_cast<size_t>(instruction.args[0]));
        if (instruction.op == KernelOp::kArgReduce) {
            return accumulate_argument(a, x);
        }
        Value* after = combine_into(a, ir::is_bool(instruction.dtype) ? b_.CreateZExt(x, b_.getInt8Ty()) : x);
        if (instruction.op == KernelOp::kScan) {
            values_[a.instruction] = after;
        }
    }

    /// x: a value of the accumulator's type.
    Value* combine_into(const Accumulator& a, Value* x) {
        const Instruction& instruction = kernel_.body[a.instruction];
        DType dtype = instruction.dtype;
        Value* before = b_.CreateLoad(accumulator_type(dtype), a.slot);
        Value* after = nullptr;
        if (ir::is_bool(dtype)) {
            bool both =
                instruction.map_op == Op::k_and || instruction.map_op == Op::k_mul || instruction.map_op == Op::k_min;
            after = both                              ? b_.CreateAnd(before, x)
                    : instruction.map_op == Op::k_xor ? b_.CreateXor(before, x)
                                                      : b_.CreateOr(before, x);
        } else {
            after = e_.combine(b_, instruction.map_op, dtype, before, x);
        }
        b_.CreateStore(after, a.slot);
        return after;
    }

    void accumulate_argument(const Accumulator& a, Value* x) {
        const Instruction& instruction = kernel_.body[a.instruction];
        DType dtype = kernel_.body[static_cast<size_t>(instruction.args[0])].dtype;
        Value* best = b_.CreateLoad(accumulator_type(dtype), a.slot);
        Value* index = b_.CreateLoad(b_.getInt64Ty(), a.index_slot);
        Value* wide = ir::is_bool(dtype) ? b_.CreateZExt(x, b_.getInt8Ty()) : x;
        DType compared = ir::is_bool(dtype) ? DType::kU8 : dtype;
        Value* better = e_.map(b_, instruction.map_op, DType::kBool, compared, {wide, best});
        if (ir::is_float(dtype)) {
            Value* first_nan = b_.CreateAnd(b_.CreateFCmpUNO(x, x), b_.CreateFCmpORD(best, best));
            better = b_.CreateOr(better, first_nan);
        }
        better = b_.CreateOr(better, b_.CreateICmpSLT(index, b_.getInt64(0)));
        b_.CreateStore(b_.CreateSelect(better, wide, best), a.slot);
        Value* here = linear_ == nullptr ? b_.getInt64(0) : linear_;
        b_.CreateStore(b_.CreateSelect(better, here, index), a.index_slot);
    }

    // --- values
    Value* value(size_t i) {
        if (values_[i] == nullptr) {
            bool kept = scratch_[i] != nullptr && placement_.full[i] && placement_.when[i] < pass_;
            if (kept) {
                llvm::Type* type = e_.value_type(kernel_.body[i].dtype);
                values_[i] = b_.CreateAlignedLoad(type, b_.CreateInBoundsGEP(type, scratch_[i], {linear_}),
                                                  natural_alignment(type));
            } else {
                values_[i] = compute(i);
            }
        }
        return values_[i];
    }

    Value* compute(size_t i) {
        if (values_[i] != nullptr) {
            return values_[i];
        }
        const Instruction& instruction = kernel_.body[i];
        Value* made = nullptr;
        switch (instruction.op) {
            case KernelOp::kConst:
                made = e_.constant(instruction.dtype, instruction.literal);
                break;
            case KernelOp::kTable:
                made = table(instruction);
                break;
            case KernelOp::kScalar:
                made = scalars_[static_cast<size_t>(instruction.index)];
                break;
            case KernelOp::kIndex:
                made = row_index_[static_cast<size_t>(instruction.index)];
                break;
            case KernelOp::kMap: {
                std::vector<Value*> args;
                for (int arg : instruction.args) {
                    args.push_back(value(static_cast<size_t>(arg)));
                }
                if (instruction.index == 1) {
                    made = e_.unsigned_index(b_, instruction.map_op, args[0], args[1]);
                    break;
                }
                DType operand = kernel_.body[static_cast<size_t>(instruction.args.back())].dtype;
                made = e_.map(b_, instruction.map_op, instruction.dtype, operand, args);
                break;
            }
            case KernelOp::kCast: {
                auto arg = static_cast<size_t>(instruction.args[0]);
                made = e_.cast(b_, value(arg), kernel_.body[arg].dtype, instruction.dtype);
                break;
            }
            case KernelOp::kLoad:
                made = e_.load(b_, instruction.dtype, address(instruction, 0));
                break;
            default:
                unreachable("a reduction is read before its pass");
        }
        values_[i] = made;
        return made;
    }

    Value* table(const Instruction& instruction) {
        std::vector<llvm::Constant*> elements;
        int64_t count = 1;
        for (int64_t size : instruction.literal.shape) {
            count *= size;
        }
        llvm::Type* type = e_.value_type(instruction.dtype);
        bool bits = type->isIntegerTy(1);
        llvm::Type* stored = bits ? b_.getInt8Ty() : type;
        for (int64_t k = 0; k < count; ++k) {
            auto* element =
                llvm::cast<llvm::Constant>(e_.constant(instruction.dtype, instruction.literal, static_cast<size_t>(k)));
            elements.push_back(bits ? llvm::ConstantInt::get(stored, element->isNullValue() ? 0 : 1) : element);
        }
        auto* array = llvm::ArrayType::get(stored, static_cast<uint64_t>(count));
        auto* global = new llvm::GlobalVariable(e_.module(), array, true, llvm::GlobalValue::PrivateLinkage,
                                                llvm::ConstantArray::get(array, elements));
        Value* offset = b_.getInt64(0);
        for (size_t k = 0; k < instruction.args.size(); ++k) {
            Value* length = b_.getInt64(static_cast<uint64_t>(instruction.literal.shape[k]));
            offset = b_.CreateAdd(b_.CreateMul(offset, length), value(static_cast<size_t>(instruction.args[k])));
        }
        Value* element = b_.CreateLoad(stored, b_.CreateInBoundsGEP(stored, global, {offset}));
        return bits ? b_.CreateICmpNE(element, b_.getInt8(0)) : element;
    }

    Value* address(const Instruction& instruction, size_t first) {
        const lower::KernelBuffer& buffer = kernel_.buffers[static_cast<size_t>(instruction.index)];
        Value* offset = nullptr;
        size_t rank = instruction.args.size() - first;
        for (size_t k = 0; k < rank; ++k) {
            Value* at = value(static_cast<size_t>(instruction.args[first + k]));
            if (offset != nullptr) {
                Value* scaled = b_.CreateMul(offset, extent(buffer.shape[k]), "", false, true);
                offset = b_.CreateAdd(scaled, at, "", false, true);
            } else {
                offset = at;
            }
        }
        Value* base = buffers_[static_cast<size_t>(instruction.index)];
        return offset == nullptr ? base : b_.CreateInBoundsGEP(e_.memory_type(buffer.dtype), base, {offset});
    }

    void store(size_t i) {
        const Instruction& instruction = kernel_.body[i];
        Value* made = value(static_cast<size_t>(instruction.args[0]));
        Value* to = address(instruction, 1);
        if (instruction.map_op != Op::k_select) {
            Value* before = e_.load(b_, instruction.dtype, to);
            made = e_.map(b_, instruction.map_op, instruction.dtype, instruction.dtype, {before, made});
        }
        e_.store(b_, instruction.dtype, made, to);
    }

    // --- reductions over columns while rows are contiguous: a block of rows is held in accumulators, the columns are
    // the outer loop, the rows of the block the inner, vectorised one.

    /// One pass of plain reductions, and some load that walks memory along the last row axis but not along the columns.
    bool columnwise() const {
        if (!reduces_ || placement_.passes != 1 || kernel_.serial ||
            static_cast<int>(kernel_.extents.size()) == kernel_.row_rank) {
            return false;
        }
        int row_axis = kernel_.row_rank - 1;
        bool across = false;
        for (size_t i = 0; i < kernel_.body.size(); ++i) {
            const Instruction& instruction = kernel_.body[i];
            if (instruction.op == KernelOp::kArgReduce || instruction.op == KernelOp::kScan) {
                return false;
            }
            if (instruction.op == KernelOp::kStore && placement_.full[i]) {
                return false;
            }
            if (instruction.op == KernelOp::kLoad && !instruction.args.empty() && placement_.full[i]) {
                const Instruction& last = kernel_.body[static_cast<size_t>(instruction.args.back())];
                if (last.op != KernelOp::kIndex || last.index >= kernel_.row_rank) {
                    return false;
                }
                across |= last.index == row_axis;
            }
        }
        return across;
    }

    void blocked_rows() {
        auto inner_axis = static_cast<size_t>(kernel_.row_rank - 1);
        std::vector<std::pair<size_t, Value*>> blocks;
        for (size_t i = 0; i < kernel_.body.size(); ++i) {
            if (kernel_.body[i].op == KernelOp::kReduce) {
                auto* type = llvm::ArrayType::get(accumulator_type(kernel_.body[i].dtype), kRowBlock);
                blocks.emplace_back(i, stack_slot(type));
            }
        }
        Value* length = extent(kernel_.extents[inner_axis]);
        Value* cursor = stack_slot(b_.getInt64Ty());
        b_.CreateStore(begin_, cursor);
        auto* test = llvm::BasicBlock::Create(e_.context(), "block.test", function_);
        auto* body = llvm::BasicBlock::Create(e_.context(), "block", function_);
        auto* done = llvm::BasicBlock::Create(e_.context(), "block.done", function_);
        b_.CreateBr(test);
        b_.SetInsertPoint(test);
        Value* r = b_.CreateLoad(b_.getInt64Ty(), cursor);
        b_.CreateCondBr(b_.CreateICmpSLT(r, end_), body, done);
        b_.SetInsertPoint(body);
        set_row_indices(r);
        Value* first = row_index_[inner_axis];
        auto smaller = [&](Value* x, Value* y) { return b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, x, y); };
        Value* rows = smaller(smaller(b_.CreateSub(length, first), b_.CreateSub(end_, r)),
                              b_.getInt64(static_cast<uint64_t>(kRowBlock)));
        Value* zero = b_.getInt64(0);
        auto slot_of = [&](size_t i, Value* block, Value* j) {
            return b_.CreateInBoundsGEP(accumulator_type(kernel_.body[i].dtype), block, {j});
        };
        emit_loop(b_, zero, rows, LoopKind::kVector, [&](Value* j) {
            for (auto [i, block] : blocks) {
                init_slot(slot_of(i, block, j), kernel_.body[i].map_op, kernel_.body[i].dtype);
            }
        });
        scratch_.assign(kernel_.body.size(), nullptr);
        columns_plain(static_cast<size_t>(kernel_.row_rank), [&] {
            emit_loop(b_, zero, rows, LoopKind::kVector, [&](Value* j) {
                std::fill(values_.begin(), values_.end(), nullptr);
                row_index_[inner_axis] = b_.CreateAdd(first, j);
                for (auto [i, block] : blocks) {
                    Accumulator a{i, slot_of(i, block, j), nullptr};
                    accumulate(a);
                }
            });
        });
        emit_loop(b_, zero, rows, LoopKind::kVector, [&](Value* j) {
            std::fill(values_.begin(), values_.end(), nullptr);
            row_index_[inner_axis] = b_.CreateAdd(first, j);
            for (auto [i, block] : blocks) {
                values_[i] = read_accumulator({i, slot_of(i, block, j), nullptr});
            }
            gap(0);
            gap(1);
        });
        b_.CreateStore(b_.CreateAdd(r, rows), cursor);
        b_.CreateBr(test);
        b_.SetInsertPoint(done);
    }

    void columns_plain(size_t axis, const std::function<void()>& body) {
        if (axis >= kernel_.extents.size()) {
            body();
            return;
        }
        emit_loop(b_, b_.getInt64(0), extent(kernel_.extents[axis]), LoopKind::kPlain, [&](Value* index) {
            row_index_[axis] = index;
            columns_plain(axis + 1, body);
        });
    }

    static constexpr unsigned kScratchSlot = offsetof(EmberRuntime, scratch) / sizeof(void*);

    Emitter& e_;
    const Kernel& kernel_;
    llvm::Function* function_;
    Builder b_;
    bool reduces_ = false;
    bool range_is_column_ = false;
    Placement placement_;
    Value* runtime_ = nullptr;
    Value* begin_ = nullptr;
    Value* end_ = nullptr;
    Value* linear_ = nullptr;
    int pass_ = 0;
    int scratch_count_ = 0;
    std::vector<Value*> buffers_;
    std::vector<Value*> scalars_;
    Value* partials_ = nullptr;  // where a part leaves what it has reduced
    Value* part_ = nullptr;
    Value* part_begin_ = nullptr;
    Value* part_end_ = nullptr;
    std::vector<Value*> row_index_;  // by axis of the space, columns included
    std::vector<Value*> values_;
    std::vector<Value*> scratch_;
};

}  // namespace

void emit_loop(Builder& b, Value* begin, Value* end, LoopKind kind, const std::function<void(Value*)>& body) {
    llvm::Function* function = b.GetInsertBlock()->getParent();
    llvm::LLVMContext& context = b.getContext();
    llvm::BasicBlock* before = b.GetInsertBlock();
    auto* header = llvm::BasicBlock::Create(context, "loop", function);
    auto* block = llvm::BasicBlock::Create(context, "body", function);
    auto* done = llvm::BasicBlock::Create(context, "done", function);
    b.CreateBr(header);
    b.SetInsertPoint(header);
    llvm::PHINode* index = b.CreatePHI(b.getInt64Ty(), 2);
    index->addIncoming(begin, before);
    b.CreateCondBr(b.CreateICmpSLT(index, end), block, done);
    b.SetInsertPoint(block);
    body(index);
    Value* next = b.CreateAdd(index, b.getInt64(1), "", true, true);
    index->addIncoming(next, b.GetInsertBlock());
    llvm::BranchInst* back = b.CreateBr(header);
    llvm::SmallVector<llvm::Metadata*, 4> properties{nullptr};
    properties.push_back(llvm::MDNode::get(context, llvm::MDString::get(context, "llvm.loop.mustprogress")));
    if (kind == LoopKind::kVector) {
        properties.push_back(llvm::MDNode::get(context, {llvm::MDString::get(context, "llvm.loop.vectorize.enable"),
                                                         llvm::ConstantAsMetadata::get(b.getTrue())}));
    }
    llvm::MDNode* id = llvm::MDNode::getDistinct(context, properties);
    id->replaceOperandWith(0, id);
    back->setMetadata(llvm::LLVMContext::MD_loop, id);
    b.SetInsertPoint(done);
}

llvm::Function* Emitter::kernel_function(const lower::Kernel& kernel, const std::string& name,
                                         const std::vector<llvm::Type*>& more) {
    llvm::Type* pointer = llvm::PointerType::getUnqual(context());
    llvm::Type* int64 = llvm::Type::getInt64Ty(context());
    std::vector<llvm::Type*> types{pointer};
    types.insert(types.end(), kernel.buffers.size(), pointer);
    for (DType dtype : kernel.scalars) {
        types.push_back(value_type(dtype));
    }
    types.insert(types.end(), 2, int64);
    types.insert(types.end(), more.begin(), more.end());
    auto* signature = llvm::FunctionType::get(llvm::Type::getVoidTy(context()), types, false);
    auto* function = llvm::Function::Create(signature, llvm::Function::InternalLinkage, name, module_);
    function->addFnAttr(llvm::Attribute::NoUnwind);
    for (unsigned k = 1; k <= kernel.buffers.size(); ++k) {
        function->addParamAttr(k, llvm::Attribute::NoAlias);
        function->addParamAttr(k, llvm::Attribute::NoUndef);
        if (!kernel.buffers[k - 1].written) {
            function->addParamAttr(k, llvm::Attribute::ReadOnly);
        }
    }
    return function;
}

const Emitter::KernelCode& Emitter::kernel(int index) {
    KernelCode& code = kernels_[static_cast<size_t>(index)];
    if (code.body != nullptr) {
        return code;
    }
    const Kernel& kernel = lowered_.kernels[static_cast<size_t>(index)];
    std::string name = "kernel" + std::to_string(index);
    code.body = kernel_function(kernel, name, {});
    KernelEmitter(*this, kernel, code.body).run();
    code.thunk = emit_range(kernel, name + "_range", code.body, {});
    code.reductions = KernelEmitter::reductions_in_parts(kernel);
    return code;
}

void Emitter::emit_parts(int index) {
    KernelCode& code = kernels_[static_cast<size_t>(index)];
    if (code.parts != nullptr) {
        return;
    }
    const Kernel& kernel = lowered_.kernels[static_cast<size_t>(index)];
    std::string name = "kernel" + std::to_string(index);
    llvm::Type* pointer = llvm::PointerType::getUnqual(context());
    std::vector<llvm::Type*> more{llvm::Type::getInt64Ty(context()), pointer};
    llvm::Function* parts = kernel_function(kernel, name + "_parts", more);
    KernelEmitter(*this, kernel, parts).run_parts();
    code.parts = emit_range(kernel, name + "_parts_range", parts, more);
    code.finish = kernel_function(kernel, name + "_finish", {pointer});
    KernelEmitter(*this, kernel, code.finish).run_finish();
}

/// A function (arguments, begin, end) that calls `body` with arguments from an array of 64-bit slots.
llvm::Function* Emitter::emit_range(const lower::Kernel& kernel, const std::string& name, llvm::Function* body,
                                    const std::vector<llvm::Type*>& more) {
    Builder b(context());
    auto* signature = llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getInt64Ty(), b.getInt64Ty()}, false);
    auto* range = llvm::Function::Create(signature, llvm::Function::InternalLinkage, name, module_);
    range->addFnAttr(llvm::Attribute::NoUnwind);
    b.SetInsertPoint(llvm::BasicBlock::Create(context(), "entry", range));
    std::vector<Value*> args;
    unsigned at = 0;
    auto slot = [&](llvm::Type* type) {
        return b.CreateLoad(type, b.CreateConstInBoundsGEP1_64(b.getInt64Ty(), range->getArg(0), at++));
    };
    for (size_t k = 0; k <= kernel.buffers.size(); ++k) {
        args.push_back(slot(b.getPtrTy()));
    }
    for (DType dtype : kernel.scalars) {
        args.push_back(from_slot(b, slot(b.getInt64Ty()), dtype));
    }
    args.push_back(range->getArg(1));
    args.push_back(range->getArg(2));
    for (llvm::Type* type : more) {
        args.push_back(slot(type));
    }
    b.CreateCall(body, args);
    b.CreateRetVoid();
    return range;
}

}  // namespace ember::codegen
