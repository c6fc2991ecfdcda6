// Vector attention of a few queries over one key/value head; bit for bit that of scalar/attention.cpp.
//
// Keys are widened to fp32 once per block of 64 and used by every query of the call. Eight keys are scored together:
// eight vectors of lanes, one per key, are combined by the fixed tree through shuffles, without leaving the registers.
#include "x86.h"
#include "lanes.h"

namespace redraft::REDRAFT_ISA {

namespace {

void widen(const std::uint16_t* halves, std::int64_t n, float* out) {
    for (std::int64_t i = 0; i < n; i += 8) {
        const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(halves + i));
        _mm256_storeu_ps(out + i, _mm256_cvtph_ps(half));
    }
}

// Lanes of eight keys -> their eight dot products, in order. Each step adds what the tree adds:
// halves l0+l4..l3+l7, then (0)+(2) and (1)+(3), then the two.
__m256 combine_eight(const __m256* v) {
    __m256 quads[4]; // keys i and i+4 in the two halves
    for (int i = 0; i < 4; ++i) {
        quads[i] = _mm256_add_ps(_mm256_permute2f128_ps(v[i], v[i + 4], 0x20),
                                 _mm256_permute2f128_ps(v[i], v[i + 4], 0x31));
    }
    const __m256 pair01 = _mm256_add_ps(_mm256_shuffle_ps(quads[0], quads[1], 0x44),
                                        _mm256_shuffle_ps(quads[0], quads[1], 0xee));
    const __m256 pair23 = _mm256_add_ps(_mm256_shuffle_ps(quads[2], quads[3], 0x44),
                                        _mm256_shuffle_ps(quads[2], quads[3], 0xee));
    return _mm256_add_ps(_mm256_shuffle_ps(pair01, pair23, 0x88), _mm256_shuffle_ps(pair01, pair23, 0xdd));
}

// Scores keys 8j .. 8j+7 of the block for all multiples up to `keys`, rounded up: callers leave room for 64.
void score_block(const AttentionCall& call, const float* q, std::int64_t keys, __m256 scaling, float* scores) {
    const int n = call.head_dim;
    for (std::int64_t j = 0; j < keys; j += 8) {
        const float* key = call.block + j * n;
        __m256 lanes[8];
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) {
            lanes[i] = _mm256_setzero_ps();
        }
        for (int d = 0; d < n; d += kLanes) {
            const __m256 part = _mm256_loadu_ps(q + d);
#pragma GCC unroll 8
            for (int i = 0; i < 8; ++i) {
                lanes[i] = _mm256_fmadd_ps(part, _mm256_loadu_ps(key + i * n + d), lanes[i]);
            }
        }
        _mm256_storeu_ps(scores + j, _mm256_mul_ps(combine_eight(lanes), scaling));
    }
}

