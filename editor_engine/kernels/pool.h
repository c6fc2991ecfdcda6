// Worker threads that walk one pass together: tasks by a shared counter, a barrier after each phase.
//
// Knows nothing of what a task computes. Invariants: all workers leave a phase with the same answer to "was the pass
// stopped?"; while no pass runs the workers sleep; inside a pass every worker rounds to nearest and keeps denormals.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace redraft {

// Sets round-to-nearest and flush-to-zero off for its scope.
class FloatEnvironment {
  public:
    FloatEnvironment();
    ~FloatEnvironment();
    FloatEnvironment(const FloatEnvironment&) = delete;
    FloatEnvironment& operator=(const FloatEnvironment&) = delete;

  private:
    std::uint64_t saved_;
};

class Pool {
  public:
    explicit Pool(int threads); // threads >= 1; the caller of run() is one of them
    ~Pool();
    Pool(const Pool&) = delete;
    Pool& operator=(const Pool&) = delete;

    int threads() const { return threads_; }

    // Runs body(worker) on every worker and returns when all have returned. The body must not throw.
    void run(const std::function<void(int)>& body);

    // Asks the pass that runs, or the next one, to stop; safe from any thread.
    void request_stop() { stop_.store(true, std::memory_order_relaxed); }
    void clear_stop() { stop_.store(false, std::memory_order_relaxed); }
    bool stop_requested() const { return stop_.load(std::memory_order_relaxed); }

    // Inside a body, called by every worker in step: hands out task(index, worker) for 0 <= index < count, then waits
    // for all. False, for every worker alike, when a stop was asked for; tasks not begun by then were not run.
    template <typename Task> bool phase(std::int64_t count, int worker, const Task& task) {
        for (std::int64_t i; !stop_requested() && (i = next_.fetch_add(1, std::memory_order_relaxed)) < count;) {
            task(i, worker);
        }
        return join();
    }

  private:
    bool join();
    void serve(int worker);

    const int threads_;
    std::atomic<bool> stop_{false};
    alignas(64) std::atomic<std::int64_t> next_{0};
    alignas(64) std::atomic<std::uint32_t> arrived_{0};
    alignas(64) std::atomic<std::uint32_t> turn_{0}; // bumped by the last to arrive
    bool going_ = true;                              // written by the last to arrive, before the bump
    alignas(64) std::atomic<std::uint32_t> job_{0};  // bumped to start a pass
    alignas(64) std::atomic<std::uint32_t> busy_{0}; // workers still in the body
    const std::function<void(int)>* body_ = nullptr;
    bool closing_ = false;
    std::vector<std::thread> workers_;
};

} // namespace redraft
