// What all binding files share: the matrix handle, the choice of template, and running a kernel so that Ctrl-C works.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <exception>
#include <optional>
#include <utility>

#include "csr.hpp"
#include "parallel.hpp"

namespace corecut {

namespace nb = nanobind;

using AnyArray = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using InOut = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

// A kernel's result as a NumPy array that owns the memory.
template <class T, class Allocator>
Out<T> to_numpy(std::vector<T, Allocator>&& values) {
    auto* owned = new std::vector<T, Allocator>(std::move(values));
    nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T, Allocator>*>(p); });
    return Out<T>(owned->data(), {owned->size()}, owner);
}

// The three arrays of a matrix, kept alive; weights absent means that every entry is 1.
class Matrix {
   public:
    Matrix(AnyArray indptr, AnyArray indices, std::optional<AnyArray> data);

    int64_t nodes() const { return n_; }
    int64_t entries() const { return nnz_; }

    // Call f with the view of the right type.
    template <class F>
    auto visit(F&& f) const {
        const bool wide = indices_.dtype() == nb::dtype<int64_t>();
        return wide ? visit_index<int64_t>(std::forward<F>(f)) : visit_index<int32_t>(std::forward<F>(f));
    }

   private:
    template <class Index, class F>
    auto visit_index(F&& f) const {
        if (!data_) return f(view<Index, Unit>());
        if (data_->dtype() == nb::dtype<float>()) return f(view<Index, float>());
        return f(view<Index, double>());
    }

    template <class Index, class Weight>
    Csr<Index, Weight> view() const {
        Csr<Index, Weight> csr;
        csr.n = n_;
        csr.nnz = nnz_;
        csr.indptr = {indptr_.data(), indptr_.dtype() == nb::dtype<int64_t>()};
        csr.indices = static_cast<const Index*>(indices_.data());
        csr.data = data_ ? static_cast<const Weight*>(data_->data()) : nullptr;
        return csr;
    }

    AnyArray indptr_, indices_;
    std::optional<AnyArray> data_;
    int64_t n_, nnz_;
};

// Refuse an array of the wrong length before a kernel sees it.
template <class Array>
void require_length(const Array& array, int64_t length, const char* name) {
    if (static_cast<int64_t>(array.shape(0)) != length)
        throw InputError(std::string(name) + " has length " + std::to_string(array.shape(0)) + ", expected " +
                         std::to_string(length));
}

// Tells the kernels of threads that obey it to stop: signals reach the main thread of Python only.
struct StopFlag {
    std::atomic<bool> raised{false};
};
inline thread_local const StopFlag* obeyed = nullptr;

// Run kernel(context) with the GIL released. Python's handlers of signals run on its own threads only, and a kernel may work
// for seconds: it is asked now and then to let them.
template <class F>
void run(int threads, F&& kernel) {
    const auto stopped = [flag = obeyed]() { return flag != nullptr && flag->raised.load(std::memory_order_relaxed); };
    if (stopped()) throw Cancelled();
    Context context;
    context.threads = threads;
    bool interrupted = false;
    context.asked_to_stop = [&]() {
        nb::gil_scoped_acquire acquire;
        interrupted = interrupted || PyErr_CheckSignals() != 0;
        return interrupted || stopped();
    };
    std::exception_ptr error;
    {
        nb::gil_scoped_release release;
        try {
            kernel(context);
        } catch (...) {
            error = std::current_exception();
        }
    }
    if (interrupted) throw nb::python_error();
    if (error) std::rethrow_exception(error);
}

// A thread count from Python, made safe.
inline int checked_threads(int threads) { return std::max(1, std::min(threads, 256)); }

}  // namespace corecut
