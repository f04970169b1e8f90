// Many small, tight groups by local moves under a volume cap, and the quotient graph they make.
#pragma once

#include <limits>
#include <numeric>
#include <vector>

#include "local_moves.hpp"
#include "memory.hpp"

namespace corecut {

// Modularity gain, with groups bounded in volume. Every node begins as a group of its own.
class GroupPolicy {
   public:
    LazyVector<double> volume;

    GroupPolicy(const double* degrees, int64_t n, double total, double cap)
        : volume(degrees, degrees + n), degrees_(degrees), per_volume_(total > 0 ? 1.0 / total : 0.0), cap_(cap) {}

    int32_t best(int64_t x, int32_t from, const Neighbourhood& seen) const {
        const double d = degrees_[x], stay = seen.weight[from] - d * (volume[from] - d) * per_volume_;
        int32_t target = from;
        double most = stay;
        for (int32_t j : seen.clusters) {
            if (j == from || volume[j] + d > cap_) continue;
            const double g = seen.weight[j] - d * volume[j] * per_volume_;
            if (g > most || (g == most && target != from && j < target)) most = g, target = j;
        }
        return target;
    }

    double gain(int64_t x, int32_t from, int32_t to, double to_own, double to_target, double) const {
        const double d = degrees_[x];
        if (volume[to] + d > cap_) return -1.0;
        return (to_target - d * volume[to] * per_volume_) - (to_own - d * (volume[from] - d) * per_volume_);
    }

    bool wakes(int64_t, int32_t, int32_t, int32_t, double) const { return true; }

    void apply(int64_t x, int32_t from, int32_t to, double, double, double) {
        volume[from] -= degrees_[x];
        volume[to] += degrees_[x];
    }

