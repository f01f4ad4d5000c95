// Drivers: straight code for the steps of a program. The entry is `ember_call` (runtime/artifact_abi.h); other programs
// are internal functions
//
//     int32_t program(EmberContext*, void* const* arguments, const int64_t* lengths, void* const* results)
//
// where `lengths` holds the lengths of all axes of all parameters, in order. Result 0, or message number plus 1.
// Long because each kind of step has its code here, and they share the state of one function.
#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/MDBuilder.h>

#include <algorithm>
#include <array>
#include <functional>

#include "ember/codegen/emitter.h"
#include "runtime/artifact_abi.h"
#include "runtime/element.h"
#include "runtime/functions.h"
#include "runtime/quantized.h"

namespace ember::codegen {

using ir::DType;
using ir::Op;
using lower::BufferId;
using lower::BufferKind;
using lower::Program;
using lower::ScalarId;

namespace {

constexpr int64_t kStackBytes = 8192;       // static temporaries up to this size live on the stack
constexpr int64_t kParallelWork = 1 << 16;  // simple instructions from which a kernel is worth several threads
constexpr int64_t kChunkWork = 1 << 14;
constexpr int64_t kMostParts = 64;   // of a reduction of everything
constexpr size_t kLongProgram = 24;  // steps from which a driver is left as it is written

enum RuntimeSlot : unsigned {
    kParallelFor,
    kArenaAllocate,
    kArenaMark,
    kArenaRelease,
    kKeep,
    kDrop,
    kScratch,
    kContract,
    kQuantizedMatmul,
    kDequantizeRows,
    kCheckIndices,
    kCall,
};
enum ContextField : unsigned { kRuntime, kAllocateOutput, kArena, kErrorA, kErrorB, kHost, kKept, kHostCall };
constexpr unsigned kTensorData = 0;
constexpr unsigned kTensorShape = 24;
constexpr unsigned kTensorSlots = sizeof(EmberTensor) / 8;
constexpr unsigned kTensorOffset = 40;
static_assert(offsetof(EmberTensor, shape) == kTensorShape && offsetof(EmberTensor, byte_offset) == kTensorOffset);
static_assert(offsetof(EmberContext, host_call) == 8 * kHostCall && offsetof(EmberRuntime, call) == 8 * kCall);

// Lowering names element types to the runtime by their dtypes.
static_assert(static_cast<int64_t>(runtime::ElementType::kF64) == static_cast<int64_t>(DType::kF64) &&
              static_cast<int64_t>(runtime::ElementType::kU8) == static_cast<int64_t>(DType::kU8));

int32_t qtype_of(DType dtype) {
    using runtime::QType;
    switch (dtype) {
        case DType::kQ4_0:
            return static_cast<int32_t>(QType::kQ4_0);
        case DType::kQ4_1:
            return static_cast<int32_t>(QType::kQ4_1);
        case DType::kQ5_0:
            return static_cast<int32_t>(QType::kQ5_0);
        case DType::kQ5_1:
            return static_cast<int32_t>(QType::kQ5_1);
        case DType::kQ8_0:
            return static_cast<int32_t>(QType::kQ8_0);
        case DType::kQ4_K:
            return static_cast<int32_t>(QType::kQ4_K);
        case DType::kQ5_K:
            return static_cast<int32_t>(QType::kQ5_K);
        case DType::kQ6_K:
            return static_cast<int32_t>(QType::kQ6_K);
        default:
            unreachable("not a quantised type");
    }
}

class DriverEmitter {
public:
    DriverEmitter(Emitter& emitter, const Program& program, llvm::Function* function, bool is_entry)
        : e_(emitter), p_(program), function_(function), is_entry_(is_entry), b_(emitter.context()) {}

    void run() {
        b_.SetInsertPoint(llvm::BasicBlock::Create(e_.context(), "entry", function_));
        context_ = function_->getArg(0);
        scalars_.assign(p_.scalars.size(), nullptr);
        pointers_.assign(p_.buffers.size(), nullptr);
        slots_.assign(p_.slots.size(), nullptr);
        runtime_ = b_.CreateLoad(b_.getPtrTy(), context_);
        std::vector<llvm::Type*> none;
        failed_ = llvm::BasicBlock::Create(e_.context(), "failed", function_);
        Builder f(failed_);
        failure_ = f.CreatePHI(f.getInt32Ty(), 4);
        parameters();
        for (size_t i = 0; i < p_.steps.size(); ++i) {
            if (static_cast<int>(i) == p_.commit) {
                prepare_commit();
            }
            std::visit([this](const auto& s) { emit(s); }, p_.steps[i]);
        }
        finish_outputs();
        drop_given();
        release();
        b_.CreateRet(b_.getInt32(0));
        b_.SetInsertPoint(failed_);
        release();
        b_.CreateRet(failure_);
        if (failure_->getNumIncomingValues() == 0) {
            failed_->eraseFromParent();
        }
    }

private:
    // --- memory
    Value* at_byte(Value* base, unsigned offset) { return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), base, offset); }
    Value* element(Value* array, llvm::Type* type, uint64_t index) {
        return b_.CreateConstInBoundsGEP1_64(type, array, index);
    }
    Value* runtime_function(RuntimeSlot slot) {
        return b_.CreateLoad(b_.getPtrTy(), element(runtime_, b_.getPtrTy(), slot));
    }
    Value* call_runtime(RuntimeSlot slot, llvm::Type* result, const std::vector<Value*>& args) {
        std::vector<llvm::Type*> types;
        for (Value* arg : args) {
            types.push_back(arg->getType());
        }
        return b_.CreateCall(llvm::FunctionType::get(result, types, false), runtime_function(slot), args);
    }

    void parameters() {
        uint64_t length = 0;
        parameter_of_.assign(p_.buffers.size(), -1);
        for (size_t i = 0; i < p_.params.size(); ++i) {
            parameter_of_[static_cast<size_t>(p_.param_buffers[i])] = static_cast<int>(i);
            first_length_.push_back(length);
            length += p_.params[i].shape.size();
        }
    }

    Value* parameter_tensor(size_t i) {
        return b_.CreateLoad(b_.getPtrTy(), element(function_->getArg(1), b_.getPtrTy(), i));
    }

    /// Read where it is first used: hundreds of weights at the start would make one huge block.
    Value* parameter_data(size_t i) {
        Value* data = parameter_tensor(i);
        if (is_entry_) {
            Value* offset = b_.CreateLoad(b_.getInt64Ty(), at_byte(data, kTensorOffset));
            data = b_.CreateGEP(b_.getInt8Ty(), b_.CreateLoad(b_.getPtrTy(), data), offset);
        }
        return is_static_and_filled(p_.params[i]) ? data : somewhere(data);
    }

