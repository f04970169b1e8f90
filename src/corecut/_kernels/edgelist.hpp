// Text files of edges: lines become fields, fields become numbers; and back.
//
// A record is a line, longer only where a field in quotes holds line ends. Fields are parted by one delimiter, or by any run
// of blanks. A field that begins with a quote ends with one; a quote inside it is written twice.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <limits>
#include <locale>
#include <sstream>
#include <string>
#include <string_view>

#include "edges_names.hpp"
#include "parallel.hpp"

namespace corecut {

// What can be wrong with a record; the words for it are Python's.
enum class Fault : int { none, columns, source, target, weight, bytes, carriage_return, open_quote, behind_quote, encoding };

struct Field {
    const char* begin;
    const char* end;       // without the quotes around it
    bool quoted;
    bool doubled;          // holds quotes that are written twice

    std::string_view view() const { return {begin, static_cast<size_t>(end - begin)}; }
    std::string plain() const {
        std::string text;
        for (const char* at = begin; at < end; ++at) {
            text.push_back(*at);
            if (doubled && *at == '"') ++at;
        }
        return text;
    }
};

// How the lines of a file are written; delimiter 0 stands for any run of blanks.
class Dialect {
   public:
    Dialect(char delimiter, std::string_view comments) : delimiter_(delimiter) {
        for (const char c : {' ', '\t', '\v', '\f'}) blank_[index(c)] = c != delimiter;
        for (const char c : comments) comment_[index(c)] = true;
        for (const char c : {'\n', '\r', '\0'}) stop_[index(c)] = true;
        if (delimiter)
            stop_[index(delimiter)] = true;
        else
            for (const char c : {' ', '\t', '\v', '\f'}) stop_[index(c)] = true;
    }

    // Skip empty lines and comments. False at the end of the text; else `at` is where a record begins.
    bool find(const char*& at, const char* last, int64_t& lines, int64_t& comments) const {
        while (at < last) {
            const char* begin = at;
            while (begin < last && blank_[index(*begin)]) ++begin;
            const char* end = begin;
            while (end < last && *end == '\r') ++end;
            if (end == last || *end == '\n') {
                // an empty line
            } else if (comment_[index(*begin)]) {
                ++comments;
                end = static_cast<const char*>(std::memchr(begin, '\n', last - begin));
                if (!end) end = last;
            } else {
                return true;
            }
            lines += end < last;
            at = end < last ? end + 1 : last;
        }
        return false;
    }

    // Give every field of the record at `at` to take(column, field) and go behind its line end. Where `take` finds a fault,
    // the rest of the record is still read, so that a message can show it.
    template <class Take>
    Fault record(const char*& at, const char* last, int64_t& lines, Take&& take) const {
        Fault fault = Fault::none;
        int column = 0;
        while (true) {
            while (at < last && blank_[index(*at)]) ++at;
            if (delimiter_ == 0 && (at == last || *at == '\n' || *at == '\r')) break;
            Field field{at, at, false, false};
            if (at < last && *at == '"') {
                const Fault broken = quoted(at, last, lines, field);
                if (broken != Fault::none) return broken;
            } else {
                while (at < last && !stop_[index(*at)]) ++at;
                field.end = at;
                while (field.end > field.begin && blank_[index(field.end[-1])]) --field.end;
            }
            const Fault found = take(column++, field);
            if (fault == Fault::none) fault = found;
            if (at == last || *at == '\n' || *at == '\r') break;
            if (*at == '\0') return Fault::bytes;
            if (delimiter_) ++at;
        }
        while (at < last && *at == '\r') ++at;
        if (at < last && *at != '\n') return Fault::carriage_return;
        if (at < last) ++at, ++lines;
        return fault;
    }

   private:
    static size_t index(char c) { return static_cast<unsigned char>(c); }

    Fault quoted(const char*& at, const char* last, int64_t& lines, Field& field) const {
        const int64_t before = lines;
        field.begin = ++at;
        field.quoted = true;
        while (true) {
            const char* end = static_cast<const char*>(std::memchr(at, '"', last - at));
            if (!end) {
                lines = before;
                return Fault::open_quote;
            }
            for (; at < end; ++at) lines += *at == '\n';
            ++at;
            if (at == last || *at != '"') break;
            field.doubled = true;
            ++at;
        }
        field.end = at - 1;
        while (at < last && blank_[index(*at)]) ++at;
        const bool ended = at == last || *at == '\n' || *at == '\r' || (delimiter_ ? *at == delimiter_ : at > field.end + 1);
        return ended ? Fault::none : Fault::behind_quote;
    }

    char delimiter_;
    std::array<bool, 256> blank_{}, comment_{}, stop_{};
};

inline bool parse_integer(const char* at, const char* end, int64_t& value) {
    const bool minus = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) ++at;
    if (at == end) return false;
    uint64_t sum = 0;
    const uint64_t limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + minus;
    for (; at < end; ++at) {
        const uint64_t digit = static_cast<unsigned char>(*at) - '0';
        if (digit > 9 || sum > (limit - digit) / 10) return false;
        sum = 10 * sum + digit;
    }
    value = static_cast<int64_t>(minus ? 0 - sum : sum);
    return true;
}

