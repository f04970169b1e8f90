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
}

}  // namespace corecut