float softmax_terms(float* scores, std::int64_t n) {
    __m256 top = _mm256_set1_ps(scores[0]);
    for (std::int64_t j = 0; j < n; j += 8) {
        const __m256i mask = first_lanes(n - j < 8 ? static_cast<int>(n - j) : 8);
        const __m256 v = _mm256_blendv_ps(top, _mm256_loadu_ps(scores + j), _mm256_castsi256_ps(mask));
        top = _mm256_max_ps(v, top);
    }
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(top), _mm256_extractf128_ps(top, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    const float peak = _mm_cvtss_f32(_mm_max_ss(half, _mm_shuffle_ps(half, half, 1)));
    __m256 lanes = _mm256_setzero_ps();
    for (std::int64_t j = 0; j < n; j += 8) {
        const __m256i mask = first_lanes(n - j < 8 ? static_cast<int>(n - j) : 8);
        __m256 term = exp8(_mm256_sub_ps(_mm256_loadu_ps(scores + j), _mm256_set1_ps(peak)));
        term = _mm256_and_ps(term, _mm256_castsi256_ps(mask)); // adding +0 to a lane changes no bit of it
        _mm256_storeu_ps(scores + j, term);
        lanes = _mm256_add_ps(lanes, term);
    }
    return combine_lanes(lanes);
}

// out += terms * values over `keys` keys in order, for `width` (up to 64) of the head's dimensions.
template <int vectors>
void add_values(const float* terms, const float* values, std::int64_t keys, int head_dim, float* out) {
    __m256 acc[vectors];
#pragma GCC unroll 8
    for (int i = 0; i < vectors; ++i) {
        acc[i] = _mm256_loadu_ps(out + 8 * i);
    }
    for (std::int64_t j = 0; j < keys; ++j) {
        const __m256 term = _mm256_broadcast_ss(terms + j);
#pragma GCC unroll 8
        for (int i = 0; i < vectors; ++i) {
            acc[i] = _mm256_fmadd_ps(term, _mm256_loadu_ps(values + j * head_dim + 8 * i), acc[i]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < vectors; ++i) {
        _mm256_storeu_ps(out + 8 * i, acc[i]);
    }
}

void add_block(const AttentionCall& call, const float* terms, std::int64_t keys, float* out) {
    int d = 0;
    for (; d + 64 <= call.head_dim; d += 64) {
        add_values<8>(terms, call.block + d, keys, call.head_dim, out + d);
    }
    for (; d < call.head_dim; d += 8) {
        add_values<1>(terms, call.block + d, keys, call.head_dim, out + d);
    }
}

std::int64_t most_keys(const AttentionCall& call) {
    std::int64_t most = 0;
    for (int i = 0; i < call.count; ++i) {
        most = call.queries[i].keys > most ? call.queries[i].keys : most;
    }
    return most;
}

std::int64_t seen_in_block(const AttentionQuery& query, std::int64_t first) {
    const std::int64_t seen = query.keys - first;
    return seen < 0 ? 0 : (seen < kKeyBlock ? seen : kKeyBlock);
}

} // namespace

void attention(const AttentionCall& call) {
    const int n = call.head_dim;
    const std::int64_t most = most_keys(call);
    const __m128 root = _mm_sqrt_ss(_mm_set_ss(static_cast<float>(n)));
    const __m256 scaling = _mm256_set1_ps(_mm_cvtss_f32(_mm_div_ss(_mm_set_ss(1.0f), root)));
    for (std::int64_t first = 0; first < most; first += kKeyBlock) {
        const std::int64_t keys = most - first < kKeyBlock ? most - first : kKeyBlock;
        widen(call.keys + first * n, keys * n, call.block);
        for (int i = 0; i < call.count; ++i) {
            const std::int64_t seen = seen_in_block(call.queries[i], first);
            score_block(call, call.queries[i].q, seen, scaling, call.scores + i * call.score_stride + first);
        }
    }
    for (int i = 0; i < call.count; ++i) {
        call.sums[i] = softmax_terms(call.scores + i * call.score_stride, call.queries[i].keys);
        for (int d = 0; d < n; d += 8) {
            _mm256_storeu_ps(call.queries[i].out + d, _mm256_setzero_ps());
        }
    }
    for (std::int64_t first = 0; first < most; first += kKeyBlock) {
        const std::int64_t keys = most - first < kKeyBlock ? most - first : kKeyBlock;
        widen(call.values + first * n, keys * n, call.block);
        for (int i = 0; i < call.count; ++i) {
            const std::int64_t seen = seen_in_block(call.queries[i], first);
            if (seen > 0) {
                add_block(call, call.scores + i * call.score_stride + first, seen, call.queries[i].out);
            }
        }
    }
    for (int i = 0; i < call.count; ++i) {
        for (int d = 0; d < n; d += 8) {
            float* out = call.queries[i].out + d;
            _mm256_storeu_ps(out, _mm256_div_ps(_mm256_loadu_ps(out), _mm256_set1_ps(call.sums[i])));
        }
    }
}

} // namespace redraft::REDRAFT_ISA
