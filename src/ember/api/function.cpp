// Making functions: the nodes that outputs need are copied from the tape, in canonical order, with the parameters they
// read. Saving and loading them as text. See function.h, and function.h among the public headers.
#include "ember/api/function.h"

#include <algorithm>
#include <map>
#include <unordered_set>

#include "ember/autodiff/grad.h"
#include "ember/support/file.h"
#include "ember/text/parse.h"
#include "ember/text/print.h"

namespace ember {
namespace {

using api::Access;
using api::Leaf;
using api::raise;
using api::Tape;

constexpr uint64_t kMaxTextBytes = uint64_t{1} << 30;

/// Functions of one folder share its cache.
std::shared_ptr<Cache> cache_in(const std::string& folder) {
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<Cache>> caches;
    std::lock_guard lock(mutex);
    std::shared_ptr<Cache>& cache = caches[folder];
    if (cache == nullptr) {
        CacheOptions options;
        options.dir = folder;
        cache = Cache::open(options);
    }
    return cache;
}

driver::Options driver_options(const FunctionOptions& options) {
    driver::Options made;
    made.cpu = options.cpu;
    made.disabled_passes = options.disabled_passes;
    made.cache = options.cache_folder.empty() ? nullptr : cache_in(options.cache_folder);
    return made;
}

/// Builds a module out of a tape.
class Extraction {
public:
    explicit Extraction(Tape& tape) : tape_(tape), from_(tape.builder().graph()) {
        map_.resize(from_.values.size(), ir::kNone);
    }

    void add_inputs(const std::vector<ir::ValueId>& inputs);
    void add_body(const std::vector<ir::ValueId>& roots);
    void add_outputs(const std::vector<ir::ValueId>& outputs, const std::vector<Update>& updates);
    Function finish(const FunctionOptions& options) {
        ir::Module module;
        module.functions.push_back(made_.take());
        return api::make_function(std::move(module), std::move(params_), options);
    }

private:
    void add_param(ir::ValueId id, const Leaf& leaf);
    /// A parameter that is read: state comes in by itself, an input must be among the inputs.
    void need(ir::ValueId id);
    uint32_t add_update(const Update& update, ir::ValueId value);

