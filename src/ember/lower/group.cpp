// Roles of nodes, groups of nodes, and what escapes them: see group.h.
#include "ember/lower/group.h"

#include <algorithm>

#include "ember/support/check.h"

namespace ember::lower {
namespace {

using ir::Dim;
using ir::Graph;
using ir::kNone;
using ir::Node;
using ir::NodeId;
using ir::Op;
using ir::OpKind;
using ir::Shape;
using ir::ValueId;

constexpr int kMaxMembers = 96;
constexpr int kSiblingWindow = 4;
constexpr int kCheapCost = 16;

// Where an axis of a value is read when its group's space is walked: an axis of the space, always at 0, or elsewhere.
constexpr int kAtZero = -1;
constexpr int kElsewhere = -2;
using AxisMap = std::vector<int>;

class Grouper {
public:
    explicit Grouper(const Graph& graph) : graph_(graph) {
        out_.role.resize(graph.nodes.size(), Role::kGrouped);
        out_.group.resize(graph.nodes.size(), -1);
        out_.escapes.resize(graph.values.size(), false);
        out_.use_count.resize(graph.values.size(), 0);
        out_.lengths_ready.resize(graph.nodes.size(), -1);
        ready_.resize(graph.nodes.size(), -1);
        cost_.resize(graph.nodes.size(), 0);
    }

    Grouping run() {
        count_uses();
        for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
            place(id);
        }
        mark_escapes();
        return std::move(out_);
    }

private:
    void count_uses() {
        for (const Node& node : graph_.nodes) {
            for (ValueId operand : node.operands) {
                ++out_.use_count[operand];
            }
        }
        for (const ir::Output& output : graph_.outputs) {
            ++out_.use_count[output.value];
        }
    }

    int ready(ValueId value) const {
        NodeId node = graph_.values[value].node;
        return node == kNone ? -1 : ready_[node];
    }

    int operands_ready(const Node& node) const {
        int latest = -1;
        for (ValueId operand : node.operands) {
            latest = std::max(latest, ready(operand));
        }
        return latest;
    }

    int lengths_ready(ValueId value) const {
        NodeId node = graph_.values[value].node;
        return node == kNone ? -1 : out_.lengths_ready[node];
    }

    /// Is operand k a scalar that says where or how many elements there are?
    static bool is_position(const Node& node, size_t k) {
        switch (ir::kind(node.op)) {
            case OpKind::kView:
            case OpKind::kSplit:
                return k > 0;
            case OpKind::kPad:
                return k > 1;
            default:
                return node.op == Op::k_iota || (node.op == Op::k_topk && k == 1);
        }
    }

    int operand_lengths_ready(const Node& node) const {
        int latest = -1;
        for (size_t k = 0; k < node.operands.size(); ++k) {
            ValueId operand = node.operands[k];
            latest = std::max(latest, is_position(node, k) ? ready(operand) : lengths_ready(operand));
        }
        return latest;
    }

    /// Positions are arguments of kernels, so no kernel may make its own.
    bool has_positions_before(const Node& node, int g) const {
        for (size_t k = 0; k < node.operands.size(); ++k) {
            if (is_position(node, k) && ready(node.operands[k]) >= g) {
                return false;
            }
        }
        return true;
    }

    bool all_host(const Node& node) const {
        return std::all_of(node.operands.begin(), node.operands.end(),
                           [&](ValueId operand) { return out_.is_host(graph_, operand); });
    }

    Role classify(const Node& node) const {
        bool scalar = node.result_count == 1 && graph_.type(node.result()).is_scalar();
        switch (ir::kind(node.op)) {
            case OpKind::kMap:
                if (scalar && all_host(node)) {
                    return Role::kHost;
                }
                return is_cheap(node) ? Role::kVirtual : Role::kGrouped;
            case OpKind::kCast:
                if (ir::is_quantized(graph_.type(node.operands[0]).dtype)) {
                    return Role::kOpaque;
                }
                if (scalar && all_host(node)) {
                    return Role::kHost;
                }
                return is_cheap(node) ? Role::kVirtual : Role::kGrouped;
            case OpKind::kSource:
                return scalar ? Role::kHost : Role::kVirtual;
            case OpKind::kScalar:
                return Role::kHost;
            case OpKind::kReduce:
            case OpKind::kArgReduce:
                return Role::kGrouped;
            case OpKind::kView:
            case OpKind::kSplit:
                return Role::kVirtual;
            case OpKind::kPad:
                return Role::kGrouped;
            case OpKind::kGather:
                return ir::is_quantized(graph_.type(node.operands[0]).dtype) ? Role::kOpaque : Role::kVirtual;
            case OpKind::kAssert:
                return Role::kOpaque;
            default:
                return Role::kOpaque;
        }
    }

