// D² sampling in kernel space: draw points with probability proportional to w(x)Δ(x, C), three ways.
//
// Δ(x, y) = K_xx + K_yy - 2K_xy. With x* = argmin K_xx in C and a kernel without negative entries, adding y to C can only
// change the distances of y's neighbours, so that one draw costs deg(y) checks instead of n (Section 4 of the paper).
#pragma once

#include <limits>
#include <vector>

#include "csr.hpp"
#include "memory.hpp"
#include "random.hpp"

namespace corecut {

// K_xy = scale_x A_xy scale_y off the diagonal (scale absent: 1), K_xx = diagonal_x, weights w.
struct KernelArrays {
    const double* scale = nullptr;
    const double* diagonal = nullptr;
    const double* weights = nullptr;

    double factor(int64_t x) const { return scale ? scale[x] : 1.0; }
};

struct Seeds {
    std::vector<int64_t> points;   // C in the order of drawing
    LazyVector<double> distance;   // Δ(x, C), never negative
    LazyVector<int32_t> nearest;   // position in C of x's nearest point
    int64_t checks = 0;            // neighbour checks made
    int64_t clipped = 0;           // negative squared distances met (the kernel is not positive semi-definite)
    double missing_shift = 0;      // the largest addition to σ that one of those would have needed
    int64_t rebuilds = 0;          // tables built by the rejection sampler
};

// x*: the point of positive weight with the smallest K_xx, and of several the first.
inline int64_t smallest_point(Context& context, const KernelArrays& kernel, int64_t n) {
    constexpr int64_t size = 1 << 16;
    std::vector<int64_t> bests((n + size - 1) / size, -1);
    parallel_blocks(context, n, size, [&](int64_t block, int64_t begin, int64_t end) {
        int64_t best = -1;
        double lowest = std::numeric_limits<double>::infinity();
        for (int64_t x = begin; x < end; ++x)
            if (kernel.diagonal[x] < lowest && kernel.weights[x] > 0) {
                lowest = kernel.diagonal[x];
                best = x;
            }
        bests[block] = best;
    });
    int64_t best = -1;
    for (int64_t x : bests)
        if (x >= 0 && (best < 0 || kernel.diagonal[x] < kernel.diagonal[best])) best = x;
    if (best < 0) throw InputError("there is no point of positive weight to sample: every node is isolated");
    return best;
}

inline int64_t uniform_point(Random& random, const KernelArrays& kernel, int64_t n) {
    // Points of weight zero are rare, so rejection is quick; after many misses, walk.
    for (int attempt = 0; attempt < 64; ++attempt) {
        const int64_t x = static_cast<int64_t>(random.below(n));
        if (kernel.weights[x] > 0) return x;
    }
    int64_t positive = 0;
    for (int64_t x = 0; x < n; ++x) positive += kernel.weights[x] > 0;
    if (positive == 0) throw InputError("there is no point of positive weight to sample: every node is isolated");
    int64_t rank = static_cast<int64_t>(random.below(positive));
    for (int64_t x = 0;; ++x)
        if (kernel.weights[x] > 0 && rank-- == 0) return x;
}

// Record a squared distance; what lies below zero is clipped and counted.
inline double clip(Seeds& seeds, const KernelArrays& kernel, int64_t x, int64_t y, double d) {
    if (d >= 0) return d;
    // Distances of near-copies cancel to a few units in the last place: rounding, not a fault of the kernel.
    if (d < -1e-12 * (kernel.diagonal[x] + kernel.diagonal[y])) {
        ++seeds.clipped;
        const double per_shift = 1.0 / kernel.weights[x] + 1.0 / kernel.weights[y];
        seeds.missing_shift = std::max(seeds.missing_shift, -d / per_shift);
    }
    return 0.0;
}

// Distances to a set that holds x*: every point not adjacent to the set is at K_xx + K_x*x*.
inline void start_distances(Context& context, Seeds& seeds, const KernelArrays& kernel, int64_t n,
                            const std::vector<int64_t>& start) {
    int32_t star = 0;
    for (size_t i = 1; i < start.size(); ++i)
        if (kernel.diagonal[start[i]] < kernel.diagonal[start[star]]) star = static_cast<int32_t>(i);
    const double c_star = kernel.diagonal[start[star]];
    seeds.distance.resize(n);
    seeds.nearest.resize(n);
    parallel_blocks(context, n, 1 << 16, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t x = begin; x < end; ++x) {
            seeds.distance[x] = kernel.weights[x] > 0 ? kernel.diagonal[x] + c_star : 0.0;
            seeds.nearest[x] = star;
        }
    });
}

