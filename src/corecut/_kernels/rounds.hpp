// Rounds: how local moves run on any number of threads, or machines, with one result.
//
// Rows are cut into fixed blocks. A block's proposals are a pure function of its rows and of labels and sums as they were when
// the round began (its own moves it sees at once, in row order). A round commits all proposals together, so far as they fit, and
// nothing in it depends on who proposed what, or when. Two blocks that move at once do not see each other: a pass over the graph
// is therefore made of several rounds, each of the blocks that a hash picks for it, differently in every pass. Neighbours that
// would follow each other for ever meet in the same round only now and then.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>
#include <vector>

#include "csr.hpp"
#include "memory.hpp"
#include "random.hpp"

namespace corecut {

// Rows of a block, and entries of the blocks that a thread takes at a time: many, but of a small graph not so many that few threads
// have something to do.
inline constexpr int64_t kBlockRows = 64, kEntriesOfTask = 1 << 15, kTasksOfRound = 8;
// Rounds of a pass.
inline constexpr uint64_t kRounds = 8;

struct Move {
    int64_t node;
    int32_t target;
    bool made;
};

inline bool in_round(int64_t block, uint64_t pass, uint64_t round) {
    return mix64(static_cast<uint64_t>(block) * 0x9E3779B97F4A7C15ULL + pass) % kRounds == round;
}

// The blocks of one round of a pass, in increasing order.
inline void blocks_of_round(int64_t n, uint64_t pass, uint64_t round, std::vector<int64_t>& blocks) {
    blocks.clear();
    for (int64_t b = 0; b * kBlockRows < n; ++b)
        if (in_round(b, pass, round)) blocks.push_back(b);
}

inline int64_t blocks_at_once(int64_t n, int64_t entries) {
    const int64_t blocks = std::max<int64_t>(n / kBlockRows, 1), of_task = blocks / (static_cast<int64_t>(kRounds) * kTasksOfRound);
    return std::clamp<int64_t>(kEntriesOfTask / (entries / blocks + 1), 1, std::clamp<int64_t>(of_task, 1, 64));
}

// Moves of one round, in lists of the tasks that found them. Task borders depend on the graph only.
using MoveLists = std::vector<std::vector<Move>>;

// A sum that several threads add to. Whole numbers only: their sums do not depend on the order.
template <class T>
CORECUT_INLINE void add_to(T& place, T value) {
    std::atomic_ref<T>(place).fetch_add(value, std::memory_order_relaxed);
}

template <class T>
CORECUT_INLINE void lower_to(T& place, T value) {
    std::atomic_ref<T> shared(place);
    for (T now = shared.load(std::memory_order_relaxed); value < now;)
        if (shared.compare_exchange_weak(now, value, std::memory_order_relaxed)) return;
}

// What the rows of one block have changed of the sums of clusters, before anybody else knows: a table of fixed size, since every
// row changes two clusters at most.
template <class Value>
class BlockChanges {
   public:
    void clear() {
        for (uint32_t at : used_) keys_[at] = -1;
        used_.clear();
    }

    CORECUT_INLINE const Value* find(int32_t cluster) const {
        for (uint32_t at = place(cluster);; at = (at + 1) % kPlaces) {
            if (keys_[at] == cluster) return &values_[at];
            if (keys_[at] < 0) return nullptr;
        }
    }

    // The place of a cluster's changed sums; `first` where there are none yet.
    Value& at(int32_t cluster, const Value& first) {
        uint32_t at = place(cluster);
        while (keys_[at] >= 0 && keys_[at] != cluster) at = (at + 1) % kPlaces;
        if (keys_[at] < 0) {
            keys_[at] = cluster;
            values_[at] = first;
            used_.push_back(at);
        }
        return values_[at];
    }

    BlockChanges() : keys_(kPlaces, -1), values_(kPlaces) {}

   private:
    static constexpr uint32_t kPlaces = 8 * kBlockRows;

    static uint32_t place(int32_t cluster) { return (static_cast<uint32_t>(cluster) * 0x9E3779B1U >> 16) % kPlaces; }

