// if_() and loop(): lambdas write regions, what they use from outside becomes operands. See ops.h among the public
// headers, and tape.h.
#include "ember/api/tape.h"
#include "ember/ops.h"

namespace ember {
namespace {

using api::RegionScope;

/// Ends a region with these results.
ir::Graph finish(api::Tape& tape, const std::vector<Variable>& results) {
    for (const Variable& result : results) {
        tape.builder().output(tape.import(result));
    }
    return tape.builder().graph();  // a copy: variables that a lambda leaks still have types
}

/// A branch that has been written: its region and the outer value of every parameter.
struct Written {
    ir::Graph region;
    std::vector<Variable> operands;
};

Written write_branch(const Branch& branch) {
    RegionScope scope;
    std::vector<Variable> results = branch();
    Written made;
    made.region = finish(scope.tape(), results);
    made.operands = scope.tape().captured();
    return made;
}

/// Adds parameters for operands that only the other branch uses, so that both have the same ones.
void align(Written& written, const std::vector<Variable>& operands) {
    std::vector<ir::Param> params;
    for (const Variable& operand : operands) {
        size_t k = 0;
        while (k < written.operands.size() && api::Access::id(written.operands[k]) != api::Access::id(operand)) {
            ++k;
        }
        if (k < written.operands.size()) {
            params.push_back(written.region.params[k]);
            continue;
        }
        auto id = static_cast<ir::ValueId>(written.region.values.size());
        written.region.values.push_back({api::Access::tape(operand)->builder().type(api::Access::id(operand))});
        params.push_back({id});
    }
    written.region.params = params;
    for (uint32_t k = 0; k < params.size(); ++k) {
        written.region.values[params[k].value].index = k;
    }
}

/// The operands of both branches, each once.
std::vector<Variable> joined(const Written& yes, const Written& no) {
    std::vector<Variable> operands = yes.operands;
    for (const Variable& operand : no.operands) {
        bool known = false;
        for (const Variable& other : yes.operands) {
            known = known || api::Access::id(other) == api::Access::id(operand);
        }
        if (!known) {
            operands.push_back(operand);
        }
    }
    return operands;
}

/// Numbers of rounds and of what is carried agree.
void check_step(const LoopStep& step, size_t carried) {
    if (step.carried.size() != carried) {
        api::raise(ErrorCode::kInvalidArgument, "loop: starts with " + std::to_string(carried) +
                                                    " carried values, a round gives " +
                                                    std::to_string(step.carried.size()));
    }
}

std::vector<Variable> results_of(const LoopStep& step) {
    std::vector<Variable> results = step.carried;
    results.insert(results.end(), step.stacked.begin(), step.stacked.end());
    if (step.go_on) {
        results.push_back(*step.go_on);
    }
    return results;
}

}  // namespace

std::vector<Variable> if_(const Variable& condition, const Branch& then_branch, const Branch& else_branch) {
    return api::guarded([&] {
        Written yes = write_branch(then_branch);
        Written no = write_branch(else_branch);
        std::vector<Variable> operands = joined(yes, no);
        align(yes, operands);
        align(no, operands);
        operands.insert(operands.begin(), condition);
        return api::emit(
            ir::Op::k_if, operands, {},
            {std::make_shared<ir::Graph>(std::move(yes.region)), std::make_shared<ir::Graph>(std::move(no.region))});
    });
}

LoopResult loop(const Operand& n, const std::vector<Variable>& first, const LoopBody& body) {
    return api::guarded([&] {
        std::vector<Variable> operands{api::as_index("loop", n)};
        operands.insert(operands.end(), first.begin(), first.end());
        std::vector<ir::TensorType> types{{ir::DType::kI64, {}}};
        for (const Variable& value : first) {
            types.push_back(api::Access::tape(value)->builder().type(api::Access::id(value)));
        }
        ir::Graph region;
        bool may_stop = false;
        {
            RegionScope scope;
            std::vector<Variable> params;
            for (const ir::TensorType& type : types) {
                params.push_back(scope.tape().variable(scope.tape().builder().param(type)));
            }
            LoopStep step = body(params[0], std::vector<Variable>(params.begin() + 1, params.end()));
            check_step(step, first.size());
            may_stop = step.go_on.has_value();
            region = finish(scope.tape(), results_of(step));
            std::vector<Variable> captured = scope.tape().captured();
            operands.insert(operands.end(), captured.begin(), captured.end());
        }
        auto carried = static_cast<int64_t>(first.size());
        std::vector<Variable> results =
            api::emit(ir::Op::k_loop, operands, {{"carried", carried}, {"while", int64_t{may_stop}}},
                      {std::make_shared<ir::Graph>(std::move(region))});
        return LoopResult{{results.begin(), results.begin() + carried}, {results.begin() + carried, results.end()}};
    });
}

}  // namespace ember