    /// Made of scalars, iotas and constants only, in few instructions: computed again wherever it is read.
    bool is_cheap(const Node& node) const {
        int cost = node.op == Op::k_cast ? 1 : map_cost(node.op);
        for (ValueId operand : node.operands) {
            if (out_.is_host(graph_, operand)) {
                continue;
            }
            NodeId from = graph_.values[operand].node;
            if (from == kNone || out_.role[from] != Role::kVirtual || cost_[from] < 0) {
                return false;
            }
            cost += cost_[from];
        }
        return cost <= kCheapCost;
    }

    /// Cost of a virtual node if it reads no memory, else -1.
    int virtual_cost(const Node& node) const {
        if (node.op == Op::k_const) {
            return 1;
        }
        if (node.op == Op::k_iota) {
            return 1;
        }
        if (ir::kind(node.op) == OpKind::kGather) {
            return -1;
        }
        int cost = ir::is_map(node.op) ? map_cost(node.op) : 1;
        size_t data = ir::kind(node.op) == OpKind::kView ? 1 : node.operands.size();
        for (size_t k = 0; k < data; ++k) {
            ValueId operand = node.operands[k];
            if (out_.is_host(graph_, operand)) {
                continue;
            }
            NodeId from = graph_.values[operand].node;
            if (from == kNone || out_.role[from] != Role::kVirtual || cost_[from] < 0) {
                return -1;
            }
            cost += cost_[from];
        }
        return cost;
    }

    void place(NodeId id) {
        const Node& node = graph_.nodes[id];
        Role role = classify(node);
        out_.role[id] = role;
        out_.lengths_ready[id] = operand_lengths_ready(node);
        ready_[id] = role == Role::kHost && node.op == Op::k_dim ? out_.lengths_ready[id] : operands_ready(node);
        if (role == Role::kHost) {
            return;
        }
        if (role == Role::kVirtual) {
            cost_[id] = virtual_cost(node);
            return;
        }
        int group = role == Role::kGrouped ? find_group(node) : -1;
        if (group < 0) {
            group = static_cast<int>(out_.groups.size());
            out_.groups.emplace_back();
            Group& made = out_.groups.back();
            made.opaque = role == Role::kOpaque;
            made.node = made.opaque ? id : kNone;
            made.space = space_of(node);
        }
        Group& joined = out_.groups[static_cast<size_t>(group)];
        if (!joined.opaque) {
            joined.members.push_back(id);
            if (!reduced_axes(node).empty()) {
                joined.split = true;
                joined.column_axes = reduced_axes(node);
            }
        }
        out_.group[id] = group;
        ready_[id] = group;
        if (ir::kind(node.op) == OpKind::kControl || ir::kind(node.op) == OpKind::kFind ||
            ir::kind(node.op) == OpKind::kHost) {
            out_.lengths_ready[id] = group;
        }
    }

    Shape space_of(const Node& node) const {
        bool reduces = ir::kind(node.op) == OpKind::kReduce || ir::kind(node.op) == OpKind::kArgReduce;
        return graph_.type(reduces ? node.operands[0] : node.result()).shape;
    }

    static std::vector<int> reduced_axes(const Node& node) {
        if (ir::kind(node.op) == OpKind::kArgReduce) {
            return {static_cast<int>(node.integer("axis"))};
        }
        if (ir::kind(node.op) != OpKind::kReduce) {
            return {};
        }
        const std::vector<int64_t>& axes = node.integers("axes");
        return {axes.begin(), axes.end()};
    }

    int find_group(const Node& node) const {
        int latest = operands_ready(node);
        if (latest >= 0 && may_join(node, latest)) {
            return latest;
        }
        auto count = static_cast<int>(out_.groups.size());
        for (int g = count - 1; g > latest && g >= count - kSiblingWindow; --g) {
            if (may_join(node, g)) {
                return g;
            }
        }
        return -1;
    }

    bool may_join(const Node& node, int g) const {
        const Group& group = out_.groups[static_cast<size_t>(g)];
        if (group.opaque || group.members.size() >= kMaxMembers || !has_positions_before(node, g)) {
            return false;
        }
        std::vector<int> reduced = reduced_axes(node);
        const Shape& shape = space_of(node);
        AxisMap map;
        if (shape == group.space) {
            if (!reduced.empty() && group.split && group.column_axes != reduced) {
                return false;
            }
            for (size_t i = 0; i < shape.size(); ++i) {
                map.push_back(static_cast<int>(i));
            }
        } else {
            if (!reduced.empty() || !group.split || shape != row_shape(group)) {
                return false;
            }
            map = group.row_axes();
        }
        bool reads_map = reduced.empty();
        for (ValueId operand : node.operands) {
            AxisMap operand_map = reads_map ? broadcast_map(map, graph_.type(operand).shape) : map;
            if (!fits(operand, operand_map, g, reduced)) {
                return false;
            }
        }
        return true;
    }

