// The input contract in one pass; symmetry; induced subgraphs; components.
#pragma once

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <sstream>
#include <vector>

#include "csr.hpp"
#include "memory.hpp"
#include "random.hpp"
#include "simd.hpp"

namespace corecut {

struct Scan {
    LazyVector<double> degrees;    // row sums
    LazyVector<double> diagonal;   // empty when no entry lies on the diagonal (or the matrix is not canonical)
    bool unit = true;              // every stored value is 1
    bool canonical = true;         // rows strictly increasing, no stored zero
};

inline std::string entry_text(int64_t x, int64_t y, double value) {
    std::ostringstream text;
    text << "entry (" << x << ", " << y << ") = " << value;
    return text.str();
}

// Check one row and return its sum. Sums run in four lanes: a single chain of additions would wait for itself.
template <class Index, class Weight>
double scan_row(const Csr<Index, Weight>& a, int64_t x, typename Csr<Index, Weight>::Range r, bool& unit, bool& canonical) {
    if (r.size() == 0) return 0.0;
    if (increasing(a.indices + r.begin, r.size())) {
        a.column(r.begin);
        a.column(r.end - 1);
    } else {
        canonical = false;
        for (int64_t p = r.begin; p < r.end; ++p) a.column(p);
    }
    if constexpr (!Csr<Index, Weight>::weighted) {
        return static_cast<double>(r.size());
    } else {
        if (all_ones(a.data + r.begin, r.size())) return static_cast<double>(r.size());
        unit = false;
        double lanes[4] = {0, 0, 0, 0};
        bool good = true, zero = false;
        int64_t p = r.begin;
        for (; p + 4 <= r.end; p += 4)
            for (int lane = 0; lane < 4; ++lane) {
                const double v = a.data[p + lane];
                lanes[lane] += v;
                good &= v >= 0.0;  // false for NaN
                zero |= v == 0.0;
            }
        for (; p < r.end; ++p) {
            const double v = a.data[p];
            lanes[0] += v;
            good &= v >= 0.0;
            zero |= v == 0.0;
        }
        const double sum = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
        if (!good || !std::isfinite(sum)) {
            for (int64_t q = r.begin; q < r.end; ++q) {
                const double v = a.data[q];
                if (std::isnan(v))
                    throw InputError("the graph has a NaN weight: " + entry_text(x, a.indices[q], v) +
                                     "; remove or replace missing weights first");
                if (std::isinf(v))
                    throw InputError("the graph has an infinite weight: " + entry_text(x, a.indices[q], v) +
                                     "; weights must be finite");
                if (v < 0.0)
                    throw InputError("the graph has a negative weight: " + entry_text(x, a.indices[q], v) +
                                     "; weights are similarities and must not be negative");
            }
            throw InputError("the weights of node " + std::to_string(x) +
                             " add up to infinity; divide all weights by a common factor");
        }
        if (zero) canonical = false;
        return sum;
    }
}

template <class Index, class Weight>
Scan scan(Context& context, const Csr<Index, Weight>& a) {
    Scan result;
    result.degrees.resize(a.n);
    LazyVector<double> diagonal(a.n);
    const int64_t blocks = (a.n + kRowBlock - 1) / kRowBlock;
    std::vector<char> unit(blocks, 1), canonical(blocks, 1), loops(blocks, 0);
    parallel_blocks(context, a.n, kRowBlock, [&](int64_t block, int64_t begin, int64_t end) {
        bool u = true, c = true, l = false;
        for (int64_t x = begin; x < end; ++x) {
            if ((x & 63) == 0) context.check();
            const auto r = a.row(x);
            result.degrees[x] = scan_row(a, x, r, u, c);
            const int64_t p = c ? a.lower_bound(r, x) : r.end;
            const bool loop = p < r.end && static_cast<int64_t>(a.indices[p]) == x;
            diagonal[x] = loop ? a.weight(p) : 0.0;
            l |= loop;
        }
        unit[block] = u;
        canonical[block] = c;
        loops[block] = l;
    });
    bool any_loop = false;
    for (int64_t b = 0; b < blocks; ++b) {
        result.unit &= unit[b] != 0;
        result.canonical &= canonical[b] != 0;
        any_loop |= loops[b] != 0;
    }
    if (any_loop && result.canonical) result.diagonal = std::move(diagonal);
    return result;
}

struct Asymmetry {
    bool found = false;
    int64_t x = 0, y = 0;
    double forward = 0, backward = 0;
};

template <class Index, class Weight>
bool asymmetric_entry(const Csr<Index, Weight>& a, int64_t x, int64_t p, Asymmetry& out) {
    const int64_t y = a.column(p);
    const double forward = a.weight(p), backward = a.at(y, x);
    // Similarities computed twice differ by rounding; that is not asymmetry.
    if (std::abs(forward - backward) <= 1e-6 * std::max(forward, backward)) return false;
    out = {true, x, y, forward, backward};
    return true;
}

// Compare stored entries with their mirror images: `samples` random ones, or all when samples < 0.
template <class Index, class Weight>
Asymmetry find_asymmetry(Context& context, const Csr<Index, Weight>& a, int64_t samples, uint64_t seed) {
    Asymmetry result;
    if (samples >= 0) {
        Random random(seed, 0);
        for (int64_t i = 0; i < samples && a.nnz > 0; ++i) {
            const int64_t p = static_cast<int64_t>(random.below(a.nnz));
            int64_t lo = 0, hi = a.n;  // the row that holds position p
            while (hi - lo > 1) {
                const int64_t mid = lo + (hi - lo) / 2;
                (a.indptr[mid] <= p ? lo : hi) = mid;
            }
            if (asymmetric_entry(a, lo, p, result)) return result;
        }
        return result;
    }
    const int64_t blocks = (a.n + kRowBlock - 1) / kRowBlock;
    std::vector<Asymmetry> found(blocks);
    parallel_blocks(context, a.n, kRowBlock, [&](int64_t block, int64_t begin, int64_t end) {
        for (int64_t x = begin; x < end; ++x) {
            if ((x & 63) == 0) context.check();
            const auto r = a.row(x);
            for (int64_t p = r.begin; p < r.end; ++p)
                if (asymmetric_entry(a, x, p, found[block])) return;
        }
    });
    for (const auto& f : found)
        if (f.found) return f;
    return result;
}

// Weights are in single precision where that is asked for and the graph's own are.
struct Subgraph {
    std::vector<int64_t> indptr;
    LazyVector<int32_t> indices;
    LazyVector<double> data;
    LazyVector<float> single;
};

// A set of node numbers and each one's position in it: a bit per node and a count per 64 of them, which stay in the cache where
// an array of positions would not.
class NodeSet {
   public:
    NodeSet(int64_t n, const int64_t* nodes, int64_t count) : words_(n / 64 + 1, 0), before_(n / 64 + 1, 0) {
        for (int64_t i = 0; i < count; ++i) {
            if (nodes[i] < 0 || nodes[i] >= n || (i > 0 && nodes[i] <= nodes[i - 1]))
                throw InputError("rows must be increasing node numbers below " + std::to_string(n));
            words_[nodes[i] / 64] |= uint64_t{1} << (nodes[i] % 64);
        }
        for (size_t w = 1; w < words_.size(); ++w) before_[w] = before_[w - 1] + std::popcount(words_[w - 1]);
    }

