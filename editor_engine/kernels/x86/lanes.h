// Vector pieces that more than one file here needs. All static: each file keeps its own copy (x86.h says why).
//
// Invariant: the same operations in the same order as scalar/rows.cpp, eight at a time.
#pragma once

#include <immintrin.h>

namespace redraft::REDRAFT_ISA {

// ((l0+l4) + (l2+l6)) + ((l1+l5) + (l3+l7))
static inline float combine_lanes(__m256 lanes) {
    const __m128 quad = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps(lanes, 1));
    const __m128 pair = _mm_add_ps(quad, _mm_movehl_ps(quad, quad));
    return _mm_cvtss_f32(_mm_add_ss(pair, _mm_shuffle_ps(pair, pair, 1)));
}

// min_ps returns its second operand when either is NaN: NaN stays NaN
static inline __m256 exp8(__m256 x) {
    const __m256 magic = _mm256_set1_ps(12582912.0f);
    const __m256 top = _mm256_min_ps(_mm256_set1_ps(88.0f), x);
    const __m256 shifted = _mm256_fmadd_ps(top, _mm256_set1_ps(0x1.715476p+0f), magic);
    const __m256 n = _mm256_sub_ps(shifted, magic);
    const __m256 partial = _mm256_fmadd_ps(n, _mm256_set1_ps(-0x1.62e4p-1f), top);
    const __m256 r = _mm256_fmadd_ps(n, _mm256_set1_ps(-0x1.7f7d1cp-20f), partial);
    __m256 p = _mm256_set1_ps(0x1.a01a02p-13f);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.6c16c2p-10f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.111112p-7f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.555556p-5f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0x1.555556p-3f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(0.5f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    const __m256i bits =
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(127)), 23);
    const __m256 result = _mm256_mul_ps(p, _mm256_castsi256_ps(bits));
    return _mm256_andnot_ps(_mm256_cmp_ps(x, _mm256_set1_ps(-87.0f), _CMP_LT_OQ), result);
}

// The first `count` (0 to 8) lanes set.
static inline __m256i first_lanes(int count) {
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), index);
}

// Lanes that are NaN or infinite.
static inline __m256 not_finite(__m256 x) {
    const __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
    return _mm256_cmp_ps(magnitude, _mm256_set1_ps(0x1.fffffep+127f), _CMP_NLE_UQ);
}

} // namespace redraft::REDRAFT_ISA
