#include "repair.hpp"

#include "bindings.hpp"

namespace corecut {

void bind_repair(nb::module_& m) {
    m.def("best_splits", [](const Matrix& matrix, In<double> degrees, In<double> sizes, In<int32_t> labels, In<int64_t> order,
                            In<int64_t> start, double tau, double total_size, double least_size,
                            int threads) {
        require_length(degrees, matrix.nodes(), "degrees");
        require_length(sizes, matrix.nodes(), "sizes");
        require_length(labels, matrix.nodes(), "labels");
        require_length(order, matrix.nodes(), "order");
        if (start.shape(0) < 1) throw InputError("start must not be empty");
        Splits result;
        run(checked_threads(threads), [&](Context& context) {
            matrix.visit([&](const auto& a) {
                result = best_splits(context, a, degrees.data(), sizes.data(), labels.data(), order.data(), start.data(),
                                     static_cast<int64_t>(start.shape(0)) - 1, tau, total_size, least_size);
            });
        });
        return std::make_tuple(to_numpy(std::move(result.gain)), to_numpy(std::move(result.prefix)));
    });
}

}  // namespace corecut
