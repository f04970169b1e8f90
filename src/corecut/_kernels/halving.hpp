// k clusters of like size by halving, on every scale: a part is coarsened to a few dozen groups, these are halved, and the border
// is moved node by node on the way back (Hendrickson and Leland 1995; Karypis and Kumar 1998; Fiduccia and Mattheyses 1982).
//
// The weight of edges between the halves counts, not F: volumes of clusters are not known before there are clusters, and where
// sizes are bounded they differ little. What is random is drawn from a seed and the part alone; calls with different seeds give
// partitions that differ, to choose from and to combine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "csr.hpp"
#include "parallel.hpp"
#include "queue.hpp"
#include "random.hpp"

namespace corecut {

// A graph of its own, without loops; single precision is enough to choose by.
struct Piece {
    std::vector<int64_t> begins{0};
    std::vector<int32_t> ends;
    std::vector<float> weights;
    std::vector<double> sizes;

    int32_t n() const { return static_cast<int32_t>(sizes.size()); }
    double size() const {
        double sum = 0.0;
        for (double one : sizes) sum += one;
        return sum;
    }
    void close_row() { begins.push_back(static_cast<int64_t>(ends.size())); }
};

class Halver {
   public:
    Halver(Context& context, double min_size, double max_size, int32_t attempts, uint64_t seed)
        : context_(context), min_size_(min_size), max_size_(max_size), attempts_(attempts), seed_(seed) {}

    // A part of the graph, where its nodes are in it, and the clusters that it is to become: first..first + due - 1.
    struct Part {
        Piece piece;
        std::vector<int32_t> places;
        int64_t due = 1;
        int32_t first = 0;
    };

    // Halve a part that is due more than one cluster.
    std::pair<Part, Part> halve(const Part& part) {
        random_ = Random(seed_, static_cast<uint64_t>(part.first) << 32 | static_cast<uint64_t>(part.due));
        const int64_t dues[2] = {(part.due + 1) / 2, part.due / 2};
        const std::vector<uint8_t> side = halves(part.piece, limits(part.piece, dues));
        const int32_t second = part.first + static_cast<int32_t>(dues[0]);
        return {half(part, side, 0, dues[0], part.first), half(part, side, 1, dues[1], second)};
    }

   private:
    struct Limits {
        double wanted, most[2];  // the size that the first half should have, and the most that both may have
    };

    // How unequal halves may be: clusters that come of them later use up the rest of what is allowed.
    Limits limits(const Piece& piece, const int64_t dues[2]) const {
        const double size = piece.size(), due = static_cast<double>(dues[0] + dues[1]);
        if (!(size > 0.0)) return {0.0, {0.0, 0.0}};
        const double rounds = std::ceil(std::log2(due));
        const double more = std::isinf(max_size_) ? 1.5 : std::pow(std::max(max_size_ * due / size, 1.0), 1.0 / rounds);
        const double less = std::pow(std::min(min_size_ * due / size, 1.0), 1.0 / rounds);
        const double largest = *std::max_element(piece.sizes.begin(), piece.sizes.end());
        Limits found{size * static_cast<double>(dues[0]) / due, {}};
        for (int which = 0; which < 2; ++which) {
            const double own = size * static_cast<double>(dues[which]) / due, other = size - own;
            // No border is nearer than half a node.
            found.most[which] = std::max(std::min(own * more, size - other * less), own + 0.5 * largest);
        }
        return found;
    }

    // The nodes of one side as a part of their own.
    static Part half(const Part& part, const std::vector<uint8_t>& side, uint8_t which, int64_t due, int32_t first) {
        Part found{{}, {}, due, first};
        if (due == 1) {  // nothing more is asked of its edges
            for (int32_t x = 0; x < part.piece.n(); ++x)
                if (side[x] == which) found.places.push_back(part.places[x]);
            return found;
        }
        const Piece& piece = part.piece;
        std::vector<int32_t> number(piece.n(), -1), nodes;
        for (int32_t x = 0; x < piece.n(); ++x)
            if (side[x] == which) {
                number[x] = static_cast<int32_t>(nodes.size());
                nodes.push_back(x);
                found.places.push_back(part.places[x]);
            }
        for (int32_t x : nodes) {
            found.piece.sizes.push_back(piece.sizes[x]);
            for (int64_t p = piece.begins[x]; p < piece.begins[x + 1]; ++p)
                if (number[piece.ends[p]] >= 0) {
                    found.piece.ends.push_back(number[piece.ends[p]]);
                    found.piece.weights.push_back(piece.weights[p]);
                }
            found.piece.close_row();
        }
        return found;
    }

