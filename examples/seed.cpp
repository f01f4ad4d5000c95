// A matrix product with weights made from a seed: `seed 1`, then `seed 2`. The second process finds the code that the
// first one compiled, for the weights are no part of the graph.
#include <cstdio>
#include <cstdlib>
#include <random>

#include "ember/ember.h"

using namespace ember;

namespace {

Tensor random_weights(unsigned seed, int64_t rows, int64_t columns) {
    std::mt19937 generator(seed);
    std::vector<float> values(static_cast<size_t>(rows * columns));
    for (float& value : values) {
        value = static_cast<float>(generator()) / 4294967296.0F - 0.5F;
    }
    return Tensor::from(values, {rows, columns});
}

}  // namespace

int main(int argc, char** argv) {
    try {
        auto seed = static_cast<unsigned>(argc > 1 ? std::atoi(argv[1]) : 1);
        Variable x = input({DType::kF32, {"n", 64}}, "x");
        SharedVariable w = shared(random_weights(seed, 64, 64), "w");
        Function multiply = function({x}, dot(x, w));

        double checksum = 0;
        for (float value : multiply(random_weights(0, 8, 64))[0].to_vector<float>()) {
            checksum += static_cast<double>(value);
        }
        Origin origin = multiply.origin();
        std::printf("status: %s\nkey: %s\nchecksum: %.9g\n", origin.cache_status.c_str(), origin.key.c_str(), checksum);
        std::printf("compiled in %.1f ms, loaded in %.1f ms\n", origin.compile_seconds * 1e3,
                    origin.load_seconds * 1e3);
    } catch (const Error& error) {
        std::fprintf(stderr, "seed: %s\n", error.what());
        return 1;
    }
    return 0;
}
