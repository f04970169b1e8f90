// Large arrays that are written before they are read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace corecut {

// Allocates without filling in zeros, and large blocks as mappings of their own, in huge pages: the first touch of four million
// numbers is otherwise eight thousand page faults, one after the other on the thread that fills in the zeros, and what the
// general allocator gets back it may keep.
template <class T>
struct LazyAllocator {
    using value_type = T;
    static constexpr std::size_t kHuge = std::size_t{1} << 21;

    LazyAllocator() = default;
    template <class U>
    LazyAllocator(const LazyAllocator<U>&) {}

    T* allocate(std::size_t count) {
        if (count > static_cast<std::size_t>(-1) / 2 / sizeof(T)) throw std::bad_array_new_length();
        const std::size_t bytes = count * sizeof(T);
#if defined(__linux__)
        if (bytes >= 2 * kHuge) {
            // A huge page begins at a multiple of its size: map one more, and give back what lies before and behind.
            void* mapped = mmap(nullptr, bytes + kHuge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            if (mapped == MAP_FAILED) throw std::bad_alloc();
            char* first = static_cast<char*>(mapped);
            char* block = first + (kHuge - reinterpret_cast<std::uintptr_t>(first) % kHuge) % kHuge;
            if (block > first) munmap(first, block - first);
            char *end = block + whole_pages(bytes), *last = first + whole_pages(bytes + kHuge);
            if (last > end) munmap(end, last - end);
            madvise(block, bytes, MADV_HUGEPAGE);  // only advice: without it everything works, more slowly
            return reinterpret_cast<T*>(block);
        }
#endif
        return static_cast<T*>(::operator new(bytes));
    }

    void deallocate(T* block, std::size_t count) {
#if defined(__linux__)
        if (count * sizeof(T) >= 2 * kHuge) {
            munmap(static_cast<void*>(block), whole_pages(count * sizeof(T)));
            return;
        }
#endif
        (void)count;
        ::operator delete(block);
    }

    template <class U>
    void construct(U* place) {
        ::new (static_cast<void*>(place)) U;  // no value: not even zero
    }
    template <class U, class... Arguments>
    void construct(U* place, Arguments&&... arguments) {
        ::new (static_cast<void*>(place)) U(std::forward<Arguments>(arguments)...);
    }

    friend bool operator==(const LazyAllocator&, const LazyAllocator&) { return true; }

   private:
    static std::size_t whole_pages(std::size_t bytes) {
#if defined(__linux__)
        static const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
        return (bytes + page - 1) / page * page;
#else
        return bytes;
#endif
    }
};

// resize(n) leaves numbers undefined; assign(n, value) does not.
template <class T>
using LazyVector = std::vector<T, LazyAllocator<T>>;

}  // namespace corecut
