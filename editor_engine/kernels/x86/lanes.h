// Vector pieces that more than one file here needs. All static: each file keeps its own copy (vector.h says why).
//
// Invariant: the same operations in the same order as scalar/rows.cpp, eight at a time.
#pragma once

#include <immintrin.h>

#include "floats.h"

namespace redraft::REDRAFT_ISA {

// ((l0+l4) + (l2+l6)) + ((l1+l5) + (l3+l7))
static inline float combine_lanes(__m256 lanes) {
    const __m128 quad = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
    const __m128 pair = _mm_add_ps(quad, _mm_movehl_ps(quad, quad));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps(pair, pair, 1)));
}

// The first `count` (0 to 8) lanes set.
static inline __m256i first_lanes(int count) {
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), index);
}

// The contract's exponential; `min` returns its second operand when either is NaN: NaN stays NaN.
template <typename Floats> static typename Floats::Vector exponential_of(typename Floats::Vector x) {
    const auto magic = Floats::spread(12582912.0f);
    const auto top = Floats::min(Floats::spread(88.0f), x);
    const auto shifted = Floats::fma(top, Floats::spread(0x1.715476p+0f), magic);
    const auto n = Floats::sub(shifted, magic);
    const auto partial = Floats::fma(n, Floats::spread(-0x1.62e4p-1f), top);
    const auto r = Floats::fma(n, Floats::spread(-0x1.7f7d1cp-20f), partial);
    auto p = Floats::spread(0x1.a01a02p-13f);
    p = Floats::fma(p, r, Floats::spread(0x1.6c16c2p-10f));
    p = Floats::fma(p, r, Floats::spread(0x1.111112p-7f));
    p = Floats::fma(p, r, Floats::spread(0x1.555556p-5f));
    p = Floats::fma(p, r, Floats::spread(0x1.555556p-3f));
    p = Floats::fma(p, r, Floats::spread(0.5f));
    p = Floats::fma(p, r, Floats::spread(1.0f));
    p = Floats::fma(p, r, Floats::spread(1.0f));
    return Floats::zero_below(x, -87.0f, Floats::mul(p, Floats::power_of_two(shifted)));
}

// Lanes that are NaN or infinite.
static inline __m256 not_finite(__m256 x) {
    const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
    return _mm256_cmp_ps(magnitude, _mm256_set1_ps(0x1.fffffep+127f), _CMP_NLE_UQ);
}

} // namespace redraft::REDRAFT_ISA
