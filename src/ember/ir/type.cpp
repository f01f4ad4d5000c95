// Symbols and the text of types: see type.h.
#include "ember/ir/type.h"

#include <deque>
#include <mutex>
#include <unordered_map>

#include "ember/support/check.h"

namespace ember::ir {
namespace {

class SymbolNames {
public:
    int64_t intern(std::string_view name) {
        std::lock_guard lock(mutex_);
        if (auto found = ids_.find(name); found != ids_.end()) {
            return found->second;
        }
        names_.emplace_back(name);
        int64_t id = static_cast<int64_t>(names_.size()) - 1;
        ids_.emplace(names_.back(), id);
        return id;
    }
    int64_t fresh() {
        std::lock_guard lock(mutex_);
        names_.emplace_back();
        return static_cast<int64_t>(names_.size()) - 1;
    }
    std::string name(int64_t id) {
        std::lock_guard lock(mutex_);
        const std::string& name = names_.at(static_cast<size_t>(id));
        return name.empty() ? "_" + std::to_string(id) : name;
    }

private:
    std::mutex mutex_;
    std::deque<std::string> names_;
    std::unordered_map<std::string_view, int64_t> ids_;
};

SymbolNames& symbol_names() {
    static SymbolNames names;
    return names;
}

}  // namespace

Dim Dim::symbol(std::string_view name) {
    Dim dim;
    dim.code_ = ~symbol_names().intern(name);
    return dim;
}

Dim Dim::fresh() {
    Dim dim;
    dim.code_ = ~symbol_names().fresh();
    return dim;
}

int64_t Dim::size() const {
    check(is_static(), "size of a symbolic dimension");
    return code_;
}

std::string Dim::to_string() const {
    return is_static() ? std::to_string(code_) : symbol_names().name(symbol_id());
}

bool TensorType::is_static() const {
    for (Dim dim : shape) {
        if (dim.is_symbol()) {
            return false;
        }
    }
    return true;
}

int64_t TensorType::static_elements() const {
    int64_t elements = 1;
    bool overflow = false;
    for (Dim dim : shape) {
        if (dim == Dim(0)) {
            return 0;
        }
        overflow |= __builtin_mul_overflow(elements, dim.size(), &elements);
    }
    return overflow ? INT64_MAX : elements;
}

std::string shape_to_string(const Shape& shape) {
    std::string text = "[";
    for (size_t i = 0; i < shape.size(); ++i) {
        text += (i == 0 ? "" : ",") + shape[i].to_string();
    }
    return text + "]";
}

std::string TensorType::to_string() const {
    return std::string(dtype_name(dtype)) + shape_to_string(shape);
}

}  // namespace ember::ir
