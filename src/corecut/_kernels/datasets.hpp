// Random graphs with planted clusters, in time linear in their edges.
//
// Every row draws its edges from a random stream of its own, and rows are assembled in an order that does not depend on the
// threads: a graph is a function of the seed. Nodes are sorted by cluster; cluster c is [borders[c], borders[c + 1]).
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "parallel.hpp"
#include "random.hpp"

namespace corecut {

inline constexpr int64_t kDrawBlock = 256;

// Not a std::vector for the indices: it would write zeros to gigabytes on one thread before the kernels fill them on all.
struct Adjacency {
    std::vector<int64_t> indptr;
    std::unique_ptr<int32_t[]> indices;
};

struct PlantedClusters {
    const int64_t* borders;
    int64_t count;

    int64_t nodes() const { return borders[count]; }
    int64_t of(int64_t x) const { return std::upper_bound(borders, borders + count, x) - borders - 1; }
};

// Every edge once, in the row that drew it.
struct HalfEdges {
    std::vector<std::vector<int32_t>> targets;  // one list per block of kDrawBlock rows, row after row
    std::vector<int64_t> out;                   // edges that a row drew
    std::vector<std::atomic<int64_t>> in;       // edges that others drew to it

    explicit HalfEdges(int64_t n) : targets((n + kDrawBlock - 1) / kDrawBlock), out(n, 0), in(n) {}

    int64_t nodes() const { return static_cast<int64_t>(out.size()); }

    // Call f(row, first, last) for the block's rows in order.
    template <class F>
    void for_rows(int64_t block, F&& f) const {
        const int32_t* first = targets[block].data();
        for (int64_t x = block * kDrawBlock; x < std::min(nodes(), (block + 1) * kDrawBlock); ++x) {
            f(x, first, first + out[x]);
            first += out[x];
        }
    }

