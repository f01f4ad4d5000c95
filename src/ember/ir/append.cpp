// Appending a graph to another one; see append.h.
#include "ember/ir/append.h"

#include "ember/support/check.h"

namespace ember::ir {
namespace {

SymbolMap bind_parameters(const GraphBuilder& builder, const Graph& from, const std::vector<ValueId>& arguments) {
    check(arguments.size() == from.params.size(), "one argument for every parameter");
    SymbolMap bound;
    for (size_t i = 0; i < arguments.size(); ++i) {
        const Shape& have = builder.type(arguments[i]).shape;
        const Shape& want = from.type(from.params[i].value).shape;
        check(have.size() == want.size(), "an argument has the rank of its parameter");
        for (size_t k = 0; k < want.size(); ++k) {
            if (want[k].is_static()) {
                continue;
            }
            auto [at, is_new] = bound.emplace(want[k].symbol_id(), have[k]);
            if (!is_new && have[k].is_static()) {
                at->second = have[k];
            }
        }
    }
    return bound;
}

void add_fresh(const Graph& from, SymbolMap& symbols) {
    for (const Value& value : from.values) {
        for (Dim dim : value.type.shape) {
            if (dim.is_symbol() && !symbols.contains(dim.symbol_id())) {
                symbols.emplace(dim.symbol_id(), Dim::fresh());
            }
        }
    }
    for (const Node& node : from.nodes) {
        for (const auto& region : node.regions) {
            add_fresh(*region, symbols);
        }
    }
}

bool is_identity(const SymbolMap& symbols) {
    for (const auto& [id, dim] : symbols) {
        if (dim.is_static() || dim.symbol_id() != id) {
            return false;
        }
    }
    return true;
}

void copy_nodes(GraphBuilder& builder, const Graph& from, std::vector<ValueId>& map, SymbolMap& symbols);

/// Built anew rather than patched: inference may know more of the new types.
std::shared_ptr<const Graph> copy_region(const Graph& region, const Module* module, SymbolMap symbols) {
    GraphBuilder builder(region.name, module);
    std::vector<ValueId> map(region.values.size(), kNone);
    for (const Param& param : region.params) {
        map[param.value] = builder.param(substitute(region.type(param.value), symbols), param.kind);
    }
    copy_nodes(builder, region, map, symbols);
    for (const Output& output : region.outputs) {
        builder.output(map[output.value], output.updates);
    }
    return std::make_shared<const Graph>(builder.take());
}

/// Results that were there before have symbols of their own: those are what the copied node's symbols become.
void learn_symbols(const GraphBuilder& builder, const TensorType& was, ValueId is, SymbolMap& symbols) {
    const Shape& shape = builder.type(is).shape;
    for (size_t i = 0; i < shape.size(); ++i) {
        if (was.shape[i].is_symbol() && substitute(was.shape[i], symbols) != shape[i]) {
            symbols[was.shape[i].symbol_id()] = shape[i];
        }
    }
}

void copy_nodes(GraphBuilder& builder, const Graph& from, std::vector<ValueId>& map, SymbolMap& symbols) {
    for (const Node& node : from.nodes) {
        NodeSpec spec{node.op, {}, node.attributes, node.regions, {}};
        for (ValueId operand : node.operands) {
            spec.operands.push_back(map[operand]);
        }
        for (auto& region : spec.regions) {
            region = is_identity(symbols) ? region : copy_region(*region, builder.module(), symbols);
        }
        for (uint32_t k = 0; k < node.result_count; ++k) {
            spec.stated.push_back(substitute(from.type(node.result(k)), symbols));
        }
        std::vector<ValueId> results = builder.find(spec);
        results = results.empty() ? builder.make_node(std::move(spec)) : results;
        for (uint32_t k = 0; k < node.result_count; ++k) {
            map[node.result(k)] = results[k];
            learn_symbols(builder, from.type(node.result(k)), results[k], symbols);
        }
    }
}

}  // namespace

Dim substitute(Dim dim, const SymbolMap& symbols) {
    if (dim.is_static()) {
        return dim;
    }
    auto found = symbols.find(dim.symbol_id());
    return found == symbols.end() ? dim : found->second;
}

TensorType substitute(TensorType type, const SymbolMap& symbols) {
    for (Dim& dim : type.shape) {
        dim = substitute(dim, symbols);
    }
    return type;
}

std::vector<ValueId> append_values(GraphBuilder& builder, const Graph& from, const std::vector<ValueId>& arguments,
                                   Symbols symbols) {
    SymbolMap bound = bind_parameters(builder, from, arguments);
    if (symbols == Symbols::kFresh) {
        add_fresh(from, bound);
    }
    std::vector<ValueId> map(from.values.size(), kNone);
    for (size_t i = 0; i < arguments.size(); ++i) {
        map[from.params[i].value] = arguments[i];
    }
    copy_nodes(builder, from, map, bound);
    return map;
}

std::vector<ValueId> append_graph(GraphBuilder& builder, const Graph& from, const std::vector<ValueId>& arguments,
                                  Symbols symbols) {
    std::vector<ValueId> map = append_values(builder, from, arguments, symbols);
    std::vector<ValueId> results;
    for (const Output& output : from.outputs) {
        results.push_back(map[output.value]);
    }
    return results;
}

}  // namespace ember::ir