    Tape& tape_;
    const ir::Graph& from_;
    ir::GraphBuilder made_;
    std::vector<ir::ValueId> map_;  // of the tape → of the module
    std::vector<Leaf> params_;
    std::unordered_set<ir::ValueId> updated_;
};

void Extraction::add_param(ir::ValueId id, const Leaf& leaf) {
    map_[id] = made_.param(from_.type(id), leaf.kind);
    params_.push_back(leaf);
}

void Extraction::add_inputs(const std::vector<ir::ValueId>& inputs) {
    for (ir::ValueId id : inputs) {
        const Leaf* leaf = tape_.find_leaf(id);
        if (leaf == nullptr || leaf->kind != ir::ParamKind::kInput) {
            raise(ErrorCode::kInvalidArgument,
                  "function: a " + from_.type(id).to_string() + " among the inputs is none: input() makes one");
        }
        if (map_[id] != ir::kNone) {
            raise(ErrorCode::kInvalidArgument, "function: input '" + leaf->name + "' comes twice");
        }
        add_param(id, *leaf);
    }
}

void Extraction::need(ir::ValueId id) {
    if (map_[id] != ir::kNone) {
        return;
    }
    const Leaf* leaf = tape_.find_leaf(id);
    check(leaf != nullptr, "a value is made before it is used");
    if (leaf->kind == ir::ParamKind::kInput) {
        raise(ErrorCode::kInvalidArgument, "function: the outputs need input '" + leaf->name + "', a " +
                                               from_.type(id).to_string() + " that is not among the inputs");
    }
    add_param(id, *leaf);
}

void Extraction::add_body(const std::vector<ir::ValueId>& roots) {
    ir::Graph wanted = from_;
    for (ir::ValueId root : roots) {
        wanted.outputs.push_back({root});
    }
    std::vector<ir::NodeId> order = ir::canonical_order(wanted);
    for (ir::NodeId id : order) {
        for (ir::ValueId operand : wanted.nodes[id].operands) {
            if (from_.producer(operand) == nullptr) {
                need(operand);
            }
        }
    }
    for (ir::ValueId root : roots) {
        if (from_.producer(root) == nullptr) {
            need(root);
        }
    }
    for (ir::NodeId id : order) {
        ir::copy_node(wanted, wanted.nodes[id], made_, map_);
    }
}

uint32_t Extraction::add_update(const Update& update, ir::ValueId value) {
    const api::State& state = *Access::state(update.variable);
    const ir::TensorType& type = made_.type(map_[value]);
    std::string text = "function: the update of shared '" + state.name + "', a " + state.type.to_string() + ", is a " +
                       type.to_string();
    if (type.dtype != state.type.dtype) {
        raise(ErrorCode::kType, text);
    }
    bool fits = type.rank() == state.type.rank();
    for (size_t axis = 0; fits && axis < type.shape.size(); ++axis) {
        ir::Dim want = state.type.shape[axis];
        ir::Dim has = type.shape[axis];
        fits = want.is_symbol() || has.is_symbol() || want == has;
    }
    if (!fits) {
        raise(ErrorCode::kShape, text);
    }
    ir::ValueId id = tape_.import(update.variable);
    if (!updated_.insert(id).second) {
        raise(ErrorCode::kInvalidArgument, "function: shared '" + state.name + "' is updated twice");
    }
    need(id);
    return made_.graph().values[map_[id]].index;
}

void Extraction::add_outputs(const std::vector<ir::ValueId>& outputs, const std::vector<Update>& updates) {
    for (ir::ValueId id : outputs) {
        made_.output(map_[id]);
    }
    for (const Update& update : updates) {
        ir::ValueId value = tape_.import(update.value);
        uint32_t param = add_update(update, value);
        made_.output(map_[value], param);
    }
}

std::vector<ir::ValueId> import_all(Tape& tape, const std::vector<Variable>& variables) {
    std::vector<ir::ValueId> ids;
    for (const Variable& variable : variables) {
        ids.push_back(tape.import(variable));
    }
    return ids;
}

/// A tape of any of them: they are checked against each other when they are imported.
std::shared_ptr<Tape> tape_of(const std::vector<Variable>& inputs, const std::vector<Variable>& outputs,
                              const std::vector<Update>& updates) {
    if (!inputs.empty()) {
        return Access::tape(inputs[0]);
    }
    if (!outputs.empty()) {
        return Access::tape(outputs[0]);
    }
    return updates.empty() ? Tape::outermost() : Access::tape(updates[0].value);
}

}  // namespace

Function api::make_function(ir::Module module, std::vector<Leaf> params, const FunctionOptions& options) {
    auto impl = std::make_shared<Function::Impl>();
    unwrap(ir::verify(module));
    impl->code = unwrap(driver::compile_or_load(module, driver_options(options)));
    std::map<State*, bool> locks;
    for (size_t k = 0; k < params.size(); ++k) {
        if (params[k].kind == ir::ParamKind::kInput) {
            impl->inputs.push_back(k);
        } else if (params[k].state != nullptr) {
            locks.try_emplace(params[k].state.get(), false);
        }
    }
    const std::vector<ir::Output>& outputs = module.entry().outputs;
    for (size_t k = 0; k < outputs.size(); ++k) {
        if (outputs[k].updates == ir::kNone) {
            impl->results.push_back(k);
        } else {
            locks[params[outputs[k].updates].state.get()] = true;
        }
    }
    for (auto [state, writes] : locks) {
        impl->locks.push_back({state, writes});
    }
    impl->module = std::move(module);
    impl->params = std::move(params);
    return Access::function(std::move(impl));
}

Function function(const std::vector<Variable>& inputs, const std::vector<Variable>& outputs,
                  const std::vector<Update>& updates, const FunctionOptions& options) {
    return api::guarded([&] {
        std::shared_ptr<Tape> tape = tape_of(inputs, outputs, updates);
        std::lock_guard lock(tape->mutex());
        Extraction extraction(*tape);
        std::vector<ir::ValueId> wanted = import_all(*tape, outputs);
        std::vector<ir::ValueId> roots = wanted;
        for (const Update& update : updates) {
            roots.push_back(tape->import(update.value));
        }
        extraction.add_inputs(import_all(*tape, inputs));
        extraction.add_body(roots);
        extraction.add_outputs(wanted, updates);
        return extraction.finish(options);
    });
}

Function function(const std::vector<Variable>& inputs, const Variable& output, const std::vector<Update>& updates,
                  const FunctionOptions& options) {
    return function(inputs, std::vector<Variable>{output}, updates, options);
}

std::vector<Tensor> Function::operator()(const std::vector<Tensor>& inputs) const {
    return api::guarded([&] { return impl_->call(inputs); });
}

Origin Function::origin() const {
    const driver::Origin& origin = impl_->code->origin();
    return {std::string(outcome_name(origin.status)),
            std::string(reason_name(origin.reason)),
            origin.key.hex(),
            origin.compile_seconds,
            origin.load_seconds,
            origin.kernels,
            origin.artifact_bytes};
}

std::vector<Type> Function::inputs() const {
    std::vector<Type> types;
    for (size_t param : impl_->inputs) {
        types.push_back(api::from_ir(impl_->code->parameters()[param]));
    }
    return types;
}

std::vector<Type> Function::outputs() const {
    std::vector<Type> types;
    for (size_t output : impl_->results) {
        types.push_back(api::from_ir(impl_->code->outputs()[output]));
    }
    return types;
}

std::vector<Tensor> Function::state() const {
    std::vector<Tensor> values;
    for (const Leaf& leaf : impl_->params) {
        if (leaf.kind == ir::ParamKind::kShared) {
            std::shared_lock lock(leaf.state->mutex);
            values.push_back(leaf.state->value.copy());
        } else if (leaf.kind == ir::ParamKind::kBound) {
            values.push_back(leaf.data);
        }
    }
    return values;
}

std::string Function::text() const {
    return text::print(impl_->module);
}

void Function::save(const std::string& path) const {
    api::unwrap(write_file(path, text()));
}

Function load_function(const std::string& path, const std::vector<Tensor>& state, const FunctionOptions& options) {
    return api::guarded([&] {
        std::string text = api::unwrap(read_file(path, kMaxTextBytes));
        ir::Module module = api::unwrap(text::parse(text, path));
        const ir::Graph& entry = module.entry();
        std::vector<Leaf> params;
        size_t next = 0;
        for (const ir::Param& param : entry.params) {
            Leaf leaf{param.kind, "", nullptr, {}};
            if (param.kind != ir::ParamKind::kInput && next < state.size()) {
                leaf.data = state[next];
                api::check_value(path + ": parameter " + std::to_string(params.size()), entry.type(param.value),
                                 leaf.data);
            }
            if (param.kind == ir::ParamKind::kShared) {
                leaf.state = std::make_shared<api::State>();
                leaf.state->type = entry.type(param.value);
                leaf.state->value = leaf.data.copy();
            }
            next += param.kind == ir::ParamKind::kInput ? 0 : 1;
            params.push_back(std::move(leaf));
        }
        if (next != state.size()) {
            raise(ErrorCode::kInvalidArgument, path + ": the function has " + std::to_string(next) +
                                                   " shared and bound parameters, not " + std::to_string(state.size()));
        }
        return api::make_function(std::move(module), std::move(params), options);
    });
}

std::vector<Variable> grad(const Variable& cost, const std::vector<Variable>& wrt) {
    return api::guarded([&] {
        std::shared_ptr<Tape> tape = Tape::of({cost});
        std::lock_guard lock(tape->mutex());
        ir::ValueId of = tape->import(cost);
        return tape->variables(api::unwrap(autodiff::gradient(tape->builder(), of, import_all(*tape, wrt))));
    });
}

Variable grad(const Variable& cost, const Variable& wrt) {
    return grad(cost, std::vector<Variable>{wrt}).at(0);
}

namespace {

/// Values and their derivatives, which must have the same types.
std::vector<autodiff::Seed> seeds(std::string_view op, Tape& tape, const std::vector<Variable>& values,
                                  const std::vector<Variable>& derivatives) {
    if (values.size() != derivatives.size()) {
        raise(ErrorCode::kInvalidArgument, std::string(op) + ": " + std::to_string(values.size()) + " values and " +
                                               std::to_string(derivatives.size()) + " derivatives");
    }
    std::vector<autodiff::Seed> made;
    for (size_t k = 0; k < values.size(); ++k) {
        Type wanted = values[k].type();
        if (Type given = derivatives[k].type(); given != wanted) {
            raise(given.dtype == wanted.dtype ? ErrorCode::kShape : ErrorCode::kType,
                  std::string(op) + ": the derivative that belongs to a " + wanted.to_string() + " is a " +
                      given.to_string());
        }
        made.push_back({tape.import(values[k]), tape.import(derivatives[k])});
    }
    return made;
}

}  // namespace

std::vector<Variable> pull_back(const std::vector<Variable>& of, const std::vector<Variable>& cotangents,
                                const std::vector<Variable>& wrt) {
    return api::guarded([&] {
        std::shared_ptr<Tape> tape = Tape::of(of);
        std::lock_guard lock(tape->mutex());
        std::vector<autodiff::Seed> given = seeds("pull_back", *tape, of, cotangents);
        return tape->variables(api::unwrap(autodiff::pull_back(tape->builder(), given, import_all(*tape, wrt))));
    });
}

std::vector<Variable> push_forward(const std::vector<Variable>& of, const std::vector<Variable>& wrt,
                                   const std::vector<Variable>& tangents) {
    return api::guarded([&] {
        std::shared_ptr<Tape> tape = Tape::of(of);
        std::lock_guard lock(tape->mutex());
        std::vector<autodiff::Seed> given = seeds("push_forward", *tape, wrt, tangents);
        return tape->variables(api::unwrap(autodiff::push_forward(tape->builder(), given, import_all(*tape, of))));
    });
}

}  // namespace ember
