#include "refinement.hpp"

#include "bindings.hpp"

namespace corecut {

void bind_refinement(nb::module_& m) {
    m.def("refine", [](const Matrix& matrix, In<double> degrees, In<double> sizes, InOut<int32_t> labels, int64_t k, double tau,
                       double total_size, double min_size, double max_size, int64_t max_passes, double tolerance,
                       int threads) {
        require_length(degrees, matrix.nodes(), "degrees");
        require_length(sizes, matrix.nodes(), "sizes");
        require_length(labels, matrix.nodes(), "labels");
        Refinement result;
        run(checked_threads(threads), [&](Context& context) {
            matrix.visit([&](const auto& a) {
                result = refine(context, a, degrees.data(), sizes.data(), labels.data(), k, tau, total_size, min_size, max_size,
                                max_passes, tolerance);
            });
        });
        return std::make_tuple(result.moves, result.passes, result.before, result.after, result.converged);
    });
}

}  // namespace corecut
