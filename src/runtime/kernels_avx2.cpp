// The kernels for x86-64 with AVX2, FMA and F16C; compiled with flags of its own (CMakeLists.txt).
#if defined(__x86_64__)
#include "runtime/attention_kernels.h"
#include "runtime/gemm_kernels.h"
#include "runtime/half_kernels.h"
#include "runtime/quantized_kernels.h"

namespace ember::runtime {

const Kernels kKernelsAvx2 = {make_gemm_kernels<float>(), make_gemm_kernels<double>(), kHalfKernels,
                              EMBER_QUANT_KERNELS, kAttentionKernels};

}  // namespace ember::runtime
#endif
