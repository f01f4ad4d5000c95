// The walk over a graph: values by node, symbols by what they turned out to be, control flow by recursion.
#include "ember/interp/evaluate.h"

#include <algorithm>
#include <memory>
#include <new>
#include <unordered_map>

#include "ember/interp/call.h"

namespace ember::interp {
namespace {

using Value = std::shared_ptr<const Tensor>;
using Values = std::vector<Value>;

/// What symbols have turned out to be.
class Symbols {
public:
    std::optional<int64_t> find(ir::Dim dim) const {
        if (dim.is_static()) {
            return dim.size();
        }
        auto found = lengths_.find(dim.symbol_id());
        return found == lengths_.end() ? std::nullopt : std::optional<int64_t>(found->second);
    }

    /// Takes a value's lengths; an error where they contradict its type or an earlier value.
    Status bind(const ir::TensorType& type, const Tensor& tensor) {
        if (tensor.dtype != type.dtype || tensor.rank() != type.rank()) {
            return error(Code::kType, "has type " + std::string(ir::dtype_name(tensor.dtype)) +
                                          lengths_to_string(tensor.shape) + ", not " + type.to_string());
        }
        for (size_t i = 0; i < type.shape.size(); ++i) {
            std::optional<int64_t> known = find(type.shape[i]);
            if (known.has_value() && *known != tensor.shape[i]) {
                std::string symbol = type.shape[i].is_symbol() ? type.shape[i].to_string() + " = " : "";
                return error(Code::kShape, "axis " + std::to_string(i) + " has length " +
                                               std::to_string(tensor.shape[i]) + ", but its type " + type.to_string() +
                                               " asks for " + symbol + std::to_string(*known));
            }
            if (!known.has_value()) {
                lengths_.emplace(type.shape[i].symbol_id(), tensor.shape[i]);
            }
        }
        return {};
    }

private:
    std::unordered_map<int64_t, int64_t> lengths_;
};

/// The last node that reads each value; outputs are never dropped.
std::vector<ir::NodeId> last_uses(const ir::Graph& graph) {
    std::vector<ir::NodeId> last(graph.values.size(), ir::kNone);
    for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
        for (ir::ValueId operand : graph.nodes[id].operands) {
            last[operand] = id;
        }
    }
    for (const ir::Output& output : graph.outputs) {
        last[output.value] = ir::kNone;
    }
    return last;
}

class Evaluator {
public:
    Evaluator(const ir::Module* module, const EvaluateOptions& options) : module_(module), options_(options) {}

    Result<Values> run(const ir::Graph& graph, Values arguments, Symbols symbols);

private:
    Result<Values> run_node(const ir::Graph& graph, const ir::Node& node, const Values& operands, Symbols& symbols);
    Result<Values> run_if(const ir::Node& node, const Values& operands, const Symbols& symbols);
    Result<Values> run_loop(const Call& call, const Values& operands, const Symbols& symbols);
    Result<Values> run_call(const Call& call, const Values& operands);

    const ir::Module* module_;
    const EvaluateOptions& options_;
    int depth_ = 0;
};

constexpr int kMaxDepth = 200;

Diagnostic in_node(Diagnostic diagnostic, const ir::Graph& graph, ir::NodeId id) {
    diagnostic.notes.push_back("in @" + graph.name + ", node " + std::to_string(id) + " (" +
                               std::string(ir::op_name(graph.nodes[id].op)) + ")");
    return diagnostic;
}

Status bind_parameters(const ir::Graph& graph, const Values& arguments, Symbols& symbols) {
    for (size_t i = 0; i < graph.params.size(); ++i) {
        Status bound = symbols.bind(graph.type(graph.params[i].value), *arguments[i]);
        if (!bound.ok()) {
            return error(bound.error().code,
                         "@" + graph.name + ": parameter " + std::to_string(i) + ": " + bound.error().message);
        }
    }
    return {};
}

Result<Values> Evaluator::run(const ir::Graph& graph, Values arguments, Symbols symbols) {
    if (depth_ >= kMaxDepth) {
        return error(Code::kVerify, "@" + graph.name + ": calls and regions nest deeper than " +
                                        std::to_string(kMaxDepth) + "; is it recursive?");
    }
    EMBER_CHECKED(bind_parameters(graph, arguments, symbols));
    ++depth_;
    Values values(graph.values.size());
    for (size_t i = 0; i < graph.params.size(); ++i) {
        values[graph.params[i].value] = std::move(arguments[i]);
    }
    std::vector<ir::NodeId> last = last_uses(graph);
    for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
        const ir::Node& node = graph.nodes[id];
        Values operands;
        for (ir::ValueId operand : node.operands) {
            operands.push_back(values[operand]);
        }
        Result<Values> results = run_node(graph, node, operands, symbols);
        if (!results.ok()) {
            --depth_;
            return in_node(results.error(), graph, id);
        }
        for (uint32_t k = 0; k < node.result_count; ++k) {
            values[node.result(k)] = std::move(results.value()[k]);
        }
        for (ir::ValueId operand : node.operands) {
            values[operand] = last[operand] == id ? nullptr : values[operand];
        }
    }
    --depth_;
    Values outputs;
    for (const ir::Output& output : graph.outputs) {
        outputs.push_back(values[output.value]);
    }
    return outputs;
}

