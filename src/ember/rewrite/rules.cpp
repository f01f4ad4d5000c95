// The rule table compiled: formulas parsed, conditions resolved, rows sorted by the op at their root.
#include "ember/rewrite/rules.h"

#include <cmath>
#include <memory>
#include <string>

#include "ember/support/check.h"

namespace ember::rewrite {
namespace {

using ir::DType;
using ir::Formula;
using ir::Graph;
using ir::Literal;
using ir::Op;
using ir::ValueId;

constexpr Rule kRules[] = {
#define EMBER_RULE(name, from, to, when, fp, why) {#name, from, to, when, Fp::fp, why},
#include "ember/rewrite/rules.def"
#undef EMBER_RULE
};

DType dtype(const Graph& graph, ValueId value) {
    return graph.type(value).dtype;
}

bool is_constant(const Graph& graph, ValueId value) {
    return graph.literal(value) != nullptr || splat(graph, value) != nullptr;
}

/// The one number of a real constant; NaN: none.
double number_of(const Graph& graph, ValueId value) {
    const Literal* literal = splat(graph, value);
    bool real = literal != nullptr && !ir::is_complex(literal->dtype);
    return real ? literal_as_double(*literal) : std::nan("");
}

/// 1/c is a number of the same dtype without rounding.
bool is_power_of_two(const Graph& graph, ValueId value) {
    int exponent = 0;
    double number = number_of(graph, value);
    if (!ir::is_float(dtype(graph, value)) || !std::isfinite(number)) {
        return false;
    }
    return std::abs(std::frexp(number, &exponent)) == 0.5 && std::abs(exponent) <= 14;
}

/// Products and quotients of two such numbers neither overflow nor underflow.
bool is_ordinary(const Graph& graph, ValueId value) {
    double size = std::abs(number_of(graph, value));
    double bound = dtype(graph, value) == DType::kF16 ? 0x1p5 : 0x1p20;
    return ir::is_float(dtype(graph, value)) && size <= bound && size >= 1 / bound;
}

bool is_min(const Graph& graph, ValueId value) {
    const ir::Node* node = graph.producer(value);
    return node != nullptr && node->op == Op::k_min;
}

struct NamedCondition {
    std::string_view name;
    Condition holds;
};
constexpr NamedCondition kConditions[] = {
    {"const", is_constant},
    {"variable", [](const Graph& g, ValueId v) { return !is_constant(g, v); }},
    {"ordinary", is_ordinary},
    {"power_of_two", is_power_of_two},
    {"not_min", [](const Graph& g, ValueId v) { return !is_min(g, v); }},
    {"float", [](const Graph& g, ValueId v) { return ir::is_float(dtype(g, v)); }},
    {"f32", [](const Graph& g, ValueId v) { return dtype(g, v) == DType::kF32; }},
    {"f64", [](const Graph& g, ValueId v) { return dtype(g, v) == DType::kF64; }},
    {"int", [](const Graph& g, ValueId v) { return ir::is_int(dtype(g, v)); }},
    {"signed_int", [](const Graph& g, ValueId v) { return ir::is_signed_int(dtype(g, v)); }},
    {"signed", [](const Graph& g, ValueId v) { return ir::is_float(dtype(g, v)) || ir::is_signed_int(dtype(g, v)); }},
    {"bool", [](const Graph& g, ValueId v) { return ir::is_bool(dtype(g, v)); }},
    {"exact", [](const Graph& g, ValueId v) { return ir::is_bool(dtype(g, v)) || ir::is_int(dtype(g, v)); }},
    {"number", [](const Graph& g, ValueId v) { return !ir::is_bool(dtype(g, v)); }},
};

Condition find_condition(std::string_view name) {
    for (const NamedCondition& row : kConditions) {
        if (row.name == name) {
            return row.holds;
        }
    }
    fail_check("unknown condition " + std::string(name), std::source_location::current());
}

std::vector<std::pair<char, Condition>> compile_conditions(std::string_view when) {
    std::vector<std::pair<char, Condition>> conditions;
    while (!when.empty()) {
        size_t end = std::min(when.find(' '), when.size());
        std::string_view one = when.substr(0, end);
        check(one.size() > 2 && one[1] == ':', "a condition is letter:name");
        conditions.emplace_back(one[0], find_condition(one.substr(2)));
        when.remove_prefix(std::min(end + 1, when.size()));
    }
    return conditions;
}

bool all_equal(const Literal& literal) {
    auto size = static_cast<size_t>(ir::element_bytes(literal.dtype));
    const std::string& bytes = literal.bytes;
    return !bytes.empty() && bytes.compare(size, bytes.npos, bytes, 0, bytes.size() - size) == 0;
}

/// Is the constant of exactly this number, the sign of zero included?
bool is_number(const Graph& graph, ValueId value, double number) {
    const Literal* literal = splat(graph, value);
    if (literal == nullptr || ir::is_complex(literal->dtype)) {
        return false;
    }
    bool whole = std::isfinite(number) && number == std::floor(number);
    if (!ir::is_float(literal->dtype) && (!whole || (number < 0 && !ir::is_signed_int(literal->dtype)))) {
        return number == 0;
    }
    Literal wanted = scalar_literal(literal->dtype, number);
    return literal->bytes.compare(0, wanted.bytes.size(), wanted.bytes) == 0;
}

class Matcher {
public:
    Matcher(const Graph& graph, const Formula& pattern, ir::FormulaVariables& letters)
        : graph_(graph), pattern_(pattern), letters_(letters) {}

