#include "spectral.hpp"

#include "bindings.hpp"
#include "memory.hpp"
#include "rounding.hpp"

namespace corecut {

CORECUT_CLONES void axpy(int64_t width, double a, const double* x, double* y) {
    for (int64_t c = 0; c < width; ++c) y[c] += a * x[c];
}

template <class Real>
using Block = nb::ndarray<const Real, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class Real>
using MutableBlock = nb::ndarray<Real, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// The matrix holds values of the same type as the blocks.
template <class Real>
void multiply_blocks(const Matrix& matrix, Block<Real> x, std::optional<Block<Real>> z, Real alpha, Real beta, Real gamma,
                     MutableBlock<Real> out, int threads) {
    const size_t rows = static_cast<size_t>(matrix.nodes()), width = x.shape(1);
    if (x.shape(0) != rows || out.shape(0) != rows || out.shape(1) != width ||
        (z && (z->shape(0) != rows || z->shape(1) != width)))
        throw InputError("the blocks of vectors must have one row per node and the same number of columns");
    run(checked_threads(threads), [&](Context& context) {
        matrix.visit([&](const auto& a) {
            using View = std::decay_t<decltype(a)>;
            if constexpr (std::is_same_v<View, Csr<int32_t, Real>> || std::is_same_v<View, Csr<int64_t, Real>>)
                multiply(context, a, static_cast<int64_t>(width), x.data(), z ? z->data() : nullptr, alpha, beta, gamma,
                         out.data());
            else
                throw InputError("the matrix of the spectral step must hold values of the same type as the vectors");
        });
    });
}

template <class Real>
void bind_multiply(nb::module_& m) {
    m.def("multiply", &multiply_blocks<Real>, nb::arg("matrix"), nb::arg("x").noconvert(), nb::arg("z").none().noconvert(),
          nb::arg("alpha"), nb::arg("beta"), nb::arg("gamma"), nb::arg("out").noconvert(), nb::arg("threads"));
}

template <class Real>
void bind_scale_entries(nb::module_& m) {
    m.def(
        "scale_entries",
        [](const Matrix& matrix, In<double> root, InOut<Real> out, int threads) {
            require_length(root, matrix.nodes(), "root");
            require_length(out, matrix.entries(), "out");
            run(checked_threads(threads), [&](Context& context) {
                matrix.visit([&](const auto& a) { scale_entries(context, a, root.data(), out.data()); });
            });
        },
        nb::arg("matrix"), nb::arg("root"), nb::arg("out").noconvert(), nb::arg("threads"));
}

template <class From, class Real>
void bind_times(nb::module_& m) {
    m.def(
        "times",
        [](In<From> values, double factor, InOut<Real> out, int threads) {
            const auto count = static_cast<int64_t>(values.shape(0));
            require_length(out, count, "out");
            run(checked_threads(threads), [&](Context& context) {
                parallel_blocks(context, count, 1 << 16, [&](int64_t, int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) out.data()[i] = static_cast<Real>(values.data()[i] * factor);
                });
            });
        },
        nb::arg("values").noconvert(), nb::arg("factor"), nb::arg("out").noconvert(), nb::arg("threads"));
}

void bind_spectral(nb::module_& m) {
    bind_times<float, float>(m);
    bind_times<float, double>(m);
    bind_times<double, double>(m);
    bind_multiply<float>(m);
    bind_multiply<double>(m);
    bind_scale_entries<float>(m);
    bind_scale_entries<double>(m);
    m.attr("SEED_LANES") = kLanes;
    m.def(
        "greedy_seeds",
        [](Block<float> rows, In<float> mass, int64_t k, int64_t trials, In<double> uniforms, int threads) {
            const int64_t count = static_cast<int64_t>(rows.shape(0));
            require_length(mass, count, "mass");
            if (count < 1 || k < 1) throw InputError("seeding needs at least one row and one cluster");
            if (trials < 1 || trials > kLanes) throw InputError("seeding tries 1 to " + std::to_string(kLanes) + " candidates");
            require_length(uniforms, 1 + (k - 1) * trials, "uniforms");
            std::vector<int64_t> chosen;
            run(checked_threads(threads), [&](Context& context) {
                chosen = greedy_seeds(context, rows.data(), count, static_cast<int64_t>(rows.shape(1)), mass.data(), k, trials,
                                      uniforms.data());
            });
            return to_numpy(std::move(chosen));
        },
        nb::arg("rows"), nb::arg("mass"), nb::arg("k"), nb::arg("trials"), nb::arg("uniforms"), nb::arg("threads"));
}

}  // namespace corecut
