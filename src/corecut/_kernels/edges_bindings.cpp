#include "bindings.hpp"
#include "edges.hpp"

namespace corecut {

void bind_edge_text(nb::module_& m);

namespace {

template <class Id>
void bind_count(nb::module_& m) {
    m.def("count_entries", [](In<Id> source, In<Id> target, InOut<int64_t> entries) {
        require_length(target, static_cast<int64_t>(source.shape(0)), "target");
        run(1, [&](Context& context) {
            count_entries(context, source.data(), target.data(), static_cast<int64_t>(source.shape(0)), entries.data(),
                          static_cast<int64_t>(entries.shape(0)));
        });
    });
}

template <class Index>
void bind_index(nb::module_& m, const char* builder_name) {
    m.def(
        "split_edges",
        [](In<Index> source, In<Index> target, std::optional<In<double>> weight, In<int64_t> borders) {
            const int64_t count = static_cast<int64_t>(source.shape(0));
            const int64_t buckets = static_cast<int64_t>(borders.shape(0)) - 1;
            require_length(target, count, "target");
            if (weight) require_length(*weight, count, "weight");
            if (buckets < 1 || borders.data()[0] != 0) throw InputError("borders must begin with 0 and hold a bucket");
            Split<Index> split;
            run(1, [&](Context& context) {
                split = split_edges(context, source.data(), target.data(), weight ? weight->data() : nullptr, count,
                                    borders.data(), buckets);
            });
            return std::make_tuple(to_numpy(std::move(split.offsets)), to_numpy(std::move(split.rows)),
                                   to_numpy(std::move(split.columns)), to_numpy(std::move(split.weights)));
        },
        nb::arg("source"), nb::arg("target"), nb::arg("weight").none(), nb::arg("borders"));

    using Builder = RowBuilder<Index>;
    nb::class_<Builder>(m, builder_name)
        .def("__init__",
             [](Builder* self, int64_t n, int64_t first, In<int64_t> entries, bool weighted) {
                 new (self) Builder(n, first, entries.data(), static_cast<int64_t>(entries.shape(0)), weighted);
             })
        .def(
            "add",
            [](Builder& self, In<Index> rows, In<Index> columns, std::optional<In<double>> weight, bool mirror, int threads) {
                const int64_t count = static_cast<int64_t>(rows.shape(0));
                require_length(columns, count, "columns");
                if (weight) require_length(*weight, count, "weight");
                run(checked_threads(threads), [&](Context& context) {
                    self.add(context, rows.data(), columns.data(), weight ? weight->data() : nullptr, count, mirror);
                });
            },
            nb::arg("rows"), nb::arg("columns"), nb::arg("weight").none(), nb::arg("mirror"), nb::arg("threads"))
        .def("finish", [](Builder& self, bool largest, int threads) {
            Rows<Index> rows;
            run(checked_threads(threads), [&](Context& context) { rows = self.finish(context, largest); });
            return std::make_tuple(to_numpy(std::move(rows.lengths)), to_numpy(std::move(rows.columns)),
                                   to_numpy(std::move(rows.weights)), to_numpy(std::move(rows.degrees)),
                                   to_numpy(std::move(rows.diagonal)), rows.zeros, rows.unit);
        });
}

}  // namespace

void bind_edges(nb::module_& m) {
    bind_count<uint32_t>(m);
    bind_count<int32_t>(m);
    bind_count<int64_t>(m);
    bind_index<int32_t>(m, "RowBuilder32");
    bind_index<int64_t>(m, "RowBuilder64");
    bind_edge_text(m);
}

}  // namespace corecut
