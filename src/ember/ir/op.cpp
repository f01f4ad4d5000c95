// Look-ups in the op table.
#include "ember/ir/op.h"

#include <array>
#include <unordered_map>
#include <vector>

#include "ember/support/check.h"

namespace ember::ir {
namespace {

constexpr std::array<std::string_view, 5> kAttributeKinds = {"int", "ints", "str", "dtype", "literal"};

AttributeKind attribute_kind(std::string_view name) {
    for (size_t i = 0; i < kAttributeKinds.size(); ++i) {
        if (kAttributeKinds[i] == name) {
            return static_cast<AttributeKind>(i);
        }
    }
    unreachable("attribute kind of the op table");
}

/// "name:kind name:kind?" as rows.
std::vector<AttributeInfo> parse_attributes(std::string_view row) {
    std::vector<AttributeInfo> result;
    while (!row.empty()) {
        size_t space = row.find(' ');
        std::string_view one = row.substr(0, space);
        row = space == std::string_view::npos ? std::string_view() : row.substr(space + 1);
        bool optional = one.back() == '?';
        one.remove_suffix(optional ? 1 : 0);
        size_t colon = one.find(':');
        result.push_back({one.substr(0, colon), attribute_kind(one.substr(colon + 1)), optional});
    }
    return result;
}

}  // namespace

std::string_view attribute_kind_name(AttributeKind kind) {
    return kAttributeKinds[static_cast<size_t>(kind)];
}

std::span<const AttributeInfo> attributes(Op op) {
    static const auto* kByOp = [] {
        auto* rows = new std::vector<std::vector<AttributeInfo>>;
        for (const OpInfo& row : kOps) {
            rows->push_back(parse_attributes(row.attributes));
        }
        return rows;
    }();
    return (*kByOp)[static_cast<size_t>(op)];
}

std::optional<Op> op_from_name(std::string_view name) {
    static const auto* kByName = [] {
        auto* names = new std::unordered_map<std::string_view, Op>;
        for (int i = 0; i < kOpCount; ++i) {
            names->emplace(kOps[i].name, static_cast<Op>(i));
        }
        return names;
    }();
    auto found = kByName->find(name);
    return found == kByName->end() ? std::nullopt : std::optional<Op>(found->second);
}

}  // namespace ember::ir
