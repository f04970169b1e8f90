// Pairs of clusters: the merges that cost least, and those that come first in an order. Among thousands of clusters nearly all of
// the millions of pairs are adjacent, of which few are ever wanted: they are looked at in parallel, and only those few are sorted.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <tuple>
#include <vector>

#include "memory.hpp"
#include "objective.hpp"
#include "parallel.hpp"

namespace corecut {

// The graph of clusters: the weight between two of them, and their sums. Columns of a row may be in any order.
struct ClusterGraph {
    int64_t k;
    const int64_t* indptr;
    const int32_t* indices;
    const double* weights;
    const double *association, *volume, *size;

    int64_t entries() const { return indptr[k]; }
    int64_t rows_per_block() const { return std::max<int64_t>(1, kBlockEntries * k / std::max<int64_t>(entries(), 1)); }

    void check() const {
        for (int64_t i = 0; i < k; ++i)
            if (indptr[i] > indptr[i + 1]) throw InputError("indptr must not fall");
        for (int64_t p = 0; p < entries(); ++p)
            if (indices[p] < 0 || indices[p] >= k) throw InputError("a cluster is out of range");
    }

    static constexpr int64_t kBlockEntries = 1 << 16;
};

struct Merge {
    double loss;
    int32_t i, j;

    bool operator<(const Merge& other) const { return std::tie(loss, i, j) < std::tie(other.loss, other.i, other.j); }
};

// Keep the `most` smallest of the items from `begin` on.
template <class T>
void keep_smallest(std::vector<T>& items, int64_t most) {
    if (static_cast<int64_t>(items.size()) <= most) return;
    std::nth_element(items.begin(), items.begin() + most, items.end());
    items.resize(most);
}

// The merges of two clusters that kept falls least by, up to `dearest`, at most `most` of them, the cheapest first; of adjacent
// clusters, or of any two. Both need volume, and both together a size within the bounds.
inline std::vector<Merge> cheapest_merges(Context& context, const ClusterGraph& clusters, const Objective& f, double dearest,
                                          int64_t most, bool any_two) {
    const int64_t k = clusters.k, rows = clusters.rows_per_block();
    std::vector<std::vector<Merge>> found((k + rows - 1) / rows);
    const auto kept = [&](int64_t j) { return f.kept(clusters.association[j], clusters.volume[j], clusters.size[j]); };
    parallel_blocks(context, k, rows, [&](int64_t block, int64_t begin, int64_t end) {
        std::vector<Merge>& own = found[block];
        std::vector<double> between;
        const auto look_at = [&](int64_t i, int64_t j, double weight) {
            const double size = clusters.size[i] + clusters.size[j];
            if (size > f.max_size || !(clusters.volume[i] > 0) || !(clusters.volume[j] > 0)) return;
            const double inside = clusters.association[i] + clusters.association[j] + 2 * weight;
            const double loss = kept(i) + kept(j) - f.kept(inside, clusters.volume[i] + clusters.volume[j], size);
            if (!(loss <= dearest)) return;
            own.push_back({loss, static_cast<int32_t>(i), static_cast<int32_t>(j)});
            if (static_cast<int64_t>(own.size()) / 2 > most) keep_smallest(own, most);
        };
        for (int64_t i = begin; i < end; ++i) {
            if (any_two) between.assign(k, 0.0);
            for (int64_t p = clusters.indptr[i]; p < clusters.indptr[i + 1]; ++p) {
                const int32_t j = clusters.indices[p];
                if (any_two)
                    between[j] = clusters.weights[p];
                else if (i < j)
                    look_at(i, j, clusters.weights[p]);
            }
            for (int64_t j = i + 1; any_two && j < k; ++j) look_at(i, j, between[j]);
        }
        keep_smallest(own, most);
    });
    std::vector<Merge> all;
    for (auto& own : found) {
        all.insert(all.end(), own.begin(), own.end());
        std::vector<Merge>().swap(own);
        if (static_cast<int64_t>(all.size()) / 2 > most) keep_smallest(all, most);
    }
    keep_smallest(all, most);
    std::sort(all.begin(), all.end());
    return all;
}

// All pairs of adjacent clusters i < j, and the weight between them as a share of the smaller one's volume.
struct AdjacentPairs {
    LazyVector<int32_t> i, j;
    LazyVector<double> share;
};

inline AdjacentPairs adjacent_pairs(Context& context, const ClusterGraph& clusters) {
    const int64_t k = clusters.k, rows = clusters.rows_per_block();
    std::vector<int64_t> begins(k + 1, 0);
    parallel_blocks(context, k, rows, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
            begins[i + 1] = std::count_if(clusters.indices + clusters.indptr[i], clusters.indices + clusters.indptr[i + 1],
                                          [i](int32_t j) { return i < j; });
    });
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    const int64_t count = begins[k];
    AdjacentPairs found{LazyVector<int32_t>(count), LazyVector<int32_t>(count), LazyVector<double>(count)};
    parallel_blocks(context, k, rows, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            int64_t at = begins[i];
            for (int64_t p = clusters.indptr[i]; p < clusters.indptr[i + 1]; ++p) {
                const int32_t j = clusters.indices[p];
                if (i >= j) continue;
                found.i[at] = static_cast<int32_t>(i);
                found.j[at] = j;
                found.share[at++] = clusters.weights[p] / std::min(clusters.volume[i], clusters.volume[j]);
            }
        }
    });
    return found;
}

