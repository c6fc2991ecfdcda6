// NEON operations on rows of fp32; bit for bit those of scalar/rows.cpp.
#include "lanes.h"

#include "../vector.h"

namespace redraft::neon {

namespace {

// x / scale, clamped to +-127 and rounded to nearest even; a NaN (0 / 0 or infinite inputs) gives 0
int32x4_t quantise4(float32x4_t x, float32x4_t scale) {
    const float32x4_t v = vdivq_f32(x, scale);
    return vcvtnq_s32_f32(vmaxq_f32(vminq_f32(v, vdupq_n_f32(127.0f)), vdupq_n_f32(-127.0f)));
}

// One pair of the rotation, for what is left of the vectors.
void rotate(float& low, float& high, float c, float s) {
    const float a = low;
    const float b = high;
    low = __builtin_fmaf(a, c, -(b * s));
    high = __builtin_fmaf(a, s, b * c);
}

void rotate4(float32x4_t& low, float32x4_t& high, const float* cosines, const float* sines) {
    const float32x4_t a = low;
    const float32x4_t b = high;
    const float32x4_t c = vld1q_f32(cosines);
    const float32x4_t s = vld1q_f32(sines);
    low = vfmaq_f32(vnegq_f32(vmulq_f32(b, s)), a, c);
    high = vfmaq_f32(vmulq_f32(b, c), a, s);
}

} // namespace

bool quantise(const float* x, std::int64_t row, std::int64_t begin, std::int64_t end, const QuantRows& out) {
    uint32x4_t finite = vdupq_n_u32(~0u);
    for (std::int64_t b = begin / kBlock; b < end / kBlock; ++b) {
        const float* block = x + b * kBlock;
        float32x4_t v[8];
        float32x4_t amax = vdupq_n_f32(0.0f);
        for (int i = 0; i < 8; ++i) {
            v[i] = vld1q_f32(block + 4 * i);
            finite = vandq_u32(finite, finite4(v[i]));
            const float32x4_t magnitude = vabsq_f32(v[i]);
            amax = vbslq_f32(vcgtq_f32(magnitude, amax), magnitude, amax); // passes over a NaN, as the scalar one
        }
        const float scale = vmaxvq_f32(amax) / 127.0f;
        std::int8_t* q = out.q + row * out.k + b * kBlock;
        std::int32_t sums[2];
        for (int h = 0; h < 2; ++h) {
            int32x4_t part[4];
            for (int i = 0; i < 4; ++i) {
                part[i] = scale > 0.0f ? quantise4(v[4 * h + i], vdupq_n_f32(scale)) : vdupq_n_s32(0);
            }
            const int16x8_t first = vcombine_s16(vmovn_s32(part[0]), vmovn_s32(part[1]));
            const int16x8_t second = vcombine_s16(vmovn_s32(part[2]), vmovn_s32(part[3]));
            vst1q_s8(q + 16 * h, vcombine_s8(vmovn_s16(first), vmovn_s16(second)));
            sums[h] = vaddvq_s32(vaddq_s32(vaddq_s32(part[0], part[1]), vaddq_s32(part[2], part[3])));
        }
        const std::int64_t at = row * (out.k / kBlock) + b;
        out.scale[at] = scale;
        out.sum16[2 * at] = sums[0];
        out.sum16[2 * at + 1] = sums[1];
        out.sum32[at] = sums[0] + sums[1];
        out.sum[at] = static_cast<float>(sums[0] + sums[1]);
    }
    return vminvq_u32(finite) != 0;
}

void rmsnorm(const float* x, const float* weight, std::int64_t n, float eps, float* y) {
    Eight lanes = spread8(0.0f);
    for (std::int64_t i = 0; i < n; i += kLanes) {
        const Eight v = load8(x + i);
        lanes = fma8(v, v, lanes);
    }
    const float mean = combine_lanes(lanes) / static_cast<float>(n);
    const Eight r = spread8(1.0f / square_root(mean + eps));
    for (std::int64_t i = 0; i < n; i += kLanes) {
        store8(y + i, mul8(mul8(load8(x + i), r), load8(weight + i)));
    }
}

void rope_halves(float* x, const float* cosines, const float* sines, int head_dim) {
    const int half = head_dim / 2;
    int i = 0;
    for (; i + 4 <= half; i += 4) {
        float32x4_t low = vld1q_f32(x + i);
        float32x4_t high = vld1q_f32(x + half + i);
        rotate4(low, high, cosines + i, sines + i);
        vst1q_f32(x + i, low);
        vst1q_f32(x + half + i, high);
    }
    for (; i < half; ++i) {
        rotate(x[i], x[half + i], cosines[i], sines[i]);
    }
}

void rope_pairs(float* x, const float* cosines, const float* sines, int head_dim) {
    const int half = head_dim / 2;
    int i = 0;
    for (; i + 4 <= half; i += 4) {
        float32x4x2_t both = vld2q_f32(x + 2 * i);
        rotate4(both.val[0], both.val[1], cosines + i, sines + i);
        vst2q_f32(x + 2 * i, both);
    }
    for (; i < half; ++i) {
        rotate(x[2 * i], x[2 * i + 1], cosines[i], sines[i]);
    }
}

bool to_half(const float* x, std::int64_t n, std::uint16_t* y) {
    const uint16x8_t exponent = vdupq_n_u16(0x7c00);
    uint16x8_t bad = vdupq_n_u16(0);
    for (std::int64_t i = 0; i < n; i += 8) {
        const Eight v = load8(x + i);
        const uint16x8_t half = vreinterpretq_u16_f16(vcvt_high_f16_f32(vcvt_f16_f32(v.low), v.high));
        bad = vorrq_u16(bad, vceqq_u16(vandq_u16(half, exponent), exponent));
        vst1q_u16(y + i, half);
    }
    return vmaxvq_u16(bad) == 0;
}

void swiglu(const float* gate, const float* up, std::int64_t n, float* y) {
    for (std::int64_t i = 0; i < n; i += 4) {
        const float32x4_t g = vld1q_f32(gate + i);
        const float32x4_t silu = vdivq_f32(g, vaddq_f32(vdupq_n_f32(1.0f), exp4(vnegq_f32(g))));
        vst1q_f32(y + i, vmulq_f32(silu, vld1q_f32(up + i)));
    }
}

void exponential(const float* x, std::int64_t n, float* y) {
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        vst1q_f32(y + i, exp4(vld1q_f32(x + i)));
    }
    for (; i < n; ++i) {
        y[i] = vgetq_lane_f32(exp4(vdupq_n_f32(x[i])), 0);
    }
}

