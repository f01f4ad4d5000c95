// Reading, appending to and replacing the file of totals. See usage.h for the grammar.
#include "ember/cache/usage.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <string_view>

namespace ember {
namespace {

constexpr off_t kLongestUsage = 1 << 16;

std::optional<uint64_t> take_number(std::string_view& text, char end) {
    uint64_t number = 0;
    auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
    size_t size = static_cast<size_t>(stop - text.data());
    if (failure != std::errc() || size == text.size() || text[size] != end) {
        return std::nullopt;
    }
    text.remove_prefix(size + 1);
    return number;
}

/// Applies the change that `text` begins with; false when it is none.
bool take_change(std::string_view& text, Totals& totals) {
    char sign = text[0];
    text.remove_prefix(1);
    auto bytes = take_number(text, '\n');
    if (!bytes || (sign != '+' && sign != '-')) {
        return false;
    }
    if (sign == '+') {
        totals.bytes += *bytes;
        totals.count += 1;
    } else {
        totals.bytes -= std::min(totals.bytes, *bytes);
        totals.count -= std::min<uint64_t>(totals.count, 1);
    }
    return true;
}

std::optional<Totals> parse_usage(std::string_view text) {
    if (!text.starts_with("= ")) {
        return std::nullopt;
    }
    text.remove_prefix(2);
    auto bytes = take_number(text, ' ');
    auto count = bytes ? take_number(text, '\n') : std::nullopt;
    if (!count) {
        return std::nullopt;
    }
    Totals totals{*bytes, *count};
    while (!text.empty()) {
        if (!take_change(text, totals)) {
            return std::nullopt;
        }
    }
    return totals;
}

}  // namespace

std::optional<Totals> UsageFile::load() const {
    Fd fd(*fs_, fs_->open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
    struct stat info{};
    if (!fd || fs_->fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > kLongestUsage) {
        return std::nullopt;
    }
    std::string text(static_cast<size_t>(info.st_size), '\0');
    if (read_exactly(*fs_, fd.get(), text.data(), text.size()) != 0) {
        return std::nullopt;
    }
    return parse_usage(text);
}

void UsageFile::append(char sign, uint64_t bytes) const {
    // Never creates: a file without a base would hide what there was before.
    Fd fd(*fs_, fs_->open(path_.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK, 0));
    if (fd) {
        (void)write_all(*fs_, fd.get(), sign + std::to_string(bytes) + "\n");
    }
}

void UsageFile::start_listing() {
    listed_from_ = Fd(*fs_, fs_->open(path_.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0));
    struct stat info{};
    bool is_known = listed_from_ && fs_->fstat(listed_from_.get(), &info) == 0 && S_ISREG(info.st_mode);
    listed_size_ = is_known ? info.st_size : 0;
    if (!is_known) {
        listed_from_.reset();
    }
}

void UsageFile::store_base(Totals listed) {
    static std::atomic<unsigned> count{0};
    std::string temporary = path_ + "." + std::to_string(getpid()) + "-" + std::to_string(count++) + ".tmp";
    std::string base = "= " + std::to_string(listed.bytes) + " " + std::to_string(listed.count) + "\n";
    Fd fd(*fs_, fs_->open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW, 0666));
    if (!fd) {
        return;
    }
    if (write_all(*fs_, fd.get(), base) != 0 || fs_->rename(temporary.c_str(), path_.c_str()) != 0) {
        fs_->unlink(temporary.c_str());
        return;
    }
    carry_over(fd.get());
}

/// What came to the old file since start_listing().
void UsageFile::carry_over(int to) {
    std::array<char, 4096> late;
    while (listed_from_) {
        ssize_t size = fs_->pread(listed_from_.get(), late.data(), late.size(), listed_size_);
        if (size <= 0) {
            listed_from_.reset();
            break;
        }
        listed_size_ += size;
        (void)write_all(*fs_, to, {late.data(), static_cast<size_t>(size)});
    }
}

}  // namespace ember
