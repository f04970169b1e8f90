// Counter-based random numbers: the i-th number of a stream is a function of (seed, stream, i), so that any thread can
// make any of them. SplitMix64 (Steele, Lea and Flood 2014) is such a function: a counter times an odd constant, mixed.
#pragma once

#include <cmath>
#include <cstdint>

namespace corecut {

inline uint64_t mix64(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
}

class Random {
   public:
    Random(uint64_t seed, uint64_t stream)
        : key_(mix64(mix64(seed + 0x9E3779B97F4A7C15ULL) ^ mix64(stream * 0xD1342543DE82EF95ULL + 0x632BE59BD9B4E019ULL))) {}

    uint64_t bits() { return mix64(key_ + 0x9E3779B97F4A7C15ULL * ++counter_); }

    // Uniform in [0, 1) with 53 bits.
    double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }

    // Uniform in (0, 1]: its logarithm is finite.
    double positive() { return (static_cast<double>(bits() >> 11) + 1.0) * 0x1.0p-53; }

    // Uniform in {0, ..., n-1} for n >= 1. The bias of at most n / 2^64 cannot be seen.
    uint64_t below(uint64_t n) {
#if defined(__SIZEOF_INT128__)
        return static_cast<uint64_t>((static_cast<unsigned __int128>(bits()) * n) >> 64);
#else
        return bits() % n;
#endif
    }

   private:
    uint64_t key_;
    uint64_t counter_ = 0;
};

}  // namespace corecut
