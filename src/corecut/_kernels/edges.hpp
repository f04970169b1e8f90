// From a heap of edges to sorted rows: count, split into buckets of rows, place, sort, merge.
//
// Every edge {x, y} becomes the entries (x, y) and (y, x); a self-loop becomes one entry. Entries keep the order in which
// their edges came, so that repeats are merged in the same order on both sides and the result is exactly symmetric.
#pragma once

#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "graph.hpp"

namespace corecut {

// Add every edge to the number of entries of its two rows.
template <class Id>
void count_entries(Context& context, const Id* source, const Id* target, int64_t count, int64_t* entries, int64_t n) {
    for (int64_t i = 0; i < count; ++i) {
        if ((i & 0xFFFFF) == 0) context.check();
        const uint64_t x = static_cast<uint64_t>(source[i]), y = static_cast<uint64_t>(target[i]);
        if (x >= static_cast<uint64_t>(n) || y >= static_cast<uint64_t>(n))
            throw InputError("edge (" + std::to_string(source[i]) + ", " + std::to_string(target[i]) +
                             ") is out of range for " + std::to_string(n) + " nodes");
        ++entries[x];
        if (x != y) ++entries[y];
    }
}

// Entries sorted by bucket; bucket b holds rows borders[b] .. borders[b + 1] and positions offsets[b] .. offsets[b + 1].
template <class Index>
struct Split {
    std::vector<int64_t> offsets;
    std::vector<Index> rows, columns;
    std::vector<double> weights;
};

// A bucket's number from a row's, by a coarse table and a short walk: cheaper than a search among the borders.
class BucketOf {
   public:
    BucketOf(const int64_t* borders, int64_t buckets) : borders_(borders), n_(borders[buckets]) {
        while ((n_ >> shift_) > 65536) ++shift_;
        coarse_.resize((n_ >> shift_) + 1);
        int64_t b = 0;
        for (size_t i = 0; i < coarse_.size(); ++i) {
            while (b + 1 < buckets && borders[b + 1] <= (static_cast<int64_t>(i) << shift_)) ++b;
            coarse_[i] = static_cast<int32_t>(b);
        }
    }

    int64_t operator()(int64_t row) const {
        if (static_cast<uint64_t>(row) >= static_cast<uint64_t>(n_))
            throw InputError("node " + std::to_string(row) + " is out of range for " + std::to_string(n_) + " nodes");
        int64_t b = coarse_[row >> shift_];
        while (borders_[b + 1] <= row) ++b;
        return b;
    }

   private:
    const int64_t* borders_;
    int64_t n_;
    int shift_ = 0;
    std::vector<int32_t> coarse_;
};

template <class Index>
Split<Index> split_edges(Context& context, const Index* source, const Index* target, const double* weight, int64_t count,
                         const int64_t* borders, int64_t buckets) {
    const BucketOf bucket_of(borders, buckets);
    Split<Index> split;
    split.offsets.assign(buckets + 1, 0);
    for (int64_t i = 0; i < count; ++i) {
        if ((i & 0xFFFFF) == 0) context.check();
        ++split.offsets[bucket_of(source[i]) + 1];
        const int64_t other = bucket_of(target[i]);
        if (source[i] != target[i]) ++split.offsets[other + 1];
    }
    std::partial_sum(split.offsets.begin(), split.offsets.end(), split.offsets.begin());
    std::vector<int64_t> next(split.offsets.begin(), split.offsets.end() - 1);
    split.rows.resize(split.offsets[buckets]);
    split.columns.resize(split.offsets[buckets]);
    if (weight) split.weights.resize(split.offsets[buckets]);
    const auto put = [&](Index row, Index column, int64_t i) {
        const int64_t p = next[bucket_of(row)]++;
        split.rows[p] = row;
        split.columns[p] = column;
        if (weight) split.weights[p] = weight[i];
    };
    for (int64_t i = 0; i < count; ++i) {
        if ((i & 0xFFFFF) == 0) context.check();
        put(source[i], target[i], i);
        if (source[i] != target[i]) put(target[i], source[i], i);
    }
    return split;
}

// The finished rows of one bucket.
template <class Index>
struct Rows {
    std::vector<int64_t> lengths;
    std::vector<Index> columns;
    std::vector<double> weights;   // empty for a graph without weights
    std::vector<double> degrees;
    std::vector<double> diagonal;  // empty when the bucket has no self-loop
    int64_t zeros = 0;             // edges dropped because their weight was 0, counted at the lower end
    bool unit = true;
};

// The rows first .. first + lengths.size() of a graph of n nodes, in the making. Room for every entry is known beforehand,
// so an entry is written once, to its row; then each row is sorted and its repeats merged.
template <class Index>
class RowBuilder {
   public:
    RowBuilder(int64_t n, int64_t first, const int64_t* entries, int64_t rows, bool weighted)
        : n_(n), first_(first), rows_(rows), weighted_(weighted), begin_(rows + 1, 0) {
        for (int64_t r = 0; r < rows; ++r) {
            if (entries[r] < 0) throw InputError("a row cannot have a negative number of entries");
            begin_[r + 1] = begin_[r] + entries[r];
        }
        next_.assign(begin_.begin(), begin_.end() - 1);
        columns_.resize(begin_[rows]);
        if (weighted) weights_.resize(begin_[rows]);
    }

