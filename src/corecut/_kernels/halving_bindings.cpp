#include "halving.hpp"

#include "bindings.hpp"

namespace corecut {

void bind_halving(nb::module_& m) {
    m.def(
        "halve_graph",
        [](const Matrix& matrix, In<double> sizes, InOut<int32_t> labels, double min_size, double max_size, int64_t k, int32_t attempts,
           uint64_t seed, int threads) {
            const int64_t n = matrix.nodes();
            require_length(sizes, n, "sizes");
            require_length(labels, n, "labels");
            if (n > INT32_MAX) throw InputError("more nodes than can be halved: aggregate the graph first");
            if (k < 1 || k > INT32_MAX) throw InputError("there must be at least one cluster, and no more than 2^31 - 1");
            if (attempts < 1) throw InputError("attempts must be at least 1");
            run(checked_threads(threads), [&](Context& context) {
                matrix.visit([&](const auto& a) {
                    halve_graph(context, a, sizes.data(), min_size, max_size, k, attempts, seed, labels.data());
                });
            });
        },
        nb::arg("matrix"), nb::arg("sizes"), nb::arg("labels"), nb::arg("min_size"), nb::arg("max_size"), nb::arg("k"),
        nb::arg("attempts"), nb::arg("seed"), nb::arg("threads"));
}

}  // namespace corecut
