// Large arrays that are written before they are read.
#pragma once

#include <cstddef>
#include <new>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace corecut {

// Allocates without filling in zeros, and asks for huge pages: the first touch of four million numbers is otherwise eight
// thousand page faults, one after the other on the thread that fills in the zeros.
template <class T>
struct LazyAllocator {
    using value_type = T;
    static constexpr std::size_t kHuge = std::size_t{1} << 21;

    LazyAllocator() = default;
    template <class U>
    LazyAllocator(const LazyAllocator<U>&) {}

    T* allocate(std::size_t count) {
        if (count > static_cast<std::size_t>(-1) / sizeof(T)) throw std::bad_array_new_length();
        const std::size_t bytes = count * sizeof(T);
        if (bytes < 2 * kHuge) return static_cast<T*>(::operator new(bytes));
        void* block = ::operator new(bytes, std::align_val_t{kHuge});
#if defined(__linux__) && defined(MADV_HUGEPAGE)
        madvise(block, bytes, MADV_HUGEPAGE);  // only advice: without it everything works, more slowly
#endif
        return static_cast<T*>(block);
    }

    void deallocate(T* block, std::size_t count) {
        if (count * sizeof(T) < 2 * kHuge)
            ::operator delete(block);
        else
            ::operator delete(block, std::align_val_t{kHuge});
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
};

// resize(n) leaves numbers undefined; assign(n, value) does not.
template <class T>
using LazyVector = std::vector<T, LazyAllocator<T>>;

}  // namespace corecut