    /// An empty tensor may come without memory; a padded read of it still needs somewhere to look.
    Value* somewhere(Value* data) {
        Value* none = b_.CreateICmpEQ(data, llvm::ConstantPointerNull::get(b_.getPtrTy()));
        return b_.CreateSelect(none, nowhere(), data);
    }

    static bool is_static_and_filled(const ir::TensorType& type) {
        return type.is_static() && type.static_elements() > 0;
    }

    /// Zeros to read in place of an empty tensor's memory.
    llvm::GlobalVariable* nowhere() {
        constexpr const char* kName = "nowhere";
        llvm::GlobalVariable* known = e_.module().getNamedGlobal(kName);
        if (known == nullptr) {
            auto* type = llvm::ArrayType::get(b_.getInt64Ty(), 8);
            known = new llvm::GlobalVariable(e_.module(), type, true, llvm::GlobalValue::InternalLinkage,
                                             llvm::ConstantAggregateZero::get(type), kName);
        }
        return known;
    }

    Value* parameter_length(int parameter, int axis) {
        auto i = static_cast<size_t>(parameter);
        auto at = static_cast<uint64_t>(axis);
        if (is_entry_) {
            Value* shape = b_.CreateLoad(b_.getPtrTy(), at_byte(parameter_tensor(i), kTensorShape));
            return b_.CreateLoad(b_.getInt64Ty(), element(shape, b_.getInt64Ty(), at));
        }
        return b_.CreateLoad(b_.getInt64Ty(), element(function_->getArg(2), b_.getInt64Ty(), first_length_[i] + at));
    }

    Value* elements(const std::vector<ScalarId>& shape) {
        Value* count = b_.getInt64(1);
        for (ScalarId dim : shape) {
            count = b_.CreateMul(count, scalar(dim));
        }
        return count;
    }

    Value* bytes_of(BufferId id) {
        const lower::Buffer& buffer = p_.buffers[static_cast<size_t>(id)];
        const ir::DTypeInfo& type = ir::info(buffer.dtype);
        Value* bytes = b_.CreateMul(elements(buffer.shape), b_.getInt64(static_cast<uint64_t>(type.block_bytes)));
        return type.block_elements == 1 ? bytes
                                        : b_.CreateUDiv(bytes, b_.getInt64(static_cast<uint64_t>(type.block_elements)));
    }

    Value* pointer(BufferId id) {
        auto k = static_cast<size_t>(id);
        if (pointers_[k] != nullptr) {
            return pointers_[k];
        }
        const lower::Buffer& buffer = p_.buffers[k];
        if (buffer.alias_of >= 0) {
            return pointers_[k] = pointer(buffer.alias_of);
        }
        if (parameter_of_[k] >= 0) {
            return pointers_[k] = parameter_data(static_cast<size_t>(parameter_of_[k]));
        }
        Value* made = nullptr;
        if (buffer.kind == BufferKind::kTemp) {
            Value*& slot = slots_[static_cast<size_t>(buffer.index)];
            if (slot == nullptr) {
                slot = allocate_slot(p_.slots[static_cast<size_t>(buffer.index)]);
            }
            made = slot;
        } else {
            check(buffer.kind == BufferKind::kOutput, "parameters have pointers");
            auto number = static_cast<uint64_t>(buffer.index);
            if (is_entry_) {
                auto* type =
                    llvm::FunctionType::get(b_.getPtrTy(), {b_.getPtrTy(), b_.getInt32Ty(), b_.getInt64Ty()}, false);
                Value* callee = b_.CreateLoad(b_.getPtrTy(), element(context_, b_.getPtrTy(), kAllocateOutput));
                write_shape(id, static_cast<int>(number));
                made =
                    b_.CreateCall(type, callee, {context_, b_.getInt32(static_cast<uint32_t>(number)), bytes_of(id)});
                fail_if(b_.CreateICmpEQ(made, llvm::ConstantPointerNull::get(b_.getPtrTy())),
                        b_.getInt32(static_cast<uint32_t>(runtime::kArtifactOutOfMemory)));
            } else {
                made = p_.open[number] ? keep(bytes_of(id)) : result_room(number);
            }
        }
        return pointers_[k] = made;
    }

    /// Of a program that is not the entry: where result `number` goes, or the pointer and the lengths of an open one.
    Value* result_room(uint64_t number) {
        return b_.CreateLoad(b_.getPtrTy(), element(function_->getArg(3), b_.getPtrTy(), number));
    }

    Value* keep(Value* bytes) {
        Value* memory = call_runtime(kKeep, b_.getPtrTy(), {context_, bytes});
        fail_if(b_.CreateICmpEQ(memory, llvm::ConstantPointerNull::get(b_.getPtrTy())),
                b_.getInt32(static_cast<uint32_t>(runtime::kArtifactOutOfMemory)));
        return memory;
    }

    Value* output_tensor(int number) {
        return b_.CreateLoad(b_.getPtrTy(),
                             element(function_->getArg(2), b_.getPtrTy(), static_cast<uint64_t>(number)));
    }

    void write_shape(BufferId id, int number) {
        const lower::Buffer& buffer = p_.buffers[static_cast<size_t>(id)];
        if (buffer.shape.empty()) {
            return;
        }
        Value* shape = b_.CreateLoad(b_.getPtrTy(), at_byte(output_tensor(number), kTensorShape));
        for (size_t axis = 0; axis < buffer.shape.size(); ++axis) {
            b_.CreateStore(scalar(buffer.shape[axis]), element(shape, b_.getInt64Ty(), axis));
        }
    }

    Value* allocate_slot(const Program::Slot& slot) {
        int64_t known = 0;
        bool is_static = true;
        for (BufferId user : slot.users) {
            const lower::Buffer& buffer = p_.buffers[static_cast<size_t>(user)];
            int64_t bytes = ir::info(buffer.dtype).block_bytes;
            for (ScalarId dim : buffer.shape) {
                const lower::Scalar& s = p_.scalars[static_cast<size_t>(dim)];
                is_static &= s.kind == lower::Scalar::Kind::kConst;
                bytes *= is_static ? ir::literal_as_int(s.literal) : 1;
            }
            known = std::max(known, bytes);
        }
        if (is_static && known + stack_used_ <= kStackBytes) {
            stack_used_ += known;
            Builder entry(&function_->getEntryBlock(), function_->getEntryBlock().begin());
            auto* room = entry.CreateAlloca(
                llvm::ArrayType::get(b_.getInt8Ty(), static_cast<uint64_t>(std::max<int64_t>(known, 8))));
            room->setAlignment(llvm::Align(64));
            return room;
        }
        take_mark();
        Value* bytes = is_static ? b_.getInt64(static_cast<uint64_t>(known)) : bytes_of(slot.users[0]);
        Value* memory = call_runtime(kArenaAllocate, b_.getPtrTy(), {context_, bytes});
        fail_if(b_.CreateICmpEQ(memory, llvm::ConstantPointerNull::get(b_.getPtrTy())),
                b_.getInt32(static_cast<uint32_t>(runtime::kArtifactOutOfMemory)));
        return memory;
    }

