// The nearest points of queries by a tree of boxes: what lies in a box further away than the k-th point found is not looked at.
//
// Points are ordered by halving them again and again where they vary most. Every kOffered of that order are a panel, every
// kBoxes panels a group with one box around each, every kBoxes groups the next group, up to a single one. Boxes and panels are
// compared in float32 first, as offsets from the middle of their group, whose rounding errors are small beside its size:
//
//     ‖q̃ - ỹ‖ ≤ ‖q - y‖·(1 + 2u) + 2u·r,     u = 2^-24,
//
// for a point y of a group of radius r, a query q, and their rounded offsets. What is beyond the k-th distance even so is
// passed over; the rest is compared in float64 in the points' own coordinates, as when all pairs are compared.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "memory.hpp"
#include "parallel.hpp"
#include "simd.hpp"

namespace corecut {

// The k nearest points so far; of equally near ones those with the lowest numbers. A few are kept in order. Many,
// which that would move about too often, are gathered, with more than k at times, of which the farthest are dropped now and then.
class Nearest {
   public:
    using Found = std::pair<double, int32_t>;

    // `gathered` is scratch space. The results are there after `finish`.
    Nearest(int64_t k, double* distances, int32_t* numbers, std::vector<Found>& gathered)
        : k_(k), full_(k), distances_(distances), numbers_(numbers), gathered_(gathered) {
        std::fill_n(distances, k, std::numeric_limits<double>::infinity());
        std::fill_n(numbers, k, -1);
        gathered_.clear();
    }

    // No point further away is among the k nearest.
    double limit() const { return limit_; }

    // Are k equal points with lower numbers found?
    bool crowded(int32_t number) const { return limit_ == 0.0 && number > last_; }

    void offer(double distance, int32_t number) {
        if (distance > limit_ || (distance == limit_ && number > last_)) return;
        if (k_ <= kInOrder) {
            insert(distance, number);
        } else {
            gathered_.emplace_back(distance, number);
            if (static_cast<int64_t>(gathered_.size()) == full_) drop();
        }
    }

    void finish() {
        if (static_cast<int64_t>(gathered_.size()) > k_) drop();
        std::sort(gathered_.begin(), gathered_.end());
        for (size_t i = 0; i < gathered_.size(); ++i) distances_[i] = gathered_[i].first, numbers_[i] = gathered_[i].second;
    }

   private:
    static constexpr int64_t kInOrder = 128;  // about where it begins to pay (measured)

    void insert(double distance, int32_t number) {
        int64_t place = std::min(held_, k_ - 1);
        const auto later = [&](int64_t i) {
            return distances_[i] > distance || (distances_[i] == distance && numbers_[i] > number);
        };
        // From behind: what is found late is seldom among the nearest.
        for (; place > 0 && later(place - 1); --place) {
            distances_[place] = distances_[place - 1];
            numbers_[place] = numbers_[place - 1];
        }
        distances_[place] = distance;
        numbers_[place] = number;
        held_ = std::min(held_ + 1, k_);
        if (held_ == k_) limit_ = distances_[k_ - 1], last_ = numbers_[k_ - 1];
    }

    void drop() {
        std::nth_element(gathered_.begin(), gathered_.begin() + (k_ - 1), gathered_.end());
        gathered_.resize(k_);
        limit_ = gathered_.back().first, last_ = gathered_.back().second;
        full_ = k_ + k_ / 2;
    }

    int64_t k_, full_, held_ = 0;
    double* distances_;
    int32_t* numbers_;
    std::vector<Found>& gathered_;
    double limit_ = std::numeric_limits<double>::infinity();
    int32_t last_ = std::numeric_limits<int32_t>::max();
};

template <class Real>
class BoxTree {
   public:
    // `points` are n finite rows of `width` numbers, whose squares are finite too; they are copied.
    BoxTree(Context& context, const Real* points, int64_t n, int64_t width) : n_(n), width_(width), order_(n) {
        for (int64_t i = 0; i < n; ++i) order_[i] = static_cast<int32_t>(i);
        sort_points(context, points);
        Boxes boxes = fill_panels(context, points);
        scale_ = scale_of(boxes);
        levels_.push_back(groups_of(boxes));
        fill_offsets(context, levels_.front());
        while (boxes.count > kBoxes) {
            boxes = around_groups(boxes);
            levels_.push_back(groups_of(boxes));
        }
    }

    int64_t size() const { return n_; }
    int64_t width() const { return width_; }

