// Text ids and their numbers: a hash table over one long string.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "csr.hpp"

namespace corecut {

// Whether bytes are UTF-8: no overlong forms, no surrogates, nothing beyond U+10FFFF.
inline bool is_utf8(std::string_view text) {
    const auto* at = reinterpret_cast<const unsigned char*>(text.data());
    const auto* const last = at + text.size();
    while (at < last) {
        const unsigned char lead = *at++;
        if (lead < 0x80) continue;
        const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
        if (lead < 0xC2 || lead > 0xF4 || last - at < more) return false;
        // The second byte decides about overlong forms, surrogates and the end of Unicode.
        const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
        const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
        if (at[0] < low || at[0] > high) return false;
        for (int i = 1; i < more; ++i)
            if ((at[i] & 0xC0) != 0x80) return false;
        at += more;
    }
    return true;
}

// Numbers names in the order in which they are first met.
class NameTable {
   public:
    int64_t size() const { return static_cast<int64_t>(offsets_.size()) - 1; }
    const std::string& text() const { return text_; }
    const std::vector<int64_t>& offsets() const { return offsets_; }

    // The number of a name; -1 for a new one that is not UTF-8.
    int64_t add(std::string_view name) { return add(name, hash_of(name)); }

    int64_t add(std::string_view name, uint64_t hash) {
        if (2 * (size() + 1) > static_cast<int64_t>(slots_.size())) grow();
        const size_t mask = slots_.size() - 1;
        for (size_t slot = hash & mask;; slot = (slot + 1) & mask) {
            const Slot found = slots_[slot];
            if (found.number < 0) {
                if (!is_utf8(name)) return -1;
                slots_[slot] = {hash, size()};
                text_.append(name);
                offsets_.push_back(static_cast<int64_t>(text_.size()));
                return size() - 1;
            }
            if (found.hash == hash && at(found.number) == name) return found.number;
        }
    }

    // Ask the cache for the place where a name's search begins.
    void prefetch_slot(uint64_t hash) const {
        if (!slots_.empty()) prefetch(&slots_[hash & (slots_.size() - 1)]);
    }

    static uint64_t hash_of(std::string_view name) {
        uint64_t hash = 0x9E3779B97F4A7C15u ^ name.size();
        size_t i = 0;
        for (; i + 8 <= name.size(); i += 8) {
            uint64_t word;
            std::memcpy(&word, name.data() + i, 8);
            hash = mixed(hash ^ word);
        }
        uint64_t word = 0;
        if (i < name.size()) std::memcpy(&word, name.data() + i, name.size() - i);
        return mixed(hash ^ word);
    }

   private:
    struct Slot {
        uint64_t hash = 0;
        int64_t number = -1;
    };

    std::string_view at(int64_t number) const {
        return std::string_view(text_).substr(offsets_[number], offsets_[number + 1] - offsets_[number]);
    }

    static uint64_t mixed(uint64_t x) {
        x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
        x = (x ^ (x >> 32)) * 0xD6E8FEB86659FD93u;
        return x ^ (x >> 32);
    }

    void grow() {
        std::vector<Slot> larger(slots_.empty() ? 1024 : 2 * slots_.size());
        const size_t mask = larger.size() - 1;
        for (const Slot& old : slots_) {
            if (old.number < 0) continue;
            size_t slot = old.hash & mask;
            while (larger[slot].number >= 0) slot = (slot + 1) & mask;
            larger[slot] = old;
        }
        slots_ = std::move(larger);
    }

    std::string text_;
    std::vector<int64_t> offsets_ = {0};
    std::vector<Slot> slots_;
};

}  // namespace corecut