// Any number that is spelled in the usual way. Up to 15 digits and powers of ten up to 22 are exact as they are; the rest is
// left to the library, which rounds rightly too.
inline bool parse_number(const char* const begin, const char* end, double& value) {
    static constexpr double kPower[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                        1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const char* at = begin;
    const bool minus = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+')) ++at;
    const char* const unsigned_part = at;
    uint64_t digits = 0;
    int seen = 0, exponent = 0;
    bool any = false, point = false;
    for (; at < end; ++at) {
        const unsigned digit = static_cast<unsigned char>(*at) - '0';
        if (digit <= 9) {
            any = true;
            if (seen < 18) digits = 10 * digits + digit;
            seen += digits != 0;
            exponent -= point;
        } else if (*at == '.' && !point) {
            point = true;
        } else {
            break;
        }
    }
    if (any && at < end && (*at == 'e' || *at == 'E')) {
        const char* power = at + 1;
        int64_t shift = 0;
        if (!parse_integer(power, end, shift)) return false;
        at = end;
        exponent += static_cast<int>(std::clamp<int64_t>(shift, -99999, 99999));
    }
    if (any && at != end) return false;
    if (any && seen <= 15 && exponent >= -22 && exponent <= 22) {
        const double whole = static_cast<double>(digits);
        value = exponent < 0 ? whole / kPower[-exponent] : whole * kPower[exponent];
    } else if (any) {
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
        const auto result = std::from_chars(unsigned_part, end, value);
        if (result.ec == std::errc::result_out_of_range) {
            // Too small is 0, too large is infinite: which, the place of the first digit tells.
            value = seen + exponent > 0 ? std::numeric_limits<double>::infinity() : 0.0;
        } else if (result.ec != std::errc() || result.ptr != end) {
            return false;
        }
#else
        std::istringstream stream(std::string(unsigned_part, end));
        stream.imbue(std::locale::classic());
        if (!(stream >> value) && value == 0.0) return false;
#endif
    } else {
        std::string word(unsigned_part, end);
        for (char& c : word) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
        if (word == "inf" || word == "infinity")
            value = std::numeric_limits<double>::infinity();
        else if (word == "nan")
            value = std::numeric_limits<double>::quiet_NaN();
        else
            return false;
    }
    if (minus) value = -value;
    return true;
}

// Which columns of a table hold the edges.
struct Columns {
    int count = 2, source = 0, target = 1, weight = -1;
};

struct Edges {
    std::vector<int64_t> source, target;
    std::vector<double> weight;
    int64_t comments = 0, lines = 0;
    int64_t consumed = 0;  // bytes of whole records
    // The first record that is wrong: where it lies, and the line in which it begins, counted from 0.
    Fault fault = Fault::none;
    int64_t fault_line = 0, fault_begin = 0, fault_end = 0;
};

// Parses blocks of text. With a name table ids are text, else integers.
class EdgeParser {
   public:
    EdgeParser(char delimiter, std::string_view comments, Columns columns, bool text)
        : dialect_(delimiter, comments), columns_(columns), text_(text) {}

    const NameTable& names() const { return names_; }

    Edges parse(Context& context, std::string_view block) {
        // A quote may hide line ends: such a block is read in one go, others in pieces of whole lines.
        const bool quotes = block.find('"') != std::string_view::npos;
        std::vector<const char*> borders{block.data()};
        const char* const last = block.data() + block.size();
        while (borders.back() < last) {
            const char* end = last;
            if (!quotes && last - borders.back() > kPiece) {
                end = static_cast<const char*>(std::memchr(borders.back() + kPiece, '\n', last - borders.back() - kPiece));
                end = end ? end + 1 : last;
            }
            borders.push_back(end);
        }
        std::vector<Piece> pieces(borders.size() - 1);
        parallel_blocks(context, static_cast<int64_t>(pieces.size()), 1,
                        [&](int64_t p, int64_t, int64_t) { read(context, borders[p], borders[p + 1], pieces[p]); });
        Edges out;
        size_t total = 0;
        for (const Piece& piece : pieces) total += piece.edges.source.size() + piece.ends.size() / 2;
        out.source.reserve(total);
        out.target.reserve(total);
        if (columns_.weight >= 0) out.weight.reserve(total);
        for (Piece& piece : pieces) {
            const Edges& part = piece.edges;
            if (text_ && !number(piece, block, out)) return out;
            out.source.insert(out.source.end(), part.source.begin(), part.source.end());
            out.target.insert(out.target.end(), part.target.begin(), part.target.end());
            out.weight.insert(out.weight.end(), part.weight.begin(), part.weight.end());
            out.consumed += part.consumed;
            if (part.fault != Fault::none) {
                const int64_t base = borders[&piece - pieces.data()] - block.data();
                out.fault = part.fault;
                out.fault_line = out.lines + part.fault_line;
                out.fault_begin = base + part.fault_begin;
                out.fault_end = base + part.fault_end;
                return out;
            }
            out.lines += part.lines;
            out.comments += part.comments;
            piece = Piece();
        }
        return out;
    }

   private:
    static constexpr int64_t kPiece = 1 << 20;
    static constexpr size_t kAhead = 16;

    struct Piece {
        Edges edges;
        std::vector<std::string_view> ends;  // of text ids: source and target in turn
        std::vector<uint64_t> hashes;
        std::deque<std::string> unescaped;
    };

    void read(Context& context, const char* at, const char* last, Piece& piece) const {
        const char* const first = at;
        Edges& edges = piece.edges;
        int64_t source = 0, target = 0, count = 0;
        double weight = 0.0;
        std::string_view ends[2];
        const auto id = [&](const Field& field, int64_t& value, std::string_view& name, Fault fault) {
            if (field.begin == field.end && !(field.quoted && text_)) return fault;
            if (!text_) return parse_integer(field.begin, field.end, value) ? Fault::none : fault;
            name = field.doubled ? std::string_view(piece.unescaped.emplace_back(field.plain())) : field.view();
            return Fault::none;
        };
        int fields = 0;
        const auto take = [&](int column, const Field& field) {
            fields = column + 1;
            if (column == columns_.source) return id(field, source, ends[0], Fault::source);
            if (column == columns_.target) return id(field, target, ends[1], Fault::target);
            if (column == columns_.weight && !(parse_number(field.begin, field.end, weight) && weight >= 0 && std::isfinite(weight)))
                return Fault::weight;
            return Fault::none;
        };
        while (dialect_.find(at, last, edges.lines, edges.comments)) {
            if ((++count & 0xFFFF) == 0) context.check();
            const char* const begin = at;
            const int64_t line = edges.lines;
            fields = 0;
            Fault fault = dialect_.record(at, last, edges.lines, take);
            if (fault < Fault::bytes && fields != columns_.count) fault = Fault::columns;
            if (fault != Fault::none) {
                edges.fault = fault;
                edges.fault_line = line;
                edges.fault_begin = begin - first;
                edges.fault_end = at - first;
                edges.consumed = begin - first;
                return;
            }
            if (text_) {
                for (const std::string_view& name : ends) {
                    piece.ends.push_back(name);
                    piece.hashes.push_back(NameTable::hash_of(name));
                }
            } else {
                edges.source.push_back(source);
                edges.target.push_back(target);
            }
            if (columns_.weight >= 0) edges.weight.push_back(weight);
        }
        edges.consumed = last - first;
    }

    // Number the names of a piece, in the order of the lines, so that numbers do not depend on how the file was cut.
    bool number(const Piece& piece, std::string_view block, Edges& out) {
        for (size_t i = 0; i < piece.ends.size(); ++i) {
            if (i + kAhead < piece.hashes.size()) names_.prefetch_slot(piece.hashes[i + kAhead]);
            const int64_t number = names_.add(piece.ends[i], piece.hashes[i]);
            if (number < 0) {
                out.fault = Fault::encoding;
                const char* const at = piece.ends[i].data();
                const bool inside = at >= block.data() && at < block.data() + block.size();
                out.fault_begin = out.fault_end = inside ? at - block.data() : out.consumed;
                out.fault_line = std::count(block.begin(), block.begin() + out.fault_begin, '\n');
                return false;
            }
            (i % 2 ? out.target : out.source).push_back(number);
        }
        return true;
    }

    Dialect dialect_;
    Columns columns_;
    bool text_;
    NameTable names_;
};

// All numbers of a text parted by blanks, and how many each line has; `bad` is the first line (from 0) that holds anything else.
struct NumberLines {
    std::vector<int64_t> counts;
    std::vector<double> values;
    int64_t bad = -1;
};

inline NumberLines parse_number_lines(Context& context, std::string_view text) {
    const Dialect dialect('\0', "");
    NumberLines out;
    const char* at = text.data();
    const char* const last = at + text.size();
    while (at < last) {
        if ((out.counts.size() & 0xFFFF) == 0) context.check();
        int64_t lines = 0, count = 0;
        const Fault fault = dialect.record(at, last, lines, [&](int, const Field& field) {
            double value = 0.0;
            if (field.quoted || !parse_number(field.begin, field.end, value)) return Fault::weight;
            out.values.push_back(value);
            ++count;
            return Fault::none;
        });
        if (fault != Fault::none) {
            out.bad = static_cast<int64_t>(out.counts.size());
            return out;
        }
        out.counts.push_back(count);
    }
    return out;
}

inline void append_number(std::string& text, double value) {
    char buffer[40];
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
    text.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
#else
    // As few digits as give the same number back.
    for (int digits = 15; digits <= 17; ++digits) {
        const int length = std::snprintf(buffer, sizeof buffer, "%.*g", digits, value);
        double back = 0.0;
        if (digits == 17 || (parse_number(buffer, buffer + length, back) && back == value)) {
            text.append(buffer, length);
            return;
        }
    }
#endif
}

}  // namespace corecut
