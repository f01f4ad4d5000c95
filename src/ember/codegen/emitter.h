// What the parts of code generation share; internal to this folder.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/Target/TargetMachine.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ember/codegen/codegen.h"

namespace ember::codegen {

using llvm::Value;
using Builder = llvm::IRBuilder<>;

/// Thrown for a dtype or op that has no code; compile() turns it into a Diagnostic.
struct Unsupported {
    Diagnostic diagnostic;
};

class Emitter {
public:
    Emitter(const lower::LoweredModule& lowered, llvm::Module& module);

    void emit_all();

    // --- values (emit_map.cpp). A value of f16 or bf16 is a float that is exact in the type; bool is i1.
    llvm::Type* value_type(ir::DType dtype);
    llvm::Type* memory_type(ir::DType dtype);
    Value* load(Builder& b, ir::DType dtype, Value* address);
    void store(Builder& b, ir::DType dtype, Value* value, Value* address);
    Value* constant(ir::DType dtype, const ir::Literal& literal, size_t index = 0);
    Value* map(Builder& b, ir::Op op, ir::DType dtype, ir::DType operand_dtype, const std::vector<Value*>& args);
    Value* cast(Builder& b, Value* value, ir::DType from, ir::DType to);
    /// Index arithmetic on lengths known not to be negative.
    Value* unsigned_index(Builder& b, ir::Op op, Value* x, Value* y);
    /// Combines two values as a reduction does; sums of floats may be reassociated.
    Value* combine(Builder& b, ir::Op op, ir::DType dtype, Value* a, Value* x);
    Value* neutral(ir::Op op, ir::DType dtype);
    /// A scalar as 64 bits, and back.
    Value* to_slot(Builder& b, Value* value, ir::DType dtype);
    Value* from_slot(Builder& b, Value* slot, ir::DType dtype);

    // --- kernels (emit_kernel.cpp)
    struct KernelCode {
        llvm::Function* body = nullptr;   // (runtime, buffers…, scalars…, begin, end)
        llvm::Function* thunk = nullptr;  // (arguments, begin, end): body's arguments from an array of 64-bit slots
        // Of a kernel that reduces everything, where it may be cut into parts: parts [begin, end) of the outermost
        // axis, `length` each, leave what they have reduced in partials, `reductions` slots a part; finish (runtime,
        // buffers…, scalars…, partials, count) combines them in order.
        llvm::Function* parts = nullptr;  // (arguments, then length and partials; begin, end)
        llvm::Function* finish = nullptr;
        size_t reductions = 0;
    };
    const KernelCode& kernel(int index);
    /// Makes the kernel's parts and finish.
    void emit_parts(int index);

    // --- programs (emit_driver.cpp)
    llvm::Function* program(int index);

    llvm::Module& module() { return module_; }
    llvm::LLVMContext& context() { return module_.getContext(); }
    const lower::LoweredModule& lowered() const { return lowered_; }
    llvm::FunctionCallee math_function(const std::string& name, llvm::FunctionType* type);

private:
    Value* float_map(Builder& b, ir::Op op, llvm::Type* type, const std::vector<Value*>& args);
    Value* int_map(Builder& b, ir::Op op, ir::DType dtype, const std::vector<Value*>& args);
    Value* compare(Builder& b, ir::Op op, ir::DType dtype, const std::vector<Value*>& args);
    Value* float_to_int(Builder& b, Value* value, ir::DType to);
    Value* round_to(Builder& b, Value* value, ir::DType dtype);
    Value* half_to_float(Builder& b, Value* bits);
    Value* float_to_half(Builder& b, Value* value);
    Value* bf16_to_float(Builder& b, Value* bits);
    Value* float_to_bf16(Builder& b, Value* value);
    llvm::Function* kernel_function(const lower::Kernel& kernel, const std::string& name,
                                    const std::vector<llvm::Type*>& more);
    llvm::Function* emit_range(const lower::Kernel& kernel, const std::string& name, llvm::Function* body,
                               const std::vector<llvm::Type*>& more);

    const lower::LoweredModule& lowered_;
    llvm::Module& module_;
    std::vector<KernelCode> kernels_;
    std::vector<llvm::Function*> programs_;
};

[[noreturn]] void unsupported(const std::string& what);

/// for (i = begin; i < end; i += step) body(i). Leaves the builder after the loop. The innermost loop over elements is
/// marked for vectorisation.
enum class LoopKind { kPlain, kVector };
void emit_loop(Builder& b, Value* begin, Value* end, LoopKind kind, const std::function<void(Value*)>& body);

/// Loads what the module needs of the math bitcode, optimises, and gives an object file or text.
Result<std::string> optimize_and_emit(llvm::Module& module, llvm::TargetMachine& machine, const Target& target,
                                      Emit emit);
Result<std::unique_ptr<llvm::TargetMachine>> make_machine(const Target& target);
/// Links one object file into a shared object, in this process.
Result<std::string> link_shared_object(const std::string& object);

}  // namespace ember::codegen
