// Scalar values: LLVM types, memory, conversions, and the code of every map op.
#include <llvm/IR/Intrinsics.h>

#include <limits>

#include "ember/codegen/emitter.h"
#include "ember/ir/literal.h"

namespace ember::codegen {

using ir::DType;
using ir::Op;
using llvm::Intrinsic::ID;

void unsupported(const std::string& what) {
    throw Unsupported{error(Code::kUnsupported, what)};
}

llvm::Type* Emitter::value_type(DType dtype) {
    switch (dtype) {
        case DType::kBool:
            return llvm::Type::getInt1Ty(context());
        case DType::kI8:
        case DType::kU8:
            return llvm::Type::getInt8Ty(context());
        case DType::kI16:
        case DType::kU16:
            return llvm::Type::getInt16Ty(context());
        case DType::kI32:
        case DType::kU32:
            return llvm::Type::getInt32Ty(context());
        case DType::kI64:
        case DType::kU64:
            return llvm::Type::getInt64Ty(context());
        case DType::kF16:
        case DType::kBF16:
        case DType::kF32:
            return llvm::Type::getFloatTy(context());
        case DType::kF64:
            return llvm::Type::getDoubleTy(context());
        default:
            unsupported("no code for dtype " + std::string(ir::dtype_name(dtype)));
    }
}

llvm::Type* Emitter::memory_type(DType dtype) {
    if (dtype == DType::kBool) {
        return llvm::Type::getInt8Ty(context());
    }
    bool half = dtype == DType::kF16 || dtype == DType::kBF16;
    return half ? llvm::Type::getInt16Ty(context()) : value_type(dtype);
}

Value* Emitter::load(Builder& b, DType dtype, Value* address) {
    auto alignment = llvm::Align(static_cast<uint64_t>(ir::element_bytes(dtype)));
    Value* raw = b.CreateAlignedLoad(memory_type(dtype), address, alignment);
    switch (dtype) {
        case DType::kBool:
            return b.CreateICmpNE(raw, b.getInt8(0));
        case DType::kF16:
            return half_to_float(b, raw);
        case DType::kBF16:
            return bf16_to_float(b, raw);
        default:
            return raw;
    }
}

void Emitter::store(Builder& b, DType dtype, Value* value, Value* address) {
    switch (dtype) {
        case DType::kBool:
            value = b.CreateZExt(value, b.getInt8Ty());
            break;
        case DType::kF16:
            value = float_to_half(b, value);
            break;
        case DType::kBF16:
            value = float_to_bf16(b, value);
            break;
        default:
            break;
    }
    b.CreateAlignedStore(value, address, llvm::Align(static_cast<uint64_t>(ir::element_bytes(dtype))));
}

Value* Emitter::constant(DType dtype, const ir::Literal& literal, size_t index) {
    llvm::Type* type = value_type(dtype);
    if (type->isIntegerTy()) {
        return llvm::ConstantInt::get(type, static_cast<uint64_t>(ir::literal_as_int(literal, index)), true);
    }
    if (dtype == DType::kF32 || dtype == DType::kF64) {  // all bits are kept, those of a NaN too
        uint64_t bits = 0;
        size_t size = static_cast<size_t>(ir::element_bytes(dtype));
        std::copy_n(literal.bytes.data() + index * size, size, reinterpret_cast<char*>(&bits));
        const auto& semantics = dtype == DType::kF32 ? llvm::APFloat::IEEEsingle() : llvm::APFloat::IEEEdouble();
        return llvm::ConstantFP::get(type, llvm::APFloat(semantics, llvm::APInt(size * 8, bits)));
    }
    return llvm::ConstantFP::get(type, ir::literal_as_double(literal, index));
}

Value* Emitter::bf16_to_float(Builder& b, Value* bits) {
    Value* wide = b.CreateShl(b.CreateZExt(bits, b.getInt32Ty()), 16);
    return b.CreateBitCast(wide, b.getFloatTy());
}

Value* Emitter::float_to_bf16(Builder& b, Value* value) {
    Value* bits = b.CreateBitCast(value, b.getInt32Ty());
    Value* odd = b.CreateAnd(b.CreateLShr(bits, 16), 1);
    Value* rounded = b.CreateLShr(b.CreateAdd(bits, b.CreateAdd(odd, b.getInt32(0x7fff))), 16);
    Value* quiet = b.CreateOr(b.CreateLShr(bits, 16), 0x40);
    Value* result = b.CreateSelect(b.CreateFCmpUNO(value, value), quiet, rounded);
    return b.CreateTrunc(result, b.getInt16Ty());
}

// The same steps as ir/literal.cpp, without branches.
Value* Emitter::half_to_float(Builder& b, Value* bits) {
    Value* wide = b.CreateZExt(bits, b.getInt32Ty());
    Value* sign = b.CreateShl(b.CreateAnd(wide, 0x8000), 16);
    Value* exponent = b.CreateAnd(b.CreateLShr(wide, 10), 31);
    Value* mantissa = b.CreateAnd(wide, 0x3ff);
    Value* small =
        b.CreateFMul(b.CreateUIToFP(mantissa, b.getFloatTy()), llvm::ConstantFP::get(b.getFloatTy(), 0x1p-24));
    Value* biased = b.CreateSelect(b.CreateICmpEQ(exponent, b.getInt32(31)), b.getInt32(255),
                                   b.CreateAdd(exponent, b.getInt32(112)));
    Value* normal = b.CreateOr(b.CreateShl(biased, 23), b.CreateShl(mantissa, 13));
    Value* magnitude =
        b.CreateSelect(b.CreateICmpEQ(exponent, b.getInt32(0)), b.CreateBitCast(small, b.getInt32Ty()), normal);
    return b.CreateBitCast(b.CreateOr(sign, magnitude), b.getFloatTy());
}

Value* Emitter::float_to_half(Builder& b, Value* value) {
    Value* bits = b.CreateBitCast(value, b.getInt32Ty());
    Value* sign = b.CreateAnd(b.CreateLShr(bits, 16), 0x8000);
    Value* magnitude = b.CreateAnd(bits, 0x7fffffff);
    Value* shifted =
        b.CreateFAdd(b.CreateBitCast(magnitude, b.getFloatTy()), llvm::ConstantFP::get(b.getFloatTy(), 0.5));
    Value* small = b.CreateSub(b.CreateBitCast(shifted, b.getInt32Ty()), b.getInt32(0x3f000000));
    Value* odd = b.CreateAnd(b.CreateLShr(magnitude, 13), 1);
    Value* rounded = b.CreateAdd(magnitude, b.CreateAdd(odd, b.getInt32(0xfff)));
    Value* normal = b.CreateLShr(b.CreateSub(rounded, b.getInt32(0x38000000)), 13);
    Value* result = b.CreateSelect(b.CreateICmpULT(magnitude, b.getInt32(0x38800000)), small, normal);
    result = b.CreateSelect(b.CreateICmpUGE(magnitude, b.getInt32(0x477ff000)), b.getInt32(0x7c00), result);
    result = b.CreateSelect(b.CreateICmpUGT(magnitude, b.getInt32(0x7f800000)), b.getInt32(0x7e00), result);
    return b.CreateTrunc(b.CreateOr(sign, result), b.getInt16Ty());
}

Value* Emitter::round_to(Builder& b, Value* value, DType dtype) {
    if (dtype == DType::kF16) {
        return half_to_float(b, float_to_half(b, value));
    }
    return dtype == DType::kBF16 ? bf16_to_float(b, float_to_bf16(b, value)) : value;
}

Value* Emitter::float_to_int(Builder& b, Value* value, DType to) {
    // Out of range gives the lowest number, as x86-64 does; narrow types take the low bits of the wider conversion.
    bool wide = to == DType::kI64 || to == DType::kU64 || to == DType::kU32;
    llvm::Type* type = wide ? b.getInt64Ty() : b.getInt32Ty();
    double bound = wide ? 0x1p63 : 0x1p31;
    Value* low = llvm::ConstantFP::get(value->getType(), -bound);
    Value* high = llvm::ConstantFP::get(value->getType(), bound);
    Value* inside = b.CreateAnd(b.CreateFCmpOGE(value, low), b.CreateFCmpOLT(value, high));
    if (!wide && value->getType()->isDoubleTy()) {
        inside = b.CreateAnd(b.CreateFCmpOGT(value, llvm::ConstantFP::get(value->getType(), -bound - 1)),
                             b.CreateFCmpOLT(value, high));
    }
    Value* lowest = llvm::ConstantInt::get(type, uint64_t{1} << (wide ? 63 : 31));
    Value* safe = b.CreateSelect(inside, value, llvm::ConstantFP::get(value->getType(), 0.0));
    Value* result = b.CreateSelect(inside, b.CreateFPToSI(safe, type), lowest);
    if (to == DType::kU64) {
        Value* above = b.CreateAnd(b.CreateFCmpOGE(value, high),
                                   b.CreateFCmpOLT(value, llvm::ConstantFP::get(value->getType(), 0x1p64)));
        Value* upper = b.CreateSelect(above, b.CreateFSub(value, high), llvm::ConstantFP::get(value->getType(), 0.0));
        result = b.CreateSelect(above, b.CreateXor(b.CreateFPToSI(upper, type), lowest), result);
    }
    return b.CreateTrunc(result, value_type(to));
}

Value* Emitter::cast(Builder& b, Value* value, DType from, DType to) {
    llvm::Type* type = value_type(to);
    if (from == to) {
        return value;
    }
    if (ir::is_float(from)) {
        if (to == DType::kBool) {
            return b.CreateFCmpUNE(value, llvm::ConstantFP::get(value->getType(), 0.0));
        }
        if (ir::is_float(to)) {
            return round_to(b, b.CreateFPCast(value, type), to);
        }
        return float_to_int(b, value, to);
    }
    bool is_unsigned = ir::is_bool(from) || ir::is_unsigned_int(from);
    if (to == DType::kBool) {
        return b.CreateICmpNE(value, llvm::ConstantInt::get(value->getType(), 0));
    }
    if (ir::is_float(to)) {
        Value* number = is_unsigned ? b.CreateUIToFP(value, type) : b.CreateSIToFP(value, type);
        return round_to(b, number, to);
    }
    return is_unsigned ? b.CreateZExtOrTrunc(value, type) : b.CreateSExtOrTrunc(value, type);
}

llvm::FunctionCallee Emitter::math_function(const std::string& name, llvm::FunctionType* type) {
    return module_.getOrInsertFunction(name, type);
}

namespace {

/// The intrinsic that is the op, for floats.
std::optional<ID> float_intrinsic(Op op) {
    switch (op) {
        case Op::k_abs:
            return llvm::Intrinsic::fabs;
        case Op::k_floor:
            return llvm::Intrinsic::floor;
        case Op::k_ceil:
            return llvm::Intrinsic::ceil;
        case Op::k_trunc:
            return llvm::Intrinsic::trunc;
        case Op::k_round:
            return llvm::Intrinsic::rint;
        case Op::k_sqrt:
            return llvm::Intrinsic::sqrt;
        case Op::k_copysign:
            return llvm::Intrinsic::copysign;
        case Op::k_max:
            return llvm::Intrinsic::maximum;
        case Op::k_min:
            return llvm::Intrinsic::minimum;
        default:
            return std::nullopt;
    }
}

}  // namespace

Value* Emitter::float_map(Builder& b, Op op, llvm::Type* type, const std::vector<Value*>& args) {
    auto number = [type](double value) { return llvm::ConstantFP::get(type, value); };
    if (auto id = float_intrinsic(op)) {
        return args.size() == 1 ? b.CreateUnaryIntrinsic(*id, args[0]) : b.CreateBinaryIntrinsic(*id, args[0], args[1]);
    }
    switch (op) {
        case Op::k_neg:
            return b.CreateFNeg(args[0]);
        case Op::k_add:
            return b.CreateFAdd(args[0], args[1]);
        case Op::k_sub:
            return b.CreateFSub(args[0], args[1]);
        case Op::k_mul:
            return b.CreateFMul(args[0], args[1]);
        case Op::k_div:
            return b.CreateFDiv(args[0], args[1]);
        case Op::k_square:
            return b.CreateFMul(args[0], args[0]);
        case Op::k_reciprocal:
            return b.CreateFDiv(number(1), args[0]);
        case Op::k_rsqrt:
            return b.CreateFDiv(number(1), b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, args[0]));
        case Op::k_fma:
            return b.CreateFAdd(b.CreateFMul(args[0], args[1]), args[2]);
        case Op::k_clamp:
            return b.CreateBinaryIntrinsic(
                llvm::Intrinsic::minimum, b.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, args[0], args[1]), args[2]);
        case Op::k_sign: {
            Value* up = b.CreateSelect(b.CreateFCmpOGT(args[0], number(0)), number(1), number(0));
            Value* down = b.CreateSelect(b.CreateFCmpOLT(args[0], number(0)), number(-1), up);
            return b.CreateSelect(b.CreateFCmpUNO(args[0], args[0]), args[0], down);
        }
        case Op::k_round_away: {
            // Half of the next lower number: 0.49999…94 must not round up.
            double half = type->isFloatTy() ? 0x1.fffffep-2 : 0x1.fffffffffffffp-2;
            Value* step = b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, number(half), args[0]);
            Value* magnitude = b.CreateUnaryIntrinsic(llvm::Intrinsic::trunc, b.CreateFAdd(args[0], step));
            return b.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, args[0]);
        }
        default:
            break;
    }
    std::string name = "ember_" + std::string(op_name(op)) + (type->isFloatTy() ? "_f32" : "_f64");
    std::vector<llvm::Type*> types(args.size(), type);
    llvm::CallInst* call = b.CreateCall(math_function(name, llvm::FunctionType::get(type, types, false)), args);
    call->setFastMathFlags({});
    return call;
}