// The pairs that are taken when each is, from the first in the order to the last, unless a cluster of it is in another one already:
// their numbers. The first is the one of highest priority; of equal ones, that of the lowest number.
inline std::vector<int64_t> take_pairs(Context& context, const int32_t* i, const int32_t* j, const double* priority, int64_t count,
                                       int64_t k) {
    // Sorting all of them would take far longer than looking for the next few of those that are still free.
    constexpr int64_t kFew = 1 << 15, kSample = 1 << 12, kBlock = 1 << 16;
    const int64_t blocks = (count + kBlock - 1) / kBlock;
    std::vector<uint8_t> used(k, 0);
    std::vector<int64_t> taken, next, sample;
    std::vector<std::vector<int64_t>> found(blocks);
    const auto free = [&](int64_t at) { return !used[i[at]] && !used[j[at]]; };
    const auto before = [&](int64_t a, int64_t b) { return priority[a] != priority[b] ? priority[a] > priority[b] : a < b; };
    for (double below = std::numeric_limits<double>::infinity(); below > -std::numeric_limits<double>::infinity();) {
        // From which priority on there are about so many of them, by a sample of the free ones that are left.
        const int64_t step = std::max<int64_t>(count / (kSample * 64), 1);
        sample.clear();
        for (int64_t at = 0; at < count; at += step)
            if (priority[at] < below && free(at)) sample.push_back(at);
        const int64_t wanted = kFew / step;
        double least = -std::numeric_limits<double>::infinity();
        if (static_cast<int64_t>(sample.size()) > 2 * wanted) {
            std::nth_element(sample.begin(), sample.begin() + wanted, sample.end(), before);
            least = priority[sample[wanted]];
        }
        parallel_blocks(context, count, kBlock, [&](int64_t block, int64_t begin, int64_t end) {
            found[block].clear();
            for (int64_t at = begin; at < end; ++at)
                if (priority[at] >= least && priority[at] < below && free(at)) found[block].push_back(at);
        });
        next.clear();
        for (const auto& own : found) next.insert(next.end(), own.begin(), own.end());
        std::sort(next.begin(), next.end(), before);
        for (int64_t at : next)
            if (free(at)) {
                used[i[at]] = used[j[at]] = 1;
                taken.push_back(at);
            }
        below = least;
    }
    return taken;
}

}  // namespace corecut
