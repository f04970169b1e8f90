// Moves that look further than one node (Fiduccia and Mattheyses 1982; localised as by Sanders and Schulz 2011).
//
// A search begins at one node on a border and goes on with the best move next to what it has moved, also when F rises; when it
// has found nothing better for a while it takes its last moves back, to where F was lowest. On the way clusters may be outside of
// their bounds by one node, so that two full clusters can swap nodes. One search after the other, in an order drawn from a seed.
#pragma once

#include <limits>
#include <queue>
#include <span>
#include <vector>

#include "memory.hpp"
#include "objective.hpp"
#include "random.hpp"
#include "refinement.hpp"

namespace corecut {

struct Climb {
    int64_t searches = 0, moves = 0, rounds = 0;
    double before = 0, after = 0;
};

// What the nodes that were looked at see of their neighbourhoods, kept up to date while others move: total weight of the edges to each
// adjacent cluster, and how many there are. A row is read once, where it would be read whenever a neighbour has moved.
template <class Index, class Weight>
class Sights {
   public:
    struct Slot {
        int32_t cluster, edges;
        double weight;
    };

    Sights(const Csr<Index, Weight>& a, const int32_t* labels, int64_t k)
        : a_(a), labels_(labels), slots_(a.nnz), known_(a.n, kUnknown), loop_(a.n), place_(k, -1) {}

    // The clusters next to x, in no order.
    std::span<const Slot> of(int64_t x) {
        if (known_[x] == kUnknown) read(x);
        return {first(x), static_cast<size_t>(known_[x])};
    }

    static double weight(std::span<const Slot> slots, int32_t cluster) {
        for (const Slot& slot : slots)
            if (slot.cluster == cluster) return slot.weight;
        return 0.0;
    }

    // The weight of the loop of a node that has been looked at.
    double loop(int64_t x) const { return loop_[x]; }

    // x, whose row is r, has gone from one cluster to another.
    void moved(int64_t x, typename Csr<Index, Weight>::Range r, int32_t from, int32_t to) {
        for (int64_t p = r.begin; p < r.end; ++p) {
            const int64_t y = a_.indices[p];
            const double w = a_.weight(p);
            if (known_[y] == kUnknown || y == x || w == 0.0) continue;
            take(y, from, w);
            give(y, to, w);
        }
    }

   private:
    static constexpr int32_t kUnknown = -1;

    // Of a row whose borders have been checked.
    Slot* first(int64_t x) { return slots_.data() + a_.indptr[x]; }

    void read(int64_t x) {
        const auto r = a_.row(x);
        a_.check_columns(r);
        Slot* slots = first(x);
        int32_t count = 0;
        double own = 0.0;
        for (int64_t p = r.begin; p < r.end; ++p) {
            const int64_t y = a_.indices[p];
            const double w = a_.weight(p);
            if (w == 0.0) continue;
            if (y == x) {
                own += w;
                continue;
            }
            int32_t& place = place_[labels_[y]];
            if (place < 0) {
                place = count;
                slots[count++] = {labels_[y], 0, 0.0};
            }
            ++slots[place].edges;
            slots[place].weight += w;
        }
        for (int32_t i = 0; i < count; ++i) place_[slots[i].cluster] = -1;
        known_[x] = count;
        loop_[x] = own;
    }

    void take(int64_t y, int32_t cluster, double w) {
        Slot* slots = first(y);
        for (int32_t i = 0; i < known_[y]; ++i) {
            if (slots[i].cluster != cluster) continue;
            slots[i].weight -= w;
            if (--slots[i].edges <= 0) slots[i] = slots[--known_[y]];
            return;
        }
    }

    void give(int64_t y, int32_t cluster, double w) {
        Slot* slots = first(y);
        int32_t& count = known_[y];
        for (int32_t i = 0; i < count; ++i) {
            if (slots[i].cluster != cluster) continue;
            ++slots[i].edges;
            slots[i].weight += w;
            return;
        }
        // A row has room for a cluster of every neighbour. (In a matrix that is not symmetric more may come.)
        if (count < a_.row(y).size())
            slots[count++] = {cluster, 1, w};
        else
            count = kUnknown;
    }

    const Csr<Index, Weight>& a_;
    const int32_t* labels_;
    LazyVector<Slot> slots_;     // those of a node where its entries are
    LazyVector<int32_t> known_;  // by node: how many there are
    LazyVector<double> loop_;    // by node, of those that are known
    std::vector<int32_t> place_;  // by cluster: its slot, while a row is read
};

template <class Index, class Weight>
class Climber {
   public:
    Climber(Context& context, const Csr<Index, Weight>& a, const double* degrees, const double* sizes, int32_t* labels, int64_t k,
            const Objective& f)
        : context_(context), a_(a), degrees_(degrees), sizes_(sizes), labels_(labels),
          clusters_(context, a, degrees, sizes, labels, k, f), sights_(a, labels, k), round_(a.n, 0), version_(a.n, 0) {
        for (int64_t x = 0; x < a.n; ++x) slack_ = std::max(slack_, sizes[x]);
    }

