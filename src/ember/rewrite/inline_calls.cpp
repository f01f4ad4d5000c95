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

constexpr size_t kSmall = 8;         // nodes of a function that costs less than its call
constexpr size_t kLargest = 10'000;  // functions that call each other twice grow exponentially

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
        done_.functions.reserve(module_.functions.size());
        visit(module_.entry());
        // callees were finished first, and the entry last
        std::reverse(done_.functions.begin(), done_.functions.end());
        return drop_uncalled(std::move(done_));
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
        size_t size = callee->nodes.size();
        bool once = calls_.at(node.string("callee")) == 1;
        bool worth_it = size <= kSmall || once || (size <= kLargest && !tells_lengths(*callee));
        try {
            return worth_it ? append_graph(builder, *callee, spec.operands, ir::Symbols::kFresh)
                            : std::vector<ir::ValueId>();
        } catch (const ir::Contradiction&) {
            return {};  // the call fails when it runs
        }
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
