// The kernels for x86-64 with AVX-512 F, BW, DQ and VL; compiled with flags of its own (CMakeLists.txt).
#if defined(__x86_64__)
#include "runtime/attention_kernels.h"
#include "runtime/gemm_kernels.h"
#include "runtime/half_kernels.h"
#include "runtime/quantized_kernels.h"

namespace ember::runtime {

const Kernels kKernelsAvx512 = {make_gemm_kernels<float>(), make_gemm_kernels<double>(), kHalfKernels,
                                EMBER_QUANT_KERNELS, kAttentionKernels};

}  // namespace ember::runtime
#endif
