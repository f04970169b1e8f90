#include "repair.hpp"

#include "bindings.hpp"
#include "cluster_pairs.hpp"
#include "refinement.hpp"

namespace corecut {

namespace {

ClusterGraph cluster_graph(In<int64_t> indptr, In<int32_t> indices, In<double> weights, In<double> association, In<double> volume,
                           In<double> size) {
    const auto k = static_cast<int64_t>(volume.shape(0)), entries = static_cast<int64_t>(indices.shape(0));
    require_length(indptr, k + 1, "indptr");
    require_length(weights, entries, "weights");
    require_length(association, k, "association");
    require_length(size, k, "size");
    if (indptr.data()[0] != 0 || indptr.data()[k] != entries) throw InputError("indptr does not fit indices");
    const ClusterGraph found{k, indptr.data(), indices.data(), weights.data(), association.data(), volume.data(), size.data()};
    found.check();
    return found;
}

}  // namespace

void bind_repair(nb::module_& m) {
    m.def(
        "split_clusters",
        [](const Matrix& matrix, In<double> degrees, In<double> sizes, In<int32_t> labels, In<uint8_t> wanted,
           const Objective& objective, In<double> low, In<double> high, bool both, double regularization, int steps, int vectors, uint64_t seed, int threads) {
            const int64_t n = matrix.nodes(), k = static_cast<int64_t>(wanted.shape(0));
            require_length(degrees, n, "degrees");
            require_length(sizes, n, "sizes");
            require_length(labels, n, "labels");
            require_length(low, k, "low");
            require_length(high, k, "high");
            Splits result;
            run(checked_threads(threads), [&](Context& context) {
                check_labels(labels.data(), n, k);
                matrix.visit([&](const auto& a) {
                    result = split_clusters(context, a, degrees.data(), sizes.data(), labels.data(), k, wanted.data(), objective,
                                            low.data(), high.data(), both, regularization, steps, vectors, seed);
                });
            });
            return std::make_tuple(to_numpy(std::move(result.gain)), to_numpy(std::move(result.first)), to_numpy(std::move(result.inside)));
        },
        nb::arg("matrix"), nb::arg("degrees"), nb::arg("sizes"), nb::arg("labels"), nb::arg("wanted"), nb::arg("objective"),
        nb::arg("low"), nb::arg("high"), nb::arg("both"), nb::arg("regularization"), nb::arg("steps"), nb::arg("vectors"), nb::arg("seed"), nb::arg("threads"));
    m.def(
        "cheapest_merges",
        [](In<int64_t> indptr, In<int32_t> indices, In<double> weights, In<double> association, In<double> volume, In<double> size,
           const Objective& objective, double dearest, int64_t most, bool any_two, int threads) {
            const ClusterGraph clusters = cluster_graph(indptr, indices, weights, association, volume, size);
            if (most < 1) throw InputError("most must be at least 1");
            std::vector<double> losses;
            std::vector<int64_t> first, second;
            run(checked_threads(threads), [&](Context& context) {
                for (const Merge& one : cheapest_merges(context, clusters, objective, dearest, most, any_two)) {
                    losses.push_back(one.loss);
                    first.push_back(one.i);
                    second.push_back(one.j);
                }
            });
            return std::make_tuple(to_numpy(std::move(losses)), to_numpy(std::move(first)), to_numpy(std::move(second)));
        },
        nb::arg("indptr"), nb::arg("indices"), nb::arg("weights"), nb::arg("association"), nb::arg("volume"), nb::arg("size"),
        nb::arg("objective"), nb::arg("dearest"), nb::arg("most"), nb::arg("any_two"), nb::arg("threads"));
    m.def(
        "adjacent_pairs",
        [](In<int64_t> indptr, In<int32_t> indices, In<double> weights, In<double> volume, int threads) {
            const ClusterGraph clusters = cluster_graph(indptr, indices, weights, volume, volume, volume);
            AdjacentPairs found;
            run(checked_threads(threads), [&](Context& context) { found = adjacent_pairs(context, clusters); });
            return std::make_tuple(to_numpy(std::move(found.i)), to_numpy(std::move(found.j)), to_numpy(std::move(found.share)));
        },
        nb::arg("indptr"), nb::arg("indices"), nb::arg("weights"), nb::arg("volume"), nb::arg("threads"));
    m.def(
        "take_pairs",
        [](In<int32_t> first, In<int32_t> second, In<double> priority, int64_t k, int threads) {
            const auto count = static_cast<int64_t>(first.shape(0));
            require_length(second, count, "second");
            require_length(priority, count, "priority");
            check_labels(first.data(), count, k);
            check_labels(second.data(), count, k);
            std::vector<int64_t> taken;
            run(checked_threads(threads),
                [&](Context& context) { taken = take_pairs(context, first.data(), second.data(), priority.data(), count, k); });
            return to_numpy(std::move(taken));
        },
        nb::arg("first"), nb::arg("second"), nb::arg("priority"), nb::arg("k"), nb::arg("threads"));
    m.def(
        "tridiagonal_eigen",
        [](In<double> diagonal, In<double> beside, int64_t count) {
            const auto n = static_cast<int64_t>(diagonal.shape(0));
            require_length(beside, n - 1, "beside");
            if (count < 1 || count > n) throw InputError("count is out of range");
            const Tridiagonal matrix({diagonal.data(), diagonal.data() + n}, {beside.data(), beside.data() + beside.shape(0)});
            std::vector<double> values = matrix.largest(static_cast<int>(count)), vectors;
            for (const auto& vector : matrix.vectors(values)) vectors.insert(vectors.end(), vector.begin(), vector.end());
            return std::make_tuple(to_numpy(std::move(values)), to_numpy(std::move(vectors)));
        },
        nb::arg("diagonal"), nb::arg("beside"), nb::arg("count"));
}

}  // namespace corecut
