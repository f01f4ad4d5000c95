// Rebuilding of modules and graphs; see rebuild.h.
#include "ember/rewrite/rebuild.h"

namespace ember::rewrite {

using ir::Graph;
using ir::kNone;
using ir::NodeSpec;
using ir::ValueId;

void SymbolRenames::keep(const ir::TensorType& type) {
    for (ir::Dim dim : type.shape) {
        if (dim.is_symbol()) {
            kept_.insert(dim.symbol_id());
        }
    }
}

void SymbolRenames::apply(std::vector<ir::TensorType>& stated) const {
    if (renamed_.empty()) {
        return;
    }
    for (ir::TensorType& type : stated) {
        type = substitute(std::move(type), renamed_);
    }
}

void SymbolRenames::learn(const ir::GraphBuilder& builder, const std::vector<ir::TensorType>& stated,
                          const std::vector<ValueId>& found) {
    for (size_t k = 0; k < stated.size(); ++k) {
        const ir::TensorType& type = builder.type(found[k]);
        for (size_t i = 0; i < type.shape.size(); ++i) {
            ir::Dim old = stated[k].shape[i];
            if (old.is_symbol() && old != type.shape[i] && !kept_.contains(old.symbol_id())) {
                renamed_[old.symbol_id()] = type.shape[i];
            }
        }
        keep(type);
    }
}

void count_calls(const Graph& graph, CallCounts& calls) {
    for (const ir::Node& node : graph.nodes) {
        if (node.op == ir::Op::k_call) {
            ++calls[node.string("callee")];
        }
        for (const auto& region : node.regions) {
            count_calls(*region, calls);
        }
    }
}

ir::Module drop_uncalled(ir::Module module) {
    std::vector<const Graph*> open = {&module.entry()};
    std::vector<bool> kept(module.functions.size(), false);
    kept[0] = true;
    while (!open.empty()) {
        CallCounts here;
        count_calls(*open.back(), here);
        open.pop_back();
        for (size_t i = 0; i < module.functions.size(); ++i) {
            if (!kept[i] && here.contains(module.functions[i].name)) {
                kept[i] = true;
                open.push_back(&module.functions[i]);
            }
        }
    }
    ir::Module result;
    for (size_t i = 0; i < kept.size(); ++i) {
        if (kept[i]) {
            result.functions.push_back(std::move(module.functions[i]));
        }
    }
    return result;
}

ir::Module rebuild_functions(ir::Module module, const std::function<Graph(const Graph&, const ir::Module&)>& rebuild) {
    for (size_t i = module.functions.size(); i-- > 0;) {
        try {
            module.functions[i] = rebuild(module.functions[i], module);
        } catch (const ir::Contradiction&) {
            continue;
        }
    }
    return module;
}

Graph rebuild_graph(const Graph& graph, const ir::Module& module, const RewriteNode& rewrite) {
    ir::GraphBuilder builder(graph.name, &module);
    std::vector<ValueId> map(graph.values.size(), kNone);
    SymbolRenames renames;
    for (const ir::Param& param : graph.params) {
        map[param.value] = builder.param(graph.type(param.value), param.kind);
        renames.keep(graph.type(param.value));
    }
    for (const ir::Node& node : graph.nodes) {
        NodeSpec spec{node.op, {}, node.attributes, {}, {}};
        for (ValueId operand : node.operands) {
            spec.operands.push_back(map[operand]);
        }
        for (const auto& region : node.regions) {
            spec.regions.push_back(std::make_shared<const Graph>(rebuild_graph(*region, module, rewrite)));
        }
        for (uint32_t k = 0; k < node.result_count; ++k) {
            spec.stated.push_back(graph.type(node.result(k)));
        }
        renames.apply(spec.stated);
        std::vector<ir::TensorType> stated = spec.stated;
        std::vector<ValueId> results = rewrite(builder, spec);
        if (results.empty()) {
            results = builder.make_node(std::move(spec));
        }
        renames.learn(builder, stated, results);
        for (uint32_t k = 0; k < node.result_count; ++k) {
            map[node.result(k)] = results[k];
        }
    }
    for (const ir::Output& output : graph.outputs) {
        builder.output(map[output.value], output.updates);
    }
    return builder.take();
}

}  // namespace ember::rewrite
