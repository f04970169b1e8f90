#include "aggregation.hpp"

#include "bindings.hpp"

namespace corecut {

void bind_aggregation(nb::module_& m) {
    m.def("group_nodes", [](const Matrix& matrix, In<double> degrees, double cap, int64_t max_passes, int threads) {
        require_length(degrees, matrix.nodes(), "degrees");
        LazyVector<int32_t> result;
        run(checked_threads(threads), [&](Context& context) {
            matrix.visit([&](const auto& a) { result = group_nodes(context, a, degrees.data(), cap, max_passes); });
        });
        return to_numpy(std::move(result));
    });
    m.def("contract", [](const Matrix& matrix, In<int32_t> groups, int64_t count, int threads) {
        require_length(groups, matrix.nodes(), "groups");
        if (count < 1 || count > std::numeric_limits<int32_t>::max()) throw InputError("the number of groups is out of range");
        Quotient result;
        run(checked_threads(threads), [&](Context& context) {
            matrix.visit([&](const auto& a) { result = contract(context, a, groups.data(), count); });
        });
        return std::make_tuple(to_numpy(std::move(result.indptr)), to_numpy(std::move(result.indices)),
                               to_numpy(std::move(result.data)));
    });
}

}  // namespace corecut
