// Every row of the rule table held against the reference evaluator, by the machine: for each dtype that the row's ops
// admit, before and after on special operands (NaN, infinities, zeros of both signs, subnormals, the largest) and on
// random ones, as exactly as the row's fp column says. Rows with planted errors must be caught.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>

#include "ember/interp/evaluate.h"
#include "ember/rewrite/rules.h"
#include "ember/rewrite/simplifier.h"

namespace ember::rewrite {
namespace {

using interp::Tensor;
using ir::DType;
using ir::Formula;
using ir::Graph;
using ir::Op;

constexpr DType kDTypes[] = {DType::kBool, DType::kU8,   DType::kI8,  DType::kI32, DType::kI64,
                             DType::kF16,  DType::kBF16, DType::kF32, DType::kF64};

double epsilon(DType dtype) {
    switch (dtype) {
        case DType::kF16:
            return 0x1p-10;
        case DType::kBF16:
            return 0x1p-7;
        case DType::kF32:
            return 0x1p-23;
        default:
            return 0x1p-52;
    }
}

double largest(DType dtype) {
    switch (dtype) {
        case DType::kF16:
            return 65504;
        case DType::kBF16:
            return 0x1.fep127;
        case DType::kF32:
            return std::numeric_limits<float>::max();
        default:
            return std::numeric_limits<double>::max();
    }
}

// --- operands

std::vector<double> special_values(DType dtype, Fp fp) {
    if (dtype == DType::kBool) {
        return {0, 1};
    }
    if (dtype == DType::kU8) {
        return {0, 1, 2, 3, 7, 127, 128, 254, 255};
    }
    if (ir::is_int(dtype)) {
        int bits = static_cast<int>(ir::element_bytes(dtype)) * 8;
        double low = -std::ldexp(1.0, bits - 1);
        double high = bits == 64 ? 0x1.fffffffffffffp62 : -low - 1;
        return {0, 1, -1, 2, -2, 3, 7, -8, low, low + (bits == 64 ? 2048 : 1), high};
    }
    bool improves = fp == Fp::kImproves || fp == Fp::kForgives;
    double inf = std::numeric_limits<double>::infinity();
    std::vector<double> values = {0.0, -0.0, 1, -1, 0.5, -0.3, 2.5, -7, 0.9, inf, -inf, std::nan("")};
    if (improves && dtype == DType::kF64) {
        values.insert(values.end(), {1e-3, -1e-3, 3.7, -3.7});  // where the original in f64 is right itself
    } else if (fp != Fp::kReassociates && fp != Fp::kContracts) {
        double smallest = dtype == DType::kF16 ? 0x1p-24 : dtype == DType::kF64 ? 0x1p-1074 : 0x1p-133;
        double tiny = improves ? 0x1p-14 : smallest;
        values.insert(values.end(), {tiny, -tiny, tiny * 3, 100, -100, 1e-3, -1e-3, 30, -30});
        if (!improves) {  // its operands are those for which exp does not underflow in f64
            values.insert(values.end(), {largest(dtype), -largest(dtype)});
        }
    }
    return values;
}

double random_value(DType dtype, std::mt19937_64& random) {
    if (dtype == DType::kBool) {
        return static_cast<double>(random() & 1);
    }
    if (ir::is_int(dtype)) {
        auto small = static_cast<double>(random() % 20);
        return ir::is_signed_int(dtype) ? small - 10 : small;
    }
    return std::uniform_real_distribution<double>(-4, 4)(random);
}

/// Values of all letters side by side: every pair of special ones, and random ones.
std::vector<std::vector<double>> operand_values(const std::vector<DType>& dtypes, Fp fp) {
    std::mt19937_64 random(5);
    std::vector<std::vector<double>> columns(dtypes.size());
    auto append = [&](auto&& value_of) {
        for (size_t k = 0; k < dtypes.size(); ++k) {
            columns[k].push_back(value_of(k));
        }
    };
    size_t rows = 1;
    for (DType dtype : dtypes) {
        rows *= special_values(dtype, fp).size();
    }
    for (size_t row = 0; row < std::min<size_t>(rows, 4000); ++row) {
        size_t rest = rows <= 4000 ? row : random() % rows;
        append([&](size_t k) {
            std::vector<double> values = special_values(dtypes[k], fp);
            double value = values[rest % values.size()];
            rest /= values.size();
            return value;
        });
    }
    for (int row = 0; row < 500; ++row) {
        append([&](size_t k) { return random_value(dtypes[k], random); });
    }
    return columns;
}

std::vector<double> constants_of(DType dtype) {
    if (ir::is_float(dtype)) {
        return {2, -2, 0.25, 3, -1.5, 0.0, -0.0, std::numeric_limits<double>::infinity(), std::nan("")};
    }
    return dtype == DType::kBool ? std::vector<double>{0, 1} : std::vector<double>{0, 1, 2, 5, 100};
}

// --- one way to instantiate a rule

struct Letters {
    std::vector<char> variables;
    std::vector<char> constants;
};

Letters letters_of(const Rule& rule) {
    std::set<char> constants;
    std::string when(rule.when);
    for (size_t at = 0; at < when.size(); at = when.find(' ', at) == when.npos ? when.size() : when.find(' ', at) + 1) {
        std::string name =
            when.substr(at + 2, when.find(' ', at) == when.npos ? when.npos : when.find(' ', at) - at - 2);
        if (name == "const" || name == "ordinary" || name == "power_of_two") {
            constants.insert(when[at]);
        }
    }
    Letters letters;
    std::set<char> seen;
    for (const Formula::Node& node : ir::formulas(rule.from)[0].nodes) {
        if (node.kind == Formula::Kind::kVariable && seen.insert(node.variable).second) {
            (constants.contains(node.variable) ? letters.constants : letters.variables).push_back(node.variable);
        }
    }
    return letters;
}

struct Instance {
    DType dtype;                    // of letters that are not bool
    std::vector<DType> dtypes;      // of variables
    std::vector<double> constants;  // values of constants
};

/// The graph of one side; nothing where the ops do not admit the dtypes.
std::optional<Graph> build_side(const Formula& side, const Letters& letters, const Instance& instance) {
    ir::GraphBuilder builder;
    ir::FormulaVariables values;
    for (size_t k = 0; k < letters.variables.size(); ++k) {
        values[letters.variables[k]] = builder.param({instance.dtypes[k], {ir::Dim::symbol("n")}});
    }
    for (size_t k = 0; k < letters.constants.size(); ++k) {
        values[letters.constants[k]] = builder.constant(instance.dtype, instance.constants[k]);
    }
    try {
        builder.output(build_formula(builder, side, values, instance.dtype));
    } catch (const InternalError&) {
        return std::nullopt;
    }
    return builder.take();
}

std::optional<Graph> build_from(const Rule& rule, const Instance& instance) {
    return build_side(ir::formulas(rule.from)[0], letters_of(rule), instance);
}

/// The `from` side after the rule; nothing where it does not apply.
std::optional<Graph> apply_rule(const Rule& rule, const Graph& from) {
    RuleSet only({&rule, 1});
    Simplified result = simplify_graph(from, nullptr, only);
    for (std::string_view name : result.applied_rules) {
        if (name == rule.name) {
            return std::move(result.graph);
        }
    }
    return std::nullopt;
}

// --- comparison

struct Expected {
    double before;  // in the same dtype
    double exact;   // in f64
    bool has_nan;
    double scale;  // of the operands
};

bool same_number(double a, double b, bool zero_signs) {
    if (std::isnan(a) || std::isnan(b)) {
        return std::isnan(a) && std::isnan(b);
    }
    return a == b && (!zero_signs || a != 0 || std::signbit(a) == std::signbit(b));
}

bool is_close(double found, double wanted, double relative, double absolute, DType dtype) {
    if (std::isnan(wanted) || std::isnan(found) || std::isinf(wanted)) {
        return same_number(found, wanted, false);
    }
    if (std::isinf(found)) {
        return std::abs(wanted) >= largest(dtype) * (1 - 8 * relative) && (found > 0) == (wanted > 0);
    }
    return std::abs(found - wanted) <= relative * std::abs(wanted) + absolute;
}

/// Is `after` what the rule's row allows?
bool agrees(Fp fp, DType dtype, double after, const Expected& expected) {
    if (!ir::is_float(dtype) || fp == Fp::kExact) {
        return same_number(after, expected.before, true);
    }
    if (fp == Fp::kNoSignedZeros) {
        return same_number(after, expected.before, false);
    }
    double eps = epsilon(dtype);
    if (fp == Fp::kReassociates) {
        return is_close(after, expected.before, 64 * eps, 64 * eps * expected.scale, dtype);
    }
    if (fp == Fp::kForgives && std::isnan(expected.before)) {
        return true;
    }
    double noise = dtype == DType::kF64 ? 1e-11 : 1e-14;  // of the f64 computation
    double subnormal = dtype == DType::kF16 ? 0x1p-24 : 0;
    if (is_close(after, expected.exact, 16 * eps, noise * (1 + expected.scale) + subnormal, dtype)) {
        return true;
    }
    bool overflowed = !std::isfinite(expected.exact) && !expected.has_nan;
    bool better = std::abs(after - expected.exact) <= std::abs(expected.before - expected.exact);
    return (fp == Fp::kImproves || fp == Fp::kForgives) && (better || (overflowed && !std::isnan(after)));
}

Tensor evaluate_one(const Graph& graph, const std::vector<Tensor>& inputs) {
    auto results = interp::evaluate(graph, nullptr, inputs);
    check(results.ok(), results.ok() ? "" : results.error().to_string());
    return std::move(results).value()[0];
}

std::string describe(const Rule& rule, const Instance& instance, const std::vector<Tensor>& inputs, int64_t row) {
    std::string text = std::string(rule.name) + " in " + std::string(dtype_name(instance.dtype)) + " at";
    for (const Tensor& input : inputs) {
        text += " " + std::to_string(input.at_double(row));
    }
    for (double constant : instance.constants) {
        text += " constant " + std::to_string(constant);
    }
    return text;
}

/// The first disagreement, in words; empty: none.
std::string check_instance(const Rule& rule, const Instance& instance, const Graph& from, const Graph& after) {
    Letters letters = letters_of(rule);
    std::vector<std::vector<double>> values = operand_values(instance.dtypes, rule.fp);
    Instance wide = instance;
    wide.dtype = ir::is_float(instance.dtype) ? DType::kF64 : instance.dtype;
    std::vector<Tensor> inputs;
    std::vector<Tensor> wide_inputs;
    for (size_t k = 0; k < values.size(); ++k) {
        auto rows = static_cast<int64_t>(values[k].size());
        inputs.push_back(interp::from_values(instance.dtypes[k], {rows}, values[k]));
        wide.dtypes[k] = ir::is_float(instance.dtypes[k]) ? DType::kF64 : instance.dtypes[k];
        wide_inputs.push_back(interp::zeros(wide.dtypes[k], {rows}));
        for (int64_t row = 0; row < rows; ++row) {
            wide_inputs[k].set(row, inputs[k].at_double(row));
        }
    }
    Tensor before = evaluate_one(from, inputs);
    Tensor found = evaluate_one(after, inputs);
    Tensor exact = evaluate_one(*build_from(rule, wide), wide_inputs);
    if (found.dtype != before.dtype || found.shape != before.shape) {
        return std::string(rule.name) + " gives " + found.to_string(0) + ", not " + before.to_string(0);
    }
    for (int64_t row = 0; row < before.elements(); ++row) {
        Expected expected{before.at_double(row), exact.at_double(row), false, 0};
        for (size_t k = 0; k < inputs.size() + instance.constants.size(); ++k) {
            double value = k < inputs.size() ? inputs[k].at_double(row) : instance.constants[k - inputs.size()];
            expected.has_nan = expected.has_nan || std::isnan(value);
            expected.scale = std::isfinite(value) ? std::max(expected.scale, std::abs(value)) : expected.scale;
        }
        bool equal = ir::is_float(before.dtype) ? agrees(rule.fp, before.dtype, found.at_double(row), expected)
                                                : found.at_int(row) == before.at_int(row);
        if (!equal) {
            return describe(rule, instance, inputs, row) + ": " + std::to_string(expected.before) + " (in f64 " +
                   std::to_string(expected.exact) + ") became " + std::to_string(found.at_double(row));
        }
    }
    return "";
}

/// All instances of one dtype: every choice of bool or that dtype for variables, and of values for constants.
std::vector<Instance> instances(const Rule& rule, DType dtype) {
    Letters letters = letters_of(rule);
    std::vector<Instance> found;
    for (size_t choice = 0; choice < size_t{1} << letters.variables.size(); ++choice) {
        Instance instance{dtype, {}, {}};
        for (size_t k = 0; k < letters.variables.size(); ++k) {
            instance.dtypes.push_back((choice >> k) & 1 ? DType::kBool : dtype);
        }
        instance.constants.assign(letters.constants.size(), 1);
        if (!build_from(rule, instance)) {
            continue;
        }
        std::vector<double> values = constants_of(dtype);
        size_t combinations = 1;
        for (size_t k = 0; k < letters.constants.size(); ++k) {
            combinations *= values.size();
        }
        for (size_t row = 0; row < combinations; ++row) {
            size_t rest = row;
            for (double& constant : instance.constants) {
                constant = values[rest % values.size()];
                rest /= values.size();
            }
            found.push_back(instance);
        }
        if (dtype == DType::kBool) {
            break;
        }
    }
    return found;
}

struct Verdict {
    int instances = 0;
    std::string failure;
};

Verdict check_rule(const Rule& rule) {
    Verdict verdict;
    for (DType dtype : kDTypes) {
        for (const Instance& instance : instances(rule, dtype)) {
            Graph from = *build_from(rule, instance);
            std::optional<Graph> after = apply_rule(rule, from);
            if (!after) {
                continue;
            }
            ++verdict.instances;
            verdict.failure = check_instance(rule, instance, from, *after);
            if (!verdict.failure.empty()) {
                return verdict;
            }
        }
    }
    return verdict;
}

TEST(Rules, EveryRowIsSound) {
    for (const Rule& rule : rules()) {
        Verdict verdict = check_rule(rule);
        EXPECT_EQ(verdict.failure, "") << rule.from << " -> " << rule.to;
        EXPECT_GT(verdict.instances, 0) << rule.name << " never applies";
    }
}

TEST(Rules, NamesAreUnique) {
    std::set<std::string_view> names;
    for (const Rule& rule : rules()) {
        EXPECT_TRUE(names.insert(rule.name).second) << rule.name;
        EXPECT_FALSE(rule.why.empty()) << rule.name;
    }
}

/// The test of the test.
TEST(Rules, PlantedErrorsAreCaught) {
    const Rule kWrong[] = {
        {"off_by_one", "x+1", "x", "", Fp::kExact, ""},
        {"nan_is_lost", "x*0", "0", "x:float", Fp::kNoSignedZeros, ""},
        {"zero_sign_is_lost", "x+0", "x", "", Fp::kExact, ""},
        {"infinity_is_lost", "x-x", "0", "x:float", Fp::kReassociates, ""},
        {"negative_is_lost", "exp(log(x))", "x", "", Fp::kContracts, ""},
        {"nan_compares", "not(lt(x,y))", "ge(x,y)", "", Fp::kExact, ""},
        {"wraps", "lt(x-y,0)", "lt(x,y)", "x:int", Fp::kExact, ""},
        {"overflows", "(x*y)/y", "x", "", Fp::kNoSignedZeros, ""},
        {"rounds", "x/c", "x*(1/c)", "c:ordinary", Fp::kExact, ""},
        {"swapped", "select(not(c),x,y)", "select(c,x,y)", "", Fp::kExact, ""},
        {"cancels", "log1p(x)", "log(1+x)", "", Fp::kContracts, ""},
        {"overflow_added", "softplus(x)", "log(1+exp(x))", "", Fp::kImproves, ""},
        {"choice_lost", "select(c,x,0)*y", "x*y", "y:float", Fp::kForgives, ""},
        {"unsigned", "abs(x-y)", "max(x,y)-min(x,y)", "", Fp::kExact, ""},
    };
    for (const Rule& rule : kWrong) {
        EXPECT_NE(check_rule(rule).failure, "") << rule.name << " was not caught";
    }
}

// --- cost

int op_cost(Op op) {
    switch (op) {
        case Op::k_pow:
            return 40;
        case Op::k_div:
        case Op::k_sqrt:
        case Op::k_rsqrt:
            return 8;
        case Op::k_neg:
        case Op::k_abs:
        case Op::k_add:
        case Op::k_sub:
        case Op::k_mul:
        case Op::k_max:
        case Op::k_min:
        case Op::k_not:
        case Op::k_and:
        case Op::k_or:
        case Op::k_xor:
        case Op::k_eq:
        case Op::k_ne:
        case Op::k_lt:
        case Op::k_le:
        case Op::k_gt:
        case Op::k_ge:
        case Op::k_select:
        case Op::k_is_nan:
        case Op::k_is_inf:
        case Op::k_is_finite:
        case Op::k_sign:
        case Op::k_floor:
        case Op::k_ceil:
        case Op::k_trunc:
        case Op::k_round:
        case Op::k_shift_left:
        case Op::k_shift_right:
            return 2;
        default:
            return 30;
    }
}

/// Of what is left to the run.
int cost(const Formula& formula, const std::set<char>& constants) {
    std::vector<bool> known;
    int sum = 0;
    for (const Formula::Node& node : formula.nodes) {
        bool constant = node.kind == Formula::Kind::kNumber ||
                        (node.kind == Formula::Kind::kVariable && constants.contains(node.variable));
        if (node.kind == Formula::Kind::kOp) {
            constant = std::all_of(node.operands.begin(), node.operands.end(), [&](uint32_t k) { return known[k]; });
            sum += constant ? 0 : op_cost(node.op);
        }
        known.push_back(constant);
    }
    return sum;
}

TEST(Rules, NoneCostsMoreThanWhatItReplaces) {
    for (const Rule& rule : rules()) {
        if (rule.fp == Fp::kImproves || rule.fp == Fp::kForgives) {
            continue;
        }
        std::vector<char> list = letters_of(rule).constants;
        std::set<char> constants(list.begin(), list.end());
        EXPECT_LE(cost(ir::formulas(rule.to)[0], constants), cost(ir::formulas(rule.from)[0], constants)) << rule.name;
    }
}

}  // namespace
}  // namespace ember::rewrite
