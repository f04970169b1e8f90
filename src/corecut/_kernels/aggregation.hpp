// Many small, tight groups by local moves under a volume cap, and the quotient graph they make.
#pragma once

#include <limits>
#include <numeric>
#include <vector>

#include "memory.hpp"
#include "rating.hpp"
#include "rounds.hpp"

namespace corecut {

// A pass in which fewer than one node in so many moves is the last; below one in so many, only neighbours of moved nodes are
// looked at from the next pass on.
inline constexpr int64_t kFewMoves = 50, kSomeMoves = 4;
// How many rows ahead the cache is asked for labels.
inline constexpr int64_t kAhead = 2;
// Entries of a block of rows that is contracted at once.
inline constexpr int64_t kEntriesAtOnce = 1 << 18;
// Blocks whose results are held until they are put together, at least; more where many threads share them.
inline constexpr int64_t kBlocksOfWave = 16;

// Modularity gain, with groups bounded in volume. Every node begins as a group of its own. Where a partition `within` is given,
// no group crosses it: a group is named after one of its nodes, whose cluster is that of all.
template <class Index, class Weight>
class Grouping {
   public:
    const Csr<Index, Weight>& a;
    const double* degrees;
    BoundedVolumes volumes;
    LazyVector<int32_t> labels;
    LazyVector<uint8_t> active;

    struct Scratch {
        Rating<Index, Weight> seen;
        BlockChanges<uint32_t> inflow;  // into groups, by the block's own rows
    };

    Grouping(Context& context, const Csr<Index, Weight>& matrix, const double* node_degrees, double total, double cap,
             const int32_t* within = nullptr)
        : a(matrix), degrees(node_degrees), volumes(context, node_degrees, matrix.n, std::min(cap, total)), labels(matrix.n),
          active(matrix.n, 1), per_volume_(total > 0 ? volumes.unit / total : 0.0), within_(within) {
        std::iota(labels.begin(), labels.end(), 0);
    }

    // The labels that rows begin.. would like to have, in `own`, by labels and volumes as they are now.
    void propose(int64_t begin, int64_t end, int32_t* own, Scratch& scratch) const {
        auto& [seen, inflow] = scratch;
        inflow.clear();
        std::copy(labels.begin() + begin, labels.begin() + end, own);
        const BlockLabels known{labels.data(), own, begin, end - begin};
        for (int64_t x = begin; x < end; ++x) {
            if (x + kAhead < end) prefetch_labels(a, labels.data(), x + kAhead);
            if (!active[x] || !volumes.movable(x)) continue;
            seen.read(a, known, x);
            if (apart_) prefetch_volumes(seen.table);
            const int32_t target = best(x, labels[x], seen.table, inflow);
            if (target == labels[x]) continue;
            own[x - begin] = target;
            inflow.at(target, 0) += volumes.mass[x];
        }
    }

    // One pass in rounds. Returns the number of moves.
    int64_t pass(Context& context, int64_t number, bool mark, int64_t seed = 0) {
        apart_ = number == 0;
        const int64_t n = a.n, at_once = blocks_at_once(n, a.nnz);
        int64_t moves = 0;
        std::vector<int64_t> blocks;
        Pool<Scratch> pool;
        for (uint64_t round = 0; round < kRounds; ++round) {
            blocks_of_round(n, seed + number, round, blocks);
            const auto count = static_cast<int64_t>(blocks.size());
            MoveLists lists((count + at_once - 1) / at_once);
            parallel_blocks(context, count, at_once, [&](int64_t task, int64_t first, int64_t last) {
                auto scratch = pool.borrow();
                int32_t own[kBlockRows];
                for (int64_t b = first; b < last; ++b) {
                    const int64_t begin = blocks[b] * kBlockRows, end = std::min(n, begin + kBlockRows);
                    propose(begin, end, own, *scratch);
                    for (int64_t x = begin; x < end; ++x) {
                        active[x] = 0;
                        if (own[x - begin] != labels[x]) lists[task].push_back({x, own[x - begin], false});
                    }
                }
            });
            moves += volumes.commit(context, lists, labels.data());
            if (mark) wake(context, lists);
        }
        return moves;
    }

    // Neighbours of moved nodes, and nodes whose move did not fit, are looked at again.
    void wake(Context& context, const MoveLists& lists) {
        parallel_blocks(context, static_cast<int64_t>(lists.size()), 1, [&](int64_t t, int64_t, int64_t) {
            const auto set = [&](int64_t y) { std::atomic_ref<uint8_t>(active[y]).store(1, std::memory_order_relaxed); };
            for (const Move& move : lists[t]) {
                if (!move.made) {
                    set(move.node);
                    continue;
                }
                const auto r = a.row(move.node);
                for (int64_t p = r.begin; p < r.end; ++p) set(a.indices[p]);
            }
        });
    }

