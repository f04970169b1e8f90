#include "bindings.hpp"
#include "kernel_arrays.hpp"
#include "sampling.hpp"

namespace corecut {

namespace {

void require_contribution(double value) {
    if (!(value >= 0 && std::isfinite(value))) throw InputError("a contribution must be finite and not negative");
}

}  // namespace

void bind_sampling(nb::module_& m) {
    m.def("smallest_point", [](In<double> diagonal, In<double> weights) {
        require_length(weights, diagonal.shape(0), "weights");
        Context context;
        return smallest_point(context, {nullptr, diagonal.data(), weights.data()}, static_cast<int64_t>(diagonal.shape(0)));
    });
    m.def(
        "sample_seeds",
        [](const Matrix& matrix, std::optional<In<double>> scale, In<double> diagonal, In<double> weights,
           const std::string& method, int64_t draws, std::optional<In<int64_t>> start, uint64_t seed, int threads) {
            const KernelArrays kernel = kernel_arrays(matrix, scale, diagonal, weights);
            Seeds seeds;
            run(checked_threads(threads), [&](Context& context) {
                matrix.visit([&](const auto& a) {
                    Random random(seed, 0);
                    const int64_t x_star = method == "naive" ? -1 : smallest_point(context, kernel, a.n);
                    const auto points = starting_points(a, kernel, start ? start->data() : nullptr,
                                                        start ? static_cast<int64_t>(start->shape(0)) : 0, random, x_star);
                    if (points.empty()) throw InputError("start must hold at least one point");
                    const auto smallest = [&](int64_t x) { return kernel.diagonal[x] <= kernel.diagonal[x_star]; };
                    if (x_star >= 0 && std::none_of(points.begin(), points.end(), smallest))
                        throw InputError("start must hold a point of smallest self-similarity, " +
                                         std::to_string(x_star) + ", for this sampler; use method=\"naive\" otherwise");
                    if (method == "naive")
                        seeds = sample_naive(context, a, kernel, points, draws, random);
                    else if (method == "tree")
                        seeds = sample_tree(context, a, kernel, points, draws, random);
                    else
                        seeds = sample_rejection(context, a, kernel, points, draws, random);
                });
            });
            return std::make_tuple(to_numpy(std::move(seeds.points)), to_numpy(std::move(seeds.distance)),
                                   to_numpy(std::move(seeds.nearest)), seeds.checks, seeds.clipped, seeds.missing_shift,
                                   seeds.rebuilds);
        },
        nb::arg("matrix"), nb::arg("scale").none(), nb::arg("diagonal"), nb::arg("weights"), nb::arg("method"),
        nb::arg("draws"), nb::arg("start").none(), nb::arg("seed"), nb::arg("threads"));
    m.def(
        "distances_of_rows",
        [](const Matrix& matrix, std::optional<In<double>> scale, In<double> diagonal, In<double> weights, In<int64_t> points,
           int64_t begin, int64_t end) {
            const KernelArrays kernel = kernel_arrays(matrix, scale, diagonal, weights);
            if (points.shape(0) < 1) throw InputError("there must be at least one seed");
            if (begin < 0 || begin > end || end > matrix.nodes()) throw InputError("a block of rows lies outside of the graph");
            Seeds seeds;
            run(1, [&](Context& context) {
                matrix.visit([&](const auto& a) {
                    seeds = distances_of_rows(context, a, kernel, points.data(), static_cast<int64_t>(points.shape(0)), begin, end);
                });
            });
            return std::make_tuple(to_numpy(std::move(seeds.distance)), to_numpy(std::move(seeds.nearest)), seeds.checks,
                                   seeds.clipped, seeds.missing_shift);
        },
        nb::arg("matrix"), nb::arg("scale").none(), nb::arg("diagonal"), nb::arg("weights"), nb::arg("points"), nb::arg("begin"),
        nb::arg("end"));
    nb::class_<SamplingTree>(m, "SamplingTree")
        .def("__init__",
             [](SamplingTree* self, In<double> leaves) {
                 if (leaves.shape(0) < 1) throw InputError("a sampling tree needs at least one leaf");
                 for (size_t x = 0; x < leaves.shape(0); ++x) require_contribution(leaves.data()[x]);
                 new (self) SamplingTree(std::vector<double>(leaves.data(), leaves.data() + leaves.shape(0)));
             })
        .def_prop_ro("total", &SamplingTree::total)
        .def("leaf",
             [](const SamplingTree& self, int64_t x) {
                 if (x < 0 || x >= self.size()) throw nb::index_error("no such leaf");
                 return self.leaf(x);
             })
        .def("update",
             [](SamplingTree& self, int64_t x, double value) {
                 if (x < 0 || x >= self.size()) throw nb::index_error("no such leaf");
                 require_contribution(value);
                 self.update(x, value);
             })
        .def("sample", [](const SamplingTree& self, double u) {
            if (!(u >= 0 && u < 1)) throw InputError("u must lie in [0, 1)");
            if (!(self.total() > 0)) throw InputError("no leaf of the tree has a contribution to sample by");
            return self.sample(u);
        });
}

}  // namespace corecut
