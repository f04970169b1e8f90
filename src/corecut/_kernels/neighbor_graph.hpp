// The symmetrised graph of neighbour lists: A = (C + Cᵀ)/2, where C_xy counts how often x names y.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "memory.hpp"
#include "parallel.hpp"

namespace corecut {

struct NeighborGraph {
    std::vector<int64_t> indptr;
    LazyVector<int32_t> indices;
    LazyVector<double> weights;
};

// Who names a point: the points' numbers in rising order, those of point y from offsets[y] on.
struct Namers {
    std::vector<int64_t> offsets;
    LazyVector<int32_t> points;

    // `lists` are n rows of `count` numbers below n.
    Namers(Context& context, const int32_t* lists, int64_t n, int64_t count) : offsets(n + 2), points(n * count) {
        for (int64_t x = 0; x < n; ++x) {
            if (x % kRowBlock == 0) context.check();
            for (int64_t i = x * count; i < (x + 1) * count; ++i) {
                if (lists[i] < 0 || lists[i] >= n)
                    throw InputError("neighbour " + std::to_string(lists[i]) + " is out of range for " + std::to_string(n) +
                                     " points");
                ++offsets[lists[i] + 2];
            }
        }
        for (int64_t y = 0; y < n; ++y) offsets[y + 2] += offsets[y + 1];
        // Each offset moves on from its own beginning to the next one's.
        for (int64_t x = 0; x < n; ++x) {
            if (x % kRowBlock == 0) context.check();
            for (int64_t i = x * count; i < (x + 1) * count; ++i) points[offsets[lists[i] + 1]++] = static_cast<int32_t>(x);
        }
        offsets.pop_back();
    }

    // The lists themselves in rising order: by who names whom, sorted without a comparison.
    LazyVector<int32_t> sorted_lists(Context& context, int64_t count) const {
        const int64_t n = static_cast<int64_t>(offsets.size()) - 1;
        LazyVector<int32_t> lists(points.size());
        std::vector<int64_t> ends(n);
        for (int64_t x = 0; x < n; ++x) ends[x] = x * count;
        for (int64_t y = 0; y < n; ++y) {
            if (y % kRowBlock == 0) context.check();
            for (int64_t i = offsets[y]; i < offsets[y + 1]; ++i) lists[ends[points[i]]++] = static_cast<int32_t>(y);
        }
        return lists;
    }
};

inline NeighborGraph neighbor_graph(Context& context, const int32_t* lists, int64_t n, int64_t count) {
    constexpr int64_t rows = 512;  // of one task
    const Namers namers(context, lists, n, count);
    const LazyVector<int32_t> named = namers.sorted_lists(context, count);
    struct Part {
        LazyVector<int32_t> indices;
        LazyVector<double> weights;
    };
    std::vector<Part> parts((n + rows - 1) / rows);
    NeighborGraph graph{std::vector<int64_t>(n + 1), {}, {}};
    parallel_blocks(context, n, rows, [&](int64_t block, int64_t begin, int64_t end) {
        const int64_t most = (end - begin) * count + namers.offsets[end] - namers.offsets[begin];
        Part part;
        part.indices.resize(most);
        part.weights.resize(most);
        int64_t held = 0;
        for (int64_t x = begin; x < end; ++x) {
            const int32_t *forward = named.data() + x * count, *end_of_list = forward + count;
            const int32_t *back = namers.points.data() + namers.offsets[x],
                          *last = namers.points.data() + namers.offsets[x + 1];
            const int64_t before = held;
            while (forward != end_of_list || back != last) {
                const int32_t y = back == last || (forward != end_of_list && *forward < *back) ? *forward : *back;
                int64_t times = 0;
                for (; forward != end_of_list && *forward == y; ++forward) ++times;
                for (; back != last && *back == y; ++back) ++times;
                part.indices[held] = y;
                part.weights[held++] = 0.5 * static_cast<double>(times);
            }
            graph.indptr[x + 1] = held - before;
        }
        part.indices.resize(held);
        part.weights.resize(held);
        parts[block] = std::move(part);
    });
    for (int64_t x = 0; x < n; ++x) graph.indptr[x + 1] += graph.indptr[x];
    graph.indices.resize(graph.indptr[n]);
    graph.weights.resize(graph.indptr[n]);
    parallel_blocks(context, n, rows, [&](int64_t block, int64_t begin, int64_t) {
        const Part part = std::move(parts[block]);
        std::copy(part.indices.begin(), part.indices.end(), graph.indices.begin() + graph.indptr[begin]);
        std::copy(part.weights.begin(), part.weights.end(), graph.weights.begin() + graph.indptr[begin]);
    });
    return graph;
}

}  // namespace corecut
