// Sparse matrix times a block of vectors: what every eigensolver here is made of.
#pragma once

#include <vector>

#include "csr.hpp"
#include "simd.hpp"

namespace corecut {

// y += a·x in double precision, for spectra whose gaps single precision does not see.
void axpy(int64_t width, double a, const double* x, double* y);

// out = alpha·(A·x) + beta·x + gamma·z, for m × width blocks stored by rows; z may be absent.
template <class Index, class Real>
void multiply(Context& context, const Csr<Index, Real>& a, int64_t width, const Real* x, const Real* z, Real alpha, Real beta,
              Real gamma, Real* out) {
    parallel_blocks(context, a.n, 256, [&](int64_t, int64_t begin, int64_t end) {
        std::vector<Real> sum(width);
        for (int64_t i = begin; i < end; ++i) {
            std::fill(sum.begin(), sum.end(), Real(0));
            const auto r = a.row(i);
            for (int64_t p = r.begin; p < r.end; ++p) axpy(width, a.data[p], x + a.column(p) * width, sum.data());
            Real* target = out + i * width;
            const Real* own = x + i * width;
            for (int64_t c = 0; c < width; ++c) target[c] = alpha * sum[c] + beta * own[c];
            if (z)
                for (int64_t c = 0; c < width; ++c) target[c] += gamma * z[i * width + c];
        }
    });
}

// Values of D^-½ A D^-½ for roots r = D^-½, worked out in double precision whatever they are kept in.
template <class Real, class Index, class Weight>
void normalized_values(Context& context, const Csr<Index, Weight>& a, const double* roots, Real* values) {
    parallel_blocks(context, a.n, 256, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const auto r = a.row(i);
            for (int64_t p = r.begin; p < r.end; ++p)
                values[p] = static_cast<Real>(a.weight(p) * roots[i] * roots[a.column(p)]);
        }
    });
}

}  // namespace corecut