    // Two halves of a piece.
    std::vector<uint8_t> halves(const Piece& piece, const Limits& limits) {
        std::vector<uint8_t> side;
        if (piece.n() > kFew) {
            std::vector<int32_t> groups;
            const int32_t count = gather(piece, kLargest * piece.size() / kFew, groups);
            if (count < kStuck * piece.n()) {
                const std::vector<uint8_t> coarse = halves(contract(piece, groups, count), limits);
                side.resize(piece.n());
                for (int32_t x = 0; x < piece.n(); ++x) side[x] = coarse[groups[x]];
                refine(piece, limits, side);
                return side;
            }
        }
        double best_cut = 0.0, best_excess = 0.0;
        for (int32_t attempt = 0; attempt < attempts_; ++attempt) {
            std::vector<uint8_t> found = grow(piece, limits);
            refine(piece, limits, found);
            if (attempt == 0 || excess(limits) < best_excess || (excess(limits) == best_excess && cut_ < best_cut)) {
                best_cut = cut_;
                best_excess = excess(limits);
                side = std::move(found);
            }
        }
        return side;
    }

    // Gather nodes in groups of a size up to `most`: each joins the node or group next to it that is tied to it most closely, for
    // its size. Returns how many groups there are.
    int32_t gather(const Piece& piece, double most, std::vector<int32_t>& groups) {
        const int32_t n = piece.n();
        shuffle(n);
        groups.resize(n);
        std::vector<int32_t> favourite(n, -1);
        std::vector<uint8_t> joined(n, 0);  // others have joined it, or it has joined another
        group_size_ = piece.sizes;
        for (int32_t x = 0; x < n; ++x) groups[x] = x;
        tie_.assign(n, 0.0);
        int32_t count = n;
        const int32_t enough = static_cast<int32_t>(n * kShrink);
        for (int32_t x : order_) {
            if (joined[x]) continue;
            touched_.clear();
            for (int64_t p = piece.begins[x]; p < piece.begins[x + 1]; ++p) {
                const int32_t g = groups[piece.ends[p]];
                if (tie_[g] == 0.0) touched_.push_back(g);
                tie_[g] += piece.weights[p];
            }
            int32_t best = -1;
            double rating = 0.0, liked = 0.0;
            uint64_t lot = 0;
            for (int32_t g : touched_) {
                const double now = tie_[g] / std::max(group_size_[g], 1e-300);
                tie_[g] = 0.0;
                if (now > liked) liked = now, favourite[x] = g;
                if (now < rating || group_size_[g] + piece.sizes[x] > most) continue;
                const uint64_t drawn = random_.bits();  // of equally close ones any
                if (now > rating || drawn > lot) best = g, rating = now, lot = drawn;
            }
            if (best < 0 || count <= enough) continue;
            groups[x] = best;
            group_size_[best] += piece.sizes[x];
            joined[x] = joined[best] = 1;
            --count;
        }
        // Those that are left alone: two that have the same favourite, as leaves of a star, go together.
        std::vector<int32_t> waiting(n + 1, -1);
        for (int32_t x : order_) {
            if (joined[x] || count <= enough) continue;
            int32_t& other = waiting[favourite[x] < 0 ? n : favourite[x]];
            if (other >= 0 && group_size_[other] + piece.sizes[x] <= most) {
                groups[x] = other;
                group_size_[other] += piece.sizes[x];
                --count;
                other = -1;
            } else {
                other = x;
            }
        }
        std::vector<int32_t> number(n, -1);
        int32_t used = 0;
        for (int32_t x = 0; x < n; ++x)
            if (groups[x] == x) number[x] = used++;
        for (int32_t x = 0; x < n; ++x) groups[x] = number[groups[x]];
        return used;
    }