    // Entries as they are (mirror = false), or both entries of every edge. Each thread takes a range of rows of its own and
    // reads all entries: reading in order is cheap, writing at random is not.
    void add(Context& context, const Index* rows, const Index* columns, const double* weight, int64_t count, bool mirror) {
        if ((weight != nullptr) != weighted_)
            throw InputError("either all edges of a graph have weights or none");
        const int64_t parts = std::min<int64_t>(context.threads, std::max<int64_t>(rows_, 1));
        parallel_blocks(context, parts, 1, [&](int64_t part, int64_t, int64_t) {
            const int64_t low = share(part, parts), high = share(part + 1, parts);
            const auto put = [&](int64_t row, int64_t column, int64_t i) {
                if (static_cast<uint64_t>(column) >= static_cast<uint64_t>(n_))
                    throw InputError("node " + std::to_string(column) + " is out of range for " + std::to_string(n_) + " nodes");
                const int64_t r = row - first_;
                if (r < low || r >= high) return;
                if (next_[r] == begin_[r + 1])
                    throw InputError("row " + std::to_string(row) + " has more entries than were counted");
                const int64_t p = next_[r]++;
                columns_[p] = static_cast<Index>(column);
                if (weight) weights_[p] = weight[i];
            };
            for (int64_t i = 0; i < count; ++i) {
                if ((i & 0xFFFFF) == 0) context.check();
                put(rows[i], columns[i], i);
                if (mirror && rows[i] != columns[i]) put(columns[i], rows[i], i);
            }
        });
    }

    // Sort and merge; the builder is empty afterwards. Repeats of unweighted entries become one; weights are added up, or the
    // largest one is kept.
    Rows<Index> finish(Context& context, bool largest) {
        for (int64_t r = 0; r < rows_; ++r)
            if (next_[r] != begin_[r + 1])
                throw InputError("row " + std::to_string(first_ + r) + " has fewer entries than were counted");
        Rows<Index> out;
        out.lengths.resize(rows_);
        const int64_t blocks = (rows_ + kRowBlock - 1) / kRowBlock;
        std::vector<int64_t> zeros(blocks, 0);
        parallel_blocks(context, rows_, kRowBlock, [&](int64_t block, int64_t begin, int64_t end) {
            std::vector<std::pair<Index, int64_t>> order;
            std::vector<double> sorted;
            for (int64_t r = begin; r < end; ++r) {
                if ((r & 63) == 0) context.check();
                Index* row = columns_.data() + begin_[r];
                const int64_t length = begin_[r + 1] - begin_[r];
                if (!weighted_) {
                    std::sort(row, row + length);
                    out.lengths[r] = std::unique(row, row + length) - row;
                    continue;
                }
                double* values = weights_.data() + begin_[r];
                order.resize(length);
                for (int64_t i = 0; i < length; ++i) order[i] = {row[i], i};
                std::sort(order.begin(), order.end());
                sorted.assign(values, values + length);
                int64_t kept = 0;
                for (int64_t i = 0; i < length;) {
                    const Index column = order[i].first;
                    double value = sorted[order[i].second];
                    int64_t j = i + 1;
                    for (; j < length && order[j].first == column; ++j) {
                        const double repeat = sorted[order[j].second];
                        value = largest ? std::max(value, repeat) : value + repeat;
                    }
                    i = j;
                    if (value == 0.0) {
                        zeros[block] += static_cast<int64_t>(column) >= first_ + r;
                        continue;
                    }
                    row[kept] = column;
                    values[kept++] = value;
                }
                out.lengths[r] = kept;
            }
        });
        out.zeros = std::accumulate(zeros.begin(), zeros.end(), int64_t{0});
        compact(out.lengths);
        measure(context, out);
        out.columns = std::move(columns_);
        out.weights = std::move(weights_);
        rows_ = 0;  // an emptied builder takes no more entries
        begin_.assign(1, 0);
        next_.clear();
        return out;
    }