// Long because it is a switch with one case an op.
Value* Emitter::int_map(Builder& b, Op op, DType dtype, const std::vector<Value*>& args) {
    llvm::Type* type = args.back()->getType();
    bool is_signed = ir::is_signed_int(dtype);
    auto number = [type](int64_t value) { return llvm::ConstantInt::get(type, static_cast<uint64_t>(value), true); };
    auto larger = [&](Value* x, Value* y) {
        return b.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, x, y);
    };
    auto smaller = [&](Value* x, Value* y) {
        return b.CreateBinaryIntrinsic(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, x, y);
    };
    auto floor_div = [&](Value* x, Value* y) -> std::pair<Value*, Value*> {
        Value* zero = b.CreateICmpEQ(y, number(0));
        if (!is_signed) {
            Value* safe = b.CreateSelect(zero, number(1), y);
            return {b.CreateSelect(zero, number(0), b.CreateUDiv(x, safe)),
                    b.CreateSelect(zero, number(0), b.CreateURem(x, safe))};
        }
        Value* minus_one = b.CreateICmpEQ(y, number(-1));
        Value* safe = b.CreateSelect(b.CreateOr(zero, minus_one), number(1), y);
        Value* q = b.CreateSDiv(x, safe);
        Value* r = b.CreateSub(x, b.CreateMul(q, safe));
        Value* off = b.CreateAnd(b.CreateICmpNE(r, number(0)), b.CreateICmpSLT(b.CreateXor(r, safe), number(0)));
        q = b.CreateSelect(off, b.CreateSub(q, number(1)), q);
        r = b.CreateSelect(off, b.CreateAdd(r, safe), r);
        q = b.CreateSelect(minus_one, b.CreateNeg(x), q);
        Value* none = b.CreateOr(zero, minus_one);
        return {b.CreateSelect(zero, number(0), q), b.CreateSelect(none, number(0), r)};
    };
    switch (op) {
        case Op::k_neg:
            return b.CreateNeg(args[0]);
        case Op::k_abs:
            return is_signed ? b.CreateSelect(b.CreateICmpSLT(args[0], number(0)), b.CreateNeg(args[0]), args[0])
                             : args[0];
        case Op::k_sign: {
            Value* up = b.CreateZExt(
                is_signed ? b.CreateICmpSGT(args[0], number(0)) : b.CreateICmpNE(args[0], number(0)), type);
            return is_signed ? b.CreateSelect(b.CreateICmpSLT(args[0], number(0)), number(-1), up) : up;
        }
        case Op::k_add:
            return ir::is_bool(dtype) ? b.CreateOr(args[0], args[1]) : b.CreateAdd(args[0], args[1]);
        case Op::k_sub:
            return b.CreateSub(args[0], args[1]);
        case Op::k_mul:
            return ir::is_bool(dtype) ? b.CreateAnd(args[0], args[1]) : b.CreateMul(args[0], args[1]);
        case Op::k_square:
            return b.CreateMul(args[0], args[0]);
        case Op::k_max:
            return ir::is_bool(dtype) ? b.CreateOr(args[0], args[1]) : larger(args[0], args[1]);
        case Op::k_min:
            return ir::is_bool(dtype) ? b.CreateAnd(args[0], args[1]) : smaller(args[0], args[1]);
        case Op::k_clamp:
            return smaller(larger(args[0], args[1]), args[2]);
        case Op::k_floor_div:
            return floor_div(args[0], args[1]).first;
        case Op::k_mod:
            return floor_div(args[0], args[1]).second;
        case Op::k_fmod: {
            Value* zero = b.CreateICmpEQ(args[1], number(0));
            Value* bad = is_signed ? b.CreateOr(zero, b.CreateICmpEQ(args[1], number(-1))) : zero;
            Value* safe = b.CreateSelect(bad, number(1), args[1]);
            Value* r = is_signed ? b.CreateSRem(args[0], safe) : b.CreateURem(args[0], safe);
            return b.CreateSelect(bad, number(0), r);
        }
        case Op::k_and:
            return b.CreateAnd(args[0], args[1]);
        case Op::k_or:
            return b.CreateOr(args[0], args[1]);
        case Op::k_xor:
            return b.CreateXor(args[0], args[1]);
        case Op::k_not:
            return b.CreateNot(args[0]);
        case Op::k_shift_left:
        case Op::k_shift_right: {
            Value* bits = number(type->getIntegerBitWidth());
            Value* fits = b.CreateICmpULT(args[1], bits);
            Value* amount = b.CreateSelect(fits, args[1], number(type->getIntegerBitWidth() - 1));
            if (op == Op::k_shift_left) {
                return b.CreateSelect(fits, b.CreateShl(args[0], amount), number(0));
            }
            return is_signed ? b.CreateAShr(args[0], amount)
                             : b.CreateSelect(fits, b.CreateLShr(args[0], amount), number(0));
        }
        case Op::k_pow: {
            // Squaring, all bits: 64 steps at most; a negative exponent leaves the bases 1 and -1 only.
            Value* x = is_signed ? b.CreateSExt(args[0], b.getInt64Ty()) : b.CreateZExt(args[0], b.getInt64Ty());
            Value* y = is_signed ? b.CreateSExt(args[1], b.getInt64Ty()) : b.CreateZExt(args[1], b.getInt64Ty());
            auto* signature = llvm::FunctionType::get(b.getInt64Ty(), {b.getInt64Ty(), b.getInt64Ty()}, false);
            Value* power =
                b.CreateCall(math_function(is_signed ? "ember_pow_i64" : "ember_pow_u64", signature), {x, y});
            return b.CreateTrunc(power, type);
        }
        default:
            unsupported(std::string(op_name(op)) + " has no code for " + std::string(ir::dtype_name(dtype)));
    }
}

