// What the scalar files share: names of the functions that ops.cpp gathers into the table.
#pragma once

#include "../contract.h"

namespace redraft::scalar {

bool quantise(const float* x, std::int64_t row, std::int64_t begin, std::int64_t end, const QuantRows& out);
template <QuantType type> void linear(const LinearCall& call, const QuantRows& x);
void rmsnorm(const float* x, const float* weight, std::int64_t n, float eps, float* y);
void rope_halves(float* x, const float* cosines, const float* sines, int head_dim);
void rope_pairs(float* x, const float* cosines, const float* sines, int head_dim);
bool to_half(const float* x, std::int64_t n, std::uint16_t* y);
void attention(const AttentionCall& call);
void swiglu(const float* gate, const float* up, std::int64_t n, float* y);
void exponential(const float* x, std::int64_t n, float* y);
bool argmax(const float* x, std::int64_t n, std::int32_t* best);

float exp_one(float x);
float combine_lanes(const float* lanes); // the fixed tree over 8 lanes

} // namespace redraft::scalar
