// A miss: wait for whoever compiles the same key, or compile, check and store. See cache.h and lock.h.
#include <algorithm>
#include <chrono>

#include "ember/cache/cache.h"
#include "ember/cache/lock.h"
#include "ember/support/log.h"

namespace ember {

/// One call of get_or_compile() that was not a plain hit.
class Compilation {
public:
    Compilation(Cache& cache, const Key& key, const CompileFunction& compile, const CompileHints& hints)
        : cache_(cache), fs_(cache.file_system()), key_(key), compile_function_(compile), hints_(hints) {
        double expected = std::clamp(hints.expected_seconds, 0.0, 3600.0);
        deadline_ = fs_.monotonic() + kLockGraceNs + static_cast<int64_t>(expected * 1e9);
    }

    /// Compiles, or takes what another thread or process compiles meanwhile.
    Result<CompileOutcome> run(const LookUp& first);
    /// Mode verify: compiles although there is an entry, and compares.
    Result<CompileOutcome> compare(const LookUp& stored);

private:
    bool take_if_there();
    bool wait_for_process(CompileLock& lock);
    Status compile();
    int64_t time_left() const { return deadline_ - fs_.monotonic(); }

    Cache& cache_;
    const FileSystem& fs_;
    const Key& key_;
    const CompileFunction& compile_function_;
    const CompileHints& hints_;
    int64_t deadline_ = 0;
    CompileOutcome outcome_;
};

namespace {

CompileOutcome outcome_of_hit(const Key& key, const LookUp& answer) {
    CompileOutcome outcome;
    outcome.key = key;
    outcome.status = Outcome::kHit;
    outcome.bytes = answer.bytes;
    outcome.view = answer.view;
    return outcome;
}

}  // namespace

Result<CompileOutcome> Compilation::run(const LookUp& first) {
    outcome_.key = key_;
    outcome_.status = first.outcome;
    outcome_.reason = first.reason;
    if (cache_.config().mode == CacheMode::kOff) {
        outcome_.stored = Reason::kMode;
        EMBER_CHECKED(compile());
        return outcome_;
    }
    // Each time a leader lands without an entry, one of those who waited leads.
    while (true) {
        Flight flight(cache_.path_of(key_) + "#" + key_.hex());
        if (!flight.leads() && !flight.is_nested()) {
            bool landed = flight.wait(std::max<int64_t>(time_left(), 0));
            if (take_if_there()) {
                return outcome_;
            }
            if (landed) {
                continue;
            }
        }
        CompileLock lock(fs_, cache_.store() ? cache_.store()->lock_path(key_) : std::string());
        if (!flight.is_nested() && wait_for_process(lock)) {
            return outcome_;
        }
        EMBER_CHECKED(compile());
        outcome_.stored = cache_.put(key_, outcome_.bytes);
        return outcome_;
    }
}

bool Compilation::take_if_there() {
    LookUp answer = cache_.peek(key_);
    if (!answer.hit()) {
        return false;
    }
    outcome_ = outcome_of_hit(key_, answer);
    outcome_.waited = true;
    cache_.count(&CacheCounters::waits);
    return true;
}

/// True when the entry has come; false when it is ours to compile, with the lock or without.
bool Compilation::wait_for_process(CompileLock& lock) {
    if (!cache_.writes() || cache_.config().mode == CacheMode::kRefresh || cache_.store()->make_shard(key_) != 0) {
        return take_if_there();
    }
    constexpr int64_t kLongestPause = 20'000'000;
    int64_t pause = 500'000;
    while (true) {
        CompileLock::State state = lock.try_acquire(hints_.expected_seconds);
        // Also with the lock: its last holder may have stored the entry after we looked.
        if (take_if_there()) {
            return true;
        }
        if (state != CompileLock::State::kBusy || time_left() <= 0) {
            return false;
        }
        fs_.sleep(std::min(pause, std::max<int64_t>(time_left(), 1)));
        pause = std::min(pause + pause / 2, kLongestPause);
    }
}

/// Sets the outcome's entry.
Status Compilation::compile() {
    cache_.count(&CacheCounters::compiles);
    auto start = std::chrono::steady_clock::now();
    EMBER_TRY(std::string entry, compile_function_());
    outcome_.compile_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    outcome_.bytes = std::make_shared<const std::string>(std::move(entry));
    // An entry for another CPU is no fault here: it can be exported, and the loader's caller asks for the ISA.
    EntryFault fault = check_entry(*outcome_.bytes, key_, cache_.config().isa, &outcome_.view);
    check(fault == EntryFault::kNone || fault == EntryFault::kIsa, "a compiler makes the entry it was asked for");
    return {};
}

Result<CompileOutcome> Compilation::compare(const LookUp& stored) {
    outcome_ = outcome_of_hit(key_, stored);
    EMBER_CHECKED(compile());
    if (outcome_.view.object == stored.view.object && outcome_.view.isa == stored.view.isa) {
        outcome_.bytes = stored.bytes;
        outcome_.view = stored.view;
        return outcome_;
    }
    log(LogLevel::kWarn, "cache", "compiled again, " + key_.hex() + " has other code than its entry; replaced");
    outcome_.status = Outcome::kMiss;
    outcome_.reason = Reason::kDiffers;
    outcome_.stored = cache_.put(key_, outcome_.bytes);
    return outcome_;
}

Result<CompileOutcome> get_or_compile(Cache& cache, const KeyDocument& document, const CompileFunction& compile,
                                      const CompileHints& hints) {
    const Key key = document.key();
    LookUp first = cache.get(key);
    if (!first.hit()) {
        return Compilation(cache, key, compile, hints).run(first);
    }
    if (cache.config().mode == CacheMode::kVerify) {
        return Compilation(cache, key, compile, hints).compare(first);
    }
    return outcome_of_hit(key, first);
}

}  // namespace ember
