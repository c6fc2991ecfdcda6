// What the files of a vector variant share: names only.
//
// A variant is vector_ops.cpp and the three files of a folder (x86, neon), compiled with the variant's flags and its name
// as REDRAFT_ISA, which becomes the namespace. Everything else with code is static inside its file, and no template of
// the standard library is used: the linker must never pick a vector copy of a function the baseline calls. (NEON is the
// baseline of aarch64 and has no flags; its files keep the rule for a later variant that has some.)
#pragma once

#include "contract.h"

namespace redraft::REDRAFT_ISA {

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

} // namespace redraft::REDRAFT_ISA
