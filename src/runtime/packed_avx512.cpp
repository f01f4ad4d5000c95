// The kernels of packed weights for x86-64 with AVX-512 F, BW, DQ and VL; compiled with flags of its own
// (CMakeLists.txt).
#if defined(__x86_64__)
#include "runtime/packed_kernels.h"

namespace ember::runtime {

const PackedKernels kPackedAvx512 = kPackedKernels;

}  // namespace ember::runtime
#endif
