// Stages by blocks of rows: what a task of a cluster does with its rows, and what the client does with all tasks' results.
//
// A stage is a pure function of (rows, arrays of the round's beginning) and an ordered merge. The rows' part calls the functions
// that the threads of one machine run; only where the rows begin and end differs, and no result depends on that.
#pragma once

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>
#include <vector>

#include "aggregation.hpp"
#include "csr.hpp"

namespace corecut {

inline void check_rows(int64_t begin, int64_t end, int64_t n) {
    if (begin < 0 || begin > end || end > n) throw InputError("a block of rows lies outside of the graph");
}

// One bit for every row, as NumPy packs them.
template <class Active>
std::vector<uint8_t> packed_bits(int64_t n, const Active& active) {
    std::vector<uint8_t> bits((n + 7) / 8, 0);
    for (int64_t x = 0; x < n; ++x) bits[x / 8] |= static_cast<uint8_t>((active(x) ? 128 : 0) >> (x % 8));
    return bits;
}

inline void unpack_bits(const uint8_t* bits, LazyVector<uint8_t>& active) {
    for (size_t x = 0; x < active.size(); ++x) active[x] = bits[x / 8] >> (7 - x % 8) & 1;
}

// Entries of the rows of a round that are looked at, up to `enough`.
template <class Index, class Weight, class Active>
int64_t entries_of_rows(const Csr<Index, Weight>& a, uint64_t pass, uint64_t round, int64_t enough, const Active& active) {
    int64_t entries = 0;
    for (int64_t b = 0; b * kBlockRows < a.n && entries < enough; ++b) {
        if (!in_round(b, pass, round)) continue;
        for (int64_t x = b * kBlockRows; x < std::min(a.n, (b + 1) * kBlockRows); ++x)
            if (active(x)) entries += std::max<int64_t>(a.row(x).size(), 1);
    }
    return entries;
}

// Moves of a round, or the lone nodes behind the last one.
struct Proposals {
    std::vector<int32_t> nodes, targets;
};

// The state of aggregation's rounds, at the client and at every worker.
class GroupRounds {
   public:
    virtual ~GroupRounds() = default;

    // What rows begin.. (whole blocks) propose in a round. Only reads, so that several tasks of a worker may ask at once.
    virtual Proposals propose(Context& context, int64_t begin, int64_t end, uint64_t pass, uint64_t round) const = 0;
    // Entries of the rows that a round looks at, up to `enough`.
    virtual int64_t entries_of_round(uint64_t pass, uint64_t round, int64_t enough) const = 0;
    // Which of a round's proposals fit. They are made, and rows that may want to move now are marked.
    virtual std::vector<uint8_t> commit(Context& context, const int32_t* nodes, const int32_t* targets, int64_t count,
                                        uint64_t pass, uint64_t round, bool mark) = 0;
    // Make moves that a commit has decided on, at a worker.
    virtual void move(const int32_t* nodes, const int32_t* targets, int64_t count) = 0;
    virtual Proposals lone(int64_t begin, int64_t end) const = 0;
    // Groups of all nodes, numbered.
    virtual void finish(Context& context, const int32_t* nodes, const int32_t* favourites, int64_t count) = 0;
    virtual void set_labels(const int32_t* labels) = 0;
    virtual LazyVector<int32_t>& labels() = 0;
    virtual LazyVector<uint8_t>& active() = 0;
};

template <class Index, class Weight>
class GroupRoundsOf final : public GroupRounds {
   public:
    GroupRoundsOf(Context& context, const Csr<Index, Weight>& a, const double* degrees, double cap)
        : a_(a), grouping_(context, a_, degrees, sum_of(context, degrees, a.n), cap) {}

