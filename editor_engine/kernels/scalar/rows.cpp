// Scalar operations on rows of fp32: quantise, RMSNorm, RoPE, SwiGLU, exp, argmax. They define the result.
//
// Every fma below is std::fma, one rounding whatever the machine; every other operation rounds on its own because the
// build turns contraction off.
#include <cfloat>
#include <cmath>
#include <cstring>

#include "../fp16.h"
#include "scalar.h"

namespace redraft::scalar {

namespace {

constexpr float kMagic = 12582912.0f; // 1.5 * 2^23: adding and subtracting it rounds |x| < 2^22 to nearest even

bool finite(float x) { return std::fabs(x) <= FLT_MAX; } // false for NaN too

} // namespace

float combine_lanes(const float* l) { return ((l[0] + l[4]) + (l[2] + l[6])) + ((l[1] + l[5]) + (l[3] + l[7])); }

// exp by x = n ln2 + r, |r| <= ln2/2: the Taylor polynomial of degree 7 in r, times 2^n. Below -87 it is 0, above 88 it
// stays at exp(88); NaN stays NaN. Every result is normal or 0.
float exp_one(float x) {
    const float top = 88.0f < x ? 88.0f : x;
    const float shifted = std::fma(top, 0x1.715476p+0f, kMagic); // 1/ln2
    const float n = shifted - kMagic;
    const float partial = std::fma(n, -0x1.62e4p-1f, top);         // high part of ln2, 15 bits: n times it is exact
    const float r = std::fma(n, -0x1.7f7d1cp-20f, partial);       // low part
    float p = 0x1.a01a02p-13f;                                     // 1/5040
    p = std::fma(p, r, 0x1.6c16c2p-10f);                           // 1/720
    p = std::fma(p, r, 0x1.111112p-7f);                            // 1/120
    p = std::fma(p, r, 0x1.555556p-5f);                            // 1/24
    p = std::fma(p, r, 0x1.555556p-3f);                            // 1/6
    p = std::fma(p, r, 0.5f);
    p = std::fma(p, r, 1.0f);
    p = std::fma(p, r, 1.0f);
    std::uint32_t bits;
    std::memcpy(&bits, &shifted, 4);
    bits = (bits + 127u) << 23; // the integer n sits in the low bits of `shifted`; the shift drops the rest
    float power;
    std::memcpy(&power, &bits, 4);
    const float result = p * power;
    return x < -87.0f ? 0.0f : result;
}

bool quantise(const float* x, std::int64_t row, std::int64_t begin, std::int64_t end, const QuantRows& out) {
    bool all_finite = true;
    for (std::int64_t b = begin / kBlock; b < end / kBlock; ++b) {
        const float* block = x + b * kBlock;
        std::int8_t* q = out.q + row * out.k + b * kBlock;
        float amax = 0.0f;
        for (int i = 0; i < kBlock; ++i) {
            all_finite = all_finite && finite(block[i]);
            const float magnitude = std::fabs(block[i]);
            amax = magnitude > amax ? magnitude : amax;
        }
        const float scale = amax / 127.0f;
        std::int32_t sums[2] = {0, 0};
        for (int i = 0; i < kBlock; ++i) {
            float v = scale > 0.0f ? block[i] / scale : 0.0f;
            v = v > 127.0f ? 127.0f : v;
            v = v < -127.0f ? -127.0f : v;
            const float rounded = (v + kMagic) - kMagic;
            q[i] = finite(rounded) ? static_cast<std::int8_t>(rounded) : std::int8_t{0};
            sums[i / 16] += q[i];
        }
        const std::int64_t at = row * (out.k / kBlock) + b;
        out.scale[at] = scale;
        out.sum16[2 * at] = sums[0];
        out.sum16[2 * at + 1] = sums[1];
        out.sum32[at] = sums[0] + sums[1];
        out.sum[at] = static_cast<float>(sums[0] + sums[1]);
    }
    return all_finite;
}

void rmsnorm(const float* x, const float* weight, std::int64_t n, float eps, float* y) {
    float lanes[kLanes] = {};
    for (std::int64_t i = 0; i < n; ++i) {
        lanes[i % kLanes] = std::fma(x[i], x[i], lanes[i % kLanes]);
    }
    const float mean = combine_lanes(lanes) / static_cast<float>(n);
    const float r = 1.0f / std::sqrt(mean + eps);
    for (std::int64_t i = 0; i < n; ++i) {
        y[i] = (x[i] * r) * weight[i];
    }
}

void rope_halves(float* x, const float* cosines, const float* sines, int head_dim) {
    const int half = head_dim / 2;
    for (int i = 0; i < half; ++i) {
        const float a = x[i];
        const float b = x[i + half];
        x[i] = std::fma(a, cosines[i], -(b * sines[i]));
        x[i + half] = std::fma(a, sines[i], b * cosines[i]);
    }
}

void rope_pairs(float* x, const float* cosines, const float* sines, int head_dim) {
    for (int i = 0; i < head_dim / 2; ++i) {
        const float a = x[2 * i];
        const float b = x[2 * i + 1];
        x[2 * i] = std::fma(a, cosines[i], -(b * sines[i]));
        x[2 * i + 1] = std::fma(a, sines[i], b * cosines[i]);
    }
}

bool to_half(const float* x, std::int64_t n, std::uint16_t* y) {
    bool all_finite = true;
    for (std::int64_t i = 0; i < n; ++i) {
        y[i] = float_to_half(x[i]);
        all_finite = all_finite && (y[i] & 0x7c00u) != 0x7c00u;
    }
    return all_finite;
}

void swiglu(const float* gate, const float* up, std::int64_t n, float* y) {
    for (std::int64_t i = 0; i < n; ++i) {
        const float silu = gate[i] / (1.0f + exp_one(-gate[i]));
        y[i] = silu * up[i];
    }
}

void exponential(const float* x, std::int64_t n, float* y) {
    for (std::int64_t i = 0; i < n; ++i) {
        y[i] = exp_one(x[i]);
    }
}

bool argmax(const float* x, std::int64_t n, std::int32_t* best) {
    bool all_finite = true;
    std::int64_t at = 0;
    for (std::int64_t i = 0; i < n; ++i) {
        all_finite = all_finite && finite(x[i]);
        if (x[i] > x[at]) { // strictly: a tie stays with the lowest id
            at = i;
        }
    }
    *best = static_cast<std::int32_t>(at);
    return all_finite;
}

} // namespace redraft::scalar
