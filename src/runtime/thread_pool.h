// The process-wide thread pool that kernels and generated loops run on.
// Lazily started; the caller takes part and claims chunks from the same counter as the helpers, so a late or preempted
// helper never holds work that the caller could do. Helpers spin for some microseconds, then sleep on a futex; they
// keep off the caller's core, and where other programs take theirs, the caller works alone for a while. Invariants: no
// exceptions, no allocation in a hot call; results of a kernel must not depend on how its range is cut. A call made
// inside a running range, and a call that finds the pool taken by another thread, run on the caller alone. The child of
// a fork gets a fresh pool. Tests: test/unit/runtime_test.cpp.
#pragma once

#include <cstdint>
#include <type_traits>

namespace ember::runtime {

/// Does the work items [begin, end). Called with disjoint ranges that cover [0, total) exactly once; must not throw.
using RangeFn = void (*)(void* ctx, int64_t begin, int64_t end);

/// How many threads a parallel_for may use, the caller included; 1..kMaxThreads (clamped). 0 asks for the default: the
/// CPUs this process may run on. Takes effect with the next parallel_for.
inline constexpr int kMaxThreads = 256;
void set_thread_count(int n);
int thread_count();

/// Runs fn over [0, total) in ranges of at least `grain` items (the last one may be shorter; grain < 1 counts as 1), on
/// at most thread_count() threads. Ranges begin at multiples of grain. Returns when all of it is done; everything
/// written by fn is then visible.
void parallel_for(RangeFn fn, void* ctx, int64_t total, int64_t grain);

/// The same for a callable; nothing is allocated.
template <class F>
void parallel_for(int64_t total, int64_t grain, F&& body) {
    using Body = std::remove_reference_t<F>;
    parallel_for([](void* ctx, int64_t begin, int64_t end) { (*static_cast<Body*>(ctx))(begin, end); },
                 const_cast<void*>(static_cast<const void*>(&body)), total, grain);
}

}  // namespace ember::runtime
