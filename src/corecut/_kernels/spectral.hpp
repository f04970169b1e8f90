// Sparse matrix times a block of vectors: what is left of the power method.
#pragma once

#include <vector>

#include "csr.hpp"
#include "simd.hpp"

namespace corecut {

// out = alpha·(A·x) + beta·x + gamma·z, for m × width blocks stored by rows; z may be absent.
template <class Index>
void multiply(Context& context, const Csr<Index, float>& a, int64_t width, const float* x, const float* z, float alpha,
              float beta, float gamma, float* out) {
    parallel_blocks(context, a.n, 256, [&](int64_t, int64_t begin, int64_t end) {
        std::vector<float> sum(width);
        for (int64_t i = begin; i < end; ++i) {
            std::fill(sum.begin(), sum.end(), 0.0f);
            const auto r = a.row(i);
            for (int64_t p = r.begin; p < r.end; ++p) axpy(width, a.data[p], x + a.column(p) * width, sum.data());
            float* target = out + i * width;
            const float* own = x + i * width;
            for (int64_t c = 0; c < width; ++c) target[c] = alpha * sum[c] + beta * own[c];
            if (z)
                for (int64_t c = 0; c < width; ++c) target[c] += gamma * z[i * width + c];
        }
    });
}

}  // namespace corecut
