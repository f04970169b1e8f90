// Exact single-node moves that lower the objective, in rounds.
//
// A block of rows proposes moves by the state in which the round began, each of them judged after its own earlier ones. What the
// moves of all blocks do together is then added up exactly, from the rows of the moved nodes. If F falls, they are all made;
// if not (blocks that did not see each other got into each other's way), the batch is halved, down to single blocks. The first
// block of a round knew the state exactly, so that every round with a proposal makes progress.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "objective.hpp"
#include "rating.hpp"
#include "rounds.hpp"

namespace corecut {

// What a move must gain at least: rounding must not look like progress, or sweeps would never end.
inline constexpr double kLeastGain = 1e-12;

struct Refinement {
    int64_t moves = 0, passes = 0;
    double before = 0, after = 0;
    bool converged = false;
};

inline void check_labels(const int32_t* labels, int64_t n, int64_t k) {
    for (int64_t x = 0; x < n; ++x)
        if (labels[x] < 0 || labels[x] >= k) throw InputError("a label is not below the number of clusters");
}

// What a node's best move lacks, in whole numbers, so that several threads can subtract from it in any order. Differences of F
// beyond a few units are all alike.
inline constexpr double kLackUnit = 0x1.0p-40, kLackMost = 16.0;
inline int64_t lack_of(double value) {
    if (!(value < kLackMost)) return static_cast<int64_t>(kLackMost / kLackUnit);
    return std::max<int64_t>(1, static_cast<int64_t>(std::floor(value / kLackUnit)));
}
inline int64_t rise_of(double value) {
    if (!(value < kLackMost)) return static_cast<int64_t>(kLackMost / kLackUnit);
    return static_cast<int64_t>(std::ceil(value / kLackUnit));
}

// A proposed move: what of its node counts, and by how much it changes the association of both clusters.
struct NodeMove {
    int64_t node;
    int32_t from, to;
    Node what;
    double from_change = 0, to_change = 0;
    bool made = false;
};

template <class Index, class Weight>
class Refiner {
   public:
    Clusters clusters;

    struct Scratch {
        Rating<Index, Weight> seen;
        BlockChanges<ClusterSums> changes;
    };

    LazyVector<int64_t> lacking;  // by node: what its best move lacked when it was last looked at, less what rose since

    Refiner(Context& context, const Csr<Index, Weight>& a, const double* degrees, const double* sizes, int32_t* labels,
            Clusters sums)
        : clusters(std::move(sums)), lacking(a.n, 0), context_(context), a_(a), degrees_(degrees), sizes_(sizes), labels_(labels),
          next_(labels, labels + a.n), touched_at_(clusters.volume.size(), 0) {}

    // Append the moves that rows begin.. would like to make, by labels and sums as they are now. A node is looked at if what moves
    // of its neighbours brought adds up to what its best move lacked; on a dense graph hardly any is.
    void propose(int64_t begin, int64_t end, std::vector<NodeMove>& moves, Scratch& scratch) {
        auto& [seen, changes] = scratch;
        changes.clear();
        int32_t own[kBlockRows];
        std::copy(labels_ + begin, labels_ + end, own);
        const BlockLabels known{labels_, own, begin, end - begin};
        const auto sums = [&](int32_t j) {
            const ClusterSums* changed = changes.find(j);
            return changed ? *changed : clusters.at(j);
        };
        for (int64_t x = begin; x < end; ++x) {
            if (lacking[x] > 0) continue;
            if (x + 2 < end && lacking[x + 2] <= 0) prefetch_labels(a_, labels_, x + 2);
            seen.read(a_, known, x);
            const Node node{degrees_[x], sizes_[x], seen.loop};
            const int32_t from = own[x - begin];
            const ClusterSums left = sums(from);
            int32_t target = from;
            double most = kLeastGain, highest = -std::numeric_limits<double>::infinity(), to_target = 0;
            const auto to_own = static_cast<double>(seen.table.weight(from));
            if (left.may_lose(node)) {
                const double out = left.without(node, to_own, clusters.objective);
                highest = out;  // a cluster that x does not touch gains less than that
                for (size_t i = 0; i < seen.table.size(); ++i) {
                    const auto [j, weight] = seen.table[i];
                    if (j == from) continue;
                    const ClusterSums joined = sums(j);
                    if (left.against_bounds(joined, node, clusters.objective)) continue;
                    const double gain = out + joined.with(node, static_cast<double>(weight), clusters.objective);
                    if (gain > most || (gain == most && target != from && j < target)) {
                        most = gain;
                        target = j;
                        to_target = static_cast<double>(weight);
                    }
                    highest = std::max(highest, gain);
                }
            }
            lacking[x] = lack_of(-highest);
            if (target == from) continue;
            changes.at(from, left).lose(node, to_own);
            changes.at(target, clusters.at(target)).gain(node, to_target);
            own[x - begin] = target;
            moves.push_back({x, from, target, node});
        }
    }

