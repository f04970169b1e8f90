// Exact single-node moves that lower the objective.
#pragma once

#include <limits>
#include <memory>
#include <vector>

#include "local_moves.hpp"
#include "objective.hpp"

namespace corecut {

// What a move must gain at least: rounding must not look like progress, or sweeps would never end.
inline constexpr double kLeastGain = 1e-12;

class CutPolicy {
   public:
    Clusters clusters;
    const std::vector<double>& volume;

    template <class Index, class Weight>
    CutPolicy(Context& context, const Csr<Index, Weight>& a, const double* degrees, const double* sizes, const int32_t* labels,
              int64_t k, const Objective& f, const double* due)
        : clusters(context, a, degrees, sizes, labels, k, f, due), volume(clusters.volume), degrees_(degrees), sizes_(sizes),
          lacking_(a.n, 0.0f) {}

    int32_t best(int64_t x, int32_t from, const Neighbourhood& seen) {
        const Node node{degrees_[x], sizes_[x], seen.loop};
        int32_t target = from;
        double most = kLeastGain, highest = -std::numeric_limits<double>::infinity();
        if (clusters.may_leave(from, node)) {
            const double out = clusters.leave(from, node, seen.weight[from]);
            highest = out;  // a cluster that x does not touch gains less than that
            for (int32_t j : seen.clusters) {
                if (j == from || clusters.strain(from, j, node) > 0) continue;
                const double g = out + clusters.enter(j, node, seen.weight[j]);
                if (g > most || (g == most && target != from && j < target)) most = g, target = j;
                highest = std::max(highest, g);
            }
        }
        lacking_[x] = static_cast<float>(-highest);
        return target;
    }

    // Until what moves of its neighbours bring adds up to what y's best move lacked when it was last looked at, y stays; on a
    // dense graph nearly everybody does.
    bool wakes(int64_t y, int32_t own, int32_t from, int32_t to, double w) {
        lacking_[y] -= static_cast<float>(clusters.nearer(own, from, to, w));
        return lacking_[y] <= 0.0f;
    }

    double gain(int64_t x, int32_t from, int32_t to, double to_own, double to_target, double loop) const {
        const Node node{degrees_[x], sizes_[x], loop};
        if (!clusters.may_leave(from, node) || clusters.strain(from, to, node) > 0) return -1.0;
        return clusters.leave(from, node, to_own) + clusters.enter(to, node, to_target) - kLeastGain;
    }

    void apply(int64_t x, int32_t from, int32_t to, double to_own, double to_target, double loop) {
        clusters.move(from, to, {degrees_[x], sizes_[x], loop}, to_own, to_target);
    }

   private:
    const double* degrees_;
    const double* sizes_;
    LazyVector<float> lacking_;  // by node: by how much its best move raised F when it was last looked at, less what rose since
};

struct Refinement {
    int64_t moves = 0, passes = 0;
    double before = 0, after = 0;
    bool converged = false;
};

inline void check_labels(const int32_t* labels, int64_t n, int64_t k) {
    for (int64_t x = 0; x < n; ++x)
        if (labels[x] < 0 || labels[x] >= k) throw InputError("a label is not below the number of clusters");
}

// Sweeps until a full sweep makes no move, max_passes sweeps are done, or one lowers F by less than tolerance·F. Sweeps look
// at active nodes only (neighbours moved); when none is left, one over all nodes decides, since volumes change for everybody.
template <class Index, class Weight>
Refinement refine(Context& context, const Csr<Index, Weight>& a, const double* degrees, const double* sizes, int32_t* labels,
                  int64_t k, const Objective& f, const double* due, int64_t max_passes, double tolerance) {
    check_labels(labels, a.n, k);
    Refinement result;
    const auto fresh = [&] { return std::make_unique<CutPolicy>(context, a, degrees, sizes, labels, k, f, due); };
    auto policy = fresh();
    result.before = policy->clusters.value();
    LazyVector<uint8_t> active(a.n, 1);
    LazyVector<int32_t> stamp(a.n, 0);
    int32_t batch_number = 0;
    bool full = true;
    double value = result.before;
    while (result.passes < max_passes) {
        const SweepResult pass = sweep(context, a, labels, k, *policy, active, stamp, batch_number);
        ++result.passes;
        result.moves += pass.moves;
        const double last = value;
        value = policy->clusters.value();
        if (pass.moves == 0 && full) {
            result.converged = true;
            break;
        }
        if (tolerance > 0 && last - value < tolerance * value) break;
        full = false;
        if (pass.moves == 0) {
            // Sums updated by millions of moves carry rounding. The sweep that decides has the sums that a second call
            // would begin with, so that such a call finds no move either.
            policy = fresh();
            std::fill(active.begin(), active.end(), uint8_t{1});
            full = true;
        }
    }
    result.after = policy->clusters.value();
    return result;
}

}  // namespace corecut