    // The points in the order of the tree: neighbours in it are near each other.
    const std::vector<int32_t>& order() const { return order_; }

    // Find the k nearest points of `count` queries. With `own`, query i is the point own[i], which is not its own neighbour,
    // and row own[i] of `queries` and of the results belongs to it. Returns how many panels were looked at.
    int64_t search(Context& context, const Real* queries, const int32_t* own, int64_t count, int64_t k, int32_t* nearest,
                   double* squares) const {
        std::atomic<int64_t> looked{0};
        parallel_blocks(context, count, kQueries, [&](int64_t, int64_t begin, int64_t end) {
            std::vector<double> query(width_);
            std::vector<float> moved(width_);
            std::vector<Nearest::Found> gathered;
            int64_t panels = 0;
            for (int64_t i = begin; i < end; ++i) {
                const int64_t row = own == nullptr ? i : own[i];
                std::copy_n(queries + row * width_, width_, query.begin());
                Visit visit{query.data(), moved.data(), own == nullptr ? -1 : own[i],
                            Nearest(k, squares + row * k, nearest + row * k, gathered)};
                look_into(static_cast<int64_t>(levels_.size()) - 1, 0, visit);
                visit.found.finish();
                panels += visit.looked;
            }
            looked.fetch_add(panels, std::memory_order_relaxed);
        });
        return looked.load();
    }

   private:
    static constexpr int64_t kQueries = 64;  // queries of one task
    static constexpr int64_t kVaried = 256;  // points that tell where a part varies most

    // What surrounds panels or groups, row by row, and the lowest point in each.
    struct Boxes {
        int64_t count;
        std::vector<Real> lows, highs;
        std::vector<int32_t> lowest;

        Boxes(int64_t boxes, int64_t width) : count(boxes), lows(boxes * width), highs(boxes * width), lowest(boxes) {}
    };

    // Groups of boxes. Offsets are taken from the middle of a group, and no point in it is further away than its radius, in
    // units of the tree. Of every group and coordinate kBoxes lowest offsets, then the highest; and the lowest point of every
    // box.
    struct Level {
        int64_t count;
        std::vector<double> middles, radii;
        LazyVector<float> borders;
        std::vector<int32_t> lowest;
    };

    // A query on its way through the tree.
    struct Visit {
        const double* query;
        float* moved;  // its offset from the middle of the group it is in
        int32_t own;
        Nearest found;
        int64_t looked = 0;
    };

    int64_t panels() const { return (n_ + kOffered - 1) / kOffered; }

    // Halve parts at borders of boxes, so that a box holds what was left together.
    void sort_points(Context& context, const Real* points) {
        std::vector<std::pair<int64_t, int64_t>> parts{{0, n_}}, next;
        while (!parts.empty()) {
            std::vector<int64_t> middles(parts.size());
            parallel_blocks(context, static_cast<int64_t>(parts.size()), 1, [&](int64_t part, int64_t, int64_t) {
                middles[part] = halve(points, parts[part].first, parts[part].second);
            });
            next.clear();
            for (size_t part = 0; part < parts.size(); ++part)
                for (const auto& half :
                     {std::pair{parts[part].first, middles[part]}, std::pair{middles[part], parts[part].second}})
                    if (half.second - half.first > kOffered &&
                        half.second - half.first < parts[part].second - parts[part].first)
                        next.push_back(half);
            parts.swap(next);
        }
    }

    int64_t halve(const Real* points, int64_t begin, int64_t end) {
        const int64_t size = end - begin;
        if (size <= kOffered) return end;
        int64_t box = kOffered;
        while (box * kBoxes < size) box *= kBoxes;
        const int64_t middle = begin + (size + 2 * box - 1) / (2 * box) * box;
        const int64_t along = widest(points, begin, end);
        std::vector<std::pair<Real, int32_t>> values(size);
        for (int64_t i = 0; i < size; ++i) values[i] = {points[int64_t{order_[begin + i]} * width_ + along], order_[begin + i]};
        std::nth_element(values.begin(), values.begin() + (middle - begin), values.end());
        for (int64_t i = 0; i < size; ++i) order_[begin + i] = values[i].second;
        return middle;
    }

