#include "simd.hpp"

#include <bit>
#include <cstring>

namespace corecut {

CORECUT_CLONES void axpy(int64_t width, float a, const float* x, float* y) {
    for (int64_t c = 0; c < width; ++c) y[c] += a * x[c];
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
