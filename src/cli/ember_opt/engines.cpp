// One function an engine.
#include "cli/ember_opt/engines.h"

namespace ember::opt {

Result<Tensors> evaluate_reference(const ir::Module& module, Tensors inputs) {
    interp::EvaluateOptions options;
    options.max_tensor_bytes = int64_t{1} << 30;
    return interp::evaluate(module, std::move(inputs), options);
}

bool has_compiled_engine() {
    return false;
}

Result<Tensors> evaluate_compiled(const ir::Module&, Tensors) {
    return error(Code::kUnsupported, "this build has no compiled engine");
}

}  // namespace ember::opt
