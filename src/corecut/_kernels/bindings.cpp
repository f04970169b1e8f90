// The extension module: the matrix handle and the graph's own kernels. Other stages bind theirs in <stage>_bindings.cpp.
#include <nanobind/stl/pair.h>

#include "bindings.hpp"
#include "graph.hpp"

namespace corecut {

namespace {

template <class Array>
bool holds_indices(const Array& array) {
    return array.dtype() == nb::dtype<int32_t>() || array.dtype() == nb::dtype<int64_t>();
}

}  // namespace

Matrix::Matrix(AnyArray indptr, AnyArray indices, std::optional<AnyArray> data)
    : indptr_(std::move(indptr)), indices_(std::move(indices)), data_(std::move(data)) {
    if (!holds_indices(indptr_) || !holds_indices(indices_))
        throw InputError("indptr and indices must be arrays of int32 or int64");
    if (data_ && data_->dtype() != nb::dtype<float>() && data_->dtype() != nb::dtype<double>())
        throw InputError("weights must be an array of float32 or float64");
    if (indptr_.shape(0) < 1) throw InputError("indptr must have at least one element");
    n_ = static_cast<int64_t>(indptr_.shape(0)) - 1;
    nnz_ = static_cast<int64_t>(indices_.shape(0));
    if (data_ && static_cast<int64_t>(data_->shape(0)) != nnz_)
        throw InputError("weights and indices differ in length: " + std::to_string(data_->shape(0)) + " and " +
                         std::to_string(nnz_));
    const Offsets borders{indptr_.data(), indptr_.dtype() == nb::dtype<int64_t>()};
    if (borders[0] != 0 || borders[n_] != nnz_)
        throw InputError("indptr must begin with 0 and end with the number of stored entries, " + std::to_string(nnz_));
}

void bind_sampling(nb::module_& m);
void bind_coreset(nb::module_& m);
void bind_edges(nb::module_& m);
void bind_labelling(nb::module_& m);
void bind_metrics(nb::module_& m);
void bind_prediction(nb::module_& m);
void bind_repair(nb::module_& m);
void bind_halving(nb::module_& m);
void bind_refinement(nb::module_& m);
void bind_aggregation(nb::module_& m);
void bind_blocks(nb::module_& m);
void bind_block_refinement(nb::module_& m);
void bind_spectral(nb::module_& m);
void bind_lloyd(nb::module_& m);
void bind_neighbor_search(nb::module_& m);
void bind_datasets(nb::module_& m);

NB_MODULE(_core, m) {
    m.doc() = "Native kernels of corecut; see the modules of the same names for what they compute.";
    nb::register_exception_translator([](const std::exception_ptr& p, void*) {
        try {
            std::rethrow_exception(p);
        } catch (const InputError& e) {
            PyErr_SetString(PyExc_ValueError, e.what());
        } catch (const Cancelled&) {
            PyErr_SetNone(PyExc_KeyboardInterrupt);
        }
    });
    // What lives as long as Python does, such as a user's global graph or what a thread that ends last still holds, is no leak.
    nb::set_leak_warnings(false);
    nb::class_<StopFlag>(m, "StopFlag")
        .def(nb::init<>())
        .def("set", [](StopFlag& flag) { flag.raised.store(true); });
    // Let the kernels of this thread stop when the flag, which must live until another one or None is given, is set.
    m.def("obey", [](const StopFlag* flag) { obeyed = flag; }, nb::arg("flag").none());
    nb::class_<Matrix>(m, "Matrix")
        .def(nb::init<AnyArray, AnyArray, std::optional<AnyArray>>(), nb::arg("indptr"), nb::arg("indices"),
             nb::arg("data").none())
        .def_prop_ro("n_nodes", &Matrix::nodes)
        .def_prop_ro("n_entries", &Matrix::entries);
    m.def("scan", [](const Matrix& matrix, int threads) {
        Scan result;
        run(checked_threads(threads), [&](Context& context) {
            matrix.visit([&](const auto& a) { result = scan(context, a); });
        });
        return std::make_tuple(to_numpy(std::move(result.degrees)), to_numpy(std::move(result.diagonal)), result.unit,
                               result.canonical);
    });
    m.def("find_asymmetry", [](const Matrix& matrix, int64_t samples, uint64_t seed, int threads) {
        Asymmetry result;
        run(checked_threads(threads), [&](Context& context) {
            matrix.visit([&](const auto& a) { result = find_asymmetry(context, a, samples, seed); });
        });
        return std::make_tuple(result.found, result.x, result.y, result.forward, result.backward);
    });
    m.def(
        "induced",
        [](const Matrix& matrix, In<int64_t> rows, int threads, std::optional<std::pair<int64_t, int64_t>> part, bool compact) {
            const int64_t count = static_cast<int64_t>(rows.shape(0));
            const auto [first, last] = part.value_or(std::pair<int64_t, int64_t>(0, count));
            Subgraph result;
            run(checked_threads(threads), [&](Context& context) {
                matrix.visit([&](const auto& a) { result = induced(context, a, rows.data(), count, first, last, compact); });
            });
            nb::object weights = result.single.empty() ? nb::cast(to_numpy(std::move(result.data)))
                                                       : nb::cast(to_numpy(std::move(result.single)));
            return nb::make_tuple(to_numpy(std::move(result.indptr)), to_numpy(std::move(result.indices)), weights);
        },
        nb::arg("matrix"), nb::arg("rows"), nb::arg("threads"), nb::arg("part").none() = nb::none(),
        nb::arg("compact") = false);
    // Processor time that this process has spent in parallel regions, and what would be left of it on so many cores.
    m.def("parallel_seconds", [](int64_t cores) {
        double all = 0.0, shared = 0.0;
        for (int64_t blocks = 1; blocks <= ParallelWork::kMost; ++blocks) {
            const double seconds = 1e-9 * static_cast<double>(parallel_work.nanoseconds[blocks].load());
            all += seconds;
            shared += seconds / static_cast<double>(std::clamp<int64_t>(cores, 1, blocks));
        }
        return std::make_tuple(all, shared);
    });
    m.def("thinned", [](const Matrix& matrix, In<double> degrees, double kept, uint64_t seed, int threads) {
        require_length(degrees, matrix.nodes(), "degrees");
        Subgraph result;
        run(checked_threads(threads), [&](Context& context) {
            matrix.visit([&](const auto& a) { result = thinned(context, a, degrees.data(), kept, seed); });
        });
        return std::make_tuple(to_numpy(std::move(result.indptr)), to_numpy(std::move(result.indices)),
                               to_numpy(std::move(result.data)));
    });
    m.def("components", [](const Matrix& matrix, int threads) {
        std::vector<int64_t> result;
        run(checked_threads(threads), [&](Context& context) {
            matrix.visit([&](const auto& a) { result = components(context, a); });
        });
        return to_numpy(std::move(result));
    });
    bind_sampling(m);
    bind_coreset(m);
    bind_edges(m);
    bind_labelling(m);
    bind_metrics(m);
    bind_prediction(m);
    bind_repair(m);
    bind_halving(m);
    bind_refinement(m);
    bind_aggregation(m);
    bind_blocks(m);
    bind_block_refinement(m);
    bind_spectral(m);
    bind_lloyd(m);
    bind_neighbor_search(m);
    bind_datasets(m);
}

}  // namespace corecut
