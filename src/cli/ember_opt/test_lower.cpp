// File tests of lowering and code generation. Both start with the whole rewriting pipeline, as a compile does.
//
// What `lower` pins down is fusion and memory, not each instruction: its text names the buffers with their homes, the
// steps but for scalars and checks, and for every kernel its space and what it does in order, without arithmetic on
// indices. What `codegen` pins down is what comes out for each level of x86-64: how many kernels, how wide the vectors
// are, and which functions the object calls. Values are compared by tests of kind `run`.
#include <set>
#include <sstream>

#include "cli/ember_opt/test_kinds.h"
#include "ember/codegen/codegen.h"
#include "ember/lower/lower.h"
#include "ember/rewrite/passes.h"

namespace ember::opt {
namespace {

std::string buffer_line(const lower::Program& program, size_t id) {
    static constexpr std::string_view kKinds[] = {"parameter", "output", "slot"};
    const lower::Buffer& buffer = program.buffers[id];
    std::string line = "  b" + std::to_string(id) + " " + std::string(ir::dtype_name(buffer.dtype)) + " " +
                       std::string(kKinds[static_cast<size_t>(buffer.kind)]) + " " + std::to_string(buffer.index);
    return line + (buffer.alias_of >= 0 ? " alias of b" + std::to_string(buffer.alias_of) : "");
}

/// Which buffers the outputs are: a parameter's, where they are written in place of it.
std::string outputs_line(const lower::Program& program) {
    std::string line = "  outputs";
    for (size_t k = 0; k < program.outputs.size(); ++k) {
        bool in_place = k < program.in_place.size() && program.in_place[k] >= 0;
        line += " b" + std::to_string(program.outputs[k]) +
                (in_place ? " in place of parameter " + std::to_string(program.in_place[k]) : "");
    }
    return line;
}

/// A step without its list of scalars; nothing for scalars and checks.
std::string step_line(const std::string& line) {
    bool is_scalar =
        line.starts_with("  s") && line.find(" = ") != std::string::npos && line.find(" = b") > line.size();
    if (is_scalar || line.starts_with("  check ")) {
        return "";
    }
    return line.substr(0, line.find("(s"));
}

std::string extents_text(const lower::Kernel& kernel, size_t from, size_t to) {
    std::string text = "(";
    for (size_t axis = from; axis < to; ++axis) {
        const lower::Extent& extent = kernel.extents[axis];
        text += axis == from ? "" : " ";
        text += extent.is_static() ? std::to_string(extent.size) : "s" + std::to_string(extent.scalar);
    }
    return text + ")";
}

/// What an instruction does; nothing for constants and arithmetic on indices.
std::string instruction_text(const lower::Instruction& instruction) {
    std::string name(ir::op_name(instruction.map_op));
    switch (instruction.op) {
        case lower::KernelOp::kMap:
            return instruction.dtype == ir::DType::kI64 ? "" : name;
        case lower::KernelOp::kCast:
            return "cast." + std::string(ir::dtype_name(instruction.dtype));
        case lower::KernelOp::kLoad:
            return "load#" + std::to_string(instruction.index);
        case lower::KernelOp::kReduce:
            return "reduce." + name;
        case lower::KernelOp::kArgReduce:
            return "arg_reduce." + name;
        case lower::KernelOp::kScan:
            return "scan." + name;
        case lower::KernelOp::kStore:
            return (instruction.map_op == ir::Op::k_select ? "store#" : "store." + name + "#") +
                   std::to_string(instruction.index);
        default:
            return "";
    }
}

std::string kernel_line(const lower::Kernel& kernel, size_t number) {
    auto rows = static_cast<size_t>(kernel.row_rank);
    std::string line = "kernel " + std::to_string(number) + " rows" + extents_text(kernel, 0, rows) + " columns" +
                       extents_text(kernel, rows, kernel.extents.size()) + (kernel.serial ? " serial:" : ":");
    for (const lower::Instruction& instruction : kernel.body) {
        std::string text = instruction_text(instruction);
        line += text.empty() ? "" : " " + text;
    }
    return line;
}

/// Buffers from the structure, steps from the text that people see.
std::string summary(const lower::LoweredModule& module) {
    std::istringstream text(lower::to_string(module));
    std::string made;
    size_t program = 0;
    for (std::string line; std::getline(text, line) && !line.starts_with("0: kernel");) {
        if (line.starts_with("program ")) {
            made += line + "\n";
            for (size_t id = 0; id < module.programs[program].buffers.size(); ++id) {
                made += buffer_line(module.programs[program], id) + "\n";
            }
            made += outputs_line(module.programs[program]) + "\n";
            ++program;
        } else if (!(line.starts_with("  b") && line.find(" = ") == std::string::npos)) {
            std::string step = step_line(line);
            made += step.empty() ? "" : step + "\n";
        }
    }
    for (size_t number = 0; number < module.kernels.size(); ++number) {
        made += kernel_line(module.kernels[number], number) + "\n";
    }
    return made;
}

/// "x86-64-v3: 1 kernel, vectors of 256 bits, calls memcpy".
Result<std::string> level_line(const lower::LoweredModule& module, const std::string& level) {
    EMBER_TRY(Target target, make_target(level, {}));
    EMBER_TRY(codegen::Compiled made, codegen::compile(module, target, codegen::Emit::kAssembly));
    const std::string& text = made.object;
    auto has = [&](std::string_view what) { return text.find(what) != std::string::npos; };
    std::string_view bits = has("%zmm") ? "512" : has("%ymm") ? "256" : has("%xmm") ? "128" : "0";
    std::string line = level + ": " + std::to_string(made.kernels) + (made.kernels == 1 ? " kernel" : " kernels") +
                       ", vectors of " + std::string(bits) + " bits";
    std::set<std::string> calls;
    for (size_t at = text.find("@PLT"); at != std::string::npos; at = text.find("@PLT", at + 1)) {
        size_t start = text.find_last_of("\t *", at) + 1;
        calls.insert(text.substr(start, at - start));
    }
    for (const std::string& name : calls) {
        line += (name == *calls.begin() ? ", calls " : " ") + name;
    }
    return line + "\n";
}

Result<std::string> levels_text(const lower::LoweredModule& module) {
    std::string text;
    for (const char* level : {"x86-64", "x86-64-v3", "x86-64-v4"}) {
        EMBER_TRY(std::string line, level_line(module, level));
        text += line;
    }
    return text;
}

template <class Print>
Outcome test_lowered(const TestCase& test, const Print& print) {
    Outcome outcome{test.lines, {}};
    auto module = parse_lines(test, test.lines);
    if (!module.ok()) {
        outcome.faults.push_back(module.error().to_string());
        return outcome;
    }
    check_round_trip(*module, outcome.faults);
    auto lowered = lower::lower(rewrite::rewrite(*module, {}));
    Result<std::string> text = lowered.ok() ? print(*lowered) : Result<std::string>(lowered.error());
    if (text.ok()) {
        outcome.lines = with_expected(test.lines, *text);
    } else {
        outcome.faults.push_back(text.error().to_string());
    }
    return outcome;
}

}  // namespace

Outcome test_lower(const TestCase& test) {
    return test_lowered(test, [](const auto& module) { return Result<std::string>(summary(module)); });
}

Outcome test_codegen(const TestCase& test) {
    return test_lowered(test, levels_text);
}

}  // namespace ember::opt
