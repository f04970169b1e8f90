#include "bindings.hpp"
#include "lloyd.hpp"

namespace corecut {

void bind_lloyd(nb::module_& m) {
    m.def(
        "nearest_centres",
        [](const Matrix& matrix, std::optional<In<double>> scale, In<double> load, In<double> own, In<int32_t> labels,
           In<double> norms, In<double> mass, int threads) {
            if (scale) require_length(*scale, matrix.nodes(), "scale");
            require_length(load, matrix.nodes(), "load");
            require_length(own, matrix.nodes(), "own");
            require_length(labels, matrix.nodes(), "labels");
            const int64_t k = static_cast<int64_t>(norms.shape(0));
            require_length(mass, k, "mass");
            std::vector<int32_t> result;
            run(checked_threads(threads), [&](Context& context) {
                matrix.visit([&](const auto& a) {
                    result = nearest_centres(context, a, scale ? scale->data() : nullptr, load.data(), own.data(),
                                             {labels.data(), norms.data(), mass.data(), k});
                });
            });
            return to_numpy(std::move(result));
        },
        nb::arg("matrix"), nb::arg("scale").none(), nb::arg("load"), nb::arg("own"), nb::arg("labels"), nb::arg("norms"),
        nb::arg("mass"), nb::arg("threads"));
}

}  // namespace corecut