    Piece contract(const Piece& piece, const std::vector<int32_t>& groups, int32_t count) {
        std::vector<int64_t> begins(count + 1, 0);
        for (int32_t g : groups) ++begins[g + 1];
        for (int32_t g = 0; g < count; ++g) begins[g + 1] += begins[g];
        std::vector<int32_t> members(groups.size());
        std::vector<int64_t> next(begins.begin(), begins.end() - 1);
        for (int32_t x = 0; x < piece.n(); ++x) members[next[groups[x]]++] = x;
        Piece found;
        found.sizes.reserve(count);
        found.begins.reserve(count + 1);
        std::vector<int64_t> place(count, -1);
        for (int32_t g = 0; g < count; ++g) {
            const int64_t first = static_cast<int64_t>(found.ends.size());
            double size = 0.0;
            for (int64_t m = begins[g]; m < begins[g + 1]; ++m) {
                const int32_t x = members[m];
                size += piece.sizes[x];
                for (int64_t p = piece.begins[x]; p < piece.begins[x + 1]; ++p) {
                    const int32_t h = groups[piece.ends[p]];
                    if (h == g) continue;
                    if (place[h] < first) {
                        place[h] = static_cast<int64_t>(found.ends.size());
                        found.ends.push_back(h);
                        found.weights.push_back(0.0f);
                    }
                    found.weights[place[h]] += piece.weights[p];
                }
            }
            found.sizes.push_back(size);
            found.close_row();
        }
        return found;
    }

    // A first half: from a node drawn by lot it takes the neighbour that adds least to the border, again and again.
    std::vector<uint8_t> grow(const Piece& piece, const Limits& limits) {
        const int32_t n = piece.n();
        std::vector<uint8_t> side(n, 1);
        queues_[0].reset(n);
        shuffle(n);
        double size = 0.0;
        int32_t next = 0;
        std::vector<double> gain(n, 0.0);
        for (int32_t x = 0; x < n; ++x)
            for (int64_t p = piece.begins[x]; p < piece.begins[x + 1]; ++p) gain[x] -= piece.weights[p];
        while (size < limits.wanted) {
            int32_t x = -1;
            if (queues_[0].empty()) {
                while (next < n && side[order_[next]] == 0) ++next;
                if (next == n) break;
                x = order_[next];
            } else {
                x = queues_[0].top();
                queues_[0].remove(x);
            }
            // The last one only if that comes nearer.
            if (size > 0 && size + piece.sizes[x] - limits.wanted > limits.wanted - size) break;
            side[x] = 0;
            size += piece.sizes[x];
            for (int64_t p = piece.begins[x]; p < piece.begins[x + 1]; ++p)
                if (const int32_t y = piece.ends[p]; side[y] == 1) {
                    gain[y] += 2.0 * piece.weights[p];
                    queues_[0].set(y, gain[y]);
                }
        }
        return side;
    }

    double excess(const Limits& limits) const {
        return std::max(size_[0] - limits.most[0], 0.0) + std::max(size_[1] - limits.most[1], 0.0);
    }

    // Passes of moves across the border, each node at most once in a pass, of which the best beginning is kept.
    void refine(const Piece& piece, const Limits& limits, std::vector<uint8_t>& side) {
        const int32_t n = piece.n();
        gain_.assign(n, 0.0);
        outside_.assign(n, 0);
        size_[0] = size_[1] = cut_ = 0.0;
        for (int32_t x = 0; x < n; ++x) {
            size_[side[x]] += piece.sizes[x];
            for (int64_t p = piece.begins[x]; p < piece.begins[x + 1]; ++p) {
                const bool across = side[piece.ends[p]] != side[x];
                gain_[x] += across ? piece.weights[p] : -piece.weights[p];
                if (across) {
                    outside_[x] += 1;
                    cut_ += piece.weights[p];
                }
            }
        }
        cut_ /= 2.0;
        const int32_t patience = std::clamp(n / kPatience, kLeastPatience, kMostPatience);
        for (int pass = 0; pass < kPasses; ++pass) {
            context_.check();
            if (!improve(piece, limits, side, patience)) break;
        }
    }