    // Where each row begins when both ends of every edge are stored.
    std::vector<int64_t> row_borders() const {
        std::vector<int64_t> indptr(nodes() + 1, 0);
        for (int64_t x = 0; x < nodes(); ++x) indptr[x + 1] = indptr[x] + out[x] + in[x].load(std::memory_order_relaxed);
        return indptr;
    }
};

// draw(x, targets) appends the edges of row x.
template <class Draw>
HalfEdges draw_half_edges(Context& context, int64_t n, Draw&& draw) {
    HalfEdges half(n);
    parallel_blocks(context, n, kDrawBlock, [&](int64_t block, int64_t begin, int64_t end) {
        auto& targets = half.targets[block];
        for (int64_t x = begin; x < end; ++x) {
            context.check();
            const size_t before = targets.size();
            draw(x, targets);
            half.out[x] = static_cast<int64_t>(targets.size() - before);
        }
        targets.shrink_to_fit();  // the lists together are half the graph: they must not keep twice their size
        for (const int32_t y : targets) half.in[y].fetch_add(1, std::memory_order_relaxed);
    });
    return half;
}

// Append each of the columns [begin, end) with probability p, by skipping over the misses: their number is geometric.
inline void bernoulli_run(Random& random, int64_t begin, int64_t end, double p, std::vector<int32_t>& columns) {
    if (!(p > 0)) return;
    const double scale = 1.0 / std::log1p(-p);  // -0 for p = 1: no column is skipped
    for (int64_t y = begin; y < end; ++y) {
        const double skip = std::log(random.positive()) * scale;
        if (!(skip < static_cast<double>(end - y))) return;  // compared as numbers: the skip may exceed any integer
        y += static_cast<int64_t>(skip);
        columns.push_back(static_cast<int32_t>(y));
    }
}

// Both triangles from rows that hold increasing columns behind the diagonal.
inline Adjacency mirrored(Context& context, const HalfEdges& half) {
    const int64_t n = half.nodes();
    Adjacency result{half.row_borders(), nullptr};
    const auto& indptr = result.indptr;
    result.indices.reset(new int32_t[indptr[n]]);
    int32_t* const indices = result.indices.get();
    parallel_blocks(context, n, kDrawBlock, [&](int64_t block, int64_t, int64_t) {
        half.for_rows(block, [&](int64_t x, const int32_t* first, const int32_t* last) {
            std::copy(first, last, indices + indptr[x] + half.in[x].load(std::memory_order_relaxed));
        });
    });
    // A row's part before the diagonal is filled by walking over the rows above it in order, so it comes out sorted. Each
    // thread owns a range of columns, with an equal share of the edges, and reads from every row what falls into it.
    const int64_t parts = context.threads;
    std::vector<int64_t> border(parts + 1, n);
    border[0] = 0;
    int64_t seen = 0;
    for (int64_t x = 0, part = 1; x < n; ++x) {
        while (part < parts && seen >= indptr[n] / 2 / parts * part) border[part++] = x;
        seen += half.in[x].load(std::memory_order_relaxed);
    }
    parallel_blocks(context, parts, 1, [&](int64_t part, int64_t, int64_t) {
        const int64_t begin = border[part], end = border[part + 1];
        std::vector<int64_t> cursor(indptr.begin() + begin, indptr.begin() + end);
        for (int64_t block = 0; block * kDrawBlock < end; ++block) {
            context.check();
            half.for_rows(block, [&](int64_t x, const int32_t* first, const int32_t* last) {
                if (first == last || last[-1] < begin || *first >= end) return;
                if (*first < begin) first = std::lower_bound(first, last, static_cast<int32_t>(begin));
                for (; first < last && *first < end; ++first) indices[cursor[*first - begin]++] = static_cast<int32_t>(x);
            });
        }
    });
    return result;
}

// Each pair of nodes is an edge with probability p inside a cluster and q between clusters.
inline Adjacency stochastic_block_model(Context& context, PlantedClusters clusters, double p, double q, uint64_t seed) {
    const int64_t n = clusters.nodes();
    return mirrored(context, draw_half_edges(context, n, [&](int64_t x, std::vector<int32_t>& targets) {
                        Random random(seed, static_cast<uint64_t>(x));
                        const int64_t end = clusters.borders[clusters.of(x) + 1];
                        bernoulli_run(random, x + 1, end, p, targets);
                        bernoulli_run(random, end, n, q, targets);
                    }));
}

// Draws a node of a range with probability proportional to its mass, in O(1) expected steps: a guide table says which node
// the running sum of the masses has reached at each of n equally spaced values.
class MassTable {
   public:
    MassTable(const double* mass, int64_t n) : sum_(n + 1, 0.0), guide_(n) {
        for (int64_t x = 0; x < n; ++x) sum_[x + 1] = sum_[x] + mass[x];
        scale_ = static_cast<double>(n) / sum_[n];
        for (int64_t x = 0, g = 0; x < n; ++x)
            while (g < n && static_cast<double>(g) < sum_[x + 1] * scale_) guide_[g++] = static_cast<int32_t>(x);
    }

    int64_t draw(double u, int64_t begin, int64_t end) const {
        const double value = sum_[begin] + u * (sum_[end] - sum_[begin]);
        const auto g = std::min(static_cast<int64_t>(value * scale_), static_cast<int64_t>(guide_.size()) - 1);
        int64_t x = std::clamp<int64_t>(guide_[g], begin, end - 1);
        while (x > begin && sum_[x] > value) --x;  // the guide may be off by rounding
        while (x < end - 1 && sum_[x + 1] <= value) ++x;
        return x;
    }

