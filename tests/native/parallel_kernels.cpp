// Every parallel kernel on a planted graph, for the thread sanitizer, and for the time that each takes by the number of threads.
//
//     parallel_kernels [nodes] [threads ...]
//
// Results must have the same bits for any number of threads. Exit status 1 if they do not.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "aggregation.hpp"
#include "cluster_pairs.hpp"
#include "coreset.hpp"
#include "graph.hpp"
#include "halving.hpp"
#include "labelling.hpp"
#include "metrics.hpp"
#include "neighbor_boxes.hpp"
#include "neighbor_graph.hpp"
#include "refinement.hpp"
#include "repair.hpp"
#include "rounding.hpp"
#include "spectral.hpp"

using namespace corecut;

namespace {

constexpr int64_t kCluster = 500;  // nodes of a planted cluster
constexpr int64_t kDraws = 12;     // edges drawn for each node

struct Planted {
    std::vector<int64_t> indptr;
    std::vector<int32_t> indices;
    std::vector<float> weights;
    std::vector<double> degrees, sizes;
    std::vector<int32_t> labels;

    explicit Planted(int64_t n) : degrees(n), sizes(n, 1.0), labels(n) {
        std::vector<std::vector<int32_t>> rows(n);
        for (int64_t x = 0; x < n; ++x) {
            Random random(1, static_cast<uint64_t>(x));
            labels[x] = static_cast<int32_t>(x / kCluster);
            const int64_t begin = labels[x] * kCluster, end = std::min(n, begin + kCluster);
            for (int64_t i = 0; i < kDraws; ++i) {
                const int64_t y = random.uniform() < 0.8 ? begin + static_cast<int64_t>(random.below(end - begin))
                                                         : static_cast<int64_t>(random.below(n));
                if (y == x) continue;
                rows[x].push_back(static_cast<int32_t>(y));
                rows[y].push_back(static_cast<int32_t>(x));
            }
        }
        indptr.push_back(0);
        for (int64_t x = 0; x < n; ++x) {
            std::sort(rows[x].begin(), rows[x].end());
            rows[x].erase(std::unique(rows[x].begin(), rows[x].end()), rows[x].end());
            indices.insert(indices.end(), rows[x].begin(), rows[x].end());
            indptr.push_back(static_cast<int64_t>(indices.size()));
            degrees[x] = static_cast<double>(rows[x].size());
        }
        weights.assign(indices.size(), 0.125f);
    }

