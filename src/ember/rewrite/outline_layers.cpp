// The pass outline_layers: repeated sub-graphs of the entry (repeats.h) become functions, each occurrence a call.
//
// A function's parameters are what comes from outside of the occurrence: one for each distinct tuple of outside values.
// Constants are made anew inside; so is `dim` of a value outside, if a parameter has the symbol. Its results are what
// is used outside by any occurrence. Occurrences that differ in more than symbols stay as they are. Tests:
// test/unit/outline_test.cpp, test/filetests/outline_layers.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ember/ir/append.h"
#include "ember/rewrite/passes.h"
#include "ember/rewrite/rebuild.h"
#include "ember/rewrite/repeats.h"

namespace ember::rewrite {
namespace {

using ir::Graph;
using ir::kNone;
using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::ValueId;
using Values = std::vector<ValueId>;

/// Where an operand of an occurrence comes from.
struct Source {
    enum class Kind { kInside, kParameter, kRemade };
    Kind kind;
    size_t index = 0;     // position, parameter or one of those made anew
    uint32_t result = 0;  // of the position
};

/// Of a node in the occurrences.
struct Place {
    uint32_t position = kNone;  // kNone: in none of them
    uint32_t occurrence = kNone;
};

/// What a function can make of constants and lengths.
bool is_cheap(const Graph& graph, const Node& node) {
    switch (node.op) {
        case Op::k_const:
        case Op::k_dim:
        case Op::k_broadcast:
        case Op::k_reshape:
        case Op::k_iota:
        case Op::k_cast:
            return true;
        default:
            return ir::is_map(node.op) && graph.type(node.result()).is_scalar();
    }
}

/// A function in the making, seen from occurrence 0, and its arguments in every occurrence.
class Outline {
public:
    Outline(const Graph& graph, const Repeats& repeats)
        : graph_(graph), repeats_(repeats), places_(graph.nodes.size()) {
        for (uint32_t p = 0; p < repeats.size(); ++p) {
            for (uint32_t k = 0; k < repeats.count; ++k) {
                places_[repeats.at(p, k)] = {p, k};
            }
        }
        find_sources();
        find_remade();
        find_results();
    }

    /// Are all occurrences equal but for their symbols, and those in a one-to-one way?
    bool is_sound() const {
        if (!lengths_are_arguments()) {
            return false;
        }
        for (size_t k = 0; k < repeats_.count; ++k) {
            if (!is_like_first(k)) {
                return false;
            }
        }
        return true;
    }

    Graph make_function(const std::string& name, const ir::Module& module) const;

    Place place(NodeId node) const { return node == kNone ? Place{} : places_[node]; }
    const Values& arguments(size_t occurrence) const { return arguments_[occurrence]; }
    Values results(size_t occurrence) const {
        Values values;
        for (auto [position, result] : results_) {
            values.push_back(graph_.nodes[repeats_.at(position, occurrence)].result(result));
        }
        return values;
    }
    size_t count() const { return repeats_.count; }

private:
    const Node& node(size_t position, size_t occurrence) const {
        return graph_.nodes[repeats_.at(position, occurrence)];
    }

    std::optional<Source> inside(size_t position, size_t slot) const {
        ValueId operand = node(position, 0).operands[slot];
        Place from = place(graph_.values[operand].node);
        if (from.position == kNone) {
            return std::nullopt;
        }
        Source source{Source::Kind::kInside, from.position, graph_.values[operand].index};
        for (size_t k = 0; k < repeats_.count; ++k) {
            ValueId wanted = node(source.index, k).result(source.result);
            if (node(position, k).operands.at(slot) != wanted) {
                return std::nullopt;
            }
        }
        return source;
    }

    void find_sources() {
        arguments_.resize(repeats_.count);
        std::map<Values, size_t> parameters;
        for (size_t p = 0; p < repeats_.size(); ++p) {
            sources_.emplace_back();
            for (size_t slot = 0; slot < node(p, 0).operands.size(); ++slot) {
                if (auto source = inside(p, slot)) {
                    sources_[p].push_back(*source);
                    continue;
                }
                Values outside;
                for (size_t k = 0; k < repeats_.count; ++k) {
                    outside.push_back(node(p, k).operands.at(slot));
                }
                auto [at, is_new] = parameters.emplace(outside, parameters.size());
                if (is_new) {
                    for (size_t k = 0; k < repeats_.count; ++k) {
                        arguments_[k].push_back(outside[k]);
                    }
                }
                sources_[p].push_back({Source::Kind::kParameter, at->second});
            }
        }
    }

