#include "simd.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

namespace corecut {

CORECUT_CLONES void axpy(int64_t width, float a, const float* x, float* y) {
    for (int64_t c = 0; c < width; ++c) y[c] += a * x[c];
}

inline constexpr int64_t kWide = 16;

// kLanes, or kWide, numbers in one register, or as many registers as it takes. The compilers' own vector types are needed here:
// their vectorisers do not find out by themselves that the sums fit into registers.
#if defined(__GNUC__) || defined(__clang__)
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));
using Wide = float __attribute__((vector_size(kWide * sizeof(float))));
using Doubles = double __attribute__((vector_size(kLanes * sizeof(double))));

[[gnu::always_inline]] inline void load(const double* from, Doubles& to) { std::memcpy(&to, from, sizeof to); }
[[gnu::always_inline]] inline void load(const float* from, Doubles& to) {
    Lanes narrow;
    std::memcpy(&narrow, from, sizeof narrow);
    to = __builtin_convertvector(narrow, Doubles);
}
[[gnu::always_inline]] inline void raise_to(const Wide& other, Wide& value) { value = value > other ? value : other; }
#else
template <class Real, int64_t Count>
struct Numbers {
    Real values[Count];
    Real operator[](int64_t t) const { return values[t]; }
    Numbers& operator+=(const Numbers& other) {
        for (int64_t t = 0; t < Count; ++t) values[t] += other.values[t];
        return *this;
    }
    friend Numbers operator*(Real a, Numbers b) {
        for (Real& value : b.values) value *= a;
        return b;
    }
    friend Numbers operator*(Numbers a, const Numbers& b) {
        for (int64_t t = 0; t < Count; ++t) a.values[t] *= b.values[t];
        return a;
    }
    friend Numbers operator-(Real a, Numbers b) {
        for (Real& value : b.values) value = a - value;
        return b;
    }
    friend Numbers operator-(Numbers a, Real b) {
        for (Real& value : a.values) value -= b;
        return a;
    }
};
using Lanes = Numbers<float, kLanes>;
using Wide = Numbers<float, kWide>;
using Doubles = Numbers<double, kLanes>;

template <class Real>
void load(const Real* from, Doubles& to) {
    std::copy_n(from, kLanes, to.values);
}
inline void raise_to(const Wide& other, Wide& value) {
    for (int64_t t = 0; t < kWide; ++t) value.values[t] = std::max(value.values[t], other.values[t]);
}
#endif

CORECUT_CLONES void offer_centres(const float* rows, const float* norms, const float* nearest, const float* mass, int64_t count,
                                  int64_t width, const float* centres, const float* centre_norms, float* reduced,
                                  double* cost) {
    constexpr int64_t together = 4;  // rows at a time: additions to one sum would wait for each other
    for (int64_t begin = 0; begin < count; begin += together) {
        const int64_t here = std::min(together, count - begin);
        // Of the last few rows, one stands in for those that are missing.
        const float* x[together];
        for (int64_t i = 0; i < together; ++i) x[i] = rows + (begin + std::min(i, here - 1)) * width;
        Lanes sums[together] = {};
        for (int64_t c = 0; c < width; ++c) {
            Lanes centre;
            std::memcpy(&centre, centres + c * kLanes, sizeof centre);
            for (int64_t i = 0; i < together; ++i) sums[i] += x[i][c] * centre;
        }
        float added[kLanes] = {};
        for (int64_t i = 0; i < here; ++i) {
            const int64_t row = begin + i;
            const float norm = norms[row], most = nearest[row], weight = mass[row];
            float distances[kLanes];
            for (int64_t t = 0; t < kLanes; ++t) {
                const float distance = norm + centre_norms[t] - 2.0f * sums[i][t];
                const float positive = distance > 0.0f ? distance : 0.0f;
                distances[t] = positive < most ? positive : most;
            }
            for (int64_t t = 0; t < kLanes; ++t) added[t] += weight * distances[t];
            std::memcpy(reduced + row * kLanes, distances, sizeof distances);
        }
        for (int64_t t = 0; t < kLanes; ++t) cost[t] += static_cast<double>(added[t]);
    }
}

