#include "bindings.hpp"
#include "edgelist.hpp"

namespace corecut {

namespace {

char delimiter_of(const std::string& text) {
    if (text.size() > 1) throw InputError("a delimiter is one character");
    return text.empty() ? '\0' : text[0];
}

std::string_view view_of(const nb::bytes& text) { return {text.c_str(), text.size()}; }

nb::bytes bytes_of(std::string_view text) { return nb::bytes(text.data(), text.size()); }

std::tuple<nb::bytes, Out<int64_t>> names_of(const NameTable& names) {
    return {bytes_of(names.text()), to_numpy(std::vector<int64_t>(names.offsets()))};
}

void bind_parser(nb::module_& m) {
    nb::class_<EdgeParser>(m, "EdgeParser")
        .def("__init__",
             [](EdgeParser* self, const std::string& delimiter, const std::string& comments,
                std::tuple<int, int, int, int> columns, bool text) {
                 const auto [count, source, target, weight] = columns;
                 new (self) EdgeParser(delimiter_of(delimiter), comments, Columns{count, source, target, weight}, text);
             },
             nb::arg("delimiter"), nb::arg("comments"), nb::arg("columns"), nb::arg("text"))
        .def(
            "parse",
            [](EdgeParser& self, nb::bytes block, int threads) {
                Edges edges;
                run(checked_threads(threads), [&](Context& context) { edges = self.parse(context, view_of(block)); });
                return std::make_tuple(to_numpy(std::move(edges.source)), to_numpy(std::move(edges.target)),
                                       to_numpy(std::move(edges.weight)), edges.comments, edges.consumed,
                                       static_cast<int>(edges.fault), edges.fault_line, edges.fault_begin, edges.fault_end);
            },
            nb::arg("block"), nb::arg("threads"))
        .def_prop_ro("n_names", [](const EdgeParser& self) { return self.names().size(); })
        .def("names", [](const EdgeParser& self) { return names_of(self.names()); });
}

// Text columns as Arrow keeps them: the bytes of all names, and where each begins and ends.
void bind_names(nb::module_& m) {
    nb::class_<NameTable>(m, "NameTable")
        .def(nb::init<>())
        .def_prop_ro("n_names", [](const NameTable& self) { return self.size(); })
        .def("names", [](const NameTable& self) { return names_of(self); })
        .def("add", [](NameTable& self, In<uint8_t> source, In<int64_t> source_offsets, In<uint8_t> target,
                       In<int64_t> target_offsets) {
            const int64_t count = static_cast<int64_t>(source_offsets.shape(0)) - 1;
            require_length(target_offsets, count + 1, "target offsets");
            std::vector<int64_t> numbers[2];
            run(1, [&](Context& context) {
                for (int64_t i = 0; i < count; ++i) {
                    if ((i & 0xFFFF) == 0) context.check();
                    for (int end = 0; end < 2; ++end) {
                        const auto& bytes = end ? target : source;
                        const int64_t* const offsets = (end ? target_offsets : source_offsets).data();
                        if (offsets[i] < 0 || offsets[i] > offsets[i + 1] || offsets[i + 1] > static_cast<int64_t>(bytes.shape(0)))
                            throw InputError("the offsets of text do not rise");
                        const auto* const text = reinterpret_cast<const char*>(bytes.data());
                        const int64_t number = self.add({text + offsets[i], static_cast<size_t>(offsets[i + 1] - offsets[i])});
                        if (number < 0) throw InputError("an id is not UTF-8 text");
                        numbers[end].push_back(number);
                    }
                }
            });
            return std::make_tuple(to_numpy(std::move(numbers[0])), to_numpy(std::move(numbers[1])));
        });
}

// The first records of a text, field by field, each with whether it was in quotes; where the first begins, and its line from 0.
nb::tuple sniff_records(nb::bytes text, const std::string& delimiter, const std::string& comments, int limit) {
    const Dialect dialect(delimiter_of(delimiter), comments);
    const std::string_view all = view_of(text);
    const char* at = all.data();
    const char* const last = at + all.size();
    int64_t lines = 0, skipped = 0, begin = -1, line = 0;
    Fault fault = Fault::none;
    nb::list records;
    while (static_cast<int>(nb::len(records)) < limit && dialect.find(at, last, lines, skipped)) {
        if (begin < 0) {
            begin = at - all.data();
            line = lines;
        }
        nb::list fields;
        fault = dialect.record(at, last, lines, [&](int, const Field& field) {
            const std::string plain = field.plain();
            fields.append(nb::make_tuple(bytes_of(plain), field.quoted));
            return Fault::none;
        });
        if (fault != Fault::none) break;
        records.append(fields);
    }
    return nb::make_tuple(records, begin, line, static_cast<int>(fault), lines);
}

// Lines of edges: both ends as numbers, or by their numbers as names that are given with the quotes they need.
nb::bytes format_edges(In<int64_t> source, In<int64_t> target, std::optional<In<double>> weight, const std::string& delimiter,
                       std::optional<nb::bytes> names, std::optional<In<int64_t>> offsets) {
    const int64_t count = static_cast<int64_t>(source.shape(0));
    require_length(target, count, "target");
    if (weight) require_length(*weight, count, "weight");
    if (names.has_value() != offsets.has_value()) throw InputError("names need offsets");
    const std::string_view all = names ? view_of(*names) : std::string_view();
    std::string text;
    run(1, [&](Context& context) {
        const auto put = [&](int64_t id) {
            if (!offsets) {
                char buffer[24];
                text.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, id).ptr);
                return;
            }
            if (id < 0 || id + 1 >= static_cast<int64_t>(offsets->shape(0))) throw InputError("there is no such name");
            const int64_t begin = offsets->data()[id], end = offsets->data()[id + 1];
            if (begin < 0 || begin > end || end > static_cast<int64_t>(all.size())) throw InputError("the offsets of text do not rise");
            text.append(all.substr(begin, end - begin));
        };
        for (int64_t i = 0; i < count; ++i) {
            if ((i & 0xFFFF) == 0) context.check();
            put(source.data()[i]);
            text += delimiter;
            put(target.data()[i]);
            if (weight) {
                text += delimiter;
                append_number(text, weight->data()[i]);
            }
            text.push_back('\n');
        }
    });
    return bytes_of(text);
}

}  // namespace

void bind_edge_text(nb::module_& m) {
    bind_parser(m);
    bind_names(m);
    m.def("sniff_records", &sniff_records, nb::arg("text"), nb::arg("delimiter"), nb::arg("comments"), nb::arg("limit"));
    m.def("format_edges", &format_edges, nb::arg("source"), nb::arg("target"), nb::arg("weight").none(), nb::arg("delimiter"),
          nb::arg("names").none(), nb::arg("offsets").none());
    m.def("parse_number_lines", [](nb::bytes text) {
        NumberLines lines;
        run(1, [&](Context& context) { lines = parse_number_lines(context, view_of(text)); });
        return std::make_tuple(to_numpy(std::move(lines.counts)), to_numpy(std::move(lines.values)), lines.bad);
    });
}

}  // namespace corecut
