// Search for repeated sub-graphs; see repeats.h.
#include "ember/rewrite/repeats.h"

#include <algorithm>
#include <queue>
#include <unordered_map>
#include <unordered_set>

#include "ember/ir/builder.h"
#include "ember/text/print.h"

namespace ember::rewrite {
namespace {

using ir::Graph;
using ir::kNone;
using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::OpKind;
using ir::ValueId;

constexpr size_t kMinSize = 4;          // nodes of an occurrence
constexpr size_t kMinSaved = 40;        // nodes saved by all
constexpr size_t kMaxCandidates = 400;  // anchors tried out
constexpr size_t kSearchEffort = 8;     // nodes taken in all tries, a node of the graph
constexpr size_t kSearch = 64;          // nodes looked at to prove convexity
constexpr int kSurroundings = 4;        // operands of operands that count in a node's hash

void mix(uint64_t& seed, uint64_t value) {
    seed = (seed ^ value) * 0x9e3779b97f4a7c15ULL;
    seed ^= seed >> 29;
}

void mix_text(uint64_t& seed, std::string_view text) {
    for (char c : text) {
        mix(seed, static_cast<unsigned char>(c));
    }
}

/// Symbols count as alike: which ones are equal is checked when the function is made.
void mix_type(uint64_t& seed, const ir::TensorType& type) {
    mix(seed, static_cast<uint64_t>(type.dtype));
    for (ir::Dim dim : type.shape) {
        mix(seed, dim.is_static() ? static_cast<uint64_t>(dim.size()) : ~uint64_t{0});
    }
}

void mix_attribute(uint64_t& seed, const ir::AttributeValue& value) {
    mix(seed, value.index());
    if (const auto* number = std::get_if<int64_t>(&value)) {
        mix(seed, static_cast<uint64_t>(*number));
    } else if (const auto* list = std::get_if<std::vector<int64_t>>(&value)) {
        for (int64_t item : *list) {
            mix(seed, static_cast<uint64_t>(item));
        }
    } else if (const auto* text = std::get_if<std::string>(&value)) {
        mix_text(seed, *text);
    } else if (const auto* dtype = std::get_if<ir::DType>(&value)) {
        mix(seed, static_cast<uint64_t>(*dtype));
    } else {
        mix_text(seed, std::get<ir::Literal>(value).bytes);
    }
}

/// What a node is, apart from which values it works on.
uint64_t token(const Graph& graph, const Node& node) {
    auto seed = static_cast<uint64_t>(node.op) + 1;
    for (const ir::Attribute& attribute : node.attributes) {
        mix_attribute(seed, attribute.value);
    }
    for (ValueId operand : node.operands) {
        mix_type(seed, graph.type(operand));
    }
    for (uint32_t k = 0; k < node.result_count; ++k) {
        mix_type(seed, graph.type(node.result(k)));
    }
    for (const auto& region : node.regions) {
        ir::Module alone;
        alone.functions.push_back(*region);
        mix_text(seed, text::canonical_text(alone));
    }
    return seed;
}

/// The graph with what the search asks about it.
class Surroundings {
public:
    explicit Surroundings(const Graph& graph) : graph(graph) {
        std::vector<NodeId> order = canonical_order(graph);
        rank.assign(graph.nodes.size(), kNone);
        tokens.assign(graph.nodes.size(), 0);
        for (uint32_t i = 0; i < order.size(); ++i) {
            rank[order[i]] = i;
            tokens[order[i]] = token(graph, graph.nodes[order[i]]);
        }
        list_users(order);
        hash_surroundings(order);
        group(order);
    }

    struct Use {
        NodeId user;
        uint32_t slot;
    };
    struct Uses {
        const Use* first;
        const Use* last;
        const Use* begin() const { return first; }
        const Use* end() const { return last; }
    };
    Uses uses(ValueId value) const { return {&uses_[starts_[value]], &uses_[starts_[value + 1]]}; }

    const Graph& graph;
    std::vector<uint32_t> rank;  // in canonical order; kNone: no output needs the node
    std::vector<uint64_t> tokens;
    std::vector<std::vector<NodeId>> groups;  // nodes of equal surroundings, at least two, by rank

private:
    void list_users(const std::vector<NodeId>& order) {
        starts_.assign(graph.values.size() + 2, 0);
        for (NodeId id : order) {
            for (ValueId operand : graph.nodes[id].operands) {
                ++starts_[operand + 2];
            }
        }
        for (size_t v = 2; v < starts_.size(); ++v) {
            starts_[v] += starts_[v - 1];
        }
        uses_.resize(starts_.back() + 1);
        for (NodeId id : order) {
            const Node& node = graph.nodes[id];
            for (uint32_t slot = 0; slot < node.operands.size(); ++slot) {
                uses_[starts_[node.operands[slot] + 1]++] = {id, slot};
            }
        }
    }

