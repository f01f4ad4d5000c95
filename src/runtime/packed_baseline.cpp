// The kernels of packed weights for what every processor of the architecture has; compiled with flags of its own
// (CMakeLists.txt).
#include "runtime/packed_kernels.h"

namespace ember::runtime {

const PackedKernels kPackedBaseline = kPackedKernels;

}  // namespace ember::runtime