    /// All memory that later steps need is had, before they write into parameters.
    void prepare_commit() {
        for (BufferId buffer : p_.prepared) {
            pointer(buffer);
        }
        if (p_.reserve < 0) {
            return;
        }
        // What the arena has given once it keeps.
        Value* mark = call_runtime(kArenaMark, b_.getInt64Ty(), {context_});
        Value* room = call_runtime(kArenaAllocate, b_.getPtrTy(), {context_, scalar(p_.reserve)});
        call_runtime(kArenaRelease, b_.getVoidTy(), {context_, mark});
        fail_if(b_.CreateICmpEQ(room, llvm::ConstantPointerNull::get(b_.getPtrTy())),
                b_.getInt32(static_cast<uint32_t>(runtime::kArtifactOutOfMemory)));
    }

    /// The mark is taken at the very start, so that every way out can release it.
    void take_mark() {
        if (mark_ != nullptr) {
            return;
        }
        Builder entry(e_.context());
        llvm::BasicBlock& first = function_->getEntryBlock();
        auto* runtime = llvm::cast<llvm::Instruction>(runtime_);
        entry.SetInsertPoint(&first, std::next(runtime->getIterator()));
        Value* callee = entry.CreateLoad(entry.getPtrTy(),
                                         entry.CreateConstInBoundsGEP1_64(entry.getPtrTy(), runtime_, kArenaMark));
        mark_ = entry.CreateCall(llvm::FunctionType::get(entry.getInt64Ty(), {entry.getPtrTy()}, false), callee,
                                 {context_});
    }

    void release() {
        if (mark_ != nullptr) {
            call_runtime(kArenaRelease, b_.getVoidTy(), {context_, mark_});
        }
    }

    void finish_outputs() {
        for (size_t k = 0; k < p_.outputs.size(); ++k) {
            const lower::Buffer& buffer = p_.buffers[static_cast<size_t>(p_.outputs[k])];
            if (buffer.kind == BufferKind::kOutput) {
                pointer(p_.outputs[k]);  // allocated even when empty
            }
            if (p_.open[k]) {
                Value* room = result_room(k);
                b_.CreateStore(pointer(p_.outputs[k]), room);
                for (size_t axis = 0; axis < buffer.shape.size(); ++axis) {
                    b_.CreateStore(scalar(buffer.shape[axis]), element(room, b_.getInt64Ty(), axis + 1));
                }
            }
        }
    }

    /// What steps gave goes back. The entry leaves it to the end of the call, as every failure does.
    void drop_given() {
        for (size_t id = 0; id < p_.buffers.size() && !is_entry_; ++id) {
            const lower::Buffer& buffer = p_.buffers[id];
            bool handed_on =
                std::find(p_.outputs.begin(), p_.outputs.end(), static_cast<BufferId>(id)) != p_.outputs.end();
            if (buffer.kind == BufferKind::kGiven && buffer.alias_of < 0 && !handed_on) {
                call_runtime(kDrop, b_.getVoidTy(), {context_, pointer(static_cast<BufferId>(id))});
            }
        }
    }

    // --- errors
    void fail_if(Value* condition, Value* code) {
        auto* next = llvm::BasicBlock::Create(e_.context(), "fine", function_);
        llvm::MDBuilder weights(e_.context());
        failure_->addIncoming(code, b_.GetInsertBlock());
        b_.CreateCondBr(condition, failed_, next, weights.createBranchWeights(1, 1 << 20));
        b_.SetInsertPoint(next);
    }

    void fail_with(Value* condition, int message, Value* a, Value* x) {
        auto* bad = llvm::BasicBlock::Create(e_.context(), "bad", function_);
        auto* next = llvm::BasicBlock::Create(e_.context(), "fine", function_);
        llvm::MDBuilder weights(e_.context());
        b_.CreateCondBr(condition, bad, next, weights.createBranchWeights(1, 1 << 20));
        b_.SetInsertPoint(bad);
        b_.CreateStore(wide(a), element(context_, b_.getInt64Ty(), kErrorA));
        b_.CreateStore(wide(x), element(context_, b_.getInt64Ty(), kErrorB));
        failure_->addIncoming(b_.getInt32(static_cast<uint32_t>(message + 1)), bad);
        b_.CreateBr(failed_);
        b_.SetInsertPoint(next);
    }

    Value* wide(Value* value) { return b_.CreateZExtOrTrunc(value, b_.getInt64Ty()); }

    // --- scalars
    Value* scalar(ScalarId id) {
        Value*& value = scalars_[static_cast<size_t>(id)];
        const lower::Scalar& s = p_.scalars[static_cast<size_t>(id)];
        if (value == nullptr) {
            check(s.kind == lower::Scalar::Kind::kConst, "a scalar is computed before it is used");
            value = e_.constant(s.dtype, s.literal);
        }
        return value;
    }

    void emit(const lower::ComputeScalar& step) {
        const lower::Scalar& s = p_.scalars[static_cast<size_t>(step.scalar)];
        Value*& value = scalars_[static_cast<size_t>(step.scalar)];
        switch (s.kind) {
            case lower::Scalar::Kind::kConst:
                value = e_.constant(s.dtype, s.literal);
                break;
            case lower::Scalar::Kind::kParamDim:
                value = parameter_length(s.index, s.axis);
                break;
            case lower::Scalar::Kind::kLoad:
                value = e_.load(b_, s.dtype, pointer(s.index));
                break;
            case lower::Scalar::Kind::kMap: {
                std::vector<Value*> args;
                for (ScalarId arg : s.args) {
                    args.push_back(scalar(arg));
                }
                DType operand = p_.scalars[static_cast<size_t>(s.args.back())].dtype;
                value = e_.map(b_, s.map_op, s.dtype, operand, args);
                break;
            }
            case lower::Scalar::Kind::kCast:
                value = e_.cast(b_, scalar(s.args[0]), p_.scalars[static_cast<size_t>(s.args[0])].dtype, s.dtype);
                break;
            default:
                unreachable("set by its step");
        }
    }