void append_below(const float* values, int64_t count, int32_t first, float limit, float* bounds, int32_t* points,
                  int32_t* held) {
    int32_t here = *held;
    for (int64_t i = 0; i < count; ++i) {  // without branches: which ones are below cannot be foreseen
        bounds[here] = values[i];
        points[here] = first + static_cast<int32_t>(i);
        here += values[i] < limit;
    }
    *held = here;
}

CORECUT_CLONES void panel_bounds(const float* const* queries, int64_t width, const float* panel, const float* terms,
                                 const float* limits, float (*values)[kOffered], bool* below) {
    constexpr int64_t parts = kOffered / kWide;
    Wide sums[kTogether][parts];
    for (int64_t t = 0; t < kTogether; ++t) std::memcpy(sums[t], terms, sizeof sums[t]);
    for (int64_t c = 0; c < width; ++c) {
        Wide points[parts];
        std::memcpy(points, panel + c * kOffered, sizeof points);
        for (int64_t t = 0; t < kTogether; ++t)
            for (int64_t part = 0; part < parts; ++part) sums[t][part] += queries[t][c] * points[part];
    }
    std::memcpy(values, sums, sizeof sums);
    for (int64_t t = 0; t < kTogether; ++t) {
        int32_t any = 0;
        for (int64_t i = 0; i < kOffered; ++i) any |= values[t][i] < limits[t];
        below[t] = any != 0;
    }
}

CORECUT_CLONES int64_t take_below(const float* products, const float* terms, int64_t count, int32_t first, float limit,
                                  float* bounds, int32_t* points, int64_t room, int32_t* held) {
    int64_t done = 0;
    int32_t here = *held;
    while (done < count && here + kOffered <= room) {
        const int64_t size = std::min(kOffered, count - done);
        float values[kOffered];
        int32_t below = 0;
        if (size == kOffered) {  // a fixed length, which compilers unroll; nearly always nothing is below
            for (int64_t i = 0; i < kOffered; ++i) values[i] = terms[done + i] + products[done + i];
            for (int64_t i = 0; i < kOffered; ++i) below |= values[i] < limit;
        } else {
            for (int64_t i = 0; i < size; ++i) values[i] = terms[done + i] + products[done + i];
            below = 1;
        }
        if (below) append_below(values, size, first + static_cast<int32_t>(done), limit, bounds, points, &here);
        done += size;
    }
    *held = here;
    return done;
}

CORECUT_CLONES void offsets_from(const double* query, const double* middle, double scale, int64_t width, float* moved) {
    for (int64_t c = 0; c < width; ++c) moved[c] = static_cast<float>((query[c] - middle[c]) * scale);
}

// Written out, and without arrays of registers, which compilers would keep in memory. Even and odd coordinates have sums of
// their own: additions to one sum would wait for each other.
CORECUT_CLONES bool any_within(const float* query, int64_t width, const float* panel, float limit) {
    static_assert(kOffered == 2 * kWide);
    Wide even_first = {}, even_last = {}, odd_first = {}, odd_last = {};
    for (int64_t c = 0; c + 1 < width; c += 2, panel += 2 * kOffered) {
        Wide first, last;
        std::memcpy(&first, panel, sizeof first);
        std::memcpy(&last, panel + kWide, sizeof last);
        first = query[c] - first;
        last = query[c] - last;
        even_first += first * first;
        even_last += last * last;
        std::memcpy(&first, panel + kOffered, sizeof first);
        std::memcpy(&last, panel + kOffered + kWide, sizeof last);
        first = query[c + 1] - first;
        last = query[c + 1] - last;
        odd_first += first * first;
        odd_last += last * last;
    }
    if (width % 2 != 0) {
        Wide first, last;
        std::memcpy(&first, panel, sizeof first);
        std::memcpy(&last, panel + kWide, sizeof last);
        first = query[width - 1] - first;
        last = query[width - 1] - last;
        even_first += first * first;
        even_last += last * last;
    }
    even_first += odd_first;
    even_last += odd_last;
    float values[kOffered];
    std::memcpy(values, &even_first, sizeof even_first);
    std::memcpy(values + kWide, &even_last, sizeof even_last);
    int32_t any = 0;
    for (int64_t i = 0; i < kWide; ++i) any |= (values[i] <= limit) | (values[kWide + i] <= limit);
    return any != 0;
}

