// Reverse rules of control flow. Regions are isolated, so what they computed is computed again in the reverse region:
//   if:   an `if` on the same condition, whose regions run the branch again and sweep back over it.
//   loop: a forward loop that stacks the carried values of every step, and a loop over the steps in reverse order that
//         runs a step again from them and sweeps back over it.
//   call: the callee's nodes appear inline; merging finds those that a later inlining of the call makes again.
#include <algorithm>

#include "ember/autodiff/reverse.h"
#include "ember/ir/append.h"

namespace ember::autodiff {
namespace {

using ir::DType;
using ir::Graph;
using ir::kNone;
using ir::Node;
using ir::Op;
using ir::Symbols;
using ir::TensorType;

using Indices = std::vector<size_t>;
using Values = std::vector<ValueId>;

Values select_values(const Values& values, const Indices& which) {
    Values chosen;
    for (size_t k : which) {
        chosen.push_back(values[k]);
    }
    return chosen;
}

/// Parameters of the types of the given values.
Values params_like(GraphBuilder& region, const GraphBuilder& outer, const Values& values) {
    Values params;
    for (ValueId value : values) {
        params.push_back(region.param(outer.type(value)));
    }
    return params;
}

/// One region of the reverse `if`: parameters are the operands, then the cotangents of the results in `seeded`; results
/// are the cotangents of the operands in `wanted`.
Result<std::shared_ptr<const Graph>> reverse_branch(const GraphBuilder& outer, const Graph& branch,
                                                    const Values& cotangents, const Indices& seeded,
                                                    const Indices& wanted) {
    GraphBuilder region(branch.name, outer.module());
    Values arguments;
    for (const ir::Param& param : branch.params) {
        arguments.push_back(region.param(branch.type(param.value)));
    }
    Values gs = params_like(region, outer, cotangents);
    Values outputs = append_graph(region, branch, arguments, Symbols::kKeep);
    std::vector<Seed> seeds;
    for (size_t i = 0; i < seeded.size(); ++i) {
        seeds.push_back({outputs[seeded[i]], gs[i]});
    }
    EMBER_TRY(Values results, pull_back(region, seeds, select_values(arguments, wanted)));
    for (ValueId result : results) {
        region.output(result);
    }
    return std::make_shared<const Graph>(region.take());
}

/// The pieces of a loop, and which of them have a derivative.
struct LoopParts {
    const Node& node;
    const Graph& body = *node.regions[0];
    size_t carried = static_cast<size_t>(node.integer("carried"));
    bool may_stop = node.integer_or("while", 0) != 0;
    size_t stacked = body.outputs.size() - carried - (may_stop ? 1 : 0);
    Indices active_carried = {};     // positions among carried values
    Indices active_invariants = {};  // positions among invariants

    void set_activity(const std::vector<bool>& operands) {
        std::vector<bool> active = loop_activity(node, operands);
        for (size_t k = 0; k < active.size(); ++k) {
            if (active[k] && k < carried) {
                active_carried.push_back(k);
            } else if (active[k]) {
                active_invariants.push_back(k - carried);
            }
        }
    }
};

/// The values of each step, stacked, and how many steps there were.
struct Residuals {
    Values carried;
    ValueId trips;
};

Residuals stack_residuals(GraphBuilder& graph, const LoopParts& loop) {
    if (loop.carried == 0) {
        bool counted = !loop.may_stop || loop.stacked == 0;
        return {{}, counted ? loop.node.operands[0] : graph.dim_value(loop.node.result(), 0)};
    }
    auto body = std::make_shared<Graph>(loop.body);
    std::vector<ir::Output> extra;
    for (size_t k = 0; k < loop.carried; ++k) {
        extra.push_back({body->params[k + 1].value});
    }
    body->outputs.insert(body->outputs.end() - (loop.may_stop ? 1 : 0), extra.begin(), extra.end());
    Values results = graph.make_node({Op::k_loop, loop.node.operands, loop.node.attributes, {body}, {}});
    Values stacks(results.begin() + static_cast<std::ptrdiff_t>(loop.carried + loop.stacked), results.end());
    ValueId trips = loop.may_stop ? graph.dim_value(stacks[0], 0) : loop.node.operands[0];
    return {std::move(stacks), trips};
}

/// The reverse loop while it is built: its operands and its region's parameters, pairwise.
struct ReverseLoop {
    GraphBuilder& outer;
    GraphBuilder region;
    Values operands = {};