    bool improve(const Piece& piece, const Limits& limits, std::vector<uint8_t>& side, int32_t patience) {
        const int32_t n = piece.n();
        queues_[0].reset(n);
        queues_[1].reset(n);
        locked_.assign(n, 0);
        const bool all = excess(limits) > 0.0;
        shuffle(n);
        for (int32_t x : order_)
            if (outside_[x] > 0 || (all && size_[side[x]] > limits.most[side[x]])) queues_[side[x]].set(x, gain_[x]);
        const double before_excess = excess(limits), before = cut_, small = 1e-12 * (cut_ + 1e-300);
        double best = cut_, best_excess = before_excess, best_off = std::abs(size_[0] - limits.wanted);
        moved_.clear();
        size_t keep = 0;
        while (moved_.size() - keep < static_cast<size_t>(patience)) {
            const int32_t x = next_move(piece, limits);
            if (x < 0) break;
            flip(piece, side, x, true);
            moved_.push_back(x);
            const double over = excess(limits), off = std::abs(size_[0] - limits.wanted);
            if (over < best_excess || (over == best_excess && (cut_ < best - small || (cut_ <= best + small && off < best_off)))) {
                best = cut_;
                best_excess = over;
                best_off = off;
                keep = moved_.size();
            }
        }
        while (moved_.size() > keep) {
            flip(piece, side, moved_.back(), false);
            moved_.pop_back();
        }
        return best_excess < before_excess || best < before - 1e-9 * before;
    }

    // The best node to move, taken out of its queue; -1 where there is none.
    int32_t next_move(const Piece& piece, const Limits& limits) {
        for (;;) {
            int from = -1;
            if (size_[0] > limits.most[0])
                from = 0;
            else if (size_[1] > limits.most[1])
                from = 1;
            if (from >= 0) {
                if (queues_[from].empty()) return -1;
            } else {
                if (queues_[0].empty() && queues_[1].empty()) return -1;
                if (queues_[0].empty() || queues_[1].empty())
                    from = queues_[0].empty() ? 1 : 0;
                else if (queues_[0].top_key() != queues_[1].top_key())
                    from = queues_[0].top_key() > queues_[1].top_key() ? 0 : 1;
                else
                    from = size_[0] - limits.wanted > 0 ? 0 : 1;
            }
            const int32_t x = queues_[from].top();
            if (size_[1 - from] + piece.sizes[x] > limits.most[1 - from] && size_[from] <= limits.most[from]) {
                // The other half is full. It may give a node instead.
                if (!queues_[1 - from].empty()) {
                    const int32_t y = queues_[1 - from].top();
                    if (size_[from] + piece.sizes[y] <= limits.most[from]) {
                        queues_[1 - from].remove(y);
                        return y;
                    }
                }
                queues_[from].remove(x);
                locked_[x] = 1;
                continue;
            }
            queues_[from].remove(x);
            return x;
        }
    }

    void flip(const Piece& piece, std::vector<uint8_t>& side, int32_t x, bool search) {
        const uint8_t from = side[x], to = static_cast<uint8_t>(1 - from);
        side[x] = to;
        size_[from] -= piece.sizes[x];
        size_[to] += piece.sizes[x];
        cut_ -= gain_[x];
        gain_[x] = -gain_[x];
        locked_[x] = 1;
        outside_[x] = static_cast<int32_t>(piece.begins[x + 1] - piece.begins[x]) - outside_[x];
        for (int64_t p = piece.begins[x]; p < piece.begins[x + 1]; ++p) {
            const int32_t y = piece.ends[p];
            const bool across = side[y] != to;
            gain_[y] += across ? 2.0 * piece.weights[p] : -2.0 * piece.weights[p];
            outside_[y] += across ? 1 : -1;
            if (!search || locked_[y]) continue;
            if (outside_[y] > 0 || queues_[side[y]].holds(y)) queues_[side[y]].set(y, gain_[y]);
        }
    }

