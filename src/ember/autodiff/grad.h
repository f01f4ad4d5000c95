// Automatic differentiation, graph to graph: appends to the builder's graph the nodes that compute derivatives of its
// values. Maps follow the derivative column of the op table; every other op has one rule in this folder. Integers and
// bools carry no derivative. An op without a derivative on the way is an error that names it; complex values are not
// supported yet. Tests: test/unit/autodiff_test.cpp (every row of the table against numerical differences).
#pragma once

#include <span>
#include <vector>

#include "ember/ir/builder.h"
#include "ember/support/result.h"

namespace ember::autodiff {

/// A value of the graph and the derivative that belongs to it, of the same type: the cotangent (of the cost with
/// respect to the value) in reverse mode, the tangent (of the value with respect to the inputs) in forward mode.
struct Seed {
    ir::ValueId value;
    ir::ValueId derivative;
};

/// Reverse mode: the gradients of a float scalar with respect to float values, each of the value's type. Zeros where
/// the cost does not depend on a value.
Result<std::vector<ir::ValueId>> gradient(ir::GraphBuilder& builder, ir::ValueId cost,
                                          std::span<const ir::ValueId> wrt);

/// Reverse mode from given cotangents (vector-Jacobian product).
Result<std::vector<ir::ValueId>> pull_back(ir::GraphBuilder& builder, std::span<const Seed> cotangents,
                                           std::span<const ir::ValueId> wrt);

/// Forward mode from given tangents (Jacobian-vector product): the tangents of `of`, zeros where they do not depend on
/// the seeds.
Result<std::vector<ir::ValueId>> push_forward(ir::GraphBuilder& builder, std::span<const Seed> tangents,
                                              std::span<const ir::ValueId> of);

}  // namespace ember::autodiff
