// The objective, in one place: the normalised cut with a fee for every cluster.
//
//     F(Π) = Σ_j (cut_j + c)/vol_j = Σ_j 1 - kept_j,      kept_j = (assoc_j - c)/vol_j,      c = β·vol(V)/k.
//
// A fee c is what a cluster pays for existing; only small clusters feel it. Bounds on sizes stand beside F, not in it. Moves of
// nodes, splits and merges are all written in terms of kept(); a new term of F belongs there and nowhere else.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "csr.hpp"
#include "memory.hpp"

namespace corecut {

struct Objective {
    double fee = 0.0;
    double min_size = 0.0, max_size = std::numeric_limits<double>::infinity();

    // What a cluster of this association, volume and size takes off k. One without volume keeps nothing.
    // (Sizes do not enter F now; they are handed in so that a term of them would be written here alone.)
    double kept(double association, double volume, double /* size */) const {
        return volume > 0 ? (association - fee) / volume : 0.0;
    }

    // By how much the size of a cluster is outside of the bounds.
    double outside(double size) const { return std::max(0.0, size - max_size) + std::max(0.0, min_size - size); }
};

// Association, volume and size of a set of nodes.
struct Part {
    double association = 0, volume = 0, size = 0;

    Part with(double weight, double degree, double nodes) const { return {association + weight, volume + degree, size + nodes}; }
    double kept(const Objective& f) const { return f.kept(association, volume, size); }
};

// What moves of a node x need to know of it: degree, size, and its loop.
struct Node {
    double degree, size, loop;
};

// The sums of one cluster: association, volume, size and number of nodes (of which none may lose its last one). Weights are those
// of a node's edges to it, without the loop.
struct ClusterSums {
    double inside, volume, size;
    int64_t members;

    double kept(const Objective& f) const { return f.kept(inside, volume, size); }

    // A cluster may not lose its last node, nor all of its volume.
    bool may_lose(const Node& x) const { return members > 1 && volume - x.degree > volume * 1e-12; }

    // How far F falls when x leaves, or enters.
    double without(const Node& x, double weight, const Objective& f) const {
        return f.kept(inside - 2 * weight - x.loop, volume - x.degree, size - x.size) - kept(f);
    }
    double with(const Node& x, double weight, const Objective& f) const {
        return f.kept(inside + 2 * weight + x.loop, volume + x.degree, size + x.size) - kept(f);
    }

    // How far the sizes of both would be outside of their bounds after a move, less how far they are now.
    double strain(const ClusterSums& to, const Node& x, const Objective& f) const {
        return f.outside(size - x.size) + f.outside(to.size + x.size) - f.outside(size) - f.outside(to.size);
    }

    // Whether a move is against the bounds: both sizes together come further outside, or one as far as the other comes back.
    bool against_bounds(const ClusterSums& to, const Node& x, const Objective& f) const {
        const double left = f.outside(size - x.size) - f.outside(size), joined = f.outside(to.size + x.size) - f.outside(to.size);
        return left + joined > 0 || (left + joined == 0 && left != 0);
    }

    void lose(const Node& x, double weight) {
        inside -= 2 * weight + x.loop;
        volume -= x.degree;
        size -= x.size;
        --members;
    }
    void gain(const Node& x, double weight) {
        inside += 2 * weight + x.loop;
        volume += x.degree;
        size += x.size;
        ++members;
    }
};

// The weight of rows begin.. towards their own clusters, loops included, written to within[0]...
template <class Index, class Weight>
void weights_within(const Csr<Index, Weight>& a, const int32_t* labels, int64_t begin, int64_t end, double* within) {
    for (int64_t x = begin; x < end; ++x) {
        const auto r = a.row(x);
        a.check_columns(r);
        const int32_t own = labels[x];
        if constexpr (Csr<Index, Weight>::weighted) {
            double sum = 0.0;
            for (int64_t p = r.begin; p < r.end; ++p) sum += labels[a.indices[p]] == own ? a.weight(p) : 0.0;
            within[x - begin] = sum;
        } else {
            int64_t count = 0;
            for (int64_t p = r.begin; p < r.end; ++p) count += labels[a.indices[p]] == own;
            within[x - begin] = static_cast<double>(count);
        }
    }
}

// The sums of all clusters of a partition, kept up to date while nodes move.
class Clusters {
   public:
    static constexpr int64_t kPieces = 64;

    const Objective objective;
    std::vector<double> inside, volume, size;  // assoc, vol, S by cluster
    std::vector<int64_t> members;              // nodes of this graph in each cluster: none may lose its last one

    // Clusters whose sums are not known yet.
    Clusters(int64_t k, const Objective& f) : objective(f), inside(k, 0.0), volume(k, 0.0), size(k, 0.0), members(k, 0) {}