    std::vector<int32_t> keys_;
    std::vector<Value> values_;
    std::vector<uint32_t> used_;
};

// Volumes of groups under a bound, in whole numbers: a degree is counted in units of a power of two, about a billionth of the
// bound, rounded up. So sums are exact and the same in any order, and a volume takes four bytes.
class BoundedVolumes {
   public:
    LazyVector<uint32_t> mass;    // by node
    LazyVector<uint32_t> volume;  // by group
    uint32_t cap = 0;
    double unit = 1.0;  // of mass, in units of degree

    BoundedVolumes(Context& context, const double* degrees, int64_t n, double bound) : mass(n), volume(n) {
        int exponent = 0;
        std::frexp(bound, &exponent);
        const double scale = std::ldexp(1.0, kBits - exponent);
        unit = std::ldexp(1.0, exponent - kBits);
        cap = bound > 0 ? static_cast<uint32_t>(std::floor(std::ldexp(bound, kBits - exponent))) : 0;
        parallel_blocks(context, n, kRowBlock, [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t x = begin; x < end; ++x) {
                const double scaled = std::ceil(degrees[x] * scale);
                mass[x] = volume[x] = scaled <= cap ? static_cast<uint32_t>(scaled) : cap + 1;
            }
        });
    }

    bool movable(int64_t x) const { return mass[x] <= cap; }

    // Make the moves of a round that fit: all of a group's where they fit together, else in the order of the nodes. What leaves
    // a group makes room in the next round. Returns how many were made.
    int64_t commit(Context& context, MoveLists& lists, int32_t* labels) {
        const auto tasks = static_cast<int64_t>(lists.size());
        if (inflow_.size() != mass.size()) {  // who only proposes does without
            inflow_.resize(mass.size());
            parallel_blocks(context, static_cast<int64_t>(mass.size()), kRowBlock, [&](int64_t, int64_t begin, int64_t end) {
                std::fill(inflow_.begin() + begin, inflow_.begin() + end, uint64_t{0});
            });
        }
        parallel_blocks(context, tasks, 1, [&](int64_t t, int64_t, int64_t) {
            for (const Move& move : lists[t]) add_to(inflow_[move.target], uint64_t{mass[move.node]});
        });
        std::vector<std::vector<Move*>> contested(tasks * kBuckets);
        parallel_blocks(context, tasks, 1, [&](int64_t t, int64_t, int64_t) {
            for (Move& move : lists[t]) {
                move.made = volume[move.target] + inflow_[move.target] <= cap;
                if (!move.made) contested[t * kBuckets + move.target % kBuckets].push_back(&move);
            }
        });
        parallel_blocks(context, kBuckets, 1, [&](int64_t bucket, int64_t, int64_t) {
            std::vector<Move*> here;
            for (int64_t t = 0; t < tasks; ++t) {
                const auto& part = contested[t * kBuckets + bucket];
                here.insert(here.end(), part.begin(), part.end());
            }
            std::sort(here.begin(), here.end(), [](const Move* a, const Move* b) {
                return a->target != b->target ? a->target < b->target : a->node < b->node;
            });
            int32_t group = -1;
            uint32_t filled = 0;
            for (Move* move : here) {
                if (move->target != group) group = move->target, filled = volume[group];
                if (filled + mass[move->node] > cap) continue;
                filled += mass[move->node];
                move->made = true;
            }
        });
        std::vector<int64_t> made(tasks, 0);
        parallel_blocks(context, tasks, 1, [&](int64_t t, int64_t, int64_t) {
            for (const Move& move : lists[t]) {
                std::atomic_ref<uint64_t>(inflow_[move.target]).store(0, std::memory_order_relaxed);
                if (!move.made) continue;
                const uint32_t m = mass[move.node];
                add_to(volume[labels[move.node]], uint32_t{0} - m);
                add_to(volume[move.target], m);
                labels[move.node] = move.target;
                ++made[t];
            }
        });
        int64_t sum = 0;
        for (int64_t m : made) sum += m;
        return sum;
    }

   private:
    static constexpr int kBits = 30;
    static constexpr int64_t kBuckets = 16;

    LazyVector<uint64_t> inflow_;
};

}  // namespace corecut
