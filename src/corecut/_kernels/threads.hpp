// Threads that are kept: making one costs as much as a small kernel, and a fit calls thousands of parallel regions.
//
// `Spare` has threads of this process that wait for something to do. A `Team` borrows some for the time of one kernel; between
// two of its parallel regions they look out for the next one for some microseconds before they sleep. Whoever comes too late
// for a region misses it: nobody waits for a thread that has not begun.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif
#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace corecut {

inline void relax() {
#if defined(__x86_64__) || defined(_M_X64)
    _mm_pause();
#endif
}

// Threads of this process without work. They are never ended: they sleep, and go with the process.
class Spare {
   public:
    // Run the task on a thread of its own; std::system_error where none can be had.
    static void launch(std::function<void()> task) {
        Spare& spare = instance();
        Seat* seat = nullptr;
        {
            std::lock_guard<std::mutex> lock(spare.mutex_);
            if (!spare.free_.empty()) seat = spare.free_.back(), spare.free_.pop_back();
        }
        if (seat == nullptr) {
            auto made = std::make_unique<Seat>();
            made->task = std::move(task);
            std::thread(&Spare::sit, &spare, made.get()).detach();
            made.release();  // the thread's own from now on
            return;
        }
        {
            std::lock_guard<std::mutex> lock(seat->mutex);
            seat->task = std::move(task);
        }
        seat->wake.notify_one();
    }

   private:
    struct Seat {
        std::mutex mutex;
        std::condition_variable wake;
        std::function<void()> task;
    };

    static Spare*& place() {
        static Spare* spare = new Spare();  // not destroyed: its threads outlive main
        return spare;
    }

    static Spare& instance() {
#if defined(__unix__) || defined(__APPLE__)
        // A forked child has none of the threads.
        static const int registered = pthread_atfork(nullptr, nullptr, [] { place() = new Spare(); });
        static_cast<void>(registered);
#endif
        return *place();
    }

    void sit(Seat* seat) {
        while (true) {
            std::function<void()> task;
            {
                std::unique_lock<std::mutex> lock(seat->mutex);
                seat->wake.wait(lock, [&] { return seat->task != nullptr; });
                task = std::exchange(seat->task, nullptr);
            }
            task();
            std::lock_guard<std::mutex> lock(mutex_);
            free_.push_back(seat);
        }
    }

    std::mutex mutex_;
    std::vector<Seat*> free_;
};

// Helpers of one kernel.
class Team {
   public:
    Team() = default;
    Team(const Team&) = delete;
    Team& operator=(const Team&) = delete;

    ~Team() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            ended_ = true;
            generation_.fetch_add(1, std::memory_order_release);
        }
        wake_.notify_all();
        std::unique_lock<std::mutex> lock(mutex_);
        left_.wait(lock, [&] { return helpers_ == 0; });
    }

    // Call work() here and on up to `helpers` other threads at the same time; false, and no call, where a region runs already.
    // It must not throw.
    template <class Work>
    bool share(int helpers, Work& work) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            if (open_ || active_.load(std::memory_order_relaxed) > 0) return false;
            grow(helpers);
            call_ = [](void* given) { (*static_cast<Work*>(given))(); };
            given_ = &work;
            room_ = helpers;
            open_ = true;
            generation_.fetch_add(1, std::memory_order_release);
        }
        wake_.notify_all();
        work();
        {
            std::lock_guard<std::mutex> lock(mutex_);
            open_ = false;
        }
        for (int spin = 0; spin < kSpins && active_.load(std::memory_order_acquire) > 0; ++spin) relax();
        if (active_.load(std::memory_order_acquire) > 0) {
            std::unique_lock<std::mutex> lock(mutex_);
            left_.wait(lock, [&] { return active_.load(std::memory_order_acquire) == 0; });
        }
        return true;
    }

   private:
    // How often a thread looks before it sleeps: some tens of microseconds.
    static constexpr int kSpins = 2000;

    void grow(int helpers) {
        while (helpers_ < helpers) {
            try {
                Spare::launch([this] { help(); });
            } catch (const std::system_error&) {
                return;  // no more threads to be had: the ones that are there, and the caller, do all the work
            }
            ++helpers_;
        }
    }

    void help() {
        uint64_t seen = 0;
        while (true) {
            for (int spin = 0; spin < kSpins && generation_.load(std::memory_order_acquire) == seen; ++spin) relax();
            std::unique_lock<std::mutex> lock(mutex_);
            wake_.wait(lock, [&] { return generation_.load(std::memory_order_relaxed) != seen; });
            seen = generation_.load(std::memory_order_relaxed);
            if (ended_) break;
            if (!open_ || room_ == 0) continue;
            --room_;
            active_.fetch_add(1, std::memory_order_relaxed);
            const auto call = call_;
            void* given = given_;
            lock.unlock();
            call(given);
            lock.lock();
            if (active_.fetch_sub(1, std::memory_order_acq_rel) == 1) left_.notify_all();
        }
        // The last words are said under the lock: after them the team may be gone.
        std::lock_guard<std::mutex> lock(mutex_);
        --helpers_;
        left_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable wake_, left_;
    std::atomic<uint64_t> generation_{0};
    std::atomic<int> active_{0};
    void (*call_)(void*) = nullptr;
    void* given_ = nullptr;
    int helpers_ = 0, room_ = 0;
    bool open_ = false, ended_ = false;
};

}  // namespace corecut