// Coordinate by coordinate, in the order of `squared_distance` up to 63 of them: the same bits.
template <class Real>
[[gnu::always_inline]] inline void distances_to_panel(const double* query, int64_t width, const Real* panel,
                                                      double* distances) {
    constexpr int64_t parts = kOffered / kLanes;
    Doubles sums[parts] = {};
    for (int64_t c = 0; c < width; ++c)
        for (int64_t part = 0; part < parts; ++part) {
            Doubles points;
            load(panel + c * kOffered + part * kLanes, points);
            const Doubles difference = query[c] - points;
            sums[part] += difference * difference;
        }
    std::memcpy(distances, sums, sizeof sums);
}

CORECUT_CLONES void panel_distances(const double* query, int64_t width, const float* panel, double* distances) {
    distances_to_panel(query, width, panel, distances);
}

CORECUT_CLONES void panel_distances(const double* query, int64_t width, const double* panel, double* distances) {
    distances_to_panel(query, width, panel, distances);
}

CORECUT_CLONES void box_distances(const float* query, int64_t width, const float* boxes, float* distances) {
    static_assert(kBoxes == kWide);
    Wide even = {}, odd = {};
    for (int64_t c = 0; c < width; ++c, boxes += 2 * kBoxes) {
        Wide below, above, outside = {};
        std::memcpy(&below, boxes, sizeof below);
        std::memcpy(&above, boxes + kBoxes, sizeof above);
        below = below - query[c];
        above = query[c] - above;
        raise_to(below, outside);
        raise_to(above, outside);
        even += outside * outside;
        std::swap(even, odd);
    }
    even += odd;
    std::memcpy(distances, &even, sizeof even);
}

// Eight sums side by side, whatever the registers: all machines add in the same order.
template <class Real>
[[gnu::always_inline]] inline double distance_up_to(const Real* x, const Real* y, int64_t width, double enough) {
    constexpr int64_t lanes = 8, stretch = 64;
    double sums[lanes] = {};
    double total = 0.0;
    int64_t c = 0;
    while (c + stretch <= width) {
        for (const int64_t end = c + stretch; c < end; c += lanes)
            for (int64_t t = 0; t < lanes; ++t) {
                const double difference = static_cast<double>(x[c + t]) - static_cast<double>(y[c + t]);
                sums[t] += difference * difference;
            }
        total = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
        if (total > enough) return total;
    }
    for (; c < width; ++c) {
        const double difference = static_cast<double>(x[c]) - static_cast<double>(y[c]);
        total += difference * difference;
    }
    return total;
}

CORECUT_CLONES double squared_distance(const float* x, const float* y, int64_t width, double enough) {
    return distance_up_to(x, y, width, enough);
}

CORECUT_CLONES double squared_distance(const double* x, const double* y, int64_t width, double enough) {
    return distance_up_to(x, y, width, enough);
}

// Values are compared as bits, and mismatches gathered by "or": loops that every compiler turns into vector code.
CORECUT_CLONES bool all_ones(const float* values, int64_t count) {
    constexpr uint32_t one = std::bit_cast<uint32_t>(1.0f);
    uint32_t differs = 0;
    for (int64_t p = 0; p < count; ++p) {
        uint32_t bits;
        std::memcpy(&bits, values + p, sizeof bits);
        differs |= bits ^ one;
    }
    return differs == 0;
}

CORECUT_CLONES bool all_ones(const double* values, int64_t count) {
    constexpr uint64_t one = std::bit_cast<uint64_t>(1.0);
    uint64_t differs = 0;
    for (int64_t p = 0; p < count; ++p) {
        uint64_t bits;
        std::memcpy(&bits, values + p, sizeof bits);
        differs |= bits ^ one;
    }
    return differs == 0;
}

CORECUT_CLONES bool increasing(const int32_t* values, int64_t count) {
    int32_t bad = 0;
    for (int64_t p = 1; p < count; ++p) bad |= -static_cast<int32_t>(values[p - 1] >= values[p]);
    return bad == 0;
}

CORECUT_CLONES bool increasing(const int64_t* values, int64_t count) {
    int64_t bad = 0;
    for (int64_t p = 1; p < count; ++p) bad |= -static_cast<int64_t>(values[p - 1] >= values[p]);
    return bad == 0;
}

}  // namespace corecut
