#include "bindings.hpp"
#include "datasets.hpp"

#include <limits>

namespace corecut {

namespace {

PlantedClusters checked_clusters(const In<int64_t>& borders) {
    const int64_t count = static_cast<int64_t>(borders.shape(0)) - 1;
    if (count < 1 || borders.data()[0] != 0) throw InputError("borders must begin with 0 and hold one more number than clusters");
    for (int64_t c = 0; c < count; ++c)
        if (borders.data()[c + 1] <= borders.data()[c]) throw InputError("borders must increase");
    if (borders.data()[count] > std::numeric_limits<int32_t>::max()) throw InputError("there must be at most 2^31 - 1 nodes");
    return {borders.data(), count};
}

const double* checked_theta(const In<double>& theta, int64_t n) {
    require_length(theta, n, "theta");
    for (int64_t x = 0; x < n; ++x)
        if (!(theta.data()[x] >= 1e-100 && theta.data()[x] <= 1e100))  // so that sums and their inverses stay finite
            throw InputError("theta must lie between 1e-100 and 1e100");
    return theta.data();
}

void require_rate(double value, const char* name) {
    if (!(value >= 0 && std::isfinite(value))) throw InputError(std::string(name) + " must be finite and not negative");
}

std::tuple<Out<int64_t>, Out<int32_t>> to_python(Adjacency&& graph) {
    const auto entries = static_cast<size_t>(graph.indptr.back());
    int32_t* const indices = graph.indices.release();
    nb::capsule owner(indices, [](void* p) noexcept { delete[] static_cast<int32_t*>(p); });
    return {to_numpy(std::move(graph.indptr)), Out<int32_t>(indices, {entries}, owner)};
}

// A law with the arrays it reads, kept alive.
struct HeldLaw {
    In<int64_t> borders;
    In<double> theta;
    DegreeCorrected law;

    HeldLaw(In<int64_t> b, In<double> t, double inside, double anywhere, uint64_t seed)
        : borders(std::move(b)),
          theta(std::move(t)),
          law(checked_clusters(borders), checked_theta(theta, borders.data()[borders.shape(0) - 1]), inside, anywhere, seed) {}
};

}  // namespace

void bind_datasets(nb::module_& m) {
    m.def(
        "stochastic_block_model",
        [](In<int64_t> borders, double p, double q, uint64_t seed, int threads) {
            const PlantedClusters clusters = checked_clusters(borders);
            if (!(p >= 0 && p <= 1 && q >= 0 && q <= 1)) throw InputError("p and q must be probabilities");
            Adjacency result;
            run(checked_threads(threads),
                [&](Context& context) { result = stochastic_block_model(context, clusters, p, q, seed); });
            return to_python(std::move(result));
        },
        nb::arg("borders"), nb::arg("p"), nb::arg("q"), nb::arg("seed"), nb::arg("threads"));
    m.def(
        "degree_corrected",
        [](In<int64_t> borders, In<double> theta, double inside, double anywhere, uint64_t seed, int threads) {
            const PlantedClusters clusters = checked_clusters(borders);
            checked_theta(theta, clusters.nodes());
            require_rate(inside, "inside");
            require_rate(anywhere, "anywhere");
            Adjacency result;
            run(checked_threads(threads), [&](Context& context) {
                result = degree_corrected(context, clusters, theta.data(), inside, anywhere, seed);
            });
            return to_python(std::move(result));
        },
        nb::arg("borders"), nb::arg("theta"), nb::arg("inside"), nb::arg("anywhere"), nb::arg("seed"), nb::arg("threads"));
    nb::class_<HeldLaw>(m, "DegreeCorrected")
        .def(
            "__init__",
            [](HeldLaw* self, In<int64_t> borders, In<double> theta, double inside, double anywhere, uint64_t seed) {
                require_rate(inside, "inside");
                require_rate(anywhere, "anywhere");
                new (self) HeldLaw(std::move(borders), std::move(theta), inside, anywhere, seed);
            },
            nb::arg("borders"), nb::arg("theta"), nb::arg("inside"), nb::arg("anywhere"), nb::arg("seed"))
        .def(
            "edges",
            [](const HeldLaw& self, int64_t begin, int64_t end, int threads) {
                if (begin < 0 || begin > end || end > self.law.nodes()) throw InputError("rows are out of range");
                EdgeList result;
                run(checked_threads(threads),
                    [&](Context& context) { result = draw_edges(context, self.law, begin, end); });
                return std::make_tuple(to_numpy(std::move(result.source)), to_numpy(std::move(result.target)));
            },
            nb::arg("begin"), nb::arg("end"), nb::arg("threads"));
    nb::class_<PairProfile>(m, "PairProfile")
        .def(
            "__init__",
            [](PairProfile* self, In<int64_t> borders, In<double> theta) {
                const PlantedClusters clusters = checked_clusters(borders);
                new (self) PairProfile(clusters, checked_theta(theta, clusters.nodes()));
            },
            nb::arg("borders"), nb::arg("theta"))
        .def(
            "expected",
            [](const PairProfile& self, double inside, double anywhere) {
                require_rate(inside, "inside");
                require_rate(anywhere, "anywhere");
                PairProfile::Expected result{};
                run(1, [&](Context& context) { result = self.expected(context, inside, anywhere); });
                return std::make_tuple(result.inside, result.between);
            },
            nb::arg("inside"), nb::arg("anywhere"));
}

}  // namespace corecut