    /// A parameter and axis with this dimension in every occurrence; of a parameter that stays one.
    std::optional<std::pair<size_t, int>> find_length(const std::vector<ir::Dim>& dims) const {
        for (size_t i = 0; i < arguments_[0].size(); ++i) {
            const Node* from = graph_.producer(arguments_[0][i]);
            if (from != nullptr && is_cheap(graph_, *from)) {
                continue;
            }
            const ir::Shape& shape = graph_.type(arguments_[0][i]).shape;
            for (size_t axis = 0; axis < shape.size(); ++axis) {
                bool everywhere = true;
                for (size_t k = 0; k < repeats_.count && everywhere; ++k) {
                    const ir::Shape& here = graph_.type(arguments_[k][i]).shape;
                    everywhere = here.size() == shape.size() && here[axis] == dims[k];
                }
                if (everywhere) {
                    return std::pair(i, static_cast<int>(axis));
                }
            }
        }
        return std::nullopt;
    }

    std::vector<ir::Dim> dims_of(const Values& lengths) const {
        std::vector<ir::Dim> dims;
        for (ValueId length : lengths) {
            const Node& from = *graph_.producer(length);
            dims.push_back(graph_.type(from.operands[0]).shape[static_cast<size_t>(from.integer("axis"))]);
        }
        return dims;
    }

    Values operand_of(const Values& values, size_t slot) const {
        Values operands;
        for (ValueId value : values) {
            operands.push_back(graph_.producer(value)->operands[slot]);
        }
        return operands;
    }

    /// Can a function make this outside value itself, whatever the occurrence?
    bool can_remake(const Values& values, int depth = 0) const {
        const Node* first = graph_.producer(values[0]);
        if (depth > 4 || first == nullptr || !is_cheap(graph_, *first)) {
            return false;
        }
        for (ValueId value : values) {
            const Node* node = graph_.producer(value);
            if (node == nullptr || node->op != first->op || node->attributes != first->attributes ||
                node->operands.size() != first->operands.size()) {
                return false;
            }
        }
        if (first->op == Op::k_dim) {
            return find_length(dims_of(values)).has_value();
        }
        for (size_t slot = 0; slot < first->operands.size(); ++slot) {
            if (!can_remake(operand_of(values, slot), depth + 1)) {
                return false;
            }
        }
        return true;
    }

    ValueId remake(ir::GraphBuilder& builder, const Values& params, const Values& values) const {
        const Node& first = *graph_.producer(values[0]);
        if (first.op == Op::k_dim) {
            auto [param, axis] = *find_length(dims_of(values));
            return builder.dim_value(params[param], axis);
        }
        ir::NodeSpec spec{first.op, {}, first.attributes, {}, {graph_.type(values[0])}};
        for (size_t slot = 0; slot < first.operands.size(); ++slot) {
            spec.operands.push_back(remake(builder, params, operand_of(values, slot)));
        }
        return builder.make_node(std::move(spec)).at(0);
    }

    /// Parameters that the function can make itself go away.
    void find_remade() {
        size_t all = arguments_[0].size();
        std::vector<Source> becomes;
        std::vector<Values> kept(repeats_.count);
        for (size_t i = 0; i < all; ++i) {
            Values values;
            for (const Values& arguments : arguments_) {
                values.push_back(arguments[i]);
            }
            if (can_remake(values)) {
                becomes.push_back({Source::Kind::kRemade, remade_.size()});
                remade_.push_back(std::move(values));
                continue;
            }
            becomes.push_back({Source::Kind::kParameter, kept[0].size()});
            for (size_t k = 0; k < repeats_.count; ++k) {
                kept[k].push_back(values[k]);
            }
        }
        for (std::vector<Source>& operands : sources_) {
            for (Source& source : operands) {
                source = source.kind == Source::Kind::kParameter ? becomes[source.index] : source;
            }
        }
        arguments_ = std::move(kept);
    }

    void find_results() {
        std::vector<bool> used(graph_.values.size(), false);
        for (NodeId id : canonical_order(graph_)) {
            uint32_t user = places_[id].occurrence;
            for (ValueId operand : graph_.nodes[id].operands) {
                bool same = user != kNone && place(graph_.values[operand].node).occurrence == user;
                used[operand] = used[operand] || !same;
            }
        }
        for (const ir::Output& output : graph_.outputs) {
            used[output.value] = true;
        }
        for (size_t p = 0; p < repeats_.size(); ++p) {
            for (uint32_t r = 0; r < node(p, 0).result_count; ++r) {
                bool any = false;
                for (size_t k = 0; k < repeats_.count; ++k) {
                    any = any || used[node(p, k).result(r)];
                }
                if (any) {
                    results_.emplace_back(p, r);
                }
            }
        }
    }

