// Look-ups and puts: mode, folder, memory, counters and warnings. See cache.h.
#include "ember/cache/cache.h"

#include <deque>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "ember/cache/lock.h"
#include "ember/support/log.h"

namespace ember {
namespace {

/// Entries that could not be stored are kept up to this.
constexpr uint64_t kMemoryCap = uint64_t{256} << 20;

Outcome outcome_of(Reason reason) {
    switch (reason) {
        case Reason::kNone:
            return Outcome::kHit;
        case Reason::kIo:
            return Outcome::kError;
        case Reason::kMode:
            return Outcome::kBypass;
        default:
            return Outcome::kMiss;
    }
}

LookUp as_hit(LookUp answer) {
    answer.outcome = Outcome::kHit;
    answer.reason = Reason::kNone;
    return answer;
}

LookUp no_hit(Reason reason) {
    LookUp answer;
    answer.reason = reason;
    answer.outcome = outcome_of(reason);
    return answer;
}

void warn_about_reading(const std::string& path, Reason reason) {
    bool is_news = reason != Reason::kNone && reason != Reason::kAbsent && reason != Reason::kMode;
    if (is_news) {
        std::string name(reason_name(reason));
        warn_once("cache", "read " + name, "ignored " + path + " (" + name + "); it is compiled again");
    }
}

void warn_about_writing(const std::string& dir, Reason reason) {
    if (reason != Reason::kNone && reason != Reason::kMode && reason != Reason::kMemory) {
        std::string name(reason_name(reason));
        warn_once("cache", "write " + name,
                  "cannot store in " + dir + " (" + name + "); compiled code stays in memory");
    }
}

}  // namespace

std::string_view outcome_name(Outcome outcome) {
    static constexpr std::string_view kNames[] = {"hit", "miss", "bypass", "error"};
    return kNames[static_cast<size_t>(outcome)];
}

/// All under cache_mutex().
struct Cache::State {
    CacheCounters counters;
    std::unordered_map<Key, std::shared_ptr<const std::string>> entries;
    std::deque<Key> order;  // oldest first
    uint64_t bytes = 0;
    std::unordered_set<Key> made_here;  // mode refresh: what this process has compiled already

    void remember(const Key& key, std::shared_ptr<const std::string> entry) {
        auto [row, is_new] = entries.try_emplace(key);
        bytes += entry->size() - (is_new ? 0 : row->second->size());
        row->second = std::move(entry);
        if (is_new) {
            order.push_back(key);
        }
        while (bytes > kMemoryCap && order.size() > 1) {
            auto oldest = entries.find(order.front());
            bytes -= oldest->second->size();
            entries.erase(oldest);
            order.pop_front();
        }
    }

    void count(const LookUp& answer) {
        uint64_t* const kCounts[] = {&counters.hits, &counters.misses, &counters.bypasses, &counters.errors};
        counters.look_ups += 1;
        *kCounts[static_cast<size_t>(answer.outcome)] += 1;
        if (!answer.hit()) {
            counters.reasons[static_cast<size_t>(answer.reason)] += 1;
        }
    }
};

Cache::Cache(const CacheOptions& options)
    : fs_(options.file_system), config_(make_cache_config(options)), state_(std::make_unique<State>()) {
    if (!config_.dir.empty()) {
        store_ = std::make_unique<Store>(*fs_, config_.dir, StoreLimits{config_.max_size, config_.max_count});
    }
}

Cache::~Cache() = default;

std::shared_ptr<Cache> Cache::open(const CacheOptions& options) {
    return std::shared_ptr<Cache>(new Cache(options));
}

std::string Cache::path_of(const Key& key) const {
    return store_ ? store_->entry_path(key) : std::string();
}

CacheCounters Cache::counters() const {
    std::lock_guard hold(cache_mutex());
    return state_->counters;
}

void Cache::count(uint64_t CacheCounters::* counter) {
    std::lock_guard hold(cache_mutex());
    state_->counters.*counter += 1;
}

LookUp Cache::look_in_memory(const Key& key, Reason otherwise) const {
    LookUp answer;
    {
        std::lock_guard hold(cache_mutex());
        auto row = state_->entries.find(key);
        if (row == state_->entries.end()) {
            return no_hit(otherwise);
        }
        answer.bytes = row->second;
    }
    answer.reason = reason_of(check_entry(*answer.bytes, key, config_.isa, &answer.view));
    return answer.reason == Reason::kNone ? as_hit(std::move(answer)) : no_hit(answer.reason);
}

LookUp Cache::look(const Key& key, Store::ReadPolicy policy) const {
    if (config_.mode == CacheMode::kOff) {
        return no_hit(Reason::kMode);
    }
    if (config_.mode == CacheMode::kRefresh) {
        std::lock_guard hold(cache_mutex());
        if (!state_->made_here.contains(key)) {
            return no_hit(Reason::kMode);
        }
    }
    if (!store_) {
        return look_in_memory(key, Reason::kAbsent);
    }
    LookUp answer;
    auto bytes = std::make_shared<std::string>();
    answer.reason = store_->read(key, config_.isa, policy, bytes.get(), &answer.view);
    if (answer.reason != Reason::kNone) {
        return look_in_memory(key, answer.reason);
    }
    answer.bytes = std::move(bytes);
    return as_hit(std::move(answer));
}

LookUp Cache::peek(const Key& key) const {
    return look(key, {});
}

LookUp Cache::get(const Key& key) {
    Store::ReadPolicy policy;
    if (writes()) {
        policy = {Store::Damage::kRemove, Store::Stamp::kTouch};
    }
    LookUp answer = look(key, policy);
    warn_about_reading(path_of(key), answer.reason);
    std::lock_guard hold(cache_mutex());
    state_->count(answer);
    return answer;
}

Reason Cache::put(const Key& key, std::shared_ptr<const std::string> bytes) {
    Reason reason = Reason::kMode;
    if (config_.mode == CacheMode::kOff) {
        return reason;
    }
    if (config_.mode != CacheMode::kRead) {
        reason = store_ ? store_->write(key, *bytes) : Reason::kMemory;
        warn_about_writing(config_.dir, reason);
    }
    std::lock_guard hold(cache_mutex());
    state_->made_here.insert(key);
    if (reason == Reason::kNone) {
        state_->counters.puts += 1;
    } else {
        state_->counters.puts_memory += 1;
        state_->remember(key, std::move(bytes));
    }
    return reason;
}

}  // namespace ember