    template <class Weight>
    Csr<int32_t, Weight> view(const Weight* data) const {
        Csr<int32_t, Weight> a;
        a.n = static_cast<int64_t>(degrees.size());
        a.nnz = static_cast<int64_t>(indices.size());
        a.indptr = {indptr.data(), true};
        a.indices = indices.data();
        a.data = data;
        return a;
    }
};

// A number that depends on all bits of an array.
template <class Array>
uint64_t bits_of(const Array& array) {
    uint64_t hash = array.size();
    const auto* bytes = reinterpret_cast<const unsigned char*>(array.data());
    for (size_t i = 0; i < array.size() * sizeof(array[0]); ++i) hash = mix64(hash + bytes[i]);
    return hash;
}

using Results = std::map<std::string, uint64_t>;

Results run_all(const Planted& planted, int threads) {
    Results results;
    Context context;
    context.threads = threads;
    const auto unit = planted.view<Unit>(nullptr);
    const auto single = planted.view<float>(planted.weights.data());
    const int64_t n = unit.n, k = planted.labels.back() + 1;
    const double *degrees = planted.degrees.data(), *sizes = planted.sizes.data();
    const auto timed = [&](const std::string& name, const std::function<uint64_t()>& kernel) {
        const auto begin = std::chrono::steady_clock::now();
        results[name] = kernel();
        const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
        std::printf("%3d threads  %-24s %8.3f s\n", threads, name.c_str(), taken.count());
    };

    timed("scan", [&] { return bits_of(scan(context, single).degrees); });
    timed("find_asymmetry", [&] { return uint64_t{find_asymmetry(context, single, -1, 0).found}; });
    timed("components", [&] { return bits_of(components(context, unit)); });
    timed("scale_entries", [&] {
        std::vector<float> scaled(unit.nnz);
        scale_entries(context, single, degrees, scaled.data());
        return bits_of(scaled);
    });
    timed("thinned", [&] { return bits_of(thinned(context, unit, degrees, 4.0, 7).data); });
    timed("induced", [&] {
        std::vector<int64_t> rows;
        for (int64_t x = 0; x < n; x += 3) rows.push_back(x);
        return bits_of(induced(context, unit, rows.data(), static_cast<int64_t>(rows.size())).indices);
    });
    LazyVector<int32_t> groups;
    timed("group_nodes", [&] {
        groups = group_nodes(context, unit, degrees, static_cast<double>(unit.nnz) / static_cast<double>(10 * k), 3);
        return bits_of(groups);
    });
    timed("contract", [&] {
        const Quotient q = contract(context, single, groups.data(), *std::max_element(groups.begin(), groups.end()) + 1);
        return bits_of(q.indices) + bits_of(q.data);
    });
    std::vector<int32_t> labels = planted.labels;
    for (int64_t x = 0; x < n; x += 3) labels[x] = static_cast<int32_t>(mix64(static_cast<uint64_t>(x)) % k);
    timed("refine", [&] {
        refine(context, unit, degrees, sizes, labels.data(), k, Objective{}, 5, 0.0);
        return bits_of(labels);
    });
    timed("refine, bounded", [&] {
        std::vector<int32_t> bounded = planted.labels;
        for (int64_t x = 0; x < n; x += 4) bounded[x] = static_cast<int32_t>(mix64(static_cast<uint64_t>(x)) % k);
        refine(context, single, degrees, sizes, bounded.data(), k, Objective{1.0, kCluster * 0.8, kCluster * 1.2}, 5, 0.0);
        return bits_of(bounded);
    });
    timed("halve_graph", [&] {
        std::vector<int32_t> halves(n);
        halve_graph(context, single, sizes, kCluster * 0.8, kCluster * 1.2, k, 30, 5, halves.data());
        return bits_of(halves);
    });
    timed("within_cluster", [&] { return bits_of(within_cluster(context, unit, planted.labels.data(), nullptr)); });
    timed("cluster_margins", [&] { return bits_of(cluster_margins(context, unit, planted.labels.data(), k).own); });
    timed("multiply", [&] {
        std::vector<float> x(n * 16), out(n * 16);
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(mix64(i) % 1000);
        multiply<int32_t, float>(context, single, 16, x.data(), nullptr, 1.0f, 0.5f, 0.0f, out.data());
        return bits_of(out);
    });
    timed("split_clusters", [&] {
        const std::vector<uint8_t> wanted(k, 1);
        const std::vector<double> low(k, 0.0), high(k, static_cast<double>(n));
        return bits_of(split_clusters(context, unit, degrees, sizes, planted.labels.data(), k, wanted.data(), Objective{}, low.data(),
                                      high.data(), true, 0.0, 10, 2, 1)
                           .gain);
    });
    timed("pairs of clusters", [&] {
        std::vector<int32_t> groups(n);
        const int32_t count = 600;
        for (int64_t x = 0; x < n; ++x) groups[x] = static_cast<int32_t>(mix64(static_cast<uint64_t>(x)) % count);
        const Quotient quotient = contract(context, unit, groups.data(), count, false);
        std::vector<double> association(count, 0.5), volume(count, 2.0), size(count, 1.0);
        const ClusterGraph clusters{count, quotient.indptr.data(), quotient.indices.data(), quotient.data.data(), association.data(),
                                    volume.data(), size.data()};
        std::vector<double> losses;
        for (const Merge& one : cheapest_merges(context, clusters, Objective{}, 1.0, 500, false)) losses.push_back(one.loss);
        const AdjacentPairs pairs = adjacent_pairs(context, clusters);
        return bits_of(losses) + bits_of(pairs.share) +
               bits_of(take_pairs(context, pairs.i.data(), pairs.j.data(), pairs.share.data(), static_cast<int64_t>(pairs.i.size()),
                                  count));
    });
    timed("label_nodes", [&] {
        std::vector<int64_t> coreset;
        std::vector<int32_t> cluster;
        for (int64_t x = 0; x < n; x += 10) coreset.push_back(x), cluster.push_back(planted.labels[x]);
        const std::vector<double> load(coreset.size(), 0.5), own(coreset.size(), 0.1), norms(k, 1.0);
        const ImpliedCentres centres{coreset.data(), static_cast<int64_t>(coreset.size()), cluster.data(), load.data(), own.data(),
                                     norms.data(), k, nullptr, nullptr, nullptr, true};
        return bits_of(label_nodes(context, unit, centres).labels);
    });
    constexpr int64_t width = 5, near = 6;
    std::vector<int32_t> nearest(n * near);
    timed("BoxTree", [&] {
        std::vector<float> points(n * width);
        for (size_t i = 0; i < points.size(); ++i) points[i] = static_cast<float>(mix64(i) % 1000);
        std::vector<double> squares(n * near);
        const BoxTree<float> tree(context, points.data(), n, width);
        tree.search(context, points.data(), tree.order().data(), n, near, nearest.data(), squares.data());
        return bits_of(nearest) + bits_of(squares);
    });
    timed("neighbor_graph", [&] {
        const NeighborGraph graph = neighbor_graph(context, nearest.data(), n, near);
        return bits_of(graph.indptr) + bits_of(graph.indices) + bits_of(graph.weights);
    });
    timed("draw_points", [&] { return bits_of(draw_points(context, n, degrees, n / 10, 3).indices); });
    return results;
}

}  // namespace

int main(int count, char** arguments) {
    const int64_t nodes = count > 1 ? std::atoll(arguments[1]) : 20'000;
    const Planted planted(nodes);
    std::printf("%lld nodes, %zu entries\n", static_cast<long long>(nodes), planted.indices.size());
    const Results one = run_all(planted, 1);
    int status = 0;
    for (int i = 2; i < std::max(count, 3); ++i) {
        const int threads = i < count ? std::atoi(arguments[i]) : 4;
        for (const auto& [name, bits] : run_all(planted, threads))
            if (bits != one.at(name)) {
                std::printf("%s differs with %d threads\n", name.c_str(), threads);
                status = 1;
            }
    }
    return status;
}
