// Refinement by blocks of rows: the state of its rounds, at the client and at every worker of a cluster.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "blocks.hpp"
#include "refinement.hpp"

namespace corecut {

// What rows propose in a round: moves, and what the best move of every row that was looked at lacks now, in the order of the rows.
struct RefineProposals {
    std::vector<int32_t> nodes, targets;
    std::vector<int64_t> lacks;
};

class RefineRounds {
   public:
    LazyVector<int32_t> labels;
    LazyVector<uint8_t> active;  // which rows are looked at, as the round began

    virtual ~RefineRounds() = default;

    // Rows begin.. (whole blocks). May be asked again for the same rows, and for others at the same time.
    virtual RefineProposals propose(Context& context, int64_t begin, int64_t end, uint64_t pass, uint64_t round) = 0;
    // What all rows of a round propose, here: by what they lack, which only a commit changes.
    virtual RefineProposals propose_all(Context& context, uint64_t pass, uint64_t round) = 0;
    // Entries of the rows that a round looks at, up to `enough`.
    virtual int64_t entries_of_round(uint64_t pass, uint64_t round, int64_t enough) = 0;
    // Make what lowers F of a round's proposals; which, is returned.
    virtual std::vector<uint8_t> commit(const RefineProposals& found, uint64_t pass, uint64_t round) = 0;
    virtual void move(const int32_t* nodes, const int32_t* targets, int64_t count) = 0;
    virtual void move_all(const int32_t* all) = 0;
    // Add up the sums of all clusters afresh, and look at all nodes in the next pass.
    virtual void count(const double* within) = 0;
    virtual Clusters& clusters() = 0;
    virtual LazyVector<int64_t>& lacking() = 0;
};

template <class Index, class Weight>
class RefineRoundsOf final : public RefineRounds {
   public:
    RefineRoundsOf(int threads, const Csr<Index, Weight>& a, const double* degrees, const double* sizes, const int32_t* begin_with,
                   int64_t k, const Objective& f)
        : a_(a), degrees_(degrees), sizes_(sizes), k_(k) {
        context_.threads = threads;
        labels.assign(begin_with, begin_with + a.n);
        active.assign(a.n, 1);
        refiner_ = std::make_unique<Refiner<Index, Weight>>(context_, a_, degrees, sizes, labels.data(), Clusters(k, f));
    }

    RefineProposals propose(Context& context, int64_t begin, int64_t end, uint64_t pass, uint64_t round) override {
        check_rows(begin, end, a_.n);
        if (begin % kBlockRows) throw InputError("rows of a round must begin with a block");
        RefineProposals found;
        std::vector<NodeMove> moves;
        typename Refiner<Index, Weight>::Scratch scratch;
        for (int64_t first = begin; first < end; first += kBlockRows) {
            if (!in_round(first / kBlockRows, pass, round)) continue;
            context.check();
            const int64_t last = std::min(end, first + kBlockRows);
            for (int64_t x = first; x < last; ++x) refiner_->lacking[x] = active[x] ? 0 : 1;
            refiner_->propose(first, last, moves, scratch);
            for (int64_t x = first; x < last; ++x)
                if (active[x]) found.lacks.push_back(refiner_->lacking[x]);
        }
        append(moves, found);
        return found;
    }

    RefineProposals propose_all(Context& context, uint64_t pass, uint64_t round) override {
        RefineProposals found;
        std::vector<NodeMove> moves;
        typename Refiner<Index, Weight>::Scratch scratch;
        auto& lacking = refiner_->lacking;
        std::vector<int64_t> looked_at;
        for (int64_t b = 0; b * kBlockRows < a_.n; ++b) {
            if (!in_round(b, pass, round)) continue;
            const int64_t first = b * kBlockRows, last = std::min(a_.n, first + kBlockRows);
            looked_at.clear();
            for (int64_t x = first; x < last; ++x)
                if (lacking[x] <= 0) looked_at.push_back(x);
            if (looked_at.empty()) continue;
            context.check();
            refiner_->propose(first, last, moves, scratch);
            for (int64_t x : looked_at) {
                found.lacks.push_back(lacking[x]);
                lacking[x] = 0;
            }
        }
        append(moves, found);
        return found;
    }

    int64_t entries_of_round(uint64_t pass, uint64_t round, int64_t enough) override {
        const auto& lacking = refiner_->lacking;
        return entries_of_rows(a_, pass, round, enough, [&](int64_t x) { return lacking[x] <= 0; });
    }

    std::vector<uint8_t> commit(const RefineProposals& found, uint64_t pass, uint64_t round) override {
        size_t next = 0;
        auto& lacking = refiner_->lacking;
        for (int64_t b = 0; b * kBlockRows < a_.n; ++b) {
            if (!in_round(b, pass, round)) continue;
            for (int64_t x = b * kBlockRows; x < std::min(a_.n, (b + 1) * kBlockRows); ++x) {
                if (lacking[x] > 0) continue;
                if (next == found.lacks.size()) throw InputError("a round looked at too few rows");
                lacking[x] = found.lacks[next++];
            }
        }
        if (next != found.lacks.size()) throw InputError("a round looked at too many rows");
        std::vector<std::vector<NodeMove>> lists(1);
        for (size_t i = 0; i < found.nodes.size(); ++i) {
            const int32_t x = found.nodes[i], to = found.targets[i];
            check(x, to);
            a_.check_columns(a_.row(x));  // what a worker has read may differ from what is here
            lists[0].push_back({x, labels[x], to, Node{degrees_[x], sizes_[x], a_.at(x, x)}});
        }
        std::vector<uint8_t> made(found.nodes.size(), 0);
        if (made.empty()) return made;
        refiner_->commit(lists);
        const auto& moves = refiner_->last_moves();
        for (size_t i = 0; i < made.size(); ++i) made[i] = moves[i].made;
        return made;
    }

    void move(const int32_t* nodes, const int32_t* targets, int64_t count) override {
        for (int64_t i = 0; i < count; ++i) {
            check(nodes[i], targets[i]);
            labels[nodes[i]] = targets[i];
        }
    }

    void move_all(const int32_t* all) override {
        std::copy(all, all + a_.n, labels.begin());
        refiner_->know_labels();
    }

    void count(const double* within) override { refiner_->count_anew(within); }
    Clusters& clusters() override { return refiner_->clusters; }
    LazyVector<int64_t>& lacking() override { return refiner_->lacking; }

   private:
    static void append(const std::vector<NodeMove>& moves, RefineProposals& found) {
        for (const NodeMove& move : moves) {
            found.nodes.push_back(static_cast<int32_t>(move.node));
            found.targets.push_back(move.to);
        }
    }

    void check(int64_t x, int64_t to) const {
        if (x < 0 || x >= a_.n || to < 0 || to >= k_) throw InputError("a move is out of range");
    }

    Context context_;
    Csr<Index, Weight> a_;
    const double* degrees_;
    const double* sizes_;
    int64_t k_;
    std::unique_ptr<Refiner<Index, Weight>> refiner_;
};

}  // namespace corecut