    Proposals propose(Context& context, int64_t begin, int64_t end, uint64_t pass, uint64_t round) const override {
        check_rows(begin, end, a_.n);
        if (begin % kBlockRows) throw InputError("rows of a round must begin with a block");
        Proposals found;
        typename Grouping<Index, Weight>::Scratch scratch;
        int32_t own[kBlockRows];
        for (int64_t first = begin; first < end; first += kBlockRows) {
            if (!in_round(first / kBlockRows, pass, round)) continue;
            context.check();
            const int64_t last = std::min(end, first + kBlockRows);
            grouping_.propose(first, last, own, scratch);
            for (int64_t x = first; x < last; ++x) {
                if (own[x - first] == grouping_.labels[x]) continue;
                found.nodes.push_back(static_cast<int32_t>(x));
                found.targets.push_back(own[x - first]);
            }
        }
        return found;
    }

    int64_t entries_of_round(uint64_t pass, uint64_t round, int64_t enough) const override {
        return entries_of_rows(a_, pass, round, enough, [&](int64_t x) { return grouping_.active[x] != 0; });
    }

    std::vector<uint8_t> commit(Context& context, const int32_t* nodes, const int32_t* targets, int64_t count, uint64_t pass,
                                uint64_t round, bool mark) override {
        MoveLists lists = listed(nodes, targets, count);
        grouping_.volumes.commit(context, lists, grouping_.labels.data());
        std::vector<uint8_t> made;
        made.reserve(count);
        for (const auto& list : lists)
            for (const Move& move : list) made.push_back(move.made);
        looked_at(context, lists, pass, round, mark);
        return made;
    }

    void move(const int32_t* nodes, const int32_t* targets, int64_t count) override {
        for (int64_t i = 0; i < count; ++i) {
            check(nodes[i], targets[i]);
            make(nodes[i], targets[i]);
        }
    }

    Proposals lone(int64_t begin, int64_t end) const override {
        check_rows(begin, end, a_.n);
        std::vector<Lone> found;
        Rating<Index, Weight> seen;
        find_lone_nodes(a_, grouping_.volumes, grouping_.labels, begin, end, seen, found);
        Proposals result;
        for (const Lone& one : found) {
            result.nodes.push_back(one.node);
            result.targets.push_back(one.favourite);
        }
        return result;
    }

    void finish(Context& context, const int32_t* nodes, const int32_t* favourites, int64_t count) override {
        std::vector<std::vector<Lone>> found(1);
        for (int64_t i = 0; i < count; ++i) {
            check(nodes[i], favourites[i]);
            found[0].push_back({favourites[i], nodes[i]});
        }
        join_lone_nodes(context, grouping_.volumes, found, grouping_.labels);
        number_groups(context, grouping_.volumes.mass, grouping_.labels);
    }

    void set_labels(const int32_t* labels) override {
        auto& volume = grouping_.volumes.volume;
        std::fill(volume.begin(), volume.end(), uint32_t{0});
        for (int64_t x = 0; x < a_.n; ++x) {
            check(x, labels[x]);
            grouping_.labels[x] = labels[x];
            volume[labels[x]] += grouping_.volumes.mass[x];
        }
    }

    LazyVector<int32_t>& labels() override { return grouping_.labels; }
    LazyVector<uint8_t>& active() override { return grouping_.active; }

   private:
    Csr<Index, Weight> a_;
    Grouping<Index, Weight> grouping_;

    void check(int64_t x, int64_t target) const {
        if (x < 0 || x >= a_.n || target < 0 || target >= a_.n) throw InputError("a move is out of range");
    }

    void make(int32_t x, int32_t target) {
        const uint32_t mass = grouping_.volumes.mass[x];
        grouping_.volumes.volume[grouping_.labels[x]] -= mass;
        grouping_.volumes.volume[target] += mass;
        grouping_.labels[x] = target;
    }

    MoveLists listed(const int32_t* nodes, const int32_t* targets, int64_t count) const {
        MoveLists lists((count + kRowBlock - 1) / kRowBlock);
        for (int64_t i = 0; i < count; ++i) {
            check(nodes[i], targets[i]);
            lists[i / kRowBlock].push_back({nodes[i], targets[i], false});
        }
        return lists;
    }