   private:
    std::vector<double> sum_;
    std::vector<int32_t> guide_;
    double scale_;
};

// The simple graph of edges drawn in any order: both ends stored, rows sorted, repeats merged.
inline Adjacency merged(Context& context, HalfEdges&& half) {
    const int64_t n = half.nodes();
    std::vector<int64_t> start = half.row_borders();
    std::unique_ptr<int32_t[]> both(new int32_t[start[n]]);
    std::vector<std::atomic<int64_t>>& cursor = half.in;
    for (int64_t x = 0; x < n; ++x) cursor[x].store(start[x] + half.out[x], std::memory_order_relaxed);
    parallel_blocks(context, n, kDrawBlock, [&](int64_t block, int64_t, int64_t) {
        half.for_rows(block, [&](int64_t x, const int32_t* first, const int32_t* last) {
            std::copy(first, last, both.get() + start[x]);
            for (; first < last; ++first)
                both[cursor[*first].fetch_add(1, std::memory_order_relaxed)] = static_cast<int32_t>(x);
        });
        std::vector<int32_t>().swap(half.targets[block]);
    });
    Adjacency result{std::vector<int64_t>(n + 1, 0), nullptr};
    auto& indptr = result.indptr;
    parallel_blocks(context, n, kDrawBlock, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t x = begin; x < end; ++x) {
            // Sorting also undoes the order in which the threads happened to arrive.
            int32_t *first = both.get() + start[x], *last = both.get() + start[x + 1];
            std::sort(first, last);
            indptr[x + 1] = std::unique(first, last) - first;
        }
    });
    for (int64_t x = 0; x < n; ++x) indptr[x + 1] += indptr[x];
    result.indices.reset(new int32_t[indptr[n]]);
    parallel_blocks(context, n, kDrawBlock, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t x = begin; x < end; ++x)
            std::copy_n(both.get() + start[x], indptr[x + 1] - indptr[x], result.indices.get() + indptr[x]);
    });
    return result;
}

// Node x sends Poisson(inside·θ_x) edges into its own cluster and Poisson(anywhere·θ_x) into the whole graph, each to a node
// with probability proportional to θ.
class DegreeCorrected {
   public:
    DegreeCorrected(PlantedClusters clusters, const double* theta, double inside, double anywhere, uint64_t seed)
        : clusters_(clusters), theta_(theta), inside_(inside), total_(inside + anywhere), seed_(seed), table_(theta, nodes()) {}

    int64_t nodes() const { return clusters_.nodes(); }

    void draw_row(Context& context, int64_t x, std::vector<int32_t>& targets) const {
        Random random(seed_, static_cast<uint64_t>(x));
        const int64_t own = clusters_.of(x);
        const double rate = total_ * theta_[x];
        // A Poisson number is what a process with unit exponential gaps counts up to its rate.
        for (double t = -std::log(random.positive()); t < rate; t -= std::log(random.positive())) {
            context.check();
            const bool at_home = random.uniform() * total_ < inside_;
            const int64_t begin = at_home ? clusters_.borders[own] : 0, end = at_home ? clusters_.borders[own + 1] : nodes();
            const int64_t y = table_.draw(random.uniform(), begin, end);
            if (y != x) targets.push_back(static_cast<int32_t>(y));
        }
    }

   private:
    PlantedClusters clusters_;
    const double* theta_;
    double inside_, total_;
    uint64_t seed_;
    MassTable table_;
};

inline HalfEdges draw_degree_corrected(Context& context, const DegreeCorrected& law) {
    return draw_half_edges(context, law.nodes(), [&](int64_t x, std::vector<int32_t>& targets) {
        law.draw_row(context, x, targets);
    });
}

struct EdgeList {
    std::vector<int32_t> source, target;
};

