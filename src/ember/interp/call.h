// What the evaluation of one node sees, and the evaluators of the kinds of ops. Each gives the node's results; their
// types are checked against the graph by evaluate.cpp. Tests: test/unit/interp_test.cpp.
#pragma once

#include <string>
#include <vector>

#include "ember/interp/evaluate.h"
#include "ember/interp/tensor.h"
#include "ember/ir/graph.h"
#include "ember/support/result.h"

namespace ember::interp {

struct Call {
    const ir::Graph& graph;
    const ir::Node& node;
    std::vector<const Tensor*> operands;
    const EvaluateOptions& options;

    const Tensor& operand(size_t k) const { return *operands[k]; }
    const ir::TensorType& type(size_t k) const { return graph.type(node.operands[k]); }
    /// An i64 scalar.
    int64_t number(size_t k) const { return operand(k).at_int(0); }

    /// "op: what; operands: f32[2] f32[3]".
    Diagnostic fail(Code code, const std::string& what) const;
    Diagnostic unsupported() const;
    /// May a tensor like this be made?
    Status admit(ir::DType dtype, const Lengths& shape) const;
    /// The i64 scalars from operand `first` on as lengths, none negative.
    Result<Lengths> lengths_from(size_t first) const;
};

using Results = std::vector<Tensor>;

Result<Results> evaluate_map(const Call& call);
Result<Results> evaluate_cast(const Call& call);
Result<Results> evaluate_source(const Call& call);
Result<Results> evaluate_reduce(const Call& call);
Result<Results> evaluate_arg_reduce(const Call& call);
Result<Results> evaluate_scan(const Call& call);
Result<Results> evaluate_contract(const Call& call);
Result<Results> evaluate_attention(const Call& call);
Result<Results> evaluate_view(const Call& call);
Result<Results> evaluate_pad(const Call& call);
Result<Results> evaluate_concat(const Call& call);
Result<Results> evaluate_split(const Call& call);
Result<Results> evaluate_update_slice(const Call& call);
Result<Results> evaluate_gather(const Call& call);
Result<Results> evaluate_scatter(const Call& call);
Result<Results> evaluate_sort(const Call& call);
Result<Results> evaluate_searchsorted(const Call& call);
Result<Results> evaluate_find(const Call& call);
Result<Results> evaluate_assert(const Call& call);
Result<Results> evaluate_host_call(const Call& call);

/// Operands of some operands' broadcast shape: the lengths, and for each operand the element that stands at each place.
/// An axis that the type knows to be 1 stretches, others must be equal.
struct Broadcast {
    Lengths lengths;
    std::vector<std::vector<int64_t>> sources;
};
Result<Broadcast> broadcast_operands(const Call& call, const std::vector<size_t>& which);

/// Element `at` of `indices` as an index into an axis of operand 0, as the node's `bounds` says.
Result<int64_t> resolve_index(const Call& call, int64_t axis, const Tensor& indices, int64_t at);

}  // namespace ember::interp
