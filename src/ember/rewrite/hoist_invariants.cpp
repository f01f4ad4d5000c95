// The pass hoist_invariants: what a loop computes anew in every step, from its invariants alone, is computed before it
// and comes in as one more invariant. Only what cannot fail is hoisted: the loop may run no step at all. Views are not
// worth an operand of their own. Tests: test/filetests/hoist_invariants.
#include <algorithm>

#include "ember/ir/append.h"
#include "ember/rewrite/passes.h"
#include "ember/rewrite/rebuild.h"

namespace ember::rewrite {
namespace {

using ir::Graph;
using ir::kNone;
using ir::Node;
using ir::NodeSpec;
using ir::Op;
using ir::OpKind;
using ir::ValueId;
using Values = std::vector<ValueId>;
using Flags = std::vector<bool>;

/// Are the lengths that these operands give known to be right?
bool has_known_lengths(const Graph& body, const Node& node) {
    return std::all_of(node.operands.begin() + 1, node.operands.end(), [&](ValueId operand) {
        const Node* from = body.producer(operand);
        return from != nullptr && (from->op == Op::k_const || from->op == Op::k_dim);
    });
}

bool cannot_fail(const Graph& body, const Node& node) {
    switch (ir::kind(node.op)) {
        case OpKind::kMap:
        case OpKind::kCast:
        case OpKind::kReduce:
        case OpKind::kArgReduce:
        case OpKind::kScan:
        case OpKind::kContract:
        case OpKind::kConcat:
        case OpKind::kScalar:
            return true;
        case OpKind::kSort:
            return node.op != Op::k_topk && node.operands.size() < 3;
        case OpKind::kSource:
            return node.op == Op::k_const;
        case OpKind::kView:
            return node.op == Op::k_transpose || node.op == Op::k_reverse ||
                   (node.op != Op::k_slice && has_known_lengths(body, node));
        default:
            return false;
    }
}

bool is_worth_an_operand(const Node& node) {
    switch (ir::kind(node.op)) {
        case OpKind::kSource:
        case OpKind::kScalar:
        case OpKind::kView:
            return false;
        default:
            return true;
    }
}

/// Values of the body that depend on invariants only and are used by something that does not.
Values find_hoisted(const Graph& body, size_t carried) {
    Flags invariant(body.values.size(), false);
    for (size_t i = 1 + carried; i < body.params.size(); ++i) {
        invariant[body.params[i].value] = true;
    }
    Flags used(body.values.size(), false);
    for (const Node& node : body.nodes) {
        bool hoisted = cannot_fail(body, node) && std::all_of(node.operands.begin(), node.operands.end(),
                                                              [&](ValueId operand) { return invariant[operand]; });
        for (uint32_t k = 0; k < node.result_count; ++k) {
            invariant[node.result(k)] = hoisted;
        }
        for (ValueId operand : node.operands) {
            // a view stays inside, and so it uses its operand there
            used[operand] = used[operand] || !hoisted || !is_worth_an_operand(node);
        }
    }
    for (const ir::Output& output : body.outputs) {
        used[output.value] = true;
    }
    Values found;
    for (const Node& node : body.nodes) {
        if (node.result_count == 1 && invariant[node.result()] && used[node.result()] && is_worth_an_operand(node) &&
            !node.operands.empty()) {
            found.push_back(node.result());
        }
    }
    return found;
}

/// The body with parameters in place of some of its values.
std::shared_ptr<const Graph> with_operands(const Graph& body, const Values& hoisted, const ir::Module& module) {
    ir::GraphBuilder builder(body.name, &module);
    Values map(body.values.size(), kNone);
    for (const ir::Param& param : body.params) {
        map[param.value] = builder.param(body.type(param.value), param.kind);
    }
    for (ValueId value : hoisted) {
        map[value] = builder.param(body.type(value));
    }
    for (const Node& node : body.nodes) {
        if (node.result_count != 1 || map[node.result()] == kNone) {
            copy_node(body, node, builder, map);
        }
    }
    for (const ir::Output& output : body.outputs) {
        builder.output(map[output.value]);
    }
    return std::make_shared<const Graph>(canonicalize_order(builder.take()));
}

Values hoist_from_loop(ir::GraphBuilder& builder, const NodeSpec& spec, const ir::Module& module) {
    if (spec.op != Op::k_loop) {
        return {};
    }
    const Graph& body = *spec.regions[0];
    Node attributes{spec.op, {}, spec.attributes};
    Values hoisted = find_hoisted(body, static_cast<size_t>(attributes.integer("carried")));
    if (hoisted.empty()) {
        return {};
    }
    Graph before = body;
    before.outputs.clear();
    for (ValueId value : hoisted) {
        before.outputs.push_back({value});
    }
    NodeSpec loop = spec;
    Values outside = append_graph(builder, canonicalize_order(before), spec.operands, ir::Symbols::kKeep);
    loop.operands.insert(loop.operands.end(), outside.begin(), outside.end());
    loop.regions = {with_operands(body, hoisted, module)};
    return builder.make_node(std::move(loop));
}

}  // namespace

ir::Module hoist_invariants(ir::Module module) {
    return rebuild_functions(std::move(module), [](const Graph& graph, const ir::Module& all) {
        return rebuild_graph(graph, all, [&](ir::GraphBuilder& builder, const NodeSpec& spec) {
            return hoist_from_loop(builder, spec, all);
        });
    });
}

}  // namespace ember::rewrite