Value* Emitter::compare(Builder& b, Op op, DType dtype, const std::vector<Value*>& args) {
    using P = llvm::CmpInst::Predicate;
    if (ir::is_float(dtype)) {
        Value* infinity = llvm::ConstantFP::getInfinity(args[0]->getType());
        switch (op) {
            case Op::k_is_nan:
                return b.CreateFCmpUNO(args[0], args[0]);
            case Op::k_is_inf:
                return b.CreateFCmpOEQ(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, args[0]), infinity);
            case Op::k_is_finite:
                return b.CreateFCmpOLT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, args[0]), infinity);
            default:
                break;
        }
        static constexpr std::pair<Op, P> kFloat[] = {{Op::k_eq, P::FCMP_OEQ}, {Op::k_ne, P::FCMP_UNE},
                                                      {Op::k_lt, P::FCMP_OLT}, {Op::k_le, P::FCMP_OLE},
                                                      {Op::k_gt, P::FCMP_OGT}, {Op::k_ge, P::FCMP_OGE}};
        for (auto [candidate, predicate] : kFloat) {
            if (candidate == op) {
                return b.CreateFCmp(predicate, args[0], args[1]);
            }
        }
    }
    bool is_signed = ir::is_signed_int(dtype);
    switch (op) {
        case Op::k_eq:
            return b.CreateICmpEQ(args[0], args[1]);
        case Op::k_ne:
            return b.CreateICmpNE(args[0], args[1]);
        case Op::k_lt:
            return b.CreateICmp(is_signed ? P::ICMP_SLT : P::ICMP_ULT, args[0], args[1]);
        case Op::k_le:
            return b.CreateICmp(is_signed ? P::ICMP_SLE : P::ICMP_ULE, args[0], args[1]);
        case Op::k_gt:
            return b.CreateICmp(is_signed ? P::ICMP_SGT : P::ICMP_UGT, args[0], args[1]);
        case Op::k_ge:
            return b.CreateICmp(is_signed ? P::ICMP_SGE : P::ICMP_UGE, args[0], args[1]);
        default:
            unsupported(std::string(op_name(op)) + " has no code");
    }
}

