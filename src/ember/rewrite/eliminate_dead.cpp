// The pass eliminate_dead: what no output needs goes away: nodes, results and operands of regions and of functions, and
// functions. Tests: test/filetests/eliminate_dead.
#include <algorithm>
#include <unordered_map>

#include "ember/rewrite/passes.h"
#include "ember/rewrite/rebuild.h"

namespace ember::rewrite {
namespace {

using ir::Graph;
using ir::kNone;
using ir::Node;
using ir::Op;
using ir::ValueId;
using Values = std::vector<ValueId>;
using Flags = std::vector<bool>;

Flags used_values(const Graph& graph) {
    Flags used(graph.values.size(), false);
    for (const ir::Output& output : graph.outputs) {
        used[output.value] = true;
    }
    for (size_t id = graph.nodes.size(); id-- > 0;) {
        const Node& node = graph.nodes[id];
        bool any = false;
        for (uint32_t k = 0; k < node.result_count; ++k) {
            any = any || used[node.result(k)];
        }
        for (ValueId operand : node.operands) {
            used[operand] = used[operand] || any;
        }
    }
    return used;
}

/// A region with some of its outputs only, and the flags of the parameters that these need.
Graph with_outputs(Graph region, const Flags& outputs) {
    std::vector<ir::Output> kept;
    for (size_t k = 0; k < outputs.size(); ++k) {
        if (outputs[k]) {
            kept.push_back(region.outputs[k]);
        }
    }
    region.outputs = std::move(kept);
    return region;
}

Flags needed_params(const Graph& region) {
    Flags used = used_values(region);
    Flags needed;
    for (const ir::Param& param : region.params) {
        needed.push_back(used[param.value]);
    }
    return needed;
}

std::shared_ptr<const Graph> with_params(const Graph& region, const Flags& needed) {
    Graph result = canonicalize_order(region);
    std::vector<ir::Param> kept;
    for (size_t i = 0; i < needed.size(); ++i) {
        if (needed[i]) {
            result.values[result.params[i].value].index = static_cast<uint32_t>(kept.size());
            kept.push_back(result.params[i]);
        }
    }
    result.params = std::move(kept);
    return std::make_shared<const Graph>(canonicalize_order(result));
}

/// What stays of a node with regions.
struct Kept {
    Flags operands;
    Flags results;
    std::vector<std::shared_ptr<const Graph>> regions;
    int64_t carried = 0;
};

Kept keep_if(const Node& node, const Flags& results) {
    Kept kept{Flags(node.operands.size(), false), results, {}};
    kept.operands[0] = true;
    std::vector<Graph> branches;
    for (const auto& region : node.regions) {
        branches.push_back(with_outputs(*region, results));
        Flags needed = needed_params(branches.back());
        for (size_t i = 0; i < needed.size(); ++i) {
            kept.operands[i + 1] = kept.operands[i + 1] || needed[i];
        }
    }
    for (const Graph& branch : branches) {
        kept.regions.push_back(with_params(branch, {kept.operands.begin() + 1, kept.operands.end()}));
    }
    return kept;
}

/// A carried value stays if its result is used or the region needs it for another one that stays.
Kept keep_loop(const Node& node, const Flags& results) {
    const Graph& body = *node.regions[0];
    auto carried = static_cast<size_t>(node.integer("carried"));
    Flags outputs(body.outputs.size(), true);  // the condition of a while loop always
    std::copy(results.begin(), results.end(), outputs.begin());
    Flags needed;
    for (bool changed = true; changed;) {
        changed = false;
        needed = needed_params(with_outputs(body, outputs));
        for (size_t k = 0; k < carried; ++k) {
            if (needed[k + 1] && !outputs[k]) {
                outputs[k] = changed = true;
            }
        }
    }
    needed[0] = true;
    Kept kept{needed, {outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(results.size())}, {}};
    for (size_t k = 0; k < carried; ++k) {
        kept.operands[k + 1] = outputs[k];
        kept.carried += outputs[k] ? 1 : 0;
    }
    kept.regions.push_back(with_params(with_outputs(body, outputs), kept.operands));
    return kept;
}

/// Which parameters and results of a function are used.
struct Signature {
    Flags params;
    Flags results;
};
using Signatures = std::unordered_map<std::string_view, Signature>;

class Elimination {
public:
    Elimination(const Graph& graph, const Signatures& signatures)
        : graph_(graph), signatures_(signatures), used_(used_values(graph)) {}

