// The pass merge_common: equal nodes become one. Those without regions merge in the builder; here also equal `if` and
// `loop` nodes, and loops that do the same steps and stack different results of them: one loop that stacks all, as the
// forward loop of a gradient and the loop that it differentiates. Tests: test/filetests/merge_common.
#include <algorithm>
#include <map>
#include <numeric>

#include "ember/ir/append.h"
#include "ember/rewrite/passes.h"
#include "ember/rewrite/rebuild.h"
#include "ember/text/print.h"

namespace ember::rewrite {
namespace {

using ir::Graph;
using ir::kNone;
using ir::Node;
using ir::NodeSpec;
using ir::Op;
using ir::ValueId;
using Values = std::vector<ValueId>;

/// Several loops with the same steps in one region.
class JointLoop {
public:
    JointLoop(const NodeSpec& first, const ir::Module* module) : spec_(first), builder_("joint", module) {
        const Graph& body = *first.regions[0];
        Node node{first.op, {}, first.attributes};
        carried_ = static_cast<size_t>(node.integer("carried"));
        last_ = node.integer_or("while", 0) != 0 ? 1 : 0;
        for (const ir::Param& param : body.params) {
            params_.push_back(builder_.param(body.type(param.value)));
        }
        outputs_ = append_graph(builder_, body, params_, ir::Symbols::kKeep);
    }

    /// Where the results of a loop are among those of the joint one; nothing if its steps differ.
    std::optional<std::vector<uint32_t>> join(const NodeSpec& other) {
        const Graph& body = *other.regions[0];
        if (other.attributes != spec_.attributes) {
            return std::nullopt;
        }
        for (size_t i = 0; i < params_.size(); ++i) {
            if (body.type(body.params[i].value) != builder_.type(params_[i])) {
                return std::nullopt;
            }
        }
        Values outputs = append_graph(builder_, body, params_, ir::Symbols::kKeep);
        bool same_steps =
            std::equal(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(carried_), outputs_.begin()) &&
            (last_ == 0 || outputs.back() == outputs_.back());
        if (!same_steps) {
            return std::nullopt;
        }
        std::vector<uint32_t> places;
        for (size_t k = 0; k < outputs.size() - last_; ++k) {
            if (k < carried_) {
                places.push_back(static_cast<uint32_t>(k));
                continue;
            }
            auto end = outputs_.end() - static_cast<std::ptrdiff_t>(last_);
            auto found = std::find(outputs_.begin() + static_cast<std::ptrdiff_t>(carried_), end, outputs[k]);
            places.push_back(static_cast<uint32_t>(found - outputs_.begin()));
            if (found == end) {
                outputs_.insert(end, outputs[k]);
            }
        }
        return places;
    }

    /// Where the results of the first loop are.
    std::vector<uint32_t> own_places() const {
        std::vector<uint32_t> places(outputs_.size() - last_);
        std::iota(places.begin(), places.end(), 0U);
        return places;
    }

    NodeSpec make() {
        for (ValueId output : outputs_) {
            builder_.output(output);
        }
        return {
            spec_.op, {}, spec_.attributes, {std::make_shared<const Graph>(canonicalize_order(builder_.take()))}, {}};
    }

private:
    NodeSpec spec_;
    ir::GraphBuilder builder_;
    size_t carried_ = 0;
    size_t last_ = 0;
    Values params_;
    Values outputs_;
};

struct Member {
    size_t joint;                  // which joint loop
    std::vector<uint32_t> places;  // of its results
};

/// First walk: which loops join, by their order in the graph. Second walk: the graph with the joint loops.
class Merger {
public:
    Merger(const Graph& graph, const ir::Module& module) : graph_(graph), module_(module) {}

