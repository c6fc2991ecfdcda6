// Vector operations on rows of fp32; bit for bit those of scalar/rows.cpp.
#include "lanes.h"

#include "../vector.h"

namespace redraft::REDRAFT_ISA {

namespace {

// Eight int32 -> their sum.
std::int32_t sum8(__m256i v) {
    __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0x4e));
    s = _mm_add_epi32(s, _mm_shuffle_epi32(s, 0xb1));
    return _mm_cvtsi128_si32(s);
}

float max8(__m256 v) {
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
}

// x / scale, clamped to +-127 and rounded to nearest even (MXCSR is round-to-nearest in every worker)
__m256i quantise8(__m256 x, __m256 scale) {
    __m256 v = _mm256_div_ps(x, scale);
    v = _mm256_max_ps(_mm256_min_ps(v, _mm256_set1_ps(127.0f)), _mm256_set1_ps(-127.0f));
    return _mm256_cvtps_epi32(v);
}

void rope_tail(float* x, const float* cosines, const float* sines, int first, int half, int a_step, int b_offset) {
    for (int i = first; i < half; ++i) {
        float& low = x[i * a_step];
        float& high = x[i * a_step + b_offset];
        const __m128 a = _mm_set_ss(low);
        const __m128 b = _mm_set_ss(high);
        const __m128 c = _mm_set_ss(cosines[i]);
        const __m128 s = _mm_set_ss(sines[i]);
        low = _mm_cvtss_f32(_mm_fmsub_ss(a, c, _mm_mul_ss(b, s)));
        high = _mm_cvtss_f32(_mm_fmadd_ss(a, s, _mm_mul_ss(b, c)));
    }
}

} // namespace

bool quantise(const float* x, std::int64_t row, std::int64_t begin, std::int64_t end, const QuantRows& out) {
    __m256 bad = _mm256_setzero_ps();
    for (std::int64_t b = begin / kBlock; b < end / kBlock; ++b) {
        const float* block = x + b * kBlock;
        __m256 v[4];
        __m256 amax = _mm256_setzero_ps();
        for (int i = 0; i < 4; ++i) {
            v[i] = _mm256_loadu_ps(block + 8 * i);
            bad = _mm256_or_ps(bad, not_finite(v[i]));
            amax = _mm256_max_ps(amax, _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v[i]));
        }
        const __m128 scale1 = _mm_div_ss(_mm_set_ss(max8(amax)), _mm_set_ss(127.0f));
        const float scale = _mm_cvtss_f32(scale1);
        __m256i q[4];
        for (int i = 0; i < 4; ++i) {
            q[i] = scale > 0.0f ? quantise8(v[i], _mm256_set1_ps(scale)) : _mm256_setzero_si256();
        }
        const __m256i half0 = _mm256_packs_epi32(q[0], q[1]);
        const __m256i half1 = _mm256_packs_epi32(q[2], q[3]);
        const __m256i bytes = _mm256_permutevar8x32_epi32(_mm256_packs_epi16(half0, half1),
                                                          _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out.q + row * out.k + b * kBlock), bytes);
        const std::int64_t at = row * (out.k / kBlock) + b;
        const std::int32_t low = sum8(_mm256_add_epi32(q[0], q[1]));
        const std::int32_t high = sum8(_mm256_add_epi32(q[2], q[3]));
        out.scale[at] = scale;
        out.sum16[2 * at] = low;
        out.sum16[2 * at + 1] = high;
        out.sum32[at] = low + high;
        out.sum[at] = static_cast<float>(low + high);
    }
    return _mm256_movemask_ps(bad) == 0;
}

void rmsnorm(const float* x, const float* weight, std::int64_t n, float eps, float* y) {
    __m256 lanes = _mm256_setzero_ps();
    for (std::int64_t i = 0; i < n; i += kLanes) {
        const __m256 v = _mm256_loadu_ps(x + i);
        lanes = _mm256_fmadd_ps(v, v, lanes);
    }
    const __m128 mean = _mm_div_ss(_mm_set_ss(combine_lanes(lanes)), _mm_set_ss(static_cast<float>(n)));
    const __m128 root = _mm_sqrt_ss(_mm_add_ss(mean, _mm_set_ss(eps)));
    const __m256 r = _mm256_set1_ps(_mm_cvtss_f32(_mm_div_ss(_mm_set_ss(1.0f), root)));
    for (std::int64_t i = 0; i < n; i += kLanes) {
        _mm256_storeu_ps(y + i, _mm256_mul_ps(_mm256_mul_ps(_mm256_loadu_ps(x + i), r), _mm256_loadu_ps(weight + i)));
    }
}

