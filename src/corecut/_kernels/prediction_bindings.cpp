#include "bindings.hpp"
#include "prediction.hpp"

namespace corecut {

void bind_prediction(nb::module_& m) {
    // Rows of a matrix that need not be square: its columns are the nodes that were fitted.
    m.def(
        "row_fingerprints",
        [](const Matrix& matrix, int64_t columns, int threads) {
            Fingerprints result;
            run(checked_threads(threads), [&](Context& context) {
                matrix.visit([&](auto a) {
                    a.n = columns;
                    result = row_fingerprints(context, a, matrix.nodes());
                });
            });
            return std::make_tuple(to_numpy(std::move(result.numbers)), result.increasing);
        },
        nb::arg("matrix"), nb::arg("columns"), nb::arg("threads"));
    m.def(
        "join_clusters",
        [](const Matrix& matrix, In<int32_t> labels, In<double> association, In<double> volume, double fee,
           std::optional<In<double>> loops, std::optional<In<int64_t>> nodes, int64_t first, int threads) {
            require_length(volume, static_cast<int64_t>(association.shape(0)), "volume");
            if (loops) require_length(*loops, matrix.nodes(), "loops");
            if (nodes) require_length(*nodes, matrix.nodes(), "nodes");
            Joined result;
            run(checked_threads(threads), [&](Context& context) {
                const Clusters clusters(association.data(), volume.data(), static_cast<int64_t>(association.shape(0)),
                                        Objective{fee});
                matrix.visit([&](auto a) {
                    a.n = static_cast<int64_t>(labels.shape(0));
                    result = join_clusters(context, a, matrix.nodes(), labels.data(), clusters,
                                           loops ? loops->data() : nullptr, nodes ? nodes->data() : nullptr, first);
                });
            });
            return std::make_tuple(to_numpy(std::move(result.labels)), to_numpy(std::move(result.margins)));
        },
        nb::arg("matrix"), nb::arg("labels"), nb::arg("association"), nb::arg("volume"), nb::arg("fee"),
        nb::arg("loops").none(), nb::arg("nodes").none(), nb::arg("first"), nb::arg("threads"));
}

}  // namespace corecut
