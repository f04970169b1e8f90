#include "bindings.hpp"
#include "metrics.hpp"

namespace corecut {

void bind_metrics(nb::module_& m) {
    m.def(
        "within_cluster",
        [](const Matrix& matrix, In<int32_t> labels, std::optional<In<double>> factor, int threads) {
            require_length(labels, matrix.nodes(), "labels");
            if (factor) require_length(*factor, matrix.nodes(), "factor");
            std::vector<double> result;
            run(checked_threads(threads), [&](Context& context) {
                matrix.visit([&](const auto& a) {
                    result = within_cluster(context, a, labels.data(), factor ? factor->data() : nullptr);
                });
            });
            return to_numpy(std::move(result));
        },
        nb::arg("matrix"), nb::arg("labels"), nb::arg("factor").none(), nb::arg("threads"));
    m.def("cell_sums", [](const Matrix& matrix, In<int32_t> cells, int64_t side) {
        require_length(cells, matrix.nodes(), "cells");
        if (side < 1) throw InputError("there must be at least one cell");
        std::vector<double> result;
        run(1, [&](Context& context) {
            matrix.visit([&](const auto& a) { result = cell_sums(context, a, cells.data(), side); });
        });
        return to_numpy(std::move(result));
    });
    m.def("cluster_margins", [](const Matrix& matrix, In<int32_t> labels, int64_t k, int threads) {
        require_length(labels, matrix.nodes(), "labels");
        if (k < 1) throw InputError("there must be at least one cluster");
        Margins result;
        run(checked_threads(threads), [&](Context& context) {
            matrix.visit([&](const auto& a) { result = cluster_margins(context, a, labels.data(), k); });
        });
        return std::make_tuple(to_numpy(std::move(result.own)), to_numpy(std::move(result.other)));
    });
}

}  // namespace corecut
