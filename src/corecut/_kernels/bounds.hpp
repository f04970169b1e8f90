// Bringing a partition into bounds on the sizes of its clusters, at the least cost in F that single moves can find.
//
// First clusters above the bound give nodes away, then clusters below it get some; each time the move that raises F least per
// node of size. A node goes to an adjacent cluster with room, or where there is none, to the cluster with the most room. With
// nodes of size 1 and bounds that can be met, it always ends inside them.
#pragma once

#include <limits>
#include <queue>
#include <vector>

#include "local_moves.hpp"
#include "objective.hpp"
#include "refinement.hpp"

namespace corecut {

template <class Index, class Weight>
class Balancer {
   public:
    Balancer(Context& context, const Csr<Index, Weight>& a, const double* degrees, const double* sizes, int32_t* labels, int64_t k,
             const Objective& f)
        : context_(context), a_(a), degrees_(degrees), sizes_(sizes), labels_(labels), k_(k),
          clusters_(context, a, degrees, sizes, labels, k, f), seen_(k), version_(a.n, 0), spare_(kLooksPerNode * a.n) {}

    int64_t run() {
        int64_t moves = 0;
        if (clusters_.outside() > 0) {
            moves += shed();
            moves += fill(false);
            moves += fill(true);
        }
        return moves;
    }

    double outside() const { return clusters_.outside(); }

   private:
    struct Candidate {
        double cost;  // per node of size; the cheapest comes first
        int64_t node;
        int32_t target;
        uint32_t version;
        bool operator<(const Candidate& other) const { return cost > other.cost || (cost == other.cost && node > other.node); }
    };
    using Heap = std::priority_queue<Candidate>;

    bool above(int32_t j) const { return clusters_.size[j] > clusters_.objective.max_size; }
    bool below(int32_t j) const { return clusters_.size[j] < clusters_.objective.min_size; }
    Node node(int64_t x) const { return {degrees_[x], sizes_[x], seen_.loop}; }

    double cost(int64_t x, int32_t from, int32_t to) const {
        const double fall = clusters_.leave(from, node(x), seen_.weight[from]) + clusters_.enter(to, node(x), seen_.weight[to]);
        return -fall / std::max(sizes_[x], 1e-300);
    }

    // Some node of a cluster may always go, even its last volume, but never its last node.
    bool may_leave(int32_t from) const { return clusters_.members[from] > 1; }

    int32_t roomiest() const {
        int32_t most = 0;
        for (int32_t j = 1; j < k_; ++j)
            if (clusters_.size[j] < clusters_.size[most]) most = j;
        return most;
    }

    void apply(int64_t x, int32_t to) {
        const int32_t from = labels_[x];
        clusters_.move(from, to, node(x), seen_.weight[from], seen_.weight[to]);
        labels_[x] = to;
        ++version_[x];
        since_ = 0;
    }

    // Every move makes all others of the two clusters a little dearer. Where many cost nearly the same, as of a star's leaves,
    // all of them would be looked at again before each move.
    bool may_look_again() {
        if (spare_ > 0)
            --spare_;
        else if (++since_ > kLooksPerMove)
            return false;
        return true;
    }

    bool fits(int64_t x, int32_t to) const { return clusters_.size[to] + sizes_[x] <= clusters_.objective.max_size; }

    Candidate way_out(int64_t x) {
        seen_.read(a_, labels_, x);
        const int32_t from = labels_[x];
        Candidate found{std::numeric_limits<double>::infinity(), x, -1, version_[x]};
        if (!may_leave(from) || clusters_.size[from] - sizes_[x] < clusters_.objective.min_size) return found;
        for (int32_t j : seen_.clusters)
            if (j != from && fits(x, j))
                if (const double c = cost(x, from, j); c < found.cost || (c == found.cost && j < found.target))
                    found.cost = c, found.target = j;
        if (found.target < 0)
            if (const int32_t j = roomiest(); j != from && fits(x, j)) found.cost = cost(x, from, j), found.target = j;
        return found;
    }

    int64_t shed() {
        Heap heap;
        for (int64_t x = 0; x < a_.n; ++x)
            if (above(labels_[x]))
                if (const Candidate c = way_out(x); c.target >= 0) heap.push(c);
        int64_t moves = 0;
        while (!heap.empty()) {
            const Candidate top = heap.top();
            heap.pop();
            const int64_t x = top.node;
            if (top.version != version_[x] || !above(labels_[x])) continue;
            if ((++looks_ & 1023) == 0) context_.check();
            const Candidate now = way_out(x);
            if (now.target < 0) continue;
            if (!heap.empty() && now < heap.top() && may_look_again()) {
                heap.push(now);
                continue;
            }
            apply(x, now.target);
            ++moves;
            refresh(x, heap, [&](int64_t y) { return above(labels_[y]) ? way_out(y) : Candidate{0, y, -1, 0}; });
        }
        return moves;
    }

    // The cheapest move of x into a cluster that is too small: an adjacent one, or any (`far`).
    Candidate way_in(int64_t x, bool far) {
        seen_.read(a_, labels_, x);
        const int32_t from = labels_[x];
        Candidate found{std::numeric_limits<double>::infinity(), x, -1, version_[x]};
        if (!may_leave(from) || clusters_.size[from] - sizes_[x] < clusters_.objective.min_size) return found;
        for (int32_t j : seen_.clusters)
            if (j != from && below(j) && fits(x, j))
                if (const double c = cost(x, from, j); c < found.cost || (c == found.cost && j < found.target))
                    found.cost = c, found.target = j;
        if (far && found.target < 0)
            if (const int32_t j = roomiest(); j != from && below(j) && fits(x, j)) found.cost = cost(x, from, j), found.target = j;
        return found;
    }

    int64_t fill(bool far) {
        bool any = false;
        for (int32_t j = 0; j < k_; ++j) any = any || below(j);
        if (!any) return 0;
        Heap heap;
        for (int64_t x = 0; x < a_.n; ++x)
            if (const Candidate c = way_in(x, far); c.target >= 0) heap.push(c);
        int64_t moves = 0;
        while (!heap.empty()) {
            const Candidate top = heap.top();
            heap.pop();
            const int64_t x = top.node;
            if (top.version != version_[x]) continue;
            if ((++looks_ & 1023) == 0) context_.check();
            const Candidate now = way_in(x, far);
            if (now.target < 0) continue;
            if (!heap.empty() && now < heap.top() && may_look_again()) {
                heap.push(now);
                continue;
            }
            apply(x, now.target);
            ++moves;
            if (!far) refresh(x, heap, [&](int64_t y) { return way_in(y, false); });
        }
        return moves;
    }

    template <class F>
    void refresh(int64_t x, Heap& heap, F&& candidate) {
        const auto r = a_.row(x);
        if (r.size() > kMostNeighbours) return;
        for (int64_t p = r.begin; p < r.end; ++p) {
            const int64_t y = a_.indices[p];
            if (y == x || a_.row(y).size() > kMostNeighbours) continue;
            ++version_[y];
            if (const Candidate c = candidate(y); c.target >= 0) heap.push({c.cost, y, c.target, version_[y]});
        }
    }

    static constexpr int64_t kMostNeighbours = 512;
    static constexpr int64_t kLooksPerNode = 16, kLooksPerMove = 32;

    Context& context_;
    const Csr<Index, Weight>& a_;
    const double* degrees_;
    const double* sizes_;
    int32_t* labels_;
    int64_t k_;
    Clusters clusters_;
    Neighbourhood seen_;
    LazyVector<uint32_t> version_;
    int64_t looks_ = 0, spare_, since_ = 0;
};

}  // namespace corecut
