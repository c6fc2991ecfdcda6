// What the NEON files share: names only.
//
// Baseline armv8.0, so these files need no flags of their own. They keep the rule of the x86 ones all the same:
// whatever has code is static inside its file and no template of the standard library is used, so that a later variant
// with flags (dot products) can be built from them.
#pragma once

#include "../contract.h"

namespace redraft::neon {

bool quantise(const float* x, std::int64_t row, std::int64_t begin, std::int64_t end, const QuantRows& out);
void linear_q4_0(const LinearCall& call, const QuantRows& x);
void linear_q4_1(const LinearCall& call, const QuantRows& x);
void linear_q5_0(const LinearCall& call, const QuantRows& x);
void linear_q5_1(const LinearCall& call, const QuantRows& x);
void linear_q8_0(const LinearCall& call, const QuantRows& x);
void linear_q4_k(const LinearCall& call, const QuantRows& x);
void linear_q5_k(const LinearCall& call, const QuantRows& x);
void linear_q6_k(const LinearCall& call, const QuantRows& x);
void rmsnorm(const float* x, const float* weight, std::int64_t n, float eps, float* y);
void rope_halves(float* x, const float* cosines, const float* sines, int head_dim);
void rope_pairs(float* x, const float* cosines, const float* sines, int head_dim);
bool to_half(const float* x, std::int64_t n, std::uint16_t* y);
void attention(const AttentionCall& call);
void swiglu(const float* gate, const float* up, std::int64_t n, float* y);
void exponential(const float* x, std::int64_t n, float* y);
bool argmax(const float* x, std::int64_t n, std::int32_t* best);

} // namespace redraft::neon
