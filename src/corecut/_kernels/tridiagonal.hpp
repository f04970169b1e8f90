// Eigenvalues and eigenvectors of a small symmetric tridiagonal matrix, by QL steps with implicit shifts.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace corecut {

struct TridiagonalEigen {
    std::vector<double> values;   // falling
    std::vector<double> vectors;  // vector i at [i * n, (i + 1) * n)
};

// diagonal holds n numbers, beside the n - 1 next to it.
inline TridiagonalEigen tridiagonal_eigen(std::vector<double> diagonal, std::vector<double> beside) {
    const int n = static_cast<int>(diagonal.size());
    std::vector<double>& d = diagonal;
    std::vector<double>& e = beside;
    e.resize(n, 0.0);
    std::vector<double> z(static_cast<size_t>(n) * n, 0.0);  // vector i in row i
    for (int i = 0; i < n; ++i) z[static_cast<size_t>(i) * n + i] = 1.0;
    for (int l = 0; l < n; ++l) {
        for (int turn = 0; turn < 60; ++turn) {
            int m = l;
            while (m < n - 1 && std::abs(e[m]) > 1e-16 * (std::abs(d[m]) + std::abs(d[m + 1]))) ++m;
            if (m == l) break;
            double g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            double r = std::hypot(g, 1.0);
            g = d[m] - d[l] + e[l] / (g + std::copysign(r, g));
            double s = 1.0, c = 1.0, p = 0.0;
            int i = m - 1;
            for (; i >= l; --i) {
                double f = s * e[i];
                const double b = c * e[i];
                r = std::hypot(f, g);
                e[i + 1] = r;
                if (r == 0.0) {
                    d[i + 1] -= p;
                    e[m] = 0.0;
                    break;
                }
                s = f / r;
                c = g / r;
                g = d[i + 1] - p;
                r = (d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                double* low = &z[static_cast<size_t>(i) * n];
                double* high = low + n;
                for (int q = 0; q < n; ++q) {
                    f = high[q];
                    high[q] = s * low[q] + c * f;
                    low[q] = c * low[q] - s * f;
                }
            }
            if (r == 0.0 && i >= l) continue;
            d[l] -= p;
            e[l] = g;
            e[m] = 0.0;
        }
    }
    std::vector<int> order(n);
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int x, int y) { return d[x] > d[y]; });
    TridiagonalEigen result;
    for (int i : order) {
        result.values.push_back(d[i]);
        result.vectors.insert(result.vectors.end(), z.begin() + static_cast<size_t>(i) * n,
                              z.begin() + static_cast<size_t>(i + 1) * n);
    }
    return result;
}

}  // namespace corecut
