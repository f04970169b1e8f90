#include <nanobind/stl/pair.h>

#include "bindings.hpp"
#include "labelling.hpp"

namespace corecut {

void bind_labelling(nb::module_& m) {
    m.def(
        "label_nodes",
        [](const Matrix& matrix, std::optional<In<double>> scale, In<int64_t> coreset, In<int32_t> cluster, In<double> load,
           In<double> own, In<double> norms, std::optional<In<double>> rank_one, std::optional<In<double>> pull,
           bool touched_only, int threads, std::optional<std::pair<int64_t, int64_t>> rows) {
            const int64_t size = static_cast<int64_t>(coreset.shape(0));
            if (scale) require_length(*scale, matrix.nodes(), "scale");
            require_length(cluster, size, "cluster");
            require_length(load, size, "load");
            require_length(own, size, "own");
            if (rank_one.has_value() != pull.has_value()) throw InputError("rank_one and pull come together");
            if (rank_one) require_length(*rank_one, matrix.nodes(), "rank_one");
            if (pull) require_length(*pull, static_cast<int64_t>(norms.shape(0)), "pull");
            if (norms.shape(0) < 1) throw InputError("there must be at least one centre");
            const ImpliedCentres centres{coreset.data(),
                                  size,
                                  cluster.data(),
                                  load.data(),
                                  own.data(),
                                  norms.data(),
                                  static_cast<int64_t>(norms.shape(0)),
                                  scale ? scale->data() : nullptr,
                                  rank_one ? rank_one->data() : nullptr,
                                  pull ? pull->data() : nullptr,
                                  touched_only};
            Labelling result;
            run(checked_threads(threads), [&](Context& context) {
                matrix.visit([&](const auto& a) {
                    if (!rows) {
                        result = label_nodes(context, a, centres);
                        return;
                    }
                    const auto [begin, end] = *rows;
                    if (begin < 0 || begin > end || end > a.n) throw InputError("a block of rows lies outside of the graph");
                    result = label_rows(context, a, centres, begin, end);
                });
            });
            return std::make_tuple(to_numpy(std::move(result.labels)), to_numpy(std::move(result.best)),
                                   to_numpy(std::move(result.second)), result.untouched);
        },
        nb::arg("matrix"), nb::arg("scale").none(), nb::arg("coreset"), nb::arg("cluster"), nb::arg("load"), nb::arg("own"),
        nb::arg("norms"), nb::arg("rank_one").none(), nb::arg("pull").none(), nb::arg("touched_only"), nb::arg("threads"),
        nb::arg("rows").none() = nb::none());
}

}  // namespace corecut
