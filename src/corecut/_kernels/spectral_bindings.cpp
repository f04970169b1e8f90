#include "spectral.hpp"

#include "bindings.hpp"
#include "rounding.hpp"

namespace corecut {

using Block = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using MutableBlock = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void bind_spectral(nb::module_& m) {
    m.def(
        "multiply",
        [](const Matrix& matrix, Block x, std::optional<Block> z, float alpha, float beta, float gamma, MutableBlock out,
           int threads) {
            const size_t rows = static_cast<size_t>(matrix.nodes()), width = x.shape(1);
            if (x.shape(0) != rows || out.shape(0) != rows || out.shape(1) != width ||
                (z && (z->shape(0) != rows || z->shape(1) != width)))
                throw InputError("the blocks of vectors must have one row per node and the same number of columns");
            run(checked_threads(threads), [&](Context& context) {
                matrix.visit([&](const auto& a) {
                    if constexpr (std::is_same_v<std::decay_t<decltype(a)>, Csr<int32_t, float>> ||
                                  std::is_same_v<std::decay_t<decltype(a)>, Csr<int64_t, float>>)
                        multiply(context, a, static_cast<int64_t>(width), x.data(), z ? z->data() : nullptr, alpha, beta, gamma,
                                 out.data());
                    else
                        throw InputError("the matrix of the spectral step must hold float32 values");
                });
            });
        },
        nb::arg("matrix"), nb::arg("x"), nb::arg("z").none(), nb::arg("alpha"), nb::arg("beta"), nb::arg("gamma"),
        nb::arg("out"), nb::arg("threads"));
    m.attr("SEED_LANES") = kLanes;
    m.def(
        "greedy_seeds",
        [](Block rows, In<float> mass, int64_t k, int64_t trials, In<double> uniforms, int threads) {
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
