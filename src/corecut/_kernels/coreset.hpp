// Sensitivities and importance sampling.
#pragma once

#include <algorithm>
#include <vector>

#include "memory.hpp"
#include "parallel.hpp"
#include "random.hpp"

namespace corecut {

inline constexpr int64_t kSumBlock = 4096;

// Sum in blocks whose borders do not depend on the threads.
template <class F>
double blocked_sum(Context& context, int64_t n, F&& term) {
    std::vector<double> sums((n + kSumBlock - 1) / kSumBlock, 0.0);
    parallel_blocks(context, n, kSumBlock * 16, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t b = begin / kSumBlock; b * kSumBlock < end; ++b) {
            double sum = 0.0;
            for (int64_t x = b * kSumBlock; x < std::min(n, (b + 1) * kSumBlock); ++x) sum += term(x);
            sums[b] = sum;
        }
    });
    double total = 0.0;
    for (double s : sums) total += s;
    return total;
}

// s_x = w(x)Δ(x, C)/cost(X, C) + w(x)/mass, where mass is the weight of all points that share x's nearest seed (Jiang et
// al. 2022), or the weight of all seeds (the reference implementation) when by_seeds.
inline LazyVector<double> sensitivities(Context& context, int64_t n, const double* w, const double* distance,
                                        const int32_t* nearest, const int64_t* seeds, int64_t n_seeds, bool by_seeds) {
    parallel_blocks(context, n, 1 << 16, [&](int64_t, int64_t begin, int64_t end) {
        bool good = true;
        for (int64_t x = begin; x < end; ++x) good &= static_cast<int64_t>(static_cast<uint32_t>(nearest[x])) < n_seeds;
        if (!good) throw InputError("nearest holds a number that is not a seed's");
    });
    std::vector<double> inverse(std::max<int64_t>(n_seeds, 1), 0.0);
    if (by_seeds) {
        double mass = 0.0;
        for (int64_t j = 0; j < n_seeds; ++j) mass += w[seeds[j]];
        std::fill(inverse.begin(), inverse.end(), mass > 0 ? 1.0 / mass : 0.0);
    } else {
        for (int64_t x = 0; x < n; ++x) inverse[nearest[x]] += w[x];
        for (double& v : inverse) v = v > 0 ? 1.0 / v : 0.0;
    }
    const double cost = blocked_sum(context, n, [&](int64_t x) { return w[x] * distance[x]; });
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

// `draws` independent points with probability proportional to their mass: one pass over the masses.
inline Draws draw_points(Context& context, int64_t n, const double* mass, int64_t draws, uint64_t seed) {
    const int64_t blocks = (n + kSumBlock - 1) / kSumBlock;
    std::vector<double> prefix(blocks + 1, 0.0);
    parallel_blocks(context, n, kSumBlock * 16, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t b = begin / kSumBlock; b * kSumBlock < end; ++b) {
            double sum = 0.0;
            for (int64_t x = b * kSumBlock; x < std::min(n, (b + 1) * kSumBlock); ++x) sum += mass[x];
            prefix[b + 1] = sum;
        }
    });
    for (int64_t b = 0; b < blocks; ++b) prefix[b + 1] += prefix[b];
    Draws result;
    result.total = prefix[blocks];
    if (!(result.total > 0)) throw InputError("all sampling masses are zero");

    std::vector<double> targets(draws);
    parallel_blocks(context, draws, 1 << 14, [&](int64_t b, int64_t begin, int64_t end) {
        Random random(seed, static_cast<uint64_t>(b));
        for (int64_t i = begin; i < end; ++i) targets[i] = random.uniform() * result.total;
    });
    std::sort(targets.begin(), targets.end());

    std::vector<Draws> parts(blocks);
    parallel_blocks(context, blocks, 16, [&](int64_t, int64_t first, int64_t last) {
        for (int64_t b = first; b < last; ++b) {
            auto t = std::lower_bound(targets.begin(), targets.end(), prefix[b]);
            const auto stop = b + 1 < blocks ? std::lower_bound(targets.begin(), targets.end(), prefix[b + 1]) : targets.end();
            if (t == stop) continue;
            const int64_t end = std::min(n, (b + 1) * kSumBlock);
            double upper = prefix[b];
            int64_t positive = -1;
            for (int64_t x = b * kSumBlock; x < end && t != stop; ++x) {
                if (!(mass[x] > 0)) continue;
                positive = x;
                upper += mass[x];
                int64_t count = 0;
                while (t != stop && *t < upper) ++t, ++count;
                if (count) parts[b].indices.push_back(x), parts[b].counts.push_back(count);
            }
            if (t != stop && positive >= 0) {  // rounding left targets behind the block's last point
                if (parts[b].indices.empty() || parts[b].indices.back() != positive)
                    parts[b].indices.push_back(positive), parts[b].counts.push_back(0);
                parts[b].counts.back() += stop - t;
            }
        }
    });
    for (auto& part : parts) {
        result.indices.insert(result.indices.end(), part.indices.begin(), part.indices.end());
        result.counts.insert(result.counts.end(), part.counts.begin(), part.counts.end());
    }
    return result;
}

}  // namespace corecut
