// Threads, cancellation and errors for kernels that know no Python.
//
// Work is cut into blocks whose borders depend on the problem only, never on the number of threads. A kernel that writes
// each block's result to the block's own place, and combines them in block order, gives the same bits for any thread count.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "threads.hpp"

namespace corecut {

// Thrown inside a kernel after the caller asked it to stop (Ctrl-C).
struct Cancelled : std::exception {};

// The input is at fault; becomes a ValueError with this text.
struct InputError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Context {
    int threads = 1;
    std::atomic<bool> cancelled{false};
    std::function<bool()> asked_to_stop;  // looked at ten times a second, on the thread that made this
    Team team;

    void check() {
        if (asked_to_stop && std::this_thread::get_id() == owner_) {
            const auto now = std::chrono::steady_clock::now();
            if (now >= next_look_) {
                next_look_ = now + std::chrono::milliseconds(100);
                if (asked_to_stop()) cancelled.store(true);
            }
        }
        if (cancelled.load(std::memory_order_relaxed)) throw Cancelled();
    }

   private:
    std::thread::id owner_ = std::this_thread::get_id();
    std::chrono::steady_clock::time_point next_look_ = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
};

inline constexpr int64_t kRowBlock = 4096;

// How much work is done in parallel regions, for predictions of the time on more cores: processor time by the number of blocks
// that share it, with all regions of many blocks in the last place.
struct ParallelWork {
    static constexpr int64_t kMost = 64;
    std::atomic<int64_t> nanoseconds[kMost + 1] = {};

    void add(int64_t blocks, int64_t time) { nanoseconds[std::min(blocks, kMost)].fetch_add(time, std::memory_order_relaxed); }
};
inline ParallelWork parallel_work;

// Processor time of this thread, where the system tells.
inline int64_t thread_nanoseconds() {
#if defined(CLOCK_THREAD_CPUTIME_ID)
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
#else
    return 0;
#endif
}

// Call f(block, begin, end) for every block of `size` items of [0, count), in any order, on context.threads threads. Of
// several failing blocks the one with the lowest number reports, so that messages do not depend on timing.
template <class F>
void parallel_blocks(Context& context, int64_t count, int64_t size, F&& f) {
    const int64_t blocks = (count + size - 1) / size;
    const int threads = static_cast<int>(std::min<int64_t>(std::max(context.threads, 1), blocks));
    std::atomic<int64_t> next{0};
    std::atomic<bool> failed{false};
    std::mutex mutex;
    std::exception_ptr error;
    int64_t error_block = blocks;

    auto work = [&]() {
        struct Clock {
            int64_t blocks, begin = thread_nanoseconds();
            ~Clock() { parallel_work.add(blocks, thread_nanoseconds() - begin); }
        } clock{blocks};
        while (!failed.load(std::memory_order_relaxed)) {
            const int64_t block = next.fetch_add(1);
            if (block >= blocks) return;
            try {
                context.check();
                f(block, block * size, std::min(count, (block + 1) * size));
            } catch (...) {
                std::lock_guard<std::mutex> lock(mutex);
                failed.store(true);
                if (block < error_block) {
                    error_block = block;
                    error = std::current_exception();
                }
            }
        }
    };
    // A region inside another one has the thread that it is in.
    if (threads == 1 || !context.team.share(threads - 1, work)) work();
    if (error) std::rethrow_exception(error);
}

// Scratch space that tasks borrow and give back: at most one for every thread, whichever gets which.
template <class T>
class Pool {
   public:
    struct GiveBack {
        Pool* pool;
        void operator()(T* item) const {
            std::lock_guard<std::mutex> lock(pool->mutex_);
            pool->free_.emplace_back(item);
        }
    };
    using Borrowed = std::unique_ptr<T, GiveBack>;

    Borrowed borrow() {
        std::lock_guard<std::mutex> lock(mutex_);
        if (free_.empty()) return Borrowed(new T(), GiveBack{this});
        T* item = free_.back().release();
        free_.pop_back();
        return Borrowed(item, GiveBack{this});
    }

   private:
    std::mutex mutex_;
    std::vector<std::unique_ptr<T>> free_;
};

}  // namespace corecut
