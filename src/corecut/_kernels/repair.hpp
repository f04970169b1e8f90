// The best way to split each cluster in two along a given order of its nodes.
#pragma once

#include <vector>

#include "csr.hpp"

namespace corecut {

struct Splits {
    std::vector<double> gain;     // by cluster: (R₁/V₁ + R₂/V₂) - R/V of the best prefix; -infinity where there is none
    std::vector<int64_t> prefix;  // how many nodes of the order the first part takes
};

// order lists the nodes cluster by cluster (cluster j at start[j] .. start[j+1]); R and V as in the refinement's objective.
// A part must have at least least_size of the sizes. One pass over the edges: moving a node to the first part changes both parts by its weight towards them.
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
        double r2 = 0, v2 = 0, s2 = 0;
        std::vector<double> before(start[j + 1] - start[j]), after(start[j + 1] - start[j]);
        for (int64_t i = start[j]; i < start[j + 1]; ++i) {
            const int64_t x = order[i];
            const auto r = a.row(x);
            double b = 0, f = 0, loop = 0;
            for (int64_t p = r.begin; p < r.end; ++p) {
                const int64_t y = a.column(p);
                if (y == x)
                    loop += a.weight(p);
                else if (labels[y] == labels[x])
                    (rank[y] < i ? b : f) += a.weight(p);
            }
            before[i - start[j]] = 2 * b + loop;
            after[i - start[j]] = 2 * f + loop;
            r2 += b + f + loop;
            v2 += degrees[x] + tau * sizes[x];
            s2 += sizes[x];
        }
        r2 += share * s2 * s2;
        const double whole = v2 > 0 ? r2 / v2 : 0.0;
        double r1 = 0, v1 = 0, s1 = 0;
        for (int64_t i = start[j]; i + 1 < start[j + 1]; ++i) {
            const int64_t x = order[i];
            const double s = sizes[x], d = degrees[x] + tau * s;
            r1 += before[i - start[j]] + share * s * (2 * s1 + s);
            r2 -= after[i - start[j]] + share * s * (2 * s2 - s);
            v1 += d, v2 -= d, s1 += s, s2 -= s;
            if (!(v1 > 0) || !(v2 > 0) || s1 < least_size || s2 < least_size) continue;
            const double gain = r1 / v1 + r2 / v2 - whole;
            if (gain > result.gain[j]) result.gain[j] = gain, result.prefix[j] = i + 1 - start[j];
        }
    });
    return result;
}

}  // namespace corecut
