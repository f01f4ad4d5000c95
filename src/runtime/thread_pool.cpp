// Helpers, claims of chunks, sleeping and waking: see thread_pool.h.
#include "runtime/thread_pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <new>

namespace ember::runtime {
namespace {

// Long enough to bridge the serial code between two kernels, short enough that a core wanted by others is given up.
constexpr std::chrono::nanoseconds kHelperSpin{30'000};
// A helper that was preempted inside a range is waited for asleep: the kernel then moves it onto the caller's core.
constexpr std::chrono::nanoseconds kCallerSpin{15'000};
// On a busy machine the kernel wakes a helper on its caller's core, where each waits for the other, and leaves it
// there: helpers keep off that core, as long as there is another for each of them. The caller may move, this often.
constexpr std::chrono::nanoseconds kMoveInterval{2'000'000};
// A helper that comes this much late, without having computed meanwhile, has lost its core to another program, for some
// milliseconds each time: the caller works alone for a while, and longer where it happens again soon.
constexpr std::chrono::nanoseconds kLate{50'000};
constexpr std::chrono::nanoseconds kLeastAlone{4'000'000};
constexpr std::chrono::nanoseconds kMostAlone{128'000'000};
constexpr std::chrono::nanoseconds kSoon{250'000'000};

void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

static_assert(sizeof(std::atomic<uint32_t>) == sizeof(uint32_t));

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word) {
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

/// Spins until done() or until the time is over; says whether done() held.
template <class Done>
bool spin_until(std::chrono::nanoseconds limit, Done done) {
    constexpr int kChecksPerClock = 16;
    const auto end = std::chrono::steady_clock::now() + limit;
    do {
        for (int i = 0; i < kChecksPerClock; ++i) {
            if (done()) {
                return true;
            }
            relax();
        }
    } while (std::chrono::steady_clock::now() < end);
    return done();
}

int default_thread_count() {
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) {
        return 1;
    }
    return std::clamp(CPU_COUNT(&cpus), 1, kMaxThreads);
}

// The gate says in one word which job is on, whether helpers may still join it, which helpers are wanted, and how many
// are inside. A job's fields change only while the gate is shut and nobody is inside.
struct Gate {
    static constexpr uint64_t kJoinedMask = 0xffff;
    static constexpr uint64_t kOpen = 0x10000;
    static constexpr int kWantedShift = 17;
    static constexpr int kGenerationShift = 32;

    static uint64_t make(uint32_t generation, int wanted) {
        return (uint64_t{generation} << kGenerationShift) | (static_cast<uint64_t>(wanted) << kWantedShift) | kOpen;
    }
    static uint32_t generation(uint64_t gate) { return static_cast<uint32_t>(gate >> kGenerationShift); }
    static int wanted(uint64_t gate) { return static_cast<int>((gate >> kWantedShift) & 0x7fff); }
    static bool open(uint64_t gate) { return (gate & kOpen) != 0; }
    static int joined(uint64_t gate) { return static_cast<int>(gate & kJoinedMask); }
};

class Pool {
public:
    /// False when another call has the pool, or this is a call from inside a range.
    bool try_run(RangeFn fn, void* ctx, int64_t total, int64_t grain, int threads);

private:
    struct alignas(64) Helper {
        std::atomic<uint32_t> asleep{0};
        Pool* pool = nullptr;
        int index = 0;
        pthread_t thread{};
    };

    static void* helper_main(void* helper);
    void start_helpers(int count);
    void keep_helpers_off_caller(std::chrono::steady_clock::time_point now);
    void wake_helpers(int count);
    uint64_t wait_for_job(Helper& self, uint32_t seen);
    bool join(uint64_t gate, int index);
    void leave();
    void wait_for_helpers(int wanted);
    void wait_asleep();
    std::chrono::nanoseconds computed_by(int helpers) const;
    void work_alone_from(std::chrono::steady_clock::time_point now);
    void work();
    bool claim(int64_t& begin, int64_t& end);

    alignas(64) std::atomic<bool> taken_{false};
    alignas(64) std::atomic<uint64_t> gate_{0};
    alignas(64) std::atomic<int64_t> next_{0};
    alignas(64) std::atomic<uint32_t> caller_asleep_{0};
    RangeFn fn_ = nullptr;
    void* ctx_ = nullptr;
    int64_t total_ = 0;
    int64_t grain_ = 1;
    int64_t smallest_ = 1;
    int threads_ = 1;
    uint32_t generation_ = 0;
    int started_ = 0;
    std::chrono::steady_clock::time_point alone_until_{};
    std::chrono::steady_clock::time_point next_move_{};
    int avoided_cpu_ = -1;
    std::chrono::nanoseconds next_alone_ = kLeastAlone;
    Helper helpers_[kMaxThreads - 1];
};

// Never destroyed: helpers may outlive main's statics.
alignas(Pool) std::byte pool_storage[sizeof(Pool)];
std::atomic<int> wanted_threads{0};

Pool& pool() {
    static Pool* const instance = [] {
        // The child of a fork has no helpers: it starts over with a pool in the same place.
        pthread_atfork(nullptr, nullptr, [] { new (pool_storage) Pool; });
        return new (pool_storage) Pool;
    }();
    return *instance;
}

bool Pool::try_run(RangeFn fn, void* ctx, int64_t total, int64_t grain, int threads) {
    if (taken_.load(std::memory_order_relaxed) || taken_.exchange(true, std::memory_order_acquire)) {
        return false;
    }
    const auto begin = std::chrono::steady_clock::now();
    if (begin < alone_until_) {
        taken_.store(false, std::memory_order_release);
        return false;
    }
    start_helpers(threads - 1);
    keep_helpers_off_caller(begin);
    const int wanted = std::min(threads - 1, started_);
    fn_ = fn;
    ctx_ = ctx;
    total_ = total;
    grain_ = grain;
    threads_ = wanted + 1;
    smallest_ = std::max(grain, total / (32 * threads_) / grain * grain);
    next_.store(0, std::memory_order_relaxed);
    gate_.store(Gate::make(++generation_, wanted), std::memory_order_seq_cst);
    wake_helpers(wanted);
    work();
    wait_for_helpers(wanted);
    taken_.store(false, std::memory_order_release);
    return true;
}

void Pool::start_helpers(int count) {
    if (started_ >= count) {
        return;
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // signals go to the program's own threads
    while (started_ < count) {
        Helper& helper = helpers_[started_];
        helper.pool = this;
        helper.index = started_;
        if (pthread_create(&helper.thread, nullptr, helper_main, &helper) != 0) {
            break;
        }
        pthread_setname_np(helper.thread, "ember");
        pthread_detach(helper.thread);
        avoided_cpu_ = -1;
        ++started_;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void Pool::keep_helpers_off_caller(std::chrono::steady_clock::time_point now) {
    const int cpu = sched_getcpu();
    if (cpu < 0 || cpu == avoided_cpu_ || (avoided_cpu_ >= 0 && now < next_move_)) {
        return;
    }
    avoided_cpu_ = cpu;
    next_move_ = now + kMoveInterval;
    cpu_set_t cpus;
    if (cpu >= CPU_SETSIZE || sched_getaffinity(0, sizeof cpus, &cpus) != 0 || CPU_COUNT(&cpus) <= started_) {
        return;
    }
    CPU_CLR(static_cast<size_t>(cpu), &cpus);
    for (int i = 0; i < started_; ++i) {
        pthread_setaffinity_np(helpers_[i].thread, sizeof cpus, &cpus);
    }
}

void Pool::wake_helpers(int count) {
    for (int i = 0; i < count; ++i) {
        std::atomic<uint32_t>& asleep = helpers_[i].asleep;
        if (asleep.load(std::memory_order_seq_cst) != 0 && asleep.exchange(0, std::memory_order_seq_cst) != 0) {
            futex_wake(asleep);
        }
    }
}

void* Pool::helper_main(void* helper) {
    Helper& self = *static_cast<Helper*>(helper);
    Pool& pool = *self.pool;
    for (uint32_t seen = 0;;) {
        const uint64_t gate = pool.wait_for_job(self, seen);
        seen = Gate::generation(gate);
        if (pool.join(gate, self.index)) {
            pool.work();
            pool.leave();
        }
    }
}

uint64_t Pool::wait_for_job(Helper& self, uint32_t seen) {
    uint64_t gate = 0;
    const auto is_new = [&] {
        gate = gate_.load(std::memory_order_seq_cst);
        return Gate::generation(gate) != seen && Gate::open(gate);
    };
    while (!spin_until(kHelperSpin, is_new)) {
        self.asleep.store(1, std::memory_order_seq_cst);
        if (is_new()) {
            self.asleep.store(0, std::memory_order_relaxed);
            break;
        }
        while (self.asleep.load(std::memory_order_acquire) != 0) {
            futex_wait(self.asleep, 1);
        }
    }
    return gate;
}

bool Pool::join(uint64_t gate, int index) {
    const uint32_t generation = Gate::generation(gate);
    while (Gate::open(gate) && Gate::generation(gate) == generation && index < Gate::wanted(gate)) {
        if (gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acquire, std::memory_order_relaxed)) {
            return true;
        }
    }
    return false;
}

void Pool::leave() {
    const uint64_t before = gate_.fetch_sub(1, std::memory_order_seq_cst);
    if (Gate::joined(before) == 1 && !Gate::open(before) &&
        caller_asleep_.exchange(0, std::memory_order_seq_cst) != 0) {
        futex_wake(caller_asleep_);
    }
}

void Pool::wait_for_helpers(int wanted) {
    const auto all_left = [&] { return Gate::joined(gate_.load(std::memory_order_seq_cst)) == 0; };
    gate_.fetch_and(~Gate::kOpen, std::memory_order_seq_cst);
    if (all_left() || spin_until(kCallerSpin, all_left)) {
        return;
    }
    const auto begin = std::chrono::steady_clock::now();
    const std::chrono::nanoseconds computed = computed_by(wanted);
    wait_asleep();
    const auto now = std::chrono::steady_clock::now();
    if (now - begin > kLate && computed_by(wanted) - computed < (now - begin) / 2) {
        work_alone_from(now);
    }
}

void Pool::wait_asleep() {
    const auto all_left = [&] { return Gate::joined(gate_.load(std::memory_order_seq_cst)) == 0; };
    for (;;) {
        caller_asleep_.store(1, std::memory_order_seq_cst);
        if (all_left()) {
            caller_asleep_.store(0, std::memory_order_relaxed);
            return;
        }
        futex_wait(caller_asleep_, 1);
    }
}

/// Processor time of the first helpers so far.
std::chrono::nanoseconds Pool::computed_by(int helpers) const {
    std::chrono::nanoseconds sum{0};
    for (int i = 0; i < helpers; ++i) {
        clockid_t clock;
        timespec time;
        if (pthread_getcpuclockid(helpers_[i].thread, &clock) == 0 && clock_gettime(clock, &time) == 0) {
            sum += std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
        }
    }
    return sum;
}

void Pool::work_alone_from(std::chrono::steady_clock::time_point now) {
    next_alone_ = now < alone_until_ + kSoon ? std::min(2 * next_alone_, kMostAlone) : kLeastAlone;
    alone_until_ = now + next_alone_;
}

void Pool::work() {
    int64_t begin = 0;
    int64_t end = 0;
    while (claim(begin, end)) {
        fn_(ctx_, begin, end);
    }
}

// Ranges shrink as the work runs out: few claims at first, small remainders to wait for at the end.
bool Pool::claim(int64_t& begin, int64_t& end) {
    begin = next_.load(std::memory_order_relaxed);
    do {
        if (begin >= total_) {
            return false;
        }
        const int64_t left = total_ - begin;
        const int64_t share = std::max(smallest_, left / (2 * threads_) / grain_ * grain_);
        end = begin + std::min(share, left);
    } while (!next_.compare_exchange_weak(begin, end, std::memory_order_relaxed));
    return true;
}

}  // namespace

void set_thread_count(int n) {
    wanted_threads.store(n <= 0 ? 0 : std::min(n, kMaxThreads), std::memory_order_relaxed);
}

int thread_count() {
    int n = wanted_threads.load(std::memory_order_relaxed);
    if (n == 0) {
        static const int by_default = default_thread_count();
        n = by_default;
    }
    return n;
}

void parallel_for(RangeFn fn, void* ctx, int64_t total, int64_t grain) {
    if (total <= 0) {
        return;
    }
    grain = std::clamp<int64_t>(grain, 1, total);
    const int64_t ranges = total / grain + (total % grain != 0);
    const int threads = static_cast<int>(std::min<int64_t>(thread_count(), ranges));
    if (threads <= 1 || !pool().try_run(fn, ctx, total, grain, threads)) {
        fn(ctx, 0, total);
    }
}

}  // namespace ember::runtime
