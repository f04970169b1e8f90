// The best way to split each cluster in two: along its own second eigenvector.
//
// A cluster's graph is that of the edges inside it, with the degrees of the whole graph. A few Lanczos steps of ½(I + N) on it, with
// the direction D^½1 taken out, give vectors along which the nodes are put in order; the best border in that order is the split.
#pragma once

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "memory.hpp"
#include "objective.hpp"
#include "random.hpp"
#include "tridiagonal.hpp"

namespace corecut {

struct Splits {
    std::vector<double> gain;     // by cluster: kept₁ + kept₂ - kept of the best split; -infinity where there is none
    LazyVector<uint8_t> first;    // by node: whether it is in the first part of its cluster's split
    std::vector<double> inside;   // by cluster: the association of its two parts, one after the other
};

// One cluster's own graph, its nodes numbered 0, 1, ...
struct Inner {
    std::vector<int64_t> start;
    LazyVector<int32_t> column;
    LazyVector<double> weight;  // empty in a graph without weights
    std::vector<double> degree, size, loop;

    int64_t count() const { return static_cast<int64_t>(degree.size()); }

    // Call f(neighbour, weight) for the edges of node i to others of the cluster.
    template <class F>
    void each(int64_t i, F&& f) const {
        if (weight.empty()) {
            for (int64_t p = start[i]; p < start[i + 1]; ++p) f(column[p], 1.0);
        } else {
            for (int64_t p = start[i]; p < start[i + 1]; ++p) f(column[p], weight[p]);
        }
    }
};

// All nodes, cluster after cluster, and where each is among them.
struct ClusterMembers {
    std::vector<int64_t> start;
    LazyVector<int64_t> node;
    LazyVector<uint32_t> position;

    ClusterMembers(const int32_t* labels, int64_t n, int64_t k) : start(k + 1, 0), node(n), position(n) {
        if (n > int64_t{std::numeric_limits<uint32_t>::max()}) throw InputError("clusters of so many nodes cannot be split");
        for (int64_t x = 0; x < n; ++x) ++start[labels[x] + 1];
        std::partial_sum(start.begin(), start.end(), start.begin());
        std::vector<int64_t> fill(start.begin(), start.end() - 1);
        for (int64_t x = 0; x < n; ++x) {
            const int64_t next = fill[labels[x]]++;
            position[x] = static_cast<uint32_t>(next);
            node[next] = x;
        }
    }
};

// The nodes of a cluster lie anywhere in the graph: their rows are asked for ahead of time.
inline constexpr int64_t kSplitAhead = 8;

template <class Index, class Weight>
Inner inner_graph(const Csr<Index, Weight>& a, const double* degrees, const double* sizes, const ClusterMembers& members, int64_t cluster) {
    const int64_t first = members.start[cluster], end = members.start[cluster + 1], count = end - first;
    Inner in;
    in.start.resize(count + 1), in.degree.resize(count), in.size.resize(count), in.loop.resize(count);
    int64_t entries = 0;
    for (int64_t i = 0; i < count; ++i) entries += a.row(members.node[first + i]).size();
    in.column.resize(entries);
    if constexpr (Csr<Index, Weight>::weighted) in.weight.resize(entries);
    int64_t filled = 0;
    in.start[0] = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (i + kSplitAhead < count) {
            const int64_t soon = members.node[first + i + kSplitAhead];
            prefetch(&a.indices[a.row(soon).begin]);
            prefetch(&degrees[soon]);
            prefetch(&sizes[soon]);
        }
        const int64_t x = members.node[first + i];
        const auto r = a.row(x);
        a.check_columns(r);
        double loop = 0.0;
        for (int64_t p = r.begin; p < r.end; ++p) {
            const int64_t y = static_cast<int64_t>(a.indices[p]);
            const int64_t place = int64_t{members.position[y]} - first;
            if (y == x) loop += a.weight(p);
            // Written in any case, and kept where the node belongs to the cluster: half of all nodes may, a guess would fail.
            in.column[filled] = static_cast<int32_t>(place);
            if constexpr (Csr<Index, Weight>::weighted) in.weight[filled] = a.weight(p);
            filled += place >= 0 && place < count && y != x;
        }
        in.start[i + 1] = filled;
        in.degree[i] = degrees[x];
        in.size[i] = sizes[x];
        in.loop[i] = loop;
    }
    return in;
}

// Up to so many steps no Ritz value converges, and what is at right angles to the last two vectors is so to all.
inline constexpr int kFewSteps = 10;