    Graph run() {
        rebuild_graph_once(
            [this](ir::GraphBuilder& builder, const NodeSpec& spec) { return find_joint(builder, spec); });
        std::vector<NodeSpec> made;
        for (JointLoop& joint : joints_) {
            made.push_back(joint.make());
        }
        made_ = std::move(made);
        results_.assign(made_.size(), {});
        known_.clear();
        next_ = 0;
        return rebuild_graph_once(
            [this](ir::GraphBuilder& builder, const NodeSpec& spec) { return add_joint(builder, spec); });
    }

private:
    /// Regions stay as they are: they are merged on their own.
    template <class F>
    Graph rebuild_graph_once(const F& rewrite) {
        ir::GraphBuilder builder(graph_.name, &module_);
        Values map(graph_.values.size(), kNone);
        SymbolRenames renames;
        for (const ir::Param& param : graph_.params) {
            map[param.value] = builder.param(graph_.type(param.value), param.kind);
            renames.keep(graph_.type(param.value));
        }
        for (const Node& node : graph_.nodes) {
            NodeSpec spec{node.op, {}, node.attributes, node.regions, {}};
            for (ValueId operand : node.operands) {
                spec.operands.push_back(map[operand]);
            }
            for (uint32_t k = 0; k < node.result_count; ++k) {
                spec.stated.push_back(graph_.type(node.result(k)));
            }
            renames.apply(spec.stated);
            std::vector<ir::TensorType> stated = spec.stated;
            Values results = node.regions.empty() ? builder.find(spec) : rewrite(builder, spec);
            results = results.empty() ? builder.make_node(std::move(spec)) : results;
            renames.learn(builder, stated, results);
            for (uint32_t k = 0; k < node.result_count; ++k) {
                map[node.result(k)] = results[k];
            }
        }
        for (const ir::Output& output : graph_.outputs) {
            builder.output(map[output.value], output.updates);
        }
        return builder.take();
    }

    /// Equal nodes with regions, by their text.
    Values find_equal(ir::GraphBuilder& builder, const NodeSpec& spec) {
        std::string key(op_name(spec.op));
        for (ValueId operand : spec.operands) {
            key += " " + std::to_string(operand);
        }
        for (const auto& region : spec.regions) {
            key += text::print(canonicalize_order(*region));
        }
        Values& results = known_[key];
        if (results.empty()) {
            results = builder.make_node(spec);
        }
        return results;
    }

    Values find_joint(ir::GraphBuilder& builder, const NodeSpec& spec) {
        if (spec.op != Op::k_loop) {
            return find_equal(builder, spec);
        }
        std::vector<size_t>& alike = by_operands_[spec.operands];
        for (size_t joint : alike) {
            if (auto places = joints_[joint].join(spec)) {
                members_.push_back({joint, std::move(*places)});
                return builder.make_node(spec);
            }
        }
        alike.push_back(joints_.size());
        joints_.emplace_back(spec, &module_);
        members_.push_back({joints_.size() - 1, joints_.back().own_places()});
        return builder.make_node(spec);
    }

    Values add_joint(ir::GraphBuilder& builder, const NodeSpec& spec) {
        if (spec.op != Op::k_loop) {
            return find_equal(builder, spec);
        }
        const Member& member = members_[next_++];
        Values& all = results_[member.joint];
        if (all.empty()) {
            NodeSpec joint = made_[member.joint];
            joint.operands = spec.operands;
            all = builder.make_node(std::move(joint));
        }
        Values mine;
        for (uint32_t place : member.places) {
            mine.push_back(all[place]);
        }
        return mine;
    }

    const Graph& graph_;
    const ir::Module& module_;
    std::map<std::string, Values> known_;
    std::map<Values, std::vector<size_t>> by_operands_;
    std::vector<JointLoop> joints_;
    std::vector<Member> members_;  // of each loop in order
    std::vector<NodeSpec> made_;
    std::vector<Values> results_;  // of each joint loop
    size_t next_ = 0;
};

Graph merge_graph(Graph graph, const ir::Module& module) {
    bool has_regions = false;
    for (Node& node : graph.nodes) {
        for (auto& region : node.regions) {
            region = std::make_shared<const Graph>(merge_graph(*region, module));
            has_regions = true;
        }
    }
    if (has_regions) {
        return Merger(graph, module).run();
    }
    return rebuild_graph(graph, module,
                         [](ir::GraphBuilder& builder, const NodeSpec& spec) { return builder.find(spec); });
}

}  // namespace

ir::Module merge_common(ir::Module module) {
    return rebuild_functions(std::move(module), merge_graph);
}

}  // namespace ember::rewrite
