#include "bindings.hpp"
#include "bounds.hpp"
#include "climbing.hpp"
#include "refinement.hpp"

namespace corecut {

namespace {

// What every kernel that moves nodes takes: a graph whose nodes stand for several, its partition, and the objective.
template <class F>
void on_partition(const Matrix& matrix, In<double> degrees, In<double> sizes, InOut<int32_t> labels, int64_t k, int threads,
                  F&& kernel) {
    require_length(degrees, matrix.nodes(), "degrees");
    require_length(sizes, matrix.nodes(), "sizes");
    require_length(labels, matrix.nodes(), "labels");
    run(checked_threads(threads), [&](Context& context) {
        check_labels(labels.data(), matrix.nodes(), k);
        matrix.visit([&](const auto& a) { kernel(context, a); });
    });
}

}  // namespace

void bind_refinement(nb::module_& m) {
    nb::class_<Objective>(m, "Objective")
        .def(nb::init<double, double, double>(), nb::arg("fee"), nb::arg("min_size"), nb::arg("max_size"))
        .def_ro("fee", &Objective::fee)
        .def_ro("min_size", &Objective::min_size)
        .def_ro("max_size", &Objective::max_size);
    m.def(
        "refine",
        [](const Matrix& matrix, In<double> degrees, In<double> sizes, InOut<int32_t> labels, int64_t k, const Objective& f,
           int64_t max_passes, double tolerance, int threads) {
            Refinement result;
            on_partition(matrix, degrees, sizes, labels, k, threads, [&](Context& context, const auto& a) {
                result = refine(context, a, degrees.data(), sizes.data(), labels.data(), k, f, max_passes, tolerance);
            });
            return std::make_tuple(result.moves, result.passes, result.before, result.after, result.converged);
        },
        nb::arg("matrix"), nb::arg("degrees"), nb::arg("sizes"), nb::arg("labels"), nb::arg("k"), nb::arg("objective"),
        nb::arg("max_passes"), nb::arg("tolerance"), nb::arg("threads"));
    m.def(
        "climb",
        [](const Matrix& matrix, In<double> degrees, In<double> sizes, InOut<int32_t> labels, int64_t k, const Objective& f,
           int64_t max_rounds, int64_t patience, int64_t work, double tolerance, uint64_t seed) {
            Climb result;
            on_partition(matrix, degrees, sizes, labels, k, 1, [&](Context& context, const auto& a) {
                Climber climber(context, a, degrees.data(), sizes.data(), labels.data(), k, f);
                result = climber.run(max_rounds, patience, work, tolerance, seed);
            });
            return std::make_tuple(result.moves, result.rounds, result.before, result.after);
        },
        nb::arg("matrix"), nb::arg("degrees"), nb::arg("sizes"), nb::arg("labels"), nb::arg("k"), nb::arg("objective"),
        nb::arg("max_rounds"), nb::arg("patience"), nb::arg("work"), nb::arg("tolerance"), nb::arg("seed"));
    m.def(
        "bring_into_bounds",
        [](const Matrix& matrix, In<double> degrees, In<double> sizes, InOut<int32_t> labels, int64_t k, const Objective& f) {
            int64_t moves = 0;
            double outside = 0;
            on_partition(matrix, degrees, sizes, labels, k, 1, [&](Context& context, const auto& a) {
                Balancer balancer(context, a, degrees.data(), sizes.data(), labels.data(), k, f);
                moves = balancer.run();
                outside = balancer.outside();
            });
            return std::make_tuple(moves, outside);
        },
        nb::arg("matrix"), nb::arg("degrees"), nb::arg("sizes"), nb::arg("labels"), nb::arg("k"), nb::arg("objective"));
}

}  // namespace corecut