// Ask the cache for what add_point will read: of one neighbour, and of a row's first neighbours.
inline constexpr int64_t kNeighboursAhead = 16;

template <class Index, class Weight>
CORECUT_INLINE void prefetch_neighbour(const Seeds& seeds, const Csr<Index, Weight>& a, const KernelArrays& kernel, int64_t p, int64_t end) {
    a.prefetch_at(seeds.distance.data(), p, end);
    a.prefetch_at(kernel.diagonal, p, end);
    if (kernel.scale) a.prefetch_at(kernel.scale, p, end);
}

template <class Index, class Weight>
CORECUT_INLINE void prefetch_neighbours(const Seeds& seeds, const Csr<Index, Weight>& a, const KernelArrays& kernel, int64_t y) {
    const auto r = a.row(y);
    for (int64_t p = r.begin; p < std::min(r.end, r.begin + kNeighboursAhead); ++p) prefetch_neighbour(seeds, a, kernel, p, r.end);
}

// Add y to C and repair the distances of its neighbours; lowered(x) is called for y and for each point that came nearer.
template <class Index, class Weight, class F>
void add_point(Seeds& seeds, const Csr<Index, Weight>& a, const KernelArrays& kernel, int64_t y, F&& lowered) {
    const int32_t position = static_cast<int32_t>(seeds.points.size());
    seeds.points.push_back(y);
    seeds.distance[y] = 0.0;
    seeds.nearest[y] = position;
    lowered(y);
    const auto r = a.row(y);
    const double twice = 2.0 * kernel.factor(y), k_yy = kernel.diagonal[y];
    seeds.checks += r.size();
    for (int64_t p = r.begin; p < r.end; ++p) {
        prefetch_neighbour(seeds, a, kernel, p + kNeighboursAhead, r.end);
        const int64_t x = a.column(p);
        if (x == y) continue;
        double d = kernel.diagonal[x] + k_yy - twice * kernel.factor(x) * a.weight(p);
        if (d < 0) {
            if (!(kernel.weights[x] > 0)) continue;
            d = clip(seeds, kernel, x, y, d);
        }
        if (d < seeds.distance[x]) {  // never where the weight, and with it the distance, is zero
            seeds.distance[x] = d;
            seeds.nearest[x] = position;
            lowered(x);
        }
    }
}

// Distances of rows begin.. to points that hold x*, as adding these one after another leaves them. Of the points' rows it reads
// what falls into these.
template <class Index, class Weight>
Seeds distances_of_rows(Context& context, const Csr<Index, Weight>& a, const KernelArrays& kernel, const int64_t* points,
                        int64_t count, int64_t begin, int64_t end) {
    Seeds seeds;
    int32_t star = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (points[i] < 0 || points[i] >= a.n) throw InputError("a seed's number is out of range");
        if (kernel.diagonal[points[i]] < kernel.diagonal[points[star]]) star = static_cast<int32_t>(i);
    }
    const double c_star = kernel.diagonal[points[star]];
    seeds.distance.resize(end - begin);
    seeds.nearest.assign(end - begin, star);
    for (int64_t x = begin; x < end; ++x) seeds.distance[x - begin] = kernel.weights[x] > 0 ? kernel.diagonal[x] + c_star : 0.0;
    for (int64_t i = 0; i < count; ++i) {
        if ((i & 63) == 0) context.check();
        const int64_t y = points[i];
        if (begin <= y && y < end) seeds.distance[y - begin] = 0.0, seeds.nearest[y - begin] = static_cast<int32_t>(i);
        const auto r = a.row(y);
        const double twice = 2.0 * kernel.factor(y), k_yy = kernel.diagonal[y];
        for (int64_t p = begin == 0 ? r.begin : a.lower_bound(r, begin); p < r.end; ++p) {
            const int64_t x = a.column(p);
            if (x >= end) break;
            if (x < begin) throw InputError("row " + std::to_string(y) + " is not sorted");
            ++seeds.checks;
            if (x == y) continue;
            double d = kernel.diagonal[x] + k_yy - twice * kernel.factor(x) * a.weight(p);
            if (d < 0) {
                if (!(kernel.weights[x] > 0)) continue;
                d = clip(seeds, kernel, x, y, d);
            }
            if (d < seeds.distance[x - begin]) {
                seeds.distance[x - begin] = d;
                seeds.nearest[x - begin] = static_cast<int32_t>(i);
            }
        }
    }
    return seeds;
}