   private:
    using Table = RatingTable<typename Rating<Index, Weight>::Sum>;

    double per_volume_;
    const int32_t* within_;
    bool apart_ = true;  // nearly every node is in a group of its own, and the volumes of all its neighbours' groups are looked at

    CORECUT_INLINE void prefetch_volumes(const Table& seen) const {
        for (size_t i = 0; i < seen.size(); ++i) prefetch(&volumes.volume[seen[i].cluster]);
    }

    int32_t best(int64_t x, int32_t from, const Table& seen, const BlockChanges<uint32_t>& inflow) const {
        const double share = degrees[x] * per_volume_;
        int32_t target = from;
        double most = seen.weight(from) - share * (volumes.volume[from] - volumes.mass[x]);
        for (size_t i = 0; i < seen.size(); ++i) {
            const auto& slot = seen[i];
            const double weight = static_cast<double>(slot.weight);
            if (weight < most || slot.cluster == from) continue;  // a volume only takes away from it
            if (within_ && within_[slot.cluster] != within_[x]) continue;
            const uint32_t* added = inflow.find(slot.cluster);
            const uint32_t volume = volumes.volume[slot.cluster] + (added ? *added : 0);
            const double gain = weight - share * volume;
            if (!(gain > most || (gain == most && target != from && slot.cluster < target))) continue;
            if (volume + volumes.mass[x] <= volumes.cap) most = gain, target = slot.cluster;
        }
        return target;
    }
};

// Nodes left alone because their neighbours' groups are full (leaves of a hub, say) share that hub with others in the same
// position: gather the lone nodes that have the same strongest neighbouring group, up to the cap, in the order of the nodes.
struct Lone {
    int32_t favourite, node;
};

// Append the lone nodes among rows begin.. with the groups they would like to be in.
template <class Index, class Weight>
void find_lone_nodes(const Csr<Index, Weight>& a, const BoundedVolumes& volumes, const LazyVector<int32_t>& labels, int64_t begin,
                     int64_t end, Rating<Index, Weight>& seen, std::vector<Lone>& found, const int32_t* within = nullptr) {
    for (int64_t x = begin; x < end; ++x) {
        const uint32_t mass = volumes.mass[x];
        if (mass == 0 || mass > volumes.cap || volumes.volume[labels[x]] != mass) continue;
        seen.read(a, labels.data(), x);
        double most = 0.0;
        int32_t favourite = -1;
        for (size_t i = 0; i < seen.table.size(); ++i) {
            const auto [j, weight] = seen.table[i];
            if (within && within[j] != within[x]) continue;
            if (weight > most || (weight == most && j < favourite)) most = static_cast<double>(weight), favourite = j;
        }
        if (favourite >= 0) found.push_back({favourite, static_cast<int32_t>(x)});
    }
}

// Gather lone nodes, found in several lists, of which any has nodes of its own.
inline void join_lone_nodes(Context& context, const BoundedVolumes& volumes, const std::vector<std::vector<Lone>>& found,
                            LazyVector<int32_t>& labels) {
    constexpr int64_t buckets = 16;
    parallel_blocks(context, buckets, 1, [&](int64_t bucket, int64_t, int64_t) {
        std::vector<Lone> here;
        for (const auto& list : found)
            for (const Lone& lone : list)
                if (lone.favourite % buckets == bucket) here.push_back(lone);
        std::sort(here.begin(), here.end(), [](const Lone& one, const Lone& other) {
            return one.favourite != other.favourite ? one.favourite < other.favourite : one.node < other.node;
        });
        int32_t last = -1, group = -1;
        uint32_t volume = 0;
        for (const Lone& lone : here) {
            const uint32_t mass = volumes.mass[lone.node];
            if (lone.favourite != last || volume + mass > volumes.cap) {
                last = lone.favourite;
                group = labels[lone.node];
                volume = 0;
            }
            labels[lone.node] = group;
            volume += mass;
        }
    });
}

template <class Index, class Weight>
void gather_lone_nodes(Context& context, const Csr<Index, Weight>& a, const BoundedVolumes& volumes, LazyVector<int32_t>& labels,
                       const int32_t* within = nullptr) {
    std::vector<std::vector<Lone>> found((a.n + kRowBlock - 1) / kRowBlock);
    Pool<Rating<Index, Weight>> pool;
    parallel_blocks(context, a.n, kRowBlock, [&](int64_t task, int64_t begin, int64_t end) {
        find_lone_nodes(a, volumes, labels, begin, end, *pool.borrow(), found[task], within);
    });
    join_lone_nodes(context, volumes, found, labels);
}

// Number labels 0.. in the order of their lowest nodes; nodes without edges (of no mass) make one group.
inline void number_groups(Context& context, const LazyVector<uint32_t>& mass, LazyVector<int32_t>& labels) {
    const auto n = static_cast<int64_t>(labels.size());
    const int64_t tasks = (n + kRowBlock - 1) / kRowBlock;
    LazyVector<int32_t> lowest(n), name(n);
    std::vector<int64_t> isolated(tasks, n), count(tasks + 1, 0);
    parallel_blocks(context, n, kRowBlock, [&](int64_t task, int64_t begin, int64_t end) {
        for (int64_t x = begin; x < end; ++x) {
            lowest[x] = std::numeric_limits<int32_t>::max();
            if (mass[x] == 0 && isolated[task] == n) isolated[task] = x;
        }
    });
    const int64_t first = tasks ? *std::min_element(isolated.begin(), isolated.end()) : n;
    parallel_blocks(context, n, kRowBlock, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t x = begin; x < end; ++x) {
            if (mass[x] == 0) labels[x] = static_cast<int32_t>(first);  // a label that only this node has had
            lower_to(lowest[labels[x]], static_cast<int32_t>(x));
        }
    });
    parallel_blocks(context, n, kRowBlock, [&](int64_t task, int64_t begin, int64_t end) {
        for (int64_t x = begin; x < end; ++x) count[task + 1] += lowest[labels[x]] == x;
    });
    std::partial_sum(count.begin(), count.end(), count.begin());
    parallel_blocks(context, n, kRowBlock, [&](int64_t task, int64_t begin, int64_t end) {
        auto next = static_cast<int32_t>(count[task]);
        for (int64_t x = begin; x < end; ++x)
            if (lowest[labels[x]] == x) name[labels[x]] = next++;
    });
    parallel_blocks(context, n, kRowBlock, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t x = begin; x < end; ++x) labels[x] = name[labels[x]];
    });
}