    ValueId bring_in(ValueId value) {
        operands.push_back(value);
        return region.param(outer.type(value));
    }
    Values bring_in(const Values& values) {
        Values params;
        for (ValueId value : values) {
            params.push_back(bring_in(value));
        }
        return params;
    }
};

/// The cotangents that the reverse loop starts from.
struct LoopCotangents {
    Values carried;     // of the final carried values, for active ones
    Values invariants;  // zeros, for active ones
    Indices seeded;     // stacked results that have one
    Values stacked;     // theirs
};

LoopCotangents gather_cotangents(Reverse& sweep, const LoopParts& loop) {
    LoopCotangents start;
    for (size_t k : loop.active_carried) {
        start.carried.push_back(sweep.cotangent_or_zero(loop.node.result(static_cast<uint32_t>(k))));
    }
    for (size_t k : loop.active_invariants) {
        start.invariants.push_back(zeros_like(sweep.graph, loop.node.operands[1 + loop.carried + k]));
    }
    for (size_t s = 0; s < loop.stacked; ++s) {
        ValueId g = sweep.cotangent(loop.node.result(static_cast<uint32_t>(loop.carried + s)));
        if (g != kNone) {
            start.seeded.push_back(s);
            start.stacked.push_back(g);
        }
    }
    return start;
}

/// Fills the region: step trips-1-j again, then back over it.
Status build_reverse_body(ReverseLoop& reverse, const LoopParts& loop, const LoopCotangents& start,
                          const Residuals& residuals) {
    GraphBuilder& region = reverse.region;
    ValueId j = region.param({DType::kI64, {}});
    Values g_carried = reverse.bring_in(start.carried);
    Values g_invariants = reverse.bring_in(start.invariants);
    ValueId trips = reverse.bring_in(residuals.trips);
    Values stacks = reverse.bring_in(residuals.carried);
    Values g_stacked = reverse.bring_in(start.stacked);
    ValueId i = region.make(Op::k_sub, {region.make(Op::k_sub, {trips, region.constant_int(1)}), j});
    Values arguments = {i};
    for (ValueId stack : stacks) {
        arguments.push_back(row(region, stack, i));
    }
    for (size_t k = 1 + loop.carried; k < loop.node.operands.size(); ++k) {
        arguments.push_back(reverse.bring_in(loop.node.operands[k]));
    }
    Values outputs = append_graph(region, loop.body, arguments, Symbols::kKeep);
    std::vector<Seed> seeds;
    Values wrt;
    for (size_t k = 0; k < loop.active_carried.size(); ++k) {
        seeds.push_back({outputs[loop.active_carried[k]], g_carried[k]});
        wrt.push_back(arguments[1 + loop.active_carried[k]]);
    }
    for (size_t k : loop.active_invariants) {
        wrt.push_back(arguments[1 + loop.carried + k]);
    }
    for (size_t s = 0; s < start.seeded.size(); ++s) {
        seeds.push_back({outputs[loop.carried + start.seeded[s]], row(region, g_stacked[s], i)});
    }
    EMBER_TRY(Values results, Reverse(region).run(seeds, wrt, Reverse::At::kStopAtWrt));
    for (size_t k = 0; k < results.size(); ++k) {
        size_t invariant = k - g_carried.size();
        region.output(k < g_carried.size() ? results[k]
                                           : region.make(Op::k_add, {g_invariants[invariant], results[k]}));
    }
    return {};
}

}  // namespace

std::vector<bool> loop_activity(const Node& loop, std::vector<bool> active) {
    const Graph& body = *loop.regions[0];
    auto carried = static_cast<size_t>(loop.integer("carried"));
    std::vector<bool> nowhere(body.values.size(), false);
    for (bool changed = true; changed;) {
        changed = false;
        std::vector<bool> inside(body.values.size(), false);
        for (size_t k = 0; k < active.size(); ++k) {
            inside[body.params[k + 1].value] = active[k];
        }
        spread_activity(body, inside, nowhere);
        for (size_t k = 0; k < carried; ++k) {
            if (inside[body.outputs[k].value] && !active[k]) {
                active[k] = changed = true;
            }
        }
    }
    return active;
}

Status reverse_if(Reverse& sweep, const Node& node) {
    GraphBuilder& graph = sweep.graph;
    Indices seeded;
    Values cotangents;
    for (uint32_t k = 0; k < node.result_count; ++k) {
        if (ValueId g = sweep.cotangent(node.result(k)); g != kNone) {
            seeded.push_back(k);
            cotangents.push_back(g);
        }
    }
    Indices wanted;
    for (size_t k = 1; k < node.operands.size(); ++k) {
        if (sweep.wants(node.operands[k])) {
            wanted.push_back(k - 1);
        }
    }
    ir::NodeSpec spec{Op::k_if, node.operands, {}, {}, {}};
    spec.operands.insert(spec.operands.end(), cotangents.begin(), cotangents.end());
    for (const auto& branch : node.regions) {
        EMBER_TRY(auto region, reverse_branch(graph, *branch, cotangents, seeded, wanted));
        spec.regions.push_back(std::move(region));
    }
    Values results = graph.make_node(std::move(spec));
    for (size_t i = 0; i < wanted.size(); ++i) {
        sweep.add(node.operands[1 + wanted[i]], results[i]);
    }
    return {};
}

Status reverse_loop(Reverse& sweep, const Node& node) {
    GraphBuilder& graph = sweep.graph;
    LoopParts loop{node};
    std::vector<bool> operands;
    for (size_t k = 1; k < node.operands.size(); ++k) {
        operands.push_back(sweep.wants(node.operands[k]));
    }
    loop.set_activity(operands);
    LoopCotangents start = gather_cotangents(sweep, loop);
    Residuals residuals = stack_residuals(graph, loop);
    ReverseLoop reverse{graph, GraphBuilder(loop.body.name, graph.module())};
    EMBER_CHECKED(build_reverse_body(reverse, loop, start, residuals));
    Values all = {residuals.trips};
    all.insert(all.end(), reverse.operands.begin(), reverse.operands.end());
    auto count = static_cast<int64_t>(loop.active_carried.size() + loop.active_invariants.size());
    auto body = std::make_shared<const Graph>(reverse.region.take());
    Values results = graph.make_node({Op::k_loop, std::move(all), {{"carried", count}}, {body}, {}});
    for (size_t k = 0; k < loop.active_carried.size(); ++k) {
        sweep.add(node.operands[1 + loop.active_carried[k]], results[k]);
    }
    for (size_t k = 0; k < loop.active_invariants.size(); ++k) {
        sweep.add(node.operands[1 + loop.carried + loop.active_invariants[k]], results[loop.active_carried.size() + k]);
    }
    return {};
}

Status reverse_call(Reverse& sweep, const Node& node) {
    GraphBuilder& graph = sweep.graph;
    const Graph* callee = graph.module() == nullptr ? nullptr : graph.module()->find(node.string("callee"));
    if (callee == nullptr) {
        return no_derivative(node);
    }
    Values outputs = append_graph(graph, *callee, node.operands, Symbols::kFresh);
    std::vector<Seed> seeds;
    for (uint32_t k = 0; k < node.result_count; ++k) {
        if (ValueId g = sweep.cotangent(node.result(k)); g != kNone) {
            seeds.push_back({outputs[k], g});
        }
    }
    Values wanted;
    for (ValueId operand : node.operands) {
        if (sweep.wants(operand) && std::find(wanted.begin(), wanted.end(), operand) == wanted.end()) {
            wanted.push_back(operand);
        }
    }
    EMBER_TRY(Values results, Reverse(graph).run(seeds, wanted, Reverse::At::kStopAtWrt));
    for (size_t i = 0; i < wanted.size(); ++i) {
        sweep.add(wanted[i], results[i]);
    }
    return {};
}

}  // namespace ember::autodiff