// Sums of contributions as a complete binary tree. An update writes the leaf and adds up its ancestors anew, instead of
// subtracting along the path as Algorithm 7 does: inner nodes then never drift from their leaves.
class SamplingTree {
   public:
    explicit SamplingTree(const std::vector<double>& leaves) : n_(static_cast<int64_t>(leaves.size())) {
        while (size_ < n_) size_ *= 2;
        sums_.assign(2 * size_, 0.0);
        std::copy(leaves.begin(), leaves.end(), sums_.begin() + size_);
        for (int64_t i = size_ - 1; i >= 1; --i) sums_[i] = sums_[2 * i] + sums_[2 * i + 1];
    }

    double total() const { return sums_[1]; }
    double leaf(int64_t x) const { return sums_[size_ + x]; }
    int64_t size() const { return n_; }

    void update(int64_t x, double value) {
        int64_t i = size_ + x;
        sums_[i] = value;
        for (i /= 2; i >= 1; i /= 2) sums_[i] = sums_[2 * i] + sums_[2 * i + 1];
    }

    // The leaf in whose interval u·total lies, for u in [0, 1). Never enters a subtree of sum zero.
    int64_t sample(double u) const {
        double rest = u * sums_[1];
        int64_t i = 1;
        while (i < size_) {
            const double left = sums_[2 * i], right = sums_[2 * i + 1];
            if (right <= 0 || (left > 0 && rest < left)) {
                i = 2 * i;
            } else {
                rest -= left;
                i = 2 * i + 1;
            }
        }
        return i - size_;
    }

   private:
    int64_t n_;
    int64_t size_ = 1;
    std::vector<double> sums_;
};

// Contributions of some earlier moment with their block sums. They only ever fall, so the table bounds them from above:
// draw from the table, accept with probability now/then, rebuild when less than half of the draws would be accepted.
class StaleTable {
   public:
    static constexpr int64_t kBlock = 64;  // a draw walks half a block on average

    void rebuild(Context& context, const Seeds& seeds, const KernelArrays& kernel) {
        const int64_t n = static_cast<int64_t>(seeds.distance.size());
        const int64_t blocks = (n + kBlock - 1) / kBlock;
        bound_.resize(n);
        prefix_.assign(blocks + 1, 0.0);
        parallel_blocks(context, n, kBlock * 1024, [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t b = begin / kBlock; b * kBlock < end; ++b) {
                double sum = 0.0;
                const int64_t stop = std::min(n, (b + 1) * kBlock);
                for (int64_t x = b * kBlock; x < stop; ++x) {
                    bound_[x] = kernel.weights[x] * seeds.distance[x];
                    sum += bound_[x];
                }
                prefix_[b + 1] = sum;
            }
        });
        for (int64_t b = 0; b < blocks; ++b) prefix_[b + 1] += prefix_[b];
    }

    double total() const { return prefix_.back(); }
    double bound(int64_t x) const { return bound_[x]; }

    // The block in which a target in [0, total) lies; its bounds are asked for from memory.
    int64_t block(double target) const {
        const int64_t blocks = static_cast<int64_t>(prefix_.size()) - 1;
        int64_t b = static_cast<int64_t>(std::upper_bound(prefix_.begin(), prefix_.end(), target) - prefix_.begin()) - 1;
        b = std::min(std::max<int64_t>(b, 0), blocks - 1);
        for (int64_t x = b * kBlock; x < std::min<int64_t>(bound_.size(), (b + 1) * kBlock); x += 8) prefetch(&bound_[x]);
        return b;
    }

    // The point of the block in whose interval the target lies; -1 when the whole block is empty.
    int64_t point(int64_t b, double target) const {
        const int64_t begin = b * kBlock, end = std::min<int64_t>(bound_.size(), begin + kBlock);
        double rest = target - prefix_[b];
        int64_t last = -1;
        for (int64_t x = begin; x < end; ++x) {
            if (bound_[x] <= 0) continue;
            last = x;
            if (rest < bound_[x]) return x;
            rest -= bound_[x];
        }
        return last;  // rounding carried the target past the block's end
    }

   private:
    LazyVector<double> bound_;
    std::vector<double> prefix_;
};

