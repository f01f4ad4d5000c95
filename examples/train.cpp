// A perceptron with one hidden layer learns which points lie inside a circle, by gradient descent. The weights are
// state: a step updates them in their own memory. Ends with status 1 unless the loss fell below a fifth.
#include <cstdio>
#include <random>

#include "ember/ember.h"

using namespace ember;

namespace {

constexpr int64_t kPoints = 256;
constexpr int64_t kHidden = 32;
constexpr int kSteps = 500;

std::mt19937 generator(7);

/// Between -1 and 1.
float random_number() {
    return static_cast<float>(generator()) / 2147483648.0F - 1.0F;
}

Tensor random_tensor(std::vector<int64_t> shape) {
    Tensor made = Tensor::empty(DType::kF32, std::move(shape));
    for (int64_t i = 0; i < made.size(); ++i) {
        made.data_as<float>()[i] = random_number();
    }
    return made;
}

/// 1 inside the circle, else 0.
Tensor labels(const Tensor& points) {
    Tensor made = Tensor::empty(DType::kF32, {points.shape()[0], 1});
    const float* xy = points.data_as<float>();
    for (int64_t i = 0; i < made.size(); ++i) {
        made.data_as<float>()[i] = xy[2 * i] * xy[2 * i] + xy[2 * i + 1] * xy[2 * i + 1] < 0.5F ? 1.0F : 0.0F;
    }
    return made;
}

Function make_step() {
    Variable x = input({DType::kF32, {"points", 2}}, "x");
    Variable y = input({DType::kF32, {"points", 1}}, "y");
    SharedVariable w1 = shared(random_tensor({2, kHidden}), "w1");
    SharedVariable b1 = shared(Tensor::zeros(DType::kF32, {kHidden}), "b1");
    SharedVariable w2 = shared(random_tensor({kHidden, 1}), "w2");
    SharedVariable b2 = shared(Tensor::zeros(DType::kF32, {1}), "b2");

    Variable score = dot(tanh(dot(x, w1) + b1), w2) + b2;
    // The negative logarithm of the probability of the right answer.
    Variable loss = mean(softplus(score) - y * score);

    std::vector<SharedVariable> weights{w1, b1, w2, b2};
    std::vector<Variable> gradients = grad(loss, {weights.begin(), weights.end()});
    std::vector<Update> updates;
    for (size_t k = 0; k < weights.size(); ++k) {
        updates.push_back({weights[k], weights[k] - 1.0 * gradients[k]});
    }
    return function({x, y}, loss, updates);
}

}  // namespace

int main() {
    try {
        Function step = make_step();
        std::printf("status: %s\n", step.cache_status().c_str());
        Tensor points = random_tensor({kPoints, 2});
        Tensor targets = labels(points);
        float first = 0;
        float last = 0;
        for (int round = 0; round < kSteps; ++round) {
            last = step(points, targets)[0].item<float>();
            first = round == 0 ? last : first;
            if (round % 100 == 0 || round == kSteps - 1) {
                std::printf("step %3d: loss %.4f\n", round, static_cast<double>(last));
            }
        }
        return last < first / 5 ? 0 : 1;
    } catch (const Error& error) {
        std::fprintf(stderr, "train: %s\n", error.what());
        return 1;
    }
}