    // The coordinate of the greatest variance, by some of the points.
    int64_t widest(const Real* points, int64_t begin, int64_t end) const {
        const int64_t step = std::max<int64_t>(1, (end - begin) / kVaried);
        std::vector<double> sums(width_), squares(width_);
        const Real* first = points + int64_t{order_[begin]} * width_;
        int64_t count = 0;
        for (int64_t i = begin; i < end; i += step, ++count) {
            const Real* x = points + int64_t{order_[i]} * width_;
            for (int64_t c = 0; c < width_; ++c) {
                const double moved = static_cast<double>(x[c]) - static_cast<double>(first[c]);
                sums[c] += moved;
                squares[c] += moved * moved;
            }
        }
        int64_t best = 0;
        double most = -1.0;
        for (int64_t c = 0; c < width_; ++c) {
            const double variance = squares[c] - sums[c] * sums[c] / static_cast<double>(count);
            if (variance > most) most = variance, best = c;
        }
        return best;
    }

    // Fill the panels, and return the boxes around them.
    Boxes fill_panels(Context& context, const Real* points) {
        Boxes boxes(panels(), width_);
        panels_.resize(boxes.count * width_ * kOffered);
        parallel_blocks(context, boxes.count, kQueries, [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t panel = begin; panel < end; ++panel) {
                const int64_t first = panel * kOffered, size = std::min(kOffered, n_ - first);
                Real* to = panels_.data() + panel * width_ * kOffered;
                for (int64_t i = 0; i < kOffered; ++i) {
                    // What fills up the last panel is not asked for.
                    const Real* x = points + int64_t{order_[first + std::min(i, size - 1)]} * width_;
                    for (int64_t c = 0; c < width_; ++c) to[c * kOffered + i] = x[c];
                }
                for (int64_t c = 0; c < width_; ++c) {
                    const auto [low, high] = std::minmax_element(to + c * kOffered, to + (c + 1) * kOffered);
                    boxes.lows[panel * width_ + c] = *low;
                    boxes.highs[panel * width_ + c] = *high;
                }
                boxes.lowest[panel] = *std::min_element(order_.begin() + first, order_.begin() + first + size);
            }
        });
        return boxes;
    }

    // A power of two that makes the longest side of all boxes together about 1: its squares are float32 numbers.
    double scale_of(const Boxes& boxes) const {
        double longest = 0.0;
        for (int64_t c = 0; c < width_; ++c) {
            double low = boxes.lows[c], high = boxes.highs[c];
            for (int64_t box = 1; box < boxes.count; ++box) {
                low = std::min(low, static_cast<double>(boxes.lows[box * width_ + c]));
                high = std::max(high, static_cast<double>(boxes.highs[box * width_ + c]));
            }
            longest = std::max(longest, high - low);
        }
        return longest > 0.0 ? std::ldexp(1.0, -std::ilogb(longest)) : 1.0;
    }

    float offset(Real value, double middle) const { return static_cast<float>((static_cast<double>(value) - middle) * scale_); }

    Level groups_of(const Boxes& boxes) const {
        const int64_t groups = (boxes.count + kBoxes - 1) / kBoxes;
        Level level{boxes.count, std::vector<double>(groups * width_), std::vector<double>(groups),
                    LazyVector<float>(groups * 2 * kBoxes * width_), boxes.lowest};
        for (int64_t group = 0; group < groups; ++group) {
            const int64_t first = group * kBoxes, end = std::min(boxes.count, first + kBoxes);
            double square = 0.0;
            for (int64_t c = 0; c < width_; ++c) {
                double low = boxes.lows[first * width_ + c], high = boxes.highs[first * width_ + c];
                for (int64_t box = first + 1; box < end; ++box) {
                    low = std::min(low, static_cast<double>(boxes.lows[box * width_ + c]));
                    high = std::max(high, static_cast<double>(boxes.highs[box * width_ + c]));
                }
                const double middle = low + 0.5 * (high - low), half = scale_ * std::max(high - middle, middle - low);
                level.middles[group * width_ + c] = middle;
                square += half * half;
                float* to = level.borders.data() + (group * width_ + c) * 2 * kBoxes;
                for (int64_t i = 0; i < kBoxes; ++i) {
                    // What fills up the last group is not asked for.
                    const int64_t box = std::min(first + i, end - 1);
                    to[i] = offset(boxes.lows[box * width_ + c], middle);
                    to[kBoxes + i] = offset(boxes.highs[box * width_ + c], middle);
                }
            }
            level.radii[group] = std::sqrt(square);
        }
        return level;
    }