// Returns `vectors` columns, one after the other, divided by √d: the coordinates by which nodes are put in order. They are those
// of A + (τ/n)·s sᵀ with degrees d + τ·s, τ a share of the mean degree: more of it for parts of like size.
inline std::vector<std::vector<double>> second_vectors(Context& context, const Inner& in, double regularization, int steps,
                                                       int vectors, Random random) {
    const int64_t n = in.count();
    std::vector<double> root(n), trivial(n);
    double total = 0.0;
    const double volume = std::accumulate(in.degree.begin(), in.degree.end(), 0.0);
    const double nodes = std::max(std::accumulate(in.size.begin(), in.size.end(), 0.0), 1e-300);
    // In a unit in which the mean degree is about 1: roots are then the same for weights that differ by a power of two.
    const int exponent = volume > 0 ? -std::ilogb(volume / static_cast<double>(n)) : 0;
    // The unit in two factors, of which neither overflows, nor what it is multiplied by.
    const double half = std::ldexp(1.0, exponent / 2), rest = std::ldexp(1.0, exponent - exponent / 2);
    const double tau = regularization * (volume * half * rest) / nodes;
    for (int64_t i = 0; i < n; ++i) {
        const double degree = in.degree[i] * half * rest + tau * in.size[i];
        root[i] = degree > 0 ? std::sqrt(degree) : 1.0;
        total += root[i] * root[i];
    }
    for (int64_t i = 0; i < n; ++i) trivial[i] = root[i] / std::sqrt(total);
    // Four sums side by side: one alone waits for each addition before the next.
    const auto dot = [&](const std::vector<double>& x, const std::vector<double>& y) {
        double sum[4] = {};
        int64_t i = 0;
        for (; i + 4 <= n; i += 4)
            for (int64_t lane = 0; lane < 4; ++lane) sum[lane] += x[i + lane] * y[i + lane];
        for (; i < n; ++i) sum[0] += x[i] * y[i];
        return (sum[0] + sum[1]) + (sum[2] + sum[3]);
    };
    const auto take_out = [&](std::vector<double>& x, const std::vector<double>& direction) {
        const double share = dot(x, direction);
        for (int64_t i = 0; i < n; ++i) x[i] -= share * direction[i];
    };
    std::vector<std::vector<double>> basis;
    std::vector<double> diagonal, beside, y(n);
    for (double& value : y) value = 2 * random.uniform() - 1;
    take_out(y, trivial);
    double length = std::sqrt(dot(y, y));
    while (length > 1e-10 && static_cast<int64_t>(basis.size()) < std::min<int64_t>(steps, n - 1)) {
        context.check();
        if (!basis.empty()) beside.push_back(length);
        for (double& value : y) value /= length;
        basis.push_back(y);
        const std::vector<double>& last = basis.back();
        std::vector<double> scaled(n);
        double load = 0.0;
        for (int64_t i = 0; i < n; ++i) {
            scaled[i] = last[i] / root[i];
            load += in.size[i] * scaled[i];
        }
        load *= tau / nodes;
        for (int64_t i = 0; i < n; ++i) {
            double sum = in.loop[i] * scaled[i];
            in.each(i, [&](int32_t j, double weight) { sum += weight * scaled[j]; });
            y[i] = 0.5 * (last[i] + (sum * half * rest + load * in.size[i]) / root[i]);
        }
        diagonal.push_back(dot(last, y));
        // The last vector first: there is most of it in y, and with it comes back what it still has of all others. Taken out
        // before, that would be left, and grow tenfold in every step where eigenvalues lie close together.
        const size_t earliest = steps > kFewSteps || basis.size() < 2 ? 0 : basis.size() - 2;
        for (size_t b = basis.size(); b > earliest; --b) take_out(y, basis[b - 1]);
        take_out(y, trivial);
        length = std::sqrt(dot(y, y));
        if (basis.size() % 10 == 0) {
            // Good enough when the residual is small beside the distance of the eigenvalue from 1.
            const Tridiagonal projected(diagonal, beside);
            const std::vector<double> top = projected.largest(1);
            const double residual = length * std::abs(projected.vectors(top)[0].back());
            if (residual < 0.02 * (1.0 - top[0])) break;
        }
    }
    std::vector<std::vector<double>> found;
    if (basis.empty()) return found;
    const Tridiagonal projected(diagonal, beside);
    const std::vector<double> values = projected.largest(static_cast<int>(std::min<size_t>(vectors, basis.size())));
    for (const std::vector<double>& ritz : projected.vectors(values)) {
        std::vector<double> sum(n, 0.0);
        for (size_t s = 0; s < basis.size(); ++s) {
            const double share = ritz[s];
            for (int64_t i = 0; i < n; ++i) sum[i] += share * basis[s][i];
        }
        for (int64_t i = 0; i < n; ++i) sum[i] /= root[i];
        found.push_back(std::move(sum));
    }
    return found;
}

// From so many values on they are sorted by counting their bits, eleven at a time, instead of by comparisons.
inline constexpr size_t kSortByCounting = 1024;