    bool holds(int64_t x) const { return words_[x / 64] >> (x % 64) & 1; }

    int32_t position(int64_t x) const {
        return before_[x / 64] + std::popcount(words_[x / 64] & ((uint64_t{1} << (x % 64)) - 1));
    }

   private:
    std::vector<uint64_t> words_;
    std::vector<int32_t> before_;
};

// The principal submatrix on `all` rows (sorted, without repeats), or of that the rows first.. alone. Rows are looked through
// twice: to note what is kept would take more memory than the result.
template <class Index, class Weight>
Subgraph induced(Context& context, const Csr<Index, Weight>& a, const int64_t* all, int64_t of, int64_t first, int64_t last,
                 bool compact = false) {
    const NodeSet inside(a.n, all, of);
    if (first < 0 || first > last || last > of) throw InputError("a block of rows lies outside of the submatrix");
    const int64_t* const rows = all + first;
    const int64_t count = last - first;
    const bool single = compact && std::is_same_v<Weight, float>;
    Subgraph sub;
    sub.indptr.assign(count + 1, 0);
    constexpr int64_t block_size = 64;
    parallel_blocks(context, count, block_size, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const auto r = a.row(rows[i]);
            for (int64_t p = r.begin; p < r.end; ++p) sub.indptr[i + 1] += inside.holds(a.column(p));
        }
    });
    std::partial_sum(sub.indptr.begin(), sub.indptr.end(), sub.indptr.begin());
    sub.indices.resize(sub.indptr[count]);
    if (single)
        sub.single.resize(sub.indptr[count]);
    else
        sub.data.resize(sub.indptr[count]);
    parallel_blocks(context, count, block_size, [&](int64_t, int64_t begin, int64_t end) {
        int64_t q = sub.indptr[begin];
        for (int64_t i = begin; i < end; ++i) {
            const auto r = a.row(rows[i]);
            for (int64_t p = r.begin; p < r.end; ++p) {
                const int64_t y = static_cast<int64_t>(a.indices[p]);  // checked by the first look
                if (!inside.holds(y)) continue;
                sub.indices[q] = inside.position(y);
                if (single)
                    sub.single[q] = static_cast<float>(a.weight(p));
                else
                    sub.data[q] = a.weight(p);
                ++q;
            }
        }
    });
    return sub;
}

