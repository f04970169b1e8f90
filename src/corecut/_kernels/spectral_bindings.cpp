#include "spectral.hpp"

#include "bindings.hpp"

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
}

}  // namespace corecut
