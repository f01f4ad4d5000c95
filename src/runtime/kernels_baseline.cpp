// The kernels for any processor of the architecture Ember is built for.
#include "runtime/attention_kernels.h"
#include "runtime/gemm_kernels.h"
#include "runtime/half_kernels.h"
#include "runtime/quantized_kernels.h"

namespace ember::runtime {

const Kernels kKernelsBaseline = {make_gemm_kernels<float>(), make_gemm_kernels<double>(), kHalfKernels,
                                  EMBER_QUANT_KERNELS, kAttentionKernels};

}  // namespace ember::runtime
