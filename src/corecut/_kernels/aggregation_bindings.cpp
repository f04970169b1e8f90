#include "aggregation.hpp"

#include "bindings.hpp"

namespace corecut {

namespace {

void check_count(int64_t count) {
    if (count < 1 || count > std::numeric_limits<int32_t>::max()) throw InputError("the number of groups is out of range");
}

nb::tuple as_arrays(Quotient&& q) {
    const bool single = !q.single.empty();
    nb::object weights = single ? nb::cast(to_numpy(std::move(q.single))) : nb::cast(to_numpy(std::move(q.data)));
    return nb::make_tuple(to_numpy(std::move(q.indptr)), to_numpy(std::move(q.indices)), weights);
}

// A quotient whose rows are asked for part by part, so that it need not be in memory as a whole.
class Contraction {
   public:
    Contraction(const Matrix& matrix, In<int32_t> groups, int64_t count, int threads)
        : matrix_(matrix), groups_(groups), count_(count), threads_(checked_threads(threads)) {
        require_length(groups, matrix.nodes(), "groups");
        check_count(count);
        run(threads_, [&](Context& context) { members_.emplace(context, groups.data(), matrix.nodes(), count); });
    }

    // Borders between parts of the groups that have at most so many entries each, where no group alone has more.
    Out<int64_t> borders(int64_t most) const {
        std::vector<int64_t> found{0};
        matrix_.visit([&](const auto& a) {
            int64_t held = 0;
            for (int64_t g = 0; g < count_; ++g) {
                int64_t entries = 0;
                for (int64_t i = members_->start[g]; i < members_->start[g + 1]; ++i) entries += a.row(members_->nodes[i]).size();
                if (held > 0 && held + entries > most) found.push_back(g), held = 0;
                held += entries;
            }
        });
        found.push_back(count_);
        return to_numpy(std::move(found));
    }

    nb::tuple rows(int64_t first, int64_t last) const {
        Quotient result;
        run(threads_, [&](Context& context) {
            matrix_.visit([&](const auto& a) {
                result = contract_groups(context, a, groups_.data(), count_, *members_, first, last, true);
            });
        });
        auto loops = to_numpy(std::move(result.loops));
        return nb::make_tuple(as_arrays(std::move(result)), loops);
    }

   private:
    const Matrix& matrix_;
    In<int32_t> groups_;
    int64_t count_;
    int threads_;
    std::optional<Members> members_;
};

}  // namespace

void bind_aggregation(nb::module_& m) {
    m.def(
        "group_nodes",
        [](const Matrix& matrix, In<double> degrees, double cap, int64_t max_passes, int threads, std::optional<In<int32_t>> within,
           int64_t seed) {
            require_length(degrees, matrix.nodes(), "degrees");
            if (within) require_length(*within, matrix.nodes(), "within");
            LazyVector<int32_t> result;
            run(checked_threads(threads), [&](Context& context) {
                matrix.visit([&](const auto& a) {
                    result = group_nodes(context, a, degrees.data(), cap, max_passes, within ? within->data() : nullptr, seed);
                });
            });
            return to_numpy(std::move(result));
        },
        nb::arg("matrix"), nb::arg("degrees"), nb::arg("cap"), nb::arg("max_passes"), nb::arg("threads"),
        nb::arg("within") = nb::none(), nb::arg("seed") = 0);
    m.def(
        "contract",
        [](const Matrix& matrix, In<int32_t> groups, int64_t count, int threads, bool compact) {
            require_length(groups, matrix.nodes(), "groups");
            check_count(count);
            Quotient result;
            run(checked_threads(threads), [&](Context& context) {
                matrix.visit([&](const auto& a) { result = contract(context, a, groups.data(), count, compact); });
            });
            return as_arrays(std::move(result));
        },
        nb::arg("matrix"), nb::arg("groups"), nb::arg("count"), nb::arg("threads"), nb::arg("compact") = false);
    nb::class_<Contraction>(m, "Contraction")
        .def(nb::init<const Matrix&, In<int32_t>, int64_t, int>(), nb::arg("matrix"), nb::arg("groups"), nb::arg("count"),
             nb::arg("threads"), nb::keep_alive<1, 2>())
        .def("borders", &Contraction::borders, nb::arg("most"))
        .def("rows", &Contraction::rows, nb::arg("first"), nb::arg("last"));
}

}  // namespace corecut
