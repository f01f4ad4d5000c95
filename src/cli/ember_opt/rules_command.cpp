// `ember-opt rules`: the rule table, and for each row a function that it applies to: the file tests of rules.
#include <algorithm>
#include <map>
#include <set>

#include "cli/ember_opt/commands.h"
#include "cli/ember_opt/rule_use.h"
#include "ember/ir/builder.h"
#include "ember/rewrite/rules.h"
#include "ember/text/print.h"

namespace ember::opt {
namespace {

using ir::DType;
using rewrite::CompiledRule;

/// What a letter of a rule may stand for in an example.
struct Choice {
    DType dtype;
    std::optional<double> constant;
};
constexpr Choice kChoices[] = {{DType::kF32, {}},  {DType::kI32, {}},  {DType::kBool, {}}, {DType::kF64, {}},
                               {DType::kF32, 3.0}, {DType::kF32, 4.0}, {DType::kI32, 3.0}, {DType::kI32, 4.0},
                               {DType::kF64, 3.0}, {DType::kBool, 1.0}};

std::vector<char> letters_of(const ir::Formula& formula) {
    std::set<char> letters;
    for (const ir::Formula::Node& node : formula.nodes) {
        if (node.kind == ir::Formula::Kind::kVariable) {
            letters.insert(node.variable);
        }
    }
    return {letters.begin(), letters.end()};
}

/// The function of these choices; nothing where it cannot be or the rule does not apply to it.
std::optional<ir::Graph> try_example(const CompiledRule& rule, const std::vector<char>& letters,
                                     const std::vector<size_t>& choices) {
    ir::GraphBuilder builder{std::string(rule.rule->name)};
    ir::FormulaVariables variables;
    ir::Shape shape = {ir::Dim::symbol("n")};
    for (size_t i = 0; i < letters.size(); ++i) {
        const Choice& choice = kChoices[choices[i]];
        variables[letters[i]] =
            choice.constant ? builder.constant(choice.dtype, *choice.constant) : builder.param({choice.dtype, shape});
    }
    try {
        builder.output(build_formula(builder, rule.from, variables, kChoices[choices[0]].dtype));
    } catch (const InternalError&) {
        return {};  // dtypes that do not go together
    }
    ir::Graph graph = builder.take();
    std::set<std::string_view> used;
    list_rules(graph, used);
    return used.contains(rule.rule->name) ? std::optional<ir::Graph>(std::move(graph)) : std::nullopt;
}

/// Tries all choices for all letters, those of the front of the list first.
std::optional<ir::Graph> find_example(const CompiledRule& rule) {
    std::vector<char> letters = letters_of(rule.from);
    std::vector<size_t> choices(std::max<size_t>(letters.size(), 1), 0);
    while (true) {
        if (auto graph = try_example(rule, letters, choices)) {
            return graph;
        }
        size_t place = 0;
        while (place < letters.size() && ++choices[place] == std::size(kChoices)) {
            choices[place++] = 0;
        }
        if (place == letters.size()) {
            return {};
        }
    }
}

std::string_view exactness(rewrite::Fp fp) {
    static constexpr std::string_view kNames[] = {"exact",     "no signed zeros", "reassociates",
                                                  "contracts", "improves",        "forgives"};
    return kNames[static_cast<size_t>(fp)];
}

std::string describe(const rewrite::Rule& rule) {
    std::string text = std::string(rule.name) + ": " + std::string(rule.from) + " -> " + std::string(rule.to);
    text += rule.when.empty() ? "" : " where " + std::string(rule.when);
    return text + " (" + std::string(exactness(rule.fp)) + "): " + std::string(rule.why);
}

}  // namespace

void list_rules(const ir::Graph& graph, std::set<std::string_view>& used) {
    for (const ir::Node& node : graph.nodes) {
        for (const CompiledRule& rule : rewrite::RuleSet::all().at(node.op)) {
            ir::FormulaVariables letters;
            if (matches(graph, rule, node.operands, letters)) {
                used.insert(rule.rule->name);
            }
        }
        for (const auto& region : node.regions) {
            list_rules(*region, used);
        }
    }
}

std::string list_rules() {
    std::string text;
    for (const rewrite::Rule& rule : rewrite::rules()) {
        text += describe(rule) + "\n";
    }
    return text;
}

std::string rule_tests() {
    std::map<std::string_view, std::string> tests;
    for (int op = 0; op < ir::kOpCount; ++op) {
        for (const CompiledRule& rule : rewrite::RuleSet::all().at(static_cast<ir::Op>(op))) {
            auto graph = find_example(rule);
            tests[rule.rule->name] = "// " + describe(*rule.rule) + "\n" +
                                     (graph ? text::print(*graph) : std::string("// no example was found\n"));
        }
    }
    std::string text;
    for (const rewrite::Rule& rule : rewrite::rules()) {
        text += (text.empty() ? "" : "// ---\n") + tests[rule.name];
    }
    return text;
}

}  // namespace ember::opt
