// Lines of an edge list, tidied for a CSV parser that knows one delimiter and no comments.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "parallel.hpp"

namespace corecut {

struct Tidied {
    std::string text;
    int64_t comments = 0;
};

// Drop empty lines and comment lines and the blanks around each line. With delimiter = 0 fields are parted by any run of
// blanks, and every run becomes one tab; otherwise the inside of a line stays as it is.
inline Tidied tidy_lines(Context& context, std::string_view text, char delimiter, std::string_view comments) {
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; };
    Tidied out;
    out.text.resize(text.size() + 1);
    char* to = out.text.data();
    const char* at = text.data();
    const char* const last = at + text.size();
    int64_t line = 0;
    while (at < last) {
        if ((++line & 0xFFFFF) == 0) context.check();
        const char* end = static_cast<const char*>(std::memchr(at, '\n', last - at));
        if (!end) end = last;
        const char* const next = end < last ? end + 1 : last;
        // A tab is a blank too, but where it is the delimiter an empty first or last field must not vanish.
        while (at < end && blank(*at) && *at != delimiter) ++at;
        while (end > at && blank(end[-1]) && end[-1] != delimiter) --end;
        if (at < end && comments.find(*at) != std::string_view::npos) {
            ++out.comments;
        } else if (at < end) {
            if (delimiter != 0) {
                std::memcpy(to, at, end - at);
                to += end - at;
            } else {
                bool before = false;
                for (; at < end; ++at) {
                    const bool now = blank(*at);
                    if (!now)
                        *to++ = *at;
                    else if (!before)
                        *to++ = '\t';
                    before = now;
                }
            }
            *to++ = '\n';
        }
        at = next;
    }
    out.text.resize(to - out.text.data());
    return out;
}

}  // namespace corecut
