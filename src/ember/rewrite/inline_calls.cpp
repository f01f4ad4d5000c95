// The pass inline_calls: functions that are small, called once, or whose results have lengths that no parameter tells,
// join their callers. Functions that nobody calls go away. Tests: test/filetests/inline_calls.
#include <algorithm>
#include <unordered_map>

#include "ember/ir/append.h"
#include "ember/rewrite/passes.h"
#include "ember/rewrite/rebuild.h"
#include "ember/support/check.h"

namespace ember::rewrite {
namespace {

using ir::Graph;
using ir::Op;

constexpr size_t kSmall = 8;  // nodes of a function that costs less than its call

using CallCounts = std::unordered_map<std::string_view, size_t>;

void count_calls(const Graph& graph, CallCounts& calls) {
    for (const ir::Node& node : graph.nodes) {
        if (node.op == Op::k_call) {
            ++calls[node.string("callee")];
        }
        for (const auto& region : node.regions) {
            count_calls(*region, calls);
        }
    }
}

/// Is every length of a result one of a parameter's?
bool tells_lengths(const Graph& function) {
    std::vector<ir::Dim> known;
    for (const ir::Param& param : function.params) {
        const ir::Shape& shape = function.type(param.value).shape;
        known.insert(known.end(), shape.begin(), shape.end());
    }
    for (const ir::Output& output : function.outputs) {
        for (ir::Dim dim : function.type(output.value).shape) {
            if (dim.is_symbol() && std::find(known.begin(), known.end(), dim) == known.end()) {
                return false;
            }
        }
    }
    return true;
}

class Inliner {
public:
    explicit Inliner(ir::Module module) : module_(std::move(module)) {
        for (const Graph& function : module_.functions) {
            count_calls(function, calls_);
        }
    }

    ir::Module run() {
        if (calls_.empty() && module_.functions.size() == 1) {
            return std::move(module_);
        }
        std::vector<std::string> order;
        done_.functions.reserve(module_.functions.size());
        visit(module_.entry());
        // callees were finished first, and the entry last
        std::reverse(done_.functions.begin(), done_.functions.end());
        return keep_called(std::move(done_));
    }

private:
    void visit(const Graph& function) {
        for (const ir::Node& node : function.nodes) {
            visit_callees(node);
        }
        done_.functions.push_back(rebuild_graph(
            function, done_, [this](ir::GraphBuilder& b, const ir::NodeSpec& spec) { return inline_node(b, spec); }));
    }

    void visit_callees(const ir::Node& node) {
        for (const auto& region : node.regions) {
            for (const ir::Node& inner : region->nodes) {
                visit_callees(inner);
            }
        }
        if (node.op == Op::k_call && done_.find(node.string("callee")) == nullptr) {
            const Graph* callee = module_.find(node.string("callee"));
            check(callee != nullptr, "a call of a function of the module");
            visit(*callee);
        }
    }

    std::vector<ir::ValueId> inline_node(ir::GraphBuilder& builder, const ir::NodeSpec& spec) const {
        if (spec.op != Op::k_call) {
            return {};
        }
        ir::Node node{spec.op, {}, spec.attributes};
        const Graph* callee = done_.find(node.string("callee"));
        bool worth_it =
            callee->nodes.size() <= kSmall || calls_.at(node.string("callee")) == 1 || !tells_lengths(*callee);
        return worth_it ? append_graph(builder, *callee, spec.operands, ir::Symbols::kFresh)
                        : std::vector<ir::ValueId>();
    }

    /// Without the functions whose calls are all gone.
    static ir::Module keep_called(ir::Module module) {
        CallCounts calls;
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

    ir::Module module_;
    ir::Module done_;
    CallCounts calls_;
};

}  // namespace

ir::Module inline_calls(ir::Module module) {
    return Inliner(std::move(module)).run();
}

}  // namespace ember::rewrite