// Sum in blocks, so that it is the same for any number of threads.
inline double sum_of(Context& context, const double* values, int64_t n) {
    std::vector<double> sums((n + kRowBlock - 1) / kRowBlock, 0.0);
    parallel_blocks(context, n, kRowBlock, [&](int64_t block, int64_t begin, int64_t end) {
        sums[block] = std::accumulate(values + begin, values + end, 0.0);
    });
    return std::accumulate(sums.begin(), sums.end(), 0.0);
}

// Group of every node, numbered 0.. in the order of their lowest nodes. Nodes without mass make one group, whatever `within` says.
// The order in which blocks of rows have their turn depends on the seed.
template <class Index, class Weight>
LazyVector<int32_t> group_nodes(Context& context, const Csr<Index, Weight>& a, const double* degrees, double cap, int64_t max_passes,
                                const int32_t* within = nullptr, int64_t seed = 0) {
    if (a.n > std::numeric_limits<int32_t>::max()) throw InputError("aggregation is limited to 2^31 - 1 nodes");
    Grouping<Index, Weight> grouping(context, a, degrees, sum_of(context, degrees, a.n), cap, within);
    bool few = false;
    for (int64_t pass = 0; pass < max_passes; ++pass) {
        const int64_t moves = grouping.pass(context, pass, few, seed);
        if (moves * kFewMoves < a.n) break;
        // While many nodes move, nearly all would be woken.
        if (!few) std::fill(grouping.active.begin(), grouping.active.end(), uint8_t{1});
        few = moves * kSomeMoves < a.n;
    }
    gather_lone_nodes(context, a, grouping.volumes, grouping.labels, within);
    number_groups(context, grouping.volumes.mass, grouping.labels);
    return std::move(grouping.labels);
}

// Rows of a quotient. Weights are in single precision where that is asked for and changes none of them.
struct Quotient {
    std::vector<int64_t> indptr;
    LazyVector<int32_t> indices;
    LazyVector<double> data;
    LazyVector<float> single;
    std::vector<double> loops;  // inside weights of the groups
};

// The nodes of every group, in increasing order: those of g stand at start[g]..start[g + 1] - 1 of `nodes`.
struct Members {
    std::vector<int64_t> start;
    LazyVector<int32_t> nodes;

