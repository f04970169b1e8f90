#include "block_refinement.hpp"

#include "bindings.hpp"

namespace corecut {

namespace {

// The state of the rounds, with the arrays it looks at.
struct BoundRefineRounds {
    Matrix matrix;
    In<double> degrees, sizes;
    int64_t k;
    std::unique_ptr<RefineRounds> rounds;
};

template <class T>
std::vector<T> copied(const In<T>& array) {
    return std::vector<T>(array.data(), array.data() + array.shape(0));
}

auto arrays(RefineProposals&& found) {
    return std::make_tuple(to_numpy(std::move(found.nodes)), to_numpy(std::move(found.targets)), to_numpy(std::move(found.lacks)));
}

}  // namespace

void bind_block_refinement(nb::module_& m) {
    nb::class_<BoundRefineRounds>(m, "RefineRounds")
        .def(
            "__init__",
            [](BoundRefineRounds* self, const Matrix& matrix, In<double> degrees, In<double> sizes, In<int32_t> labels, int64_t k,
               const Objective& f, int threads) {
                const int64_t n = matrix.nodes();
                require_length(degrees, n, "degrees");
                require_length(sizes, n, "sizes");
                require_length(labels, n, "labels");
                if (n > std::numeric_limits<int32_t>::max()) throw InputError("rounds are limited to 2^31 - 1 nodes");
                check_labels(labels.data(), n, k);
                std::unique_ptr<RefineRounds> rounds;
                matrix.visit([&]<class Index, class Weight>(const Csr<Index, Weight>& a) {
                    rounds = std::make_unique<RefineRoundsOf<Index, Weight>>(checked_threads(threads), a, degrees.data(),
                                                                             sizes.data(), labels.data(), k, f);
                });
                new (self) BoundRefineRounds{matrix, degrees, sizes, k, std::move(rounds)};
            },
            nb::arg("matrix"), nb::arg("degrees"), nb::arg("sizes"), nb::arg("labels"), nb::arg("k"), nb::arg("objective"),
            nb::arg("threads"))
        .def("propose",
             [](BoundRefineRounds& self, int64_t begin, int64_t end, uint64_t pass, uint64_t round) {
                 RefineProposals found;
                 run(1, [&](Context& context) { found = self.rounds->propose(context, begin, end, pass, round); });
                 return arrays(std::move(found));
             })
        .def("propose_all",
             [](BoundRefineRounds& self, uint64_t pass, uint64_t round) {
                 RefineProposals found;
                 run(1, [&](Context& context) { found = self.rounds->propose_all(context, pass, round); });
                 return arrays(std::move(found));
             })
        .def("commit",
             [](BoundRefineRounds& self, In<int32_t> nodes, In<int32_t> targets, In<int64_t> lacks, uint64_t pass, uint64_t round) {
                 require_length(targets, static_cast<int64_t>(nodes.shape(0)), "targets");
                 const RefineProposals found{copied(nodes), copied(targets), copied(lacks)};
                 std::vector<uint8_t> made;
                 run(1, [&](Context&) { made = self.rounds->commit(found, pass, round); });
                 return to_numpy(std::move(made));
             })
        .def("entries_of_round",
             [](BoundRefineRounds& self, uint64_t pass, uint64_t round, int64_t enough) {
                 return self.rounds->entries_of_round(pass, round, enough);
             })
        .def("move",
             [](BoundRefineRounds& self, In<int32_t> nodes, In<int32_t> targets) {
                 require_length(targets, static_cast<int64_t>(nodes.shape(0)), "targets");
                 self.rounds->move(nodes.data(), targets.data(), static_cast<int64_t>(nodes.shape(0)));
             })
        .def("count",
             [](BoundRefineRounds& self, In<double> within) {
                 require_length(within, self.matrix.nodes(), "within");
                 self.rounds->count(within.data());
             })
        .def("value", [](BoundRefineRounds& self) { return self.rounds->clusters().value(); })
        .def("labels", [](BoundRefineRounds& self) { return to_numpy(LazyVector<int32_t>(self.rounds->labels)); })
        .def("set_labels",
             [](BoundRefineRounds& self, In<int32_t> labels) {
                 require_length(labels, self.matrix.nodes(), "labels");
                 check_labels(labels.data(), self.matrix.nodes(), self.k);
                 self.rounds->move_all(labels.data());
             })
        .def("lacking", [](BoundRefineRounds& self) { return to_numpy(LazyVector<int64_t>(self.rounds->lacking())); })
        .def("set_lacking",
             [](BoundRefineRounds& self, In<int64_t> lacking) {
                 require_length(lacking, self.matrix.nodes(), "lacking");
                 std::copy(lacking.data(), lacking.data() + self.matrix.nodes(), self.rounds->lacking().begin());
             })
        .def("active",
             [](BoundRefineRounds& self) {
                 const auto& lacking = self.rounds->lacking();
                 return to_numpy(packed_bits(static_cast<int64_t>(lacking.size()), [&](int64_t x) { return lacking[x] <= 0; }));
             })
        .def("set_active",
             [](BoundRefineRounds& self, In<uint8_t> bits) {
                 require_length(bits, (self.matrix.nodes() + 7) / 8, "active");
                 unpack_bits(bits.data(), self.rounds->active);
             })
        .def("sums",
             [](BoundRefineRounds& self) {
                 const Clusters& clusters = self.rounds->clusters();
                 return std::make_tuple(to_numpy(std::vector<double>(clusters.inside)), to_numpy(std::vector<double>(clusters.volume)),
                                        to_numpy(std::vector<double>(clusters.size)),
                                        to_numpy(std::vector<int64_t>(clusters.members)));
             })
        .def("set_sums",
             [](BoundRefineRounds& self, In<double> inside, In<double> volume, In<double> size, In<int64_t> members) {
                 for (const auto* array : {&inside, &volume, &size}) require_length(*array, self.k, "sums");
                 require_length(members, self.k, "members");
                 Clusters& clusters = self.rounds->clusters();
                 clusters.inside = copied(inside);
                 clusters.volume = copied(volume);
                 clusters.size = copied(size);
                 clusters.members = copied(members);
             });
    m.def("weights_within", [](const Matrix& matrix, In<int32_t> labels, int64_t begin, int64_t end) {
        require_length(labels, matrix.nodes(), "labels");
        check_rows(begin, end, matrix.nodes());
        std::vector<double> within(end - begin);
        run(1, [&](Context&) {
            matrix.visit([&](const auto& a) { weights_within(a, labels.data(), begin, end, within.data()); });
        });
        return to_numpy(std::move(within));
    });
}

}  // namespace corecut