    void hash_surroundings(const std::vector<NodeId>& order) {
        hashes_ = tokens;
        std::vector<uint64_t> next(hashes_.size(), 0);
        for (int round = 0; round < kSurroundings; ++round) {
            for (NodeId id : order) {
                uint64_t seed = tokens[id];
                for (ValueId operand : graph.nodes[id].operands) {
                    const ir::Value& value = graph.values[operand];
                    mix(seed, value.node == kNone ? 1 : hashes_[value.node] + value.index);
                }
                next[id] = seed;
            }
            std::swap(hashes_, next);
        }
    }

    void group(const std::vector<NodeId>& order) {
        std::unordered_map<uint64_t, uint32_t> index;
        index.reserve(order.size());
        std::vector<std::vector<NodeId>> all;
        for (NodeId id : order) {
            auto [at, is_new] = index.emplace(hashes_[id], static_cast<uint32_t>(all.size()));
            if (is_new) {
                all.emplace_back();
            }
            all[at->second].push_back(id);
        }
        for (std::vector<NodeId>& nodes : all) {
            if (nodes.size() >= 2) {
                groups.push_back(std::move(nodes));
            }
        }
    }

    std::vector<uint32_t> starts_;
    std::vector<Use> uses_;
    std::vector<uint64_t> hashes_;
};

/// Nodes that a function makes anew instead of taking them as parameters, or that stay where they are.
bool stays_outside(const Node& node) {
    return node.op == Op::k_const || node.op == Op::k_host_call;
}

/// Grows occurrences from their anchors.
class Growth {
public:
    explicit Growth(const Surroundings& around)
        : around_(around), graph_(around.graph), owner_(graph_.nodes.size(), kNone), seen_(graph_.nodes.size(), 0) {}

    Repeats grow(std::vector<NodeId> anchors) {
        result_ = {anchors.size(), {}};
        earliest_ = anchors;
        latest_ = anchors;
        include(std::move(anchors));
        grow_up();
        for (size_t position = 0; position < result_.size(); ++position) {
            grow_down(position);
        }
        for (NodeId node : result_.nodes) {
            owner_[node] = kNone;
        }
        sort_positions();
        return std::move(result_);
    }

private:
    using Row = std::vector<NodeId>;  // one node an occurrence

    size_t count() const { return result_.count; }
    bool is_owned(NodeId node) const { return owner_[node] != kNone; }
    bool is_owned_by(NodeId node, size_t occurrence) const { return owner_[node] == occurrence; }

    void include(Row row) {
        for (size_t k = 0; k < row.size(); ++k) {
            owner_[row[k]] = static_cast<uint32_t>(k);
            earliest_[k] = around_.rank[row[k]] < around_.rank[earliest_[k]] ? row[k] : earliest_[k];
            latest_[k] = around_.rank[row[k]] > around_.rank[latest_[k]] ? row[k] : latest_[k];
        }
        size_t position = result_.size();
        result_.nodes.insert(result_.nodes.end(), row.begin(), row.end());
        const Node& first = graph_.nodes[row[0]];
        for (size_t slot = 0; slot < first.operands.size(); ++slot) {
            push_operands(position, slot);
        }
    }

    /// Nodes behind one operand of a position wait to be looked at, the latest ones first: when a node's turn comes,
    /// all of its users have had theirs.
    void push_operands(size_t position, size_t slot) {
        Row row(count());
        uint32_t index = 0;
        for (size_t k = 0; k < count(); ++k) {
            const ir::Value& value = graph_.values[graph_.nodes[result_.at(position, k)].operands[slot]];
            bool alike = value.node != kNone && (k == 0 || value.index == index);
            if (!alike || is_owned(value.node)) {
                return;
            }
            index = value.index;
            row[k] = value.node;
        }
        if (row[0] != row[1] && !stays_outside(graph_.nodes[row[0]])) {
            waiting_.emplace(around_.rank[row[0]], std::move(row));
        }
    }

    void grow_up() {
        while (!waiting_.empty()) {
            Row row = waiting_.top().second;
            waiting_.pop();
            if (is_alike(row) && never_comes_back(row)) {
                include(std::move(row));
            }
        }
    }

