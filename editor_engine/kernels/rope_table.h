// Cosines and sines for rotary positions, from this file's own double arithmetic.
//
// Uses + - * / on doubles and nothing of the C library's mathematics, which differs between machines. Invariant: entry
// (position, i) depends on nothing but the arguments, so a table may be filled in pieces.
#pragma once

#include <cstdint>
#include <vector>

namespace redraft {

// Angle of pair i per position: base^(-2i/head_dim), divided by factors[i] where factors are given (head_dim/2 of them).
std::vector<double> rope_frequencies(int head_dim, double base, const float* factors);

// For positions [begin, end): out row p - begin has frequencies.size() fp32 numbers. |error| stays under one fp32 ulp of
// the true cosine and sine for angles up to 2^20.
void rope_table(const std::vector<double>& frequencies, std::int64_t begin, std::int64_t end, float* cosines,
                float* sines);

} // namespace redraft
