// The reference evaluator: what a graph means, computed slowly and obviously. It is the oracle of every test, so it
// shares no code with lowering and code generation, and prefers accuracy to speed:
//   - f16, bf16 and f32 are computed in a wider type and rounded once a node; f64 transcendentals in long double;
//     +, -, *, / and sqrt are rounded correctly.
//   - Float sums and products of reductions, scans, contractions and scatter-adds are accumulated in double (f64: long
//     double) and rounded once. Integers wrap; integer division by 0 gives 0.
//   - cast from float to int truncates. Out of range it gives what x86-64 gives: the lowest value for i32 and i64; the
//     low bits of the i32 for i8, i16, u8, u16, and of the i64 for u32; u64 covers its range, negative values wrap.
//   - Where max, min, argmax, argmin meet a NaN, it wins; of equal values the first one wins, 0 and -0 being equal.
//   - bounds: "raise" takes -n..n-1, "wrap" any index modulo n, "clip" takes 0 for negative ones.
//   - scatter applies its updates in row-major order; with mode "set" the last one stays.
//   - An empty slice or update lies inside everywhere.
//   - Regions see the symbols of the graph around them; a symbol's own meaning in a region lasts for one run of it.
//   - A `while` loop keeps the step whose condition turned false; stacked results have the length of the steps run.
//   With
//     no step at all, lengths that only a step would tell are 0. Carried values keep their shape.
// Complex numbers have arithmetic, eq, ne, exponentials, powers and trigonometry; abs is complex with imaginary part 0.
// Tests: test/unit/interp_test.cpp, test/python/test_numpy_oracle.py.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "ember/interp/tensor.h"
#include "ember/ir/graph.h"

namespace ember::interp {

struct EvaluateOptions {
    /// Runs `host_call`: id and operands to results. Without it the op is kUnsupported.
    std::function<Result<std::vector<Tensor>>(std::string_view id, const std::vector<Tensor>& operands)> host_call = {};
    /// No tensor is made that is larger: kOutOfMemory.
    int64_t max_tensor_bytes = int64_t{1} << 32;
};

/// Runs the entry function. `inputs`: one tensor for every parameter, in order, shared and bound ones included. Gives
/// one tensor for every output, in order, updates included; the caller stores those back.
/// Errors name the op: kShape (lengths that do not fit: symbols, reshape, slice, negative), kIndex (index, axis and
/// length), kAssert (the op's message), kUnsupported (op and dtype), kInvalidArgument (inputs), kOutOfMemory.
/// The module must pass ir::verify.
Result<std::vector<Tensor>> evaluate(const ir::Module& module, std::vector<Tensor> inputs,
                                     const EvaluateOptions& options = {});
/// The same for one graph; `module` (may be null) holds the functions that it calls.
Result<std::vector<Tensor>> evaluate(const ir::Graph& graph, const ir::Module* module, std::vector<Tensor> inputs,
                                     const EvaluateOptions& options = {});

}  // namespace ember::interp
