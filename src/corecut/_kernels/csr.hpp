// A read-only view of a compressed sparse row matrix: the caller's own arrays, whatever their types.
//
// Nothing about the arrays is believed: row() checks the row's borders and column() every column index it hands out, so
// that a corrupt file or a hand-made matrix gives an error, never a read outside the arrays.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "parallel.hpp"

namespace corecut {

// Row borders of either width. The branch is the same for all rows of a matrix, so it costs nothing beside a row's work.
struct Offsets {
    const void* data = nullptr;
    bool wide = true;

    int64_t operator[](int64_t i) const {
        return wide ? static_cast<const int64_t*>(data)[i] : static_cast<const int32_t*>(data)[i];
    }
};

// Ask the cache for what will soon be read. Always inlined: a function that only does this looks to GCC like one that does
// nothing, and it drops the calls.
#if defined(__GNUC__) || defined(__clang__)
#define CORECUT_INLINE inline __attribute__((always_inline))
CORECUT_INLINE void prefetch(const void* address) { __builtin_prefetch(address); }
#else
#define CORECUT_INLINE inline
inline void prefetch(const void*) {}
#endif

// Messages are made out of line: what builds a string would keep the checks around it from being inlined into hot loops.
#if defined(__GNUC__) || defined(__clang__)
#define CORECUT_COLD __attribute__((noinline, cold))
#else
#define CORECUT_COLD
#endif

[[noreturn]] CORECUT_COLD inline void corrupt_row(int64_t x, int64_t begin, int64_t end, int64_t nnz) {
    throw InputError("indptr is corrupt at row " + std::to_string(x) + ": borders " + std::to_string(begin) + " and " +
                     std::to_string(end) + " for " + std::to_string(nnz) + " stored entries");
}

[[noreturn]] CORECUT_COLD inline void corrupt_column(int64_t y, int64_t p, int64_t n) {
    throw InputError("column index " + std::to_string(y) + " of stored entry " + std::to_string(p) + " is out of range for " +
                     std::to_string(n) + " nodes");
}

// Stands for the value type of a graph without weights: every stored entry is 1.
struct Unit {};

template <class Index, class Weight>
struct Csr {
    using index_type = Index;
    static constexpr bool weighted = !std::is_same_v<Weight, Unit>;

    int64_t n = 0;
    int64_t nnz = 0;
    Offsets indptr;
    const Index* indices = nullptr;
    const Weight* data = nullptr;

    struct Range {
        int64_t begin, end;
        int64_t size() const { return end - begin; }
    };

    Range row(int64_t x) const {
        const int64_t begin = indptr[x], end = indptr[x + 1];
        if (begin < 0 || begin > end || end > nnz) corrupt_row(x, begin, end, nnz);
        return {begin, end};
    }

    int64_t column(int64_t p) const {
        const int64_t y = static_cast<int64_t>(indices[p]);
        if (static_cast<uint64_t>(y) >= static_cast<uint64_t>(n)) corrupt_column(y, p, n);
        return y;
    }

    // Check all columns of a row at once, in a loop that the compiler can vectorise; indices[p] may then be used as they are.
    void check_columns(Range r) const {
        using Unsigned = std::make_unsigned_t<Index>;
        const Unsigned limit = static_cast<Unsigned>(n);
        bool good = true;
        for (int64_t p = r.begin; p < r.end; ++p) good &= static_cast<Unsigned>(indices[p]) < limit;
        if (!good)
            for (int64_t p = r.begin; p < r.end; ++p) column(p);
    }

    double weight(int64_t p) const {
        if constexpr (weighted)
            return static_cast<double>(data[p]);
        else
            return 1.0;
    }

    // First position in the (sorted) row whose column is not below `key`.
    int64_t lower_bound(Range r, int64_t key) const {
        int64_t lo = r.begin, hi = r.end;
        while (lo < hi) {
            const int64_t mid = lo + (hi - lo) / 2;
            if (static_cast<int64_t>(indices[mid]) < key)
                lo = mid + 1;
            else
                hi = mid;
        }
        return lo;
    }

    // Value of entry (x, y), 0 when it is not stored.
    double at(int64_t x, int64_t y) const {
        const Range r = row(x);
        const int64_t p = lower_bound(r, y);
        return p < r.end && static_cast<int64_t>(indices[p]) == y ? weight(p) : 0.0;
    }

    // Ask the cache for a row's borders, for the beginning of the row once they are there, and for an array's element at the
    // column of position p, if that lies before `end`.
    CORECUT_INLINE void prefetch_border(int64_t x) const {
        prefetch(static_cast<const char*>(indptr.data) + x * (indptr.wide ? 8 : 4));
    }
    CORECUT_INLINE void prefetch_row(int64_t x) const {
        const int64_t begin = indptr[x];
        if (begin < 0 || begin >= nnz) return;
        prefetch(indices + begin);
        if constexpr (weighted) prefetch(data + begin);
    }
    template <class T>
    CORECUT_INLINE void prefetch_at(const T* array, int64_t p, int64_t end) const {
        if (p < end && static_cast<uint64_t>(indices[p]) < static_cast<uint64_t>(n)) prefetch(array + indices[p]);
    }
};

}  // namespace corecut