bool argmax(const float* x, std::int64_t n, std::int32_t* best) {
    float32x4_t top = vdupq_n_f32(-__builtin_inff());
    int32x4_t top_at = vdupq_n_s32(0);
    uint32x4_t finite = vdupq_n_u32(~0u);
    constexpr std::int32_t kFirst[4] = {0, 1, 2, 3};
    int32x4_t at = vld1q_s32(kFirst);
    std::int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const float32x4_t v = vld1q_f32(x + i);
        finite = vandq_u32(finite, finite4(v));
        const uint32x4_t above = vcgtq_f32(v, top);
        top = vbslq_f32(above, v, top);
        top_at = vbslq_s32(above, at, top_at);
        at = vaddq_s32(at, vdupq_n_s32(4));
    }
    bool all_finite = vminvq_u32(finite) != 0;
    float values[4];
    std::int32_t indices[4];
    vst1q_f32(values, top);
    vst1q_s32(indices, top_at);
    int lane = 0;
    for (int l = 1; l < 4; ++l) {
        if (values[l] > values[lane] || (values[l] == values[lane] && indices[l] < indices[lane])) {
            lane = l;
        }
    }
    float largest = values[lane];
    std::int32_t largest_at = indices[lane];
    for (; i < n; ++i) {
        all_finite = all_finite && __builtin_fabsf(x[i]) <= 0x1.fffffep+127f;
        if (x[i] > largest) {
            largest = x[i];
            largest_at = static_cast<std::int32_t>(i);
        }
    }
    *best = largest_at;
    return all_finite;
}

} // namespace redraft::neon
