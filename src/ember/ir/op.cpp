#include "ember/ir/op.h"

#include <unordered_map>

namespace ember::ir {

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
