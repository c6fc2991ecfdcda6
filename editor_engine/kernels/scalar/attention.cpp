// Scalar attention of a few queries over one key/value head. Defines the result.
#include <cmath>

#include "../fp16.h"
#include "scalar.h"

namespace redraft::scalar {

namespace {

float dot(const float* q, const float* key, int n) {
    float lanes[kLanes] = {};
    for (int i = 0; i < n; ++i) {
        lanes[i % kLanes] = std::fma(q[i], key[i], lanes[i % kLanes]);
    }
    return combine_lanes(lanes);
}

// [group][dimension][8 keys] -> [key][dimension]
void widen_keys(const std::uint16_t* halves, std::int64_t keys, int n, float* out) {
    for (std::int64_t j = 0; j < keys; ++j) {
        const std::uint16_t* key = halves + j / kLanes * kLanes * n + j % kLanes;
        for (int d = 0; d < n; ++d) {
            out[j * n + d] = half_to_float(key[d * kLanes]);
        }
    }
}

void widen_values(const std::uint16_t* halves, std::int64_t keys, int n, float* out) {
    for (std::int64_t i = 0; i < keys * n; ++i) {
        out[i] = half_to_float(halves[i]);
    }
}

// scores -> exp(score - max) in place; returns the sum, in lanes by absolute key index
float softmax_terms(float* scores, std::int64_t n) {
    float top = scores[0];
    for (std::int64_t j = 1; j < n; ++j) {
        top = scores[j] > top ? scores[j] : top;
    }
    float lanes[kLanes] = {};
    for (std::int64_t j = 0; j < n; ++j) {
        scores[j] = exp_one(scores[j] - top);
        lanes[j % kLanes] += scores[j];
    }
    return combine_lanes(lanes);
}

// Calls work(query, first key, keys) for every query and every block of keys it sees, the block widened once.
template <typename Widen, typename Work>
void walk_blocks(const AttentionCall& call, const std::uint16_t* halves, const Widen& widen, const Work& work) {
    std::int64_t most = 0;
    for (int i = 0; i < call.count; ++i) {
        most = call.queries[i].keys > most ? call.queries[i].keys : most;
    }
    for (std::int64_t first = 0; first < most; first += kKeyBlock) {
        const std::int64_t keys = most - first < kKeyBlock ? most - first : kKeyBlock;
        widen(halves + first * call.head_dim, keys, call.head_dim, call.block);
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
    const float scaling = 1.0f / std::sqrt(static_cast<float>(n));
    walk_blocks(call, call.keys, widen_keys, [&](int i, std::int64_t first, std::int64_t keys) {
        float* scores = call.scores + i * call.score_stride + first;
        for (std::int64_t j = 0; j < keys; ++j) {
            scores[j] = dot(call.queries[i].q, call.block + j * n, n) * scaling;
        }
    });
    for (int i = 0; i < call.count; ++i) {
        float* scores = call.scores + i * call.score_stride;
        call.sums[i] = softmax_terms(scores, call.queries[i].keys);
        for (int d = 0; d < n; ++d) {
            call.queries[i].out[d] = 0.0f;
        }
    }
    walk_blocks(call, call.values, widen_values, [&](int i, std::int64_t first, std::int64_t keys) {
        const float* terms = call.scores + i * call.score_stride + first;
        float* out = call.queries[i].out;
        for (std::int64_t j = 0; j < keys; ++j) {
            for (int d = 0; d < n; ++d) {
                out[d] = std::fma(terms[j], call.block[j * n + d], out[d]);
            }
        }
    });
    for (int i = 0; i < call.count; ++i) {
        for (int d = 0; d < n; ++d) {
            call.queries[i].out[d] = call.queries[i].out[d] / call.sums[i];
        }
    }
}

} // namespace redraft::scalar