    // One pass in rounds. Returns the number of moves.
    int64_t pass(uint64_t number) {
        const int64_t n = a_.n, at_once = blocks_at_once(n, a_.nnz);
        int64_t made = 0;
        std::vector<int64_t> blocks;
        for (uint64_t round = 0; round < kRounds; ++round) {
            blocks_of_round(n, number, round, blocks);
            const auto count = static_cast<int64_t>(blocks.size());
            std::vector<std::vector<NodeMove>> lists((count + at_once - 1) / at_once);
            parallel_blocks(context_, count, at_once, [&](int64_t task, int64_t first, int64_t last) {
                auto scratch = pool_.borrow();
                for (int64_t b = first; b < last; ++b)
                    propose(blocks[b] * kBlockRows, std::min(n, (blocks[b] + 1) * kBlockRows), lists[task], *scratch);
            });
            made += commit(lists);
        }
        return made;
    }

    // Add up the sums of all clusters afresh, and look at all nodes in the next pass.
    void count_anew() {
        LazyVector<double> within(a_.n);
        parallel_blocks(context_, a_.n, kRowBlock, [&](int64_t, int64_t begin, int64_t end) {
            weights_within(a_, labels_, begin, end, within.data() + begin);
        });
        count_anew(within.data());
    }

    void count_anew(const double* within) {
        clusters.count(context_, within, degrees_, sizes_, labels_, a_.n);
        std::fill(lacking.begin(), lacking.end(), int64_t{0});
    }

    // Make what lowers F of the moves of a round. Returns how many were made.
    int64_t commit(const std::vector<std::vector<NodeMove>>& lists) {
        moves_.clear();
        for (const auto& list : lists) moves_.insert(moves_.end(), list.begin(), list.end());
        if (moves_.empty()) return 0;
        known_exactly_ = true;
        const int64_t made = settle(0, static_cast<int64_t>(moves_.size()));
        each_move(0, static_cast<int64_t>(moves_.size()), [&](const NodeMove& move) { wake(move); });
        return made;
    }

    // Labels have been set from outside.
    void know_labels() { std::copy(labels_, labels_ + a_.n, next_.begin()); }

    // The proposals of the last round, and which of them were made.
    const std::vector<NodeMove>& last_moves() const { return moves_; }

   private:
    // The first move of the block that move `at` belongs to.
    int64_t block_begin(int64_t at) const {
        while (at > 0 && moves_[at - 1].node / kBlockRows == moves_[at].node / kBlockRows) --at;
        return at;
    }

    int64_t settle(int64_t begin, int64_t end) {
        const bool one_block = moves_[begin].node / kBlockRows == moves_[end - 1].node / kBlockRows;
        const int64_t made = try_all(begin, end, one_block && known_exactly_);
        if (made >= 0) {
            if (made > 0) known_exactly_ = false;
            return made;
        }
        if (one_block) return 0;
        int64_t middle = block_begin(begin + (end - begin) / 2);
        if (middle <= begin) {
            middle = begin + 1;
            while (moves_[middle].node / kBlockRows == moves_[begin].node / kBlockRows) ++middle;
        }
        const int64_t first = settle(begin, middle);
        return first + settle(middle, end);
    }

    // Make all moves of a range that bounds allow, if F falls by it (or in any case); -1, and all as before, if not.
    int64_t try_all(int64_t begin, int64_t end, bool in_any_case) {
        ++stamp_;
        touched_.clear();
        int64_t made = 0;
        for (int64_t i = begin; i < end; ++i) {
            NodeMove& move = moves_[i];
            touch(move.from);
            touch(move.to);
            const ClusterSums left = clusters.at(move.from), joined = clusters.at(move.to);
            move.made = left.may_lose(move.what) && !left.against_bounds(joined, move.what, clusters.objective);
            if (!move.made) continue;
            clusters.volume[move.from] -= move.what.degree;
            clusters.size[move.from] -= move.what.size;
            --clusters.members[move.from];
            clusters.volume[move.to] += move.what.degree;
            clusters.size[move.to] += move.what.size;
            ++clusters.members[move.to];
            ++made;
        }
        each_move(begin, end, [&](const NodeMove& move) {
            if (move.made) next_[move.node] = move.to;
        });
        each_move(begin, end, [&](NodeMove& move) {
            if (move.made) add_up(move);
        });
        for (int64_t i = begin; i < end; ++i) {
            if (!moves_[i].made) continue;
            clusters.inside[moves_[i].from] += moves_[i].from_change;
            clusters.inside[moves_[i].to] += moves_[i].to_change;
        }
        double fallen = 0.0;
        for (const auto& [j, before] : touched_) fallen += clusters.kept(j) - before.kept(clusters.objective);
        if (in_any_case || fallen >= kLeastGain * static_cast<double>(made)) {
            each_move(begin, end, [&](const NodeMove& move) {
                if (move.made) labels_[move.node] = move.to;
            });
            return made;
        }
        for (const auto& [j, before] : touched_) clusters.set(j, before);
        each_move(begin, end, [&](NodeMove& move) {
            next_[move.node] = labels_[move.node];
            move.made = false;
        });
        return -1;
    }

