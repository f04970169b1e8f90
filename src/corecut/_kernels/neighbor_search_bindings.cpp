#include "bindings.hpp"
#include "neighbor_boxes.hpp"
#include "neighbor_graph.hpp"
#include "neighbor_search.hpp"

namespace corecut {

template <class T>
using Table = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using MutableTable = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

namespace {

Shortlists shortlists(const MutableTable<float>& bounds, const MutableTable<int32_t>& points, const InOut<int32_t>& counts,
                      const InOut<float>& limits) {
    const int64_t queries = static_cast<int64_t>(bounds.shape(0)), room = static_cast<int64_t>(bounds.shape(1));
    if (points.shape(0) != bounds.shape(0) || points.shape(1) != bounds.shape(1) || room % 2 != 0 || room < 2 * kOffered)
        throw InputError("bounds and points must have the same shape, with an even number of at least " +
                         std::to_string(2 * kOffered) + " columns");
    require_length(counts, queries, "counts");
    require_length(limits, queries, "limits");
    for (int64_t query = 0; query < queries; ++query)
        if (counts.data()[query] < 0 || counts.data()[query] > room) throw InputError("counts must lie within the shortlists");
    return {queries, room / 2, bounds.data(), points.data(), counts.data(), limits.data()};
}

template <class Real>
void bind_choose(nb::module_& m) {
    m.def(
        "choose_nearest",
        [](Table<Real> points, Table<Real> queries, std::optional<In<int32_t>> rows, MutableTable<float> bounds,
           MutableTable<int32_t> places, InOut<int32_t> counts, InOut<float> limits, In<double> query_terms, double unit,
           std::optional<In<int32_t>> own, MutableTable<int32_t> nearest, MutableTable<double> distances,
           InOut<uint8_t> certain) {
            const Shortlists lists = shortlists(bounds, places, counts, limits);
            const int64_t n = static_cast<int64_t>(points.shape(0));
            if (queries.shape(0) != bounds.shape(0) || queries.shape(1) != points.shape(1))
                throw InputError("the queries must have as many features as the points, and a shortlist each");
            require_length(query_terms, lists.queries, "query_terms");
            require_length(certain, lists.queries, "certain");
            if (own) require_length(*own, lists.queries, "own");
            if (nearest.shape(0) != bounds.shape(0) || distances.shape(0) != bounds.shape(0) ||
                distances.shape(1) != nearest.shape(1) || nearest.shape(1) < 1)
                throw InputError("nearest and distances must have a row for each query and the same number of columns");
            const int64_t known = rows ? static_cast<int64_t>(rows->shape(0)) : n;
            for (int64_t query = 0; query < lists.queries; ++query)
                for (int64_t i = 0; i < lists.counts[query]; ++i) {
                    const int64_t place = lists.points[query * lists.room() + i];
                    if (place < 0 || place >= known || (rows && (rows->data()[place] < 0 || rows->data()[place] >= n)))
                        throw InputError("a shortlist names a point that does not exist");
                }
            nb::gil_scoped_release release;
            choose_nearest(points.data(), queries.data(), static_cast<int64_t>(points.shape(1)),
                           rows ? rows->data() : nullptr, lists, query_terms.data(), unit, own ? own->data() : nullptr,
                           static_cast<int64_t>(nearest.shape(1)), nearest.data(), distances.data(), certain.data());
        },
        nb::arg("points").noconvert(), nb::arg("queries").noconvert(), nb::arg("rows").none(), nb::arg("bounds").noconvert(),
        nb::arg("places").noconvert(), nb::arg("counts").noconvert(), nb::arg("limits").noconvert(), nb::arg("query_terms"),
        nb::arg("unit"), nb::arg("own").none(), nb::arg("nearest").noconvert(), nb::arg("distances").noconvert(),
        nb::arg("certain").noconvert());
}

template <class Real>
void require_finite(const Real* values, size_t count, const char* name) {
    for (size_t i = 0; i < count; ++i)
        if (!std::isfinite(values[i])) throw InputError(std::string(name) + " must be finite");
}

template <class Real>
void bind_boxes(nb::module_& m, const char* name) {
    using Tree = BoxTree<Real>;
    nb::class_<Tree>(m, name)
        .def(
            "__init__",
            [](Tree* self, Table<Real> points, int threads) {
                if (points.shape(0) < 1 || points.shape(1) < 1) throw InputError("a tree needs points with features");
                if (points.shape(0) > static_cast<size_t>(std::numeric_limits<int32_t>::max() - kOffered))
                    throw InputError("there must be fewer than 2³¹ points");
                require_finite(points.data(), points.size(), "points");
                run(checked_threads(threads), [&](Context& context) {
                    new (self) Tree(context, points.data(), static_cast<int64_t>(points.shape(0)),
                                    static_cast<int64_t>(points.shape(1)));
                });
            },
            nb::arg("points").noconvert(), nb::arg("threads"))
        .def("order", [](const Tree& self) { return to_numpy(std::vector<int32_t>(self.order())); })
        .def(
            "search",
            [](const Tree& self, Table<Real> queries, std::optional<In<int32_t>> own, MutableTable<int32_t> nearest,
               MutableTable<double> squares, int threads) {
                const int64_t rows = static_cast<int64_t>(queries.shape(0)), k = static_cast<int64_t>(nearest.shape(1));
                if (static_cast<int64_t>(queries.shape(1)) != self.width())
                    throw InputError("the queries must have as many features as the points");
                if (nearest.shape(0) != queries.shape(0) || squares.shape(0) != queries.shape(0) ||
                    squares.shape(1) != nearest.shape(1))
                    throw InputError("nearest and squares must have a row for each query and the same number of columns");
                if (k < 1 || k > self.size() - (own ? 1 : 0)) throw InputError("there are not so many points to find");
                for (size_t i = 0; own && i < own->shape(0); ++i) {
                    const int32_t row = own->data()[i];
                    if (row < 0 || row >= rows) throw InputError("own names a query that does not exist");
                    require_finite(queries.data() + row * queries.shape(1), queries.shape(1), "queries");
                }
                if (!own) require_finite(queries.data(), queries.size(), "queries");
                int64_t looked = 0;
                run(checked_threads(threads), [&](Context& context) {
                    looked = self.search(context, queries.data(), own ? own->data() : nullptr,
                                         own ? static_cast<int64_t>(own->shape(0)) : rows, k, nearest.data(), squares.data());
                });
                return looked;
            },
            nb::arg("queries").noconvert(), nb::arg("own").none(), nb::arg("nearest").noconvert(),
            nb::arg("squares").noconvert(), nb::arg("threads"));
}

}  // namespace

// These work on one block of queries for about a millisecond. The caller has many blocks, on threads of its own, and looks
// for signals between them.
void bind_neighbor_search(nb::module_& m) {
    m.attr("SHORTEST_LIST") = kOffered;
    m.def(
        "offer_points",
        [](Table<float> products, In<float> terms, int64_t first, std::optional<In<int32_t>> which, MutableTable<float> bounds,
           MutableTable<int32_t> points, InOut<int32_t> counts, InOut<float> limits) {
            const Shortlists lists = shortlists(bounds, points, counts, limits);
            const int64_t asking = static_cast<int64_t>(products.shape(0)), count = static_cast<int64_t>(products.shape(1));
            require_length(terms, count, "terms");
            if (first < 0 || first + count > std::numeric_limits<int32_t>::max())
                throw InputError("there must be fewer than 2³¹ points");
            if (which) {
                require_length(*which, asking, "which");
                for (int64_t i = 0; i < asking; ++i)
                    if (which->data()[i] < 0 || which->data()[i] >= lists.queries)
                        throw InputError("which names a query that has no shortlist");
            } else if (asking != lists.queries) {
                throw InputError("products must have a row for each query");
            }
            nb::gil_scoped_release release;
            offer_points(products.data(), terms.data(), count, static_cast<int32_t>(first), which ? which->data() : nullptr,
                         asking, lists);
        },
        nb::arg("products").noconvert(), nb::arg("terms").noconvert(), nb::arg("first"), nb::arg("which").none(),
        nb::arg("bounds").noconvert(), nb::arg("points").noconvert(), nb::arg("counts").noconvert(),
        nb::arg("limits").noconvert());
    m.def(
        "offer_panels",
        [](Table<float> queries, nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu> panels, Table<float> terms,
           int64_t first, MutableTable<float> bounds, MutableTable<int32_t> points, InOut<int32_t> counts, InOut<float> limits) {
            const Shortlists lists = shortlists(bounds, points, counts, limits);
            const int64_t count = static_cast<int64_t>(panels.shape(0)), width = static_cast<int64_t>(queries.shape(1));
            if (queries.shape(0) != bounds.shape(0) || static_cast<int64_t>(panels.shape(1)) != width || width < 1 ||
                static_cast<int64_t>(panels.shape(2)) != kOffered || terms.shape(0) != panels.shape(0) ||
                static_cast<int64_t>(terms.shape(1)) != kOffered)
                throw InputError("queries, panels and terms must have the same numbers of coordinates and of points");
            if (first < 0 || (first + count) * kOffered > std::numeric_limits<int32_t>::max())
                throw InputError("there must be fewer than 2³¹ points");
            nb::gil_scoped_release release;
            offer_panels(queries.data(), width, panels.data(), terms.data(), count, first, lists);
        },
        nb::arg("queries").noconvert(), nb::arg("panels").noconvert(), nb::arg("terms").noconvert(),
        nb::arg("first"), nb::arg("bounds").noconvert(), nb::arg("points").noconvert(), nb::arg("counts").noconvert(),
        nb::arg("limits").noconvert());
    m.def(
        "neighbor_graph",
        [](Table<int32_t> lists, int threads) {
            NeighborGraph graph;
            run(checked_threads(threads), [&](Context& context) {
                graph = neighbor_graph(context, lists.data(), static_cast<int64_t>(lists.shape(0)),
                                       static_cast<int64_t>(lists.shape(1)));
            });
            return std::make_tuple(to_numpy(std::move(graph.indptr)), to_numpy(std::move(graph.indices)),
                                   to_numpy(std::move(graph.weights)));
        },
        nb::arg("lists").noconvert(), nb::arg("threads"));
    bind_choose<float>(m);
    bind_choose<double>(m);
    bind_boxes<float>(m, "FloatBoxes");
    bind_boxes<double>(m, "DoubleBoxes");
}

}  // namespace corecut