// C begins with `start`, or with x* and one uniform point; x* must be in it. Fewer than `draws` points are drawn only when
// every distance has fallen to zero.
template <class Index, class Weight>
std::vector<int64_t> starting_points(const Csr<Index, Weight>& a, const KernelArrays& kernel, const int64_t* start,
                                     int64_t count, Random& random, int64_t x_star) {
    std::vector<int64_t> points;
    if (start) {
        for (int64_t i = 0; i < count; ++i) {
            const int64_t x = start[i];
            if (x < 0 || x >= a.n || !(kernel.weights[x] > 0))
                throw InputError("start holds " + std::to_string(x) + ", which is not a point of positive weight");
            if (std::find(points.begin(), points.end(), x) == points.end()) points.push_back(x);
        }
    } else {
        if (x_star >= 0) points.push_back(x_star);
        const int64_t x = uniform_point(random, kernel, a.n);
        if (x != x_star) points.push_back(x);
    }
    return points;
}

template <class Index, class Weight>
Seeds sample_tree(Context& context, const Csr<Index, Weight>& a, const KernelArrays& kernel,
                  const std::vector<int64_t>& start, int64_t draws, Random& random) {
    Seeds seeds;
    start_distances(context, seeds, kernel, a.n, start);
    std::vector<double> contributions(a.n);
    for (int64_t x = 0; x < a.n; ++x) contributions[x] = kernel.weights[x] * seeds.distance[x];
    SamplingTree tree(contributions);
    auto lowered = [&](int64_t x) { tree.update(x, kernel.weights[x] * seeds.distance[x]); };
    for (int64_t x : start) add_point(seeds, a, kernel, x, lowered);
    for (int64_t i = 0; i < draws && tree.total() > 0; ++i) {
        if ((i & 63) == 0) context.check();
        add_point(seeds, a, kernel, tree.sample(random.uniform()), lowered);
    }
    return seeds;
}

template <class Index, class Weight>
Seeds sample_rejection(Context& context, const Csr<Index, Weight>& a, const KernelArrays& kernel,
                       const std::vector<int64_t>& start, int64_t draws, Random& random) {
    Seeds seeds;
    start_distances(context, seeds, kernel, a.n, start);
    StaleTable table;
    for (int64_t x : start) add_point(seeds, a, kernel, x, [](int64_t) {});
    int64_t tried = 0, accepted = 0;
    bool stale = true;
    // What the table proposes does not depend on what was accepted since it was built, so proposals are made ahead of need and
    // their rows asked for from memory meanwhile.
    constexpr int64_t ahead = 32;
    struct {
        int64_t x;  // first the block of the table, then the point in it
        double target, u;
    } proposals[ahead];
    int64_t next = ahead;
    for (int64_t i = 0; i < draws; ++i) {
        if ((i & 63) == 0) context.check();
        int64_t y = -1;
        while (y < 0) {
            if (stale) {
                next = ahead;
                table.rebuild(context, seeds, kernel);
                ++seeds.rebuilds;
                if (!(table.total() > 0)) return seeds;
                stale = false;
                tried = accepted = 0;
            }
            if (next == ahead) {
                for (auto& proposal : proposals) {
                    proposal.target = random.uniform() * table.total();
                    proposal.u = random.uniform();
                    proposal.x = table.block(proposal.target);
                }
                for (auto& proposal : proposals) {
                    proposal.x = table.point(proposal.x, proposal.target);
                    if (proposal.x >= 0) a.prefetch_border(proposal.x);
                }
                for (const auto& proposal : proposals)
                    if (proposal.x >= 0) a.prefetch_row(proposal.x);
                for (const auto& proposal : proposals)
                    if (proposal.x >= 0) prefetch_neighbours(seeds, a, kernel, proposal.x);
                next = 0;
            }
            const auto [x, target, u] = proposals[next++];
            ++tried;
            if (x >= 0 && u * table.bound(x) < kernel.weights[x] * seeds.distance[x]) y = x;
            // Judge the rate on a window, so that a run of bad luck at the beginning does not rebuild.
            if (y < 0 && tried >= 32 && 2 * accepted < tried) stale = true;
        }
        ++accepted;
        if (tried >= 256) {
            tried /= 2;
            accepted /= 2;
        }
        add_point(seeds, a, kernel, y, [](int64_t) {});
    }
    return seeds;
}