    Members(Context& context, const int32_t* groups, int64_t n, int64_t count) : start(count + 1, 0), nodes(n) {
        if (n > std::numeric_limits<int32_t>::max()) throw InputError("aggregation is limited to 2^31 - 1 nodes");
        parallel_blocks(context, n, kRowBlock, [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t x = begin; x < end; ++x) {
                if (groups[x] < 0 || groups[x] >= count) throw InputError("a group number is out of range");
                add_to(start[groups[x] + 1], int64_t{1});
            }
        });
        std::partial_sum(start.begin(), start.end(), start.begin());
        std::vector<int64_t> fill(start.begin(), start.end() - 1);
        parallel_blocks(context, n, kRowBlock, [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t x = begin; x < end; ++x) {
                std::atomic_ref<int64_t> next(fill[groups[x]]);
                nodes[next.fetch_add(1, std::memory_order_relaxed)] = static_cast<int32_t>(x);
            }
        });
        // Threads have put them there in any order.
        parallel_blocks(context, count, kRowBlock, [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t g = begin; g < end; ++g) std::sort(nodes.begin() + start[g], nodes.begin() + start[g + 1]);
        });
    }
};

// Adds up the weights of one row of the quotient and hands them out in the order of their columns.
template <class Sum>
class RowSums {
   public:
    // Few entries beside the number of columns are sorted; many are found by a look at every column's bit.
    template <class Add, class Take>
    void row(int64_t entries, int64_t count, const Add& add, const Take& take) {
        if (entries * kEntriesPerColumn >= count) {
            if (static_cast<int64_t>(dense_.size()) < count) dense_.assign(count, 0), bits_.assign(count / 64 + 1, 0);
            add([&](int32_t column, Sum weight) {
                dense_[column] += weight;
                bits_[column / 64] |= uint64_t{1} << (column % 64);
            });
            for (int64_t word = 0; word <= count / 64; ++word) {
                for (uint64_t bits = bits_[word]; bits; bits &= bits - 1) {
                    const int64_t column = word * 64 + std::countr_zero(bits);
                    take(static_cast<int32_t>(column), dense_[column]);
                    dense_[column] = 0;
                }
                bits_[word] = 0;
            }
            return;
        }
        table_.open(entries);
        add([&](int32_t column, Sum weight) { table_.add(column, weight); });
        order_.clear();
        for (size_t i = 0; i < table_.size(); ++i) order_.push_back(static_cast<uint64_t>(table_[i].cluster) << 32 | i);
        std::sort(order_.begin(), order_.end());
        for (uint64_t key : order_) take(static_cast<int32_t>(key >> 32), table_[key & 0xFFFFFFFF].weight);
    }

   private:
    static constexpr int64_t kEntriesPerColumn = 32;

    RatingTable<Sum> table_;
    std::vector<uint64_t> order_, bits_;
    std::vector<Sum> dense_;
};

// Whether a number is the same in single precision.
inline bool fits_single(double value) { return static_cast<double>(static_cast<float>(value)) == value; }

