// Moves that look further than one node (Fiduccia and Mattheyses 1982; localised as by Sanders and Schulz 2011).
//
// A search begins at one node on a border and goes on with the best move next to what it has moved, also when F rises; when it
// has found nothing better for a while it takes its last moves back, to where F was lowest. On the way clusters may be outside of
// their bounds by one node, so that two full clusters can swap nodes. One search after the other, in an order drawn from a seed.
#pragma once

#include <limits>
#include <queue>
#include <vector>

#include "local_moves.hpp"
#include "objective.hpp"
#include "random.hpp"
#include "refinement.hpp"

namespace corecut {

struct Climb {
    int64_t searches = 0, moves = 0, rounds = 0;
    double before = 0, after = 0;
};

template <class Index, class Weight>
class Climber {
   public:
    Climber(Context& context, const Csr<Index, Weight>& a, const double* degrees, const double* sizes, int32_t* labels, int64_t k,
            const Objective& f, const double* due)
        : context_(context), a_(a), degrees_(degrees), sizes_(sizes), labels_(labels),
          clusters_(context, a, degrees, sizes, labels, k, f, due), seen_(k), round_(a.n, 0), version_(a.n, 0) {
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

    Node node(int64_t x) const { return {degrees_[x], sizes_[x], seen_.loop}; }

    // Whether a move brings a cluster outside of its bounds by more than one node.
    bool too_far(int32_t from, int32_t to, const Node& x) const {
        return clusters_.outside(from, clusters_.size[from] - x.size) > slack_ ||
               clusters_.outside(to, clusters_.size[to] + x.size) > slack_;
    }

    // The best move of x by the present state; its target is -1 where there is none.
    Candidate best(int64_t x) {
        work_ -= a_.row(x).size() + 8;
        seen_.read(a_, labels_, x);
        const int32_t from = labels_[x];
        Candidate found{-std::numeric_limits<double>::infinity(), x, -1, version_[x]};
        if (!clusters_.may_leave(from, node(x))) return found;
        const double out = clusters_.leave(from, node(x), seen_.weight[from]);
        for (int32_t j : seen_.clusters) {
            if (j == from || (clusters_.strain(from, j, node(x)) > 0 && too_far(from, j, node(x)))) continue;
            const double g = out + clusters_.enter(j, node(x), seen_.weight[j]);
            if (g > found.gain || (g == found.gain && j < found.target)) found.gain = g, found.target = j;
        }
        return found;
    }

    void offer(int64_t x) {
        ++version_[x];
        const Candidate found = best(x);
        if (found.target >= 0) heap_.push(found);
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
            clusters_.move(from, now.target, node(x), seen_.weight[from], seen_.weight[now.target]);
            labels_[x] = now.target;
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
            seen_.read(a_, labels_, x);
            clusters_.move(labels_[x], from, node(x), seen_.weight[labels_[x]], seen_.weight[from]);
            labels_[x] = from;
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
    Neighbourhood seen_;
    LazyVector<int32_t> round_;    // by node: the last round that moved it, for good or not
    LazyVector<uint32_t> version_;  // by node: candidates of an older one are void
    std::priority_queue<Candidate> heap_;
    std::vector<Made> made_;
    double slack_ = 0.0;
    int64_t work_ = 0;
};

}  // namespace corecut
