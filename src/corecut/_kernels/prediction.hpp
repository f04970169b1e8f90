// Where a node belongs that the clusters were not made of: in the cluster that F of the graph with it is lowest for.
#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "graph.hpp"
#include "local_moves.hpp"
#include "objective.hpp"
#include "refinement.hpp"

namespace corecut {

// A number for every row that tells rows apart: the sum over its entries of a mixed (column, value). Stored zeros add
// nothing, and a row without entries has the number 0. Where columns do not increase, an entry may be stored in parts.
struct Fingerprints {
    std::vector<uint64_t> numbers;
    bool increasing = true;
};

template <class Index, class Weight>
Fingerprints row_fingerprints(Context& context, const Csr<Index, Weight>& a, int64_t rows) {
    Fingerprints result;
    result.numbers.resize(rows);
    std::atomic<bool> rising{true};
    parallel_blocks(context, rows, kRowBlock, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t x = begin; x < end; ++x) {
            const auto r = a.row(x);
            if (!increasing(a.indices + r.begin, r.size())) rising.store(false);
            a.check_columns(r);
            uint64_t sum = 0;
            for (int64_t p = r.begin; p < r.end; ++p) {
                const double w = a.weight(p);
                const uint64_t column = static_cast<uint64_t>(a.indices[p]) + 1;
                // One round of mix64: who looks for rows of equal numbers will find some, chance will not.
                uint64_t z = std::bit_cast<uint64_t>(w) + 0x9E3779B97F4A7C15ULL * column;
                z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
                sum += w != 0.0 ? z ^ (z >> 27) : 0;
            }
            result.numbers[x] = sum;
        }
    });
    result.increasing = rising;
    return result;
}

struct Joined {
    std::vector<int32_t> labels;  // -1 for a row without a neighbour
    std::vector<double> margins;  // share of a row's weight that speaks for its label more than for the next one
};

// Join every row to the cluster, among those that it has weight to, where F rises least.
//
// `loops` (or null) are the rows' weights to themselves. `nodes` (or null) says which fitted node a row is, -1 for none; a
// fitted node has its label already. Messages count rows from `first`.
template <class Index, class Weight>
Joined join_clusters(Context& context, const Csr<Index, Weight>& a, int64_t rows, const int32_t* labels,
                     const Clusters& clusters, const double* loops, const int64_t* nodes, int64_t first) {
    const int64_t k = static_cast<int64_t>(clusters.volume.size());
    check_labels(labels, a.n, k);
    Joined result;
    result.labels.resize(rows);
    result.margins.resize(rows);
    const int64_t size = std::max<int64_t>(kRowBlock, rows / (8 * std::max(context.threads, 1)) + 1);
    parallel_blocks(context, rows, size, [&](int64_t, int64_t begin, int64_t end) {
        Neighbourhood seen(k);
        for (int64_t x = begin; x < end; ++x) {
            if ((x & 63) == 0) context.check();
            bool unit = true, canonical = true;
            scan_row(a, first + x, a.row(x), unit, canonical);  // refuses weights that are none
            const int64_t node = nodes ? nodes[x] : -1;
            if (node < -1 || node >= a.n) throw InputError("no row is node " + std::to_string(node) + ": there is none");
            seen.read(a, labels, x, node);
            double total = 0.0, most = -std::numeric_limits<double>::infinity(), next = 0.0;
            for (int32_t j : seen.clusters) total += seen.weight[j];
            int32_t target = node < 0 ? -1 : labels[node];
            if (node < 0) {
                const double loop = loops ? loops[x] : 0.0;
                const Node joining{total + loop, 1.0, loop};
                for (int32_t j : seen.clusters) {
                    const double g = clusters.join(j, joining, seen.weight[j]);
                    if (g > most || (g == most && j < target)) most = g, target = j;
                }
            }
            for (int32_t j : seen.clusters)
                if (j != target) next = std::max(next, seen.weight[j]);
            result.labels[x] = target;
            result.margins[x] = total > 0 ? std::max(0.0, seen.weight[target] - next) / total : 0.0;
        }
    });
    return result;
}

}  // namespace corecut