Value* Emitter::map(Builder& b, Op op, DType dtype, DType operand_dtype, const std::vector<Value*>& args) {
    if (op == Op::k_select) {
        return b.CreateSelect(args[0], args[1], args[2]);
    }
    if (ir::info(op).result == ir::MapResult::kBool) {
        return compare(b, op, operand_dtype, args);
    }
    if (ir::is_float(dtype)) {
        return round_to(b, float_map(b, op, value_type(dtype), args), dtype);
    }
    return int_map(b, op, dtype, args);
}

Value* Emitter::unsigned_index(Builder& b, Op op, Value* x, Value* y) {
    return op == Op::k_mod ? b.CreateURem(x, y) : b.CreateUDiv(x, y);
}

Value* Emitter::combine(Builder& b, Op op, DType dtype, Value* a, Value* x) {
    if (!ir::is_float(dtype)) {
        return int_map(b, op, dtype, {a, x});
    }
    llvm::IRBuilderBase::FastMathFlagGuard guard(b);
    llvm::FastMathFlags flags = b.getFastMathFlags();
    flags.setAllowReassoc();
    // A sum starts from 0 and is never -0; which of two zeros is the larger one, no order of a reduction says.
    flags.setNoSignedZeros(op == Op::k_max || op == Op::k_min);
    b.setFastMathFlags(flags);
    switch (op) {
        case Op::k_add:
            return b.CreateFAdd(a, x);
        case Op::k_mul:
            return b.CreateFMul(a, x);
        case Op::k_max:
            return b.CreateBinaryIntrinsic(llvm::Intrinsic::maximum, a, x);
        case Op::k_min:
            return b.CreateBinaryIntrinsic(llvm::Intrinsic::minimum, a, x);
        default:
            unsupported("this reduction has no code for floats");
    }
}

