// Nearest implied centre of every node, read from the coreset's rows only.
#pragma once

#include <limits>
#include <vector>

#include "csr.hpp"
#include "sampling.hpp"

namespace corecut {

struct Labelling {
    std::vector<int32_t> labels;
    std::vector<double> best, second;  // ‖c_j‖² - 2⟨φ(x), c_j⟩ of the two nearest centres
    int64_t untouched = 0;             // nodes without a neighbour in the coreset
};

// coreset: increasing node numbers; load_y = w_y·scale_y / W_j for y's cluster j, so that ⟨φ(x), c_j⟩ is scale_x times the
// sum of load_y·A_xy over the cluster, plus own_y = w_y·(K_yy - scale_y²A_yy)/W_j where x = y (what the shift added).
//
// A kernel with a rank-one part r rᵀ adds r_x·pull_j, pull_j being the mean of r over the cluster, to every inner product.
//
// With touched_only, a node that has contact with some centre is not offered the ones it has no contact with.
//
// Each thread owns a range of nodes and reads from every coreset row the part that falls into it. A node's sum runs over
// the coreset in increasing order whatever the ranges are, so labels do not depend on the number of threads.
template <class Index, class Weight>
Labelling label_nodes(Context& context, const Csr<Index, Weight>& a, const double* scale, const int64_t* coreset,
                      int64_t m, const int32_t* cluster, const double* load, const double* own, const double* norms,
                      int64_t k, const double* rank_one, const double* pull, bool touched_only) {
    Labelling out;
    out.labels.resize(a.n);
    out.best.resize(a.n);
    out.second.resize(a.n);
    for (int64_t i = 0; i < m; ++i) {
        if (coreset[i] < 0 || coreset[i] >= a.n || (i > 0 && coreset[i] <= coreset[i - 1]))
            throw InputError("the coreset must be increasing node numbers below " + std::to_string(a.n));
        if (cluster[i] < 0 || cluster[i] >= k) throw InputError("a coreset label is not below the number of clusters");
    }
    // The two centres of smallest norm stand for all centres that a node has no contact with: contact only lowers a score.
    int32_t low = -1, low2 = -1;
    for (int64_t j = 0; j < k; ++j) {
        if (low < 0 || norms[j] < norms[low]) {
            low2 = low;
            low = static_cast<int32_t>(j);
        } else if (low2 < 0 || norms[j] < norms[low2]) {
            low2 = static_cast<int32_t>(j);
        }
    }
    int64_t entries = 0;
    for (int64_t i = 0; i < m; ++i) entries += a.row(coreset[i]).size();
    // More parts than threads where that keeps the scratch space of one part within a few dozen megabytes.
    const int64_t wanted = std::max<int64_t>(context.threads, entries / (int64_t{1} << 22) + 1);
    const int64_t parts = std::max<int64_t>(1, std::min(wanted, a.n));
    const int64_t size = (a.n + parts - 1) / parts;
    std::vector<int64_t> untouched(parts, 0);
    parallel_blocks(context, a.n, size, [&](int64_t part, int64_t begin, int64_t end) {
        const int64_t count = end - begin;
        std::vector<int64_t> from(m), to(m), start(count + 1, 0);
        for (int64_t i = 0; i < m; ++i) {
            if ((i & 255) == 0) context.check();
            const auto r = a.row(coreset[i]);
            from[i] = begin == 0 ? r.begin : a.lower_bound(r, begin);
            to[i] = end == a.n ? r.end : a.lower_bound(r, end);
            for (int64_t p = from[i]; p < to[i]; ++p) {
                const int64_t x = a.column(p) - begin;
                if (x < 0 || x >= count) throw InputError("row " + std::to_string(coreset[i]) + " is not sorted");
                ++start[x + 1];
            }
        }
        for (int64_t x = 0; x < count; ++x) start[x + 1] += start[x];
        std::vector<int32_t> label(start[count]);
        std::vector<double> value(start[count]);
        std::vector<int64_t> fill(start.begin(), start.end() - 1);
        for (int64_t i = 0; i < m; ++i) {
            if ((i & 255) == 0) context.check();
            for (int64_t p = from[i]; p < to[i]; ++p) {
                const int64_t q = fill[a.column(p) - begin]++;
                label[q] = cluster[i];
                value[q] = load[i] * a.weight(p);
            }
        }
        std::vector<double> sum(k, 0.0);
        std::vector<char> seen(k, 0);
        std::vector<int32_t> touched;
        int64_t member = std::lower_bound(coreset, coreset + m, begin) - coreset;
        for (int64_t i = 0; i < count; ++i) {
            const int64_t x = begin + i;
            touched.clear();
            auto touch = [&](int32_t j) {
                if (!seen[j]) seen[j] = 1, touched.push_back(j);
            };
            const double factor = scale ? scale[x] : 1.0;
            for (int64_t q = start[i]; q < start[i + 1]; ++q) {
                touch(label[q]);
                sum[label[q]] += factor * value[q];
            }
            if (member < m && coreset[member] == x) {
                touch(cluster[member]);
                sum[cluster[member]] += own[member];
                ++member;
            }
            if (touched.empty()) ++untouched[part];
            double best = std::numeric_limits<double>::infinity(), second = best;
            int32_t winner = low;
            auto offer = [&](int32_t j, double score) {
                if (score < best || (score == best && j < winner)) {
                    second = best;
                    best = score;
                    winner = j;
                } else if (score < second) {
                    second = score;
                }
            };
            const double r = rank_one ? rank_one[x] : 0.0;
            for (int32_t j : touched) offer(j, norms[j] - 2.0 * (pull ? sum[j] + r * pull[j] : sum[j]));
            if (!touched_only || touched.empty()) {
                if (pull) {
                    for (int32_t j = 0; j < static_cast<int32_t>(k); ++j)
                        if (!seen[j]) offer(j, norms[j] - 2.0 * r * pull[j]);
                } else {
                    for (int32_t j : {low, low2})
                        if (j >= 0 && !seen[j]) offer(j, norms[j]);
                }
            }
            out.labels[x] = winner;
            out.best[x] = best;
            out.second[x] = second;
            for (int32_t j : touched) seen[j] = 0, sum[j] = 0.0;
        }
    });
    for (int64_t u : untouched) out.untouched += u;
    return out;
}

}  // namespace corecut
