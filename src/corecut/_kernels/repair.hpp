// The best way to split each cluster in two along a given order of its nodes.
#pragma once

#include <limits>
#include <vector>

#include "csr.hpp"

namespace corecut {

struct Splits {
    std::vector<double> gain;     // by cluster: (R₁/V₁ + R₂/V₂) - R/V of the best prefix; -infinity where there is none
    std::vector<int64_t> prefix;  // how many nodes of the order the first part takes
};

// assoc, V and S of a set of nodes.
struct Part {
    double association = 0, volume = 0, size = 0;

    Part with(double weight, double degree, double nodes) const { return {association + weight, volume + degree, size + nodes}; }
    double ratio(double share) const { return volume > 0 ? (association + share * size * size) / volume : 0.0; }
};

// order lists the nodes cluster by cluster (cluster j at start[j] .. start[j+1]); R and V as in the refinement's objective.
// A part must have at least least_size of the sizes. One pass over the edges: a node adds to a part its weight towards it.
template <class Index, class Weight>
Splits best_splits(Context& context, const Csr<Index, Weight>& a, const double* degrees, const double* sizes,
                   const int32_t* labels, const int64_t* order, const int64_t* start, int64_t k, double tau,
                   double total_size, double least_size) {
    std::vector<int64_t> rank(a.n, -1);
    for (int64_t i = 0; i < a.n; ++i) {
        if (order[i] < 0 || order[i] >= a.n || rank[order[i]] >= 0) throw InputError("order must list every node once");
        rank[order[i]] = i;
    }
    for (int64_t j = 0; j < k; ++j)
        if (start[j] < 0 || start[j] > start[j + 1] || start[j + 1] > a.n) throw InputError("start must increase");
    Splits result;
    result.gain.assign(k, -std::numeric_limits<double>::infinity());
    result.prefix.assign(k, 0);
    const double share = tau / total_size;
    parallel_blocks(context, k, 1, [&](int64_t j, int64_t, int64_t) {
        const int64_t first = start[j], count = start[j + 1] - first;
        // Sums of both parts for every border, each added up from its own end: what one subtraction after the other would
        // leave of a part without volume is rounding, not zero.
        std::vector<Part> head(count + 1), tail(count + 1);
        std::vector<double> behind(count);
        for (int64_t i = 0; i < count; ++i) {
            const int64_t x = order[first + i];
            const auto r = a.row(x);
            double earlier = 0, later = 0, loop = 0;
            for (int64_t p = r.begin; p < r.end; ++p) {
                const int64_t y = a.column(p);
                if (y == x)
                    loop += a.weight(p);
                else if (labels[y] == labels[x])
                    (rank[y] < first + i ? earlier : later) += a.weight(p);
            }
            head[i + 1] = head[i].with(2 * earlier + loop, degrees[x] + tau * sizes[x], sizes[x]);
            behind[i] = 2 * later + loop;
        }
        for (int64_t i = count - 1; i >= 0; --i) {
            const int64_t x = order[first + i];
            tail[i] = tail[i + 1].with(behind[i], degrees[x] + tau * sizes[x], sizes[x]);
        }
        const double whole = head[count].ratio(share);
        for (int64_t i = 1; i < count; ++i) {
            if (!(head[i].volume > 0) || !(tail[i].volume > 0)) continue;
            if (head[i].size < least_size || tail[i].size < least_size) continue;
            const double gain = head[i].ratio(share) + tail[i].ratio(share) - whole;
            if (gain > result.gain[j]) result.gain[j] = gain, result.prefix[j] = i;
        }
    });
    return result;
}

}  // namespace corecut