    /// Does the caller know every length of the results from the arguments?
    bool lengths_are_arguments() const {
        std::set<int64_t> known;
        for (ValueId argument : arguments_[0]) {
            for (ir::Dim dim : graph_.type(argument).shape) {
                known.insert(dim.code());
            }
        }
        for (auto [position, result] : results_) {
            for (ir::Dim dim : graph_.type(node(position, 0).result(result)).shape) {
                if (dim.is_symbol() && !known.contains(dim.code())) {
                    return false;
                }
            }
        }
        return true;
    }

    bool is_like_first(size_t k) const {
        ir::SymbolMap symbols;
        auto same_type = [&](ValueId mine, ValueId first) {
            const ir::TensorType& a = graph_.type(mine);
            const ir::TensorType& b = graph_.type(first);
            if (a.dtype != b.dtype || a.rank() != b.rank()) {
                return false;
            }
            for (size_t i = 0; i < a.shape.size(); ++i) {
                ir::Dim dim = b.shape[i];
                bool same = dim.is_static()
                                ? a.shape[i] == dim
                                : a.shape[i].is_symbol() &&
                                      symbols.emplace(dim.symbol_id(), a.shape[i]).first->second == a.shape[i];
                if (!same) {
                    return false;
                }
            }
            return true;
        };
        for (size_t i = 0; i < arguments_[k].size(); ++i) {
            if (!same_type(arguments_[k][i], arguments_[0][i])) {
                return false;
            }
        }
        for (size_t p = 0; p < repeats_.size(); ++p) {
            const Node& mine = node(p, k);
            const Node& first = node(p, 0);
            if (mine.op != first.op || mine.attributes != first.attributes ||
                mine.operands.size() != first.operands.size() || mine.result_count != first.result_count) {
                return false;
            }
            for (uint32_t r = 0; r < mine.result_count; ++r) {
                if (!same_type(mine.result(r), first.result(r))) {
                    return false;
                }
            }
        }
        return true;
    }

    const Graph& graph_;
    const Repeats& repeats_;
    std::vector<Place> places_;                         // of every node
    std::vector<std::vector<Source>> sources_;          // of each operand of each position
    std::vector<Values> arguments_;                     // of each occurrence
    std::vector<Values> remade_;                        // outside values, one an occurrence
    std::vector<std::pair<size_t, uint32_t>> results_;  // position, result
};

Graph Outline::make_function(const std::string& name, const ir::Module& module) const {
    ir::GraphBuilder builder(name, &module);
    Values params;
    for (ValueId argument : arguments_[0]) {
        params.push_back(builder.param(graph_.type(argument)));
    }
    std::vector<Values> made;
    for (size_t p = 0; p < repeats_.size(); ++p) {
        const Node& from = node(p, 0);
        ir::NodeSpec spec{from.op, {}, from.attributes, from.regions, {}};
        for (const Source& source : sources_[p]) {
            switch (source.kind) {
                case Source::Kind::kInside:
                    spec.operands.push_back(made[source.index][source.result]);
                    break;
                case Source::Kind::kParameter:
                    spec.operands.push_back(params[source.index]);
                    break;
                case Source::Kind::kRemade:
                    spec.operands.push_back(remake(builder, params, remade_[source.index]));
                    break;
            }
        }
        for (uint32_t r = 0; r < from.result_count; ++r) {
            spec.stated.push_back(graph_.type(from.result(r)));
        }
        made.push_back(builder.make_node(std::move(spec)));
    }
    for (auto [position, result] : results_) {
        builder.output(made[position][result]);
    }
    return builder.take();
}

/// The graph with calls in place of the occurrences.
class Contraction {
public:
    Contraction(const Graph& graph, const Outline& outline, const std::string& callee)
        : graph_(graph),
          outline_(outline),
          callee_(callee),
          map_(graph.values.size(), kNone),
          state_(graph.nodes.size(), State::kNew),
          calls_(outline.count(), State::kNew) {}

