// Per-node sums from which every metric follows.
#pragma once

#include <vector>

#include "csr.hpp"
#include "local_moves.hpp"

namespace corecut {

// within_x = Σ_y A_xy·factor_y over the y that share x's label (factor absent: 1). The sums over a cluster are taken by the
// caller in node order, so that they do not depend on the number of threads.
template <class Index, class Weight>
std::vector<double> within_cluster(Context& context, const Csr<Index, Weight>& a, const int32_t* labels,
                                   const double* factor) {
    std::vector<double> within(a.n);
    parallel_blocks(context, a.n, kRowBlock, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t x = begin; x < end; ++x) {
            if ((x & 63) == 0) context.check();
            const auto r = a.row(x);
            const int32_t own = labels[x];
            a.check_columns(r);
            if constexpr (!Csr<Index, Weight>::weighted) {
                if (!factor) {
                    int64_t count = 0;
                    for (int64_t p = r.begin; p < r.end; ++p) count += labels[a.indices[p]] == own;
                    within[x] = static_cast<double>(count);
                    continue;
                }
            }
            double sum = 0.0;
            for (int64_t p = r.begin; p < r.end; ++p) {
                const int64_t y = a.indices[p];
                if (labels[y] == own) sum += factor ? factor[y] * a.weight(p) : a.weight(p);
            }
            within[x] = sum;
        }
    });
    return within;
}

// The symmetric matrix summed over square cells: total[c·side + d] is the sum of the A_xy with cell_x = c and cell_y = d. Rows are
// read one after the other, so that sums are the same for any number of threads; of each pair of entries one is added up.
template <class Index, class Weight>
std::vector<double> cell_sums(Context& context, const Csr<Index, Weight>& a, const int32_t* cells, int64_t side) {
    for (int64_t x = 0; x < a.n; ++x)
        if (cells[x] < 0 || cells[x] >= side) throw InputError("a cell is not below their number");
    std::vector<double> total(side * side, 0.0), loops(side, 0.0);
    for (int64_t x = 0; x < a.n; ++x) {
        if ((x & 4095) == 0) context.check();
        const auto r = a.row(x);
        a.check_columns(r);
        double* line = &total[cells[x] * side];
        for (int64_t p = r.begin; p < r.end; ++p) {
            const int64_t y = static_cast<int64_t>(a.indices[p]);
            if (y < x) line[cells[y]] += a.weight(p);
            if (y == x) loops[cells[x]] += a.weight(p);
        }
    }
    for (int64_t c = 0; c < side; ++c) {
        for (int64_t d = 0; d < c; ++d) total[c * side + d] = total[d * side + c] = total[c * side + d] + total[d * side + c];
        total[c * side + c] = 2 * total[c * side + c] + loops[c];
    }
    return total;
}

// Every node's weight towards its own cluster (loops apart) and towards the other cluster that holds most of the rest.
struct Margins {
    std::vector<double> own, other;
};

inline void check_cluster_labels(const int32_t* labels, int64_t n, int64_t k) {
    for (int64_t x = 0; x < n; ++x)
        if (labels[x] < 0 || labels[x] >= k) throw InputError("a label is not below the number of clusters");
}

// Margins of rows begin.., written to own[0].. and other[0]...
template <class Index, class Weight>
void margins_of_rows(Context& context, const Csr<Index, Weight>& a, const int32_t* labels, int64_t k, int64_t begin, int64_t end,
                     double* own, double* other) {
    Neighbourhood seen(k);
    for (int64_t x = begin; x < end; ++x) {
        if ((x & 63) == 0) context.check();
        seen.read(a, labels, x);
        double most = 0.0;
        for (int32_t j : seen.clusters)
            if (j != labels[x]) most = std::max(most, seen.weight[j]);
        own[x - begin] = seen.weight[labels[x]];
        other[x - begin] = most;
    }
}

template <class Index, class Weight>
Margins cluster_margins(Context& context, const Csr<Index, Weight>& a, const int32_t* labels, int64_t k) {
    check_cluster_labels(labels, a.n, k);
    Margins result;
    result.own.resize(a.n);
    result.other.resize(a.n);
    const int64_t size = std::max<int64_t>(kRowBlock, a.n / (8 * std::max(context.threads, 1)) + 1);
    parallel_blocks(context, a.n, size, [&](int64_t, int64_t begin, int64_t end) {
        margins_of_rows(context, a, labels, k, begin, end, result.own.data() + begin, result.other.data() + begin);
    });
    return result;
}

}  // namespace corecut
