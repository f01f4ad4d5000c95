// The kernels of packed weights for x86-64 with AVX2, FMA and F16C; compiled with flags of its own (CMakeLists.txt).
#if defined(__x86_64__)
#include "runtime/packed_kernels.h"

namespace ember::runtime {

const PackedKernels kPackedAvx2 = kPackedKernels;

}  // namespace ember::runtime
#endif
