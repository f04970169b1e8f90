// What a node sees of its neighbourhood, in a table that stays in the cache: the total edge weight to each adjacent cluster.
#pragma once

#include <bit>
#include <type_traits>
#include <vector>

#include "csr.hpp"

namespace corecut {

// Open addressing with as many places as twice the row's entries, so that the table of an ordinary row fits the first-level
// cache where an array by cluster would miss every cache twice per entry.
template <class Sum>
class RatingTable {
   public:
    struct Slot {
        int32_t cluster;
        Sum weight;
    };

    // Forget the last row and make room for one of so many entries.
    void open(int64_t entries) {
        for (uint32_t at : used_) slots_[at].cluster = -1;
        used_.clear();
        const int bits = std::max<int>(kLeastBits, std::bit_width(static_cast<uint64_t>(2 * entries)));
        shift_ = 64 - bits;
        mask_ = (uint64_t{1} << bits) - 1;
        if (slots_.size() <= mask_) slots_.assign(mask_ + 1, Slot{-1, 0});
    }

    CORECUT_INLINE void add(int32_t cluster, Sum weight) {
        uint64_t at = place(cluster);
        while (slots_[at].cluster != cluster) {
            if (slots_[at].cluster < 0) {
                slots_[at] = {cluster, weight};
                used_.push_back(static_cast<uint32_t>(at));
                return;
            }
            at = (at + 1) & mask_;
        }
        slots_[at].weight += weight;
    }

    Sum weight(int32_t cluster) const {
        for (uint64_t at = place(cluster); slots_[at].cluster >= 0; at = (at + 1) & mask_)
            if (slots_[at].cluster == cluster) return slots_[at].weight;
        return 0;
    }

    size_t size() const { return used_.size(); }
    const Slot& operator[](size_t i) const { return slots_[used_[i]]; }  // in order of first appearance

   private:
    static constexpr int kLeastBits = 6;

    uint64_t place(int32_t cluster) const { return (static_cast<uint64_t>(cluster) * 0x9E3779B97F4A7C15ULL) >> shift_; }

    std::vector<Slot> slots_;
    std::vector<uint32_t> used_;
    int shift_ = 64 - kLeastBits;
    uint64_t mask_ = 0;
};

// Labels of all nodes as a block of rows sees them: those of its own rows as it has changed them, others as they were.
struct BlockLabels {
    const int32_t* all;
    const int32_t* own;  // of rows begin..begin + size - 1
    int64_t begin, size;

    CORECUT_INLINE int32_t operator[](int64_t y) const {
        const uint64_t inside = static_cast<uint64_t>(y - begin);
        return inside < static_cast<uint64_t>(size) ? own[inside] : all[y];
    }
};

// Ask the cache for the labels of a row's first neighbours.
template <class Index, class Weight>
CORECUT_INLINE void prefetch_labels(const Csr<Index, Weight>& a, const int32_t* labels, int64_t x) {
    const auto r = a.row(x);
    for (int64_t p = r.begin; p < std::min(r.end, r.begin + 64); ++p) a.prefetch_at(labels, p, r.end);
}

// A row's weights by cluster. Whole numbers are added up as such: a graph without weights has no use for floating point.
template <class Index, class Weight>
class Rating {
   public:
    using Sum = std::conditional_t<Csr<Index, Weight>::weighted, double, int32_t>;
    RatingTable<Sum> table;
    double loop = 0;

    template <class Labels>
    void read(const Csr<Index, Weight>& a, const Labels& labels, int64_t x) {
        const auto r = a.row(x);
        a.check_columns(r);
        if (static_cast<int64_t>(labels_.size()) < r.size()) labels_.resize(r.size() * 2);
        // Labels first: loads that wait for nothing can be under way together.
        for (int64_t p = r.begin; p < r.end; ++p) labels_[p - r.begin] = labels[a.indices[p]];
        table.open(r.size());
        loop = 0;
        int32_t run = r.size() ? labels_[0] : 0;
        Sum sum = 0;
        for (int64_t p = r.begin; p < r.end; ++p) {
            if (static_cast<int64_t>(a.indices[p]) == x) {
                loop += a.weight(p);
                continue;
            }
            const int32_t j = labels_[p - r.begin];
            if (j != run) {
                if (sum != 0) table.add(run, sum);
                run = j;
                sum = 0;
            }
            if constexpr (Csr<Index, Weight>::weighted)
                sum += a.weight(p);
            else
                ++sum;
        }
        if (sum != 0) table.add(run, sum);
    }

   private:
    std::vector<int32_t> labels_;
};

}  // namespace corecut