    void looked_at(Context& context, const MoveLists& lists, uint64_t pass, uint64_t round, bool mark) {
        for (int64_t b = 0; b * kBlockRows < a_.n; ++b)
            if (in_round(b, pass, round))
                std::fill(grouping_.active.begin() + b * kBlockRows,
                          grouping_.active.begin() + std::min(a_.n, (b + 1) * kBlockRows), uint8_t{0});
        if (!mark) return;
        for (const auto& list : lists)
            for (const Move& move : list) a_.check_columns(a_.row(move.node));  // what a worker has read may differ from what is here
        grouping_.wake(context, lists);
    }
};

// Entries of groups, in pieces of one group each: `columns` and `weights` of a piece follow those of the piece before; without
// weights each of them is 1. Where the groups are divided into parts, `starts` has the first piece of every part and their number,
// then the first entry of every part and their number.
struct Pieces {
    std::vector<int32_t> groups;
    std::vector<int64_t> lengths;
    LazyVector<int32_t> columns;
    LazyVector<double> weights;
    std::vector<int64_t> starts;
};

// What rows begin.. add to the quotient: every row is a piece, and goes to the part that its group lies in. Nothing is added up
// here: the order of additions counts, and a block has but a few rows of a group.
template <class Index, class Weight>
Pieces contract_rows(Context& context, const Csr<Index, Weight>& a, const int32_t* groups, int64_t count, int64_t begin, int64_t end,
                     const int64_t* borders, int64_t parts) {
    check_rows(begin, end, a.n);
    std::vector<int32_t> part(end - begin);
    Pieces pieces;
    pieces.starts.assign(2 * (parts + 1), 0);
    int64_t *piece = pieces.starts.data(), *entry = piece + parts + 1;
    for (int64_t x = begin; x < end; ++x) {
        if (groups[x] < 0 || groups[x] >= count) throw InputError("a group number is out of range");
        const int64_t at = std::upper_bound(borders, borders + parts + 1, int64_t{groups[x]}) - borders - 1;
        if (at < 0 || at >= parts) throw InputError("a group lies in no part");
        part[x - begin] = static_cast<int32_t>(at);
        ++piece[at + 1];
        entry[at + 1] += a.row(x).size();
    }
    std::partial_sum(piece, piece + parts + 1, piece);
    std::partial_sum(entry, entry + parts + 1, entry);
    std::vector<int64_t> next(pieces.starts);
    pieces.groups.resize(piece[parts]);
    pieces.lengths.resize(piece[parts]);
    pieces.columns.resize(entry[parts]);
    if constexpr (Csr<Index, Weight>::weighted) pieces.weights.resize(entry[parts]);
    for (int64_t x = begin; x < end; ++x) {
        if ((x & 1023) == 0) context.check();
        const auto r = a.row(x);
        a.check_columns(r);
        const int32_t at = part[x - begin];
        const int64_t here = next[at]++, first = next[parts + 1 + at];
        next[parts + 1 + at] += r.size();
        pieces.groups[here] = groups[x];
        pieces.lengths[here] = r.size();
        for (int64_t p = r.begin; p < r.end; ++p) {
            pieces.columns[first + p - r.begin] = groups[a.indices[p]];
            if constexpr (Csr<Index, Weight>::weighted) pieces.weights[first + p - r.begin] = a.weight(p);
        }
    }
    return pieces;
}

// Rows first.. of the quotient from all pieces of these groups, in the order of the rows they come from.
// `weights` absent: all are 1.
inline Pieces merge_pieces(Context& context, const int32_t* groups, const int64_t* lengths, int64_t pieces, const int32_t* columns,
                           const double* weights, int64_t entries, int64_t first, int64_t last, int64_t count) {
    const int64_t rows = last - first;
    if (first < 0 || rows < 0 || last > count) throw InputError("a block of groups is out of range");
    std::vector<int64_t> start(rows + 1, 0), place(pieces + 1, 0), order(pieces);
    for (int64_t i = 0; i < pieces; ++i) {
        if (groups[i] < first || groups[i] >= last || lengths[i] < 0) throw InputError("a piece of the quotient is out of place");
        ++start[groups[i] - first + 1];
        place[i + 1] = place[i] + lengths[i];
    }
    if (place[pieces] != entries) throw InputError("pieces of the quotient have the wrong length");
    std::partial_sum(start.begin(), start.end(), start.begin());
    std::vector<int64_t> next(start.begin(), start.end() - 1);
    for (int64_t i = 0; i < pieces; ++i) order[next[groups[i] - first]++] = i;
    Pieces merged;
    RowSums<double> sums;
    for (int64_t g = 0; g < rows; ++g) {
        if ((g & 63) == 0) context.check();
        int64_t mine = 0;
        for (int64_t i = start[g]; i < start[g + 1]; ++i) mine += lengths[order[i]];
        const size_t before = merged.columns.size();
        sums.row(
            mine, count,
            [&](auto&& add) {
                for (int64_t i = start[g]; i < start[g + 1]; ++i)
                    for (int64_t p = place[order[i]]; p < place[order[i] + 1]; ++p) {
                        if (columns[p] < 0 || columns[p] >= count) throw InputError("a group number is out of range");
                        add(columns[p], weights ? weights[p] : 1.0);
                    }
            },
            [&](int32_t column, double weight) {
                merged.columns.push_back(column);
                merged.weights.push_back(weight);
            });
        merged.lengths.push_back(static_cast<int64_t>(merged.columns.size() - before));
    }
    return merged;
}

// Components in two steps. The first entries of every row join most of what belongs together; with that known, few rows have an
// entry that joins more.
inline constexpr int64_t kFirstEntries = 2;

// The lower node leads, so that the leader of a component is its lowest node.
template <class Node, class Leaders>
Node leader_of(Leaders&& parent, Node x) {
    while (parent[x] != x) {
        parent[x] = parent[parent[x]];
        x = parent[x];
    }
    return x;
}

inline void join_pairs(int32_t* parent, int64_t n, const int32_t* one, const int32_t* other, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
        if (one[i] < 0 || one[i] >= n || other[i] < 0 || other[i] >= n) throw InputError("a node number is out of range");
        const int32_t a = leader_of(parent, one[i]), b = leader_of(parent, other[i]);
        parent[std::max(a, b)] = std::min(a, b);
    }
}

