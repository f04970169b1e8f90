// The nearest points of queries, from cheap lower bounds of distances to exact ones.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "simd.hpp"

namespace corecut {

// The points with the smallest bounds that each query has met so far: at most `keep` of them after `shorten`, with room for as
// many again before. A bound that was turned away is at least `limit`.
struct Shortlists {
    int64_t queries, keep;
    float* bounds;     // IN/OUT: queries × 2·keep
    int32_t* points;   // IN/OUT: queries × 2·keep
    int32_t* counts;   // IN/OUT
    float* limits;     // IN/OUT: infinite at the beginning, or the largest bound that is of interest

    int64_t room() const { return 2 * keep; }
};

// Keep the smallest bounds of a query, of equal ones the lowest points, and turn away what is larger from now on.
inline void shorten(const Shortlists& lists, int64_t query, std::vector<std::pair<float, int32_t>>& scratch) {
    float* bounds = lists.bounds + query * lists.room();
    int32_t* points = lists.points + query * lists.room();
    const int64_t count = lists.counts[query];
    if (count <= lists.keep) return;
    scratch.resize(count);
    for (int64_t i = 0; i < count; ++i) scratch[i] = {bounds[i], points[i]};
    std::nth_element(scratch.begin(), scratch.begin() + lists.keep, scratch.end());
    // The smallest bound that goes is the smallest that may be turned away later.
    lists.limits[query] = std::min(lists.limits[query], scratch[lists.keep].first);
    for (int64_t i = 0; i < lists.keep; ++i) {
        bounds[i] = scratch[i].first;
        points[i] = scratch[i].second;
    }
    lists.counts[query] = static_cast<int32_t>(lists.keep);
}

// Offer the points first..first + count - 1 to `asking` queries: those that `which` names, or all. Their products with the points,
// -2⟨query, point⟩, are `count` numbers a row. The bound of a pair is term + product, plus a constant of the query left out here.
inline void offer_points(const float* products, const float* terms, int64_t count, int32_t first, const int32_t* which,
                         int64_t asking, const Shortlists& lists) {
    std::vector<std::pair<float, int32_t>> scratch;
    for (int64_t i = 0; i < asking; ++i) {
        const int64_t query = which == nullptr ? i : which[i];
        const float* row = products + i * count;
        for (int64_t done = 0; done < count;) {
            if (lists.counts[query] + kOffered > lists.room()) shorten(lists, query, scratch);
            done += take_below(row + done, terms + done, count - done, first + static_cast<int32_t>(done),
                               lists.limits[query], lists.bounds + query * lists.room(),
                               lists.points + query * lists.room(), lists.room(), lists.counts + query);
        }
    }
}

// Offer points to all queries, where rows are so short that their products are quicker made here than by a library. Points come
// in panels of kOffered, stored by coordinate, from the panel `first` on; what fills up the last one has infinite terms.
inline void offer_panels(const float* queries, int64_t width, const float* panels, const float* terms, int64_t count,
                         int64_t first, const Shortlists& lists) {
    const int64_t at_once = std::max<int64_t>(1, (int64_t{1} << 16) / (width * kOffered));  // panels that stay in the cache
    std::vector<std::pair<float, int32_t>> scratch;
    float values[kTogether][kOffered];
    for (int64_t begin = 0; begin < count; begin += at_once) {
        const int64_t end = std::min(count, begin + at_once);
        for (int64_t query = 0; query < lists.queries; query += kTogether) {
            const int64_t here = std::min(kTogether, lists.queries - query);
            const float* rows[kTogether];
            float limits[kTogether];
            bool below[kTogether];
            for (int64_t t = 0; t < kTogether; ++t) {
                rows[t] = queries + (query + std::min(t, here - 1)) * width;  // of the last few, one stands in for the missing
                limits[t] = lists.limits[query + std::min(t, here - 1)];
            }
            for (int64_t panel = begin; panel < end; ++panel) {
                panel_bounds(rows, width, panels + panel * width * kOffered, terms + panel * kOffered, limits, values, below);
                for (int64_t t = 0; t < here; ++t) {
                    if (!below[t]) continue;
                    const int64_t place = query + t;
                    if (lists.counts[place] + kOffered > lists.room()) shorten(lists, place, scratch);
                    limits[t] = lists.limits[place];
                    append_below(values[t], kOffered, static_cast<int32_t>((first + panel) * kOffered), limits[t],
                                 lists.bounds + place * lists.room(), lists.points + place * lists.room(),
                                 lists.counts + place);
                }
            }
        }
    }
}

// The `k` nearest of each query's shortlist by exact squared distances, nearest first and of equal ones the lowest point.
// A pair's bound plus the query's term, in units of `unit`, is at most its squared distance, so that a query is done as soon
// as the next bound is above its k-th distance. `certain` says whether that also holds for all that was turned away.
template <class Real>
void choose_nearest(const Real* points, const Real* queries, int64_t width, const int32_t* rows,
                    const Shortlists& lists, const double* query_terms, double unit, const int32_t* own, int64_t k,
                    int32_t* nearest, double* distances, uint8_t* certain) {
    std::vector<std::pair<float, int32_t>> order;
    std::vector<std::pair<double, int32_t>> best;  // a heap: the worst on top
    for (int64_t query = 0; query < lists.queries; ++query) {
        const int64_t count = lists.counts[query];
        order.resize(count);
        for (int64_t i = 0; i < count; ++i)
            order[i] = {lists.bounds[query * lists.room() + i], lists.points[query * lists.room() + i]};
        std::sort(order.begin(), order.end());
        best.clear();
        double worst = std::numeric_limits<double>::infinity();
        const auto squared = [&](float bound) { return unit * (static_cast<double>(bound) + query_terms[query]); };
        for (const auto& [bound, place] : order) {
            if (squared(bound) > worst) break;
            const int32_t point = rows == nullptr ? place : rows[place];
            if (own != nullptr && point == own[query]) continue;
            const double distance = squared_distance(queries + query * width, points + point * width, width, worst);
            const std::pair<double, int32_t> found{distance, point};
            if (static_cast<int64_t>(best.size()) < k) {
                best.push_back(found);
                std::push_heap(best.begin(), best.end());
            } else if (found < best.front()) {
                std::pop_heap(best.begin(), best.end());
                best.back() = found;
                std::push_heap(best.begin(), best.end());
            }
            if (static_cast<int64_t>(best.size()) == k) worst = best.front().first;
        }
        std::sort_heap(best.begin(), best.end());
        for (int64_t i = 0; i < k; ++i) {
            const bool there = i < static_cast<int64_t>(best.size());
            nearest[query * k + i] = there ? best[i].second : -1;
            distances[query * k + i] = there ? best[i].first : std::numeric_limits<double>::infinity();
        }
        const float limit = lists.limits[query];
        certain[query] = limit == std::numeric_limits<float>::infinity() || squared(limit) > worst;
    }
}

}  // namespace corecut