    /// Nothing if two occurrences would wait for each other.
    std::optional<Graph> run() {
        result_.name = graph_.name;
        for (const ir::Param& param : graph_.params) {
            map_[param.value] = add_value(graph_.type(param.value), kNone, graph_.values[param.value].index);
            result_.params.push_back({map_[param.value], param.kind});
        }
        for (const ir::Output& output : graph_.outputs) {
            if (!emit(output.value)) {
                return std::nullopt;
            }
            result_.outputs.push_back({map_[output.value], output.updates});
        }
        return std::move(result_);
    }

private:
    enum class State : uint8_t { kNew, kOpen, kDone };
    /// A node, or a whole occurrence, whose operands are being emitted.
    struct Unit {
        NodeId node;
        size_t occurrence;
        bool is_call;
        size_t next = 0;
    };

    ValueId add_value(const ir::TensorType& type, NodeId node, uint32_t index) {
        result_.values.push_back({type, node, index});
        return static_cast<ValueId>(result_.values.size()) - 1;
    }

    const Values& operands(const Unit& unit) const {
        return unit.is_call ? outline_.arguments(unit.occurrence) : graph_.nodes[unit.node].operands;
    }
    State& state(const Unit& unit) { return unit.is_call ? calls_[unit.occurrence] : state_[unit.node]; }

    Unit unit_of(NodeId node) const {
        uint32_t occurrence = outline_.place(node).occurrence;
        return occurrence != kNone ? Unit{node, occurrence, true} : Unit{node, 0, false};
    }

    bool emit(ValueId value) {
        std::vector<Unit> stack;
        auto open = [&](ValueId wanted) {
            NodeId node = graph_.values[wanted].node;
            if (node == kNone) {
                return true;
            }
            Unit unit = unit_of(node);
            if (state(unit) == State::kOpen) {
                return false;
            }
            if (state(unit) == State::kNew) {
                state(unit) = State::kOpen;
                stack.push_back(unit);
            }
            return true;
        };
        if (!open(value)) {
            return false;
        }
        while (!stack.empty()) {
            Unit& unit = stack.back();
            if (unit.next < operands(unit).size()) {
                if (!open(operands(unit)[unit.next++])) {
                    return false;
                }
                continue;
            }
            Unit done = unit;
            stack.pop_back();
            state(done) = State::kDone;
            finish(done);
        }
        return true;
    }

    void finish(const Unit& unit) {
        Node node;
        Values results;
        if (unit.is_call) {
            node = Node{Op::k_call, {}, {{"callee", callee_}}};
            results = outline_.results(unit.occurrence);
        } else {
            node = graph_.nodes[unit.node];
            node.operands.clear();
            for (uint32_t r = 0; r < node.result_count; ++r) {
                results.push_back(node.result(r));
            }
        }
        for (ValueId operand : operands(unit)) {
            node.operands.push_back(map_[operand]);
        }
        auto id = static_cast<NodeId>(result_.nodes.size());
        node.first_result = static_cast<ValueId>(result_.values.size());
        node.result_count = static_cast<uint32_t>(results.size());
        for (uint32_t r = 0; r < results.size(); ++r) {
            map_[results[r]] = add_value(graph_.type(results[r]), id, r);
        }
        result_.nodes.push_back(std::move(node));
    }

    const Graph& graph_;
    const Outline& outline_;
    std::string callee_;
    Graph result_;
    Values map_;
    std::vector<State> state_;
    std::vector<State> calls_;
};

std::string free_name(const ir::Module& module) {
    for (int number = 0;; ++number) {
        std::string name = "layer" + std::to_string(number);
        if (module.find(name) == nullptr) {
            return name;
        }
    }
}

/// One kind of layer of one function becomes a function.
bool outline_once(ir::Module& module, size_t function) {
    const Graph& graph = module.functions[function];
    Repeats repeats = find_repeats(graph);
    if (repeats.count == 0) {
        return false;
    }
    Outline outline(graph, repeats);
    std::string name = free_name(module);
    std::optional<Graph> contracted = outline.is_sound() ? Contraction(graph, outline, name).run() : std::nullopt;
    if (!contracted) {
        return false;
    }
    Graph callee = outline.make_function(name, module);
    module.functions[function] = std::move(*contracted);
    module.functions.push_back(std::move(callee));
    return true;
}

}  // namespace

ir::Module outline_layers(ir::Module module) {
    constexpr int kMaxKinds = 8;  // kinds of layers; each costs a search
    size_t functions = module.functions.size();
    for (size_t i = 0; i < functions; ++i) {
        for (int kind = 0; kind < kMaxKinds && outline_once(module, i); ++kind) {
        }
    }
    return module;
}

}  // namespace ember::rewrite