template <class Index, class Weight>
Subgraph induced(Context& context, const Csr<Index, Weight>& a, const int64_t* rows, int64_t count) {
    return induced(context, a, rows, count, 0, count);
}

// A sparser graph with nearly the same Laplacian: entry (x, y) stays with probability p = kept·a_xy·(1/d_x + 1/d_y), if that is
// below 1, and weighs a_xy/p then. What a row loses or wins by it goes to its diagonal, so that row sums stay as they are.
template <class Index, class Weight>
Subgraph thinned(Context& context, const Csr<Index, Weight>& a, const double* degrees, double kept, uint64_t seed) {
    if (a.n > std::numeric_limits<int32_t>::max()) throw InputError("thinning is limited to 2^31 - 1 nodes");
    Subgraph sub;
    sub.indptr.assign(a.n + 1, 0);
    // The weight that the entry at position p of row x has then. Both mirror images ask for the same random number.
    const auto weight = [&](int64_t x, int64_t p) {
        const auto y = static_cast<int64_t>(a.indices[p]);
        const double w = a.weight(p), chance = kept * w * (1.0 / degrees[x] + 1.0 / degrees[y]);
        if (!(chance < 1.0)) return w;
        Random random(seed, static_cast<uint64_t>(std::min(x, y)) << 32 | static_cast<uint64_t>(std::max(x, y)));
        return random.uniform() < chance ? w / chance : 0.0;
    };
    const auto each = [&](int64_t x, auto&& take) {
        const auto r = a.row(x);
        a.check_columns(r);
        double diagonal = 0.0;
        for (int64_t p = r.begin; p < r.end; ++p) {
            const auto y = static_cast<int64_t>(a.indices[p]);
            const double now = y == x ? 0.0 : weight(x, p);
            diagonal += a.weight(p) - now;
            if (now != 0.0) take(y, now);
        }
        take(x, diagonal);
    };
    parallel_blocks(context, a.n, kRowBlock / 16, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t x = begin; x < end; ++x) each(x, [&](int64_t, double) { ++sub.indptr[x + 1]; });
    });
    std::partial_sum(sub.indptr.begin(), sub.indptr.end(), sub.indptr.begin());
    sub.indices.resize(sub.indptr[a.n]);
    sub.data.resize(sub.indptr[a.n]);
    parallel_blocks(context, a.n, kRowBlock / 16, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t x = begin; x < end; ++x) {
            int64_t q = sub.indptr[x];
            each(x, [&](int64_t y, double w) {
                if (y == x) {  // comes last, and belongs in its place
                    while (q > sub.indptr[x] && sub.indices[q - 1] > x) {
                        sub.indices[q] = sub.indices[q - 1];
                        sub.data[q] = sub.data[q - 1];
                        --q;
                    }
                }
                sub.indices[q] = static_cast<int32_t>(y);
                sub.data[q++] = w;
            });
        }
    });
    return sub;
}

// Connected components by union-find; numbered in the order of their lowest node. Threads link roots at the same time: a root is
// only ever put under a lower node, so that whoever comes first, the leader of a component is its lowest node in the end.
template <class Index, class Weight>
std::vector<int64_t> components(Context& context, const Csr<Index, Weight>& a) {
    std::vector<int64_t> parent(a.n);
    std::iota(parent.begin(), parent.end(), int64_t{0});
    const auto place = [&](int64_t x) { return std::atomic_ref<int64_t>(parent[x]); };
    const auto find = [&](int64_t x) {
        while (true) {
            const int64_t above = place(x).load(std::memory_order_relaxed);
            if (above == x) return x;
            const int64_t higher = place(above).load(std::memory_order_relaxed);
            if (higher == above) return above;
            place(x).store(higher, std::memory_order_relaxed);  // an ancestor still, whatever others did
            x = higher;
        }
    };
    parallel_blocks(context, a.n, kRowBlock, [&](int64_t, int64_t begin, int64_t end) {
        for (int64_t x = begin; x < end; ++x) {
            if ((x & 1023) == 0) context.check();
            const auto r = a.row(x);
            int64_t root = find(x);
            for (int64_t p = r.begin; p < r.end; ++p) {
                const int64_t y = a.column(p);
                if (y >= x) break;  // the mirror image was seen from the other side
                for (int64_t other = find(y); other != root; other = find(other)) {
                    root = find(root);
                    int64_t high = std::max(root, other);
                    if (place(high).compare_exchange_strong(high, std::min(root, other), std::memory_order_relaxed)) {
                        root = std::min(root, other);
                        break;
                    }
                }
            }
        }
    });
    std::vector<int64_t> label(a.n);
    int64_t count = 0;
    for (int64_t x = 0; x < a.n; ++x) {
        const int64_t root = find(x);
        label[x] = root == x ? count++ : label[root];
    }
    return label;
}

}  // namespace corecut
