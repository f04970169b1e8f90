// The few innermost loops worth the widest registers a machine has; a portable build would use the narrowest.
#pragma once

#include <cstdint>

// One copy of a function for each instruction set, chosen when the extension is loaded. Compilers fuse no multiply-add (see
// CMakeLists.txt), so every copy gives the same bits.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__)
#define CORECUT_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define CORECUT_CLONES
#endif

namespace corecut {

// y += a·x
void axpy(int64_t width, float a, const float* x, float* y);

// For kLanes centres at once (stored by coordinate, `width` of them): reduced_it = min(nearest_i, ‖row_i - centre_t‖²), and
// cost_t += Σ_i mass_i·reduced_it.
inline constexpr int64_t kLanes = 8;
void offer_centres(const float* rows, const float* norms, const float* nearest, const float* mass, int64_t count, int64_t width,
                   const float* centres, const float* centre_norms, float* reduced, double* cost);

// Append bounds term + product below `limit`, and the numbers of their points from `first` on, to lists that hold `held` of
// `room`. Goes on while there is room for kOffered more, and returns how many of `count` it has seen.
inline constexpr int64_t kOffered = 32;
int64_t take_below(const float* products, const float* terms, int64_t count, int32_t first, float limit, float* bounds,
                   int32_t* points, int64_t room, int32_t* held);

// The same for kTogether queries and a panel of kOffered points, whose rows of `width` numbers are stored by coordinate: bounds
// term + ⟨query, point⟩ of query t in values[t], and whether any of them is below limits[t].
inline constexpr int64_t kTogether = 4;
void panel_bounds(const float* const* queries, int64_t width, const float* panel, const float* terms, const float* limits,
                  float (*values)[kOffered], bool* below);
void append_below(const float* values, int64_t count, int32_t first, float limit, float* bounds, int32_t* points,
                  int32_t* held);

// The offset of a query from the middle of some points, in float32.
void offsets_from(const double* query, const double* middle, double scale, int64_t width, float* moved);

// Is any point of a panel, kOffered of them stored by coordinate, within the square root of `limit` from the query?
bool any_within(const float* query, int64_t width, const float* panel, float limit);

// ‖query - point‖² in float64 for a panel of points.
void panel_distances(const double* query, int64_t width, const float* panel, double* distances);
void panel_distances(const double* query, int64_t width, const double* panel, double* distances);

// The squared distances of kBoxes boxes from the query; of every coordinate their lowest values, then their highest.
inline constexpr int64_t kBoxes = 16;
void box_distances(const float* query, int64_t width, const float* boxes, float* distances);

// ‖x - y‖² in float64, or any number above `enough` once it is known to be above.
double squared_distance(const float* x, const float* y, int64_t width, double enough);
double squared_distance(const double* x, const double* y, int64_t width, double enough);

// Is every value exactly 1?
bool all_ones(const float* values, int64_t count);
bool all_ones(const double* values, int64_t count);

// Does every value lie above the one before it?
bool increasing(const int32_t* values, int64_t count);
bool increasing(const int64_t* values, int64_t count);

}  // namespace corecut