    /// Equal, distinct, of no occurrence?
    bool is_alike(const Row& row) {
        ++stamp_;
        for (NodeId node : row) {
            if (is_owned(node) || around_.tokens[node] != around_.tokens[row[0]] || seen_[node] == stamp_) {
                return false;
            }
            seen_[node] = stamp_;
        }
        return true;
    }

    /// Do no users of the nodes, but those of their occurrences, lead back into the occurrences?
    bool never_comes_back(const Row& row) {
        for (size_t k = 0; k < row.size(); ++k) {
            if (!never_comes_back(row[k], k)) {
                return false;
            }
        }
        return true;
    }

    bool never_comes_back(NodeId node, size_t k) {
        uint32_t limit = around_.rank[latest_[k]];
        std::vector<NodeId>& open = open_;
        open.clear();
        auto visit_users = [&](NodeId of) {
            for (uint32_t r = 0; r < graph_.nodes[of].result_count; ++r) {
                for (const auto& use : around_.uses(graph_.nodes[of].result(r))) {
                    bool own = of == node && is_owned_by(use.user, k);
                    if (!own && around_.rank[use.user] <= limit && seen_[use.user] != stamp_) {
                        seen_[use.user] = stamp_;
                        open.push_back(use.user);
                    }
                }
            }
        };
        ++stamp_;
        visit_users(node);
        for (size_t next = 0; next < open.size(); ++next) {
            if (is_owned_by(open[next], k) || open.size() > kSearch) {
                return false;
            }
            visit_users(open[next]);
        }
        return true;
    }

    void grow_down(size_t position) {
        const Node& first = graph_.nodes[result_.at(position, 0)];
        for (uint32_t r = 0; r < first.result_count; ++r) {
            // equal users of one value are taken in their order
            std::unordered_map<uint64_t, size_t> taken;
            for (const auto& use : around_.uses(first.result(r))) {
                uint64_t key = around_.tokens[use.user] + use.slot;
                size_t nth = taken[key]++;
                if (is_owned(use.user)) {
                    continue;
                }
                Row row = users_of(position, r, use, nth);
                if (row.size() == count() && is_alike(row) && never_comes_back(row) && never_leads_to(row)) {
                    include(std::move(row));
                    grow_up();
                }
            }
        }
    }

    /// The user in each occurrence that corresponds to this one of the first.
    Row users_of(size_t position, uint32_t result, const Surroundings::Use& use, size_t nth) const {
        Row row;
        if (stays_outside(graph_.nodes[use.user])) {
            return row;
        }
        for (size_t k = 0; k < count(); ++k) {
            size_t left = nth;
            for (const auto& other : around_.uses(graph_.nodes[result_.at(position, k)].result(result))) {
                bool same = other.slot == use.slot && around_.tokens[other.user] == around_.tokens[use.user];
                if (same && left-- == 0) {
                    row.push_back(other.user);
                    break;
                }
            }
        }
        return row;
    }

    /// Is every operand of the nodes inside, or something that their occurrences do not lead to?
    bool never_leads_to(const Row& row) {
        for (size_t k = 0; k < row.size(); ++k) {
            if (!never_leads_to(row[k], k)) {
                return false;
            }
        }
        return true;
    }

    bool never_leads_to(NodeId node, size_t k) {
        uint32_t limit = around_.rank[earliest_[k]];
        std::vector<NodeId>& open = open_;
        open.clear();
        auto visit_operands = [&](NodeId of) {
            for (ValueId operand : graph_.nodes[of].operands) {
                NodeId from = graph_.values[operand].node;
                bool own = of == node && from != kNone && is_owned_by(from, k);
                if (from != kNone && !own && around_.rank[from] >= limit && seen_[from] != stamp_) {
                    seen_[from] = stamp_;
                    open.push_back(from);
                }
            }
        };
        ++stamp_;
        visit_operands(node);
        for (size_t next = 0; next < open.size(); ++next) {
            if (is_owned_by(open[next], k) || open.size() > kSearch) {
                return false;
            }
            visit_operands(open[next]);
        }
        return true;
    }

    void sort_positions() {
        std::vector<size_t> order(result_.size());
        for (size_t p = 0; p < order.size(); ++p) {
            order[p] = p;
        }
        std::sort(order.begin(), order.end(),
                  [&](size_t a, size_t b) { return around_.rank[result_.at(a, 0)] < around_.rank[result_.at(b, 0)]; });
        std::vector<NodeId> nodes;
        nodes.reserve(result_.nodes.size());
        for (size_t p : order) {
            auto first = result_.nodes.begin() + static_cast<std::ptrdiff_t>(p * count());
            nodes.insert(nodes.end(), first, first + static_cast<std::ptrdiff_t>(count()));
        }
        result_.nodes = std::move(nodes);
    }

