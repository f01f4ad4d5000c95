// The pass decompose; see passes.h.
#include "ember/rewrite/passes.h"

namespace ember::rewrite {

ir::Module decompose(ir::Module module) {
    return module;
}

}  // namespace ember::rewrite