bool has_quantized(const Call& call) {
    return std::any_of(call.operands.begin(), call.operands.end(),
                       [](const Tensor* operand) { return ir::is_quantized(operand->dtype); });
}

bool takes_storage(ir::OpKind kind) {
    switch (kind) {
        case ir::OpKind::kCast:
        case ir::OpKind::kScalar:
        case ir::OpKind::kContract:
        case ir::OpKind::kGather:
        case ir::OpKind::kAssert:
        case ir::OpKind::kHost:
            return true;
        default:
            return false;
    }
}

Result<Results> run_simple(const Call& call) {
    check(takes_storage(ir::kind(call.node.op)) || !has_quantized(call),
          "the verifier lets quantised operands through");
    switch (ir::kind(call.node.op)) {
        case ir::OpKind::kMap:
            return evaluate_map(call);
        case ir::OpKind::kCast:
            return evaluate_cast(call);
        case ir::OpKind::kSource:
        case ir::OpKind::kScalar:
            return evaluate_source(call);
        case ir::OpKind::kReduce:
            return evaluate_reduce(call);
        case ir::OpKind::kArgReduce:
            return evaluate_arg_reduce(call);
        case ir::OpKind::kScan:
            return evaluate_scan(call);
        case ir::OpKind::kContract:
            return evaluate_contract(call);
        case ir::OpKind::kAttention:
            return evaluate_attention(call);
        case ir::OpKind::kView:
            return evaluate_view(call);
        case ir::OpKind::kPad:
            return evaluate_pad(call);
        case ir::OpKind::kConcat:
            return evaluate_concat(call);
        case ir::OpKind::kSplit:
            return evaluate_split(call);
        case ir::OpKind::kGather:
            return evaluate_gather(call);
        case ir::OpKind::kScatter:
            return evaluate_scatter(call);
        case ir::OpKind::kUpdate:
            return evaluate_update_slice(call);
        case ir::OpKind::kSort:
            return evaluate_sort(call);
        case ir::OpKind::kFind:
            return evaluate_find(call);
        case ir::OpKind::kAssert:
            return evaluate_assert(call);
        case ir::OpKind::kHost:
            return evaluate_host_call(call);
        case ir::OpKind::kControl:
            break;
    }
    unreachable("op kind");
}

Values shared(Results results) {
    Values values;
    for (Tensor& tensor : results) {
        values.push_back(std::make_shared<const Tensor>(std::move(tensor)));
    }
    return values;
}

Result<Values> Evaluator::run_node(const ir::Graph& graph, const ir::Node& node, const Values& operands,
                                   Symbols& symbols) {
    Call call{graph, node, {}, options_};
    for (const Value& operand : operands) {
        call.operands.push_back(operand.get());
    }
    auto dispatch = [&]() -> Result<Values> {
        switch (node.op) {
            case ir::Op::k_if:
                return run_if(node, operands, symbols);
            case ir::Op::k_loop:
                return run_loop(call, operands, symbols);
            case ir::Op::k_call:
                return run_call(call, operands);
            default: {
                EMBER_TRY(Results results, run_simple(call));
                return shared(std::move(results));
            }
        }
    };
    EMBER_TRY(Values results, dispatch());
    if (results.size() != node.result_count) {
        return call.fail(Code::kType, "gave " + std::to_string(results.size()) + " results, not " +
                                          std::to_string(node.result_count));
    }
    for (uint32_t k = 0; k < node.result_count; ++k) {
        Status bound = symbols.bind(graph.type(node.result(k)), *results[k]);
        if (!bound.ok()) {
            return call.fail(bound.error().code, "result " + std::to_string(k) + ": " + bound.error().message);
        }
    }
    return results;
}

Result<Values> Evaluator::run_if(const ir::Node& node, const Values& operands, const Symbols& symbols) {
    const ir::Graph& region = *node.regions[operands[0]->at_int(0) != 0 ? 0 : 1];
    return run(region, {operands.begin() + 1, operands.end()}, symbols);
}

Result<Values> Evaluator::run_call(const Call& call, const Values& operands) {
    std::string callee(call.node.string("callee"));
    const ir::Graph* function = module_ == nullptr ? nullptr : module_->find(callee);
    if (function == nullptr) {
        return call.fail(Code::kVerify, "no function @" + callee);
    }
    return run(*function, operands, {});
}

/// One stacked result of a loop as it grows.
struct Stack {
    Tensor tensor;
    bool started = false;

