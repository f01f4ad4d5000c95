// The pass merge_common; see passes.h.
#include "ember/rewrite/passes.h"

namespace ember::rewrite {

ir::Module merge_common(ir::Module module) {
    return module;
}

}  // namespace ember::rewrite