// The order of values from low to high, those that are equal as they were. Values are sorted together with their places, so
// that no comparison looks them up.
inline std::vector<int32_t> rising_order(const std::vector<double>& values) {
    const size_t n = values.size();
    std::vector<int32_t> order(n);
    if (n < kSortByCounting) {
        std::vector<std::pair<double, int32_t>> keys(n);
        for (size_t i = 0; i < n; ++i) keys[i] = {values[i], static_cast<int32_t>(i)};
        std::sort(keys.begin(), keys.end());
        for (size_t i = 0; i < n; ++i) order[i] = keys[i].second;
        return order;
    }
    struct Key {
        uint64_t bits;
        int32_t place;
    };
    std::vector<Key> keys(n), other(n);
    constexpr int kDigits = 6, kBits = 11;
    std::vector<uint32_t> count(kDigits << kBits, 0);
    for (size_t i = 0; i < n; ++i) {
        // The bits of a number as an integer that rises with it; -0.0 is 0.0.
        uint64_t bits = std::bit_cast<uint64_t>(values[i] + 0.0);
        bits ^= bits >> 63 ? ~uint64_t{0} : uint64_t{1} << 63;
        keys[i] = {bits, static_cast<int32_t>(i)};
        for (int d = 0; d < kDigits; ++d) ++count[(d << kBits) + (bits >> (d * kBits) & ((1 << kBits) - 1))];
    }
    for (int d = 0; d < kDigits; ++d) {
        uint32_t* start = &count[d << kBits];
        uint32_t sum = 0;
        for (int v = 0; v < 1 << kBits; ++v) sum += std::exchange(start[v], sum);
        for (const Key& key : keys) other[start[key.bits >> (d * kBits) & ((1 << kBits) - 1)]++] = key;
        keys.swap(other);
    }
    for (size_t i = 0; i < n; ++i) order[i] = keys[i].place;
    return order;
}

struct Border {
    double gain = -std::numeric_limits<double>::infinity();
    int64_t prefix = 0;
    bool head = true;  // whether the first part is what comes before the border
    double before = 0.0, after = 0.0;  // association of what comes before the border, and behind it
};

// What the sizes of the two parts may be: both, or only the first (the second then has the rest).
struct PartSizes {
    double low, high;
    bool both;

    bool allows(double size) const { return size >= low && size <= high; }
};

// The best border along an order of a cluster's nodes, with parts of the allowed sizes.
inline Border best_border(const Inner& in, const std::vector<int32_t>& order, const Objective& f, const PartSizes& sizes) {
    const int64_t n = in.count();
    std::vector<int32_t> rank(n);
    for (int64_t i = 0; i < n; ++i) rank[order[i]] = static_cast<int32_t>(i);
    // Sums of both parts for every border, each added up from its own end: what one subtraction after the other would
    // leave of a part without volume is rounding, not zero.
    std::vector<Part> head(n + 1), tail(n + 1);
    std::vector<double> behind(n);
    for (int64_t i = 0; i < n; ++i) {
        const int32_t x = order[i];
        double earlier = 0, later = 0;
        in.each(x, [&](int32_t j, double weight) {
            const double before = rank[j] < i ? weight : 0.0;
            earlier += before, later += weight - before;
        });
        head[i + 1] = head[i].with(2 * earlier + in.loop[x], in.degree[x], in.size[x]);
        behind[i] = 2 * later + in.loop[x];
    }
    for (int64_t i = n - 1; i >= 0; --i) tail[i] = tail[i + 1].with(behind[i], in.degree[order[i]], in.size[order[i]]);
    Border best;
    const double whole = head[n].kept(f);
    for (int64_t i = 1; i < n; ++i) {
        if (!(head[i].volume > 0) || !(tail[i].volume > 0)) continue;
        const bool first = sizes.allows(head[i].size), last = sizes.allows(tail[i].size);
        if (sizes.both ? !(first && last) : !(first || last)) continue;
        const double gain = head[i].kept(f) + tail[i].kept(f) - whole;
        if (gain > best.gain) best = {gain, i, first, head[i].association, tail[i].association};
    }
    return best;
}

// wanted says which clusters to look at, low and high how large the parts of each may be (`both` of them, or the first). One pass over the edges inside them, and `steps` more over their own graphs.
template <class Index, class Weight>
Splits split_clusters(Context& context, const Csr<Index, Weight>& a, const double* degrees, const double* sizes,
                      const int32_t* labels, int64_t k, const uint8_t* wanted, const Objective& f, const double* low,
                      const double* high, bool both, double regularization, int steps, int vectors, uint64_t seed) {
    const ClusterMembers members(labels, a.n, k);
    Splits result;
    result.gain.assign(k, -std::numeric_limits<double>::infinity());
    result.first.assign(a.n, 0);
    result.inside.assign(2 * k, 0.0);
    parallel_blocks(context, k, 1, [&](int64_t j, int64_t, int64_t) {
        const int64_t count = members.start[j + 1] - members.start[j];
        if (!wanted[j] || count < 2) return;
        const Inner in = inner_graph(a, degrees, sizes, members, j);
        std::vector<int32_t> best_order;
        Border best;
        for (const auto& column : second_vectors(context, in, regularization, steps, vectors, Random(seed, static_cast<uint64_t>(j)))) {
            std::vector<int32_t> order = rising_order(column);
            const Border found = best_border(in, order, f, {low[j], high[j], both});
            if (found.gain > best.gain) best = found, best_order = std::move(order);
        }
        result.gain[j] = best.gain;
        if (best_order.empty()) return;
        result.inside[2 * j] = best.before, result.inside[2 * j + 1] = best.after;
        for (int64_t i = 0; i < count; ++i) result.first[members.node[members.start[j] + best_order[i]]] = (i < best.prefix) == best.head;
    });
    return result;
}

}  // namespace corecut