    Shape row_shape(const Group& group) const {
        Shape shape;
        for (int axis : group.row_axes()) {
            shape.push_back(group.space[static_cast<size_t>(axis)]);
        }
        return shape;
    }

    static AxisMap broadcast_map(const AxisMap& map, const Shape& shape) {
        AxisMap result(map.end() - static_cast<std::ptrdiff_t>(shape.size()), map.end());
        for (size_t i = 0; i < shape.size(); ++i) {
            if (shape[i] == Dim(1)) {
                result[i] = kAtZero;
            }
        }
        return result;
    }

    /// May `value`, read at `map`, be computed inside group g?
    bool fits(ValueId value, const AxisMap& map, int g, const std::vector<int>& reduced) const {
        NodeId id = graph_.values[value].node;
        if (id == kNone || ready_[id] < g) {
            return true;
        }
        if (out_.role[id] == Role::kHost) {
            return false;
        }
        if (out_.role[id] == Role::kVirtual) {
            return fits_virtual(graph_.nodes[id], value, map, g, reduced);
        }
        return out_.group[id] == g && is_member_map(graph_.nodes[id], map, g, reduced);
    }

    bool is_member_map(const Node& node, const AxisMap& map, int g, const std::vector<int>& reduced) const {
        const Group& group = out_.groups[static_cast<size_t>(g)];
        const Shape& shape = graph_.type(node.result()).shape;
        bool makes_row = !reduced_axes(node).empty();
        std::vector<int> wanted;
        if (!makes_row && shape == group.space) {
            for (size_t i = 0; i < shape.size(); ++i) {
                wanted.push_back(static_cast<int>(i));
            }
        } else {
            Group after = group;
            if (!group.split && !reduced.empty()) {
                after.column_axes = reduced;
            }
            wanted = after.row_axes();
        }
        for (size_t i = 0; i < wanted.size(); ++i) {
            bool one = group.space[static_cast<size_t>(wanted[i])] == Dim(1);
            if (map[i] != wanted[i] && !(one && map[i] == kAtZero)) {
                return false;
            }
        }
        return true;
    }

    bool fits_virtual(const Node& node, ValueId value, const AxisMap& map, int g,
                      const std::vector<int>& reduced) const {
        if (!has_positions_before(node, g)) {
            return false;
        }
        const Shape& from = node.operands.empty() ? Shape() : graph_.type(node.operands[0]).shape;
        const Shape& to = graph_.type(value).shape;
        if (ir::is_map(node.op) || node.op == Op::k_cast) {
            return std::all_of(node.operands.begin(), node.operands.end(), [&](ValueId operand) {
                return fits(operand, broadcast_map(map, graph_.type(operand).shape), g, reduced);
            });
        }
        AxisMap inner(from.size(), kElsewhere);
        switch (node.op) {
            case Op::k_transpose:
                for (size_t i = 0; i < from.size(); ++i) {
                    inner[static_cast<size_t>(node.integers("perm")[i])] = map[i];
                }
                break;
            case Op::k_broadcast:
                inner = broadcast_map(map, from);
                break;
            case Op::k_reshape:
                for (const ReshapeSegment& s : match_reshape(from, to)) {
                    if (s.from_end - s.from_begin == 1 && s.to_end - s.to_begin == 1) {
                        inner[s.from_begin] = map[s.to_begin];
                    }
                }
                break;
            case Op::k_slice:
            case Op::k_split:
            case Op::k_reverse:
                for (size_t i = 0; i < from.size(); ++i) {
                    inner[i] = from[i] == to[i] && !touches(node, i) ? map[i] : kElsewhere;
                }
                break;
            default:
                break;
        }
        for (size_t i = 0; i < from.size(); ++i) {
            if (from[i] == Dim(1)) {
                inner[i] = kAtZero;
            }
        }
        for (size_t k = 0; k < node.operands.size(); ++k) {
            AxisMap operand_map = k == 0 ? inner : AxisMap(graph_.type(node.operands[k]).shape.size(), kElsewhere);
            if (!fits(node.operands[k], operand_map, g, reduced)) {
                return false;
            }
        }
        return true;
    }

