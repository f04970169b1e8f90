// A queue of nodes whose keys change while they wait.
#pragma once

#include <cstdint>
#include <vector>

namespace corecut {

// Nodes in the order of a key that may change, the largest on top; of equal keys the one that came last.
class Queue {
   public:
    void reset(size_t n) {
        heap_.clear();
        place_.assign(n, -1);
        keys_.resize(n);
        stamps_.resize(n);
        clock_ = 0;
    }
    bool empty() const { return heap_.empty(); }
    bool holds(int32_t x) const { return place_[x] >= 0; }
    int32_t top() const { return heap_.front(); }
    double top_key() const { return keys_[heap_.front()]; }

    void set(int32_t x, double key) {
        keys_[x] = key;
        stamps_[x] = ++clock_;
        if (place_[x] < 0) {
            place_[x] = static_cast<int32_t>(heap_.size());
            heap_.push_back(x);
        }
        rise(place_[x]);
        sink(place_[x]);
    }

    void remove(int32_t x) {
        const int32_t at = place_[x], last = heap_.back();
        heap_.pop_back();
        place_[x] = -1;
        if (last == x) return;
        heap_[at] = last;
        place_[last] = at;
        rise(at);
        sink(place_[last]);
    }

   private:
    bool above(int32_t x, int32_t y) const { return keys_[x] > keys_[y] || (keys_[x] == keys_[y] && stamps_[x] > stamps_[y]); }
    void put(int32_t x, int32_t at) {
        heap_[at] = x;
        place_[x] = at;
    }
    void rise(int32_t at) {
        const int32_t x = heap_[at];
        for (; at > 0 && above(x, heap_[(at - 1) / 2]); at = (at - 1) / 2) put(heap_[(at - 1) / 2], at);
        put(x, at);
    }
    void sink(int32_t at) {
        const int32_t x = heap_[at], count = static_cast<int32_t>(heap_.size());
        for (int32_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
            if (child + 1 < count && above(heap_[child + 1], heap_[child])) ++child;
            if (!above(heap_[child], x)) break;
            put(heap_[child], at);
            at = child;
        }
        put(x, at);
    }

    std::vector<int32_t> heap_, place_;
    std::vector<double> keys_;
    std::vector<uint64_t> stamps_;
    uint64_t clock_ = 0;
};

}  // namespace corecut
