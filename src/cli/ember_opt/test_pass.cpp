// Tests of a pass: the text that it makes, and that values stay what they were.
#include <algorithm>
#include <charconv>
#include <map>

#include "cli/ember_opt/engines.h"
#include "cli/ember_opt/tensor_text.h"
#include "cli/ember_opt/test_kinds.h"
#include "ember/ir/builder.h"
#include "ember/text/print.h"

namespace ember::opt {
namespace {

using Sizes = std::map<std::string, int64_t>;

/// Rules may reassociate.
constexpr Tolerance kLoose = {1e-4, 1e-5};

/// "n=4 m=5"
Sizes parse_sizes(std::string_view text) {
    Sizes sizes;
    while (!text.empty()) {
        size_t end = std::min(text.find(' '), text.size());
        std::string_view one = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (size_t equals = one.find('='); equals != std::string_view::npos) {
            int64_t value = 0;
            std::from_chars(one.data() + equals + 1, one.data() + one.size(), value);
            sizes[std::string(one.substr(0, equals))] = value;
        }
    }
    return sizes;
}

class PassTest {
public:
    PassTest(const TestCase& test, std::vector<std::string>& faults) : faults_(faults) {
        for (const std::string& line : test.lines) {
            read(line);
        }
    }

    /// Evaluates each function that is still there, and takes and gives as much as it did, on several inputs.
    void compare(const ir::Module& before, const ir::Module& after) {
        for (size_t i = 0; i < before.functions.size(); ++i) {
            const std::string& name = before.functions[i].name;
            for (size_t j = 0; j < after.functions.size(); ++j) {
                bool same_signature = before.functions[i].params.size() == after.functions[j].params.size() &&
                                      before.functions[i].outputs.size() == after.functions[j].outputs.size();
                if (after.functions[j].name == name && (i == 0 || same_signature)) {
                    compare_function(with_entry(before, i), with_entry(after, j), i == 0);
                }
            }
        }
    }

private:
    void read(const std::string& line) {
        if (auto text = directive(line, "sizes")) {
            sizes_ = parse_sizes(*text);
        } else if (auto bound = tolerance_of(line)) {
            tolerance_.relative = tolerance_.absolute = *bound;
        } else if (directive(line, "zeros") == "of any sign") {
            tolerance_.zero_signs = false;
        } else if (auto input = directive(line, "input")) {
            auto tensor = parse_tensor(*input);
            if (tensor.ok()) {
                given_.push_back(std::move(*tensor));
            } else {
                faults_.push_back("bad input '" + std::string(*input) + "': " + tensor.error().to_string());
            }
        }
    }

    void compare_function(const ir::Module& before, const ir::Module& after, bool is_entry) {
        if (is_entry && !given_.empty()) {
            compare_on(before, after, given_);
            return;
        }
        int evaluated = 0;
        std::string last;
        for (interp::Fill fill : {interp::Fill::kOrdinary, interp::Fill::kPositive}) {
            for (bool all_equal : {false, true}) {
                Tensors inputs = make_inputs(before.entry(), fill, all_equal);
                auto result = evaluate_reference(before, inputs);
                if (result.ok()) {
                    ++evaluated;
                    compare_on(before, after, inputs);
                } else {
                    last = result.error().to_string();
                }
            }
        }
        if (evaluated == 0) {
            faults_.push_back("@" + before.entry().name +
                              " cannot be evaluated; give '// sizes: n=4' or '// input:' lines. It said: " + last);
        }
    }

    void compare_on(const ir::Module& before, const ir::Module& after, const Tensors& inputs) {
        auto expected = evaluate_reference(before, inputs);
        auto found = evaluate_reference(after, inputs);
        std::string name = "@" + before.entry().name;
        if (expected.ok() != found.ok()) {
            faults_.push_back(name + ": before the pass: " + (expected.ok() ? "values" : expected.error().to_string()) +
                              "; after it: " + (found.ok() ? "values" : found.error().to_string()));
        } else if (expected.ok()) {
            if (auto difference = find_difference(*expected, *found, tolerance_)) {
                faults_.push_back(name + ": the pass changes values: " + *difference + describe(inputs));
            }
        }
    }

    static std::string describe(const Tensors& inputs) {
        std::string text;
        for (const interp::Tensor& input : inputs) {
            text += "\n    input " + print_tensor(input);
        }
        return text;
    }

    Tensors make_inputs(const ir::Graph& graph, interp::Fill fill, bool all_equal) {
        std::map<int64_t, int64_t> sizes;  // symbol → length
        Tensors inputs;
        for (const ir::Param& param : graph.params) {
            const ir::TensorType& type = graph.type(param.value);
            interp::Lengths shape;
            for (ir::Dim dim : type.shape) {
                shape.push_back(dim.is_static() ? dim.size() : size_of(dim, sizes, all_equal));
            }
            inputs.push_back(interp::random_tensor(type.dtype, shape, inputs.size() + 1, fill));
        }
        return inputs;
    }

    int64_t size_of(ir::Dim symbol, std::map<int64_t, int64_t>& sizes, bool all_equal) {
        auto [place, is_new] = sizes.emplace(symbol.symbol_id(), 0);
        if (is_new) {
            auto given = sizes_.find(symbol.to_string());
            int64_t next = all_equal ? 3 : 2 + static_cast<int64_t>(sizes.size());
            place->second = given == sizes_.end() ? next : given->second;
        }
        return place->second;
    }

    std::vector<std::string>& faults_;
    Sizes sizes_;
    Tensors given_;
    Tolerance tolerance_ = kLoose;
};

}  // namespace

Outcome test_pass(const TestCase& test, ir::Module (*pass)(ir::Module)) {
    Outcome outcome{test.lines, {}};
    auto before = parse_lines(test, test.lines);
    if (!before.ok()) {
        outcome.faults.push_back(before.error().to_string());
        return outcome;
    }
    check_round_trip(*before, outcome.faults);
    ir::Module after = pass(*before);
    if (Status valid = ir::verify(after); !valid.ok()) {
        outcome.faults.push_back("the pass leaves a broken module: " + valid.error().to_string() + "\n" +
                                 text::print(after));
        return outcome;
    }
    check_round_trip(after, outcome.faults);
    PassTest(test, outcome.faults).compare(*before, after);
    outcome.lines = with_expected(test.lines, text::print(after));
    return outcome;
}

}  // namespace ember::opt