    void fill_offsets(Context& context, const Level& level) {
        offsets_.resize(panels_.size());
        parallel_blocks(context, level.count, kQueries, [&](int64_t, int64_t begin, int64_t end) {
            for (int64_t panel = begin; panel < end; ++panel)
                for (int64_t c = 0; c < width_; ++c) {
                    const double middle = level.middles[panel / kBoxes * width_ + c];
                    const int64_t first = (panel * width_ + c) * kOffered;
                    for (int64_t i = first; i < first + kOffered; ++i) offsets_[i] = offset(panels_[i], middle);
                }
        });
    }

    Boxes around_groups(const Boxes& inner) const {
        Boxes boxes((inner.count + kBoxes - 1) / kBoxes, width_);
        for (int64_t box = 0; box < boxes.count; ++box) {
            const int64_t first = box * kBoxes, end = std::min(inner.count, first + kBoxes);
            Real *lows = boxes.lows.data() + box * width_, *highs = boxes.highs.data() + box * width_;
            std::copy_n(inner.lows.data() + first * width_, width_, lows);
            std::copy_n(inner.highs.data() + first * width_, width_, highs);
            for (int64_t i = (first + 1) * width_; i < end * width_; ++i) {
                lows[i % width_] = std::min(lows[i % width_], inner.lows[i]);
                highs[i % width_] = std::max(highs[i % width_], inner.highs[i]);
            }
            boxes.lowest[box] = *std::min_element(inner.lowest.begin() + first, inner.lowest.begin() + end);
        }
        return boxes;
    }

    // What the float32 square of a distance within a group may come to, if the true one is at most `limit`: the errors of both
    // offsets as above, of the squares and their sum, and of numbers too small for float32.
    float beyond(double limit, double radius) const {
        const double length = std::sqrt(limit) * scale_ * (1.0 + 0x1p-22) + 0x1p-21 * radius + 1e-17;
        const double square = length * length * (1.0 + static_cast<double>(width_ + 8) * 0x1p-23);
        return square < std::numeric_limits<float>::max() ? static_cast<float>(square) : std::numeric_limits<float>::infinity();
    }

    // Look into the boxes of a group, the nearest first and of equally near ones that with the lowest point.
    void look_into(int64_t height, int64_t group, Visit& visit) const {
        const Level& level = levels_[height];
        const int64_t first = group * kBoxes;
        double known = visit.found.limit();
        float limit = beyond(known, level.radii[group]), distances[kBoxes];
        offsets_from(visit.query, level.middles.data() + group * width_, scale_, width_, visit.moved);
        box_distances(visit.moved, width_, level.borders.data() + first * 2 * width_, distances);
        struct Way {
            float distance;
            int32_t lowest;
            int64_t box;
        } ways[kBoxes];
        int64_t open = 0;
        for (int64_t i = 0, size = std::min(kBoxes, level.count - first); i < size; ++i) {
            if (distances[i] > limit) continue;
            const Way way{distances[i], level.lowest[first + i], first + i};
            int64_t place = open++;
            const auto later = [&](const Way& other) {
                return other.distance > way.distance || (other.distance == way.distance && other.lowest > way.lowest);
            };
            for (; place > 0 && later(ways[place - 1]); --place) ways[place] = ways[place - 1];
            ways[place] = way;
        }
        for (int64_t i = 0; i < open; ++i) {
            if (visit.found.limit() < known) {
                known = visit.found.limit();
                limit = beyond(known, level.radii[group]);
            }
            if (ways[i].distance > limit) return;
            if (visit.found.crowded(ways[i].lowest)) continue;
            if (height > 0) {
                look_into(height - 1, ways[i].box, visit);
            } else {
                look_at(ways[i].box, limit, visit);
            }
        }
    }

    // Offer the points of a panel whose group the query has been moved to.
    void look_at(int64_t panel, float limit, Visit& visit) const {
        ++visit.looked;
        const int64_t place = panel * width_ * kOffered;
        if (!any_within(visit.moved, width_, offsets_.data() + place, limit)) return;
        double distances[kOffered];
        panel_distances(visit.query, width_, panels_.data() + place, distances);
        const int64_t first = panel * kOffered, size = std::min(kOffered, n_ - first);
        for (int64_t i = 0; i < size; ++i)
            if (distances[i] <= visit.found.limit() && order_[first + i] != visit.own)
                visit.found.offer(distances[i], order_[first + i]);
    }

    int64_t n_, width_;
    double scale_ = 1.0;
    std::vector<int32_t> order_;
    LazyVector<Real> panels_;    // by panel, then by coordinate
    LazyVector<float> offsets_;  // the same, from the middles of the groups
    std::vector<Level> levels_;  // the boxes of panels first
};

}  // namespace corecut
