// Text of kernels (their identity) and of lowered modules (for people).
#include <charconv>

#include "ember/lower/group.h"
#include "ember/lower/program.h"

namespace ember::lower {
namespace {

std::string extent_text(Extent e) {
    return e.is_static() ? std::to_string(e.size) : "s" + std::to_string(e.scalar);
}

std::string hex(const std::string& bytes) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text;
    for (size_t i = bytes.size(); i-- > 0;) {
        auto byte = static_cast<unsigned char>(bytes[i]);
        text += kDigits[byte >> 4];
        text += kDigits[byte & 15];
    }
    return text;
}

std::string_view kernel_op_name(KernelOp op) {
    static constexpr std::string_view kNames[] = {"const", "table",  "scalar",     "index", "map",  "cast",
                                                  "load",  "reduce", "arg_reduce", "scan",  "store"};
    return kNames[static_cast<int>(op)];
}

}  // namespace

std::string Kernel::to_string() const {
    std::string text = "kernel rows(";
    for (size_t i = 0; i < extents.size(); ++i) {
        if (static_cast<int>(i) == row_rank) {
            text += ") columns(";
        }
        text += extent_text(extents[i]) + " ";
    }
    text += serial ? ") serial\n" : ")\n";
    for (const KernelBuffer& buffer : buffers) {
        text += buffer.written ? "  out " : "  in ";
        text += ir::dtype_name(buffer.dtype);
        text += "[";
        for (Extent e : buffer.shape) {
            text += extent_text(e) + " ";
        }
        text += "]\n";
    }
    for (ir::DType dtype : scalars) {
        text += "  scalar " + std::string(ir::dtype_name(dtype)) + "\n";
    }
    for (size_t i = 0; i < body.size(); ++i) {
        const Instruction& instruction = body[i];
        text += "  " + std::to_string(i) + " = " + std::string(kernel_op_name(instruction.op));
        bool has_op = instruction.op == KernelOp::kMap || instruction.op == KernelOp::kReduce ||
                      instruction.op == KernelOp::kArgReduce || instruction.op == KernelOp::kScan ||
                      instruction.op == KernelOp::kStore;
        if (has_op) {
            text += " " + std::string(ir::op_name(instruction.map_op));
        }
        text += " " + std::string(ir::dtype_name(instruction.dtype)) + " #" + std::to_string(instruction.index);
        for (int arg : instruction.args) {
            text += " " + std::to_string(arg);
        }
        if (!instruction.literal.bytes.empty()) {
            text += " 0x" + hex(instruction.literal.bytes);
            for (int64_t size : instruction.literal.shape) {
                text += "," + std::to_string(size);
            }
        }
        text += "\n";
    }
    return text;
}

int64_t Kernel::cost() const {
    int64_t total = 0;
    for (const Instruction& instruction : body) {
        switch (instruction.op) {
            case KernelOp::kMap:
                total += instruction.dtype == ir::DType::kI64 ? 0 : map_cost(instruction.map_op);
                break;
            case KernelOp::kLoad:
            case KernelOp::kStore:
            case KernelOp::kReduce:
                total += 1;
                break;
            default:
                break;
        }
    }
    return total > 0 ? total : 1;
}

namespace {

struct Printer {
    const Program& program;
    std::string text;

