// Vectors of 8 or, with AVX-512, 16 floats under one set of names, for what is written once for both widths.
//
// Invariant: each function is one operation of the contract per lane.
#pragma once

#include <immintrin.h>

namespace redraft::REDRAFT_ISA {

namespace {

struct Floats8 {
    using Vector = __m256;
    static constexpr int kWidth = 8;
    static Vector load(const float* at) { return _mm256_loadu_ps(at); }
    static void store(float* at, Vector v) { _mm256_storeu_ps(at, v); }
    static Vector spread(float x) { return _mm256_set1_ps(x); }
    static Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
    static Vector sub(Vector a, Vector b) { return _mm256_sub_ps(a, b); }
    static Vector mul(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
    static Vector div(Vector a, Vector b) { return _mm256_div_ps(a, b); }
    static Vector max(Vector a, Vector b) { return _mm256_max_ps(a, b); }
    static Vector min(Vector a, Vector b) { return _mm256_min_ps(a, b); }
    static Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
    static Vector fms(Vector a, Vector b, Vector c) { return _mm256_fmsub_ps(a, b, c); } // a * b - c
    // 2^n, n being in the low bits of 1.5 * 2^23 + n
    static Vector power_of_two(Vector shifted) {
        const __m256i biased = _mm256_add_epi32(_mm256_castps_si256(shifted), _mm256_set1_epi32(127));
        return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
    }
    static Vector zero_below(Vector x, float limit, Vector otherwise) {
        return _mm256_andnot_ps(_mm256_cmp_ps(x, spread(limit), _CMP_LT_OQ), otherwise);
    }
};

#if defined(__AVX512F__)
struct Floats16 {
    using Vector = __m512;
    static constexpr int kWidth = 16;
    static Vector load(const float* at) { return _mm512_loadu_ps(at); }
    static void store(float* at, Vector v) { _mm512_storeu_ps(at, v); }
    static Vector spread(float x) { return _mm512_set1_ps(x); }
    static Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
    static Vector sub(Vector a, Vector b) { return _mm512_sub_ps(a, b); }
    static Vector mul(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
    static Vector max(Vector a, Vector b) { return _mm512_max_ps(a, b); }
    static Vector min(Vector a, Vector b) { return _mm512_min_ps(a, b); }
    static Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
    static Vector fms(Vector a, Vector b, Vector c) { return _mm512_fmsub_ps(a, b, c); }
    static Vector power_of_two(Vector shifted) {
        const __m512i biased = _mm512_add_epi32(_mm512_castps_si512(shifted), _mm512_set1_epi32(127));
        return _mm512_castsi512_ps(_mm512_slli_epi32(biased, 23));
    }
    static Vector zero_below(Vector x, float limit, Vector otherwise) {
        return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, spread(limit), _CMP_NLT_UQ), otherwise);
    }
};
using Widest = Floats16;
#else
using Widest = Floats8;
#endif

} // namespace

} // namespace redraft::REDRAFT_ISA