   private:
    const double* degrees_;
    double per_volume_, cap_;
};

// Nodes left alone because their neighbours' groups are full (leaves of a hub, say) share that hub with others in the same
// position: gather the lone nodes that have the same strongest neighbouring group, up to the cap.
template <class Index, class Weight>
void gather_lone_nodes(Context& context, const Csr<Index, Weight>& a, const double* degrees, double cap,
                       LazyVector<int32_t>& labels) {
    LazyVector<int32_t> members(a.n, 0), favourite(a.n, -1);
    for (int64_t x = 0; x < a.n; ++x) ++members[labels[x]];
    const int64_t size = std::max<int64_t>(kRowBlock, a.n / (4 * std::max(context.threads, 1)) + 1);
    parallel_blocks(context, a.n, size, [&](int64_t, int64_t begin, int64_t end) {
        Neighbourhood seen(a.n);
        for (int64_t x = begin; x < end; ++x) {
            if (members[labels[x]] != 1 || degrees[x] > cap) continue;
            seen.read(a, labels.data(), x);
            double most = 0.0;
            for (int32_t j : seen.clusters)
                if (seen.weight[j] > most || (seen.weight[j] == most && j < favourite[x])) most = seen.weight[j], favourite[x] = j;
        }
    });
    LazyVector<int32_t> open(a.n, -1);  // by favourite: the group that takes the next lone node
    LazyVector<double> volume(a.n, 0.0);
    int32_t isolated = -1;  // nodes without edges have no volume and make one group
    for (int64_t x = 0; x < a.n; ++x) {
        if (degrees[x] == 0.0) {
            if (isolated < 0) isolated = labels[x];
            labels[x] = isolated;
        }
        if (favourite[x] < 0) continue;
        int32_t& group = open[favourite[x]];
        if (group < 0 || volume[group] + degrees[x] > cap) {
            group = labels[x];
            volume[group] = degrees[x];
        } else {
            labels[x] = group;
            volume[group] += degrees[x];
        }
    }
}

// Group of every node, numbered 0.. in the order of their lowest nodes.
template <class Index, class Weight>
LazyVector<int32_t> group_nodes(Context& context, const Csr<Index, Weight>& a, const double* degrees, double cap,
                                int64_t max_passes) {
    if (a.n > std::numeric_limits<int32_t>::max()) throw InputError("aggregation is limited to 2^31 - 1 nodes");
    LazyVector<int32_t> labels(a.n);
    std::iota(labels.begin(), labels.end(), 0);
    double total = 0.0;
    for (int64_t x = 0; x < a.n; ++x) total += degrees[x];
    GroupPolicy policy(degrees, a.n, total, cap);
    LazyVector<uint8_t> active(a.n, 1);
    LazyVector<int32_t> stamp(a.n, 0);
    int32_t batch_number = 0;
    for (int64_t pass = 0; pass < max_passes; ++pass)
        if (sweep(context, a, labels.data(), a.n, policy, active, stamp, batch_number).moves * 200 < a.n) break;
    gather_lone_nodes(context, a, degrees, cap, labels);
    LazyVector<int32_t> name(a.n, -1);
    int32_t count = 0;
    for (int64_t x = 0; x < a.n; ++x) {
        int32_t& n = name[labels[x]];
        if (n < 0) n = count++;
        labels[x] = n;
    }
    return labels;
}

struct Quotient {
    std::vector<int64_t> indptr;
    LazyVector<int32_t> indices;
    LazyVector<double> data;
};

// Q = SᵀAS: summed weights between groups, with each group's inside weight as its loop. Rows come out sorted.
template <class Index, class Weight>
Quotient contract(Context& context, const Csr<Index, Weight>& a, const int32_t* groups, int64_t count) {
    std::vector<int64_t> start(count + 1, 0);
    for (int64_t x = 0; x < a.n; ++x) {
        if (groups[x] < 0 || groups[x] >= count) throw InputError("a group number is out of range");
        ++start[groups[x] + 1];
    }
    std::partial_sum(start.begin(), start.end(), start.begin());
    LazyVector<int64_t> member(a.n);
    std::vector<int64_t> fill(start.begin(), start.end() - 1);
    for (int64_t x = 0; x < a.n; ++x) member[fill[groups[x]]++] = x;

    // Few blocks, each with scratch space for all groups; rows do not depend on where the borders lie.
    const int64_t size = std::max<int64_t>(512, count / (8 * std::max(context.threads, 1)) + 1);
    const int64_t blocks = (count + size - 1) / size;
    std::vector<LazyVector<int32_t>> columns(blocks);
    std::vector<LazyVector<double>> values(blocks);
    Quotient q;
    q.indptr.assign(count + 1, 0);
    parallel_blocks(context, count, size, [&](int64_t block, int64_t begin, int64_t end) {
        LazyVector<double> sum(count, 0.0);
        LazyVector<uint8_t> seen(count, 0);
        std::vector<int32_t> touched;
        for (int64_t g = begin; g < end; ++g) {
            if ((g & 15) == 0) context.check();
            touched.clear();
            for (int64_t i = start[g]; i < start[g + 1]; ++i) {
                const auto r = a.row(member[i]);
                a.check_columns(r);
                for (int64_t p = r.begin; p < r.end; ++p) {
                    const int32_t h = groups[a.indices[p]];
                    if (!seen[h]) seen[h] = 1, touched.push_back(h);
                    sum[h] += a.weight(p);
                }
            }
            std::sort(touched.begin(), touched.end());
            for (int32_t h : touched) {
                columns[block].push_back(h);
                values[block].push_back(sum[h]);
                sum[h] = 0.0;
                seen[h] = 0;
            }
            q.indptr[g + 1] = static_cast<int64_t>(touched.size());
        }
    });
    std::partial_sum(q.indptr.begin(), q.indptr.end(), q.indptr.begin());
    q.indices.resize(q.indptr[count]);
    q.data.resize(q.indptr[count]);
    // Memory is taken where something is written and given back block by block, so that the quotient is not held twice.
    parallel_blocks(context, blocks, 1, [&](int64_t b, int64_t, int64_t) {
        std::copy(columns[b].begin(), columns[b].end(), q.indices.begin() + q.indptr[b * size]);
        LazyVector<int32_t>().swap(columns[b]);
        std::copy(values[b].begin(), values[b].end(), q.data.begin() + q.indptr[b * size]);
        LazyVector<double>().swap(values[b]);
    });
    return q;
}

}  // namespace corecut