    static bool touches(const Node& node, size_t axis) {
        if (node.op == Op::k_reverse) {
            const auto& axes = node.integers("axes");
            return std::find(axes.begin(), axes.end(), static_cast<int64_t>(axis)) != axes.end();
        }
        return node.integer("axis") == static_cast<int64_t>(axis);
    }

    void mark_escapes() {
        for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
            if (out_.role[id] == Role::kVirtual) {
                continue;
            }
            for (ValueId operand : graph_.nodes[id].operands) {
                mark(operand, out_.role[id] == Role::kGrouped ? out_.group[id] : -1);
            }
        }
        for (const ir::Output& output : graph_.outputs) {
            mark(output.value, -1);
        }
    }

    void mark(ValueId value, int reader) {
        NodeId id = graph_.values[value].node;
        if (id == kNone || out_.escapes[value]) {
            return;
        }
        if (out_.role[id] == Role::kGrouped || out_.role[id] == Role::kOpaque) {
            out_.escapes[value] = out_.group[id] != reader;
            return;
        }
        for (ValueId operand : graph_.nodes[id].operands) {
            mark(operand, reader);
        }
    }

    const Graph& graph_;
    Grouping out_;
    std::vector<int> ready_;  // by node: the latest group that must have run
    std::vector<int> cost_;   // by node: of virtual ones that read no memory
};

}  // namespace

std::vector<int> Group::row_axes() const {
    std::vector<int> rows;
    for (int i = 0; i < static_cast<int>(space.size()); ++i) {
        if (std::find(column_axes.begin(), column_axes.end(), i) == column_axes.end()) {
            rows.push_back(i);
        }
    }
    return rows;
}

bool Grouping::is_host(const ir::Graph& graph, ir::ValueId value) const {
    NodeId node = graph.values[value].node;
    if (node == kNone) {
        return graph.type(value).is_scalar();
    }
    return role[node] == Role::kHost;
}

Grouping group_nodes(const ir::Graph& graph) {
    return Grouper(graph).run();
}

std::vector<ReshapeSegment> match_reshape(const ir::Shape& from, const ir::Shape& to) {
    std::vector<ReshapeSegment> segments;
    size_t i = 0;
    size_t j = 0;
    while (i < from.size() || j < to.size()) {
        if (i < from.size() && j < to.size() && from[i] == to[j]) {
            segments.push_back({i, i + 1, j, j + 1});
            ++i, ++j;
            continue;
        }
        if (i < from.size() && from[i] == Dim(1)) {
            segments.push_back({i, i + 1, j, j});
            ++i;
            continue;
        }
        if (j < to.size() && to[j] == Dim(1)) {
            segments.push_back({i, i, j, j + 1});
            ++j;
            continue;
        }
        ReshapeSegment s{i, i, j, j};
        int64_t p = 1;
        int64_t q = 1;
        bool matched = false;
        while (true) {
            if (p == q && s.from_end > s.from_begin && s.to_end > s.to_begin) {
                matched = true;
                break;
            }
            bool left = p <= q ? s.from_end < from.size() : s.to_end >= to.size();
            Dim next = left ? (s.from_end < from.size() ? from[s.from_end] : Dim(0))
                            : (s.to_end < to.size() ? to[s.to_end] : Dim(0));
            if (next.is_symbol() || next == Dim(0)) {
                break;
            }
            (left ? p : q) *= next.size();
            ++(left ? s.from_end : s.to_end);
        }
        if (!matched) {
            segments.push_back({i, from.size(), j, to.size()});
            return segments;
        }
        segments.push_back(s);
        i = s.from_end;
        j = s.to_end;
    }
    return segments;
}

int map_cost(ir::Op op) {
    switch (op) {
        case Op::k_exp:
        case Op::k_exp2:
        case Op::k_expm1:
        case Op::k_log:
        case Op::k_log2:
        case Op::k_log10:
        case Op::k_log1p:
        case Op::k_sigmoid:
        case Op::k_tanh:
        case Op::k_softplus:
        case Op::k_log_sigmoid:
        case Op::k_cbrt:
        case Op::k_erf:
            return 16;
        case Op::k_div:
        case Op::k_sqrt:
        case Op::k_rsqrt:
        case Op::k_reciprocal:
        case Op::k_floor_div:
        case Op::k_mod:
        case Op::k_fmod:
            return 6;
        case Op::k_pow:
        case Op::k_lgamma:
        case Op::k_digamma:
        case Op::k_erfinv:
        case Op::k_erfcinv:
        case Op::k_logaddexp:
            return 40;
        default:
            break;
    }
    return op >= Op::k_sin && op <= Op::k_digamma ? 24 : 1;
}

}  // namespace ember::lower