    // Rounds of searches from all border nodes, until one lowers F by less than tolerance·F or `work` entries have been read.
    Climb run(int64_t max_rounds, int64_t patience, int64_t work, double tolerance, uint64_t seed) {
        Climb result;
        work_ = work;
        result.before = clusters_.value();
        for (int64_t round = 1; round <= max_rounds && work_ > 0; ++round) {
            ++result.rounds;
            const double begin = clusters_.value(), strained = clusters_.outside();
            std::vector<int64_t> border = border_nodes();
            Random random(seed, static_cast<uint64_t>(round));
            for (size_t i = border.size(); i > 1; --i) std::swap(border[i - 1], border[random.below(i)]);
            for (int64_t x : border) {
                if (work_ <= 0) break;
                if (round_[x] == round) continue;
                ++result.searches;
                if ((result.searches & 255) == 0) context_.check();
                result.moves += search(x, static_cast<int32_t>(round), patience);
            }
            const double end = clusters_.value();
            if (begin - end <= tolerance * end && clusters_.outside() >= strained) break;
        }
        result.after = clusters_.value();
        return result;
    }

   private:
    struct Candidate {
        double gain;
        int64_t node;
        int32_t target;
        uint32_t version;
        bool operator<(const Candidate& other) const { return gain < other.gain || (gain == other.gain && node > other.node); }
    };
    struct Made {
        int64_t node;
        int32_t from;
    };

    std::vector<int64_t> border_nodes() {
        std::vector<int64_t> border;
        for (int64_t x = 0; x < a_.n; ++x) {
            const auto r = a_.row(x);
            for (int64_t p = r.begin; p < r.end; ++p)
                if (labels_[a_.column(p)] != labels_[x]) {
                    border.push_back(x);
                    break;
                }
        }
        work_ -= a_.nnz;
        return border;
    }

    // Of a node that has been looked at.
    Node node(int64_t x) const { return {degrees_[x], sizes_[x], sights_.loop(x)}; }

    // Whether a move brings a cluster outside of its bounds by more than one node.
    bool too_far(int32_t from, int32_t to, const Node& x) const {
        return clusters_.objective.outside(clusters_.size[from] - x.size) > slack_ ||
               clusters_.objective.outside(clusters_.size[to] + x.size) > slack_;
    }

    // The best move of x by the present state; its target is -1 where there is none.
    Candidate best(int64_t x) {
        work_ -= a_.row(x).size() + 8;
        const int32_t from = labels_[x];
        Candidate found{-std::numeric_limits<double>::infinity(), x, -1, version_[x]};
        const auto seen = sights_.of(x);
        const Node moving = node(x);
        if (!clusters_.may_leave(from, moving)) return found;
        const double out = clusters_.leave(from, moving, sights_.weight(seen, from));
        for (const auto& [j, edges, weight] : seen) {
            if (j == from || (clusters_.strain(from, j, moving) > 0 && too_far(from, j, moving))) continue;
            const double g = out + clusters_.enter(j, moving, weight);
            if (g > found.gain || (g == found.gain && j < found.target)) found.gain = g, found.target = j;
        }
        return found;
    }

    void offer(int64_t x) {
        ++version_[x];
        const Candidate found = best(x);
        if (found.target >= 0) heap_.push(found);
    }

    void put(int64_t x, int32_t to) {
        const int32_t from = labels_[x];
        const auto seen = sights_.of(x);
        clusters_.move(from, to, node(x), sights_.weight(seen, from), sights_.weight(seen, to));
        labels_[x] = to;
        sights_.moved(x, a_.row(x), from, to);
    }

    // Returns how many moves were kept.
    int64_t search(int64_t start, int32_t round, int64_t patience) {
        heap_ = {};
        made_.clear();
        offer(start);
        double gained = 0.0, most = 0.0, strained = 0.0, least_strained = 0.0;
        size_t keep = 0;
        while (!heap_.empty() && static_cast<int64_t>(made_.size() - keep) < patience && work_ > 0) {
            Candidate move = heap_.top();
            heap_.pop();
            if (move.version != version_[move.node] || round_[move.node] == round) continue;
            const int64_t x = move.node;
            const Candidate now = best(x);
            if (now.target < 0) continue;
            if (!heap_.empty() && now < heap_.top()) {  // volumes have changed since
                heap_.push(now);
                continue;
            }
            const int32_t from = labels_[x];
            strained += clusters_.strain(from, now.target, node(x));
            put(x, now.target);
            round_[x] = round;
            gained += now.gain;
            made_.push_back({x, from});
            if (strained < least_strained - 1e-9 || (strained <= least_strained + 1e-9 && gained > most + kLeastGain)) {
                most = gained;
                least_strained = strained;
                keep = made_.size();
            }
            const auto r = a_.row(x);
            if (r.size() <= kMostNeighbours)
                for (int64_t p = r.begin; p < r.end; ++p)
                    if (const int64_t y = a_.indices[p]; round_[y] != round) offer(y);
        }
        while (made_.size() > keep) {
            const auto [x, from] = made_.back();
            made_.pop_back();
            put(x, from);
            round_[x] = 0;
        }
        return static_cast<int64_t>(keep);
    }

    // A move of a hub concerns everybody, and nobody much.
    static constexpr int64_t kMostNeighbours = 512;

    Context& context_;
    const Csr<Index, Weight>& a_;
    const double* degrees_;
    const double* sizes_;
    int32_t* labels_;
    Clusters clusters_;
    Sights<Index, Weight> sights_;
    LazyVector<int32_t> round_;    // by node: the last round that moved it, for good or not
    LazyVector<uint32_t> version_;  // by node: candidates of an older one are void
    std::priority_queue<Candidate> heap_;
    std::vector<Made> made_;
    double slack_ = 0.0;
    int64_t work_ = 0;
};

}  // namespace corecut