    Status push(const Call& call, const Tensor& step) {
        if (!started) {
            tensor = step;
            tensor.shape.insert(tensor.shape.begin(), 1);
            started = true;
            return {};
        }
        Lengths shape = step.shape;
        shape.insert(shape.begin(), tensor.shape[0]);
        if (shape != tensor.shape) {
            return call.fail(Code::kShape, "a stacked result changes its shape to " + lengths_to_string(step.shape) +
                                               " in step " + std::to_string(tensor.shape[0]));
        }
        ++shape[0];
        EMBER_CHECKED(call.admit(step.dtype, shape));
        tensor.shape = shape;
        tensor.bytes.insert(tensor.bytes.end(), step.bytes.begin(), step.bytes.end());
        return {};
    }
};

/// A stacked result of no step: lengths as far as the types tell them.
Tensor empty_stack(const ir::TensorType& step, const Symbols& symbols) {
    Lengths shape{0};
    for (ir::Dim dim : step.shape) {
        shape.push_back(symbols.find(dim).value_or(0));
    }
    return zeros(step.dtype, shape);
}

Result<Values> Evaluator::run_loop(const Call& call, const Values& operands, const Symbols& symbols) {
    const ir::Graph& body = *call.node.regions[0];
    auto carried = static_cast<size_t>(call.node.integer("carried"));
    bool may_stop = call.node.integer_or("while", 0) != 0;
    size_t stacked = body.outputs.size() - carried - (may_stop ? 1 : 0);
    int64_t steps = call.number(0);
    if (steps < 0) {
        return call.fail(Code::kShape, "negative number of steps " + std::to_string(steps));
    }
    Values state = operands;
    std::vector<Stack> stacks(stacked);
    bool go_on = true;
    for (int64_t i = 0; i < steps && go_on; ++i) {
        state[0] = std::make_shared<const Tensor>(scalar(ir::DType::kI64, i));
        EMBER_TRY(Values results, run(body, state, symbols));
        for (size_t k = 0; k < carried; ++k) {
            if (results[k]->shape != state[k + 1]->shape) {
                return call.fail(Code::kShape, "carried value " + std::to_string(k) + " turns from shape " +
                                                   lengths_to_string(state[k + 1]->shape) + " into " +
                                                   lengths_to_string(results[k]->shape));
            }
            state[k + 1] = results[k];
        }
        for (size_t k = 0; k < stacked; ++k) {
            EMBER_CHECKED(stacks[k].push(call, *results[carried + k]));
        }
        go_on = !may_stop || results.back()->at_int(0) != 0;
    }
    Values results(state.begin() + 1, state.begin() + 1 + static_cast<std::ptrdiff_t>(carried));
    Symbols scope = symbols;
    if (steps == 0) {
        state[0] = std::make_shared<const Tensor>(scalar(ir::DType::kI64, int64_t{0}));
        EMBER_CHECKED(bind_parameters(body, state, scope));
    }
    for (size_t k = 0; k < stacked; ++k) {
        Stack& stack = stacks[k];
        const ir::TensorType& type = body.type(body.outputs[carried + k].value);
        results.push_back(
            std::make_shared<const Tensor>(stack.started ? std::move(stack.tensor) : empty_stack(type, scope)));
    }
    return results;
}

}  // namespace

Result<Results> evaluate_assert(const Call& call) {
    for (size_t k = 1; k < call.operands.size(); ++k) {
        const std::vector<char>& bytes = call.operand(k).bytes;
        if (std::find(bytes.begin(), bytes.end(), 0) != bytes.end()) {
            return error(Code::kAssert, std::string(call.node.string("message")));
        }
    }
    return Results{call.operand(0)};
}

Result<Results> evaluate_host_call(const Call& call) {
    std::string id(call.node.string("id"));
    if (!call.options.host_call) {
        return call.fail(Code::kUnsupported, "no handler for host function \"" + id + "\"");
    }
    Results operands;
    for (const Tensor* operand : call.operands) {
        operands.push_back(*operand);
    }
    EMBER_TRY(Results results, call.options.host_call(id, operands));
    for (const Tensor& result : results) {
        EMBER_CHECKED(verify(result));
    }
    return results;
}

Result<std::vector<Tensor>> evaluate(const ir::Graph& graph, const ir::Module* module, std::vector<Tensor> inputs,
                                     const EvaluateOptions& options) {
    if (inputs.size() != graph.params.size()) {
        return error(Code::kInvalidArgument, "@" + graph.name + " takes " + std::to_string(graph.params.size()) +
                                                 " inputs, not " + std::to_string(inputs.size()));
    }
    for (const Tensor& input : inputs) {
        EMBER_CHECKED(verify(input));
    }
    try {
        EMBER_TRY(Values values, Evaluator(module, options).run(graph, shared(std::move(inputs)), {}));
        Results results;
        for (const Value& value : values) {
            results.push_back(*value);
        }
        return results;
    } catch (const std::bad_alloc&) {
        return error(Code::kOutOfMemory, "@" + graph.name + ": out of memory");
    }
}

Result<std::vector<Tensor>> evaluate(const ir::Module& module, std::vector<Tensor> inputs,
                                     const EvaluateOptions& options) {
    return evaluate(module.entry(), &module, std::move(inputs), options);
}

}  // namespace ember::interp