    // --- steps
    void emit(const lower::Launch& step) {
        const lower::Kernel& kernel = e_.lowered().kernels[static_cast<size_t>(step.kernel)];
        Emitter::KernelCode code = e_.kernel(step.kernel);
        std::vector<Value*> args{runtime_};
        for (BufferId buffer : step.buffers) {
            args.push_back(pointer(buffer));
        }
        for (ScalarId id : step.scalars) {
            args.push_back(scalar(id));
        }
        auto length = [&](const lower::Extent& e) {
            return e.is_static() ? b_.getInt64(static_cast<uint64_t>(e.size))
                                 : scalar(step.scalars[static_cast<size_t>(e.scalar)]);
        };
        bool reduces = false;
        for (const lower::Instruction& i : kernel.body) {
            reduces |= i.op == lower::KernelOp::kReduce || i.op == lower::KernelOp::kArgReduce ||
                       i.op == lower::KernelOp::kScan;
        }
        size_t ranged = static_cast<size_t>(kernel.row_rank);
        if (ranged == 0 && !reduces && kernel.extents.size() == 1) {
            ranged = 1;
        }
        Value* total = b_.getInt64(1);
        Value* inner = b_.getInt64(static_cast<uint64_t>(kernel.cost()));
        for (size_t k = 0; k < kernel.extents.size(); ++k) {
            Value*& product = k < ranged ? total : inner;
            product = b_.CreateMul(product, length(kernel.extents[k]));
        }
        bool may_split = ranged > 0 && !kernel.serial;
        Value* work = b_.CreateMul(total, inner);
        auto direct = [&] {
            std::vector<Value*> all = args;
            all.push_back(b_.getInt64(0));
            all.push_back(total);
            b_.CreateCall(code.body, all);
        };
        bool in_parts = code.reductions > 0;
        if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(work)) {
            may_split = may_split && known->getSExtValue() >= kParallelWork;
            in_parts = in_parts && known->getSExtValue() >= kParallelWork;
        }
        if (in_parts) {
            return parallel_or(work, direct, [&] { launch_in_parts(args, step, length(kernel.extents[0])); });
        }
        if (!may_split) {
            return direct();
        }
        parallel_or(work, direct, [&] {
            Value* array = argument_slots(args, step, kernel, {});
            Value* grain = b_.CreateUDiv(b_.getInt64(kChunkWork),
                                         b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, inner, b_.getInt64(1)));
            grain = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, grain, b_.getInt64(1));
            call_runtime(kParallelFor, b_.getVoidTy(), {code.thunk, array, total, grain});
        });
    }

    /// Two ways to do `work`: on several threads where it is worth it.
    void parallel_or(Value* work, const std::function<void()>& direct, const std::function<void()>& in_parallel) {
        auto* parallel = llvm::BasicBlock::Create(e_.context(), "parallel", function_);
        auto* single = llvm::BasicBlock::Create(e_.context(), "single", function_);
        auto* next = llvm::BasicBlock::Create(e_.context(), "next", function_);
        b_.CreateCondBr(b_.CreateICmpSGE(work, b_.getInt64(kParallelWork)), parallel, single);
        b_.SetInsertPoint(single);
        direct();
        b_.CreateBr(next);
        b_.SetInsertPoint(parallel);
        in_parallel();
        b_.CreateBr(next);
        b_.SetInsertPoint(next);
    }

    Value* argument_slots(const std::vector<Value*>& args, const lower::Launch& step, const lower::Kernel& kernel,
                          const std::vector<Value*>& more) {
        Value* array = stack_array(Array::kSlots, args.size() + more.size());
        for (size_t k = 0; k < args.size(); ++k) {
            Value* value = args[k];
            if (!value->getType()->isPointerTy()) {
                size_t s = k - 1 - step.buffers.size();
                value = e_.to_slot(b_, value, kernel.scalars[s]);
            }
            b_.CreateStore(value, element(array, b_.getInt64Ty(), k));
        }
        for (size_t k = 0; k < more.size(); ++k) {
            b_.CreateStore(more[k], element(array, b_.getInt64Ty(), args.size() + k));
        }
        return array;
    }

    /// The parts depend on the length alone, so that results do not depend on the number of threads.
    void launch_in_parts(const std::vector<Value*>& args, const lower::Launch& step, Value* length) {
        e_.emit_parts(step.kernel);
        const Emitter::KernelCode& code = e_.kernel(step.kernel);
        const lower::Kernel& kernel = e_.lowered().kernels[static_cast<size_t>(step.kernel)];
        auto up = [&](Value* x, Value* y) {
            return b_.CreateUDiv(b_.CreateAdd(x, b_.CreateSub(y, b_.getInt64(1))), y);
        };
        Value* part = up(length, b_.getInt64(kMostParts));
        Value* count = up(length, part);
        Value* partials = stack_array(Array::kPartials, static_cast<size_t>(kMostParts) * code.reductions);
        Value* array = argument_slots(args, step, kernel, {part, partials});
        call_runtime(kParallelFor, b_.getVoidTy(), {code.parts, array, count, b_.getInt64(1)});
        std::vector<Value*> all = args;
        all.insert(all.end(), {b_.getInt64(0), count, partials});
        b_.CreateCall(code.finish, all);
    }

    /// What arrays on the stack are for; two of one purpose are never in use together.
    enum class Array : uint8_t {
        kArguments,
        kLengths,
        kResults,
        kSlots,
        kPartials,
        kTensors,
        kShapes,
        kGiven,
        kStacked,
        kCount
    };

    /// An array of `count` 64-bit slots. One alloca serves all of a purpose, as large as the largest.
    Value* stack_array(Array purpose, size_t count) {
        llvm::AllocaInst*& array = arrays_[static_cast<size_t>(purpose)];
        if (array != nullptr && llvm::cast<llvm::ArrayType>(array->getAllocatedType())->getNumElements() >= count) {
            return array;
        }
        Builder entry(&function_->getEntryBlock(), function_->getEntryBlock().begin());
        auto* type = llvm::ArrayType::get(b_.getInt64Ty(), std::max<size_t>(count, 1));
        llvm::AllocaInst* larger = entry.CreateAlloca(type);
        if (array != nullptr) {
            array->replaceAllUsesWith(larger);
            array->eraseFromParent();
        }
        return array = larger;
    }

    Value* view_pointer(const lower::View& view) {
        llvm::Type* type = e_.memory_type(p_.buffers[static_cast<size_t>(view.buffer)].dtype);
        return b_.CreateGEP(type, pointer(view.buffer), scalar(view.offset));
    }

    void emit(const lower::Gemm& step) {
        std::vector<Value*> table;
        for (int rank : {step.batch, step.m, step.n, step.k}) {
            table.push_back(b_.getInt64(static_cast<uint64_t>(rank)));
        }
        auto slice = [&](const std::vector<ScalarId>& from, int begin, int count) {
            for (int i = begin; i < begin + count; ++i) {
                table.push_back(scalar(from[static_cast<size_t>(i)]));
            }
        };
        slice(step.a.shape, 0, step.batch + step.m);
        slice(step.b.shape, step.batch, step.n + step.k);
        slice(step.a.strides, 0, step.batch + step.m + step.k);
        slice(step.b.strides, 0, step.batch + step.n + step.k);
        slice(step.c.strides, 0, step.batch + step.m + step.n);
        Value* array = stack_array(Array::kSlots, table.size());
        for (size_t k = 0; k < table.size(); ++k) {
            b_.CreateStore(table[k], element(array, b_.getInt64Ty(), k));
        }
        bool is_f64 = p_.buffers[static_cast<size_t>(step.c.buffer)].dtype == DType::kF64;
        call_runtime(
            kContract, b_.getVoidTy(),
            {b_.getInt32(is_f64 ? 1 : 0), array, view_pointer(step.a), view_pointer(step.b), view_pointer(step.c)});
    }

    void emit(const lower::QuantizedMatmul& step) {
        int32_t type = qtype_of(p_.buffers[static_cast<size_t>(step.weights)].dtype);
        call_runtime(kQuantizedMatmul, b_.getVoidTy(),
                     {b_.getInt32(static_cast<uint32_t>(type)), elements(step.m), scalar(step.n), scalar(step.k),
                      pointer(step.x.buffer), pointer(step.weights), pointer(step.result)});
    }

    void emit(const lower::DequantizeRows& step) {
        int32_t type = qtype_of(p_.buffers[static_cast<size_t>(step.rows)].dtype);
        Value* index = llvm::ConstantPointerNull::get(b_.getPtrTy());
        uint32_t index_bytes = 0;
        if (step.index >= 0) {
            index = pointer(step.index);
            index_bytes = p_.buffers[static_cast<size_t>(step.index)].dtype == DType::kI64 ? 8 : 4;
        }
        call_runtime(kDequantizeRows, b_.getVoidTy(),
                     {b_.getInt32(static_cast<uint32_t>(type)), pointer(step.rows), index, b_.getInt32(index_bytes),
                      scalar(step.count), scalar(step.length), scalar(step.limit), pointer(step.to)});
    }

    void emit(const lower::CopyBuffer& step) {
        Value* bytes = bytes_of(step.from);
        b_.CreateMemCpy(pointer(step.to), llvm::Align(1), pointer(step.from), llvm::Align(1), bytes);
    }

    void emit(const lower::Check& step) {
        Value* a = scalar(step.a);
        Value* x = scalar(step.b);
        Value* bad = nullptr;
        switch (step.kind) {
            case lower::Check::Kind::kEqual:
                bad = b_.CreateICmpNE(a, x);
                break;
            case lower::Check::Kind::kTrue:
                bad = b_.CreateNot(a);
                break;
            case lower::Check::Kind::kInside:
                bad = b_.CreateOr(b_.CreateICmpSLT(a, b_.getInt64(0)), b_.CreateICmpSGT(a, x));
                break;
        }
        fail_with(bad, step.message, step.shown < 0 ? a : scalar(step.shown), x);
    }

    void emit(const lower::CheckIndices& step) {
        const lower::Buffer& buffer = p_.buffers[static_cast<size_t>(step.index)];
        auto kind = static_cast<int32_t>(ir::element_bytes(buffer.dtype));
        kind = ir::is_unsigned_int(buffer.dtype) ? -kind : kind;
        Value* index = pointer(step.index);
        Value* at =
            call_runtime(kCheckIndices, b_.getInt64Ty(),
                         {index, b_.getInt32(static_cast<uint32_t>(kind)), elements(buffer.shape), scalar(step.limit)});
        Value* bad = b_.CreateICmpSGE(at, b_.getInt64(0));
        Value* safe = b_.CreateSelect(bad, at, b_.getInt64(0));
        // The index itself, read only when it is there.
        auto* read = llvm::BasicBlock::Create(e_.context(), "read", function_);
        auto* next = llvm::BasicBlock::Create(e_.context(), "fine", function_);
        b_.CreateCondBr(bad, read, next);
        b_.SetInsertPoint(read);
        Value* value = e_.load(b_, buffer.dtype, b_.CreateGEP(e_.memory_type(buffer.dtype), index, safe));
        value = e_.cast(b_, value, buffer.dtype, DType::kI64);
        b_.CreateStore(value, element(context_, b_.getInt64Ty(), kErrorA));
        b_.CreateStore(scalar(step.limit), element(context_, b_.getInt64Ty(), kErrorB));
        failure_->addIncoming(b_.getInt32(static_cast<uint32_t>(step.message + 1)), b_.GetInsertBlock());
        b_.CreateBr(failed_);
        b_.SetInsertPoint(next);
    }

    Value* argument(const lower::CallRuntime::Argument& a) {
        using Kind = lower::CallRuntime::Argument::Kind;
        switch (a.kind) {
            case Kind::kBuffer:
            case Kind::kRead:
                return a.value < 0 ? b_.getInt64(0)
                                   : b_.CreatePtrToInt(pointer(static_cast<BufferId>(a.value)), b_.getInt64Ty());
            case Kind::kScalar:
                return scalar(static_cast<ScalarId>(a.value));
            case Kind::kNumber:
                break;
        }
        return b_.getInt64(static_cast<uint64_t>(a.value));
    }

    void emit(const lower::CallRuntime& step) {
        int32_t number = runtime::function_number(step.function);
        check(number >= 0, "lowering calls functions that the runtime has");
        std::vector<Value*> arguments;
        for (const auto& a : step.arguments) {
            arguments.push_back(argument(a));
        }
        Value* array = stack_array(Array::kSlots, arguments.size());
        for (size_t k = 0; k < arguments.size(); ++k) {
            b_.CreateStore(arguments[k], element(array, b_.getInt64Ty(), k));
        }
        Value* given = call_runtime(kCall, b_.getInt64Ty(), {b_.getInt32(static_cast<uint32_t>(number)), array});
        if (step.may_fail) {
            fail_if(b_.CreateICmpEQ(given, b_.getInt64(static_cast<uint64_t>(runtime::kFunctionOutOfMemory))),
                    b_.getInt32(static_cast<uint32_t>(runtime::kArtifactOutOfMemory)));
        }
        if (step.result >= 0) {
            scalars_[static_cast<size_t>(step.result)] = given;
        }
    }

    // --- calls
    /// Pointers of buffers in an array on the stack.
    Value* pointer_array(Array purpose, const std::vector<Value*>& pointers) {
        Value* array = stack_array(purpose, pointers.size());
        for (size_t k = 0; k < pointers.size(); ++k) {
            b_.CreateStore(pointers[k], element(array, b_.getPtrTy(), k));
        }
        return array;
    }

    std::vector<Value*> pointers_of(const std::vector<BufferId>& buffers) {
        std::vector<Value*> pointers;
        for (BufferId buffer : buffers) {
            pointers.push_back(pointer(buffer));
        }
        return pointers;
    }

    /// Lengths of the arguments' axes, in order; those that the callee knows are left unset.
    Value* length_array(const std::vector<BufferId>& arguments, const std::vector<const Program*>& callees) {
        size_t count = 0;
        for (BufferId argument : arguments) {
            count += p_.buffers[static_cast<size_t>(argument)].shape.size();
        }
        Value* array = stack_array(Array::kLengths, count);
        size_t at = 0;
        for (size_t k = 0; k < arguments.size(); ++k) {
            const std::vector<ScalarId>& shape = p_.buffers[static_cast<size_t>(arguments[k])].shape;
            for (size_t axis = 0; axis < shape.size(); ++axis, ++at) {
                if (reads_length(callees, k, axis)) {
                    b_.CreateStore(scalar(shape[axis]), element(array, b_.getInt64Ty(), at));
                }
            }
        }
        return array;
    }

    static bool reads_length(const std::vector<const Program*>& callees, size_t parameter, size_t axis) {
        return std::any_of(callees.begin(), callees.end(), [&](const Program* callee) {
            return std::any_of(callee->scalars.begin(), callee->scalars.end(), [&](const lower::Scalar& s) {
                return s.kind == lower::Scalar::Kind::kParamDim && s.index == static_cast<int>(parameter) &&
                       s.axis == static_cast<int>(axis);
            });
        });
    }

    const Program* program_at(int index) const { return &e_.lowered().programs[static_cast<size_t>(index)]; }

    void call_program(int function, Value* arguments, Value* lengths, Value* results) {
        Value* status = b_.CreateCall(e_.program(function), {context_, arguments, lengths, results});
        fail_if(b_.CreateICmpNE(status, b_.getInt32(0)), status);
    }

    /// Where results go: their memory, or room for the pointer and the lengths of those that come with both.
    Value* result_array(const std::vector<BufferId>& results, const std::vector<std::vector<ScalarId>>& lengths) {
        std::vector<Value*> pointers;
        for (size_t k = 0; k < results.size(); ++k) {
            pointers.push_back(lengths[k].empty() ? pointer(results[k]) : room_of(Array::kGiven, lengths, k));
        }
        return pointer_array(Array::kResults, pointers);
    }

    /// Room for pointer and lengths of result k, in one array for all.
    Value* room_of(Array purpose, const std::vector<std::vector<ScalarId>>& lengths, size_t k) {
        size_t count = 0;
        size_t at = 0;
        for (size_t i = 0; i < lengths.size(); ++i) {
            at = i == k ? count : at;
            count += lengths[i].empty() ? 0 : lengths[i].size() + 1;
        }
        return element(stack_array(purpose, count), b_.getInt64Ty(), at);
    }

    void take_given(const std::vector<BufferId>& results, const std::vector<std::vector<ScalarId>>& lengths,
                    Array purpose) {
        for (size_t k = 0; k < results.size(); ++k) {
            if (!lengths[k].empty()) {
                Value* room = room_of(purpose, lengths, k);
                pointers_[static_cast<size_t>(results[k])] = somewhere(b_.CreateLoad(b_.getPtrTy(), room));
                load_lengths(lengths[k], element(room, b_.getInt64Ty(), 1));
            }
        }
    }

    void emit(const lower::CallFunction& step) {
        Value* results = result_array(step.results, step.lengths);
        call_program(step.function, pointer_array(Array::kArguments, pointers_of(step.arguments)),
                     length_array(step.arguments, {program_at(step.function)}), results);
        take_given(step.results, step.lengths, Array::kGiven);
    }

    /// An EmberTensor at `tensor`; its lengths are at `shape`.
    void store_tensor(Value* tensor, BufferId id, Value* data, Value* shape) {
        const lower::Buffer& buffer = p_.buffers[static_cast<size_t>(id)];
        auto [code, bits] = ir::dlpack_type(buffer.dtype);
        uint64_t type = buffer.shape.size() | uint64_t{code} << 32 | uint64_t{bits} << 40 | uint64_t{1} << 48;
        Value* none = llvm::ConstantPointerNull::get(b_.getPtrTy());
        const std::array<Value*, kTensorSlots> fields{data,  b_.getInt64(1), b_.getInt64(type),
                                                      shape, none,           b_.getInt64(0)};
        for (unsigned k = 0; k < kTensorSlots; ++k) {
            b_.CreateStore(fields[k], at_byte(tensor, 8 * k));
        }
    }

    void emit(const lower::HostCall& step) {
        std::vector<BufferId> all = step.arguments;
        all.insert(all.end(), step.results.begin(), step.results.end());
        size_t axes = 0;
        for (BufferId id : all) {
            axes += p_.buffers[static_cast<size_t>(id)].shape.size();
        }
        std::vector<Value*> data = pointers_of(step.arguments);
        data.resize(all.size(), llvm::ConstantPointerNull::get(b_.getPtrTy()));
        Value* tensors = stack_array(Array::kTensors, kTensorSlots * all.size());
        Value* lengths = stack_array(Array::kShapes, axes);
        std::vector<Value*> shapes;
        for (size_t k = 0, at = 0; k < all.size(); ++k) {
            shapes.push_back(element(lengths, b_.getInt64Ty(), at));
            for (ScalarId dim : p_.buffers[static_cast<size_t>(all[k])].shape) {
                Value* length = k < step.arguments.size() ? scalar(dim) : b_.getInt64(static_cast<uint64_t>(-1));
                b_.CreateStore(length, element(lengths, b_.getInt64Ty(), at++));
            }
            store_tensor(at_byte(tensors, static_cast<unsigned>(k * sizeof(EmberTensor))), all[k], data[k], shapes[k]);
        }
        Value* outputs = at_byte(tensors, static_cast<unsigned>(step.arguments.size() * sizeof(EmberTensor)));
        llvm::Type* i32 = b_.getInt32Ty();
        llvm::Type* ptr = b_.getPtrTy();
        auto* type = llvm::FunctionType::get(i32, {ptr, i32, ptr, i32, ptr, i32}, false);
        auto number = [&](size_t value) { return b_.getInt32(static_cast<uint32_t>(value)); };
        Value* callee = b_.CreateLoad(ptr, element(context_, ptr, kHostCall));
        Value* status = b_.CreateCall(type, callee,
                                      {context_, number(static_cast<size_t>(step.number)), tensors,
                                       number(step.arguments.size()), outputs, number(step.results.size())});
        fail_if(b_.CreateICmpNE(status, b_.getInt32(0)),
                b_.getInt32(static_cast<uint32_t>(runtime::kArtifactHostFailed)));
        for (size_t k = 0; k < step.results.size(); ++k) {
            Value* made = b_.CreateLoad(ptr, at_byte(outputs, static_cast<unsigned>(k * sizeof(EmberTensor))));
            pointers_[static_cast<size_t>(step.results[k])] = somewhere(made);
            load_lengths(step.lengths[k], shapes[step.arguments.size() + k]);
        }
    }

    void load_lengths(const std::vector<ScalarId>& lengths, Value* from) {
        for (size_t axis = 0; axis < lengths.size(); ++axis) {
            scalars_[static_cast<size_t>(lengths[axis])] =
                b_.CreateLoad(b_.getInt64Ty(), element(from, b_.getInt64Ty(), axis));
        }
    }

    void emit(const lower::If& step) {
        Value* results = result_array(step.results, step.lengths);
        Value* arguments = pointer_array(Array::kArguments, pointers_of(step.arguments));
        Value* lengths = length_array(step.arguments, {program_at(step.then_function), program_at(step.else_function)});
        auto* yes = llvm::BasicBlock::Create(e_.context(), "then", function_);
        auto* no = llvm::BasicBlock::Create(e_.context(), "else", function_);
        auto* next = llvm::BasicBlock::Create(e_.context(), "endif", function_);
        b_.CreateCondBr(scalar(step.condition), yes, no);
        b_.SetInsertPoint(yes);
        call_program(step.then_function, arguments, lengths, results);
        b_.CreateBr(next);
        b_.SetInsertPoint(no);
        call_program(step.else_function, arguments, lengths, results);
        b_.CreateBr(next);
        b_.SetInsertPoint(next);
        take_given(step.results, step.lengths, Array::kGiven);
    }

    /// Rows whose lengths only the body knows are stacked in memory that the first one is the measure of.
    void prepare_given_stacks(const lower::Loop& step) {
        for (size_t k = 0; k < step.stacked.size(); ++k) {
            if (step.lengths[k].empty()) {
                continue;
            }
            Value* room = room_of(Array::kStacked, step.lengths, k);
            b_.CreateStore(llvm::ConstantPointerNull::get(b_.getPtrTy()), room);
            for (size_t axis = 0; axis < step.lengths[k].size(); ++axis) {
                b_.CreateStore(scalar(step.without_steps[k][axis]), element(room, b_.getInt64Ty(), axis + 1));
            }
        }
    }

    void stack_given(const lower::Loop& step, size_t k, Value* i) {
        size_t rank = step.lengths[k].size();
        Value* row = room_of(Array::kGiven, step.lengths, k);
        Value* stack = room_of(Array::kStacked, step.lengths, k);
        auto length = [&](Value* room, size_t axis) {
            return b_.CreateLoad(b_.getInt64Ty(), element(room, b_.getInt64Ty(), axis + 1));
        };
        DType dtype = p_.buffers[static_cast<size_t>(step.stacked[k])].dtype;
        Value* bytes = b_.getInt64(static_cast<uint64_t>(ir::element_bytes(dtype)));
        for (size_t axis = 0; axis < rank; ++axis) {
            bytes = b_.CreateMul(bytes, length(row, axis));
        }
        auto* first = llvm::BasicBlock::Create(e_.context(), "first", function_);
        auto* others = llvm::BasicBlock::Create(e_.context(), "others", function_);
        auto* next = llvm::BasicBlock::Create(e_.context(), "stack", function_);
        b_.CreateCondBr(b_.CreateICmpEQ(i, b_.getInt64(0)), first, others);
        b_.SetInsertPoint(first);
        b_.CreateStore(keep(b_.CreateMul(bytes, scalar(step.trips))), stack);
        for (size_t axis = 0; axis < rank; ++axis) {
            b_.CreateStore(length(row, axis), element(stack, b_.getInt64Ty(), axis + 1));
        }
        b_.CreateBr(next);
        b_.SetInsertPoint(others);
        for (size_t axis = 0; axis < rank; ++axis) {
            Value* has = length(row, axis);
            Value* asked = length(stack, axis);
            fail_with(b_.CreateICmpNE(has, asked), step.changed, has, asked);
        }
        b_.CreateBr(next);
        b_.SetInsertPoint(next);
        Value* from = b_.CreateLoad(b_.getPtrTy(), row);
        Value* to = b_.CreateGEP(b_.getInt8Ty(), b_.CreateLoad(b_.getPtrTy(), stack), b_.CreateMul(i, bytes));
        b_.CreateMemCpy(to, llvm::Align(1), from, llvm::Align(1), bytes);
        call_runtime(kDrop, b_.getVoidTy(), {context_, from});
    }

    void emit(const lower::Loop& step) {
        // Everything with a place of its own is made before the loop.
        std::vector<Value*> initial = pointers_of(step.initial);
        std::vector<Value*> finals = pointers_of(step.finals);
        std::vector<Value*> ping = pointers_of(step.ping);
        std::vector<Value*> stacked;
        for (size_t k = 0; k < step.stacked.size(); ++k) {
            stacked.push_back(step.lengths[k].empty() ? pointer(step.stacked[k]) : nullptr);
        }
        prepare_given_stacks(step);
        std::vector<Value*> invariants = pointers_of(step.invariants);
        Value* index = pointer(step.index);
        Value* go_on = step.go_on >= 0 ? pointer(step.go_on) : nullptr;
        size_t carried = initial.size();
        std::vector<BufferId> all{step.index};
        all.insert(all.end(), step.initial.begin(), step.initial.end());
        all.insert(all.end(), step.invariants.begin(), step.invariants.end());
        Value* lengths = length_array(all, {program_at(step.body)});
        Value* arguments = stack_array(Array::kArguments, all.size());
        Value* results = stack_array(Array::kResults, carried + stacked.size() + 1);
        b_.CreateStore(index, element(arguments, b_.getPtrTy(), 0));
        for (size_t k = 0; k < invariants.size(); ++k) {
            b_.CreateStore(invariants[k], element(arguments, b_.getPtrTy(), 1 + carried + k));
        }
        std::vector<Value*> row_bytes;
        for (size_t k = 0; k < stacked.size(); ++k) {
            const lower::Buffer& buffer = p_.buffers[static_cast<size_t>(step.stacked[k])];
            if (stacked[k] == nullptr) {
                b_.CreateStore(room_of(Array::kGiven, step.lengths, k), element(results, b_.getPtrTy(), carried + k));
                row_bytes.push_back(nullptr);
                continue;
            }
            std::vector<ScalarId> row(buffer.shape.begin() + 1, buffer.shape.end());
            row_bytes.push_back(
                b_.CreateMul(elements(row), b_.getInt64(static_cast<uint64_t>(ir::element_bytes(buffer.dtype)))));
        }
        if (go_on != nullptr) {
            b_.CreateStore(go_on, element(results, b_.getPtrTy(), carried + stacked.size()));
        }
        llvm::BasicBlock* before = b_.GetInsertBlock();
        auto* header = llvm::BasicBlock::Create(e_.context(), "steps", function_);
        auto* body = llvm::BasicBlock::Create(e_.context(), "step", function_);
        auto* done = llvm::BasicBlock::Create(e_.context(), "stepped", function_);
        b_.CreateBr(header);
        b_.SetInsertPoint(header);
        llvm::PHINode* i = b_.CreatePHI(b_.getInt64Ty(), 2);
        i->addIncoming(b_.getInt64(0), before);
        std::vector<llvm::PHINode*> current;
        std::vector<llvm::PHINode*> spare;
        for (size_t k = 0; k < carried; ++k) {
            current.push_back(b_.CreatePHI(b_.getPtrTy(), 2));
            current.back()->addIncoming(initial[k], before);
            spare.push_back(b_.CreatePHI(b_.getPtrTy(), 2));
            spare.back()->addIncoming(finals[k], before);
        }
        llvm::PHINode* running = b_.CreatePHI(b_.getInt1Ty(), 2);
        running->addIncoming(b_.getTrue(), before);
        b_.CreateCondBr(b_.CreateAnd(running, b_.CreateICmpSLT(i, scalar(step.trips))), body, done);
        b_.SetInsertPoint(body);
        b_.CreateStore(i, index);
        for (size_t k = 0; k < carried; ++k) {
            b_.CreateStore(current[k], element(arguments, b_.getPtrTy(), 1 + k));
            b_.CreateStore(spare[k], element(results, b_.getPtrTy(), k));
        }
        for (size_t k = 0; k < stacked.size(); ++k) {
            if (stacked[k] == nullptr) {
                continue;
            }
            Value* row = b_.CreateGEP(b_.getInt8Ty(), stacked[k], b_.CreateMul(i, row_bytes[k]));
            b_.CreateStore(row, element(results, b_.getPtrTy(), carried + k));
        }
        call_program(step.body, arguments, lengths, results);
        for (size_t k = 0; k < stacked.size(); ++k) {
            if (stacked[k] == nullptr) {
                stack_given(step, k, i);
            }
        }
        Value* next = b_.CreateAdd(i, b_.getInt64(1));
        Value* goes_on = go_on == nullptr ? b_.getTrue() : e_.load(b_, DType::kBool, go_on);
        llvm::BasicBlock* end = b_.GetInsertBlock();
        i->addIncoming(next, end);
        running->addIncoming(goes_on, end);
        for (size_t k = 0; k < carried; ++k) {
            // What was written is read next; the other buffer (not the caller's) is written next.
            Value* other = b_.CreateSelect(b_.CreateICmpEQ(spare[k], finals[k]), ping[k], finals[k]);
            current[k]->addIncoming(spare[k], end);
            spare[k]->addIncoming(other, end);
        }
        b_.CreateBr(header);
        b_.SetInsertPoint(done);
        if (step.actual >= 0) {
            scalars_[static_cast<size_t>(step.actual)] = i;
        }
        take_given(step.stacked, step.lengths, Array::kStacked);
        for (size_t k = 0; k < carried; ++k) {
            auto* copy = llvm::BasicBlock::Create(e_.context(), "copy", function_);
            auto* after = llvm::BasicBlock::Create(e_.context(), "copied", function_);
            b_.CreateCondBr(b_.CreateICmpEQ(current[k], finals[k]), after, copy);
            b_.SetInsertPoint(copy);
            b_.CreateMemCpy(finals[k], llvm::Align(1), current[k], llvm::Align(1), bytes_of(step.finals[k]));
            b_.CreateBr(after);
            b_.SetInsertPoint(after);
        }
    }

    Emitter& e_;
    const Program& p_;
    llvm::Function* function_;
    bool is_entry_;
    Builder b_;
    Value* context_ = nullptr;
    Value* runtime_ = nullptr;
    Value* mark_ = nullptr;
    llvm::BasicBlock* failed_ = nullptr;
    llvm::PHINode* failure_ = nullptr;
    int64_t stack_used_ = 0;
    std::vector<Value*> scalars_;
    std::vector<Value*> pointers_;
    std::vector<Value*> slots_;
    std::array<llvm::AllocaInst*, static_cast<size_t>(Array::kCount)> arrays_{};
    std::vector<int> parameter_of_;       // by buffer: the parameter it is, or -1
    std::vector<uint64_t> first_length_;  // by parameter: where its lengths stand in the lengths array
};

}  // namespace

