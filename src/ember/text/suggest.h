// "did you mean": the nearest of the known names. Tests: test/filetests/parse/errors.ember.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ember::text {

/// "; did you mean 'floor'?", or nothing where no name is near.
std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& known);

}  // namespace ember::text
