// The arrays of a KernelView as they come from Python, checked for length.
#pragma once

#include "bindings.hpp"
#include "sampling.hpp"

namespace corecut {

inline KernelArrays kernel_arrays(const Matrix& matrix, const std::optional<In<double>>& scale, const In<double>& diagonal,
                                  const In<double>& weights) {
    if (scale) require_length(*scale, matrix.nodes(), "scale");
    require_length(diagonal, matrix.nodes(), "diagonal");
    require_length(weights, matrix.nodes(), "weights");
    return {scale ? scale->data() : nullptr, diagonal.data(), weights.data()};
}

}  // namespace corecut