    const Surroundings& around_;
    const Graph& graph_;
    std::vector<uint32_t> owner_;  // occurrence; kNone: none
    std::vector<uint32_t> seen_;
    uint32_t stamp_ = 0;
    std::vector<NodeId> open_;
    Repeats result_;
    Row earliest_;  // node of each occurrence
    Row latest_;
    std::priority_queue<std::pair<uint32_t, Row>> waiting_;
};

/// Is an occurrence worth the end of fusion at its borders?
bool is_worth_it(const Graph& graph, const Repeats& repeats, size_t count) {
    size_t size = repeats.size();
    if (size < kMinSize || (count - 1) * size < kMinSaved) {
        return false;
    }
    for (size_t position = 0; position < size; ++position) {
        OpKind kind = ir::kind(graph.nodes[repeats.at(position, 0)].op);
        if (kind == OpKind::kContract || kind == OpKind::kControl) {
            return true;
        }
    }
    return false;
}

/// Values that go into and out of the second occurrence.
size_t count_border(const Surroundings& around, const Repeats& repeats) {
    const Graph& graph = around.graph;
    std::unordered_set<NodeId> inside;
    for (size_t position = 0; position < repeats.size(); ++position) {
        inside.insert(repeats.at(position, 1));
    }
    std::unordered_set<ValueId> border;
    for (NodeId id : inside) {
        for (ValueId operand : graph.nodes[id].operands) {
            if (!inside.contains(graph.values[operand].node)) {
                border.insert(operand);
            }
        }
        for (uint32_t r = 0; r < graph.nodes[id].result_count; ++r) {
            for (const auto& use : around.uses(graph.nodes[id].result(r))) {
                if (!inside.contains(use.user)) {
                    border.insert(graph.nodes[id].result(r));
                }
            }
        }
    }
    return border.size();
}

/// Some from the beginning, the middle and the end. Neighbours are among them: growth ends where the next one begins.
std::vector<NodeId> sample(const std::vector<NodeId>& nodes) {
    size_t n = nodes.size();
    if (n <= 7) {
        return nodes;
    }
    return {nodes[0], nodes[1], nodes[2], nodes[n / 2], nodes[n / 2 + 1], nodes[n - 2], nodes[n - 1]};
}

}  // namespace

Repeats find_repeats(const Graph& graph) {
    if (graph.nodes.size() < kMinSize * 2) {
        return {};
    }
    Surroundings around(graph);
    // Many occurrences first; of as many, the end of a layer before its beginning: growth goes up.
    std::stable_sort(around.groups.begin(), around.groups.end(), [&](const auto& a, const auto& b) {
        return a.size() != b.size() ? a.size() > b.size() : around.rank[a[0]] > around.rank[b[0]];
    });
    around.groups.resize(std::min(around.groups.size(), kMaxCandidates));
    Growth growth(around);
    std::vector<bool> covered(graph.nodes.size(), false);  // by the first occurrence of what was found
    const std::vector<NodeId>* best = nullptr;
    size_t most = 0;
    size_t border = 0;
    size_t tries = 0;
    for (const std::vector<NodeId>& group : around.groups) {
        const Node& anchor = graph.nodes[group[0]];
        if (stays_outside(anchor)) {
            continue;
        }
        auto uses = around.uses(anchor.result());
        // Inside of what was found, only another place to cut could be better: a value that is used several times.
        bool known = covered[group[0]] && (group.size() != best->size() || uses.end() - uses.begin() < 2);
        if (known) {
            continue;
        }
        if (tries > kSearchEffort * (graph.nodes.size() + 1000)) {
            break;
        }
        Repeats tried = growth.grow(sample(group));
        tries += tried.nodes.size() + 1;
        size_t saved = (group.size() - 1) * tried.size();
        if (saved < most || !is_worth_it(graph, tried, group.size())) {
            continue;
        }
        size_t crossing = count_border(around, tried);
        if (saved > most || crossing < border) {
            most = saved;
            border = crossing;
            best = &group;
            for (size_t position = 0; position < tried.size(); ++position) {
                covered[tried.at(position, 0)] = true;
            }
        }
    }
    if (best == nullptr) {
        return {};
    }
    Repeats repeats = growth.grow(*best);
    return is_worth_it(graph, repeats, repeats.count) ? repeats : Repeats{};
}

}  // namespace ember::rewrite