// The edges that the rows [begin, end) draw, row after row: the whole graph in pieces, for callers that cannot hold it.
inline EdgeList draw_edges(Context& context, const DegreeCorrected& law, int64_t begin, int64_t end) {
    const int64_t blocks = (end - begin + kDrawBlock - 1) / kDrawBlock;
    std::vector<EdgeList> drawn(blocks);
    parallel_blocks(context, end - begin, kDrawBlock, [&](int64_t block, int64_t first, int64_t last) {
        EdgeList& list = drawn[block];
        for (int64_t x = begin + first; x < begin + last; ++x) {
            law.draw_row(context, x, list.target);
            list.source.resize(list.target.size(), static_cast<int32_t>(x));
        }
    });
    EdgeList all;
    size_t count = 0;
    for (const EdgeList& list : drawn) count += list.target.size();
    all.source.reserve(count);
    all.target.reserve(count);
    for (const EdgeList& list : drawn) {
        all.source.insert(all.source.end(), list.source.begin(), list.source.end());
        all.target.insert(all.target.end(), list.target.begin(), list.target.end());
    }
    return all;
}

inline Adjacency degree_corrected(Context& context, PlantedClusters clusters, const double* theta, double inside, double anywhere,
                                  uint64_t seed) {
    return merged(context, draw_degree_corrected(context, DegreeCorrected(clusters, theta, inside, anywhere, seed)));
}

// How many edges of such a graph remain after merging: the sum over pairs of 1 - exp(-λ_xy), where λ_xy is the expected
// number of edges drawn between x and y. Nodes with about the same θ stand together in a bin, so that the sum is short.
class PairProfile {
   public:
    PairProfile(PlantedClusters clusters, const double* theta) {
        const auto [low, high] = std::minmax_element(theta, theta + clusters.nodes());
        const double offset = std::log(*low), scale = (kBins - 1e-9) / std::max(std::log(*high) - offset, 1e-9);
        Bins all(kBins);
        for (int64_t c = 0; c < clusters.count; ++c) {
            Bins own(kBins);
            for (int64_t x = clusters.borders[c]; x < clusters.borders[c + 1]; ++x) {
                const auto bin = static_cast<size_t>(std::clamp((std::log(theta[x]) - offset) * scale, 0.0, kBins - 1.0));
                for (Bins* bins : {&own, &all}) {
                    (*bins)[bin].count += 1.0;
                    (*bins)[bin].mass += theta[x];
                }
            }
            clusters_.push_back(Group(own));
        }
        whole_ = Group(all);
    }

    struct Expected {
        double inside, between;
    };

    Expected expected(Context& context, double inside, double anywhere) const {
        const double everywhere = 2.0 * anywhere / whole_.mass;
        Expected result{0.0, whole_.pairs(everywhere)};
        for (const Group& cluster : clusters_) {
            context.check();
            result.inside += cluster.pairs(everywhere + 2.0 * inside / cluster.mass);
            result.between -= cluster.pairs(everywhere);
        }
        return result;
    }

   private:
    static constexpr int kBins = 32;
    struct Bin {
        double count = 0.0, mass = 0.0;
    };
    using Bins = std::vector<Bin>;

    struct Group {
        Bins bins;
        double mass = 0.0;

        Group() = default;
        explicit Group(const Bins& all) {
            for (const Bin& bin : all) {
                if (bin.count > 0) bins.push_back(bin);
                mass += bin.mass;
            }
        }

        // Expected number of joined pairs when λ_xy = factor·θ_x·θ_y.
        double pairs(double factor) const {
            double sum = 0.0;
            for (size_t a = 0; a < bins.size(); ++a) {
                const double mean = factor * bins[a].mass / bins[a].count;
                sum += 0.5 * bins[a].count * (bins[a].count - 1.0) * joined(mean * bins[a].mass / bins[a].count);
                for (size_t b = 0; b < a; ++b)
                    sum += bins[a].count * bins[b].count * joined(mean * bins[b].mass / bins[b].count);
            }
            return sum;
        }

        // 1 - exp(-λ); most λ are so small that two terms of the series are exact enough, and far cheaper.
        static double joined(double lambda) { return lambda < 1e-4 ? lambda - 0.5 * lambda * lambda : -std::expm1(-lambda); }
    };

    std::vector<Group> clusters_;
    Group whole_;
};

}  // namespace corecut
