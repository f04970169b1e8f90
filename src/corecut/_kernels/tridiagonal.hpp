// The largest eigenvalues of a small symmetric tridiagonal matrix, and their eigenvectors: by Sturm counts and inverse iteration,
// O(n) a round where methods for all of them take O(n³).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "random.hpp"

namespace corecut {

class Tridiagonal {
   public:
    // diagonal holds n ≥ 1 numbers, beside the n - 1 next to it.
    Tridiagonal(std::vector<double> diagonal, std::vector<double> beside) : d_(std::move(diagonal)), e_(std::move(beside)) {
        // In a unit in which the largest number is about 1, so that squares are numbers.
        double largest = 0.0;
        for (const auto* numbers : {&d_, &e_})
            for (double x : *numbers) largest = std::max(largest, std::abs(x));
        exponent_ = largest > 0 ? std::ilogb(largest) : 0;
        for (auto* numbers : {&d_, &e_})
            for (double& x : *numbers) x = std::ldexp(x, -exponent_);
        squares_.assign(d_.size(), 0.0);
        for (size_t i = 0; i + 1 < d_.size(); ++i) squares_[i + 1] = e_[i] * e_[i];
    }

    // The `count` largest eigenvalues, falling.
    std::vector<double> largest(int count) const {
        std::vector<double> values;
        for (int rank = 0; rank < count; ++rank) values.push_back(std::ldexp(value(rank), exponent_));
        return values;
    }

    // Orthonormal eigenvectors of the largest eigenvalues, as `largest` returns them.
    std::vector<std::vector<double>> vectors(const std::vector<double>& values) const {
        std::vector<std::vector<double>> found;
        Random random(0, 0);
        for (size_t v = 0; v < values.size(); ++v) {
            const double shift = std::ldexp(values[v], -exponent_);
            std::vector<double> x(d_.size());
            for (double& xi : x) xi = random.uniform() - 0.5;
            const Factors factors(*this, shift);
            for (int round = 0; round < kRounds; ++round) {
                factors.solve(x);
                // Inverse iteration alone tells far eigenvalues apart, not close ones.
                for (size_t other = 0; other < v; ++other)
                    if (std::abs(std::ldexp(values[other], -exponent_) - shift) < kClose) take_out(x, found[other]);
                normalize(x);
            }
            for (size_t other = 0; other < v; ++other) take_out(x, found[other]);
            normalize(x);
            found.push_back(std::move(x));
        }
        return found;
    }

   private:
    static constexpr int kRounds = 3, kPoints = 4, kMostRounds = 60;  // a round leaves a fifth of the interval
    static constexpr double kClose = 1e-3, kTiny = std::numeric_limits<double>::epsilon(), kSmallest = 1e-290;

    // How many eigenvalues are above each of some points: as many as there are positive pivots of T - x.
    void above(const double (&x)[kPoints], int (&counts)[kPoints]) const {
        double pivot[kPoints];
        for (int p = 0; p < kPoints; ++p) pivot[p] = 1.0, counts[p] = 0;
        for (size_t i = 0; i < d_.size(); ++i)
            for (int p = 0; p < kPoints; ++p) {  // side by side: one division alone waits for the one before
                pivot[p] = d_[i] - x[p] - squares_[i] / pivot[p];
                if (std::abs(pivot[p]) < kSmallest) pivot[p] = -kSmallest;
                counts[p] += pivot[p] > 0.0;
            }
    }

    double value(int rank) const {
        double low = std::numeric_limits<double>::infinity(), high = -low;
        for (size_t i = 0; i < d_.size(); ++i) {
            const double reach = std::sqrt(squares_[i]) + (i + 1 < d_.size() ? std::sqrt(squares_[i + 1]) : 0.0);
            low = std::min(low, d_[i] - reach);
            high = std::max(high, d_[i] + reach);
        }
        // At most `rank` eigenvalues are above high, more than that above low.
        low -= 4 * kTiny, high += 4 * kTiny;
        // Entries are below 2, so that the rounding of any number here is at most two units.
        for (int round = 0; round < kMostRounds && high - low > 4 * kTiny; ++round) {
            const double step = (high - low) / (kPoints + 1);
            double x[kPoints];
            int counts[kPoints];
            for (int p = 0; p < kPoints; ++p) x[p] = low + step * (p + 1);
            above(x, counts);
            double next_low = low, next_high = high;
            for (int p = 0; p < kPoints; ++p)
                if (counts[p] > rank) next_low = x[p];
            for (int p = kPoints - 1; p >= 0; --p)
                if (counts[p] <= rank) next_high = x[p];
            low = next_low, high = next_high;
        }
        return low + (high - low) / 2;
    }

    // T - x by elimination with row exchanges.
    class Factors {
       public:
        Factors(const Tridiagonal& t, double x)
            : n_(t.d_.size()), pivot_(n_), right_(n_, 0.0), second_(n_, 0.0), share_(n_, 0.0), swapped_(n_, 0) {
            double here = t.d_[0] - x, next = n_ > 1 ? t.e_[0] : 0.0;
            for (size_t i = 0; i < n_; ++i) {
                if (i + 1 == n_) {
                    pivot_[i] = here;
                } else {
                    const double below = t.e_[i], diagonal = t.d_[i + 1] - x, beyond = i + 2 < n_ ? t.e_[i + 1] : 0.0;
                    if (std::abs(below) > std::abs(here)) {
                        swapped_[i] = 1;
                        pivot_[i] = below, right_[i] = diagonal, second_[i] = beyond;
                        share_[i] = here / below;
                        here = next - share_[i] * diagonal, next = -share_[i] * beyond;
                    } else {
                        pivot_[i] = here, right_[i] = next;
                        share_[i] = here != 0.0 ? below / here : 0.0;
                        here = diagonal - share_[i] * next, next = beyond;
                    }
                }
                // x is an eigenvalue: one pivot is only rounding.
                if (std::abs(pivot_[i]) < kTiny) pivot_[i] = kTiny;
            }
        }

        void solve(std::vector<double>& b) const {
            for (size_t i = 0; i + 1 < n_; ++i) {
                if (swapped_[i]) std::swap(b[i], b[i + 1]);
                b[i + 1] -= share_[i] * b[i];
            }
            for (size_t i = n_; i-- > 0;) {
                if (i + 1 < n_) b[i] -= right_[i] * b[i + 1];
                if (i + 2 < n_) b[i] -= second_[i] * b[i + 2];
                b[i] /= pivot_[i];
                // Many pivots may be rounding.
                if (std::abs(b[i]) > 1e100)
                    for (double& other : b) other *= 1e-100;
            }
        }

       private:
        size_t n_;
        std::vector<double> pivot_, right_, second_, share_;
        std::vector<uint8_t> swapped_;
    };

    static void take_out(std::vector<double>& x, const std::vector<double>& direction) {
        const double share = std::inner_product(x.begin(), x.end(), direction.begin(), 0.0);
        for (size_t i = 0; i < x.size(); ++i) x[i] -= share * direction[i];
    }

    static void normalize(std::vector<double>& x) {
        double largest = 0.0;
        for (double xi : x) largest = std::max(largest, std::abs(xi));
        if (!(largest > 0.0)) return;
        for (double& xi : x) xi /= largest;
        const double length = std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
        for (double& xi : x) xi /= length;
    }

    std::vector<double> d_, e_, squares_;
    int exponent_ = 0;
};

}  // namespace corecut