    // What the entries of the node's row, and their mirror images in rows that do not move, add to both associations.
    void add_up(NodeMove& move) const {
        const auto r = a_.row(move.node);
        double lost = move.what.loop, won = move.what.loop;
        for (int64_t p = r.begin; p < r.end; ++p) {
            const int64_t y = a_.indices[p];
            if (y == move.node) continue;
            const int32_t was = labels_[y], is = next_[y];
            const double w = was == is ? 2 * a_.weight(p) : a_.weight(p);
            if (was == move.from) lost += w;
            if (is == move.to) won += w;
        }
        move.from_change = -lost;
        move.to_change = won;
    }

    void wake(const NodeMove& move) {
        const auto lower = [&](int64_t y, int64_t by) {
            std::atomic_ref<int64_t> lack(lacking[y]);
            if (lack.load(std::memory_order_relaxed) > 0) lack.fetch_sub(by, std::memory_order_relaxed);
        };
        if (!move.made) {
            lower(move.node, std::numeric_limits<int64_t>::max() / 2);  // another move came first: look again
            return;
        }
        const auto r = a_.row(move.node);
        for (int64_t p = r.begin; p < r.end; ++p) {
            const int64_t y = a_.indices[p];
            if (y != move.node) lower(y, rise_of(clusters.nearer(labels_[y], move.from, move.to, a_.weight(p))));
        }
    }

    void touch(int32_t j) {
        if (touched_at_[j] == stamp_) return;
        touched_at_[j] = stamp_;
        touched_.emplace_back(j, clusters.at(j));
    }

    template <class F>
    void each_move(int64_t begin, int64_t end, F&& f) {
        parallel_blocks(context_, end - begin, kMovesOfTask, [&](int64_t, int64_t first, int64_t last) {
            for (int64_t i = begin + first; i < begin + last; ++i) f(moves_[i]);
        });
    }

    static constexpr int64_t kMovesOfTask = 512;

    Context& context_;
    const Csr<Index, Weight>& a_;
    const double* degrees_;
    const double* sizes_;
    int32_t* labels_;
    LazyVector<int32_t> next_;     // labels as they would be after the moves that are looked at
    std::vector<NodeMove> moves_;
    std::vector<std::pair<int32_t, ClusterSums>> touched_;  // clusters whose sums are about to change, as they were
    std::vector<int64_t> touched_at_;
    int64_t stamp_ = 0;
    bool known_exactly_ = true;  // nothing was made in this round yet
    Pool<Scratch> pool_;
};

// Passes until a full one makes no move, max_passes are done, or one lowers F by less than tolerance·F. Passes look at active
// nodes only (neighbours moved); when none of those moves, one over all nodes decides, since volumes change for everybody.
template <class Index, class Weight>
Refinement refine(Context& context, const Csr<Index, Weight>& a, const double* degrees, const double* sizes, int32_t* labels,
                  int64_t k, const Objective& f, int64_t max_passes, double tolerance) {
    check_labels(labels, a.n, k);
    Refinement result;
    Refiner<Index, Weight> refiner(context, a, degrees, sizes, labels, Clusters(context, a, degrees, sizes, labels, k, f));
    double value = result.before = refiner.clusters.value();
    bool full = true;
    while (result.passes < max_passes) {
        const int64_t moves = refiner.pass(result.passes);
        ++result.passes;
        result.moves += moves;
        const double last = value;
        value = refiner.clusters.value();
        if (moves == 0 && full) {
            result.converged = true;
            break;
        }
        if (tolerance > 0 && last - value < tolerance * value) break;
        full = false;
        if (moves == 0) {
            // Sums updated by millions of moves carry rounding. The pass that decides has the sums that a second call
            // would begin with, so that such a call finds no move either.
            refiner.count_anew();
            full = true;
        }
    }
    result.after = refiner.clusters.value();
    return result;
}

}  // namespace corecut
