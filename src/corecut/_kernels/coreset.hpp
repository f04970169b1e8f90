// Sensitivities and importance sampling.
#pragma once

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "memory.hpp"
#include "parallel.hpp"
#include "random.hpp"

namespace corecut {

// Rows whose terms are added up on their own, and rows whose weights by seed are: the sums do not depend on threads or machines.
inline constexpr int64_t kSumBlock = 4096, kMassBlock = 1 << 16;

template <class F>
std::vector<double> block_sums(Context& context, int64_t n, F&& term) {
    std::vector<double> sums((n + kSumBlock - 1) / kSumBlock, 0.0);
    parallel_blocks(context, n, kSumBlock * 16, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t b = begin / kSumBlock; b * kSumBlock < end; ++b) {
            double sum = 0.0;
            for (int64_t x = b * kSumBlock; x < std::min(n, (b + 1) * kSumBlock); ++x) sum += term(x);
            sums[b] = sum;
        }
    });
    return sums;
}

inline void check_nearest(Context& context, int64_t n, const int32_t* nearest, int64_t n_seeds) {
    parallel_blocks(context, n, 1 << 16, [&](int64_t, int64_t begin, int64_t end) {
        bool good = true;
        for (int64_t x = begin; x < end; ++x) good &= static_cast<int64_t>(static_cast<uint32_t>(nearest[x])) < n_seeds;
        if (!good) throw InputError("nearest holds a number that is not a seed's");
    });
}

// The weight of the points that share a nearest seed: add(j, weight) for the seeds of every block, one block after another.
template <class F>
void masses_by_seed(int64_t n, const double* w, const int32_t* nearest, int64_t n_seeds, F&& add) {
    std::vector<double> here(n_seeds, 0.0);
    for (int64_t begin = 0; begin < n; begin += kMassBlock) {
        for (int64_t x = begin; x < std::min(n, begin + kMassBlock); ++x) here[nearest[x]] += w[x];
        for (int64_t j = 0; j < n_seeds; ++j)
            if (here[j] != 0.0) add(j, std::exchange(here[j], 0.0));
    }
}

// s_x = w(x)Δ(x, C)/cost(X, C) + w(x)/mass, where mass is the weight of all points that share x's nearest seed (Jiang et
// al. 2022), or the weight of all seeds (the reference implementation) when by_seeds.
inline LazyVector<double> sensitivities(Context& context, int64_t n, const double* w, const double* distance,
                                        const int32_t* nearest, const int64_t* seeds, int64_t n_seeds, bool by_seeds) {
    check_nearest(context, n, nearest, n_seeds);
    std::vector<double> inverse(std::max<int64_t>(n_seeds, 1), 0.0);
    if (by_seeds) {
        double mass = 0.0;
        for (int64_t j = 0; j < n_seeds; ++j) mass += w[seeds[j]];
        std::fill(inverse.begin(), inverse.end(), mass > 0 ? 1.0 / mass : 0.0);
    } else {
        masses_by_seed(n, w, nearest, n_seeds, [&](int64_t j, double mass) { inverse[j] += mass; });
        for (double& v : inverse) v = v > 0 ? 1.0 / v : 0.0;
    }
    const auto sums = block_sums(context, n, [&](int64_t x) { return w[x] * distance[x]; });
    const double cost = std::accumulate(sums.begin(), sums.end(), 0.0);
    const double inverse_cost = cost > 0 ? 1.0 / cost : 0.0;
    LazyVector<double> s(n);
    parallel_blocks(context, n, 1 << 16, [&](int64_t, int64_t begin, int64_t end) {
        if (by_seeds) {
            const double same = inverse[0];
            for (int64_t x = begin; x < end; ++x) s[x] = w[x] * (distance[x] * inverse_cost + same);
        } else {
            for (int64_t x = begin; x < end; ++x) s[x] = w[x] * (distance[x] * inverse_cost + inverse[nearest[x]]);
        }
    });
    return s;
}

struct Draws {
    std::vector<int64_t> indices;  // distinct, increasing
    std::vector<int64_t> counts;   // how often each was drawn
    double total = 0;              // sum of all masses
};

// Where `draws` independent points lie among the masses, in increasing order.
inline std::vector<double> draw_targets(Context& context, int64_t draws, double total, uint64_t seed) {
    if (!(total > 0)) throw InputError("all sampling masses are zero");
    std::vector<double> targets(draws);
    parallel_blocks(context, draws, 1 << 14, [&](int64_t b, int64_t begin, int64_t end) {
        Random random(seed, static_cast<uint64_t>(b));
        for (int64_t i = begin; i < end; ++i) targets[i] = random.uniform() * total;
    });
    std::sort(targets.begin(), targets.end());
    return targets;
}

// The points of n rows that targets fall on. `prefix` has what lies before every block of theirs, and before what follows.
inline Draws draw_in_blocks(Context& context, int64_t n, const double* mass, const double* prefix, const double* targets,
                            int64_t count) {
    const int64_t blocks = (n + kSumBlock - 1) / kSumBlock;
    const double* const behind = targets + count;
    std::vector<Draws> parts(blocks);
    parallel_blocks(context, blocks, 16, [&](int64_t, int64_t first, int64_t last) {
        for (int64_t b = first; b < last; ++b) {
            const double* t = std::lower_bound(targets, behind, prefix[b]);
            const double* const stop = b + 1 < blocks ? std::lower_bound(targets, behind, prefix[b + 1]) : behind;
            if (t == stop) continue;
            const int64_t end = std::min(n, (b + 1) * kSumBlock);
            double upper = prefix[b];
            int64_t positive = -1;
            for (int64_t x = b * kSumBlock; x < end && t != stop; ++x) {
                if (!(mass[x] > 0)) continue;
                positive = x;
                upper += mass[x];
                int64_t drawn = 0;
                while (t != stop && *t < upper) ++t, ++drawn;
                if (drawn) parts[b].indices.push_back(x), parts[b].counts.push_back(drawn);
            }
            if (t != stop && positive >= 0) {  // rounding left targets behind the block's last point
                if (parts[b].indices.empty() || parts[b].indices.back() != positive)
                    parts[b].indices.push_back(positive), parts[b].counts.push_back(0);
                parts[b].counts.back() += stop - t;
            }
        }
    });
    Draws result;
    for (auto& part : parts) {
        result.indices.insert(result.indices.end(), part.indices.begin(), part.indices.end());
        result.counts.insert(result.counts.end(), part.counts.begin(), part.counts.end());
    }
    return result;
}

// `draws` independent points with probability proportional to their mass: one pass over the masses.
inline Draws draw_points(Context& context, int64_t n, const double* mass, int64_t draws, uint64_t seed) {
    std::vector<double> prefix = block_sums(context, n, [&](int64_t x) { return mass[x]; });
    prefix.insert(prefix.begin(), 0.0);
    std::partial_sum(prefix.begin(), prefix.end(), prefix.begin());
    const double total = prefix.back();
    const auto targets = draw_targets(context, draws, total, seed);
    Draws result = draw_in_blocks(context, n, mass, prefix.data(), targets.data(), draws);
    result.total = total;
    return result;
}

}  // namespace corecut
