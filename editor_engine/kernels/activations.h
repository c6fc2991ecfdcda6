// Quantised activations with memory of their own, for whoever calls single operations: bindings, self-test, checks.
//
// A model has its own, as wide as its widest layer. Invariant: `view` is of this very memory, so none is copied.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "contract.h"

namespace redraft {

struct Activations {
    Activations(std::int64_t rows, std::int64_t k)
        : q(static_cast<std::size_t>(rows * k)), scale(q.size() / kBlock), sum(scale.size()), sum32(scale.size()),
          sum16(2 * scale.size()), view{q.data(), scale.data(), sum.data(), sum32.data(), sum16.data(), k} {}
    Activations(Activations&&) = default; // vectors keep their memory when they move
    std::vector<std::int8_t> q;
    std::vector<float> scale, sum;
    std::vector<std::int32_t> sum32, sum16;
    QuantRows view;
};

} // namespace redraft
