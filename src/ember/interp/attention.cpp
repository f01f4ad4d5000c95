// Attention, token by token and position by position.
#include <algorithm>
#include <cmath>
#include <limits>

#include "ember/interp/call.h"
#include "ember/interp/number.h"

namespace ember::interp {

Result<Results> evaluate_attention(const Call& call) {
    const Tensor& q = call.operand(0);
    const Tensor& keys = call.operand(1);
    const Tensor& values = call.operand(2);
    int64_t first = call.number(3);
    int64_t tokens = q.shape[0], heads = q.shape[1], dim = q.shape[2];
    int64_t capacity = keys.shape[1], width = values.shape[2];
    bool divides = keys.shape[0] > 0 && heads % keys.shape[0] == 0 && values.shape[0] == keys.shape[0];
    if (!divides || keys.shape[2] != dim || values.shape[1] != capacity) {
        return call.fail(Code::kShape, "lengths do not match");
    }
    if (first < 0 || first > capacity - tokens) {
        return call.fail(Code::kIndex, std::to_string(tokens) + " tokens from position " + std::to_string(first) +
                                           " on do not lie in " + std::to_string(capacity) + " positions");
    }
    Lengths shape{tokens, heads, width};
    EMBER_CHECKED(call.admit(q.dtype, shape));
    int64_t group = heads / keys.shape[0];
    std::vector<double> result;
    for (int64_t t = 0; t < tokens; ++t) {
        for (int64_t h = 0; h < heads; ++h) {
            std::vector<double> weights;
            double most = -std::numeric_limits<double>::infinity();
            for (int64_t j = 0; j <= first + t; ++j) {
                double score = 0;
                for (int64_t i = 0; i < dim; ++i) {
                    score +=
                        q.at_double((t * heads + h) * dim + i) * keys.at_double((h / group * capacity + j) * dim + i);
                }
                most = std::isnan(score) ? score : std::max(most, score);
                weights.push_back(score);
            }
            double sum = 0;
            for (double& weight : weights) {
                weight = std::exp(weight - most);
                sum += weight;
            }
            for (int64_t c = 0; c < width; ++c) {
                double mixed = 0;
                for (int64_t j = 0; j <= first + t; ++j) {
                    mixed += weights[static_cast<size_t>(j)] / sum *
                             values.at_double((h / group * capacity + j) * width + c);
                }
                result.push_back(mixed);
            }
        }
    }
    return Results{narrow(q.dtype, shape, result)};
}

}  // namespace ember::interp