llvm::Function* Emitter::program(int index) {
    llvm::Function*& function = programs_[static_cast<size_t>(index)];
    if (function != nullptr) {
        return function;
    }
    bool is_entry = index == 0;
    llvm::Type* pointer = llvm::PointerType::getUnqual(context());
    std::vector<llvm::Type*> types(is_entry ? 3 : 4, pointer);
    auto* signature = llvm::FunctionType::get(llvm::Type::getInt32Ty(context()), types, false);
    function =
        llvm::Function::Create(signature, is_entry ? llvm::Function::ExternalLinkage : llvm::Function::InternalLinkage,
                               is_entry ? "ember_call" : "program" + std::to_string(index), module_);
    function->addFnAttr(llvm::Attribute::NoUnwind);
    if (lowered_.programs[static_cast<size_t>(index)].steps.size() > kLongProgram) {
        // It runs once a call and does nothing but call: optimising it would cost more than all kernels.
        function->addFnAttr(llvm::Attribute::OptimizeNone);
        function->addFnAttr(llvm::Attribute::NoInline);
    }
    DriverEmitter(*this, lowered_.programs[static_cast<size_t>(index)], function, is_entry).run();
    return function;
}

Emitter::Emitter(const lower::LoweredModule& lowered, llvm::Module& module)
    : lowered_(lowered), module_(module), kernels_(lowered.kernels.size()), programs_(lowered.programs.size()) {}

void Emitter::emit_all() {
    program(0);
}

}  // namespace ember::codegen