Value* Emitter::neutral(Op op, DType dtype) {
    llvm::Type* type = value_type(dtype);
    if (ir::is_float(dtype)) {
        switch (op) {
            case Op::k_add:
                return llvm::ConstantFP::get(type, 0.0);
            case Op::k_mul:
                return llvm::ConstantFP::get(type, 1.0);
            case Op::k_max:
                return llvm::ConstantFP::getInfinity(type, true);
            default:
                return llvm::ConstantFP::getInfinity(type, false);
        }
    }
    unsigned bits = type->getIntegerBitWidth();
    bool is_signed = ir::is_signed_int(dtype);
    switch (op) {
        case Op::k_mul:
            return llvm::ConstantInt::get(type, 1);
        case Op::k_and:
            return llvm::ConstantInt::getAllOnesValue(type);
        case Op::k_max:
            return llvm::ConstantInt::get(type,
                                          is_signed ? llvm::APInt::getSignedMinValue(bits) : llvm::APInt(bits, 0));
        case Op::k_min:
            return llvm::ConstantInt::get(
                type, is_signed ? llvm::APInt::getSignedMaxValue(bits) : llvm::APInt::getMaxValue(bits));
        default:
            return llvm::ConstantInt::get(type, 0);
    }
}

Value* Emitter::to_slot(Builder& b, Value* value, DType dtype) {
    if (ir::is_float(dtype)) {
        bool is_double = value->getType()->isDoubleTy();
        value = b.CreateBitCast(value, is_double ? b.getInt64Ty() : b.getInt32Ty());
    }
    return b.CreateZExtOrTrunc(value, b.getInt64Ty());
}

Value* Emitter::from_slot(Builder& b, Value* slot, DType dtype) {
    llvm::Type* type = value_type(dtype);
    if (type->isDoubleTy()) {
        return b.CreateBitCast(slot, type);
    }
    if (type->isFloatTy()) {
        return b.CreateBitCast(b.CreateTrunc(slot, b.getInt32Ty()), type);
    }
    return b.CreateZExtOrTrunc(slot, type);
}

}  // namespace ember::codegen