    void shuffle(int32_t n) {
        order_.resize(n);
        for (int32_t i = 0; i < n; ++i) order_[i] = i;
        for (int32_t i = n; i > 1; --i) std::swap(order_[i - 1], order_[random_.below(static_cast<uint64_t>(i))]);
    }

    // Measured on real graphs of thirteen kinds. A piece of so many nodes is halved as it is.
    static constexpr int32_t kFew = 80;
    // A group is at most so many times what an equal share of the last few would be, a gathering leaves at least this share of
    // the nodes, and with more than the other share left it is stuck.
    static constexpr double kLargest = 3.0, kShrink = 0.3, kStuck = 0.95;
    // Moves without success after which a pass ends: a share of the nodes, between two bounds. Passes of one piece.
    static constexpr int32_t kPatience = 50, kLeastPatience = 60, kMostPatience = 200, kPasses = 6;

    Context& context_;
    double min_size_, max_size_;
    int32_t attempts_;  // how often a small piece is halved, to take the best
    uint64_t seed_;
    Random random_{0, 0};
    Queue queues_[2];
    std::vector<int32_t> order_, touched_, moved_, outside_;
    std::vector<double> gain_, tie_, group_size_;
    std::vector<uint8_t> locked_;
    double size_[2] = {0.0, 0.0}, cut_ = 0.0;
};

// k clusters of a graph with sizes between the bounds, or near them where its nodes are too coarse for that. Where there are fewer
// nodes than clusters, some are empty.
template <class Index, class Weight>
void halve_graph(Context& context, const Csr<Index, Weight>& a, const double* sizes, double min_size, double max_size, int64_t k,
                 int32_t attempts, uint64_t seed, int32_t* labels) {
    double heaviest = 0.0;
    for (int64_t x = 0; x < a.n; ++x) {
        const auto r = a.row(x);
        a.check_columns(r);
        for (int64_t p = r.begin; p < r.end; ++p) heaviest = std::max(heaviest, a.weight(p));
    }
    int exponent = 0;
    std::frexp(heaviest, &exponent);
    std::vector<Halver::Part> parts(1);
    Halver::Part& whole = parts.front();
    whole.due = k;
    whole.piece.sizes.assign(sizes, sizes + a.n);
    whole.piece.begins.reserve(a.n + 1);
    whole.piece.ends.reserve(a.nnz);
    whole.piece.weights.reserve(a.nnz);
    for (int64_t x = 0; x < a.n; ++x) {
        whole.places.push_back(static_cast<int32_t>(x));
        const auto r = a.row(x);
        for (int64_t p = r.begin; p < r.end; ++p) {
            if (static_cast<int64_t>(a.indices[p]) == x) continue;
            whole.piece.ends.push_back(static_cast<int32_t>(a.indices[p]));
            whole.piece.weights.push_back(static_cast<float>(std::ldexp(a.weight(p), -exponent)));  // at most 1
        }
        whole.piece.close_row();
    }
    // Parts of a round know nothing of each other: threads share them.
    while (!parts.empty()) {
        std::vector<std::pair<Halver::Part, Halver::Part>> found(parts.size());
        parallel_blocks(context, static_cast<int64_t>(parts.size()), 1, [&](int64_t at, int64_t, int64_t) {
            if (parts[at].due == 1) return;
            found[at] = Halver(context, min_size, max_size, attempts, seed).halve(parts[at]);
            parts[at].piece = {};
        });
        std::vector<Halver::Part> next;
        for (size_t at = 0; at < parts.size(); ++at) {
            if (parts[at].due == 1) {
                for (int32_t place : parts[at].places) labels[place] = parts[at].first;
                continue;
            }
            next.push_back(std::move(found[at].first));
            next.push_back(std::move(found[at].second));
        }
        parts = std::move(next);
    }
}

}  // namespace corecut
