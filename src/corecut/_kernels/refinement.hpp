// Exact single-node moves that lower the (regularised) normalised cut.
#pragma once

#include <limits>
#include <vector>

#include "local_moves.hpp"

namespace corecut {

// F = Σ_j 1 - R_j/V_j with R_j = assoc_j + (τ/n)S_j² and V_j = vol_j + τS_j; S_j counts original nodes.
class CutPolicy {
   public:
    std::vector<double> inside, volume, size;  // R, V, S by cluster
    std::vector<int64_t> members;              // nodes of this graph in each cluster: none may lose its last one

    template <class Index, class Weight>
    CutPolicy(Context& context, const Csr<Index, Weight>& a, const double* degrees, const double* sizes, const int32_t* labels,
              int64_t k, double tau, double total_size, double min_size, double max_size)
        : inside(k, 0.0), volume(k, 0.0), size(k, 0.0), members(k, 0), degrees_(degrees), sizes_(sizes), tau_(tau),
          share_(tau / total_size), min_size_(min_size), max_size_(max_size), lacking_(a.n, 0.0f) {
        LazyVector<double> within(a.n);
        parallel_blocks(context, a.n, kRowBlock, [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t x = begin; x < end; ++x) {
                const auto r = a.row(x);
                a.check_columns(r);
                const int32_t own = labels[x];
                if constexpr (Csr<Index, Weight>::weighted) {
                    double sum = 0.0;
                    for (int64_t p = r.begin; p < r.end; ++p) sum += labels[a.indices[p]] == own ? a.weight(p) : 0.0;
                    within[x] = sum;
                } else {
                    int64_t count = 0;
                    for (int64_t p = r.begin; p < r.end; ++p) count += labels[a.indices[p]] == own;
                    within[x] = static_cast<double>(count);
                }
            }
        });
        for (int64_t x = 0; x < a.n; ++x) {
            const int32_t j = labels[x];
            inside[j] += within[x];
            volume[j] += degrees[x] + tau * sizes[x];
            size[j] += sizes[x];
            ++members[j];
        }
        for (int64_t j = 0; j < k; ++j) inside[j] += share_ * size[j] * size[j];
    }

    double objective() const {
        double sum = 0.0;
        for (size_t j = 0; j < volume.size(); ++j) sum += volume[j] > 0 ? 1.0 - inside[j] / volume[j] : 1.0;
        return sum;
    }

    double leave(int64_t x, int32_t from, double to_own, double loop) const {
        const double s = sizes_[x], d = degrees_[x] + tau_ * s;
        const double r = inside[from] - (2 * to_own + loop + share_ * s * (2 * size[from] - s)), v = volume[from] - d;
        // A cluster may not lose its last node, nor all of its volume.
        if (members[from] <= 1 || !(v > volume[from] * 1e-12) || size[from] - s < min_size_)
            return -std::numeric_limits<double>::infinity();
        return r / v - inside[from] / volume[from];
    }

    double enter(int64_t x, int32_t to, double to_target, double loop) const {
        const double s = sizes_[x], d = degrees_[x] + tau_ * s;
        if (size[to] + s > max_size_) return -std::numeric_limits<double>::infinity();
        const double r = inside[to] + 2 * to_target + loop + share_ * s * (2 * size[to] + s), v = volume[to] + d;
        return r / v - (volume[to] > 0 ? inside[to] / volume[to] : 0.0);
    }

    int32_t best(int64_t x, int32_t from, const Neighbourhood& seen) {
        const double out = leave(x, from, seen.weight[from], seen.loop);
        int32_t target = from;
        double most = kLeast, highest = out;  // a cluster that x does not touch gains less than `out`
        for (int32_t j : seen.clusters) {
            if (j == from) continue;
            const double g = out + enter(x, j, seen.weight[j], seen.loop);
            if (g > most || (g == most && target != from && j < target)) most = g, target = j;
            highest = std::max(highest, g);
        }
        lacking_[x] = static_cast<float>(-highest);
        return target;
    }

    // Moves of neighbours raise the gain of a move of y by at most 2w/V for each end of it that they touch. Until that adds up
    // to what y's best move lacked when it was last looked at, y stays; on a dense graph nearly everybody does.
    bool wakes(int64_t y, int32_t own, int32_t from, int32_t to, double w) {
        double risen = 0.0;
        if (from == own) risen += 2 * w / volume[own];
        if (to != own) risen += 2 * w / volume[to];
        lacking_[y] -= static_cast<float>(risen);
        return lacking_[y] <= 0.0f;
    }

    double gain(int64_t x, int32_t from, int32_t to, double to_own, double to_target, double loop) const {
        return leave(x, from, to_own, loop) + enter(x, to, to_target, loop) - kLeast;
    }

    void apply(int64_t x, int32_t from, int32_t to, double to_own, double to_target, double loop) {
        const double s = sizes_[x], d = degrees_[x] + tau_ * s;
        inside[from] -= 2 * to_own + loop + share_ * s * (2 * size[from] - s);
        volume[from] -= d;
        size[from] -= s;
        --members[from];
        inside[to] += 2 * to_target + loop + share_ * s * (2 * size[to] + s);
        volume[to] += d;
        size[to] += s;
        ++members[to];
    }

   private:
    // What a move must gain at least: rounding must not look like progress, or sweeps would never end.
    static constexpr double kLeast = 1e-12;

    const double* degrees_;
    const double* sizes_;
    double tau_, share_, min_size_, max_size_;
    LazyVector<float> lacking_;  // by node: by how much its best move raised F when it was last looked at, less what rose since
};

struct Refinement {
    int64_t moves = 0, passes = 0;
    double before = 0, after = 0;
    bool converged = false;
};

// Sweeps until a full sweep makes no move, max_passes sweeps are done, or one lowers F by less than tolerance·F. Sweeps look
// at active nodes only (neighbours moved); when none is left, one over all nodes decides, since volumes change for everybody.
template <class Index, class Weight>
Refinement refine(Context& context, const Csr<Index, Weight>& a, const double* degrees, const double* sizes, int32_t* labels,
                  int64_t k, double tau, double total_size, double min_size, double max_size, int64_t max_passes,
                  double tolerance) {
    for (int64_t x = 0; x < a.n; ++x)
        if (labels[x] < 0 || labels[x] >= k) throw InputError("a label is not below the number of clusters");
    Refinement result;
    const auto fresh = [&] { return CutPolicy(context, a, degrees, sizes, labels, k, tau, total_size, min_size, max_size); };
    CutPolicy policy = fresh();
    result.before = policy.objective();
    LazyVector<uint8_t> active(a.n, 1);
    LazyVector<int32_t> stamp(a.n, 0);
    int32_t batch_number = 0;
    bool full = true;
    double value = result.before;
    while (result.passes < max_passes) {
        const SweepResult pass = sweep(context, a, labels, k, policy, active, stamp, batch_number);
        ++result.passes;
        result.moves += pass.moves;
        const double last = value;
        value = policy.objective();
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
    result.after = policy.objective();
    return result;
}

}  // namespace corecut
