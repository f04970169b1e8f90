// Nearest implied centre of every node, read from the coreset's rows only.
#pragma once

#include <limits>
#include <type_traits>
#include <vector>

#include "csr.hpp"
#include "memory.hpp"
#include "sampling.hpp"

namespace corecut {

struct Labelling {
    LazyVector<int32_t> labels;
    LazyVector<double> best, second;  // ‖c_j‖² - 2⟨φ(x), c_j⟩ of the two nearest centres
    int64_t untouched = 0;             // nodes without a neighbour in the coreset

    Labelling() = default;
    explicit Labelling(int64_t n) : labels(n), best(n), second(n) {}
};

// What labelling knows of the centres. coreset: increasing node numbers; load_y = w_y·scale_y / W_j for y's cluster j, so that
// ⟨φ(x), c_j⟩ is scale_x times the sum of load_y·A_xy over the cluster, plus own_y = w_y·(K_yy - scale_y²A_yy)/W_j where x = y
// (what the shift added). A kernel with a rank-one part r rᵀ adds r_x·pull_j, pull_j being the mean of r over the cluster, to
// every inner product. With touched_only, a node that has contact with some centre is not offered the ones it has no contact with.
struct ImpliedCentres {
    const int64_t* coreset;
    int64_t m;
    const int32_t* cluster;
    const double* load;
    const double* own;
    const double* norms;
    int64_t k;
    const double* scale;     // may be absent: all ones
    const double* rank_one;  // may be absent, and pull with it
    const double* pull;
    bool touched_only;
    // The two centres of smallest norm stand for all centres that a node has no contact with: contact only lowers a score.
    int32_t low = -1, low2 = -1;

    void check(int64_t n) {
        for (int64_t i = 0; i < m; ++i) {
            if (coreset[i] < 0 || coreset[i] >= n || (i > 0 && coreset[i] <= coreset[i - 1]))
                throw InputError("the coreset must be increasing node numbers below " + std::to_string(n));
            if (cluster[i] < 0 || cluster[i] >= k) throw InputError("a coreset label is not below the number of clusters");
        }
        for (int32_t j = 0; j < static_cast<int32_t>(k); ++j) {
            if (low < 0 || norms[j] < norms[low]) {
                low2 = low;
                low = j;
            } else if (low2 < 0 || norms[j] < norms[low2]) {
                low2 = j;
            }
        }
    }
};

// One node's inner products with the centres it touches, and its choice among them.
class Choice {
   public:
    explicit Choice(const ImpliedCentres& centres) : centres_(centres), sum_(centres.k, 0.0), seen_(centres.k, 0) {}

    bool touched() const { return !touched_.empty(); }

    void add(int32_t j, double product) {
        if (!seen_[j]) seen_[j] = 1, touched_.push_back(j);
        sum_[j] += product;
    }

    // Write the choice for node x at its place and forget its inner products.
    void take(int64_t x, int64_t place, Labelling& out) {
        const double *norms = centres_.norms, *pull = centres_.pull;
        best_ = second_ = std::numeric_limits<double>::infinity();
        winner_ = centres_.low;
        const double r = pull ? centres_.rank_one[x] : 0.0;
        for (int32_t j : touched_) offer(j, norms[j] - 2.0 * (pull ? sum_[j] + r * pull[j] : sum_[j]));
        if (!centres_.touched_only || touched_.empty()) {
            if (pull) {
                for (int32_t j = 0; j < static_cast<int32_t>(centres_.k); ++j)
                    if (!seen_[j]) offer(j, norms[j] - 2.0 * r * pull[j]);
            } else {
                for (int32_t j : {centres_.low, centres_.low2})
                    if (j >= 0 && !seen_[j]) offer(j, norms[j]);
            }
        }
        out.labels[place] = winner_;
        out.best[place] = best_;
        out.second[place] = second_;
        for (int32_t j : touched_) seen_[j] = 0, sum_[j] = 0.0;
        touched_.clear();
    }

   private:
    void offer(int32_t j, double score) {
        if (score < best_ || (score == best_ && j < winner_)) {
            second_ = best_;
            best_ = score;
            winner_ = j;
        } else if (score < second_) {
            second_ = score;
        }
    }