   private:
    // Threads get equal numbers of entries, not of rows: the ranges cost what their entries cost.
    int64_t share(int64_t part, int64_t parts) const {
        if (part == parts) return rows_;
        const int64_t wanted = begin_[rows_] / parts * part;
        return std::upper_bound(begin_.begin(), begin_.end(), wanted) - begin_.begin() - 1;
    }

    // Close the gaps that merged entries left.
    void compact(const std::vector<int64_t>& lengths) {
        int64_t to = 0;
        for (int64_t r = 0; r < rows_; ++r) {
            const int64_t from = begin_[r];
            if (from != to && lengths[r] > 0) {
                std::memmove(columns_.data() + to, columns_.data() + from, lengths[r] * sizeof(Index));
                if (weighted_)
                    std::memmove(weights_.data() + to, weights_.data() + from, lengths[r] * sizeof(double));
            }
            begin_[r] = to;
            to += lengths[r];
        }
        begin_[rows_] = to;
        columns_.resize(to);
        if (weighted_) weights_.resize(to);
    }

    // Degrees and diagonal by the same code, hence to the same bits, as for a matrix given in memory.
    void measure(Context& context, Rows<Index>& out) {
        if (weighted_)
            measure_as(context, out, view<double>(weights_.data()));
        else
            measure_as(context, out, view<Unit>(nullptr));
    }

    template <class Weight>
    Csr<Index, Weight> view(const Weight* data) const {
        Csr<Index, Weight> a;
        a.n = n_;
        a.nnz = begin_[rows_];
        a.indptr = {begin_.data(), true};
        a.indices = columns_.data();
        a.data = data;
        return a;
    }

    template <class Weight>
    void measure_as(Context& context, Rows<Index>& out, const Csr<Index, Weight>& a) {
        out.degrees.resize(rows_);
        std::vector<double> diagonal(rows_, 0.0);
        const int64_t blocks = (rows_ + kRowBlock - 1) / kRowBlock;
        std::vector<char> units(blocks, 1), loops(blocks, 0);
        parallel_blocks(context, rows_, kRowBlock, [&](int64_t block, int64_t begin, int64_t end) {
            bool unit = true, canonical = true;
            for (int64_t r = begin; r < end; ++r) {
                const auto range = a.row(r);
                out.degrees[r] = scan_row(a, first_ + r, range, unit, canonical);
                const int64_t p = a.lower_bound(range, first_ + r);
                if (p < range.end && static_cast<int64_t>(a.indices[p]) == first_ + r) {
                    diagonal[r] = a.weight(p);
                    loops[block] = 1;
                }
            }
            units[block] = unit;
        });
        bool any = false;
        for (int64_t b = 0; b < blocks; ++b) {
            out.unit &= units[b] != 0;
            any |= loops[b] != 0;
        }
        if (any) out.diagonal = std::move(diagonal);
    }

    int64_t n_, first_, rows_;
    bool weighted_;
    std::vector<int64_t> begin_, next_;
    std::vector<Index> columns_;
    std::vector<double> weights_;
};

}  // namespace corecut
