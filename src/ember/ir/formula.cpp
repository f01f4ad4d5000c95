// Parser and builder of formulas; the grammar stands in formula.h.
#include "ember/ir/formula.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

namespace ember::ir {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool is_name(char c) {
    return (c >= 'a' && c <= 'z') || c == '_' || is_digit(c);
}

class Parser {
public:
    explicit Parser(std::string_view text) : text_(text) {}

    Result<Formula> parse() {
        EMBER_TRY(uint32_t root, expression());
        if (at_ != text_.size()) {
            return fail("an operator or the end");
        }
        check(root + 1 == formula_.nodes.size(), "the root of a formula comes last");
        return std::move(formula_);
    }

private:
    static constexpr int kMaxDepth = 100;

    Diagnostic fail(std::string_view expected) const {
        return error(Code::kParse, "formula '" + std::string(text_) + "', column " + std::to_string(at_ + 1) +
                                       ": expected " + std::string(expected));
    }
    char peek() {
        while (at_ < text_.size() && text_[at_] == ' ') {
            ++at_;
        }
        return at_ < text_.size() ? text_[at_] : '\0';
    }
    bool accept(char c) {
        if (peek() != c) {
            return false;
        }
        ++at_;
        return true;
    }
    uint32_t push(Formula::Node node) {
        formula_.nodes.push_back(std::move(node));
        return static_cast<uint32_t>(formula_.nodes.size()) - 1;
    }
    uint32_t push_op(Op op, std::vector<uint32_t> operands) {
        return push({.kind = Formula::Kind::kOp, .op = op, .operands = std::move(operands)});
    }

    Result<uint32_t> expression() {
        EMBER_TRY(uint32_t left, term());
        for (char c = peek(); c == '+' || c == '-'; c = peek()) {
            ++at_;
            EMBER_TRY(uint32_t right, term());
            left = push_op(c == '+' ? Op::k_add : Op::k_sub, {left, right});
        }
        return left;
    }

    Result<uint32_t> term() {
        EMBER_TRY(uint32_t left, unary());
        for (char c = peek(); c == '*' || c == '/'; c = peek()) {
            ++at_;
            EMBER_TRY(uint32_t right, unary());
            left = push_op(c == '*' ? Op::k_mul : Op::k_div, {left, right});
        }
        return left;
    }

    Result<uint32_t> unary() {
        if (++depth_ > kMaxDepth) {
            return fail("less nesting");
        }
        bool minus = accept('-');
        EMBER_TRY(uint32_t operand, minus && !is_digit(peek()) ? unary() : primary());
        --depth_;
        Formula::Node& node = formula_.nodes[operand];
        if (minus && node.kind == Formula::Kind::kNumber) {
            node.number = -node.number;
            return operand;
        }
        return minus ? push_op(Op::k_neg, {operand}) : operand;
    }

    Result<uint32_t> primary() {
        char c = peek();
        if (accept('(')) {
            EMBER_TRY(uint32_t inner, expression());
            return accept(')') ? Result<uint32_t>(inner) : Result<uint32_t>(fail("')'"));
        }
        if (is_digit(c)) {
            return number();
        }
        size_t start = at_;
        while (at_ < text_.size() && is_name(text_[at_])) {
            ++at_;
        }
        std::string_view name = text_.substr(start, at_ - start);
        if (name == "inf" || name == "nan") {
            double value = name == "inf" ? std::numeric_limits<double>::infinity() : std::nan("");
            return push({.kind = Formula::Kind::kNumber, .number = value});
        }
        if (name.size() == 1) {
            return push({.kind = Formula::Kind::kVariable, .variable = name[0]});
        }
        return call(name);
    }

    Result<uint32_t> number() {
        size_t start = at_;
        auto digits = [&] {
            while (at_ < text_.size() && is_digit(text_[at_])) {
                ++at_;
            }
        };
        digits();
        if (at_ < text_.size() && text_[at_] == '.') {
            ++at_;
            digits();
        }
        if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
            at_ += at_ + 1 < text_.size() && text_[at_ + 1] == '-' ? 2 : 1;
            digits();
        }
        std::string digits_text(text_.substr(start, at_ - start));
        return push({.kind = Formula::Kind::kNumber, .number = std::strtod(digits_text.c_str(), nullptr)});
    }

