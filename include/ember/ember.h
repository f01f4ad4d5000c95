// The public C++ API: write a graph with variables, make a function of it, call it on tensors. What is compiled is kept
// on disk and found again by every process that builds the same graph, whatever the values.
//
//     using namespace ember;
//     Variable x = input({DType::kF32, {"n", 64}}, "x");
//     SharedVariable w = shared(Tensor::zeros(DType::kF32, {64, 10}), "w");
//     Variable loss = mean(square(dot(x, w)));
//     Function step = function({x}, loss, {{w, w - 0.1 * grad(loss, w)}});
//     float value = step(batch)[0].item<float>();
//
// Link with libember; libember-compiler.so stands beside it. Guide: docs/cpp-api.md.
// Tests: test/unit/api_test.cpp, examples/.
#pragma once

#include "ember/dlpack.h"
#include "ember/function.h"
#include "ember/ops.h"
#include "ember/tensor.h"
#include "ember/types.h"
#include "ember/variable.h"
