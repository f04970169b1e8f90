// One assignment step of kernel k-means: every point to the nearest of the centres that the current partition implies.
#pragma once

#include <vector>

#include "csr.hpp"

namespace corecut {

// A partition's centres c_j = Σ_{y∈j} w_y φ(y) / W_j, and what a point needs to measure its distance to them.
struct Centres {
    const int32_t* labels;  // IN: the partition
    const double* norms;    // IN: ‖c_j‖², infinite for an empty cluster
    const double* mass;     // IN: W_j
    int64_t k;
};

// labels_x = argmin_j ‖c_j‖² - 2⟨φ(x), c_j⟩ with ⟨φ(x), c_j⟩ W_j = factor_x Σ_{y∈j} A_xy load_y, load_y = w_y·scale_y, plus
// own_x = w_x (K_xx - scale_x² A_xx) for x's own cluster. Of equally near centres a point keeps its own, else takes the
// lowest. A point of weight (and so of load) zero belongs to no centre: it has none to keep, and adds to none.
//
// A centre that x has no contact with scores its norm, and contact only lowers a score (the kernel has no negative entries):
// of those, the one of smallest norm is enough. A row is summed in its own order by one thread, whatever their number.
template <class Index, class Weight>
std::vector<int32_t> nearest_centres(Context& context, const Csr<Index, Weight>& a, const double* scale,
                                     const double* load, const double* own, const Centres& centres) {
    for (int64_t x = 0; x < a.n; ++x)
        if (centres.labels[x] < 0 || centres.labels[x] >= centres.k)
            throw InputError("label " + std::to_string(centres.labels[x]) + " of node " + std::to_string(x) +
                             " is not below the number of clusters");
    int32_t low = -1;
    for (int64_t j = 0; j < centres.k; ++j)
        if (centres.mass[j] > 0 && (low < 0 || centres.norms[j] < centres.norms[low])) low = static_cast<int32_t>(j);
    if (low < 0) throw InputError("there is no point of positive weight to cluster: every node is isolated");

    std::vector<int32_t> nearest(a.n);
    parallel_blocks(context, a.n, kRowBlock, [&](int64_t, int64_t begin, int64_t end) {
        std::vector<double> sum(centres.k, 0.0);
        std::vector<char> seen(centres.k, 0);
        std::vector<int32_t> touched;
        for (int64_t x = begin; x < end; ++x) {
            if ((x & 63) == 0) context.check();
            const int32_t current = load[x] > 0 ? centres.labels[x] : -1;
            touched.clear();
            auto touch = [&](int32_t j) {
                if (!seen[j]) seen[j] = 1, touched.push_back(j);
            };
            const auto r = a.row(x);
            for (int64_t p = r.begin; p < r.end; ++p) {
                a.prefetch_at(centres.labels, p + 8, r.end);
                a.prefetch_at(load, p + 8, r.end);
                const int64_t y = a.column(p);
                if (!(load[y] > 0)) continue;
                touch(centres.labels[y]);
                sum[centres.labels[y]] += load[y] * a.weight(p);
            }
            touch(low);
            if (current >= 0) touch(current);
            auto score = [&](int32_t j) {
                const double inner = (scale ? scale[x] : 1.0) * sum[j] + (j == current ? own[x] : 0.0);
                return centres.norms[j] - 2.0 * inner / centres.mass[j];
            };
            int32_t winner = current >= 0 ? current : low;
            double best = score(winner);
            for (int32_t j : touched) {
                const double s = score(j);
                if (s < best || (s == best && winner != current && j < winner)) best = s, winner = j;
            }
            nearest[x] = winner;
            for (int32_t j : touched) seen[j] = 0, sum[j] = 0.0;
        }
    });
    return nearest;
}

}  // namespace corecut