    bool match_operands(const Formula::Node& node, std::span<const ValueId> operands) {
        ir::FormulaVariables before = letters_;
        if (match_in_order(node, operands)) {
            return true;
        }
        letters_ = before;
        if (!is_commutative(node.op)) {
            return false;
        }
        ValueId turned[] = {operands[1], operands[0]};
        if (match_in_order(node, turned)) {
            return true;
        }
        letters_ = before;
        return false;
    }

private:
    bool match_in_order(const Formula::Node& node, std::span<const ValueId> operands) {
        for (size_t k = 0; k < operands.size(); ++k) {
            if (!match(pattern_.nodes[node.operands[k]], operands[k])) {
                return false;
            }
        }
        return true;
    }

    bool match(const Formula::Node& node, ValueId value) {
        if (node.kind == Formula::Kind::kNumber) {
            return is_number(graph_, value, node.number);
        }
        if (node.kind == Formula::Kind::kVariable) {
            ValueId& letter = letters_[node.variable];
            if (letter == ir::kNone) {
                letter = value;
            }
            return letter == value;
        }
        const ir::Node* made_by = graph_.producer(value);
        return made_by != nullptr && made_by->op == node.op && match_operands(node, made_by->operands);
    }

    const Graph& graph_;
    const Formula& pattern_;
    ir::FormulaVariables& letters_;
};

}  // namespace

std::span<const Rule> rules() {
    return kRules;
}

RuleSet::RuleSet(std::span<const Rule> rules) {
    for (const Rule& rule : rules) {
        CompiledRule compiled{&rule, ir::formulas(rule.from)[0], ir::formulas(rule.to)[0],
                              compile_conditions(rule.when)};
        const Formula::Node& root = compiled.from.root();
        check(root.kind == Formula::Kind::kOp, "a rule replaces an op");
        rules_[static_cast<size_t>(root.op)].push_back(std::move(compiled));
    }
}

const RuleSet& RuleSet::all() {
    static const RuleSet* const kAll = new RuleSet(rules());
    return *kAll;
}

const Literal* splat(const Graph& graph, ValueId value) {
    const ir::Node* node = graph.producer(value);
    while (node != nullptr && (node->op == Op::k_broadcast || node->op == Op::k_reshape)) {
        node = graph.producer(node->operands[0]);
    }
    bool equal = node != nullptr && node->op == Op::k_const && all_equal(node->literal());
    return equal ? &node->literal() : nullptr;
}

bool is_commutative(Op op) {
    switch (op) {
        case Op::k_add:
        case Op::k_mul:
        case Op::k_max:
        case Op::k_min:
        case Op::k_eq:
        case Op::k_ne:
        case Op::k_and:
        case Op::k_or:
        case Op::k_xor:
        case Op::k_logaddexp:
        case Op::k_hypot:
            return true;
        default:
            return false;
    }
}

bool matches(const Graph& graph, const CompiledRule& rule, std::span<const ValueId> operands,
             ir::FormulaVariables& letters) {
    if (!Matcher(graph, rule.from, letters).match_operands(rule.from.root(), operands)) {
        return false;
    }
    for (const auto& [letter, holds] : rule.conditions) {
        if (!holds(graph, letters[letter])) {
            return false;
        }
    }
    return true;
}

}  // namespace ember::rewrite
