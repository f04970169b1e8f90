// Greedy k-means++ seeding of the rows of an embedding.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "parallel.hpp"
#include "simd.hpp"

namespace corecut {

// Rows of weight `mass`; `trials` candidates (at most kLanes) for each centre after the first. `uniforms` holds the randomness:
// one number in [0, 1) for the first centre, `trials` for each other one. Returns the chosen rows.
inline std::vector<int64_t> greedy_seeds(Context& context, const float* rows, int64_t m, int64_t width, const float* mass,
                                         int64_t k, int64_t trials, const double* uniforms) {
    constexpr int64_t block_size = 4096;  // for any number of threads, so that sums have one order
    const int64_t blocks = (m + block_size - 1) / block_size;
    std::vector<float> norms(m), nearest(m, std::numeric_limits<float>::infinity()), reduced(m * kLanes);
    for (int64_t i = 0; i < m; ++i)
        for (int64_t c = 0; c < width; ++c) norms[i] += rows[i * width + c] * rows[i * width + c];
    std::vector<double> cumulative(m), costs(blocks * kLanes);
    std::vector<float> centres(width * kLanes), centre_norms(kLanes);
    std::vector<int64_t> chosen;
    chosen.reserve(k);
    for (int64_t j = 0; j < k; ++j) {
        context.check();
        double total = 0.0;
        for (int64_t i = 0; i < m; ++i) cumulative[i] = total += j == 0 ? mass[i] : static_cast<double>(mass[i] * nearest[i]);
        const int64_t count = j == 0 ? 1 : trials;
        int64_t candidates[kLanes];
        for (int64_t t = 0; t < kLanes; ++t) {
            if (t < count) {
                const double u = *uniforms++;
                // Where all rows coincide with chosen ones, any row will do.
                const int64_t drawn = total > 0.0
                    ? std::upper_bound(cumulative.begin(), cumulative.end(), u * total) - cumulative.begin()
                    : static_cast<int64_t>(u * static_cast<double>(m));
                candidates[t] = std::min(drawn, m - 1);
            } else {
                candidates[t] = candidates[0];  // fills the lanes, and cannot win
            }
            const float* row = rows + candidates[t] * width;
            for (int64_t c = 0; c < width; ++c) centres[c * kLanes + t] = row[c];
            centre_norms[t] = norms[candidates[t]];
        }
        std::fill(costs.begin(), costs.end(), 0.0);
        parallel_blocks(context, m, block_size, [&](int64_t block, int64_t begin, int64_t end) {
            offer_centres(rows + begin * width, norms.data() + begin, nearest.data() + begin, mass + begin, end - begin, width,
                          centres.data(), centre_norms.data(), reduced.data() + begin * kLanes, costs.data() + block * kLanes);
        });
        int64_t best = 0;
        double lowest = std::numeric_limits<double>::infinity();
        for (int64_t t = 0; t < count; ++t) {
            double cost = 0.0;
            for (int64_t block = 0; block < blocks; ++block) cost += costs[block * kLanes + t];
            if (cost < lowest) {
                lowest = cost;
                best = t;
            }
        }
        for (int64_t i = 0; i < m; ++i) nearest[i] = reduced[i * kLanes + best];
        chosen.push_back(candidates[best]);
    }
    return chosen;
}

}  // namespace corecut
