#include "repair.hpp"

#include "bindings.hpp"
#include "refinement.hpp"

namespace corecut {

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
