// Moving single nodes between adjacent clusters, in parallel and yet the same for any number of threads.
//
// Nodes are taken in fixed batches. Threads propose moves for a batch from the state at its beginning (reading edges, the
// expensive part); then one thread commits them in node order, each judged again by the exact state at that moment. A node
// that a neighbour's move in the same batch concerns is looked at afresh. So every committed move is what a sequential sweep in this
// order could have made, and what is committed does not depend on who proposed it.
#pragma once

#include <atomic>
#include <type_traits>
#include <vector>

#include "csr.hpp"
#include "memory.hpp"

namespace corecut {

inline constexpr int64_t kMoveBatch = 2048;

// What a node sees of its neighbourhood: total edge weight to each adjacent cluster, and its own loop.
struct Neighbourhood {
    LazyVector<double> weight;      // by cluster, zero outside `clusters`
    std::vector<int32_t> clusters;  // adjacent ones, in order of first appearance
    double loop = 0;

    explicit Neighbourhood(int64_t k) : weight(k, 0.0) {}

    template <class Index, class Weight>
    void read(const Csr<Index, Weight>& a, const int32_t* labels, int64_t x) {
        read(a, labels, x, x);
    }

    // The same for a row of another matrix with these columns: `own` is the column that stands for its node, -1 for none.
    template <class Index, class Weight>
    void read(const Csr<Index, Weight>& a, const int32_t* labels, int64_t x, int64_t own) {
        clear();
        const auto r = a.row(x);
        a.check_columns(r);
        // Neighbours in a row tend to share a cluster: add up such a run in a register, not through memory.
        using Sum = std::conditional_t<Csr<Index, Weight>::weighted, double, int64_t>;
        int32_t run = -1;
        Sum sum = 0;
        for (int64_t p = r.begin; p < r.end; ++p) {
            const int64_t y = a.indices[p];
            const Sum w = static_cast<Sum>(a.weight(p));
            if (y == own) {
                loop += static_cast<double>(w);
                continue;
            }
            const int32_t j = labels[y];
            if (j != run) {
                add(run, static_cast<double>(sum));
                run = j;
                sum = 0;
            }
            sum += w;
        }
        add(run, static_cast<double>(sum));
    }

    // Ask the cache for what a look at a node will need: first the labels of its neighbours, and when those are there the places of
    // its clusters, here and in the policy. Not worth while where few clusters keep them in the cache.
    template <class Index, class Weight>
    CORECUT_INLINE void prefetch_labels(const Csr<Index, Weight>& a, const int32_t* labels, int64_t x) const {
        if (weight.size() <= kFew) return;
        const auto r = a.row(x);
        for (int64_t p = r.begin; p < std::min(r.end, r.begin + kFirst); ++p) a.prefetch_at(labels, p, r.end);
    }
    template <class Index, class Weight, class Policy>
    CORECUT_INLINE void prefetch_clusters(const Csr<Index, Weight>& a, const int32_t* labels, int64_t x,
                                          const Policy& policy) const {
        if (weight.size() <= kFew) return;
        const auto r = a.row(x);
        for (int64_t p = r.begin; p < std::min(r.end, r.begin + kFirst); ++p) {
            const int32_t j = labels[a.column(p)];
            prefetch(&weight[j]);
            prefetch(&policy.volume[j]);
        }
    }

    void add(int32_t j, double w) {
        if (w == 0.0) return;
        if (weight[j] == 0.0) clusters.push_back(j);
        weight[j] += w;
    }

    void clear() {
        for (int32_t j : clusters) weight[j] = 0.0;
        clusters.clear();
        loop = 0;
    }

