// NEON attention of a few queries over one key/value head; bit for bit that of scalar/attention.cpp.
//
// Keys are widened to fp32 once per block of 64 and used by every query of the call. Four keys are scored together, so
// that the fixed tree over their lanes runs in registers.
#include "lanes.h"
#include "neon.h"

namespace redraft::neon {

namespace {

void widen(const std::uint16_t* halves, std::int64_t n, float* out) {
    for (std::int64_t i = 0; i < n; i += 8) {
        store8(out + i, halves8(halves + i));
    }
}

// l0+l4 .. l3+l7 of two keys -> (0)+(2) and (1)+(3) of the first, then of the second
float32x4_t fold_two(Eight a, Eight b) {
    const float32x4_t first = vaddq_f32(a.low, a.high);
    const float32x4_t second = vaddq_f32(b.low, b.high);
    return vaddq_f32(vcombine_f32(vget_low_f32(first), vget_low_f32(second)),
                     vcombine_f32(vget_high_f32(first), vget_high_f32(second)));
}

void score_block(const AttentionCall& call, const float* q, std::int64_t keys, float scaling, float* scores) {
    const int n = call.head_dim;
    std::int64_t j = 0;
    for (; j + 4 <= keys; j += 4) {
        const float* key = call.block + j * n;
        Eight lanes[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
            lanes[i] = spread8(0.0f);
        }
        for (int d = 0; d < n; d += kLanes) {
            const Eight part = load8(q + d);
#pragma GCC unroll 4
            for (int i = 0; i < 4; ++i) {
                lanes[i] = fma8(part, load8(key + i * n + d), lanes[i]);
            }
        }
        const float32x4_t dots = vpaddq_f32(fold_two(lanes[0], lanes[1]), fold_two(lanes[2], lanes[3]));
        vst1q_f32(scores + j, vmulq_n_f32(dots, scaling));
    }
    for (; j < keys; ++j) {
        Eight lanes = spread8(0.0f);
        for (int d = 0; d < n; d += kLanes) {
            lanes = fma8(load8(q + d), load8(call.block + j * n + d), lanes);
        }
        scores[j] = combine_lanes(lanes) * scaling;
    }
}

float largest(const float* scores, std::int64_t n) {
    float32x4_t top = vdupq_n_f32(scores[0]);
    std::int64_t j = 0;
    for (; j + 4 <= n; j += 4) {
        top = vmaxq_f32(top, vld1q_f32(scores + j));
    }
    float peak = vmaxvq_f32(top);
    for (; j < n; ++j) {
        peak = scores[j] > peak ? scores[j] : peak;
    }
    return peak;
}

// scores -> exp(score - max) in place; returns the sum, in lanes by absolute key index
float softmax_terms(float* scores, std::int64_t n) {
    const Eight shift = spread8(-largest(scores, n));
    Eight sums = spread8(0.0f);
    std::int64_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
        const Eight terms = exp8(add8(load8(scores + j), shift));
        store8(scores + j, terms);
        sums = add8(sums, terms);
    }
    float lanes[kLanes];
    store8(lanes, sums);
    for (int lane = 0; j < n; ++j, ++lane) {
        scores[j] = vgetq_lane_f32(exp4(vaddq_f32(vdupq_n_f32(scores[j]), shift.low)), 0);
        lanes[lane] += scores[j];
    }
    return combine_lanes(load8(lanes));
}

// out += terms * values over `keys` keys in order, for 8 `vectors` of the head's dimensions.
template <int vectors>
void add_values(const float* terms, const float* values, std::int64_t keys, int head_dim, float* out) {
    Eight acc[vectors];
#pragma GCC unroll 8
    for (int i = 0; i < vectors; ++i) {
        acc[i] = load8(out + 8 * i);
    }
    for (std::int64_t j = 0; j < keys; ++j) {
        const Eight term = spread8(terms[j]);
#pragma GCC unroll 8
        for (int i = 0; i < vectors; ++i) {
            acc[i] = fma8(term, load8(values + j * head_dim + 8 * i), acc[i]);
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < vectors; ++i) {
        store8(out + 8 * i, acc[i]);
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

// Calls work(query, first key, keys) for every query and every block of keys it sees, the block widened once.
template <typename Work>
void walk_blocks(const AttentionCall& call, const std::uint16_t* halves, const Work& work) {
    std::int64_t most = 0;
    for (int i = 0; i < call.count; ++i) {
        most = call.queries[i].keys > most ? call.queries[i].keys : most;
    }
    for (std::int64_t first = 0; first < most; first += kKeyBlock) {
        const std::int64_t keys = most - first < kKeyBlock ? most - first : kKeyBlock;
        widen(halves + first * call.head_dim, keys * call.head_dim, call.block);
        for (int i = 0; i < call.count; ++i) {
            const std::int64_t seen = call.queries[i].keys - first;
            if (seen > 0) {
                work(i, first, seen < keys ? seen : keys);
            }
        }
    }
}

} // namespace

void attention(const AttentionCall& call) {
    const int n = call.head_dim;
    const float scaling = 1.0f / square_root(static_cast<float>(n));
    walk_blocks(call, call.keys, [&](int i, std::int64_t first, std::int64_t keys) {
        score_block(call, call.queries[i].q, keys, scaling, call.scores + i * call.score_stride + first);
    });
    for (int i = 0; i < call.count; ++i) {
        call.sums[i] = softmax_terms(call.scores + i * call.score_stride, call.queries[i].keys);
        for (int d = 0; d < n; d += 8) {
            store8(call.queries[i].out + d, spread8(0.0f));
        }
    }
    walk_blocks(call, call.values, [&](int i, std::int64_t first, std::int64_t keys) {
        add_block(call, call.scores + i * call.score_stride + first, keys, call.queries[i].out);
    });
    for (int i = 0; i < call.count; ++i) {
        const float32x4_t sum = vdupq_n_f32(call.sums[i]);
        for (int d = 0; d < n; d += 4) {
            float* out = call.queries[i].out + d;
            vst1q_f32(out, vdivq_f32(vld1q_f32(out), sum));
        }
    }
}

} // namespace redraft::neon
