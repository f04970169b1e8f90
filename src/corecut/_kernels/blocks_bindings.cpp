#include "blocks.hpp"

#include <memory>

#include "bindings.hpp"
#include "metrics.hpp"

namespace corecut {

namespace {

// The state of the rounds, with the arrays it looks at.
struct BoundGroupRounds {
    Matrix matrix;
    In<double> degrees;
    std::unique_ptr<GroupRounds> rounds;
};

auto pairs(Proposals&& found) { return std::make_tuple(to_numpy(std::move(found.nodes)), to_numpy(std::move(found.targets))); }

template <class Array>
int64_t length_of(const Array& array) {
    return static_cast<int64_t>(array.shape(0));
}

void bind_group_rounds(nb::module_& m) {
    nb::class_<BoundGroupRounds>(m, "GroupRounds")
        .def(
            "__init__",
            [](BoundGroupRounds* self, const Matrix& matrix, In<double> degrees, double cap, int threads) {
                require_length(degrees, matrix.nodes(), "degrees");
                if (matrix.nodes() > std::numeric_limits<int32_t>::max())
                    throw InputError("aggregation is limited to 2^31 - 1 nodes");
                std::unique_ptr<GroupRounds> rounds;
                run(checked_threads(threads), [&](Context& context) {
                    matrix.visit([&]<class Index, class Weight>(const Csr<Index, Weight>& a) {
                        rounds = std::make_unique<GroupRoundsOf<Index, Weight>>(context, a, degrees.data(), cap);
                    });
                });
                new (self) BoundGroupRounds{matrix, degrees, std::move(rounds)};
            },
            nb::arg("matrix"), nb::arg("degrees"), nb::arg("cap"), nb::arg("threads"))
        .def("propose",
             [](const BoundGroupRounds& self, int64_t begin, int64_t end, uint64_t pass, uint64_t round) {
                 Proposals found;
                 run(1, [&](Context& context) { found = self.rounds->propose(context, begin, end, pass, round); });
                 return pairs(std::move(found));
             })
        .def("commit",
             [](BoundGroupRounds& self, In<int32_t> nodes, In<int32_t> targets, uint64_t pass, uint64_t round, bool mark, int threads) {
                 require_length(targets, length_of(nodes), "targets");
                 std::vector<uint8_t> made;
                 run(checked_threads(threads), [&](Context& context) {
                     made = self.rounds->commit(context, nodes.data(), targets.data(), length_of(nodes), pass, round, mark);
                 });
                 return to_numpy(std::move(made));
             })
        .def("move",
             [](BoundGroupRounds& self, In<int32_t> nodes, In<int32_t> targets) {
                 require_length(targets, length_of(nodes), "targets");
                 self.rounds->move(nodes.data(), targets.data(), length_of(nodes));
             })
        .def("lone",
             [](const BoundGroupRounds& self, int64_t begin, int64_t end) {
                 Proposals found;
                 run(1, [&](Context&) { found = self.rounds->lone(begin, end); });
                 return pairs(std::move(found));
             })
        .def("finish",
             [](BoundGroupRounds& self, In<int32_t> nodes, In<int32_t> favourites, int threads) {
                 require_length(favourites, length_of(nodes), "favourites");
                 run(checked_threads(threads), [&](Context& context) {
                     self.rounds->finish(context, nodes.data(), favourites.data(), length_of(nodes));
                 });
             })
        .def("set_labels",
             [](BoundGroupRounds& self, In<int32_t> labels) {
                 require_length(labels, self.matrix.nodes(), "labels");
                 self.rounds->set_labels(labels.data());
             })
        .def("set_active",
             [](BoundGroupRounds& self, In<uint8_t> bits) {
                 require_length(bits, (self.matrix.nodes() + 7) / 8, "active");
                 unpack_bits(bits.data(), self.rounds->active());
             })
        .def("all_active", [](BoundGroupRounds& self) { std::fill(self.rounds->active().begin(), self.rounds->active().end(), 1); })
        .def("entries_of_round",
             [](const BoundGroupRounds& self, uint64_t pass, uint64_t round, int64_t enough) {
                 return self.rounds->entries_of_round(pass, round, enough);
             })
        .def("labels", [](BoundGroupRounds& self) { return to_numpy(LazyVector<int32_t>(self.rounds->labels())); })
        .def("active", [](BoundGroupRounds& self) {
            const auto& active = self.rounds->active();
            return to_numpy(packed_bits(static_cast<int64_t>(active.size()), [&](int64_t x) { return active[x] != 0; }));
        });
    m.attr("ROUNDS_OF_A_PASS") = kRounds;
    m.attr("ROWS_OF_A_BLOCK") = kBlockRows;
    m.attr("FEW_MOVES") = kFewMoves;
    m.attr("SOME_MOVES") = kSomeMoves;
}

}  // namespace

void bind_blocks(nb::module_& m) {
    bind_group_rounds(m);
    m.def("contract_rows",
          [](const Matrix& matrix, In<int32_t> groups, int64_t count, int64_t begin, int64_t end, In<int64_t> borders) {
              require_length(groups, matrix.nodes(), "groups");
              if (length_of(borders) < 2) throw InputError("there must be at least one part");
              Pieces found;
              run(1, [&](Context& context) {
                  matrix.visit([&](const auto& a) {
                      found = contract_rows(context, a, groups.data(), count, begin, end, borders.data(), length_of(borders) - 1);
                  });
              });
              return std::make_tuple(to_numpy(std::move(found.groups)), to_numpy(std::move(found.lengths)),
                                     to_numpy(std::move(found.columns)), to_numpy(std::move(found.weights)),
                                     to_numpy(std::move(found.starts)));
          });
    m.def("merge_pieces", [](In<int32_t> groups, In<int64_t> lengths, In<int32_t> columns, In<double> weights, int64_t first,
                             int64_t last, int64_t count) {
        require_length(lengths, length_of(groups), "lengths");
        if (length_of(weights) > 0) require_length(weights, length_of(columns), "weights");
        Pieces merged;
        run(1, [&](Context& context) {
            merged = merge_pieces(context, groups.data(), lengths.data(), length_of(groups), columns.data(),
                                  length_of(weights) > 0 ? weights.data() : nullptr, length_of(columns), first, last, count);
        });
        return std::make_tuple(to_numpy(std::move(merged.lengths)), to_numpy(std::move(merged.columns)),
                               to_numpy(std::move(merged.weights)));
    });
    m.def("first_pairs", [](const Matrix& matrix, int64_t begin, int64_t end) {
        Proposals found;
        run(1, [&](Context&) { matrix.visit([&](const auto& a) { found = first_pairs(a, begin, end); }); });
        return pairs(std::move(found));
    });
    m.def("joining_pairs", [](const Matrix& matrix, In<int32_t> leaders, int64_t begin, int64_t end) {
        require_length(leaders, matrix.nodes(), "leaders");
        Proposals found;
        run(1, [&](Context& context) {
            matrix.visit([&](const auto& a) { found = joining_pairs(context, a, leaders.data(), begin, end); });
        });
        return pairs(std::move(found));
    });
    m.def("join_pairs", [](InOut<int32_t> parent, In<int32_t> one, In<int32_t> other) {
        require_length(other, length_of(one), "other");
        run(1, [&](Context&) { join_pairs(parent.data(), length_of(parent), one.data(), other.data(), length_of(one)); });
    });
    m.def("leaders", [](InOut<int32_t> parent) {
        for (int64_t x = 0; x < length_of(parent); ++x) parent.data()[x] = leader_of(parent.data(), static_cast<int32_t>(x));
    });
    m.def("margins_of_rows", [](const Matrix& matrix, In<int32_t> labels, int64_t k, int64_t begin, int64_t end) {
        require_length(labels, matrix.nodes(), "labels");
        check_rows(begin, end, matrix.nodes());
        if (k < 1) throw InputError("there must be at least one cluster");
        std::vector<double> own(end - begin), other(end - begin);
        run(1, [&](Context& context) {
            check_cluster_labels(labels.data(), matrix.nodes(), k);
            matrix.visit([&](const auto& a) {
                margins_of_rows(context, a, labels.data(), k, begin, end, own.data(), other.data());
            });
        });
        return std::make_tuple(to_numpy(std::move(own)), to_numpy(std::move(other)));
    });
}

}  // namespace corecut