   private:
    static constexpr size_t kFew = 1 << 14;
    static constexpr int64_t kFirst = 64;
};

struct Proposal {
    int32_t target = -1;
    double to_own = 0, to_target = 0, loop = 0;
};

struct SweepResult {
    int64_t moves = 0;
    int64_t looked_at = 0;
};

// One pass over all nodes with active[x] set, in increasing order. Policy decides:
//   best(x, from, neighbourhood) -> target cluster, or from
//   gain(x, from, to, weight to from, weight to to, loop) -> improvement by the current state; only gains above 0 are made
//   apply(x, from, to, ...)      -> update the state
//   volume                       -> by cluster
//   wakes(y, own, from, to, w)   -> may y, in cluster `own`, want to move now that a neighbour, over weight w, has?
// Neighbours of a moved node that it wakes become active. active[x] is cleared before x is looked at.
template <class Index, class Weight, class Policy>
SweepResult sweep(Context& context, const Csr<Index, Weight>& a, int32_t* labels, int64_t k, Policy& policy,
                  LazyVector<uint8_t>& active, LazyVector<int32_t>& stamp, int32_t& batch_number) {
    SweepResult result;
    std::vector<Neighbourhood> scratch;
    const int threads = std::max(1, context.threads);
    for (int t = 0; t < threads; ++t) scratch.emplace_back(k);
    std::vector<int64_t> batch;
    std::vector<Proposal> proposals(kMoveBatch);
    batch.reserve(kMoveBatch);

    int64_t next = 0;
    while (next < a.n) {
        batch.clear();
        while (next < a.n && static_cast<int64_t>(batch.size()) < kMoveBatch) {
            if (active[next]) {
                active[next] = 0;
                batch.push_back(next);
            }
            ++next;
        }
        if (batch.empty()) break;
        context.check();
        ++batch_number;
        const int64_t count = static_cast<int64_t>(batch.size());
        result.looked_at += count;

        std::atomic<int> turn{0};
        auto propose = [&](int64_t begin, int64_t end, Neighbourhood& seen) {
            for (int64_t i = begin; i < end; ++i) {
                const int64_t x = batch[i];
                if (i + 4 < end) seen.prefetch_labels(a, labels, batch[i + 4]);
                if (i + 2 < end) seen.prefetch_clusters(a, labels, batch[i + 2], policy);
                seen.read(a, labels, x);
                const int32_t from = labels[x], target = policy.best(x, from, seen);
                proposals[i] = {target, seen.weight[from], seen.weight[target], seen.loop};
            }
        };
        if (threads == 1 || count < 256) {
            propose(0, count, scratch[0]);
        } else {
            Context pool;
            pool.threads = threads;
            // Each piece borrows a scratch of its own; which one has no effect on the result.
            const int64_t size = (count + threads - 1) / threads;
            parallel_blocks(pool, count, size,
                            [&](int64_t, int64_t begin, int64_t end) { propose(begin, end, scratch[turn.fetch_add(1)]); });
        }

        Neighbourhood& seen = scratch[0];
        for (int64_t i = 0; i < count; ++i) {
            const int64_t x = batch[i];
            Proposal move = proposals[i];
            const int32_t from = labels[x];
            if (stamp[x] == batch_number && (move.target != from || active[x])) {
                seen.read(a, labels, x);
                const int32_t target = policy.best(x, from, seen);
                move = {target, seen.weight[from], seen.weight[target], seen.loop};
            }
            if (move.target == from) continue;
            if (!(policy.gain(x, from, move.target, move.to_own, move.to_target, move.loop) > 0)) {
                active[x] = 1;  // another move came first; look again in the next pass
                continue;
            }
            policy.apply(x, from, move.target, move.to_own, move.to_target, move.loop);
            labels[x] = move.target;
            ++result.moves;
            const auto r = a.row(x);
            for (int64_t p = r.begin; p < r.end; ++p) {
                const int64_t y = a.indices[p];
                stamp[y] = batch_number;
                if (!active[y] && policy.wakes(y, labels[y], from, move.target, a.weight(p))) active[y] = 1;
            }
        }
    }
    return result;
}

}  // namespace corecut