    Graph run() {
        map_.assign(graph_.values.size(), kNone);
        result_.name = graph_.name;
        for (const ir::Param& param : graph_.params) {
            add_value(param.value, kNone, graph_.values[param.value].index);
            result_.params.push_back({map_[param.value], param.kind});
        }
        for (const Node& node : graph_.nodes) {
            add_node(node);
        }
        for (const ir::Output& output : graph_.outputs) {
            result_.outputs.push_back({map_[output.value], output.updates});
        }
        return std::move(result_);
    }

private:
    void add_value(ValueId value, ir::NodeId node, uint32_t index) {
        map_[value] = static_cast<ValueId>(result_.values.size());
        result_.values.push_back({graph_.type(value), node, index});
    }

    Kept keep(const Node& node, const Flags& results) const {
        if (node.op == Op::k_if) {
            return keep_if(node, results);
        }
        if (node.op == Op::k_loop) {
            return keep_loop(node, results);
        }
        if (node.op == Op::k_call) {
            const Signature& callee = signatures_.at(node.string("callee"));
            return {callee.params, callee.results, {}};
        }
        return {Flags(node.operands.size(), true), Flags(results.size(), true), {}};
    }

    void add_node(const Node& node) {
        Flags results;
        for (uint32_t k = 0; k < node.result_count; ++k) {
            results.push_back(used_[node.result(k)]);
        }
        if (std::find(results.begin(), results.end(), true) == results.end()) {
            return;
        }
        Kept kept = keep(node, results);
        Node copy{node.op, {}, node.attributes};
        for (size_t k = 0; k < node.operands.size(); ++k) {
            if (kept.operands[k]) {
                copy.operands.push_back(map_[node.operands[k]]);
            }
        }
        for (const auto& region : kept.regions) {
            copy.regions.push_back(std::make_shared<const Graph>(Elimination(*region, signatures_).run()));
        }
        if (node.op == Op::k_loop) {
            copy.attributes[0].value = kept.carried;
        }
        copy.first_result = static_cast<ValueId>(result_.values.size());
        auto id = static_cast<ir::NodeId>(result_.nodes.size());
        for (uint32_t k = 0; k < node.result_count; ++k) {
            if (kept.results[k]) {
                add_value(node.result(k), id, copy.result_count++);
            }
        }
        result_.nodes.push_back(std::move(copy));
    }

    const Graph& graph_;
    const Signatures& signatures_;
    Flags used_;
    Values map_;
    Graph result_;
};

void count_uses(const Graph& graph, Signatures& signatures) {
    Flags used = used_values(graph);
    for (const Node& node : graph.nodes) {
        for (const auto& region : node.regions) {
            count_uses(*region, signatures);
        }
        if (node.op == Op::k_call) {
            Flags& results = signatures.at(node.string("callee")).results;
            for (uint32_t k = 0; k < node.result_count; ++k) {
                results[k] = results[k] || used[node.result(k)];
            }
        }
    }
}

/// What calls use of functions, and what functions use of their parameters for that. The entry keeps all.
Signatures used_signatures(const ir::Module& module) {
    Signatures signatures;
    for (const Graph& function : module.functions) {
        bool entry = &function == &module.entry();
        signatures[function.name] = {Flags(function.params.size(), true), Flags(function.outputs.size(), entry)};
    }
    for (const Graph& function : module.functions) {
        count_uses(function, signatures);
    }
    for (size_t i = 1; i < module.functions.size(); ++i) {
        Signature& signature = signatures.at(module.functions[i].name);
        signature.params = needed_params(with_outputs(module.functions[i], signature.results));
    }
    return signatures;
}

bool uses_all(const Signatures& signatures) {
    auto all = [](const Flags& flags) { return std::find(flags.begin(), flags.end(), false) == flags.end(); };
    return std::all_of(signatures.begin(), signatures.end(),
                       [&](const auto& one) { return all(one.second.params) && all(one.second.results); });
}

}  // namespace

ir::Module eliminate_dead(ir::Module module) {
    for (bool done = false; !done;) {
        module = drop_uncalled(std::move(module));
        Signatures signatures = used_signatures(module);
        done = uses_all(signatures);
        ir::Module next;
        for (size_t i = 0; i < module.functions.size(); ++i) {
            const Graph& function = module.functions[i];
            const Signature& signature = signatures.at(function.name);
            Graph needed =
                i == 0 ? function : *with_params(with_outputs(function, signature.results), signature.params);
            next.functions.push_back(canonicalize_order(Elimination(canonicalize_order(needed), signatures).run()));
        }
        module = std::move(next);
    }
    return module;
}

}  // namespace ember::rewrite
