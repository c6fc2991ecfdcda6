// See pool.h.
#include "pool.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace redraft {

namespace {

constexpr int kSpins = 2000; // some 20 to 60 microseconds; then the kernel is asked to wake us

void relax() {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

void await_change(const std::atomic<std::uint32_t>& word, std::uint32_t old) {
    for (int i = 0; i < kSpins; ++i) {
        if (word.load(std::memory_order_acquire) != old) {
            return;
        }
        relax();
    }
    while (word.load(std::memory_order_acquire) == old) {
        word.wait(old, std::memory_order_acquire);
    }
}

} // namespace

#if defined(__x86_64__)
FloatEnvironment::FloatEnvironment() : saved_(_mm_getcsr()) {
    _mm_setcsr(0x1f80); // exceptions masked, round to nearest, flush-to-zero and denormals-are-zero off
}
FloatEnvironment::~FloatEnvironment() { _mm_setcsr(static_cast<unsigned>(saved_)); }
#elif defined(__aarch64__)
FloatEnvironment::FloatEnvironment() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" : : "r"(std::uint64_t{0}));
}
FloatEnvironment::~FloatEnvironment() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }
#else
#error "this processor's floating-point environment is not known to the exactness contract"
#endif

Pool::Pool(int threads) : threads_(threads) {
    workers_.reserve(static_cast<std::size_t>(threads - 1));
    for (int worker = 1; worker < threads; ++worker) {
        workers_.emplace_back([this, worker] { serve(worker); });
    }
}

Pool::~Pool() {
    closing_ = true;
    job_.fetch_add(1, std::memory_order_release);
    job_.notify_all();
    for (std::thread& worker : workers_) {
        worker.join();
    }
}

void Pool::run(const std::function<void(int)>& body) {
    const FloatEnvironment environment;
    next_.store(0, std::memory_order_relaxed);
    body_ = &body;
    busy_.store(static_cast<std::uint32_t>(threads_ - 1), std::memory_order_relaxed);
    if (threads_ > 1) {
        job_.fetch_add(1, std::memory_order_release);
        job_.notify_all();
    }
    body(0);
    for (std::uint32_t left; (left = busy_.load(std::memory_order_acquire)) != 0;) {
        await_change(busy_, left);
    }
    body_ = nullptr;
}

void Pool::serve(int worker) {
    const FloatEnvironment environment;
    for (std::uint32_t seen = 0;;) {
        await_change(job_, seen);
        ++seen;
        if (closing_) {
            return;
        }
        (*body_)(worker);
        busy_.fetch_sub(1, std::memory_order_release);
        busy_.notify_all();
    }
}

bool Pool::join() {
    const std::uint32_t turn = turn_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(threads_)) {
        arrived_.store(0, std::memory_order_relaxed);
        next_.store(0, std::memory_order_relaxed);
        going_ = !stop_requested();
        turn_.fetch_add(1, std::memory_order_release);
        turn_.notify_all();
    } else {
        await_change(turn_, turn);
    }
    return going_;
}

} // namespace redraft
