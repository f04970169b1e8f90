// What a node sees of its neighbourhood, for searches that look at one node at a time, in an array by cluster. (Passes over all
// nodes have a table that stays in the cache: rating.hpp.)
#pragma once

#include <type_traits>
#include <vector>

#include "csr.hpp"
#include "memory.hpp"

namespace corecut {

// What a node sees of its neighbourhood: total edge weight to each adjacent cluster, and its own loop.
struct Neighbourhood {
    LazyVector<double> weight;      // by cluster, zero outside `clusters`
    std::vector<int32_t> clusters;  // adjacent ones, in order of first appearance
    double loop = 0;

    explicit Neighbourhood(int64_t k) : weight(k, 0.0) {}

    template <class Index, class Weight>
    void read(const Csr<Index, Weight>& a, const int32_t* labels, int64_t x) {
        clear();
        const auto r = a.row(x);
        a.check_columns(r);
        // Neighbours in a row tend to share a cluster: add up such a run in a register, not through memory.
        using Sum = std::conditional_t<Csr<Index, Weight>::weighted, double, int64_t>;
        int32_t run = -1;
        Sum sum = 0;
        for (int64_t p = r.begin; p < r.end; ++p) {
            const int64_t y = a.indices[p];
            const Sum w = static_cast<Sum>(a.weight(p));
            if (y == x) {
                loop += static_cast<double>(w);
                continue;
            }
            const int32_t j = labels[y];
            if (j != run) {
                add(run, static_cast<double>(sum));
                run = j;
                sum = 0;
            }
            sum += w;
        }
        add(run, static_cast<double>(sum));
    }

    void add(int32_t j, double w) {
        if (w == 0.0) return;
        if (weight[j] == 0.0) clusters.push_back(j);
        weight[j] += w;
    }

    void clear() {
        for (int32_t j : clusters) weight[j] = 0.0;
        clusters.clear();
        loop = 0;
    }
};

}  // namespace corecut
