// The one printer behind print() and canonical_text().
#include "ember/text/print.h"

#include <algorithm>
#include <numeric>

#include "ember/ir/builder.h"
#include "ember/support/check.h"
#include "ember/text/element.h"
#include "ember/text/lexer.h"

namespace ember::text {
namespace {

using Style = SymbolNames::Style;

bool is_name(std::string_view text) {
    return !text.empty() && is_name_start(text[0]) && std::all_of(text.begin(), text.end(), is_name_char);
}

/// Dim::to_string() calls nameless symbols "_" and their number.
bool is_nameless(std::string_view name) {
    return name.size() > 1 && name[0] == '_' && std::all_of(name.begin() + 1, name.end(), is_digit);
}

/// What functions are called in a text, and which of them it has.
class FunctionNames {
public:
    FunctionNames(const ir::Module* module, Style style) : module_(module), style_(style) {}

    std::string name(std::string_view callee) {
        const ir::Graph* function = style_ == Style::kCanonical ? module_->find(callee) : nullptr;
        return function == nullptr ? std::string(callee) : "f" + std::to_string(place(function));
    }
    const ir::Graph* at(size_t index) const { return index < order_.size() ? order_[index] : nullptr; }

private:
    size_t place(const ir::Graph* function) {
        auto [found, is_new] = places_.emplace(function, order_.size());
        if (is_new) {
            order_.push_back(function);
        }
        return found->second;
    }

    const ir::Module* module_;
    Style style_;
    std::vector<const ir::Graph*> order_;
    std::unordered_map<const ir::Graph*, size_t> places_;
};

/// Prints one function.
class Printer {
public:
    Printer(std::string& out, Style style, FunctionNames& functions)
        : out_(out), style_(style), functions_(functions), symbols_(style) {}

    void print_function(const ir::Graph& graph) {
        out_ += "func @";
        std::string name = functions_.name(graph.name);
        is_name(name) ? void(out_ += name) : append_quoted(out_, name);
        print_graph(graph, 1);
        out_ += '\n';
    }

private:
    using Numbers = std::vector<uint32_t>;  // value → its number in the text

    void print_value(uint32_t number) {
        out_ += '%';
        append_number(out_, number);
    }

    void print_values(const std::vector<ir::ValueId>& values, const Numbers& numbers) {
        out_ += '(';
        for (size_t i = 0; i < values.size(); ++i) {
            out_.append(i == 0 ? "" : ", ");
            print_value(numbers[values[i]]);
        }
        out_ += ')';
    }

    void indent(int depth) { out_.append(static_cast<size_t>(depth) * 2, ' '); }

    void print_params(const ir::Graph& graph, Numbers& numbers) {
        static constexpr std::string_view kKinds[] = {"", "shared ", "bound "};
        out_ += '(';
        for (const ir::Param& param : graph.params) {
            out_.append(&param == graph.params.data() ? "" : ", ");
            out_ += kKinds[static_cast<size_t>(param.kind)];
            numbers[param.value] = next_++;
            print_value(numbers[param.value]);
            out_ += ": ";
            symbols_.append(out_, graph.type(param.value));
        }
        out_ += ')';
    }

    /// Parameters and block of a function or region.
    void print_graph(const ir::Graph& graph, int depth) {
        Numbers numbers(graph.values.size());
        print_params(graph, numbers);
        out_ += " {\n";
        if (style_ == Style::kCanonical) {
            for (ir::NodeId id : ir::canonical_order(graph)) {
                print_node(graph, graph.nodes[id], numbers, depth);
            }
        } else {
            for (const ir::Node& node : graph.nodes) {
                print_node(graph, node, numbers, depth);
            }
        }
        print_return(graph, numbers, depth);
        indent(depth - 1);
        out_ += '}';
    }

    void print_return(const ir::Graph& graph, const Numbers& numbers, int depth) {
        indent(depth);
        out_ += "return";
        for (const ir::Output& output : graph.outputs) {
            out_.append(&output == graph.outputs.data() ? " " : ", ");
            print_value(numbers[output.value]);
            if (output.updates != ir::kNone) {
                out_ += " -> ";
                print_value(numbers[graph.params[output.updates].value]);
            }
        }
        out_ += '\n';
    }

    void print_node(const ir::Graph& graph, const ir::Node& node, Numbers& numbers, int depth) {
        indent(depth);
        for (uint32_t k = 0; k < node.result_count; ++k) {
            out_.append(k == 0 ? "" : ", ");
            numbers[node.result(k)] = next_++;
            print_value(numbers[node.result(k)]);
        }
        out_.append(node.result_count == 0 ? "" : " = ");
        out_ += ir::op_name(node.op);
        print_values(node.operands, numbers);
        print_attributes(node);
        print_regions(node, depth);
        for (uint32_t k = 0; k < node.result_count; ++k) {
            out_.append(k == 0 ? " : " : ", ");
            symbols_.append(out_, graph.type(node.result(k)));
        }
        out_ += '\n';
    }