template <class Index, class Weight>
Proposals first_pairs(const Csr<Index, Weight>& a, int64_t begin, int64_t end) {
    check_rows(begin, end, a.n);
    Proposals found;
    for (int64_t x = begin; x < end; ++x) {
        const auto r = a.row(x);
        for (int64_t p = r.begin; p < std::min(r.end, r.begin + kFirstEntries); ++p) {
            found.nodes.push_back(static_cast<int32_t>(x));
            found.targets.push_back(static_cast<int32_t>(a.column(p)));
        }
    }
    return found;
}

// Pairs of components, named by their leaders, that entries of rows begin.. join.
template <class Index, class Weight>
Proposals joining_pairs(Context& context, const Csr<Index, Weight>& a, const int32_t* leaders, int64_t begin, int64_t end) {
    check_rows(begin, end, a.n);
    Proposals found;
    std::unordered_map<int32_t, int32_t> known;
    const auto find = [&](int32_t x) {
        known.try_emplace(x, x);
        return leader_of(known, x);
    };
    for (int64_t x = begin; x < end; ++x) {
        if ((x & 1023) == 0) context.check();
        const auto r = a.row(x);
        for (int64_t p = r.begin; p < r.end; ++p) {
            const int64_t y = a.column(p);
            if (y >= x) break;  // the mirror image is seen from the other side
            if (leaders[x] == leaders[y]) continue;
            const int32_t one = find(leaders[x]), other = find(leaders[y]);
            if (one == other) continue;
            known[std::max(one, other)] = std::min(one, other);
            found.nodes.push_back(one);
            found.targets.push_back(other);
        }
    }
    return found;
}

}  // namespace corecut
