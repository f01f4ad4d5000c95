// The message of a failed check: see check.h.
#include "ember/support/check.h"

namespace ember {

void fail_check(std::string_view what, std::source_location where) {
    std::string file = where.file_name();
    if (auto slash = file.rfind('/'); slash != std::string::npos) {
        file.erase(0, slash + 1);
    }
    throw InternalError("internal error: " + std::string(what) + " (" + file + ":" + std::to_string(where.line()) +
                        ")");
}

}  // namespace ember