    const ImpliedCentres& centres_;
    std::vector<double> sum_;
    std::vector<char> seen_;
    std::vector<int32_t> touched_;
    double best_ = 0.0, second_ = 0.0;
    int32_t winner_ = 0;
};

// Nodes of a strip, which is so narrow that what a thread gathers for it stays in the cache.
template <class Index, class Weight>
int64_t strip_width(const Csr<Index, Weight>& a, const ImpliedCentres& centres) {
    int64_t entries = 0;
    for (int64_t i = 0; i < centres.m; ++i) entries += a.row(centres.coreset[i]).size();
    // A strip visits every coreset row, which must not cost more than its entries do.
    const int64_t strips = std::max<int64_t>(1, std::min(entries >> 16, entries / (8 * std::max<int64_t>(centres.m, 1))));
    return (a.n + strips - 1) / strips;
}

// Labels of nodes first.., written from place `first - origin` on. It reads from every coreset row what falls among them, in
// strips. A node's sums run over the coreset in increasing order whatever the ranges and strips are, so that labels do not depend
// on the number of threads or machines. Returns how many nodes touch no centre.
template <class Index, class Weight>
int64_t label_range(Context& context, const Csr<Index, Weight>& a, const ImpliedCentres& centres, int64_t width, int64_t first,
                    int64_t last, int64_t origin, Labelling& out) {
    constexpr bool weighted = Csr<Index, Weight>::weighted;
    const int64_t* coreset = centres.coreset;
    const int64_t m = centres.m;
    int64_t untouched = 0;
    Choice choice(centres);
    std::vector<int64_t> from(m), to(m), start;
    LazyVector<int32_t> who;                                      // coreset position of each contact
    LazyVector<std::conditional_t<weighted, Weight, char>> what;  // and its weight, where it has one
    for (int64_t i = 0; i < m; ++i) {
        const auto r = a.row(coreset[i]);
        to[i] = first == 0 ? r.begin : a.lower_bound(r, first);
    }
    int64_t member = std::lower_bound(coreset, coreset + m, first) - coreset;
    for (int64_t begin = first; begin < last; begin += width) {
        const int64_t end = std::min(last, begin + width), count = end - begin;
        // A counting sort of contacts by node: start[x + 1] is where x's contacts begin and, once filled in, where they end.
        start.assign(count + 2, 0);
        for (int64_t i = 0; i < m; ++i) {
            if ((i & 255) == 0) context.check();
            const int64_t stop = a.row(coreset[i]).end;
            int64_t p = from[i] = to[i];
            for (; p < stop; ++p) {
                const int64_t y = a.column(p);
                if (y >= end) break;
                if (y < begin) throw InputError("row " + std::to_string(coreset[i]) + " is not sorted");
                ++start[y - begin + 2];
            }
            to[i] = p;
        }
        for (int64_t x = 0; x <= count; ++x) start[x + 1] += start[x];
        who.resize(start[count + 1]);
        if constexpr (weighted) what.resize(start[count + 1]);
        for (int64_t i = 0; i < m; ++i) {
            if ((i & 255) == 0) context.check();
            for (int64_t p = from[i]; p < to[i]; ++p) {
                const int64_t q = start[static_cast<int64_t>(a.indices[p]) - begin + 1]++;
                who[q] = static_cast<int32_t>(i);
                if constexpr (weighted) what[q] = a.data[p];
            }
        }
        for (int64_t i = 0; i < count; ++i) {
            const int64_t x = begin + i;
            const double factor = centres.scale ? centres.scale[x] : 1.0;
            for (int64_t q = start[i]; q < start[i + 1]; ++q) {
                double load = centres.load[who[q]];
                if constexpr (weighted) load *= static_cast<double>(what[q]);
                choice.add(centres.cluster[who[q]], factor * load);
            }
            if (member < m && coreset[member] == x) {
                choice.add(centres.cluster[member], centres.own[member]);
                ++member;
            }
            if (!choice.touched()) ++untouched;
            choice.take(x, x - origin, out);
        }
    }
    return untouched;
}

// Rows begin.. alone; `centres` are checked.
template <class Index, class Weight>
Labelling label_rows(Context& context, const Csr<Index, Weight>& a, ImpliedCentres centres, int64_t begin, int64_t end) {
    centres.check(a.n);
    Labelling out(end - begin);
    out.untouched = label_range(context, a, centres, strip_width(a, centres), begin, end, begin, out);
    return out;
}

// Each thread owns a range of nodes.
template <class Index, class Weight>
Labelling label_nodes(Context& context, const Csr<Index, Weight>& a, ImpliedCentres centres) {
    centres.check(a.n);
    Labelling out(a.n);
    const int64_t width = strip_width(a, centres), range = (a.n + context.threads - 1) / context.threads;
    std::vector<int64_t> untouched(context.threads, 0);
    parallel_blocks(context, a.n, range, [&](int64_t part, int64_t first, int64_t last) {
        untouched[part] = label_range(context, a, centres, width, first, last, 0, out);
    });
    for (int64_t u : untouched) out.untouched += u;
    return out;
}

}  // namespace corecut