    template <class Index, class Weight>
    Clusters(Context& context, const Csr<Index, Weight>& a, const double* degrees, const double* sizes, const int32_t* labels,
             int64_t k, const Objective& f)
        : Clusters(k, f) {
        LazyVector<double> within(a.n);
        parallel_blocks(context, a.n, kRowBlock, [&](int64_t, int64_t begin, int64_t end) {
            weights_within(a, labels, begin, end, within.data() + begin);
        });
        count(context, within.data(), degrees, sizes, labels, a.n);
    }

    // Add up the sums, from the weights that nodes have within their clusters.
    void count(Context& context, const double* within, const double* degrees, const double* sizes, const int32_t* labels,
               int64_t n) {
        const auto k = static_cast<int64_t>(volume.size());
        // Each piece of the nodes has sums of its own where there are few clusters; borders do not depend on the threads.
        const int64_t pieces = k * kPieces <= n ? kPieces : 1, length = (n + pieces - 1) / pieces;
        std::vector<ClusterSums> sums(pieces * k, ClusterSums{0, 0, 0, 0});
        parallel_blocks(context, n, std::max<int64_t>(length, 1), [&](int64_t piece, int64_t begin, int64_t end) {
            ClusterSums* own = sums.data() + piece * k;
            for (int64_t x = begin; x < end; ++x) {
                ClusterSums& to = own[labels[x]];
                to.inside += within[x];
                to.volume += degrees[x];
                to.size += sizes[x];
                ++to.members;
            }
        });
        for (int64_t j = 0; j < k; ++j) inside[j] = volume[j] = size[j] = 0.0, members[j] = 0;
        for (int64_t piece = 0; piece < pieces; ++piece)
            for (int64_t j = 0; j < k; ++j) {
                const ClusterSums& part = sums[piece * k + j];
                inside[j] += part.inside;
                volume[j] += part.volume;
                size[j] += part.size;
                members[j] += part.members;
            }
    }

    // Clusters of a graph that is not at hand, by their sums. F does not depend on sizes, so that these are left out.
    Clusters(const double* association, const double* volumes, int64_t k, const Objective& f)
        : objective(f), inside(association, association + k), volume(volumes, volumes + k), size(k, 0.0), members(k, 0) {}

    double kept(int32_t j) const { return objective.kept(inside[j], volume[j], size[j]); }

    double value() const {
        double sum = 0.0;
        for (size_t j = 0; j < volume.size(); ++j) sum += 1.0 - kept(static_cast<int32_t>(j));
        return sum;
    }

    ClusterSums at(int32_t j) const { return {inside[j], volume[j], size[j], members[j]}; }
    void set(int32_t j, const ClusterSums& sums) {
        inside[j] = sums.inside;
        volume[j] = sums.volume;
        size[j] = sums.size;
        members[j] = sums.members;
    }

    bool may_leave(int32_t from, const Node& x) const { return at(from).may_lose(x); }
    double leave(int32_t from, const Node& x, double to_own) const { return at(from).without(x, to_own, objective); }
    double enter(int32_t to, const Node& x, double to_target) const { return at(to).with(x, to_target, objective); }

    // How far F falls when a node joins `to` that the graph did not have, beside its being there in no cluster: its edges add to
    // the degrees at both ends.
    double join(int32_t to, const Node& x, double to_target) const {
        const double grown = volume[to] + to_target;
        return objective.kept(inside[to] + 2 * to_target + x.loop, grown + x.degree, size[to] + x.size) -
               objective.kept(inside[to], grown, size[to]);
    }

    void move(int32_t from, int32_t to, const Node& x, double to_own, double to_target) {
        ClusterSums left = at(from), joined = at(to);
        left.lose(x, to_own);
        joined.gain(x, to_target);
        set(from, left);
        set(to, joined);
    }

    // How far all sizes together would be outside of their bounds after a move, less how far they are now.
    double strain(int32_t from, int32_t to, const Node& x) const {
        return at(from).strain(at(to), x, objective);
    }

    double outside() const {
        double sum = 0.0;
        for (double nodes : size) sum += objective.outside(nodes);
        return sum;
    }

    // An upper bound of how much closer to paying a move of a neighbour, over an edge of weight w, brings a move of a node in
    // cluster `own`: gains rise by 2w/vol at each end that the neighbour's move touches.
    double nearer(int32_t own, int32_t from, int32_t to, double w) const {
        double risen = 0.0;
        if (from == own) risen += 2 * w / volume[own];
        if (to != own) risen += 2 * w / volume[to];
        return risen;
    }
};

}  // namespace corecut
