#include "bindings.hpp"
#include "coreset.hpp"

namespace corecut {

void bind_coreset(nb::module_& m) {
    m.def("sensitivities", [](In<double> weights, In<double> distance, In<int32_t> nearest, In<int64_t> seeds, bool by_seeds,
                              int threads) {
        const int64_t n = static_cast<int64_t>(weights.shape(0));
        require_length(distance, n, "distance");
        require_length(nearest, n, "nearest");
        const int64_t n_seeds = static_cast<int64_t>(seeds.shape(0));
        for (int64_t j = 0; j < n_seeds; ++j)
            if (seeds.data()[j] < 0 || seeds.data()[j] >= n) throw InputError("seeds holds a number that is not a point's");
        LazyVector<double> result;
        run(checked_threads(threads), [&](Context& context) {
            result = sensitivities(context, n, weights.data(), distance.data(), nearest.data(), seeds.data(), n_seeds, by_seeds);
        });
        return to_numpy(std::move(result));
    });
    m.def("draw_points", [](In<double> mass, int64_t draws, uint64_t seed, int threads) {
        if (draws < 1) throw InputError("the number of draws must be positive");
        Draws result;
        run(checked_threads(threads), [&](Context& context) {
            result = draw_points(context, static_cast<int64_t>(mass.shape(0)), mass.data(), draws, seed);
        });
        return std::make_tuple(to_numpy(std::move(result.indices)), to_numpy(std::move(result.counts)), result.total);
    });
    // The same by blocks of rows that begin at a multiple of ROWS_OF_A_MASS.
    m.attr("ROWS_OF_A_SUM") = kSumBlock;
    m.attr("ROWS_OF_A_MASS") = kMassBlock;
    m.def("block_sums", [](In<double> values) {
        std::vector<double> sums;
        run(1, [&](Context& context) {
            sums = block_sums(context, static_cast<int64_t>(values.shape(0)), [&](int64_t x) { return values.data()[x]; });
        });
        return to_numpy(std::move(sums));
    });
    m.def("masses_by_seed", [](In<double> weights, In<int32_t> nearest, int64_t n_seeds) {
        const int64_t n = static_cast<int64_t>(weights.shape(0));
        require_length(nearest, n, "nearest");
        std::vector<int64_t> seeds;
        std::vector<double> masses;
        run(1, [&](Context& context) {
            check_nearest(context, n, nearest.data(), n_seeds);
            masses_by_seed(n, weights.data(), nearest.data(), n_seeds, [&](int64_t j, double mass) {
                seeds.push_back(j);
                masses.push_back(mass);
            });
        });
        return std::make_tuple(to_numpy(std::move(seeds)), to_numpy(std::move(masses)));
    });
    m.def("draw_targets", [](int64_t draws, double total, uint64_t seed, int threads) {
        if (draws < 1) throw InputError("the number of draws must be positive");
        std::vector<double> targets;
        run(checked_threads(threads), [&](Context& context) { targets = draw_targets(context, draws, total, seed); });
        return to_numpy(std::move(targets));
    });
    m.def("draw_in_blocks", [](In<double> mass, In<double> prefix, In<double> targets) {
        const int64_t n = static_cast<int64_t>(mass.shape(0));
        require_length(prefix, (n + kSumBlock - 1) / kSumBlock + 1, "prefix");
        Draws result;
        run(1, [&](Context& context) {
            result = draw_in_blocks(context, n, mass.data(), prefix.data(), targets.data(), static_cast<int64_t>(targets.shape(0)));
        });
        return std::make_tuple(to_numpy(std::move(result.indices)), to_numpy(std::move(result.counts)));
    });
}

}  // namespace corecut