void rope_halves(float* x, const float* cosines, const float* sines, int head_dim) {
    const int half = head_dim / 2;
    int i = 0;
    for (; i + 8 <= half; i += 8) {
        const __m256 a = _mm256_loadu_ps(x + i);
        const __m256 b = _mm256_loadu_ps(x + half + i);
        const __m256 c = _mm256_loadu_ps(cosines + i);
        const __m256 s = _mm256_loadu_ps(sines + i);
        _mm256_storeu_ps(x + i, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
        _mm256_storeu_ps(x + half + i, _mm256_fmadd_ps(a, s, _mm256_mul_ps(b, c)));
    }
    rope_tail(x, cosines, sines, i, half, 1, half);
}

void rope_pairs(float* x, const float* cosines, const float* sines, int head_dim) {
    rope_tail(x, cosines, sines, 0, head_dim / 2, 2, 1);
}

bool to_half(const float* x, std::int64_t n, std::uint16_t* y) {
    const __m128i exponent = _mm_set1_epi16(0x7c00);
    __m128i bad = _mm_setzero_si128();
    for (std::int64_t i = 0; i < n; i += 8) {
        const __m128i half = _mm256_cvtps_ph(_mm256_loadu_ps(x + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
        bad = _mm_or_si128(bad, _mm_cmpeq_epi16(_mm_and_si128(half, exponent), exponent));
        _mm_storeu_si128(reinterpret_cast<__m128i*>(y + i), half);
    }
    return _mm_movemask_epi8(bad) == 0;
}

void swiglu(const float* gate, const float* up, std::int64_t n, float* y) {
    const __m256 one = _mm256_set1_ps(1.0f);
    for (std::int64_t i = 0; i < n; i += 8) {
        const __m256 g = _mm256_loadu_ps(gate + i);
        const __m256 e = exponential_of<Floats8>(_mm256_xor_ps(g, _mm256_set1_ps(-0.0f)));
        const __m256 silu = _mm256_div_ps(g, _mm256_add_ps(one, e));
        _mm256_storeu_ps(y + i, _mm256_mul_ps(silu, _mm256_loadu_ps(up + i)));
    }
}

void exponential(const float* x, std::int64_t n, float* y) {
    for (std::int64_t i = 0; i < n; i += 8) {
        const __m256i mask = first_lanes(n - i < 8 ? static_cast<int>(n - i) : 8);
        _mm256_maskstore_ps(y + i, mask, exponential_of<Floats8>(_mm256_maskload_ps(x + i, mask)));
    }
}

bool argmax(const float* x, std::int64_t n, std::int32_t* best) {
    const __m256 lowest = _mm256_set1_ps(-__builtin_inff());
    __m256 top = lowest;
    __m256i top_at = _mm256_setzero_si256();
    __m256 bad = _mm256_setzero_ps();
    __m256i at = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    for (std::int64_t i = 0; i < n; i += 8) {
        const __m256i mask = first_lanes(n - i < 8 ? static_cast<int>(n - i) : 8);
        const __m256 loaded = _mm256_maskload_ps(x + i, mask); // 0 in masked lanes: finite
        bad = _mm256_or_ps(bad, not_finite(loaded));
        const __m256 v = _mm256_blendv_ps(lowest, loaded, _mm256_castsi256_ps(mask));
        const __m256 above = _mm256_cmp_ps(v, top, _CMP_GT_OQ);
        top = _mm256_blendv_ps(top, v, above);
        top_at = _mm256_blendv_epi8(top_at, at, _mm256_castps_si256(above));
        at = _mm256_add_epi32(at, _mm256_set1_epi32(8));
    }
    float values[8];
    std::int32_t indices[8];
    _mm256_storeu_ps(values, top);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(indices), top_at);
    int lane = 0;
    for (int l = 1; l < 8; ++l) {
        if (values[l] > values[lane] || (values[l] == values[lane] && indices[l] < indices[lane])) {
            lane = l;
        }
    }
    *best = indices[lane];
    return _mm256_movemask_ps(bad) == 0;
}

} // namespace redraft::REDRAFT_ISA