    void list(const std::vector<int>& ids, char prefix) {
        text += "(";
        for (size_t i = 0; i < ids.size(); ++i) {
            text += (i == 0 ? "" : " ") + std::string(1, prefix) + std::to_string(ids[i]);
        }
        text += ")";
    }
    void scalar(ScalarId id) {
        const Scalar& s = program.scalars[static_cast<size_t>(id)];
        text += "s" + std::to_string(id) + " = ";
        switch (s.kind) {
            case Scalar::Kind::kConst:
                text += "const 0x" + hex(s.literal.bytes);
                break;
            case Scalar::Kind::kParamDim:
                text += "dim of parameter " + std::to_string(s.index) + " axis " + std::to_string(s.axis);
                break;
            case Scalar::Kind::kLoad:
                text += "load b" + std::to_string(s.index);
                break;
            case Scalar::Kind::kMap:
                text += std::string(ir::op_name(s.map_op));
                list(s.args, 's');
                break;
            case Scalar::Kind::kCast:
                text += "cast " + std::string(ir::dtype_name(s.dtype));
                list(s.args, 's');
                break;
            default:
                text += "trips";
                break;
        }
        text += "\n";
    }
    void operator()(const ComputeScalar& s) { scalar(s.scalar); }
    void operator()(const Launch& s) {
        text += "kernel " + std::to_string(s.kernel) + " ";
        list(s.buffers, 'b');
        list(s.scalars, 's');
        text += "\n";
    }
    void operator()(const Gemm& s) {
        text += "gemm b" + std::to_string(s.c.buffer) + " = b" + std::to_string(s.a.buffer) + " b" +
                std::to_string(s.b.buffer) + "\n";
    }
    void operator()(const QuantizedMatmul& s) {
        text += "quantized_matmul b" + std::to_string(s.result) + " = b" + std::to_string(s.x.buffer) + " b" +
                std::to_string(s.weights) + "\n";
    }
    void operator()(const DequantizeRows& s) {
        text += "dequantize b" + std::to_string(s.to) + " = b" + std::to_string(s.rows) + "\n";
    }
    void operator()(const CopyBuffer& s) {
        text += "copy b" + std::to_string(s.to) + " = b" + std::to_string(s.from) + "\n";
    }
    void operator()(const Check& s) { text += "check s" + std::to_string(s.a) + " s" + std::to_string(s.b) + "\n"; }
    void operator()(const CheckIndices& s) {
        text += "check_indices b" + std::to_string(s.index) + " s" + std::to_string(s.limit) + "\n";
    }
    void operator()(const CallRuntime& s) {
        text += (s.result < 0 ? "" : "s" + std::to_string(s.result) + " = ") + std::string(s.function) + " (";
        for (size_t i = 0; i < s.arguments.size(); ++i) {
            static constexpr std::string_view kPrefixes[] = {"b", "b", "s", ""};
            const CallRuntime::Argument& argument = s.arguments[i];
            text += (i == 0 ? "" : " ") + std::string(kPrefixes[static_cast<int>(argument.kind)]) +
                    std::to_string(argument.value);
        }
        text += ")\n";
    }
    void operator()(const CallFunction& s) {
        text += "call " + std::to_string(s.function) + " ";
        list(s.arguments, 'b');
        list(s.results, 'b');
        text += "\n";
    }
    void operator()(const HostCall& s) {
        text += "host_call " + std::to_string(s.number) + " ";
        list(s.arguments, 'b');
        list(s.results, 'b');
        text += "\n";
    }
    void operator()(const If& s) {
        text += "if s" + std::to_string(s.condition) + " ";
        list(s.arguments, 'b');
        list(s.results, 'b');
        text += "\n";
    }
    void operator()(const Loop& s) {
        text += "loop s" + std::to_string(s.trips) + " body " + std::to_string(s.body) + " ";
        list(s.initial, 'b');
        list(s.finals, 'b');
        list(s.stacked, 'b');
        text += "\n";
    }
};

}  // namespace

std::string to_string(const LoweredModule& module) {
    std::string text;
    for (size_t p = 0; p < module.programs.size(); ++p) {
        const Program& program = module.programs[p];
        Printer printer{program, {}};
        printer.text = "program " + std::to_string(p) + " @" + program.name + "\n";
        for (size_t b = 0; b < program.buffers.size(); ++b) {
            static constexpr std::string_view kKinds[] = {"parameter ", "output ", "slot ", "given "};
            const Buffer& buffer = program.buffers[b];
            printer.text += "  b" + std::to_string(b) + " " + std::string(ir::dtype_name(buffer.dtype)) + " ";
            printer.list(buffer.shape, 's');
            printer.text += " " + std::string(kKinds[static_cast<int>(buffer.kind)]) + std::to_string(buffer.index);
            printer.text += buffer.alias_of >= 0 ? " alias of b" + std::to_string(buffer.alias_of) + "\n" : "\n";
        }
        for (size_t i = 0; i < program.steps.size(); ++i) {
            const Step& step = program.steps[i];
            printer.text += static_cast<int>(i) == program.commit ? "  commit\n  " : "  ";
            std::visit(printer, step);
        }
        text += printer.text;
    }
    for (size_t k = 0; k < module.kernels.size(); ++k) {
        text += std::to_string(k) + ": " + module.kernels[k].to_string();
    }
    return text;
}

}  // namespace ember::lower