    Result<uint32_t> call(std::string_view name) {
        std::optional<Op> op = op_from_name(name);
        if (!op || !is_map(*op)) {
            return fail("a number, a letter or a map op");
        }
        if (!accept('(')) {
            return fail("'('");
        }
        std::vector<uint32_t> operands;
        do {
            EMBER_TRY(uint32_t operand, expression());
            operands.push_back(operand);
        } while (accept(','));
        if (static_cast<int>(operands.size()) != info(*op).min_arity) {
            return fail(std::to_string(info(*op).min_arity) + " operands");
        }
        return accept(')') ? Result<uint32_t>(push_op(*op, std::move(operands))) : Result<uint32_t>(fail("')'"));
    }

    std::string_view text_;
    size_t at_ = 0;
    int depth_ = 0;
    Formula formula_;
};

/// Builds bottom-up, numbers last: their dtype is that of a sibling.
struct Builder {
    GraphBuilder& graph;
    const Formula& formula;
    const FormulaVariables& variables;
    const MakeNode& make;

    ValueId build(uint32_t at, DType expected) {
        const Formula::Node& node = formula.nodes[at];
        if (node.kind == Formula::Kind::kNumber) {
            return graph.constant(expected, node.number);
        }
        if (node.kind == Formula::Kind::kVariable) {
            ValueId value = variables[node.variable];
            check(value != kNone, "a formula's variable without a value");
            return value;
        }
        return build_op(node, expected);
    }

    ValueId build_op(const Formula::Node& node, DType expected) {
        size_t first = node.op == Op::k_select ? 1 : 0;  // the condition has a dtype of its own
        std::vector<ValueId> operands(node.operands.size(), kNone);
        if (first == 1) {
            operands[0] = build(node.operands[0], DType::kBool);
        }
        bool found = false;
        auto build_where = [&](auto&& wanted) {
            for (size_t k = first; k < operands.size(); ++k) {
                const Formula::Node& child = formula.nodes[node.operands[k]];
                if (operands[k] != kNone || !wanted(child)) {
                    continue;
                }
                operands[k] = build(node.operands[k], expected);
                expected = found ? expected : graph.type(operands[k]).dtype;
                found = true;
            }
        };
        build_where([&](const Formula::Node& child) { return child.kind == Formula::Kind::kVariable; });
        build_where([&](const Formula::Node& child) { return child.kind == Formula::Kind::kOp; });
        build_where([&](const Formula::Node&) { return true; });
        return make(node.op, std::move(operands));
    }
};

std::vector<Formula> parse_list(std::string_view text) {
    std::vector<Formula> list;
    while (true) {
        size_t end = text.find(';');
        auto formula = parse_formula(text.substr(0, end));
        check(formula.ok(), formula.ok() ? "" : formula.error().to_string());
        list.push_back(std::move(formula).value());
        if (end == std::string_view::npos) {
            return list;
        }
        text.remove_prefix(end + 1);
    }
}

}  // namespace

Result<Formula> parse_formula(std::string_view text) {
    return Parser(text).parse();
}

const std::vector<Formula>& formulas(std::string_view text) {
    static std::mutex mutex;
    static std::unordered_map<std::string, std::unique_ptr<const std::vector<Formula>>> known;
    std::lock_guard lock(mutex);
    auto& entry = known[std::string(text)];
    if (entry == nullptr) {
        entry = std::make_unique<const std::vector<Formula>>(parse_list(text));
    }
    return *entry;
}

ValueId build_formula(GraphBuilder& builder, const Formula& formula, const FormulaVariables& variables, DType dtype,
                      const MakeNode& make) {
    return Builder{builder, formula, variables, make}.build(static_cast<uint32_t>(formula.nodes.size()) - 1, dtype);
}

ValueId build_formula(GraphBuilder& builder, const Formula& formula, const FormulaVariables& variables, DType dtype) {
    return build_formula(builder, formula, variables, dtype,
                         [&](Op op, std::vector<ValueId> operands) { return builder.make(op, std::move(operands)); });
}

}  // namespace ember::ir
