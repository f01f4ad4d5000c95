// Edit distance over short names.
#include "ember/text/suggest.h"

#include <algorithm>
#include <numeric>

namespace ember::text {
namespace {

/// Insertions, deletions and replacements that turn one name into the other.
size_t edit_distance(std::string_view a, std::string_view b) {
    std::vector<size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 0; i < a.size(); ++i) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < b.size(); ++j) {
            size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
        }
    }
    return row.back();
}

}  // namespace

std::string did_you_mean(std::string_view name, const std::vector<std::string_view>& known) {
    static constexpr size_t kLongest = 40;
    std::string_view nearest;
    size_t least = name.size() > kLongest ? 0 : std::max<size_t>(name.size() / 3, 1) + 1;
    for (std::string_view candidate : known) {
        size_t distance = least == 0 ? 0 : edit_distance(name, candidate);
        if (distance < least) {
            least = distance;
            nearest = candidate;
        }
    }
    return nearest.empty() ? "" : "; did you mean '" + std::string(nearest) + "'?";
}

}  // namespace ember::text
