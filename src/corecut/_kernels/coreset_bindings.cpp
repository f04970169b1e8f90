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
}

}  // namespace corecut