// Algorithm 1: every distance is looked at for every draw, O(nk). Needs no x*.
template <class Index, class Weight>
Seeds sample_naive(Context& context, const Csr<Index, Weight>& a, const KernelArrays& kernel,
                   const std::vector<int64_t>& start, int64_t draws, Random& random) {
    Seeds seeds;
    constexpr int64_t size = 1 << 14;
    const int64_t blocks = (a.n + size - 1) / size;
    seeds.distance.assign(a.n, std::numeric_limits<double>::infinity());
    seeds.nearest.assign(a.n, 0);
    std::vector<double> row(a.n, 0.0), sums(blocks);
    std::vector<Seeds> parts(blocks);  // each block's counts

    auto add = [&](int64_t y) {
        const int32_t position = static_cast<int32_t>(seeds.points.size());
        seeds.points.push_back(y);
        seeds.distance[y] = 0.0;
        seeds.nearest[y] = position;  // even where an earlier seed is at (clipped) distance 0
        const auto r = a.row(y);
        for (int64_t p = r.begin; p < r.end; ++p) {
            const int64_t x = a.column(p);
            row[x] = kernel.factor(y) * kernel.factor(x) * a.weight(p);
        }
        parallel_blocks(context, a.n, size, [&](int64_t b, int64_t begin, int64_t end) {
            double sum = 0.0;
            for (int64_t x = begin; x < end; ++x) {
                if (!(kernel.weights[x] > 0)) {
                    seeds.distance[x] = 0.0;
                    continue;
                }
                double d = x == y ? 0.0 : kernel.diagonal[x] + kernel.diagonal[y] - 2.0 * row[x];
                d = clip(parts[b], kernel, x, y, d);
                if (d < seeds.distance[x]) {
                    seeds.distance[x] = d;
                    seeds.nearest[x] = position;
                }
                sum += kernel.weights[x] * seeds.distance[x];
            }
            sums[b] = sum;
        });
        seeds.checks += a.n;
        for (int64_t p = r.begin; p < r.end; ++p) row[a.column(p)] = 0.0;
    };
    for (int64_t x : start) add(x);
    for (int64_t i = 0; i < draws; ++i) {
        double total = 0.0;
        for (double s : sums) total += s;
        if (!(total > 0)) break;
        double rest = random.uniform() * total;
        int64_t b = 0;
        while (b + 1 < blocks && (rest >= sums[b] || sums[b] <= 0)) rest -= sums[b++];
        while (sums[b] <= 0) --b;  // rounding carried the target past the last block with a contribution
        int64_t y = -1;
        for (int64_t x = b * size; x < std::min(a.n, (b + 1) * size); ++x) {
            const double f = kernel.weights[x] * seeds.distance[x];
            if (f <= 0) continue;
            y = x;
            if (rest < f) break;
            rest -= f;
        }
        add(y);
    }
    for (const auto& part : parts) {
        seeds.clipped += part.clipped;
        seeds.missing_shift = std::max(seeds.missing_shift, part.missing_shift);
    }
    return seeds;
}

}  // namespace corecut