// Q = SᵀAS: summed weights between groups, with each group's inside weight as its loop, of groups first.. to last - 1. Rows come
// out sorted, and do not depend on where the borders of blocks lie. Blocks are taken in waves, and what a wave found is put into
// memory of its own, which can be given back piece by piece when the quotient is put together: it is not held twice.
template <class Index, class Weight>
Quotient contract_groups(Context& context, const Csr<Index, Weight>& a, const int32_t* groups, int64_t count,
                         const Members& members, int64_t first_group, int64_t last_group, bool compact) {
    using Sum = std::conditional_t<Csr<Index, Weight>::weighted, double, int64_t>;
    struct Scratch {
        RowSums<Sum> sums;
        std::vector<int32_t> found;
    };
    struct Block {
        std::vector<int32_t> columns;
        std::vector<double> values;
        bool single;
    };
    struct Wave {
        LazyVector<int32_t> columns;
        LazyVector<double> values;
        LazyVector<float> single;
    };
    if (first_group < 0 || first_group > last_group || last_group > count) throw InputError("a block of groups is out of range");
    const int64_t rows = last_group - first_group;
    const int64_t size = std::clamp<int64_t>(count * kEntriesAtOnce / std::max<int64_t>(a.nnz, 1), 1, kRowBlock);
    const int64_t at_once = std::max<int64_t>(kBlocksOfWave, 4 * context.threads) * size;
    std::vector<Wave> waves((rows + at_once - 1) / at_once);
    std::vector<Block> blocks(std::min(at_once, std::max<int64_t>(rows, 1)) / size + 1);
    Quotient q;
    q.indptr.assign(rows + 1, 0);
    q.loops.assign(rows, 0.0);
    Pool<Scratch> pool;
    for (size_t w = 0; w < waves.size(); ++w) {
        const int64_t from = static_cast<int64_t>(w) * at_once, to = std::min(rows, from + at_once);
        parallel_blocks(context, to - from, size, [&](int64_t block, int64_t begin, int64_t end) {
            auto scratch = pool.borrow();
            auto& [columns, values, single] = blocks[block];
            columns.clear();
            values.clear();
            single = compact;
            for (int64_t row = from + begin; row < from + end; ++row) {
                const int64_t g = first_group + row;
                const int32_t *first = members.nodes.data() + members.start[g], *last = members.nodes.data() + members.start[g + 1];
                int64_t entries = 0;
                for (const int32_t* x = first; x < last; ++x) {
                    const auto r = a.row(*x);
                    a.check_columns(r);
                    entries += r.size();
                }
                const size_t before = columns.size();
                scratch->sums.row(
                    entries, count,
                    [&](auto&& add) {
                        for (const int32_t* x = first; x < last; ++x) {
                            const auto r = a.row(*x);
                            // Group numbers first: loads that wait for nothing can be under way together.
                            auto& found = scratch->found;
                            if (static_cast<int64_t>(found.size()) < r.size()) found.resize(2 * r.size());
                            for (int64_t p = r.begin; p < r.end; ++p) found[p - r.begin] = groups[a.indices[p]];
                            for (int64_t p = r.begin; p < r.end; ++p) add(found[p - r.begin], static_cast<Sum>(a.weight(p)));
                        }
                    },
                    [&](int32_t column, Sum weight) {
                        columns.push_back(column);
                        values.push_back(static_cast<double>(weight));
                        single &= fits_single(static_cast<double>(weight));
                        if (column == g) q.loops[row] = static_cast<double>(weight);
                    });
                q.indptr[row + 1] = static_cast<int64_t>(columns.size() - before);
            }
        });
        const int64_t used = (to - from + size - 1) / size;
        std::vector<int64_t> place(used + 1, 0);
        bool single = true;
        for (int64_t b = 0; b < used; ++b) {
            place[b + 1] = place[b] + static_cast<int64_t>(blocks[b].columns.size());
            single &= blocks[b].single;
        }
        Wave& wave = waves[w];
        wave.columns.resize(place[used]);
        if (single)
            wave.single.resize(place[used]);
        else
            wave.values.resize(place[used]);
        parallel_blocks(context, used, 1, [&](int64_t b, int64_t, int64_t) {
            std::copy(blocks[b].columns.begin(), blocks[b].columns.end(), wave.columns.begin() + place[b]);
            const auto& values = blocks[b].values;
            if (single)
                std::transform(values.begin(), values.end(), wave.single.begin() + place[b],
                               [](double value) { return static_cast<float>(value); });
            else
                std::copy(values.begin(), values.end(), wave.values.begin() + place[b]);
        });
    }
    std::vector<Block>().swap(blocks);
    std::partial_sum(q.indptr.begin(), q.indptr.end(), q.indptr.begin());
    const bool single = compact && std::all_of(waves.begin(), waves.end(), [](const Wave& wave) { return wave.values.empty(); });
    if (waves.size() == 1) {
        q.indices = std::move(waves[0].columns);
        q.data = std::move(waves[0].values);
        q.single = std::move(waves[0].single);
        return q;
    }
    q.indices.resize(q.indptr[rows]);
    if (single)
        q.single.resize(q.indptr[rows]);
    else
        q.data.resize(q.indptr[rows]);
    parallel_blocks(context, static_cast<int64_t>(waves.size()), 1, [&](int64_t w, int64_t, int64_t) {
        Wave& wave = waves[w];
        const int64_t place = q.indptr[w * at_once];
        std::copy(wave.columns.begin(), wave.columns.end(), q.indices.begin() + place);
        LazyVector<int32_t>().swap(wave.columns);
        if (single) {
            std::copy(wave.single.begin(), wave.single.end(), q.single.begin() + place);
        } else {
            std::copy(wave.single.begin(), wave.single.end(), q.data.begin() + place);
            std::copy(wave.values.begin(), wave.values.end(), q.data.begin() + place);
        }
        LazyVector<float>().swap(wave.single);
        LazyVector<double>().swap(wave.values);
    });
    return q;
}

template <class Index, class Weight>
Quotient contract(Context& context, const Csr<Index, Weight>& a, const int32_t* groups, int64_t count, bool compact = false) {
    const Members members(context, groups, a.n, count);
    return contract_groups(context, a, groups, count, members, 0, count, compact);
}

}  // namespace corecut