    void print_attributes(const ir::Node& node) {
        if (node.attributes.empty()) {
            return;
        }
        std::string_view separator = " {";
        for (const ir::AttributeInfo& row : ir::attributes(node.op)) {
            if (const ir::AttributeValue* value = node.find(row.name)) {
                out_ += separator;
                out_ += row.name;
                out_ += '=';
                print_attribute(*value, node.op == ir::Op::k_call);
                separator = ", ";
            }
        }
        out_ += '}';
    }

    void print_attribute(const ir::AttributeValue& value, bool is_callee) {
        if (const auto* number = std::get_if<int64_t>(&value)) {
            append_number(out_, *number);
        } else if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
            print_list(list->size(), [&](size_t i) { append_number(out_, (*list)[i]); });
        } else if (const auto* text = std::get_if<std::string>(&value)) {
            append_quoted(out_, is_callee ? functions_.name(*text) : *text);
        } else if (const auto* dtype = std::get_if<ir::DType>(&value)) {
            out_ += ir::dtype_name(*dtype);
        } else {
            print_literal(std::get<ir::Literal>(value));
        }
    }

    template <class F>
    void print_list(size_t size, F print_item) {
        out_ += '[';
        for (size_t i = 0; i < size; ++i) {
            out_.append(i == 0 ? "" : ",");
            print_item(i);
        }
        out_ += ']';
    }

    void print_literal(const ir::Literal& literal) {
        auto bytes = static_cast<size_t>(ir::element_bytes(literal.dtype));
        auto print_one = [&](size_t i) { append_element(out_, literal.dtype, literal.bytes.data() + i * bytes); };
        if (literal.shape.empty()) {
            print_one(0);
        } else {
            print_list(literal.bytes.size() / bytes, print_one);
        }
    }

    void print_regions(const ir::Node& node, int depth) {
        static constexpr std::string_view kBranches[] = {" then ", " else "};
        for (size_t i = 0; i < node.regions.size(); ++i) {
            out_ += node.op == ir::Op::k_loop ? " do " : kBranches[i];
            print_graph(*node.regions[i], depth + 1);
        }
    }

    std::string& out_;
    Style style_;
    FunctionNames& functions_;
    SymbolNames symbols_;
    uint32_t next_ = 0;
};

size_t expected_size(const ir::Graph& graph) {
    return 64 + 64 * (graph.nodes.size() + graph.params.size());
}

}  // namespace

std::string SymbolNames::make_name(ir::Dim symbol) {
    if (style_ == Style::kCanonical) {
        return "n" + std::to_string(names_.size() - 1);
    }
    std::string given = symbol.to_string();
    bool nameless = is_nameless(given);
    if (!nameless) {
        std::replace_if(given.begin(), given.end(), [](char c) { return !is_name_char(c); }, '_');
        given.insert(0, is_name_start(given[0]) ? "" : "_");
    }
    std::string name = given;
    do {
        if (nameless) {
            name = "_" + std::to_string(unnamed_++);
        } else if (used_.contains(name)) {
            name += "_";
        }
    } while (used_.contains(name));
    used_.insert(name);
    return name;
}

const std::string& SymbolNames::name(ir::Dim symbol) {
    auto [place, is_new] = names_.try_emplace(symbol.symbol_id());
    if (is_new) {
        place->second = make_name(symbol);
    }
    return place->second;
}

void SymbolNames::append(std::string& out, const ir::TensorType& type) {
    out += ir::dtype_name(type.dtype);
    out += '[';
    for (size_t i = 0; i < type.shape.size(); ++i) {
        out.append(i == 0 ? "" : ",");
        type.shape[i].is_static() ? append_number(out, type.shape[i].size()) : void(out += name(type.shape[i]));
    }
    out += ']';
}

std::string SymbolNames::print(const ir::TensorType& type) {
    std::string out;
    append(out, type);
    return out;
}

std::string print(const ir::Graph& graph) {
    std::string out;
    FunctionNames names(nullptr, Style::kNamed);
    Printer(out, Style::kNamed, names).print_function(graph);
    return out;
}

std::string print(const ir::Module& module) {
    std::string out;
    for (const ir::Graph& function : module.functions) {
        out += print(function);
    }
    return out;
}

std::string canonical_text(const ir::Module& module) {
    std::string out;
    out.reserve(std::transform_reduce(module.functions.begin(), module.functions.end(), size_t{0}, std::plus<>(),
                                      expected_size));
    FunctionNames names(&module, Style::kCanonical);
    check(names.name(module.entry().name) == "f0", "the entry comes first");
    for (size_t i = 0; const ir::Graph* function = names.at(i); ++i) {
        Printer(out, Style::kCanonical, names).print_function(*function);
    }
    return out;
}

}  // namespace ember::text
